"""Readers of other programs' conversations, for `loom import`.

`claude_code`, `chatgpt` and `codex` each read one format into pieces; `files` finds and
reads files, `cleaning` makes what they hold fit to be sent, `sending` sends it.
"""

from loom.edges.cli.transcripts import chatgpt, claude_code, codex
from loom.edges.cli.transcripts.pieces import Format

FORMATS: dict[str, Format] = {"claude-code": claude_code.FORMAT, "chatgpt": chatgpt.FORMAT, "codex": codex.FORMAT}

__all__ = ["FORMATS"]
