"""Which embedding space the store's vectors are of: one record for all orgs, with the system's rows.

The record is switched in one transaction, so every server sees it change at one moment. A store whose record says
nothing yet has no vectors, or was filled before there was a record; then its vectors tell.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from loom.canonical import encoded
from loom.models import canaries, sources
from loom.models.facts import Facts, facts_in
from loom.models.foreign import Family
from loom.models.interface import Space
from loom.storage.interface import SYSTEM_ORG, Database, Row, StoreError, Transaction

SERVING: Final = "serving"
BUILDING: Final = "building"
KNOWN: Final = "known"
CLEARING: Final = "clearing"
ANEW: Final = "anew"
"""Of a run's note, which stands in the record as a space of its own: what there is of the space that it fills is to go
first, or has gone and all that there is was made anew."""

LOCK: Final = "embedding_space"

IN_USE_US: Final = 600 * 1_000_000
"""How long after a server noted that it makes vectors of a space the store may have some that nobody sees yet: longer
than from one note to the next (`guard.NOTE_S`) and from there to the write of what was embedded then."""

IN_USE: Final = " (none now, but a server made some or began to in the last ten minutes)"
LOOKS_MAX: Final = 8
"""How often a store is looked at whose record changes meanwhile."""

EVERY = """
SELECT fingerprint, state, described, measured, recorded_at FROM embedding_space
WHERE org = :org ORDER BY fingerprint
"""
SERVED = "SELECT fingerprint FROM embedding_space WHERE org = :org AND state = 'serving' LIMIT 1"
PUT = """
INSERT INTO embedding_space (org, fingerprint, state, source, model, dimension, described, measured, recorded_at)
VALUES (:org, :fingerprint, :state, :source, :model, :dimension, :described, :measured, :recorded_at)
ON CONFLICT (org, fingerprint) DO UPDATE SET state = excluded.state, recorded_at = excluded.recorded_at,
    measured = CASE WHEN excluded.measured = '' THEN embedding_space.measured ELSE excluded.measured END
"""
LEAVE = "UPDATE embedding_space SET state = 'known' WHERE org = :org AND state = :state"
GONE = "DELETE FROM embedding_space WHERE org = :org AND state IN (:states)"
USED = """
UPDATE embedding_space SET recorded_at = :now
WHERE org = :org AND fingerprint = :fingerprint AND state = 'serving'
"""


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kept:
    """A space on record.

    Attributes:
        space: it.
        state: what it is to the store: serving, building or known.
        facts: what was measured in it; None when nothing needed to be.
        recorded_at: when that was noted, or when a server last noted that it makes vectors of it; microseconds UTC.
    """

    space: Space
    state: str
    facts: Facts | None
    recorded_at: int


@dataclass(frozen=True, slots=True)
class Book:
    """Every space on record."""

    kept: Sequence[Kept]

    def of_state(self, state: str) -> Space | None:
        """The one space of a state, or None."""
        return next((one.space for one in self.kept if one.state == state), None)

    @property
    def used_at(self) -> int:
        """When the space that searches use was last noted as used, microseconds UTC; 0 when there is none."""
        return next((one.recorded_at for one in self.kept if one.state == SERVING), 0)

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

    def named(self, space: Space) -> Space:
        """`space` under the name by which the store knows its vectors, which an earlier release may have given."""
        book = self.book()
        known = [one for one in book.kept if one.space == space]
        if known:
            first = min(known, key=lambda one: (one.state != SERVING, one.state != BUILDING))
            return replace(space, known_as=first.space.known_as)
        if book.serving is None and space.first_fingerprint in self.held():
            return replace(space, known_as=space.first_fingerprint)
        return space

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
        """Note what was measured in a space, whatever it is to the store.

        When the model behind its name is another one than was measured before, a run that made its vectors anew does
        not go on where it stopped.
        """
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)
            known = {one.space.fingerprint: one for one in _book(tx).kept}
            before = known.get(space.fingerprint)
            self._put(tx, space, KNOWN if before is None else before.state, facts)
            measured = None if before is None else before.facts
            if measured is not None and not canaries.agree(measured.canaries, facts.canaries):
                tx.run(GONE, states=[ANEW])

    def build(self, space: Space, *, anew: bool = False) -> bool:
        """Note that a reindex fills `space`; whether what there is of it is to go first: call `cleared` then.

        Another space that was being filled is given up. The one that searches use is not filled beside itself.

        Args:
            space: what is filled.
            anew: whether nothing counts that was made before; but a run that was begun so goes on.
        """
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)
            book, note = _book(tx), _note(space)
            run = next((one.state for one in book.kept if one.space == note), "")
            if book.building != space:
                tx.run(LEAVE, state=BUILDING)
                if book.serving != space:
                    # Vectors of an earlier time when the store was of this space may be of texts that changed since.
                    self._put(tx, space, BUILDING)
                    run = CLEARING
            if anew and run != ANEW:
                run = CLEARING
            tx.run(GONE, states=[CLEARING, ANEW])
            if run:
                self._put(tx, note, run)
            return run == CLEARING

    def cleared(self, space: Space, *, anew: bool) -> None:
        """Note that what there was of `space` has gone. With `anew` it is kept in mind until `finish`."""
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)
            if any(one.space == _note(space) and one.state == CLEARING for one in _book(tx).kept):
                tx.run(GONE, states=[CLEARING])
                if anew:
                    self._put(tx, _note(space), ANEW)

    def finish(self, space: Space) -> None:
        """Note that a reindex has filled `space`: the next one that makes it anew begins from nothing."""
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)
            if any(one.space == _note(space) for one in _book(tx).kept):
                tx.run(GONE, states=[CLEARING, ANEW])

    def switch(self, space: Space) -> bool:
        """Let searches use `space`, which a reindex has filled; False when another reindex began meanwhile."""
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)
            if _book(tx).building != space:
                return False
            tx.run(LEAVE, state=SERVING)
            self._put(tx, space, SERVING)
            return True

    def use(self, space: Space) -> bool:
        """Note that vectors of `space` are about to be made for the store; False when it is of another space now.

        For `IN_USE_US` from now the store stays of this space, though it may have no vectors yet.
        """
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)  # not between another one's look and what it writes
            return tx.run(USED, fingerprint=space.fingerprint, now=self._clock_us()) == 1

    def _replace(self, space: Space, seen: Book) -> bool:
        """Make `space` the store's; False when its record is not what was seen any more, or is in use."""
        with self._database.transaction(SYSTEM_ORG, write=True) as tx:
            tx.lock(LOCK)
            book = _book(tx)
            if (book.serving, book.used_at) != (seen.serving, seen.used_at):
                return False
            if book.serving is not None:
                tx.run(LEAVE, state=SERVING)
                tx.run(LEAVE, state=BUILDING)
            self._put(tx, space, SERVING)
            return True

    def held(self) -> Mapping[str, int]:
        """Every space that some org has vectors of, with its dimension. Looks at every org."""
        found: dict[str, int] = {}
        for org in self._database.orgs():
            with self._database.transaction(org, write=False) as tx:
                found |= tx.vectors.spaces()
        return found

    def check(self, space: Space, value: str) -> None:
        """See to it that the store's vectors are of `space`, and note it where that was not on record.

        A store without vectors takes any space, unless a server has noted lately that it makes vectors of another. The
        record is replaced only as it was when the vectors were looked for: a server notes that it makes some before it
        does, so those that nobody saw have a note that was not seen either.

        Args:
            space: what the configured embedder makes.
            value: the setting that names the embedder.

        Raises:
            StoreError: the store has vectors of another space; the message says which, and the two ways out.
        """
        for _ in range(LOOKS_MAX):
            book = self.book()
            if book.serving == space or self._taken(book, space, value):
                return
        raise StoreError("The record of the embedding model that the store's vectors are of changes all the time.")

    def _taken(self, book: Book, space: Space, value: str) -> bool:
        """Take the store for `space` if it may be; False when its record changed meanwhile. Raises as `check`."""
        held = self.held()
        if book.serving is not None:
            if held or self._clock_us() - book.used_at < IN_USE_US:
                stored = told(book.serving) + ("" if held else IN_USE)
                raise StoreError(_refusal(stored, space, value, begun=book.building == space))
            return self._replace(space, book)
        if not held:
            return True
        others = {name: dimension for name, dimension in held.items() if name != space.fingerprint}
        begun = book.building == space
        if space.fingerprint not in held or (begun and others):
            dimensions = " and ".join(f"{dimension} dimensions" for dimension in sorted(others.values()))
            raise StoreError(_refusal(f"another model ({dimensions})", space, value, begun=begun))
        if others:
            log.warning(
                "some of the store's vectors are of another model; loom reindex --embedder %s mends that", value
            )
        return self._replace(space, book)

    def _put(self, tx: Transaction, space: Space, state: str, facts: Facts | None = None) -> None:
        tx.run(
            PUT,
            fingerprint=space.fingerprint,
            state=state,
            source=space.source,
            model=space.model,
            dimension=space.dimension,
            described=encoded(space.described()),
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


def _note(space: Space) -> Space:
    """What stands in the record for a run that fills `space`; no model has such vectors."""
    kind = {"source": "reindex", "weights_sha256": "", "tokenizer_sha256": "", "known_as": ""}
    return replace(space, quantisation=space.fingerprint, **kind)


def _book(tx: Transaction) -> Book:
    return Book([_kept(row) for row in tx.rows(EVERY)])


def _kept(row: Row) -> Kept:
    space, name = Space(**json.loads(cast("str", row["described"]))), cast("str", row["fingerprint"])
    return Kept(
        space=space if space.fingerprint == name else replace(space, known_as=name),
        state=cast("str", row["state"]),
        facts=facts_in(cast("str", row["measured"])),
        recorded_at=cast("int", row["recorded_at"]),
    )
