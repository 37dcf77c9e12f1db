"""What a document is and may become. Pure: no database, no clock."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from loom.errors import Denied
from loom.extraction.reading import Extracted
from loom.ledger.rules import Reader, visible
from loom.planes.knowledge import blocks
from loom.planes.knowledge.chunks import Manner, Place
from loom.planes.knowledge.text import Part, lines

State = Literal["pending", "ready", "failed"]
PENDING: Final = "pending"
READY: Final = "ready"
FAILED: Final = "failed"

URI_LENGTH_MAX: Final = 2048
TITLE_LENGTH_MAX: Final = 300
NAME_LENGTH_MAX: Final = 255
CONTENT_URI: Final = "sha256:"
"""What the uri of a document begins with that was added without one: content that comes again is the same document."""

TITLE_LINES_MAX: Final = 200
"""Lines in which a text's own title is looked for."""

SHOWN_NAME_LENGTH_MAX: Final = 120


@dataclass(frozen=True, slots=True)
class Document:
    """A uri of a user, and its latest revision. `space` is of its vectors; empty until all are there."""

    document_id: int
    namespace: str
    agent: str
    user_id: str
    session_id: str
    uri: str
    revision: int
    version: int
    title: str
    tags: tuple[str, ...]
    state: State
    reason: str
    cut_until: Place | None
    chunk_count: int
    space: str

    @property
    def shown_id(self) -> str:
        """The document's id as callers see it."""
        return shown_id(self.document_id)


@dataclass(frozen=True, slots=True)
class Revision:
    """One state of a document's content."""

    document_id: int
    revision: int
    agent: str
    session_id: str
    run_id: str
    title: str
    format: str
    file_name: str
    content_sha256: str
    byte_count: int
    character_count: int
    line_count: int
    page_count: int
    markdown: bool
    outline: Mapping[int, tuple[int, str]] = field(default_factory=dict[int, tuple[int, str]])
    created_at: int = 0

    @property
    def manner(self) -> Manner:
        """How its text is cut."""
        return Manner(self.markdown, self.outline)


def shown_id(document_id: int) -> str:
    """A document's id as callers see it: `doc_` and 16 hex digits."""
    return f"doc_{document_id:016x}"


def number_of(document_id: str) -> int | None:
    """The number behind a document's id, or None when it is not one."""
    digits = document_id.removeprefix("doc_")
    if digits == document_id or len(digits) != 16 or not set(digits) <= set("0123456789abcdef"):  # noqa: PLR2004  # 16 hex digits
        return None
    number = int(digits, 16)
    return number if number < 1 << 63 else None


def sha256(content: bytes) -> str:
    """The lower-case hex SHA-256."""
    return hashlib.sha256(content).hexdigest()


def title_of(extracted: Extracted, parts: Sequence[Part], name: str, uri: str) -> str:
    """What a document is called that was given no title: by itself, else by its file or uri."""
    if extracted.title:
        return extracted.title[:TITLE_LENGTH_MAX]
    if extracted.markdown and parts:
        beginning = [line for line in lines(parts[:1]) if line.number <= TITLE_LINES_MAX]
        top = next((block.title for block in blocks.markdown(beginning) if block.level == 1), "")
        if top:
            return top[:TITLE_LENGTH_MAX]
    named = name or ("" if uri.startswith(CONTENT_URI) else uri.rstrip("/").rpartition("/")[2])
    return named[:TITLE_LENGTH_MAX]


def outline_by_line(extracted: Extracted, parts: Sequence[Part]) -> Mapping[int, tuple[int, str]]:
    """The headings of a table of contents, each at the line that says it, or at the first line of its page."""
    wanted: dict[int, list[tuple[int, str]]] = {}
    for page, level, title in extracted.outline:
        wanted.setdefault(page, []).append((level, title))
    found: dict[int, tuple[int, str]] = {}
    for page, entries in wanted.items():
        on_page = [line for part in parts if part.page == page for line in lines([part])]
        for level, title in entries:
            same = (line.number for line in on_page if _folded(line.text) == _folded(title))
            place = next(same, on_page[0].number if on_page else None)
            if place is not None:
                found.setdefault(place, (level, title))
    return found


def outline_text(outline: Mapping[int, tuple[int, str]]) -> str:
    """An outline as it is stored."""
    return json.dumps([[line, level, title] for line, (level, title) in sorted(outline.items())])


def outline_in(stored: str) -> Mapping[int, tuple[int, str]]:
    """The outline that `outline_text` stored."""
    return {line: (level, title) for line, level, title in cast("list[tuple[int, int, str]]", json.loads(stored))}


def place_text(place: Place | None) -> str:
    """How far a text is cut, as it is stored; empty when it is cut to the end."""
    if place is None:
        return ""
    return json.dumps([place.part, place.line, place.character, place.headings])


def place_in(stored: str) -> Place | None:
    """The place that `place_text` stored."""
    if not stored:
        return None
    part, line, character, headings = cast("tuple[int, int, int, list[tuple[int, str]]]", json.loads(stored))
    return Place(part, line, character, tuple((level, title) for level, title in headings))


def check_reach(document: Document | None, reader: Reader) -> None:
    """Denied when the document belongs to another user's or session's part of the namespace."""
    if document is None or visible(document.user_id, document.session_id, reader):
        return
    raise Denied("the document belongs to another user or session than this token reaches")


def shown_name(*names: str) -> str:
    """What an error calls a file: the first name there is, short and printable."""
    name = next((one for one in names if one), "the content")
    return "".join(_printable(name[:SHOWN_NAME_LENGTH_MAX]))


def _printable(name: str) -> Iterator[str]:
    return (character if character.isprintable() else "?" for character in name)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
