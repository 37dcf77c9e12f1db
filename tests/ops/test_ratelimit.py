"""Limits that all servers of a store keep together."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from fakes import Clock, Core, core_of
from loom.access.caller import Caller, Role
from loom.errors import RateLimited
from loom.ops.dispatch import Dispatcher
from loom.ops.ratelimit import SLICES, SharedPerMinute, seconds_to_room, slice_of
from loom.ops.spec import Kind
from loom.planes import memory
from loom.storage.interface import Counted, Database
from loom.storage.migrate import from_package
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.settings import PostgresSettings
from postgres_server import TestServer

LIMIT = 200
CALLER = Caller("token-a", Role.WRITER, {"org": "dev"})


class Counts:
    """Counts in memory, and how often they were asked."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, int], int] = {}
        self.asked = 0
        self._mutex = threading.Lock()

    def add(self, name: str, period: int, amount: Callable[[int, int], int], unused: tuple[int, int]) -> Counted:
        then, left = unused
        with self._mutex:
            self.asked += 1
            if (name, then) in self.kept:
                self.kept[name, then] -= left
            past, present = self.kept.get((name, period - 1), 0), self.kept.get((name, period), 0)
            added = amount(past, present)
            self.kept[name, period] = present + added
        return Counted(past, present, added)


def passed(limit: SharedPerMinute, tries: int, principal: str = "a", kind: Kind = Kind.WRITE) -> int:
    """How many of so many calls are let through."""
    count = 0
    for _ in range(tries):
        try:
            limit.take(principal, kind)
        except RateLimited:
            continue
        count += 1
    return count


def servers(count: int, clock: Clock, counts: Counts) -> list[SharedPerMinute]:
    return [SharedPerMinute(counts, LIMIT, LIMIT, clock) for _ in range(count)]


def test_one_server_lets_exactly_the_limit_pass(clock: Clock) -> None:
    counts = Counts()
    (one,) = servers(1, clock, counts)
    assert passed(one, LIMIT + 50) == LIMIT
    assert counts.asked < LIMIT / 4, "the store is not asked for each call"
    assert passed(one, 50, kind=Kind.READ) == 50, "reads count apart"
    assert passed(one, 50, principal="b") == 50, "callers count apart"


def test_a_flood_of_refused_calls_asks_once_a_second(clock: Clock) -> None:
    counts = Counts()
    (one,) = servers(1, clock, counts)
    passed(one, LIMIT)
    asked = counts.asked
    assert passed(one, 1000) == 0
    assert counts.asked == asked + 1
    clock.step(seconds=2)
    passed(one, 1000)
    assert counts.asked == asked + 2


@pytest.mark.parametrize("count", [2, 3, 5])
def test_several_servers_in_turn_pass_the_limit_but_for_what_one_holds(clock: Clock, count: int) -> None:
    several = servers(count, clock, Counts())
    total = sum(passed(several[turn % count], 1) for turn in range(2 * LIMIT))
    assert LIMIT - count * LIMIT // SLICES <= total <= LIMIT


def test_a_server_that_gets_all_calls_is_not_kept_short_by_idle_ones(clock: Clock) -> None:
    busy, *idle = servers(10, clock, Counts())
    assert [passed(one, 1) for one in idle] == [1] * len(idle)
    assert passed(busy, 2 * LIMIT) >= LIMIT - 4 * len(idle)


def test_calls_now_and_then_are_never_refused_however_many_servers(clock: Clock) -> None:
    several = servers(40, clock, Counts())
    for _ in range(5):
        assert [passed(one, 1) for one in several] == [1] * 40
        clock.step(minutes=1)


def test_the_window_slides(clock: Clock) -> None:
    (one,) = servers(1, clock, Counts())
    assert passed(one, LIMIT) == LIMIT
    clock.step(seconds=59)
    assert passed(one, LIMIT) == 0
    clock.step(seconds=31)
    assert passed(one, LIMIT) == LIMIT // 2
    clock.step(minutes=2)
    assert passed(one, 2 * LIMIT) == LIMIT


def test_a_refused_call_is_told_when_one_passes(clock: Clock) -> None:
    (one,) = servers(1, clock, Counts())
    for seconds in (0, 0, 61, 30):
        clock.step(seconds=seconds)
        passed(one, LIMIT)
        with pytest.raises(RateLimited) as refused:
            one.take("a", Kind.WRITE)
        clock.step(seconds=refused.value.retry_after_s or 0)
        assert passed(one, 1) == 1


@pytest.mark.parametrize(
    ("room", "wanted", "given"), [(0, 9, 0), (-3, 9, 0), (1, 9, 1), (7, 9, 1), (40, 9, 9), (40, 99, 10)]
)
def test_slices_shrink_with_what_is_left(room: int, wanted: int, given: int) -> None:
    assert slice_of(room, wanted) == given


def test_the_wait_is_until_the_window_has_room() -> None:
    assert seconds_to_room(Counted(past=10, present=5, added=0), 10, 0.5) == pytest.approx(60 * 0.1)
    assert seconds_to_room(Counted(past=0, present=10, added=0), 10, 0.5) == pytest.approx(60 * 0.6)


@pytest.fixture
def stores(postgres: TestServer, clock: Clock) -> Iterator[list[Database]]:
    """Two servers' own ways to one store."""
    with postgres.migrated(from_package("loom")) as url:
        settings = PostgresSettings(clock_ns=clock.nanoseconds)
        opened = [PostgresDatabase(url, from_package("loom"), settings) for _ in range(2)]
        yield list(opened)
        for one in opened:
            one.close()


@pytest.fixture
def dispatchers(stores: list[Database], clock: Clock, pool: ThreadPoolExecutor) -> list[Core]:
    def limited(store: Database) -> Core:
        core = core_of(memory.OPS, {}, {}, store, clock, pool)
        counts = store.shared_counts()
        assert counts is not None
        limit = SharedPerMinute(counts, LIMIT, LIMIT, clock)
        dispatcher: Dispatcher = replace(core.dispatcher, rate_limit=limit)
        return replace(core, dispatcher=dispatcher)

    return [limited(store) for store in stores]


def test_two_dispatchers_of_one_store_keep_the_limit_together(dispatchers: list[Core], clock: Clock) -> None:
    def flood(core: Core) -> int:
        count = 0
        for _ in range(LIMIT):
            try:
                core.call("memory.get", caller=CALLER, memory_key="k")
            except RateLimited:
                continue
            count += 1
        return count

    def both() -> int:
        # Two threads a server, so that one server's calls at the same time are met as well.
        with ThreadPoolExecutor(4) as threads:
            return sum(threads.map(flood, [*dispatchers, *dispatchers]))

    assert LIMIT - 2 * LIMIT // SLICES <= both() <= LIMIT
    clock.step(seconds=90)
    assert both() <= LIMIT
    clock.step(minutes=3)
    assert LIMIT - 2 * LIMIT // SLICES <= both() <= LIMIT


def test_an_embedded_store_counts_in_its_own_process(sqlite_database: Database) -> None:
    assert sqlite_database.shared_counts() is None
