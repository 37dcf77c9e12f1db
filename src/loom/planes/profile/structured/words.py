"""Words of a text with their places, and what a name says about what it names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from loom.retrieval import tokens

TEXT_CHARACTERS_MAX: Final = 2_000
"""How much of one text is read."""

_WORD: Final = re.compile(r"[^\W_]+(?:[-.+#'’&][^\W_]+|\+\+|#)*(?:(?<=\b[A-Z])[+-]|(?<=\b[A-Z]{2})[+-])?(?!(?<=[+-])\w)|[$€£¥]")  # noqa: RUF001 - an apostrophe as people type it
_PLAIN: Final = re.compile(r"[\W_]+")
_TRAIL: Final = re.compile(r"(?:_?\d+)+\Z")
_CACHED_MAX: Final = 32_768
_GRADE_CHARACTERS_MAX: Final = 3
"""So short, a plus or a minus at the end tells values apart: A+, B-."""

FUNCTION: Final = frozenset(
    """a an the of in on at to by for from with and or as per be is are was were has have had do does did can could
    will would shall should may might must it its this that these those he she they him her them his their i me my we
    us our you your whether if who whom whose which what when where how than then there so too also very not no nor
    but only just such each any all some other own one alone given give means number name value""".split()
)
"""Words that say nothing about a topic."""

WEAK: Final = frozenset(
    """current currently present presently latest last next new old primary main preferred preference preferences
    favorite favorites favourite favourites default usual user users customer client person people profile type kind
    status state mode method level code total amount count price cost size width length date day days since until
    year years month months week weeks daily weekly monthly yearly nightly annual max maximum min minimum average mean
    kg lb lbs cm mm km eur usd gbp chf minutes minute hours hour pct percent iso eu uk us list opt done enabled flag
    wants want uses use likes like avoid avoids id ids home record info details note notes on off""".split()
)
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
