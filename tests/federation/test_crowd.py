"""Many searches at once: they share few threads and fewer read connections, and none waits for another in a ring."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

import pytest

import fakes
from fakes import LIMITS, ORG, Clock, Core
from loom import federation
from loom.errors import Unavailable
from loom.ledger import embedding
from loom.ops.spec import Limits
from loom.planes import memory, profile
from loom.planes.leg import Leg, Question, Section
from loom.storage.interface import Database, Transaction
from loom.storage.sqlite import SqliteSettings

CALLERS = 64
LEG_THREADS = 16
READERS = SqliteSettings().readers_max
WAIT_S = 30.0
WHOLE = replace(LIMITS, leg_timeout_s=WAIT_S)
HURRIED = replace(LIMITS, leg_timeout_s=0.05)
BRIEF = replace(LIMITS, leg_timeout_s=0.5)
"""`concurrent.futures.wait` is not told of a future that a shutdown cancelled, so the legs' time runs out."""

P = ParamSpec("P")
Made = TypeVar("Made")

CoreWith = Callable[[list[Leg], Limits], Core]


@pytest.fixture(name="legs_pool")
def _legs_pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(LEG_THREADS) as pool:
        yield pool


@pytest.fixture(name="core_with")
def _core_with(database: Database, clock: Clock, legs_pool: ThreadPoolExecutor) -> CoreWith:
    def make(legs: list[Leg], limits: Limits) -> Core:
        ops = [*memory.OPS, *profile.OPS, *federation.ops(legs)]
        core = fakes.core_of(ops, embedding.JOBS, profile.LATE, database, clock, legs_pool)
        core.call("memory.set", memory_key="team/tea", value="We drink green tea at four.")
        return replace(core, dispatcher=replace(core.dispatcher, limits=limits))

    return make


def search(core: Core) -> dict[str, Any]:
    return core.call("search.query", query="tea")


class Held:
    """A plane that keeps its read connection until it is let go."""

    def __init__(self) -> None:
        self.inside = threading.Semaphore(0)
        self.let_go = threading.Event()

    def ask(self, tx: Transaction, question: Question) -> Section:
        assert (tx.org, question.query) == (ORG, "tea")
        self.inside.release()
        self.let_go.wait(WAIT_S)
        return Section({"results": []}, 0)


def test_every_search_of_a_crowd_is_answered_whole(core_with: CoreWith) -> None:
    core = core_with([memory.LEG, profile.LEG], WHOLE)
    with ThreadPoolExecutor(CALLERS) as callers:
        asked = [callers.submit(search, core) for _ in range(CALLERS)]
        answers = [one.result(WAIT_S) for one in asked]
    assert {tuple(answer["degraded"]) for answer in answers} == {()}
    assert {answer["memory"]["results"][0]["memory_key"] for answer in answers} == {"team/tea"}


def test_a_crowd_behind_slow_legs_is_answered_and_leaves_nothing_behind(core_with: CoreWith) -> None:
    held = Held()
    core = core_with([Leg("knowledge", held.ask), memory.LEG], HURRIED)
    with ThreadPoolExecutor(CALLERS) as callers:
        try:
            asked = [callers.submit(search, core) for _ in range(CALLERS)]
            for _ in range(READERS):
                assert held.inside.acquire(timeout=WAIT_S), "every read connection is taken"
        finally:
            held.let_go.set()
        answers = [one.result(WAIT_S) for one in asked]
    assert {name for answer in answers for name in answer["degraded"]} <= {"knowledge", "memory", "embedder"}
    calm = replace(core, dispatcher=replace(core.dispatcher, limits=WHOLE))
    assert search(calm)["degraded"] == []


def test_a_search_while_the_server_stops_is_refused(core_with: CoreWith, legs_pool: ThreadPoolExecutor) -> None:
    core = core_with([memory.LEG], WHOLE)
    legs_pool.shutdown()
    with pytest.raises(Unavailable):
        search(core)


class Counted(ThreadPoolExecutor):
    """One thread; tells of every submission."""

    def __init__(self) -> None:
        super().__init__(1)
        self.submitted = threading.Semaphore(0)

    def submit(self, fn: Callable[P, Made], /, *args: P.args, **kwargs: P.kwargs) -> Future[Made]:
        future = super().submit(fn, *args, **kwargs)
        self.submitted.release()
        return future


def test_legs_that_a_stop_gave_up_are_left_out(database: Database, clock: Clock) -> None:
    let_go = threading.Event()
    legs = [memory.LEG, profile.LEG]
    with Counted() as pool, ThreadPoolExecutor(1) as caller:
        core = fakes.core_of(federation.ops(legs), {}, {}, database, clock, pool)
        core = replace(core, dispatcher=replace(core.dispatcher, limits=BRIEF))
        try:
            pool.submit(let_go.wait, WAIT_S)
            asked = caller.submit(search, core)
            for _ in (None, *legs):
                assert pool.submitted.acquire(timeout=WAIT_S)
            pool.shutdown(wait=False, cancel_futures=True)
            assert asked.result(WAIT_S)["degraded"] == ["memory", "profile"]
        finally:
            let_go.set()
