"""A text as it is kept: in parts of bounded size that know their lines and page. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from loom.extraction.reading import Segment

PART_CHARACTERS_MAX: Final = 32_768


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a text.

    Attributes:
        number: its place, from 0.
        page: the page it is on, from 1; 0 for a text without pages. No part is on two pages.
        line: the number of its first line, from 1.
        character: where in that line it begins; above 0 when the line is longer than a part.
        text: its characters, line feeds included.
    """

    number: int
    page: int
    line: int
    character: int
    text: str

    @property
    def last_line(self) -> int:
        """The line its last character is in."""
        return self.line + self.text.count("\n", 0, max(0, len(self.text) - 1))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a part, or as much of it as the part holds.

    Attributes:
        number: from 1.
        character: where in the line it begins.
        page: 0 for none.
        text: without its line feed.
    """

    number: int
    character: int
    page: int
    text: str


def parts(segments: Iterable[Segment]) -> Iterator[Part]:
    """The text cut into parts, at line ends where there are any. Every page but a text's last ends its line."""
    number, line, character, page = 0, 1, 0, 0
    waiting = ""

    def cut(size: int) -> Part:
        nonlocal number, line, character, waiting
        made = Part(number, page, line, character, waiting[:size])
        waiting = waiting[size:]
        feeds = made.text.count("\n")
        number, line = number + 1, line + feeds
        character = len(made.text) - made.text.rfind("\n") - 1 if feeds else character + size
        return made

    for segment in segments:
        if waiting and segment.page != page:
            yield cut(len(waiting))
        page = segment.page
        waiting += segment.text
        while len(waiting) > PART_CHARACTERS_MAX:
            yield cut(waiting.rfind("\n", 0, PART_CHARACTERS_MAX) + 1 or PART_CHARACTERS_MAX)
    if waiting:
        yield cut(len(waiting))


def lines(found: Iterable[Part], line: int = 1, character: int = 0) -> Iterator[Line]:
    """The lines of the parts from a place on."""
    for part in found:
        number, start = part.line, part.character
        for text in part.text.removesuffix("\n").split("\n"):
            if (number, start + len(text)) >= (line, character):
                skipped = max(0, character - start) if number == line else 0
                yield Line(number, start + skipped, part.page, text[skipped:])
            number, start = number + 1, 0


def joined(found: Sequence[Line]) -> str:
    """Lines as one text; an empty line between those that do not follow each other."""
    written: list[str] = []
    for place, line in enumerate(found):
        step = line.number - found[place - 1].number if place else 0
        written.append("\n" * min(step, 2) + line.text)
    return "".join(written)
