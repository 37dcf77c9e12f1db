"""Lends a turn of a talk a share of what the turns beside it score.

What answers a question is often spread over neighbouring turns: one asks, the next answers
without repeating the words. So a turn's own score is raised by a share of its best
neighbour's. The best one counts, not their sum, which was worse on LoCoMo.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from loom.retrieval.fuse import Fused, Loan

SHARES: Final[Mapping[int, float]] = MappingProxyType({1: 0.5, 2: 0.3})
"""What a turn is lent of a neighbour's score, by the distance. LoCoMo's hit@5 is 77.7 with these,
76.6 with 0.4 and 0.3, and so in either half of the dialogues; more costs what several turns answer together."""

REACH: Final = max(SHARES)
WHOLE: Final = 1.0 + max(SHARES.values())
"""The highest score there is; ranks are told as parts of it."""

REPLY_SHARE: Final = 0.85
"""What a turn of an assistant keeps of its score. Of what BEAM's questions ask, four fifths was said by the user; an
assistant's long answers hold the same words. hit@5 there: 67 with all of it, 72 with 0.9, 76 with 0.85 or 0.8."""

_ASKED_BACK: Final = re.compile(
    r"\byou(?: had| have|'ve|'d)?(?: \w+ly| just| also| once)? (?:said|told|gave|wrote|made|advised|answered|described"
    r"|explained|listed|mentioned|proposed|provided|recommended|referred|suggested|showed|shown|shared|taught)\b"
    r"|\byour (?:\w+ )?(?:answer|advice|explanation|list|recommendation|reply|suggestion)|\bdid you\b",
    re.IGNORECASE,
)

Beside = tuple[int, int, int]
"""One item, another, and how far apart they stand."""


def lent(fused: Sequence[Fused], beside: Iterable[Beside]) -> list[Fused]:
    """The ranking with the best share that a neighbour lends each item; best first, equal scores by the newer item.

    Every score and weight becomes a part of `WHOLE`, and the share a component of its
    own, `NEIGHBOURS`: the raw score is the share that was lent.

    Args:
        fused: items, each with its own score.
        beside: pairs of neighbours, each once; their distance is a key of `SHARES`.
    """
    own = {one.item_id: one.score for one in fused}
    share: dict[int, float] = {}
    for one, other, distance in beside:
        rate = SHARES[abs(distance)]
        for to, source in ((one, other), (other, one)):
            share[to] = max(share.get(to, 0.0), rate * own.get(source, 0.0))
    order: list[Fused] = []
    for item_id, score, legs, rate, _ in fused:
        its = share.get(item_id)
        order.append(Fused(item_id, (score + (its or 0.0)) / WHOLE, legs, rate / WHOLE, Loan(its, WHOLE - 1.0)))
    order.sort(key=lambda one: (-one.score, -one.item_id))
    return order


def lowered(order: Sequence[Fused], some: Collection[int], share: float = REPLY_SHARE) -> list[Fused]:
    """The ranking with some items, an assistant's turns mostly, at a share of their score; best first, as `lent`."""
    changed = [
        Fused(one.item_id, one.score * share, one.legs, one.rate * share, one.loan) if one.item_id in some else one
        for one in order
    ]
    return sorted(changed, key=lambda one: (-one.score, -one.item_id)) if some else changed


def asks_what_was_answered(question: str) -> bool:
    """Whether a question is about what the assistant said: "the book you recommended"."""
    return _ASKED_BACK.search(question) is not None
