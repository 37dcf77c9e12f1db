"""What all statements claim about all properties: which are looked at, and what is made of each."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from time import monotonic
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loom.canonical import Json
from loom.planes.profile.structured import naming, readings, scoring
from loom.planes.profile.structured.flags import Mark
from loom.planes.profile.structured.interface import BuildFailed
from loom.planes.profile.structured.properties import Kind, Wanted
from loom.planes.profile.structured.readings import Named, Reading
from loom.planes.profile.structured.scoring import Model, Setting
from loom.planes.profile.structured.settling import Claim, Standing, settled
from loom.planes.profile.structured.statements import Statement

NAMED_MAX: Final = 64
"""Statements that name a property and are read, the latest ones."""

NEAREST_MAX: Final = 24
"""Statements that are read for a property that they do not name."""

_SHARED_WEIGHT: Final = 0.25
_SHARED_MAX: Final = 3
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_US: Final = 253_402_300_799_000_000
"""The end of the year 9999, the last that a date can name."""

Floats = NDArray[np.floating]


class Board:
    """Statements beside properties.

    Args:
        wanted: the properties.
        said: the statements, in the order of time.
        nearness: for each property or part, in the order of `walk`, and each statement, 0..1.
        model: the weights of `scoring`.
    """

    def __init__(self, wanted: Sequence[Wanted], said: Sequence[Statement], nearness: Floats, model: Model) -> None:
        self.parts = [part for one in wanted for part in one.walk()]
        self.said = said
        self._wanted = wanted
        self._nearness = nearness
        self._model = model
        self._parent = {part.path: one for one in self.parts for part in one.parts}

    def standings(self, deadline: float) -> Mapping[tuple[str, ...], Standing]:
        """What stands of every property and part.

        Raises:
            BuildFailed: the deadline has passed.
        """
        claimed: dict[tuple[str, ...], list[Claim]] = {part.path: [] for part in self.parts}
        typed: list[tuple[float, Wanted, int, Reading]] = []
        for row, one in enumerate(self.parts):
            if one.kind in (Kind.OBJECT, Kind.UNKNOWN):
                continue
            if monotonic() > deadline:
                raise BuildFailed("the facts could not be read in time")
            mine = self.named(one)
            claimed[one.path].extend(claim for claim in (self._named(one, place, how) for place, how in mine) if claim)
            typed.extend(self._typed(row, one, {place for place, how in mine if how >= Named.WHOLE}))
            claimed[one.path].extend(self._over(one, row, mine))
            claimed[one.path].extend(self._empties(row, one))
        for one, claim in self._taken(typed):
            claimed[one.path].append(claim)
        return {path: settled(found) for path, found in claimed.items()}

    def named(self, one: Wanted) -> list[tuple[int, Named]]:
        """The places of the statements that name `one`, and how; the latest 64."""
        places = self._tagged.get(one.path[-1].casefold(), set()) | {
            place for stem in one.head | one.strong for place in self._by_name.get(stem, ())
        }
        parent = self._parent.get(one.path)
        if parent is not None:
            places |= {place for stem in parent.strong for place in self._by_name.get(stem, ())}
            places |= self._tagged.get(parent.path[-1].casefold(), set())
        found: list[tuple[int, Named]] = []
        for place in sorted(places, reverse=True)[:NAMED_MAX]:
            statement = self.said[place]
            how = readings.named(one, statement)
            if parent is not None and (
                not readings.within(parent, statement) or (how < Named.WHOLE and statement.fields)
            ):
                continue
            if how or parent is not None:
                found.append((place, how))
        return found

    def _named(self, one: Wanted, place: int, how: Named) -> Claim | None:
        statement = self.said[place]
        parent = self._parent.get(one.path)
        if how >= Named.WHOLE:
            told = naming.value_named(one, statement, how)
        elif parent is not None:
            told = naming.part_value(one, parent, statement)
        else:
            told = None
        if told is None:
            return None
        replaces = (how is Named.EXACT and statement.key_words[-1:] != ("add",)) or _turns(statement)
        return Claim(statement, told.value, told.text, replaces=replaces)

    def _over(self, one: Wanted, row: int, mine: Sequence[tuple[int, Named]]) -> Iterator[Claim]:
        """What statements say is over: values that they name, or all, where they name the property and no value."""
        if one.kind is Kind.BOOLEAN:
            return
        how = dict(mine)
        whole = {place for place, named in mine if named >= Named.WHOLE}
        for place in sorted(whole | set(self._candidates(row, one))):
            statement = self.said[place]
            if not isinstance(statement.leaf, str):
                continue
            for clause, over in readings.ended(one, statement):
                named = place in whole or bool(one.strong and one.strong <= clause.stems)
                if over:
                    yield Claim(statement, None, clause.text, over=tuple(over))
                elif named and clause.bears(Mark.ENDED) and not readings.readings(one, statement):
                    yield Claim(statement, None, clause.text, all_over=True)
                elif one.kind is Kind.TEXT and how.get(place):
                    yield Claim(statement, None, clause.text, over=readings.proper_names(clause.text))

    def rows(self, row: int, one: Wanted) -> Iterator[tuple[int, Reading, list[float]]]:
        """Every value that a near statement could give `one`, with its features; for `_typed` and for the fit."""
        setting = self._setting(row, one)
        for place in self._candidates(row, one):
            statement = self.said[place]
            if statement.fields and not isinstance(statement.leaf, str):
                continue
            for reading in readings.readings(one, statement):
                if self._possible(one, statement, reading) and not readings.told_of_another(one, reading.clause):
                    yield place, reading, scoring.features(one, place, statement, reading, setting)

    def _possible(self, one: Wanted, statement: Statement, reading: Reading) -> bool:
        """What no weight decides: a number beside another unit, a truth value that is not said, an aim that is none."""
        candidate = reading.candidate
        if one.kind is Kind.LIST and (one.items is None or one.items.kind is not Kind.CHOICE):
            return False
        if one.kind is Kind.NUMBER and (candidate.unit < 0 or (one.units and candidate.unit <= 0 and not reading.near)):
            return False
        if one.kind is Kind.BOOLEAN and (candidate.plain < 1.0 or not one.strong <= reading.clause.stems):
            return False
        if one.kind in (Kind.NUMBER, Kind.CHOICE, Kind.DATE) and one.aim != readings.aimed(
            one, reading.clause, statement
        ):
            return False
        if one.kind is Kind.DATE and one.ahead and _day(statement) > str(candidate.value):
            return False
        return one.kind is not Kind.DATE or not reading.clause.bears(Mark.ENDED | Mark.DENIED)

    def _empties(self, row: int, one: Wanted) -> Iterator[Claim]:
        """Empty lists, where a near statement denies all of what the property lists."""
        if one.kind is Kind.LIST and one.empty_allowed:
            for place in self._candidates(row, one):
                told = naming.empty(one, self.said[place], Named.NOT)
                if told is not None:
                    yield Claim(self.said[place], told.value, told.text)

    def _typed(self, row: int, one: Wanted, named: set[int]) -> list[tuple[float, Wanted, int, Reading]]:
        return [
            (scoring.probability(self._model, features), one, place, reading)
            for place, reading, features in self.rows(row, one)
            if place not in named
        ]

    def _taken(self, typed: Sequence[tuple[float, Wanted, int, Reading]]) -> Iterator[tuple[Wanted, Claim]]:
        """The values that are likely enough; each place in a text goes to the property it most likely is of."""
        best: dict[tuple[int, str, int], float] = {}
        values: dict[tuple[tuple[str, ...], int], set[str]] = defaultdict(set)
        for probability, one, place, reading in typed:
            values[one.path, place].add(str(reading.candidate.value))
            key = (place, reading.clause.text, reading.candidate.start)
            best[key] = max(best.get(key, 0.0), probability)
        lists: dict[tuple[tuple[str, ...], int], list[tuple[float, Reading, Wanted]]] = defaultdict(list)
        for probability, one, place, reading in typed:
            key = (place, reading.clause.text, reading.candidate.start)
            if probability >= self._model.doubted_from and probability >= best[key]:
                lists[one.path, place].append((probability, reading, one))
        for (path, place), found in lists.items():
            claim = self._claim(place, found, alone=len(values[path, place]) == 1)
            if claim is not None:
                yield found[0][2], claim

    def _claim(self, place: int, found: Sequence[tuple[float, Reading, Wanted]], *, alone: bool) -> Claim | None:
        """What a statement claims by values that are likely enough; `alone` if it holds no other that could be."""
        one, statement = found[0][2], self.said[place]
        sure = [each for each in found if each[0] >= self._model.taken_from]
        if one.kind is Kind.LIST:
            items = [reading for _, reading, _ in found]
            if not sure or readings.more_listed(items, readings.LISTED):
                return None
            listed: list[Json] = list(dict.fromkeys(str(each.candidate.value) for each in items))
            return Claim(statement, listed, naming.said(statement, items[0]), replaces=_turns(statement))
        kept = sure or found
        chosen = readings.chosen([reading for _, reading, _ in kept])
        if chosen is None or not (alone or chosen.near):
            return None
        if one.kind is Kind.CHOICE and readings.more_listed([chosen], readings.ALTERNATIVES):
            return None
        score = max(probability for probability, _, _ in kept)
        said = naming.said(statement, chosen)
        return Claim(statement, chosen.candidate.value, said, replaces=_turns(statement), score=score, weak=not sure)

    def _candidates(self, row: int, one: Wanted) -> Sequence[int]:
        """The places of the statements nearest to `one` by meaning and by shared words, at most 24."""
        if len(one.path) > 1 and one.kind is Kind.TEXT:
            return ()
        shared = Counter[int]()
        for stem in one.strong | one.described:
            shared.update(self._by_text.get(stem, ()))
        scores = self._nearness[row].copy()
        for place, count in shared.items():
            scores[place] += _SHARED_WEIGHT * min(count, _SHARED_MAX)
        kept = np.argsort(-scores, kind="stable")[:NEAREST_MAX]
        return sorted(int(place) for place in kept)

    def _setting(self, row: int, one: Wanted) -> Setting:
        mine = scoring.group(one.kind)
        rivals = [other for other, part in enumerate(self.parts) if other != row and scoring.group(part.kind) == mine]
        nearness = self._nearness[row]
        lead = nearness - self._nearness[rivals].max(axis=0) if rivals else np.full(len(self.said), 0.2)
        return Setting(list(map(float, nearness)), list(map(float, lead)), self._rarity, len(rivals))

    @cached_property
    def _rarity(self) -> Mapping[str, float]:
        counts = Counter(stem for part in self.parts for stem in part.described)
        return {stem: 1.0 / count for stem, count in counts.items()}

    @cached_property
    def _by_text(self) -> Mapping[str, Sequence[int]]:
        made: dict[str, list[int]] = defaultdict(list)
        for place, statement in enumerate(self.said):
            for stem in statement.quick_stems:
                made[stem].append(place)
        return made

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[int]]:
        made: dict[str, list[int]] = defaultdict(list)
        for place, statement in enumerate(self.said):
            for stem in statement.name_stems:
                made[stem].append(place)
        return made

    @cached_property
    def _tagged(self) -> Mapping[str, set[int]]:
        made: dict[str, set[int]] = defaultdict(set)
        for place, statement in enumerate(self.said):
            for name in statement.tagged:
                made[name].add(place)
        return made


def _day(statement: Statement) -> str:
    """The day of a statement, as ISO text."""
    return (_EPOCH + timedelta(microseconds=min(max(0, statement.moment[0]), _LAST_US))).date().isoformat()


def _turns(statement: Statement) -> bool:
    return any(clause.bears(Mark.TURN) for clause in statement.clauses)
