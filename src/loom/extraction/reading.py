"""Reads one file: what it says, or why it cannot be read."""

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from loom.extraction import formats, texts
from loom.extraction.formats import Format

FILE_BYTES_MAX: Final = 64 * 1024 * 1024
HTML_BYTES_MAX: Final = 8 * 1024 * 1024
"""HTML is read as a tree, which takes fifty times its size in memory."""

CHILD_MEMORY_BYTES: Final = 1024 * 1024 * 1024
CHILD_PROCESSOR_S: Final = 30
CHILD_TIMEOUT_S: Final = 45.0
CHILDREN_MAX: Final = 2
"""Files that are read at once; the others wait."""

TURN_TIMEOUT_S: Final = 30.0

_MODULES: Final[dict[Format, str]] = {
    formats.PDF: "loom.extraction.from_pdf",
    formats.HTML: "loom.extraction.from_html",
    formats.DOCX: "loom.extraction.from_docx",
}
_UNKNOWN: Final = "loom.extraction.from_unknown"

_turns: Final = threading.BoundedSemaphore(CHILDREN_MAX)


class Unreadable(Exception):
    """The file cannot be read. The message follows the file's name and says the way out."""


class TooBusy(Exception):
    """Too many files are being read; try again."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of text on one page; pages count from 1, and 0 is none."""

    page: int
    text: str


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a file says.

    Attributes:
        title: its own title; empty if it has none.
        markdown: whether the text is Markdown.
        segments: the text in order. A page's text ends with a line feed.
        page_count: 0 for a file without pages.
        outline: page, level from 1, and title of each entry of its table of contents.
    """

    title: str
    markdown: bool
    segments: Sequence[Segment]
    page_count: int = 0
    outline: Sequence[tuple[int, int, str]] = ()


def read(content: bytes, kind: Format) -> Extracted:
    """The text of a file.

    Raises:
        Unreadable: encrypted, damaged, empty, too large, too deep, too slow or no text.
        TooBusy: other files took all the time there was.
    """
    if len(content) > FILE_BYTES_MAX:
        raise Unreadable(f"is larger than {FILE_BYTES_MAX} bytes; split it")
    if not content.strip():
        raise Unreadable("is empty")
    if kind in _MODULES:
        if kind == formats.HTML and len(content) > HTML_BYTES_MAX:
            raise Unreadable(f"is larger than {HTML_BYTES_MAX} bytes, the most for HTML; split it")
        return _in_child(content, _MODULES[kind], markdown=kind != formats.PDF, paged=kind == formats.PDF)
    encoding, start = texts.encoding_of(content)
    markdown = kind == formats.MARKDOWN
    try:
        segments = [Segment(0, block) for block in texts.decoded(content, encoding, start)]
    except texts.NotText:
        return _in_child(content, _UNKNOWN, markdown=markdown, paged=False)
    if not any(segment.text.strip() for segment in segments):
        raise Unreadable("is empty")
    return Extracted("", markdown, segments)


def _in_child(content: bytes, module: str, *, markdown: bool, paged: bool) -> Extracted:
    """Have a process of its own read the file."""
    if not _turns.acquire(timeout=TURN_TIMEOUT_S):
        raise TooBusy
    try:
        answer = _answer(content, module)
    finally:
        _turns.release()
    if "problem" in answer:
        raise Unreadable(str(answer["problem"]))
    pages = cast("list[str]", answer["pages"])
    outline = [(int(page), int(level), str(title)) for page, level, title in cast("list[Any]", answer["outline"])]
    if not paged:
        return Extracted(str(answer["title"]), markdown, [Segment(0, text) for text in pages])
    segments = [Segment(number, text.rstrip("\n") + "\n") for number, text in enumerate(pages, start=1)]
    return Extracted(str(answer["title"]), markdown, segments, len(pages), outline)


def _answer(content: bytes, module: str) -> dict[str, object]:
    # -P: nothing in the working folder is taken for a module.
    command = [sys.executable, "-P", "-m", module, str(CHILD_MEMORY_BYTES), str(CHILD_PROCESSOR_S)]
    try:
        done = subprocess.run(  # noqa: S603  # our own program
            command,
            input=content,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=CHILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unreadable(f"was not read within {CHILD_TIMEOUT_S:.0f} s; split it") from None
    try:
        return cast("dict[str, object]", json.loads(done.stdout))
    except ValueError:
        # A signal ended it, for memory or processor time, or the reader met what it did not expect.
        raise Unreadable("is damaged, or takes more time or memory to read than one file may") from None
