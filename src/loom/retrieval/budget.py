"""How much of each hit an answer carries, and the hits as one prompt fragment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from loom.xml_text import attribute, content

Bodies = Literal["full", "excerpt", "none", "unit"]

EXCERPT_CHARACTERS: Final = 200
CHARACTERS_A_TOKEN: Final = 4
UNIT_TOKENS_MAX: Final = 2_000
READER_BLOCK_CHARACTERS_MAX: Final = 24_000
WHOLE_TYPES: Final = frozenset({"decision", "constraint"})
"""Memory types whose wording binds, so that an excerpt of them is the whole."""

_OPEN: Final = "<memories>\n"
_CLOSE: Final = "</memories>"
_CUT: Final = "\u2026"


def excerpt(text: str, characters_max: int = EXCERPT_CHARACTERS) -> str:
    """The first characters of `text`, exactly as they are stored, so that a caller can find them in it."""
    return text[:characters_max]


def tokens_of(text: str) -> int:
    """About how many tokens of a language model `text` takes: a quarter of its characters, rounded up."""
    return -(-len(text) // CHARACTERS_A_TOKEN)


def bodied(
    texts: Sequence[str], memory_types: Sequence[str], bodies: Bodies, tokens_max: int = UNIT_TOKENS_MAX
) -> list[str | None]:
    """What each hit carries of its text; None for nothing.

    Args:
        texts: the hits' values as text, best first.
        memory_types: the hits' types, in the same order.
        bodies: `full` all of it; `excerpt` its beginning, a decision or constraint whole; `none` nothing;
            `unit` whole values, best first, each that still fits into `tokens_max`.
        tokens_max: the budget of `unit`.
    """
    if bodies == "full":
        return list(texts)
    if bodies == "none":
        return [None] * len(texts)
    if bodies == "unit":
        fitting = fitted(texts, tokens_max)
        return [text if place in fitting else None for place, text in enumerate(texts)]
    return [text if kind in WHOLE_TYPES else excerpt(text) for text, kind in zip(texts, memory_types, strict=True)]


def fitted(texts: Sequence[str], tokens_max: int) -> frozenset[int]:
    """The places of the texts that fit whole into `tokens_max`, taken greedily in order."""
    places: set[int] = set()
    for place, text in enumerate(texts):
        cost = tokens_of(text)
        if cost <= tokens_max:
            tokens_max -= cost
            places.add(place)
    return frozenset(places)


@dataclass(frozen=True, slots=True)
class Read:
    """One hit as a prompt shows it.

    Attributes:
        key: the memory's key.
        agent: who wrote it; `-` is left out.
        time: ISO-8601, when it is valid or was written; empty is left out.
        text: the value as text.
    """

    key: str
    agent: str
    time: str
    text: str


def reader_block(hits: Sequence[Read], characters_max: int = READER_BLOCK_CHARACTERS_MAX) -> str:
    """The hits in the given order as one XML element; empty when there are none.

    Text and attributes are escaped, and characters that XML does not allow are replaced, so no
    stored text can open or close an element. Whole hits are taken while they fit into
    `characters_max` (escapes included); the first that does not is cut, and the rest left out.
    """
    if not hits:
        return ""
    room = characters_max - len(_OPEN) - len(_CLOSE)
    parts: list[str] = []
    for hit in hits:
        element = _element(hit, hit.text)
        if len(element) > room:
            element = _cut_element(hit, room)
            parts.extend([element] if element else [])
            break
        parts.append(element)
        room -= len(element)
    return _OPEN + "".join(parts) + _CLOSE


def _element(hit: Read, text: str) -> str:
    attributes = [("key", hit.key), ("agent", "" if hit.agent == "-" else hit.agent), ("time", hit.time)]
    written = "".join(f' {name}="{attribute(value)}"' for name, value in attributes if value)
    return f"<memory{written}>{content(text)}</memory>\n"


def _cut_element(hit: Read, room: int) -> str:
    """The hit's element with as much of its text as fits; empty when not even the tags do."""
    spare = room - len(_element(hit, _CUT))
    if spare <= 0:
        return ""
    kept: list[str] = []
    for character in hit.text[:spare]:
        spare -= len(content(character))
        if spare < 0:
            break
        kept.append(character)
    return _element(hit, "".join(kept) + _CUT)
