"""Sections of entries as one fragment of a prompt, within a budget of tokens. Pure.

Stored text is data: everything is escaped, so that none of it can close the element it stands in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loom.retrieval.budget import CHARACTERS_A_TOKEN, tokens_of
from loom.xml_text import attribute, content

ROOT: Final = "context"
CUT: Final = "\u2026"
CUT_TOKENS_MIN: Final = 16
"""An entry that does not fit is cut where at least this much of it can be shown, else left out."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One element: its tag, its attributes in order (empty ones are left out), its text."""

    tag: str
    attributes: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """A section's entries, the best first, and the share of the budget that is its own.

    Attributes:
        name: the section, as answers call it.
        tag: its element.
        entries: what may be shown.
        tokens_max: its own budget; what others leave may be used as well.
    """

    name: str
    tag: str
    entries: Sequence[Entry]
    tokens_max: int


@dataclass(frozen=True, slots=True)
class Packed:
    """A section as it was packed."""

    name: str
    text: str
    tokens: int
    shown: int
    left_out: int


def packed(parts: Sequence[Part], tokens_max: int) -> list[Packed]:
    """Each section within its budget, in order; what one does not use is there for those after it.

    The whole stays within `tokens_max`, the enclosing element not counted.
    """
    made: list[Packed] = []
    spare, room = 0, tokens_max
    for part in parts:
        allowed = min(room, part.tokens_max + spare)
        one = _packed(part, allowed)
        made.append(one)
        spare = max(0, part.tokens_max + spare - one.tokens)
        room -= one.tokens
    return made


def whole(sections: Sequence[Packed]) -> str:
    """The sections in one element; empty when there is nothing in any."""
    texts = [one.text for one in sections if one.text]
    return "\n".join([f"<{ROOT}>", *texts, f"</{ROOT}>"]) if texts else ""


def shares(tokens_max: int, weights: Mapping[str, float], given: Mapping[str, int]) -> dict[str, int]:
    """A budget for each section: what was given, and of the rest a share by weight."""
    rest = max(0, tokens_max - sum(given.get(name, 0) for name in weights))
    total = sum(weight for name, weight in weights.items() if name not in given)
    return {name: given[name] if name in given else int(rest * weight / total) for name, weight in weights.items()}


def _packed(part: Part, tokens_max: int) -> Packed:
    opening, closing = f"<{part.tag}>", f"</{part.tag}>"
    room = tokens_max * CHARACTERS_A_TOKEN - len(opening) - len(closing) - 1
    lines: list[str] = []
    for entry in part.entries:
        line = _element(entry, entry.text)
        if len(line) + 1 > room:
            line = _cut(entry, room - 1)
            lines += [line] if line else []
            break
        lines.append(line)
        room -= len(line) + 1
    if not lines:
        return Packed(part.name, "", 0, 0, len(part.entries))
    text = "\n".join([opening, *lines, closing])
    return Packed(part.name, text, tokens_of(text), len(lines), len(part.entries) - len(lines))


def _element(entry: Entry, text: str) -> str:
    written = "".join(f' {name}="{attribute(value)}"' for name, value in entry.attributes if value)
    return f"<{entry.tag}{written}>{content(text)}</{entry.tag}>"


def _cut(entry: Entry, room: int) -> str:
    """The entry with as much of its text as fits, empty when that is too little to be worth reading."""
    spare = room - len(_element(entry, CUT))
    if spare < CUT_TOKENS_MIN * CHARACTERS_A_TOKEN:
        return ""
    kept: list[str] = []
    for character in entry.text[:spare]:
        spare -= len(content(character))
        if spare < 0:
            break
        kept.append(character)
    return _element(entry, "".join(kept) + CUT)
