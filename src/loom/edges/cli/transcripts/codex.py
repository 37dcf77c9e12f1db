"""Codex's sessions: `rollout-*.jsonl`, an item a line.

A line has timestamp, type and payload. Payloads of type response_item are what was said
and called; event_msg repeats it for the screen and is passed, as turn_context is. In files
of older versions the item is the line itself, and the first line the session.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loom.edges.cli.transcripts import cleaning, files
from loom.edges.cli.transcripts.pieces import Advance, Broken, Format, Piece, Place, Said

CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "web_search_call": "action",
    "tool_search_call": "arguments",
}
"""Items that call a tool, and the field with what it is given."""

RESULTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output")
PUT_IN = ("<environment_context>", "<user_instructions>", "<permissions", "# AGENTS.md instructions", "<turn_aborted>")
"""How a user's message begins that the program wrote."""

SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def read(path: Path, advance: Advance) -> Iterator[Piece]:
    """The messages of a session, in order."""
    named = SESSION.search(path.stem)
    session, time, known = named[0] if named else path.stem, "", False
    for number, line in files.objects(path, advance):
        place = Place(path.name, number)
        if isinstance(line, Broken):
            yield line
            continue
        time = cleaning.moment(line.get("timestamp")) or time
        kind = line.get("type")
        item = cleaning.mapping(line.get("payload")) if "payload" in line else line
        if kind == "session_meta" or (kind is None and "id" in line):
            # A forked session repeats the first one's line behind its own.
            session, known = (session if known else cleaning.name(item.get("id")) or session), True
        elif kind == "compacted":
            yield from said(place, session, time, {"role": "system", "content": cleaning.text(item.get("message"))})
        elif kind == "response_item" or (kind is not None and "payload" not in line):
            yield from said(place, session, time, message_of(item))


def said(place: Place, session: str, time: str, message: dict[str, Any] | None) -> Iterator[Said]:
    """The message, unless it says nothing."""
    if message is not None and message["content"]:
        numbered = {"id": f"line-{place.number}", "time": time or None, **message}
        yield Said(place, session, "", numbered)


def message_of(item: dict[str, Any]) -> dict[str, Any] | None:
    """An item as a message; None for one of no interest."""
    kind = str(item.get("type"))
    if kind == "message":
        return spoken(item)
    if kind == "reasoning":
        parts = [*cleaning.items(item.get("summary")), *cleaning.items(item.get("content"))]
        thought = "\n".join(filter(None, (cleaning.text(cleaning.mapping(part).get("text")) for part in parts)))
        return {"role": "assistant", "content": [{"type": "thinking", "thinking": thought}]} if thought else None
    if kind in CALLS:
        call = {
            "type": "tool_use",
            "id": cleaning.text(item.get("call_id")),
            "name": cleaning.text(item.get("name")) or kind.removesuffix("_call"),
            "input": given(item.get(CALLS[kind])),
        }
        return {"role": "assistant", "content": [call]}
    if kind in RESULTS:
        call_id = cleaning.text(item.get("call_id"))
        output = given(item.get("output"))
        return {"role": "tool", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": output}]}
    return None


def spoken(item: dict[str, Any]) -> dict[str, Any]:
    """A message item."""
    parts = cleaning.items(item.get("content"))
    blocks = [cleaning.cleaned(block) for part in parts if (block := cleaning.mapping(part))]
    content = blocks or cleaning.text(item.get("content"))
    role = cleaning.name(item.get("role")) or "user"
    first = content if isinstance(content, str) else cleaning.text(blocks[0].get("text"))
    if role == "user" and first.lstrip().startswith(PUT_IN):
        role = "system"
    return {"role": role, "content": content}


def given(value: object) -> Any:
    """Arguments or output of a tool: the JSON that a text holds, else as it is."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return cleaning.cleaned(json.loads(value, parse_constant=lambda _: None))
        except (ValueError, RecursionError):
            pass
    return cleaning.cleaned(value)


FORMAT = Format("codex", lambda path: files.found(path, "rollout-*.jsonl"), files.size_of, read)
