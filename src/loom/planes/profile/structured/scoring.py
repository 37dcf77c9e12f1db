"""How likely a value that stands in a text is the value of a property that the text does not name outright.

A logistic of what speaks for it, with a constant of its own for each kind of value. The constants were fitted by
`benchmarks/fit_profiles.py` on the invented statements that it ships.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log1p
from typing import Final

from loom.planes.profile.structured import cues, readings, words
from loom.planes.profile.structured.properties import Kind, Wanted
from loom.planes.profile.structured.readings import Reading
from loom.planes.profile.structured.statements import Statement, label_of

FEATURES: Final = (
    "name_in_clause", "name_in_fact", "described", "nearness", "lead", "unit", "plain", "beside", "rivals", "subject",
    "label", "stance", "whole_name", "phrase", "number", "date", "choice", "boolean", "code", "address", "own_address",
)  # fmt: skip
_GROUPS: Final = {
    Kind.NUMBER: "number", Kind.DATE: "date", Kind.MOMENT: "date", Kind.CHOICE: "choice", Kind.LIST: "choice",
    Kind.BOOLEAN: "boolean", Kind.CODE: "code", Kind.COUNTRY: "code", Kind.LANGUAGE: "code", Kind.EMAIL: "address",
    Kind.URL: "address",
}  # fmt: skip
_LOGIT_MAX: Final = 30.0
_DESCRIBED_ENOUGH: Final = 3.0


@dataclass(frozen=True, slots=True)
class Model:
    """Weights in the order of `FEATURES`, the constant, and from which probability a value is taken."""

    bias: float
    weights: Sequence[float]
    taken_from: float
    doubted_from: float = 0.5
    """From which probability a later value takes a settled one back, or replaces it when it says that it does."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a schema says about one property's place in it.

    Attributes:
        nearness: of each statement, how much nearer the property's text is than an unrelated one.
        lead: of each statement, by how much it is nearer than that of the nearest other property of its kind.
        rarity: of each stem of a description, how few properties share it, 0..1.
        rivals: other properties of its kind.
    """

    nearness: Sequence[float]
    lead: Sequence[float]
    rarity: Mapping[str, float]
    rivals: int


def group(kind: Kind) -> str:
    """Kinds whose values look alike; empty for those that are not looked for in text."""
    return _GROUPS.get(kind, "")


def features(one: Wanted, place: int, statement: Statement, reading: Reading, setting: Setting) -> list[float]:
    """What speaks for `reading`, in the order of `FEATURES`. `place` is the statement's."""
    clause, candidate = reading.clause, reading.candidate
    everywhere = statement.stems | statement.name_stems
    shared = sum(
        setting.rarity.get(stem, 1.0) for stem in (one.described - one.strong) & (clause.stems | statement.name_stems)
    )
    mine = group(one.kind)
    begins = subject(clause.sentence, one.strong | one.described | statement.name_stems)
    return [
        len(one.strong & clause.stems) / max(1, len(one.strong)),
        len(one.strong & everywhere) / max(1, len(one.strong)),
        min(1.0, shared / _DESCRIBED_ENOUGH),
        setting.nearness[place],
        setting.lead[place],
        candidate.unit,
        candidate.plain,
        float(reading.near),
        log1p(setting.rivals),
        begins,
        labelled(one, clause.sentence),
        float(readings.takes_stance(one, clause)),
        float(len(one.strong) > 1 and one.strong <= clause.stems),
        float(bool(one.pairs & words.pairs(clause.tokens))),
        *(float(mine == name) for name in FEATURES[14:-1]),
        float(mine == "address" and setting.rivals == 0 and begins > 0),
    ]


def labelled(one: Wanted, sentence: str) -> float:
    """The share of the words before a colon that the property's name or description has; 0.0 without a label."""
    tokens = [token for token in words.read(label_of(sentence.strip())) if token.text.casefold() not in words.FUNCTION]
    return sum(bool(token.stems & one.told) for token in tokens) / len(tokens) if tokens else 0.0


def subject(sentence: str, topic: frozenset[str]) -> float:
    """1.0 when a sentence begins with the user, a verb or the topic; -1.0 when it begins with some other thing."""
    tokens = words.read(sentence[:_BEGIN_CHARACTERS])[:_BEGIN_WORDS]
    if not tokens:
        return 0.0
    first = tokens[0].text.casefold()
    if any(token.stems & topic for token in tokens[: 3 if first in _ARTICLES else 2]):
        return 1.0
    if first in _ARTICLES:
        return -1.0
    return 1.0 if first in _USER or first.endswith(("s", "ed", "ing")) else 0.0


_BEGIN_CHARACTERS: Final = 120
_BEGIN_WORDS: Final = 4
_ARTICLES: Final = cues.words("articles")
_USER: Final = cues.words("user")


def probability(model: Model, row: Sequence[float]) -> float:
    """How likely a value with these features is right."""
    logit = model.bias + sum(weight * value for weight, value in zip(model.weights, row, strict=True))
    return 1.0 / (1.0 + exp(-max(-_LOGIT_MAX, min(_LOGIT_MAX, logit))))
