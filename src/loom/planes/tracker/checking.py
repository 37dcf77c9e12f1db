"""The verdict on a report, as answers show it; shared by tracker.duplicate_check and search.query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from loom.planes.tracker import likeness, search, store
from loom.planes.tracker.fields import ShownIssue, clipped, shown
from loom.planes.tracker.likeness import Facts, Verdict
from loom.planes.tracker.search import Candidate, Quest
from loom.planes.tracker.traits import Traits
from loom.storage.interface import Transaction

CANDIDATES_MAX: Final = 10
SHARED_MAX: Final = 10
"""Names of each kind that are shown."""


class Evidence(BaseModel):
    """What spoke for a candidate, each from 0 to 1; null where there was nothing to compare."""

    model_config = ConfigDict(frozen=True)

    words: Annotated[float, Field(description="How well the words fit, against the best candidate.")]
    title: Annotated[float, Field(description="The share of title words that both have.")]
    meaning: Annotated[float | None, Field(description="How near the meaning is.")]
    frames: Annotated[float | None, Field(description="The share of the stack that both have, by function and file.")]
    exceptions: Annotated[float | None, Field(description="The share of exceptions that both name.")]
    component: Annotated[float | None, Field(description="1 for the same component, 0 for another.")]
    version: Annotated[float | None, Field(description="1 for the same version, 0 for another.")]
    paths: Annotated[float | None, Field(description="The share of files that both name.")]
    symbols: Annotated[float | None, Field(description="The share of symbols that both name.")]
    mentions: Annotated[
        float | None, Field(description="1 when one mentions the other; else the share of mentioned issues in common.")
    ]


class Named(BaseModel):
    """Names in the form in which they are compared, at most ten of a kind."""

    model_config = ConfigDict(frozen=True)

    frames: Annotated[list[str], Field(description="Stack frames, as function (file).")]
    exceptions: Annotated[list[str], Field(description="Exceptions, signals and error numbers.")]
    paths: Annotated[list[str], Field(description="The last two parts of paths.")]
    symbols: Annotated[list[str], Field(description="Names from code.")]
    mentions: Annotated[list[str], Field(description="Other issues.")]


class Check(BaseModel):
    """An issue that the report may repeat."""

    model_config = ConfigDict(frozen=True)

    issue: Annotated[ShownIssue, Field(description="The issue.")]
    score: Annotated[float, Field(description="The probability that it is the same defect, 0 to 1.")]
    verdict: Annotated[str, Field(description="What this one alone would make of the report.")]
    evidence: Annotated[Evidence, Field(description="What spoke for it.")]
    shared: Annotated[Named, Field(description="Names that both have.")]


@dataclass(frozen=True, slots=True)
class Checked:
    """A verdict and what it stands on."""

    verdict: Verdict
    confidence: float
    candidates: Sequence[Check]
    compared: int
    meaning_lost: bool


def checked(tx: Transaction, quest: Quest, about: tuple[str, str], number: int | None, top_k: int) -> Checked:
    """Compare a report with the issues that it may repeat.

    Args:
        tx: a read transaction of the tracker's org.
        quest: the report.
        about: its component and version.
        number: its own number, where it has one.
        top_k: at most this many candidates.
    """
    names = frozenset[str]() if number is None else frozenset({str(number)})
    report = likeness.report_of(quest.title, quest.body, quest.traits, about, names)
    found, meaning_lost = search.duplicates(tx, quest, report)
    best = found[0].probability if found else 0.0
    return Checked(
        verdict=likeness.verdict(best),
        confidence=round(best, 4),
        candidates=[check_of(one, quest.traits) for one in found[: min(top_k, CANDIDATES_MAX)]],
        compared=store.count(tx, quest.where),
        meaning_lost=meaning_lost,
    )


def check_of(candidate: Candidate, mine: Traits) -> Check:
    """A candidate as answers show it."""
    return Check(
        issue=shown(candidate.issue),
        score=round(candidate.probability, 4),
        verdict=likeness.verdict(candidate.probability),
        evidence=evidence_of(candidate.facts),
        shared=shared_of(mine, candidate.issue.content.traits),
    )


def evidence_of(facts: Facts) -> Evidence:
    """Facts as answers show them."""
    return Evidence(
        words=round(facts.scores.words, 4),
        title=round(facts.same_words, 4),
        meaning=_rounded(facts.scores.meaning),
        frames=_rounded(facts.frames),
        exceptions=_rounded(facts.exceptions),
        component=facts.component,
        version=facts.version,
        paths=_rounded(facts.paths),
        symbols=_rounded(facts.symbols),
        mentions=1.0 if facts.mentioned else _rounded(facts.mentions),
    )


def shared_of(mine: Traits, theirs: Traits) -> Named:
    """The names that both have."""
    return named_of(
        Traits(
            frames=[one for one in mine.frames if any(one.same(other) for other in theirs.frames)],
            exceptions=[one for one in mine.exceptions if one in theirs.exceptions],
            paths=[one for one in mine.paths if one in theirs.paths],
            symbols=[one for one in mine.symbols if one in theirs.symbols],
            mentions=[one for one in mine.mentions if one in theirs.mentions],
        )
    )


def named_of(traits: Traits) -> Named:
    """Names as answers show them."""
    return Named(
        frames=clipped(traits.frames[:SHARED_MAX]),
        exceptions=clipped(traits.exceptions[:SHARED_MAX]),
        paths=clipped(traits.paths[:SHARED_MAX]),
        symbols=clipped(traits.symbols[:SHARED_MAX]),
        mentions=clipped(traits.mentions[:SHARED_MAX]),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
