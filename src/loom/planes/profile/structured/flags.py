"""What a part of a text says about its own weight: another's fact, unsure, denied, ended, an order.

The cues are general ones of English, with the plainest of German, Spanish and Chinese: see `cues.toml`.
"""

import re
from enum import Flag, auto
from typing import Final

from loom.planes.profile.structured import cues


class Mark(Flag):
    """What speaks against taking a clause as a fact of the user now."""

    NONE = 0
    UNSURE = auto()
    """A question, a guess, a plan, a condition."""
    WISH = auto()
    """What somebody wants or aims at."""
    DENIED = auto()
    """It says that something is not so."""
    ENDED = auto()
    """It says that something is over."""
    PAST = auto()
    """It tells of another time."""
    TURN = auto()
    """It replaces what was said before."""


KIN_WORDS: Final = cues.words("kin")
"""Nouns for somebody who is not the user."""

_KIN: Final = re.compile(
    r"(?<![\w-])(?:"
    + "|".join(sorted(map(re.escape, KIN_WORDS), key=len, reverse=True))
    + r")(?:['\u2019]s|s['\u2019])?(?![\w-])",
    re.IGNORECASE,
)
_COMPANY: Final = re.compile(r"(?:with|and|including|inclusive|plus|mit|con)(?: \w+){0,3} ?\Z", re.IGNORECASE)
_OBJECT: Final = re.compile(
    r"(?<!\w)(?:him|me|them|us|the (?:user|client|customer|learner|patient|student|traveller|member|player))(?!\w)"
    r"|(?<!\w)her(?= (?:up|down|to|in|on|at|as|when|by|for|over|the|a)\b| [A-Z0-9]|[.,;]|\Z)"
)
_CHINESE_KIN: Final = cues.chinese("kin")

_UNSURE: Final = cues.pattern("unsure")
_WISH: Final = cues.pattern("wish")
_DENIED: Final = cues.pattern("denied")
_ENDED: Final = cues.pattern("ended")
_PAST: Final = cues.pattern("past")
_TURN: Final = cues.pattern("turn")
_ORDER: Final = cues.orders()
_TRIGGERS: Final = cues.order_triggers()
_VAGUE_OR: Final = re.compile(r"(?<!\w)(?:or|oder|between|zwischen|entre)(?!\w)|或者|或", re.IGNORECASE)
ANOTHER: Final = "another"
"""Somebody of the user's kind who is not the user: `a customer`, `customers`."""

_ANOTHER: Final = re.compile(
    r"(?<!\w)(?:(?:an?|another|some|every|each|his|her|their|our|new|former) (?:\w+ )?"
    r"(?:client|customer|user|patient|learner|player|member|guest)|clients|customers|users|patients)(?!\w)(?! since)",
    re.IGNORECASE,
)
_PERSON_POSSESSIVE: Final = re.compile(
    r"(?<!\w)(?!(?i:user|client|customer|learner|patient|member|player|traveller"
    r"|it|he|she|that|what|there|here|who|let)['\u2019]s)[A-Z]\w+['\u2019]s (?=[a-z])"
)
"""A person by name, who has something: `Maria's car`. The user is none, at the head of a sentence either."""


def is_order(text: str) -> bool:
    """Whether `text` tells a reader to change records: such text is never evidence."""
    folded = text.casefold()
    return any(trigger in folded for trigger in _TRIGGERS) and _ORDER.search(text) is not None


def is_vague(text: str) -> bool:
    """Whether `text` leaves a choice open."""
    return _VAGUE_OR.search(text) is not None


def others_in(text: str) -> frozenset[str]:
    """The people in `text` that are not the user and that it is about, lower case."""
    found: set[str] = set()
    for match in _KIN.finditer(text):
        before = text[: match.start()]
        if _COMPANY.search(before[-40:]):
            continue
        if _OBJECT.search(text[match.end() :]) and before.count(" ") <= 1:
            continue
        found.add(re.sub(r"['\u2019]s?\Z", "", match[0].casefold()))
    if _ANOTHER.search(text):
        found.add(ANOTHER)
    if _CHINESE_KIN.search(text):
        found.add("other")
    if possessive := _PERSON_POSSESSIVE.search(text):
        found.add(possessive[0].strip().casefold())
    return frozenset(found)


_PATTERNS: Final = {
    Mark.UNSURE: _UNSURE,
    Mark.WISH: _WISH,
    Mark.DENIED: _DENIED,
    Mark.ENDED: _ENDED,
    Mark.PAST: _PAST,
    Mark.TURN: _TURN,
}


def bears(text: str, mark: Mark) -> bool:
    """Whether `text` bears one mark."""
    return _PATTERNS[mark].search(text) is not None or (mark is Mark.UNSURE and "?" in text)
