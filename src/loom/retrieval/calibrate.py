"""Turns what speaks for a hit into a probability that it answers the question.

A logistic of two facts: how much nearer the hit is than unrelated texts are, and how
much of the question's stems it holds; and of their product, which lets a hit that is near
enough count without a shared word. Without a vector the second is left, with constants of
its own. How the hit ranks among the others is no evidence here: it raised the AUC of hits
by 0.006 but told answerable questions from others less well, since some hit is always first.

The tables were fitted by `benchmarks/fit_calibration.py` on four dialogues of LoCoMo, each
question asked of its own dialogue and of another, where nothing answers it. A hit is
flagged under the probability that 199 of 200 right hits among the first ten reach, an answer is
doubted under the one that the best hits of 99 of 100 answerable questions reach.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import exp
from typing import Final

from loom.retrieval.tokens import document
from loom.storage.indexes import TextQuery

NOTHING_FOUND: Final = "nothing was found"
NOTHING_LIKELY: Final = "no hit is likely to answer"
_LOGIT_MAX: Final = 30.0


@dataclass(frozen=True, slots=True)
class Logistic:
    """Weights of the facts and of their product, and the probabilities under which a hit is flagged or doubted."""

    bias: float
    nearness: float
    coverage: float
    both: float
    flagged_under: float
    abstain_under: float


WITH_MEANING: Final = Logistic(-5.099, 3.881, 4.926, -3.630, flagged_under=0.0052, abstain_under=0.0153)
WORDS_ONLY: Final = Logistic(-5.908, 0.0, 6.019, 0.0, flagged_under=0.0074, abstain_under=0.0163)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one hit.

    Attributes:
        nearness: `nearness()` of its cosine; None when it has no vector or the leg did not run.
        coverage: the share of the question's stems that it holds, 0..1.
    """

    nearness: float | None
    coverage: float


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


def evidence(query: TextQuery, text: str, cosine: float | None, random_cosine: float) -> Evidence:
    """The evidence for a hit with the searchable text `text`; see `Evidence` for an absent cosine."""
    near = None if cosine is None else nearness(cosine, random_cosine)
    return Evidence(near, coverage(query, frozenset(document(text).stems)))


def calibrated(facts: Evidence) -> Calibrated:
    """The probability that a hit with these facts answers."""
    table = WORDS_ONLY if facts.nearness is None else WITH_MEANING
    near = facts.nearness or 0.0
    slope = max(0.0, table.nearness + table.both * facts.coverage)  # to be near never counts against a hit
    logit = table.bias + slope * near + table.coverage * facts.coverage
    probability = 1.0 / (1.0 + exp(-max(-_LOGIT_MAX, min(_LOGIT_MAX, logit))))
    return Calibrated(probability, probability < table.flagged_under, probability < table.abstain_under)


def confidence(hits: Sequence[Calibrated]) -> Confidence:
    """What an answer of these hits is worth: what its best hit is."""
    if not hits:
        return Confidence(0.0, abstain=True, reason=NOTHING_FOUND)
    best = max(hit.probability for hit in hits)
    if all(hit.doubtful for hit in hits):
        return Confidence(best, abstain=True, reason=NOTHING_LIKELY)
    return Confidence(best, abstain=False, reason="")
