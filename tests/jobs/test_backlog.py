"""How much work waits, and that asking often costs nothing."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import pytest

from fakes import Clock
from loom.jobs import backlog, outbox
from loom.jobs.backlog import Backlog
from loom.storage.interface import Database, StoreError, Transaction


class Watched:
    """A store that counts transactions, and fails while `failing`."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.begun = 0
        self.failing = False
        self.look = database.look
        self.orgs, self.check, self.maintain = database.orgs, database.check, database.maintain
        self.share_wakes, self.shared_counts, self.close = (
            database.share_wakes,
            database.shared_counts,
            database.close,
        )

    @contextmanager
    def transaction(
        self, org: str, *, write: bool, may_lag: bool = False, turn: Sequence[str] = ()
    ) -> Generator[Transaction]:
        if self.failing:
            raise StoreError("busy")
        self.begun += 1
        with self.database.transaction(org, write=write, may_lag=may_lag, turn=turn) as tx:
            yield tx


class Seconds:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def ask(database: Database, org: str, *subjects: str) -> None:
    with database.transaction(org, write=True) as tx:
        for subject in subjects:
            outbox.enqueue(tx, "kind", subject)


def test_it_counts_over_orgs_and_knows_the_oldest(database: Database, clock: Clock) -> None:
    seconds, watched = Seconds(), Watched(database)
    seen = Backlog(watched, clock, seconds)
    assert (seen.waiting(), seen.oldest_s()) == (0.0, 0.0)
    ask(database, "acme", "a", "b")
    clock.step(seconds=40)
    ask(database, "rival", "c")
    clock.step(seconds=2)
    assert seen.waiting() == 0.0
    seconds.now += backlog.REFRESH_S
    assert seen.waiting() == 3.0
    assert seen.oldest_s() == pytest.approx(42.0)
    begun = watched.begun
    for _ in range(50):
        seen.waiting()
        seen.oldest_s()
    assert watched.begun == begun
    with database.transaction("acme", write=True) as tx:
        outbox.done(tx, outbox.take(tx, clock() + 1, 10))
    seconds.now += backlog.REFRESH_S
    assert seen.waiting() == 1.0
    assert seen.oldest_s() == pytest.approx(2.0)


def test_a_failing_store_leaves_the_numbers_as_they_were(sqlite_database: Database, clock: Clock) -> None:
    seconds, watched = Seconds(), Watched(sqlite_database)
    seen = Backlog(watched, clock, seconds)
    ask(sqlite_database, "acme", "a")
    assert seen.waiting() == 1.0
    watched.failing = True
    seconds.now += backlog.REFRESH_S
    assert seen.waiting() == 1.0


def test_many_orgs_are_looked_at_in_turn_and_many_jobs_in_part(
    sqlite_database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "ORGS_MAX", 2)
    monkeypatch.setattr(backlog, "COUNTED_MAX", 3)
    seconds, watched = Seconds(), Watched(sqlite_database)
    for number in range(5):
        ask(sqlite_database, f"org{number}", "a")
    seen = Backlog(watched, clock, seconds)
    counts: list[float] = []
    for _ in range(4):
        counts.append(seen.waiting())
        seconds.now += backlog.REFRESH_S
    assert counts == [2.0, 4.0, 5.0, 5.0]
    ask(sqlite_database, "org4", *"bcdefg")
    for _ in range(3):
        seen.waiting()
        seconds.now += backlog.REFRESH_S
    assert seen.waiting() == 7.0
