"""Joins the scores of several legs into one ranking.

Each leg's scores are brought to 0..1 between a floor and the leg's best, and the
weighted mean ranks the candidates. On LoCoMo this gave hit@5 of 62.7 against 60.2 for fused
ranks: how far ahead a hit is says more than its place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Final, NamedTuple

from loom.storage.indexes import Scored

WORDS: Final = "words"
MEANING: Final = "meaning"
TIME: Final = "time"
READING: Final = "reading"
"""What a cross-encoder says that has read question and text together."""

NEIGHBOURS: Final = "neighbours"
"""What a neighbour lends; see `loom.retrieval.lending`."""

_NO_FLOORS: Final[Mapping[str, float]] = MappingProxyType({})
_NO_SCORES: Final[Mapping[int, float]] = MappingProxyType({})


class Component(NamedTuple):
    """What one leg said of one candidate.

    Attributes:
        raw: the leg's own score; None when the leg did not find the candidate.
        normalised: 0..1, 0 at the leg's floor and 1 for its best.
        weight: the leg's share in the final score; the shares of one ranking sum to 1.
    """

    raw: float | None
    normalised: float
    weight: float


@dataclass(frozen=True, slots=True)
class Legs:
    """What every leg said of every candidate.

    Attributes:
        raw: each leg's own scores, by item.
        normalised: the same as 0..1, 0 at the leg's floor and 1 for its best.
        shares: each leg's weight; they sum to 1.
    """

    raw: Mapping[str, Mapping[int, float]]
    normalised: Mapping[str, Mapping[int, float]]
    shares: Mapping[str, float]


class Loan(NamedTuple):
    """What is lent to a candidate.

    Attributes:
        share: the part of a neighbour's score; None without a neighbour that has one.
        most: the highest share there is.
    """

    share: float | None
    most: float


class Fused(NamedTuple):
    """A candidate's final score, 0..1, and where it comes from.

    A search makes some hundreds of them and shows a few, so what they are made of is put together when it is asked for.

    Attributes:
        item_id: the candidate.
        score: what it is ranked by.
        legs: what the legs said, of this and all others.
        rate: what a leg's share counts in this score.
        loan: what a neighbour lent; None where nobody lends.
    """

    item_id: int
    score: float
    legs: Legs
    rate: float = 1.0
    loan: Loan | None = None

    def raw(self, leg: str) -> float | None:
        """A leg's own score; None when the leg did not run or did not find the candidate."""
        return self.legs.raw.get(leg, _NO_SCORES).get(self.item_id)

    @property
    def components(self) -> Mapping[str, Component]:
        """What each leg said; the normalised scores by their weights sum to the score."""
        legs = self.legs
        parts = {
            name: Component(self.raw(name), legs.normalised[name].get(self.item_id, 0.0), share * self.rate)
            for name, share in legs.shares.items()
        }
        if self.loan is not None:
            share, most = self.loan
            parts[NEIGHBOURS] = Component(share, (share or 0.0) / most, most * self.rate)
        return parts


def fuse(
    legs: Mapping[str, Sequence[Scored]],
    weights: Mapping[str, float],
    floors: Mapping[str, float] = _NO_FLOORS,
) -> list[Fused]:
    """Every candidate of every leg, best first; equal scores by item id.

    A leg that is not in `legs` did not run: the others share its weight. A leg that ran
    and found nothing keeps its weight. A candidate that a leg lacks stands at
    that leg's floor, so hand in complete scores where they are cheap.

    Args:
        legs: the scores of each leg that ran, in any order. Of an item that is named twice the best counts.
        weights: the weight of each leg; a leg without one counts nothing and adds no candidates.
        floors: the score of a leg that means nothing at all: 0 for BM25, the space's `random_cosine` for
            cosines. A leg's own lowest score is its floor where that is lower, or where none is given; so in
            a long list the worst hit is nothing, and in a short one two near hits stay near each other.
    """
    used = {name: _best_of_each(scored) for name, scored in legs.items() if weights.get(name, 0.0) > 0.0}
    names = sorted(used)
    total = sum(weights[name] for name in names)
    shares = {name: weights[name] / total for name in names}
    normalised = {name: _normalised(used[name], floors.get(name)) for name in names}
    said = Legs(used, normalised, shares)
    scores: dict[int, float] = {}
    for name in names:
        share = shares[name]
        for item_id, part in normalised[name].items():
            scores[item_id] = scores.get(item_id, 0.0) + part * share
    ranking = [Fused(item_id, score, said) for item_id, score in scores.items()]
    ranking.sort(key=lambda fused: (-fused.score, fused.item_id))
    return ranking


def _best_of_each(scored: Sequence[Scored]) -> dict[int, float]:
    best: dict[int, float] = {}
    for item_id, score in scored:
        if isfinite(score) and score >= best.get(item_id, score):
            best[item_id] = score
    return best


def _normalised(scores: Mapping[int, float], floor: float | None) -> dict[int, float]:
    if not scores:
        return {}
    top = max(scores.values())
    low = min(scores.values()) if floor is None else min(floor, *scores.values())
    if top <= low:  # one candidate, or all alike: nothing to tell them apart by
        return dict.fromkeys(scores, 1.0 if floor is None else 0.0)
    span = top - low
    return {item_id: (score - low) / span for item_id, score in scores.items()}
