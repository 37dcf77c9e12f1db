"""Turns what speaks for a hit into a probability that it answers the question.

A logistic of what is known of the hit, of how far it is ahead of the others, and of how many
others there are: in a store of three records the nearest is probably meant, among thousands some
record is always near. Without a vector the words' part is left, with weights of its own, and the hit is compared with
the others as if none had a vector.

The weights stand in `calibration.toml`, which `benchmarks/calibrate.py` makes: it says from which data, and prints
how well the probabilities hold on data that were left out. A hit is flagged under the
probability that 199 of 200 right hits reach; an answer is doubted whose best hit is under what 98 of
100 answered questions reach. In a store of a few memories what is doubted is flagged, too: there what is right stands
out, and half of what is asked has no answer.
"""

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from heapq import nlargest
from importlib import resources
from math import exp, log
from typing import Final

from pydantic import BaseModel, ConfigDict

from loom.retrieval.fuse import MEANING, READING, TIME, Fused
from loom.storage.indexes import TextQuery

NOTHING_FOUND: Final = "nothing was found"
NOTHING_LIKELY: Final = "no hit is likely to answer"
CANDIDATES_MAX: Final = 200
"""More candidates than this say nothing more: each leg brings a hundred of however many there are."""

FEW: Final = 3
"""Among so many candidates or fewer the thresholds are `abstain_under_few`; from there they go over into the others,
the one for flags the faster, for among ten already many a right hit is not the first."""

FIFTH: Final = 5

_FURTHER: Final = (READING, TIME)
_BUT_WORDS: Final = (READING, TIME, MEANING)
_LOGIT_MAX: Final = 30.0


class Logistic(BaseModel):
    """Weights of the facts, and the probabilities under which a hit is flagged or an answer doubted.

    `many` is the logarithm of the number of candidates, `few` its inverse; a name of two
    facts weighs their product. See `Evidence` for the rest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bias: float
    nearness: float
    nearness_coverage: float
    nearness_many: float
    nearness_few: float
    coverage: float
    coverage_many: float
    coverage_few: float
    lead: float
    lead_many: float
    ahead_many: float
    ahead_of_fifth_many: float
    many: float
    few: float
    flagged_under: float
    abstain_under: float
    abstain_under_few: float


class _Tables(BaseModel):
    """What `calibration.toml` holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: dict[str, str]
    with_meaning: Logistic
    words_only: Logistic


def _tables() -> _Tables:
    text = resources.files("loom.retrieval").joinpath("calibration.toml").read_text(encoding="utf-8")
    return _Tables.model_validate(tomllib.loads(text))


_FITTED: Final = _tables()
WITH_MEANING: Final = _FITTED.with_meaning
WORDS_ONLY: Final = _FITTED.words_only


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one hit.

    Attributes:
        nearness: `nearness()` of its cosine; None when it has no vector or the leg did not run.
        coverage: the share of the question's stems that it holds, 0..1.
        lead: how much nearer it is than the nearest of the others; negative when another is nearer.
        ahead: how far its rank score is ahead of the best of the others, see `_ranked_by`; negative when another's is.
        ahead_of_fifth: the same of the fifth best score, or of the last of fewer.
        candidates: how many were ranked, at least 1.
    """

    nearness: float | None
    coverage: float
    lead: float = 0.0
    ahead: float = 0.0
    ahead_of_fifth: float = 0.0
    candidates: int = 1


@dataclass(frozen=True, slots=True)
class Standing:
    """What a ranking says of every hit in it.

    Attributes:
        meaning: the leg's best two raw scores.
        scores: the best five rank scores, see `_ranked_by`.
        scores_by_words: the same without meaning, which is what a hit without a vector is compared by.
        candidates: how many were ranked.
    """

    meaning: tuple[float, float | None]
    scores: tuple[float, ...]
    scores_by_words: tuple[float, ...]
    candidates: int


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A hit's probability of answering.

    Attributes:
        probability: 0..1.
        below_threshold: too low for a hit to be worth showing.
        doubtful: too low for a question's best hit to be an answer.
    """

    probability: float
    below_threshold: bool
    doubtful: bool


@dataclass(frozen=True, slots=True)
class Confidence:
    """What a whole answer is worth.

    Attributes:
        retrieval_confidence: the best hit's probability; 0 without hits.
        abstain: whether the caller had better say that it does not know.
        reason: why; empty when not abstaining.
    """

    retrieval_confidence: float
    abstain: bool
    reason: str


def nearness(cosine: float, random_cosine: float) -> float:
    """How far `cosine` is from what unrelated texts of its space have (0) towards the same text (1)."""
    return (cosine - random_cosine) / (1.0 - random_cosine)


def coverage(query: TextQuery, stems: Collection[str]) -> float:
    """The share of the question's distinct stems among `stems` of a hit; 0 for a question without any."""
    asked = frozenset(query.stems)
    held = stems if isinstance(stems, frozenset | set) else frozenset(stems)
    return len(asked & held) / len(asked) if asked else 0.0


def standing(order: Sequence[Fused]) -> Standing:
    """What the whole ranking says, from its legs' raw scores."""
    best = tuple(nlargest(FIFTH, map(_ranked_by, order)))
    by_words = best
    if any(hit.raw(MEANING) is None for hit in order):
        by_words = tuple(nlargest(FIFTH, (_ranked_by(hit, _BUT_WORDS) for hit in order)))
    return Standing(_best_two(order, MEANING), best, by_words, max(1, len(order)))


def evidence(query: TextQuery, stems: Collection[str], hit: Fused, among: Standing, question_cosine: float) -> Evidence:
    """The evidence for a hit of a ranking.

    Args:
        query: the question's tokens.
        stems: those of the hit's searchable text.
        hit: one of the ranking.
        among: what the ranking says.
        question_cosine: what a question and a text that has nothing to do with it have in this space.
    """
    cosine = hit.raw(MEANING)
    near = None if cosine is None else nearness(cosine, question_cosine)
    lead = 0.0
    if near is not None and cosine is not None:
        other = _best_other(cosine, among.meaning)
        lead = near if other is None else (cosine - other) / (1.0 - question_cosine)
    if near is None:
        ranked_by, scores = _ranked_by(hit, _BUT_WORDS), among.scores_by_words
    else:
        ranked_by, scores = _ranked_by(hit), among.scores
    first, second = (scores[0], scores[1]) if len(scores) > 1 else (0.0, 0.0)
    return Evidence(
        nearness=near,
        coverage=coverage(query, stems),
        lead=lead,
        ahead=ranked_by - (second if ranked_by >= first else first),
        ahead_of_fifth=ranked_by - (scores[-1] if len(scores) > 1 else 0.0),
        candidates=among.candidates,
    )


def probability_of(facts: Evidence, table: Logistic) -> float:
    """The probability that a hit with these facts answers, by these weights."""
    count = max(1, min(CANDIDATES_MAX, facts.candidates))
    many, few, covered = log(count), 1.0 / count, facts.coverage
    by_nearness = (
        table.nearness + table.nearness_coverage * covered + table.nearness_many * many + table.nearness_few * few
    )
    by_coverage = table.coverage + table.coverage_many * many + table.coverage_few * few
    logit = (
        table.bias
        + by_nearness * (facts.nearness or 0.0)
        + by_coverage * covered
        + (table.lead + table.lead_many * many) * facts.lead
        + table.ahead_many * many * facts.ahead
        + table.ahead_of_fifth_many * many * facts.ahead_of_fifth
        + table.many * many
        + table.few * few
    )
    return 1.0 / (1.0 + exp(-max(-_LOGIT_MAX, min(_LOGIT_MAX, logit))))


def calibrated(facts: Evidence) -> Calibrated:
    """The probability that a hit with these facts answers, and what is thought of it."""
    table = WORDS_ONLY if facts.nearness is None else WITH_MEANING
    probability = probability_of(facts, table)
    share = min(1.0, FEW / max(1, facts.candidates))
    flagged_under = table.flagged_under + (table.abstain_under_few - table.flagged_under) * share**4
    abstain_under = table.abstain_under + (table.abstain_under_few - table.abstain_under) * share
    return Calibrated(
        probability,
        # What holds every word of the question is shown, however much nearer another hit is.
        below_threshold=probability < flagged_under and facts.coverage < 1.0,
        doubtful=probability < abstain_under,
    )


def confidence(hits: Sequence[Calibrated]) -> Confidence:
    """What an answer of these hits is worth: what its best hit is."""
    if not hits:
        return Confidence(0.0, abstain=True, reason=NOTHING_FOUND)
    best = max(hit.probability for hit in hits)
    if all(hit.doubtful for hit in hits):
        return Confidence(best, abstain=True, reason=NOTHING_LIKELY)
    return Confidence(best, abstain=False, reason="")


def _ranked_by(hit: Fused, left_out: Collection[str] = _FURTHER) -> float:
    """The part of the rank score that words, meaning and neighbours have, as if nothing else was asked.

    So it says the same whatever the recipe. What lowers a hit as a whole counts here, too.
    """
    legs = hit.legs
    others = {name: legs.shares[name] for name in left_out if name in legs.shares}
    left = 1.0 - sum(others.values())
    if not others or left <= 0.0:
        return hit.score
    lent = (hit.loan.share or 0.0) if hit.loan else 0.0
    theirs = sum(legs.normalised[name].get(hit.item_id, 0.0) * share for name, share in others.items())
    return hit.rate * ((hit.score / hit.rate - lent - theirs) / left + lent)


def _best_two(order: Sequence[Fused], leg: str) -> tuple[float, float | None]:
    """The best raw score of a leg, 0 when there is none, and the second best."""
    best = nlargest(2, (raw for hit in order if (raw := hit.raw(leg)) is not None))
    return (best[0] if best else 0.0, best[1] if len(best) > 1 else None)


def _best_other(score: float, best: tuple[float, float | None]) -> float | None:
    """The best score of the others than the one with `score`; None when there are none."""
    first, second = best
    return first if score < first else second
