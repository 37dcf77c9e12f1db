"""Claude Code's transcripts: a file a session, an event a line, in folders by project.

Lines of type user, assistant and system hold messages (`message` with a role and
content, or `content`), with `uuid`, `sessionId`, `timestamp` and, for subagents,
`isSidechain` and `agentId`. Lines of type summary, custom-title and ai-title name a
session. Any other line is bookkeeping, and passed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loom.edges.cli.transcripts import cleaning, files
from loom.edges.cli.transcripts.pieces import Advance, Broken, Format, Piece, Place, Said

TYPES = ("user", "assistant", "system")
TITLES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}
"""Lines that name a session, and the field with its name."""

PUT_IN = ("<command-", "<local-command-", "<bash-", "<system-reminder>", "Caveat: The messages below")
"""How a user's message begins that the program wrote."""


def read(path: Path, advance: Advance) -> Iterator[Piece]:
    """The messages of a transcript, in the order of its lines."""
    titles = titles_of(path)
    time = ""
    for number, line in files.objects(path, advance):
        place = Place(path.name, number)
        if isinstance(line, Broken):
            yield line
        elif line.get("type") in TYPES:
            time = cleaning.moment(line.get("timestamp")) or time
            content = content_of(line)
            if not content:
                if content is None and line["type"] != "system":
                    yield Broken(place, "has no message")
                continue
            own = cleaning.name(line.get("uuid"))
            session = cleaning.name(line.get("sessionId")) or path.stem
            title = titles.get(own, "") or titles.get(session, "")
            if line.get("isSidechain"):
                session = f"{session}/{cleaning.name(line.get('agentId')) or 'sidechain'}"[: cleaning.NAME_LENGTH_MAX]
                title = ""
            message = {"id": own or f"line-{number}", "role": role_of(line, content), "content": content}
            yield Said(place, session, title, {**message, "time": time or None})


def content_of(line: dict[str, Any]) -> Any:
    """A line's message, empty when it says nothing; None when there is none."""
    found = cleaning.mapping(line.get("message")).get("content", line.get("content"))
    if isinstance(found, str):
        return cleaning.cleaned(found) if found.strip() else ""
    parts = cleaning.items(found)
    return (
        [cleaning.cleaned(block) for part in parts if (block := cleaning.mapping(part))]
        if parts or found == []
        else None
    )


def role_of(line: dict[str, Any], content: Any) -> str:
    """Who speaks: what the program itself puts in is the system's, and a tool's result the tool's."""
    if line["type"] == "system" or line.get("isMeta") or line.get("isCompactSummary") or line.get("isApiErrorMessage"):
        return "system"
    if line["type"] == "assistant":
        return "assistant"
    if isinstance(content, str):
        return "system" if content.lstrip().startswith(PUT_IN) else "user"
    kinds = {block.get("type") for block in content}
    return "tool" if kinds == {"tool_result"} else "user"


def titles_of(path: Path) -> dict[str, str]:
    """Titles by the session's id, or by the id of a message of the session."""
    titles: dict[str, str] = {}
    for _, line in files.objects(path, lambda _: None, lambda line: b"-title" in line or b'"summary"' in line):
        kind = "" if isinstance(line, Broken) else line.get("type")
        if isinstance(line, dict) and kind in TITLES:
            key = line.get("leafUuid") if kind == "summary" else line.get("sessionId")
            titles[cleaning.name(key)] = cleaning.text(line.get(TITLES[str(kind)])).strip()
    titles.pop("", None)
    return titles


FORMAT = Format("claude-code", lambda path: files.found(path, "*.jsonl"), files.size_of, read, copies=True)
