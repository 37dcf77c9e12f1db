"""A ChatGPT export: `conversations.json`, alone, in a folder, or in the zip it came in.

The file is a list of conversations. Each has its messages as a tree (`mapping`), since an
answer can be asked for again; what is read is the branch that ends at `current_node`, which is
the one that the person sees.
"""

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from loom.edges.cli.problem import Problem
from loom.edges.cli.transcripts import cleaning, files
from loom.edges.cli.transcripts.pieces import Advance, Broken, Format, Piece, Place, Said

PATTERN = "conversations*.json"
PART_CHARACTERS = 1024 * 1024
CONVERSATION_CHARACTERS_MAX = 256 * 1024 * 1024
NODES_MAX = 200_000
RESULTS = ("execution_output", "tether_browsing_display", "tether_quote", "system_error", "computer_output")
INSTRUCTIONS = ("user_editable_context", "model_editable_context")


def read(path: Path, advance: Advance) -> Iterator[Piece]:
    """The messages of every conversation of an export."""
    if zipfile.is_zipfile(path):
        yield from _zipped(path, advance)
        return
    with path.open("rb") as file:
        yield from _listed(file, path.name, advance)


def _zipped(path: Path, advance: Advance) -> Iterator[Piece]:
    try:
        with zipfile.ZipFile(path) as archive:
            for member in _members(archive):
                with archive.open(member) as file:
                    yield from _listed(file, member.filename, advance)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
        raise Problem(f"cannot read {path}: the zip file is damaged or encrypted") from error


def _members(archive: zipfile.ZipFile) -> Sequence[zipfile.ZipInfo]:
    found = [one for one in archive.infolist() if Path(one.filename).match(PATTERN)]
    if not found:
        raise Problem(f"there is no {PATTERN} in the zip file; is it an export of ChatGPT?")
    return sorted(found, key=lambda one: one.filename)


def size_of(path: Path) -> int:
    """Bytes that reading the export will tell of; of a zip, its unpacked files'."""
    if not zipfile.is_zipfile(path):
        return files.size_of(path)
    with zipfile.ZipFile(path) as archive:
        return sum(one.file_size for one in _members(archive))


def _listed(file: IO[bytes], name: str, advance: Advance) -> Iterator[Piece]:
    number = 0
    with io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace") as text:
        for found in _each(text, advance):
            number += 1
            place = Place(name, number)
            if isinstance(found, str):
                yield Broken(place, found)
            else:
                yield from conversation(found, place)


def _each(text: io.TextIOWrapper, advance: Advance) -> Iterator[dict[str, Any] | str]:
    """Each conversation of the list, read as far as it is needed; a text says why one could not be read."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    buffer = _more(text, PART_CHARACTERS, advance).lstrip()
    if not buffer.startswith(("[", "{")):
        yield "is not a list of conversations"
        return
    buffer = buffer.removeprefix("[")
    while True:
        buffer = buffer.lstrip(" \t\r\n,")
        try:
            value, end = decoder.raw_decode(buffer)
        except (ValueError, RecursionError):
            part = "" if buffer.startswith("]") else _more(text, max(PART_CHARACTERS, len(buffer)), advance)
            if part and len(buffer) < CONVERSATION_CHARACTERS_MAX:
                buffer += part
                continue
            if buffer and not buffer.startswith("]"):
                yield "is not JSON, or cut off; what follows it was not read"
            return
        yield value if isinstance(value, dict) else "is not a conversation"
        buffer = buffer[end:]


def _more(text: io.TextIOWrapper, most: int, advance: Advance) -> str:
    part = text.read(most)
    advance(len(part))
    return part


def conversation(found: dict[str, Any], place: Place) -> Iterator[Piece]:
    """The messages of one conversation, as its reader sees them."""
    session = cleaning.name(found.get("conversation_id")) or cleaning.name(found.get("id"))
    mapping = cleaning.mapping(found.get("mapping"))
    if not session or not mapping:
        yield Broken(place, "has no id or no messages")
        return
    title = cleaning.text(found.get("title")).strip()
    time = cleaning.moment(found.get("create_time"))
    for key in branch(mapping, cleaning.text(found.get("current_node"))):
        message = cleaning.mapping(cleaning.mapping(mapping[key]).get("message"))
        time = cleaning.moment(message.get("create_time")) or time
        role, content = role_of(message), content_of(message)
        if content:
            own = cleaning.name(message.get("id")) or cleaning.name(key)
            yield Said(place, session, title, {"id": own, "role": role, "content": content, "time": time or None})


def branch(mapping: dict[str, Any], current: str) -> list[str]:
    """The nodes from the root to the current one; to the latest message where none is current."""
    if current not in mapping:
        current = max(mapping, key=lambda key: (_time(mapping[key]), key))
    path: list[str] = []
    seen: set[str] = set()
    while current in mapping and current not in seen and len(path) < NODES_MAX:
        seen.add(current)
        path.append(current)
        current = cleaning.text(cleaning.mapping(mapping[current]).get("parent"))
    return path[::-1]


def _time(node: object) -> str:
    return cleaning.moment(cleaning.mapping(cleaning.mapping(node).get("message")).get("create_time"))


def role_of(message: dict[str, Any]) -> str:
    """Who speaks; what is hidden from the person is the system's."""
    metadata = cleaning.mapping(message.get("metadata"))
    kind = cleaning.mapping(message.get("content")).get("content_type")
    if metadata.get("is_visually_hidden_from_conversation") or kind in INSTRUCTIONS:
        return "system"
    return cleaning.name(cleaning.mapping(message.get("author")).get("role")) or "user"


def content_of(message: dict[str, Any]) -> Any:
    """A message's content as text or blocks; empty when it says nothing."""
    content = cleaning.mapping(message.get("content"))
    kind = cleaning.text(content.get("content_type")) or "text"
    recipient = cleaning.text(message.get("recipient")) or "all"
    if kind in ("text", "multimodal_text"):
        blocks = [block for part in cleaning.items(content.get("parts")) if (block := part_of(part))]
        called = recipient != "all" and cleaning.mapping(message.get("author")).get("role") == "assistant"
        return (
            [{"type": "tool_use", "name": recipient, "input": _texts(blocks)}] if called and blocks else _plain(blocks)
        )
    if kind == "code":
        code = cleaning.text(content.get("text"))
        name = recipient if recipient != "all" else cleaning.text(content.get("language")) or "code"
        return [{"type": "tool_use", "name": name, "input": {"code": code}}] if code else ""
    if kind == "thoughts":
        thoughts = [cleaning.mapping(one) for one in cleaning.items(content.get("thoughts"))]
        lines = [cleaning.text(one.get(field)) for one in thoughts for field in ("summary", "content")]
        return [{"type": "thinking", "thinking": "\n".join(filter(None, lines))}] if any(lines) else ""
    rest = cleaning.cleaned({name: part for name, part in content.items() if name != "content_type" and part})
    if not rest:
        return ""
    return [{"type": "tool_result", "content": [rest]}] if kind in RESULTS else [{"type": kind, **rest}]


def part_of(part: object) -> dict[str, Any] | None:
    """One part of a message as a block."""
    if isinstance(part, str):
        return {"type": "text", "text": cleaning.text(part)} if part.strip() else None
    fields = cleaning.mapping(part)
    kind = cleaning.text(fields.get("content_type"))
    if kind == "audio_transcription":
        return part_of(cleaning.text(fields.get("text")))
    if not fields:
        return None
    rest = {name: value for name, value in fields.items() if name != "content_type" and value is not None}
    return {"type": "image" if kind == "image_asset_pointer" else kind or "part", **cleaning.cleaned(rest)}


def _plain(blocks: list[dict[str, Any]]) -> Any:
    if all(block["type"] == "text" for block in blocks):
        return _texts(blocks)
    return blocks


def _texts(blocks: list[dict[str, Any]]) -> str:
    return "\n".join(str(block.get("text", "")) for block in blocks)


def _files(path: Path) -> Sequence[Path]:
    return files.found(path, PATTERN)


FORMAT = Format("chatgpt", _files, size_of, read)
