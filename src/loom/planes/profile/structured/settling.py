"""From what statements claim about a property, in the order of time, to its value."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from loom.canonical import Json, encoded
from loom.planes.profile.structured.interface import Source
from loom.planes.profile.structured.statements import Statement

SOURCES_MAX: Final = 8
SOURCE_CHARACTERS_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Claim:
    """What one statement says of a property.

    Attributes:
        statement: the statement.
        value: the value it gives; None when it only takes away.
        text: the words.
        over: values that it says are over; those settled before go.
        all_over: whether it takes away whatever was settled before.
        replaces: of a list, whether it is the whole list and not an addition.
        score: how sure it is, 0..1.
        weak: not sure enough to settle the property; it only unsettles an earlier value that is another one, and
            takes its place if it `replaces`.
    """

    statement: Statement
    value: Json
    text: str
    over: Sequence[Json] = ()
    all_over: bool = False
    replaces: bool = False
    score: float = 1.0
    weak: bool = False


@dataclass(slots=True)
class Standing:
    """A value as the claims so far leave it, with the claims that support it, the latest last."""

    value: Json = None
    support: list[Claim] = field(default_factory=list[Claim])


def settled(claims: Iterable[Claim]) -> Standing:
    """The value that stands after all claims; the latest wins, and two at one moment that disagree settle nothing."""
    standing = Standing()
    ordered = sorted(claims, key=lambda claim: claim.statement.moment)
    place = 0
    while place < len(ordered):
        moment = ordered[place].statement.moment
        together = [claim for claim in ordered[place:] if claim.statement.moment == moment]
        place += len(together)
        _apply(standing, together)
    return standing


def _apply(standing: Standing, together: Sequence[Claim]) -> None:
    for claim in together:
        if claim.all_over or any(_same(over, standing.value) for over in claim.over):
            standing.value, standing.support = None, []
        elif claim.over and isinstance(standing.value, list):
            standing.value = [item for item in standing.value if not any(_same(over, item) for over in claim.over)]
    given = [claim for claim in together if claim.value is not None and not claim.weak]
    if not given:
        _doubt(standing, [claim for claim in together if claim.weak])
        return
    if all(isinstance(claim.value, list) for claim in given):
        _add_lists(standing, given)
        return
    if len({_shown(claim.value) for claim in given}) > 1:
        best = max(given, key=lambda claim: claim.score)
        rest = [claim for claim in given if not _same(claim.value, best.value)]
        if any(claim.score >= best.score for claim in rest):
            standing.value, standing.support = None, []
            return
        given = [claim for claim in given if _same(claim.value, best.value)]
    if not _same(given[0].value, standing.value):
        standing.support = []
    standing.value = given[0].value
    standing.support.extend(given)


def _doubt(standing: Standing, weak: Sequence[Claim]) -> None:
    """A later value that is not sure: the same supports, another one replaces or unsettles what stands."""
    for claim in weak:
        if standing.value is None:
            return
        if _same(claim.value, standing.value):
            standing.support.append(claim)
        elif claim.replaces:
            standing.value, standing.support = claim.value, [claim]
        else:
            standing.value, standing.support = None, []


def _add_lists(standing: Standing, given: Sequence[Claim]) -> None:
    if any(claim.replaces or claim.value == [] for claim in given) or not isinstance(standing.value, list):
        standing.value, standing.support = [], []
    items: list[Json] = list(standing.value)
    for claim in given:
        if isinstance(claim.value, list):
            items.extend(item for item in claim.value if not any(_same(item, known) for known in items))
    standing.value = items
    standing.support.extend(given)


def _same(one: Json, other: Json) -> bool:
    return other is not None and _shown(one) == _shown(other)


def _shown(value: Json) -> str:
    if isinstance(value, str):
        return value.casefold().strip()
    return encoded(float(value) if isinstance(value, int) and not isinstance(value, bool) else value)


def sources(support: Sequence[Claim]) -> list[Source]:
    """Where a value comes from, the latest first, at most 8; a memory once."""
    made: dict[str, Source] = {}
    for claim in reversed(support):
        fact = claim.statement.fact
        made.setdefault(fact.memory_id, Source(fact.memory_id, fact.version, claim.text[:SOURCE_CHARACTERS_MAX]))
    return list(made.values())[:SOURCES_MAX]
