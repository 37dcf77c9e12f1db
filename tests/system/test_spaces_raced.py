"""Two servers of different models on one store: whatever the order, one wins, and no vectors are of the other."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from fakes import Clock
from loom.models.hashing import HashingEmbedder
from loom.models.interface import EmbedderFailed
from loom.storage.indexes import Shelf
from loom.storage.interface import Database, StoreError
from loom.system.guard import SpaceGuard
from loom.system.spaces import IN_USE_US, LOOKS_MAX, Spaces

FIRST, SECOND, THIRD = HashingEmbedder(32), HashingEmbedder(48), HashingEmbedder(64)
SHELF = Shelf("memory", "local")
PATIENCE_S = 20.0
ROUNDS = 15
LONG_AGO_S = IN_USE_US / 1_000_000


class Between(Spaces):
    """Has something happen right after it looked for vectors, as often as it is told."""

    def __init__(self, database: Database, clock: Clock, happens: Callable[[], object], times: int = 1) -> None:
        super().__init__(database, clock)
        self._happens = happens
        self.left = times

    def held(self) -> dict[str, int]:
        found = dict(super().held())
        if self.left:
            self.left -= 1
            self._happens()
        return found


class Server:
    """As much of a server as has to do with its model."""

    def __init__(self, database: Database, spaces: Spaces, embedder: HashingEmbedder) -> None:
        spaces.check(embedder.space, "some")
        self._database = database
        self._embedder = embedder
        self._guard = SpaceGuard(embedder, spaces, look_s=0.0)

    def write(self) -> bool:
        """Write a text with its vector; False when the model gives none."""
        try:
            vectors = self._guard.embed_passages(["a text"], PATIENCE_S)
        except EmbedderFailed:
            return False
        with self._database.transaction("dev", write=True) as tx:
            tx.vectors.add(SHELF, self._embedder.space.dimension, self._embedder.space.fingerprint, vectors)
        return True


def held(database: Database) -> set[str]:
    with database.transaction("dev", write=False) as tx:
        return set(tx.vectors.spaces())


def emptied(database: Database) -> None:
    with database.transaction("dev", write=True) as tx:
        tx.vectors.drop_others(set(), 1_000)


def of_one_model(database: Database, clock: Clock, embedder: HashingEmbedder) -> None:
    """The record and all vectors are of this model."""
    assert Spaces(database, clock).served() == embedder.space.fingerprint
    assert held(database) == {embedder.space.fingerprint}


def refused(database: Database, spaces: Spaces, embedder: HashingEmbedder) -> None:
    with pytest.raises(StoreError, match="The store's vectors are of hashing"):
        Server(database, spaces, embedder)


def test_on_a_fresh_store_the_first_that_writes_wins(database: Database, clock: Clock) -> None:
    spaces = Spaces(database, clock)
    opened = list[Server]()
    late = Server(database, Between(database, clock, lambda: opened.append(Server(database, spaces, FIRST))), SECOND)
    assert opened[0].write()
    assert not late.write()
    of_one_model(database, clock, FIRST)
    refused(database, spaces, SECOND)


def test_one_that_wrote_while_another_looked_wins(database: Database, clock: Clock) -> None:
    spaces = Spaces(database, clock)
    late = Server(database, Between(database, clock, lambda: Server(database, spaces, FIRST).write()), SECOND)
    assert not late.write()
    of_one_model(database, clock, FIRST)


def test_a_server_that_makes_its_first_vectors_is_not_taken_for_gone(database: Database, clock: Clock) -> None:
    """Between its note and its write the store has no vectors."""
    spaces = Spaces(database, clock)
    spaces.adopt(FIRST.space)
    refused(database, spaces, SECOND)
    assert Server(database, spaces, FIRST).write()
    of_one_model(database, clock, FIRST)


def test_one_that_wakes_while_another_looks_keeps_its_store(database: Database, clock: Clock) -> None:
    spaces = Spaces(database, clock)
    first = Server(database, spaces, FIRST)
    assert first.write()
    emptied(database)
    clock.step(seconds=LONG_AGO_S)
    again = Server(database, spaces, FIRST)  # whose last note is long ago by every clock
    refused(database, Between(database, clock, again.write), SECOND)
    of_one_model(database, clock, FIRST)


def test_one_that_wakes_after_another_took_the_store_makes_no_vectors(database: Database, clock: Clock) -> None:
    spaces = Spaces(database, clock)
    spaces.adopt(FIRST.space)
    first = Server(database, spaces, FIRST)
    clock.step(seconds=LONG_AGO_S)
    second = Server(database, spaces, SECOND)
    assert not first.write()
    assert second.write()
    of_one_model(database, clock, SECOND)


def test_of_two_that_take_a_forsaken_store_the_later_one_is_refused(database: Database, clock: Clock) -> None:
    spaces = Spaces(database, clock)
    spaces.adopt(FIRST.space)
    clock.step(seconds=LONG_AGO_S)
    taken = list[Server]()
    refused(database, Between(database, clock, lambda: taken.append(Server(database, spaces, SECOND))), THIRD)
    assert taken[0].write()
    of_one_model(database, clock, SECOND)


def test_a_record_that_never_stands_still_is_an_error(database: Database, clock: Clock) -> None:
    spaces = Spaces(database, clock)
    spaces.adopt(FIRST.space)
    clock.step(seconds=LONG_AGO_S)

    def restless() -> None:
        spaces.use(FIRST.space)
        clock.step(seconds=LONG_AGO_S)

    with pytest.raises(StoreError, match="changes all the time"):
        Server(database, Between(database, clock, restless, times=LOOKS_MAX), SECOND)


@pytest.mark.parametrize("forsaken", [False, True])
def test_of_many_at_once_one_wins(database: Database, clock: Clock, forsaken: bool) -> None:
    spaces = Spaces(database, clock)
    for number in range(ROUNDS):
        models = [HashingEmbedder(16 + 8 * place + number) for place in range(4)]
        with database.transaction("dev", write=True) as tx:
            tx.vectors.drop_others(set(), 1_000)
        clock.step(seconds=LONG_AGO_S)
        if forsaken or number:
            spaces.adopt(FIRST.space)
            clock.step(seconds=LONG_AGO_S)
        together = Barrier(len(models))

        def run(model: HashingEmbedder, together: Barrier = together) -> bool:
            together.wait(PATIENCE_S)
            try:
                return Server(database, spaces, model).write()
            except StoreError:
                return False

        with ThreadPoolExecutor(len(models)) as pool:
            won = [model for model, wrote in zip(models, pool.map(run, models), strict=True) if wrote]
        (winner,) = won
        of_one_model(database, clock, winner)
