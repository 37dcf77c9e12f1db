"""Cuts a text into passages that are found and cited. Pure.

A passage is as long as the embedding model reads. It holds whole blocks where they fit, and
begins anew with each heading; what does not fit is cut between list items, rows, lines or sentences, in this order.
A long text is cut a stretch at a time, each from the place where the one before it ended.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loom.planes.knowledge import blocks
from loom.planes.knowledge.blocks import Block
from loom.planes.knowledge.text import Line, Part, joined, lines
from loom.retrieval.scripts import SPACELESS

CHARACTERS_MAX: Final = 1_500
WORDS_MAX: Final = 290
"""Words of a passage, a character of a spaceless script counted as one; room is left for title and headings."""

PIECE_CHARACTERS: Final = 600
"""What a line that does not fit is cut into."""

STRETCH_PARTS: Final = 8
"""Parts that are cut at once."""

DEPTH_MAX: Final = 6
CONTEXT_CHARACTERS_MAX: Final = 400

_UNIT: Final = re.compile(rf"[{SPACELESS}]|[^\s{SPACELESS}]+")
_LINK: Final = re.compile(r"\]\([^)\n]{0,2000}\)")
_BREAKS: Final = (re.compile(r"[.!?\u2026]['\")\]]*\s|[\u3002\uff01\uff1f]"), re.compile(r"\s"))

Headings = Sequence[tuple[int, str]]
"""Level and title of each heading that a place stands under, the outermost first."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: where it stands, and what it says."""

    headings: tuple[str, ...]
    first_line: int
    last_line: int
    first_page: int
    last_page: int
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where the cutting of a text goes on: at a character of a line of a part, under these headings."""

    part: int = 0
    line: int = 1
    character: int = 0
    headings: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Manner:
    """How a text is read: as Markdown, or as a plain text with these headings by line."""

    markdown: bool
    headings: Mapping[int, tuple[int, str]] = field(default_factory=dict[int, tuple[int, str]])


def cut(found: Sequence[Part], place: Place, manner: Manner, *, last: bool) -> tuple[list[Chunk], Place]:
    """The passages of one stretch of a text, and where the next stretch begins.

    The passage that reaches the end of a stretch is left to the next one, where it is seen whole.

    Args:
        found: the parts from `place.part` on, at most `STRETCH_PARTS`; one at least.
        place: where to begin.
        manner: how to read.
        last: whether the text ends with these parts.
    """
    stretch = list(lines(found, place.line, place.character))
    known = blocks.markdown(stretch) if manner.markdown else blocks.plain(stretch, manner.headings)
    packer = Packer(place.headings)
    left = known.pop() if not last and len(known) > 1 else None
    for block in known:
        packer.add(block)
    began = packer.began
    if left is not None and began is not None and began[0] != stretch[0]:
        return _said(packer), _place(found, began[0], began[1])
    packer.close()
    if left is not None:
        return _said(packer), _place(found, left.lines[0], packer.headings)
    end = found[-1]
    return _said(packer), Place(end.number + 1, end.last_line, _end_of(end), tuple(packer.headings))


def _said(packer: "Packer") -> list[Chunk]:
    return [chunk for chunk in packer.made if chunk.text.strip()]


def _place(found: Sequence[Part], line: Line, headings: Headings) -> Place:
    """The place of a line among the parts."""
    part = max(part.number for part in found if (part.line, part.character) <= (line.number, line.character))
    return Place(part, line.number, line.character, tuple(headings))


def whole(found: Sequence[Part], manner: Manner, most: int) -> list[Chunk] | None:
    """Every passage of a text; None when there are more than `most`."""
    made: list[Chunk] = []
    place = Place()
    while place.part < len(found):
        stretch = found[place.part : place.part + STRETCH_PARTS]
        some, place = cut(stretch, place, manner, last=place.part + STRETCH_PARTS >= len(found))
        made += some
        if len(made) > most:
            return None
    return made


def searchable(title: str, headings: Sequence[str], text: str) -> str:
    """The text under which a passage is found: its document's title, its headings, and what it says."""
    names = [name for name in dict.fromkeys([title, *headings]) if name]
    context = " > ".join(names)[:CONTEXT_CHARACTERS_MAX]
    said = _LINK.sub("]", text) if "](" in text else text
    return f"{context}\n{said}" if context else said


class Packer:
    """Puts blocks into passages.

    Attributes:
        headings: what the next block stands under.
        made: the passages that are complete.
        began: the first line of the passage under way, and what stood above it; None when it begins inside a block.
    """

    def __init__(self, headings: Headings) -> None:
        self.headings = list(headings)
        self.made: list[Chunk] = []
        self.began: tuple[Line, Headings] | None = None
        self._lines: list[Line] = []
        self._carried: Sequence[Line] = ()
        self._under = [title for _, title in self.headings]
        self._only_headings = True
        self._room = Room()

    def add(self, block: Block) -> None:
        """Take one block."""
        if block.level:
            self._head(block)
        elif Room().fits(block.lines):
            if not self._room.fits(block.lines):
                self.close()
            self._begin(block)
            self._take(block.lines)
        else:
            self._split(block)

    def close(self) -> None:
        """Complete the passage under way."""
        if self._lines:
            pages = [line.page for line in self._lines]
            numbers = [line.number for line in self._lines]
            place = (min(numbers), max(numbers), min(pages), max(pages))
            said = joined(self._lines)
            carried = joined(self._carried)
            self.made.append(Chunk(tuple(self._under), *place, f"{carried}\n{said}" if carried else said))
        self._lines, self._carried, self._room, self._only_headings = [], (), Room(), True
        self._under = [title for _, title in self.headings]
        self.began = None

    def _begin(self, block: Block) -> None:
        if not self._lines:
            self.began = (block.lines[0], tuple(self.headings))

    def _head(self, block: Block) -> None:
        if not self._only_headings:
            self.close()
        self._begin(block)
        above = [one for one in self.headings if one[0] < block.level]
        self.headings = [*above, (block.level, block.title)][-DEPTH_MAX:]
        self._under = [title for _, title in self.headings]
        if not self._room.fits(block.lines):
            self.close()
        self._take(block.lines)
        self._only_headings = True

    def _take(self, found: Sequence[Line]) -> None:
        self._lines += found
        self._room = self._room.less(found)
        self._only_headings = False

    def _split(self, block: Block) -> None:
        """Spread a block that fits into no passage over several."""
        if (block.lead or len(block.units) > 1) and not self._only_headings:
            self.close()
        if block.lead and self._room.fits(block.lead):
            self._take(block.lead)
        for unit in block.units or [[line] for line in block.lines]:
            if self._room.fits(unit):
                self._take(unit)
                continue
            if not self._only_headings:
                self.close()
                self._carry(block.lead)
            for line in unit:
                for piece in pieces(line):
                    if not self._room.fits([piece]):
                        self.close()
                        self._carry(block.lead)
                    self._take([piece])

    def _carry(self, lead: Sequence[Line]) -> None:
        """Begin the passage with lines from further up, which it says again but does not stand at."""
        if Room(CHARACTERS_MAX // 2, WORDS_MAX // 2).fits(lead):
            self._carried = lead
            self._room = self._room.less(lead)


@dataclass(frozen=True, slots=True)
class Room:
    """How much still fits into a passage."""

    characters: int = CHARACTERS_MAX
    words: int = WORDS_MAX

    def fits(self, found: Sequence[Line]) -> bool:
        """Whether the lines do."""
        if sum(len(line.text) + 1 for line in found) > self.characters + 1:
            return False
        return sum(map(_words, found)) <= self.words

    def less(self, found: Sequence[Line]) -> "Room":
        """What is left after them."""
        taken = sum(len(line.text) + 1 for line in found)
        return Room(self.characters - taken, self.words - sum(map(_words, found)))


def pieces(line: Line) -> Iterator[Line]:
    """A long line in pieces of about equal length, at the ends of sentences or words."""
    start = 0
    while start < len(line.text):
        end = start + PIECE_CHARACTERS
        if end < len(line.text):
            end = _break(line.text, start + PIECE_CHARACTERS // 2, end)
        text = line.text[start:end]
        while _count(text) > WORDS_MAX:
            text = text[: len(text) // 2]
        yield Line(line.number, line.character + start, line.page, text)
        start += len(text)


def _break(text: str, low: int, high: int) -> int:
    for pattern in _BREAKS:
        ends = [match.end() for match in pattern.finditer(text, low, high)]
        if ends:
            return ends[-1]
    return high


def _count(text: str) -> int:
    return len(text.split()) if text.isascii() else sum(1 for _ in _UNIT.finditer(text))


def _words(line: Line) -> int:
    return _count(line.text) if len(line.text) <= CHARACTERS_MAX else WORDS_MAX + 1


def _end_of(part: Part) -> int:
    """The character of its last line that comes after the part."""
    feeds = part.text.removesuffix("\n")
    cut_at = feeds.rfind("\n")
    return len(feeds) - cut_at - 1 if cut_at >= 0 else part.character + len(feeds)
