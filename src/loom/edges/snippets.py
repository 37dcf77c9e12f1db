"""The configuration that a coding agent needs, as text; what `loom connect` prints and the dashboard shows."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

VARIABLE = "${env:LOOM_TOKEN}"
"""How a client's file names the token, so that the file holds none."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a client is to be connected.

    Attributes:
        url: the server's MCP endpoint.
        token: whether it sends the token that LOOM_TOKEN holds.
        bridge: the command of `loom mcp`, to go through it; None for HTTP.
    """

    url: str
    token: bool = False
    bridge: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of configuration.

    Attributes:
        place: the file it belongs in; empty for a command.
        text: the file or the command.
    """

    place: str
    text: str


def claude(wanted: Wanted) -> Snippet:
    """A command for Claude Code."""
    if wanted.bridge is not None:
        token = ' -e LOOM_TOKEN="$LOOM_TOKEN"' if wanted.token else ""
        return Snippet("", f"claude mcp add --scope user loom{token} -- {shlex.join(wanted.bridge)}")
    header = ' --header "Authorization: Bearer $LOOM_TOKEN"' if wanted.token else ""
    return Snippet("", f"claude mcp add --transport http --scope user loom {wanted.url}{header}")


def codex(wanted: Wanted) -> Snippet:
    """A command for Codex."""
    if wanted.bridge is not None:
        token = ' --env LOOM_TOKEN="$LOOM_TOKEN"' if wanted.token else ""
        return Snippet("", f"codex mcp add loom{token} -- {shlex.join(wanted.bridge)}")
    token = " --bearer-token-env-var LOOM_TOKEN" if wanted.token else ""
    return Snippet("", f"codex mcp add loom --url {wanted.url}{token}")


def cursor(wanted: Wanted) -> Snippet:
    """A file for Cursor."""
    return Snippet("~/.cursor/mcp.json", _json({"mcpServers": {"loom": _entry(wanted)}}))


def vscode(wanted: Wanted) -> Snippet:
    """A file for VS Code, which wants the kind of the connection named."""
    kind = {"type": "http" if wanted.bridge is None else "stdio"}
    return Snippet(".vscode/mcp.json", _json({"servers": {"loom": kind | _entry(wanted)}}))


SNIPPETS: Mapping[str, Callable[[Wanted], Snippet]] = {
    "claude": claude,
    "codex": codex,
    "cursor": cursor,
    "vscode": vscode,
}
"""By the client's name."""


def _entry(wanted: Wanted) -> dict[str, object]:
    if wanted.bridge is not None:
        command, *rest = wanted.bridge
        entry: dict[str, object] = {"command": command, "args": rest}
        return entry | ({"env": {"LOOM_TOKEN": VARIABLE}} if wanted.token else {})
    entry = {"url": wanted.url}
    return entry | ({"headers": {"Authorization": f"Bearer {VARIABLE}"}} if wanted.token else {})


def _json(value: object) -> str:
    return json.dumps(value, indent=2)
