"""Cuts a long text into passages that an embedding model reads whole."""

import re
from collections.abc import Sequence
from typing import Final

from loom.retrieval.scripts import SPACELESS

WORDS_MAX: Final = 350
"""Words of a passage; about 500 tokens of an English model. A character of a spaceless script is a word here."""
CHARACTERS_MAX: Final = 1_800
OVERLAP_CHARACTERS: Final = 160
PASSAGES_MAX: Final = 16
TEXT_CHARACTERS_MAX: Final = 200_000

_UNIT: Final = re.compile(rf"[{SPACELESS}]|[^\s{SPACELESS}]+")
_BREAKS: Final = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?\u2026]['\")\]]*\s|[\u3002\uff01\uff1f]"),
    re.compile(r"\s"),
)
"""Where to cut, best first: between paragraphs, lines, sentences, words."""


def split_passages(text: str, *, words_max: int = WORDS_MAX, characters_max: int = CHARACTERS_MAX) -> list[str]:
    """The passages of `text` in order; none for a blank text, one for a short text.

    Passages overlap by a sentence or so. Of a text that needs more than
    16 passages, 16 evenly spaced ones are kept, the first and the last among them.
    The first 200,000 characters count.
    """
    text = text[:TEXT_CHARACTERS_MAX].strip()
    if not text:
        return []
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        limit = _limit(text, start, words_max, characters_max)
        end = limit if limit == len(text) else _cut_before(text, start + (limit - start) // 2, limit)
        spans.append((start, end))
        if end == len(text):
            break
        start = _restart(text, start, end)
    pieces = [piece for first, last in _spaced(spans) if (piece := text[first:last].strip())]
    return pieces or [text[:characters_max]]


def _limit(text: str, start: int, words_max: int, characters_max: int) -> int:
    """The furthest end of a passage that begins at `start`."""
    end = min(len(text), start + characters_max)
    for count, unit in enumerate(_UNIT.finditer(text, start, end), start=1):
        if count > words_max:
            return unit.start()
    return end


def _cut_before(text: str, low: int, high: int) -> int:
    """The last place in `low..high` to cut at, of the best kind there is; `high` when there is none."""
    for pattern in _BREAKS:
        ends = [match.end() for match in pattern.finditer(text, low, high)]
        if ends:
            return ends[-1]
    return high


def _restart(text: str, start: int, end: int) -> int:
    """Where the next passage begins: at a break shortly before `end`, and always after `start`."""
    low = max(start + 1, end - min(OVERLAP_CHARACTERS, (end - start) // 4))
    for pattern in _BREAKS[1:]:
        match = pattern.search(text, low, end)
        if match and match.end() < end:
            return match.end()
    return end


def _spaced(spans: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    if len(spans) <= PASSAGES_MAX:
        return spans
    step = (len(spans) - 1) / (PASSAGES_MAX - 1)
    return [spans[round(number * step)] for number in range(PASSAGES_MAX)]
