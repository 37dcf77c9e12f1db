"""What a text is made of: headings, paragraphs, lists, tables, code. Pure.

Markdown is read by markdown-it-py; the text inside blocks is not looked at. A plain text has paragraphs,
and headings where its file's table of contents says so.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from loom.planes.knowledge.text import Line

TITLE_CHARACTERS_MAX: Final = 200
FRONT_MATTER_LINES_MAX: Final = 100
_FENCE: Final = "---"
_MARKS: Final = re.compile(r"[*_`]{1,3}|\[|\]\([^)\n]{0,2000}\)|<[^>\n]{0,200}>|\s#+\s*\Z")
_SPACE: Final = re.compile(r"\s+")

_markdown: Final = MarkdownIt("commonmark").enable("table").disable(["inline", "reference"])


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a text that belongs together.

    Attributes:
        lines: all of it.
        level: of a heading, from 1; 0 for anything else.
        title: of a heading.
        units: what stays whole when the block does not fit: list items, rows; else its lines.
        lead: lines that every piece of it begins with: a table's head.
    """

    lines: Sequence[Line]
    level: int = 0
    title: str = ""
    units: Sequence[Sequence[Line]] = ()
    lead: Sequence[Line] = ()


def markdown(lines: Sequence[Line]) -> list[Block]:
    """The blocks of a Markdown text in order, and what stands between them, if anything does."""
    start = _front_matter(lines) if lines and lines[0].number == 1 and not lines[0].character else 0
    found = [Block(lines[:start], units=[lines[:start]])] if start else []
    body = lines[start:]
    tokens = _markdown.parse("\n".join(line.text for line in body))
    done = 0
    for place, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        first, last = token.map
        found += _paragraphs(body[done:first])
        found.append(_block(tokens, place, _trimmed(body[first:last])))
        done = max(done, last)
    return [block for block in [*found, *_paragraphs(body[done:])] if block.lines]


def plain(lines: Sequence[Line], headings: Mapping[int, tuple[int, str]]) -> list[Block]:
    """Paragraphs of a plain text; `headings` has level and title by line."""
    found: list[Block] = []
    run: list[Line] = []
    for line in lines:
        known = headings.get(line.number) if not line.character else None
        if known is not None:
            found += _paragraphs(run)
            run = []
            found.append(Block([line], *known))
        else:
            run.append(line)
    return [*found, *_paragraphs(run)]


def shown_title(text: str) -> str:
    """A heading without the marks of Markdown, on one line."""
    return _SPACE.sub(" ", _MARKS.sub("", text)).strip()[:TITLE_CHARACTERS_MAX]


def _block(tokens: Sequence[Token], place: int, lines: Sequence[Line]) -> Block:
    token = tokens[place]
    if token.type == "heading_open":
        return Block(lines, int(token.tag[1:]), shown_title(tokens[place + 1].content) or "-")
    if token.type in ("bullet_list_open", "ordered_list_open"):
        return Block(lines, units=_units(tokens, place, lines, "list_item_open"))
    if token.type == "table_open":
        return Block(lines, units=[[row] for row in lines[2:]], lead=lines[:2])
    return Block(lines, units=[[line] for line in lines])


def _units(tokens: Sequence[Token], place: int, lines: Sequence[Line], kind: str) -> list[Sequence[Line]]:
    """The lines of each part of a block that begins with a token of `kind` one level inside."""
    first = (tokens[place].map or [0, 0])[0]
    starts = [0]
    for token in tokens[place + 1 :]:
        if token.level == tokens[place].level and token.nesting < 0:
            break
        if token.type == kind and token.level == tokens[place].level + 1 and token.map is not None:
            starts.append(token.map[0] - first)
    starts = sorted({start for start in starts if start < len(lines)})
    ends = [*starts[1:], len(lines)]
    return [_trimmed(lines[one:other]) for one, other in zip(starts, ends, strict=True)]


def _paragraphs(lines: Sequence[Line]) -> Iterator[Block]:
    """The runs of lines that are not blank."""
    run: list[Line] = []
    for line in lines:
        if line.text.strip():
            run.append(line)
        elif run:
            yield Block(run, units=[[one] for one in run])
            run = []
    if run:
        yield Block(run, units=[[one] for one in run])


def _trimmed(lines: Sequence[Line]) -> Sequence[Line]:
    end = len(lines)
    while end and not lines[end - 1].text.strip():
        end -= 1
    return lines[:end]


def _front_matter(lines: Sequence[Line]) -> int:
    """How many lines the settings take that some tools put before a text."""
    if lines[0].text.rstrip() != _FENCE:
        return 0
    for place, line in enumerate(lines[1:FRONT_MATTER_LINES_MAX], start=1):
        if line.text.rstrip() == _FENCE:
            return place + 1
    return 0
