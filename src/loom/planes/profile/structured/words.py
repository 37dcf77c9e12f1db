"""Words of a text with their places, and what a name says about what it names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from loom.planes.profile.structured import cues
from loom.retrieval import tokens

TEXT_CHARACTERS_MAX: Final = 2_000
"""How much of one text is read."""

_WORD: Final = re.compile(
    r"[^\W_]+(?:[-.+#'\u2019&][^\W_]+|\+\+|#)*(?:(?<=\b[A-Z])[+-]|(?<=\b[A-Z]{2})[+-])?(?!(?<=[+-])\w)|[$€£¥]"
)
_LETTERS: Final = re.compile(r"[^\W_]{1,64}")
_PLAIN: Final = re.compile(r"[\W_]+")
_TRAIL: Final = re.compile(r"(?:_?\d+)+\Z")
_CACHED_MAX: Final = 32_768
_GRADE_CHARACTERS_MAX: Final = 3
"""So short, a plus or a minus at the end tells values apart: A+, B-."""

FUNCTION: Final = cues.words("function")
"""Words that say nothing about a topic."""

WEAK: Final = cues.words("weak")
"""Words of a property's name that narrow or measure, and do not name the topic."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a text.

    Attributes:
        text: as it stands there.
        start: its first character's place.
        end: the place after its last character.
        stems: the stems of its parts, lower case.
    """

    text: str
    start: int
    end: int
    stems: frozenset[str]


def read(text: str) -> list[Token]:
    """The words of the first 2,000 characters of `text`, in order."""
    return [
        Token(match[0], match.start(), match.end(), stems(match[0]))
        for match in _WORD.finditer(text[:TEXT_CHARACTERS_MAX])
    ]


@lru_cache(maxsize=_CACHED_MAX)
def _stems(text: str) -> frozenset[str]:
    return frozenset(stem for stem in tokens.document(text).stems if stem.replace("'", "").isalnum())


def stems(text: str) -> frozenset[str]:
    """The stems of every word of `text`, identifiers taken apart."""
    return _stems(text) if len(text) <= tokens.TOKEN_CHARACTERS_MAX else frozenset(tokens.document(text).stems)


def quick_stems(text: str) -> frozenset[str]:
    """The stems of the words of `text`, for finding it among many; an identifier is one word."""
    return frozenset[str]().union(*map(_stems, set(_LETTERS.findall(text[:TEXT_CHARACTERS_MAX].casefold()))))


def pairs(tokens: Sequence[Token]) -> frozenset[tuple[str, str]]:
    """Neighbouring words of a text, those that say nothing left out, as stems."""
    said = [min(token.stems) for token in tokens if token.stems and token.text.casefold() not in FUNCTION]
    return frozenset(pairwise(said))


def name_words(name: str) -> list[str]:
    """The words of a name such as `contactEmail`, `contact_email` or `user/contact-email-2`, lower case, in order.

    The last part of a path counts, and what only numbers a repeated key does not.
    """
    last = name[: TEXT_CHARACTERS_MAX // 4].rstrip("/: ").rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    last = _TRAIL.sub("", last) or last
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", last)
    return [word for word in _PLAIN.sub(" ", split).casefold().split() if word]


@lru_cache(maxsize=_CACHED_MAX)
def plain(text: str) -> str:
    """`text` without case, spaces and punctuation: `Next.js` is `nextjs`, `C++` is `cpp`, `C#` is `csharp`."""
    spelled = text.casefold().replace("++", "pp").replace("#", "sharp")
    if len(spelled) <= _GRADE_CHARACTERS_MAX:
        spelled = spelled.replace("+", "plus").replace("-", "minus")
    return _PLAIN.sub("", spelled)
