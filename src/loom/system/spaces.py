"""Which embedding space the store's vectors are of: one record for all orgs, with the system's rows.

The record is switched in one transaction, so every server sees it change at one moment. A store whose record says
nothing yet has no vectors, or was filled before there was a record; then its vectors tell.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, cast

from loom.canonical import encoded
from loom.models import sources
from loom.models.facts import Facts, facts_in
from loom.models.foreign import Family
from loom.models.interface import Space
from loom.storage.interface import SYSTEM_ORG, Database, Row, StoreError, Transaction

SERVING: Final = "serving"
BUILDING: Final = "building"
KNOWN: Final = "known"
LOCK: Final = "embedding_space"

EVERY = "SELECT fingerprint, state, described, measured FROM embedding_space WHERE org = :org ORDER BY fingerprint"
SERVED = "SELECT fingerprint FROM embedding_space WHERE org = :org AND state = 'serving' LIMIT 1"
PUT = """
INSERT INTO embedding_space (org, fingerprint, state, source, model, dimension, described, measured, recorded_at)
VALUES (:org, :fingerprint, :state, :source, :model, :dimension, :described, :measured, :recorded_at)
ON CONFLICT (org, fingerprint) DO UPDATE SET state = excluded.state, recorded_at = excluded.recorded_at,
    measured = CASE WHEN excluded.measured = '' THEN embedding_space.measured ELSE excluded.measured END
"""
LEAVE = "UPDATE embedding_space SET state = 'known' WHERE org = :org AND state = :state"


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kept:
    """A space on record.

    Attributes:
        space: it.
        state: what it is to the store: serving, building or known.
        facts: what was measured in it; None when nothing needed to be.
    """

    space: Space
    state: str
    facts: Facts | None


@dataclass(frozen=True, slots=True)
class Book:
    """Every space on record."""

    kept: Sequence[Kept]

    def of_state(self, state: str) -> Space | None:
        """The one space of a state, or None."""
        return next((one.space for one in self.kept if one.state == state), None)

    @property
    def serving(self) -> Space | None:
        """The space that searches use; None in a store that never had vectors, or has them from before."""
        return self.of_state(SERVING)

    @property
    def building(self) -> Space | None:
        """The space that a reindex is filling; None when none is."""
        return self.of_state(BUILDING)


class Spaces:
    """The record, in transactions of its own. Safe for threads; call it in no transaction.

    Args:
        database: the store.
        clock_us: now, in microseconds UTC.
    """

    def __init__(self, database: Database, clock_us: Callable[[], int]) -> None:
        self._database = database
        self._clock_us = clock_us

    def book(self) -> Book:
        """All that is on record."""
        with self._database.transaction(SYSTEM_ORG, write=False) as tx:
            return _book(tx)

    def find(self, family: Family) -> tuple[Space, Facts] | None:
        """The one space of a family in which something was measured, the store's own first; None when none is sure."""
        states = (SERVING, BUILDING)
        found = [(one.space, one.facts, one.state) for one in self.book().kept if family.covers(one.space)]
        measured = [(space, facts, state) for space, facts, state in found if facts is not None]
        for wanted in states:
            for space, facts, state in measured:
                if state == wanted:
                    return space, facts
        return measured[0][:2] if len(measured) == 1 else None

    def served(self) -> str:
        """The fingerprint of the space that searches use; empty when the record names none."""
        row = self._database.look(SYSTEM_ORG, SERVED)
        return cast("str", row["fingerprint"]) if row else ""

    def adopt(self, space: Space) -> str:
        """Make `space` the store's, unless it has one; the fingerprint of the one it has then."""
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)
            serving = _book(tx).serving
            if serving is not None:
                return serving.fingerprint
            self._put(tx, space, SERVING)
            return space.fingerprint

    def keep(self, space: Space, facts: Facts) -> None:
        """Note what was measured in a space, whatever it is to the store."""
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)
            states = {one.space.fingerprint: one.state for one in _book(tx).kept}
            self._put(tx, space, states.get(space.fingerprint, KNOWN), facts)

    def build(self, space: Space) -> bool:
        """Note that a reindex fills `space`; False when it goes on with what an earlier one began.

        Another space that was being filled is given up. The one that searches use is not filled beside itself: then
        nothing is noted but that no other is filled.
        """
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)
            book = _book(tx)
            if book.building == space:
                return False
            tx.run(LEAVE, state=BUILDING)
            if book.serving != space:
                self._put(tx, space, BUILDING)
            return True

    def switch(self, space: Space) -> bool:
        """Let searches use `space`, which a reindex has filled; False when another reindex began meanwhile."""
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)
            if _book(tx).building != space:
                return False
            tx.run(LEAVE, state=SERVING)
            self._put(tx, space, SERVING)
            return True

    def replace(self, space: Space) -> None:
        """Make `space` the store's whatever it was; only for a store without vectors."""
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)
            tx.run(LEAVE, state=SERVING)
            tx.run(LEAVE, state=BUILDING)
            self._put(tx, space, SERVING)

    def held(self) -> Mapping[str, int]:
        """Every space that some org has vectors of, with its dimension. Looks at every org."""
        found: dict[str, int] = {}
        for org in self._database.orgs():
            with self._database.transaction(org, write=False) as tx:
                found |= tx.vectors.spaces()
        return found

    def check(self, space: Space, value: str) -> None:
        """See to it that the store's vectors are of `space`, and note it where that was not on record.

        A store without vectors takes any space.

        Args:
            space: what the configured embedder makes.
            value: the setting that names the embedder.

        Raises:
            StoreError: the store has vectors of another space; the message says which, and the two ways out.
        """
        book = self.book()
        if book.serving == space:
            return
        held = self.held()
        if not held:
            if book.serving is not None:
                self.replace(space)
            return
        if book.serving is not None:
            raise StoreError(_refusal(told(book.serving), space, value, begun=book.building == space))
        others = {name: dimension for name, dimension in held.items() if name != space.fingerprint}
        begun = book.building == space
        if space.fingerprint not in held or (begun and others):
            dimensions = " and ".join(f"{dimension} dimensions" for dimension in sorted(others.values()))
            raise StoreError(_refusal(f"another model ({dimensions})", space, value, begun=begun))
        if others:
            log.warning(
                "some of the store's vectors are of another model; loom reindex --embedder %s mends that", value
            )
        self.adopt(space)

    def _put(self, tx: Transaction, space: Space, state: str, facts: Facts | None = None) -> None:
        tx.run(
            PUT,
            fingerprint=space.fingerprint,
            state=state,
            source=space.source,
            model=space.model,
            dimension=space.dimension,
            described=encoded(asdict(space)),
            measured="" if facts is None else facts.told(),
            recorded_at=self._clock_us(),
        )


def told(space: Space) -> str:
    """A space in a person's words."""
    word = sources.word_for(space)
    named = f"{word}, " if word else ""
    return f"{space.model} ({named}{space.dimension} dimensions, from {space.source}, space {space.fingerprint})"


def _refusal(stored: str, space: Space, value: str, *, begun: bool) -> str:
    again = ", which was begun and goes on where it stopped" if begun else ""
    return (
        f"The store's vectors are of {stored}, and the setting embedder (LOOM_EMBEDDER={value}) makes vectors of"
        f" {told(space)}: set it back to what it was, or make the store's vectors anew with"
        f" `loom reindex --embedder {value}`{again}."
    )


def _book(tx: Transaction) -> Book:
    return Book([_kept(row) for row in tx.rows(EVERY)])


def _kept(row: Row) -> Kept:
    fields = json.loads(cast("str", row["described"]))
    return Kept(Space(**fields), cast("str", row["state"]), facts_in(cast("str", row["measured"])))
