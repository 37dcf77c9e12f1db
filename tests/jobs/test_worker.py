"""The worker: jobs of woken orgs, retries, sweeps, late notes, and its end."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import pytest

from fakes import Clock, bench_of
from loom.canonical import Json
from loom.jobs import outbox
from loom.jobs.handlers import Bench, Handler, Sweep
from loom.jobs.late import LateQueue
from loom.jobs.worker import TOGETHER_MAX, Timing, Worker
from loom.models.hashing import HashingEmbedder
from loom.storage.interface import SYSTEM_ORG, Database, StoreError

WAIT_S = 60.0
STORED_TEXT = "my secret"
SELDOM = Timing(poll_s=3600, sweep_s=3600, maintain_s=3600, late_s=3600)


@pytest.fixture
def bench(database: Database, clock: Clock) -> Bench:
    return bench_of(database, HashingEmbedder(), clock)


def made(
    bench: Bench, handlers: Mapping[str, Handler], sweeps: Sequence[Sweep] = (), timing: Timing = SELDOM
) -> Worker:
    return Worker(bench, handlers, sweeps, LateQueue(bench, {}), timing)


def enqueue(bench: Bench, kind: str, *subjects: str, org: str = "dev") -> None:
    with bench.database.transaction(org, write=True) as tx:
        for subject in subjects:
            outbox.enqueue(tx, kind, subject)


def waiting(bench: Bench, org: str = "dev") -> int:
    with bench.database.transaction(org, write=False) as tx:
        return outbox.waiting(tx)


class Seen:
    """A handler that keeps what it was given."""

    def __init__(self, fails_on: str = "") -> None:
        self.calls: list[list[str]] = []
        self.fails_on = fails_on
        self.changed = threading.Condition()

    def __call__(self, bench: Bench, org: str, subjects: Sequence[str]) -> None:
        del bench, org
        with self.changed:
            self.calls.append(sorted(subjects))
            self.changed.notify_all()
        if self.fails_on in subjects:
            raise ValueError(STORED_TEXT)

    def wait(self, until: Callable[[], bool]) -> bool:
        with self.changed:
            return self.changed.wait_for(until, WAIT_S)


def test_jobs_are_done_together_and_struck_off(bench: Bench) -> None:
    seen = Seen()
    subjects = [f"{number:03}" for number in range(TOGETHER_MAX + 3)]
    enqueue(bench, "one", *subjects)
    assert made(bench, {"one": seen}).work("dev") == TOGETHER_MAX + 3
    assert sorted(map(len, seen.calls)) == [3, TOGETHER_MAX]
    assert sorted(subject for call in seen.calls for subject in call) == subjects
    assert waiting(bench) == 0


def test_kinds_are_kept_apart(bench: Bench) -> None:
    one, two = Seen(), Seen()
    enqueue(bench, "one", "a", "b")
    enqueue(bench, "two", "c")
    made(bench, {"one": one, "two": two}).work("dev")
    assert (one.calls, two.calls) == ([["a", "b"]], [["c"]])


def test_a_failed_job_comes_back_later_and_alone(bench: Bench, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(fails_on="bad")
    enqueue(bench, "one", "bad", "good")
    worker = made(bench, {"one": seen})
    with caplog.at_level(logging.ERROR):
        worker.work("dev")
    assert seen.calls == [["bad", "good"]]
    assert waiting(bench) == 2
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text
    assert worker.work("dev") == 0
    clock.step(seconds=2)
    worker.work("dev")
    assert sorted(seen.calls[1:]) == [["bad"], ["good"]]
    assert waiting(bench) == 1


def test_while_it_is_not_fit_it_takes_no_jobs_and_runs_no_sweeps(bench: Bench) -> None:
    seen, swept, fit = Seen(), list[str](), list[bool]()

    def sweep(bench: Bench, org: str) -> None:
        del bench
        swept.append(org)

    worker = Worker(bench, {"one": seen}, [sweep], LateQueue(bench, {}), SELDOM, fit=lambda: bool(fit))
    enqueue(bench, "one", "a")
    assert worker.work("dev") == 0
    worker.sweep("dev")
    assert worker.settle(lambda _: None) == 1
    assert (seen.calls, swept, waiting(bench)) == ([], [], 1)
    fit.append(True)
    worker.sweep("dev")
    assert worker.work("dev") == 1
    assert (seen.calls, swept, waiting(bench)) == ([["a"]], ["dev"], 0)


def test_a_job_of_an_unknown_kind_stays(bench: Bench) -> None:
    enqueue(bench, "from.the.future", "a")
    made(bench, {}).work("dev")
    assert waiting(bench) == 1


def test_work_asked_for_again_while_it_is_done_is_done_again(bench: Bench) -> None:
    calls: list[Sequence[str]] = []

    def handler(bench: Bench, org: str, subjects: Sequence[str]) -> None:
        calls.append(subjects)
        if len(calls) == 1:
            enqueue(bench, "one", "a", org=org)

    enqueue(bench, "one", "a")
    made(bench, {"one": handler}).work("dev")
    assert len(calls) == 2
    assert waiting(bench) == 0


def test_a_woken_org_is_served_soon(bench: Bench) -> None:
    seen = Seen()
    worker = made(bench, {"one": seen})
    worker.start()
    enqueue(bench, "one", "a")
    worker.wake("dev")
    assert seen.wait(lambda: seen.calls == [["a"]])
    assert worker.stop(WAIT_S)
    assert waiting(bench) == 0


def test_a_job_that_waits_is_done_when_it_is_due_and_not_at_the_next_look(database: Database, clock: Clock) -> None:
    begin_us, begin_s = clock(), time.monotonic()
    bench = Bench(
        database,
        HashingEmbedder(),
        lambda: begin_us + int((time.monotonic() - begin_s) * 1_000_000),
        tombstone_days=14,
        audit_days=365,
    )
    seen = Seen()
    worker = made(bench, {"one": seen})
    worker.start()
    with database.transaction("dev", write=True) as tx:
        outbox.enqueue(tx, "one", "a", 300_000)
    worker.wake("dev")
    assert seen.wait(lambda: seen.calls == [["a"]])
    assert bench.clock_us() >= begin_us + 300_000
    assert worker.stop()


def test_an_org_that_nobody_woke_is_found_at_start(bench: Bench) -> None:
    seen = Seen()
    enqueue(bench, "one", "a", org="other")
    worker = made(bench, {"one": seen})
    worker.start()
    assert seen.wait(lambda: seen.calls == [["a"]])
    assert worker.stop(WAIT_S)


def test_sweeps_reach_every_org_and_outlive_an_error(bench: Bench) -> None:
    swept: list[str] = []
    all_seen = threading.Event()

    def broken(bench: Bench, org: str) -> None:
        del bench
        raise ValueError(org)

    def sweep(bench: Bench, org: str) -> None:
        del bench
        swept.append(org)
        if {"one", "two", SYSTEM_ORG} <= set(swept):
            all_seen.set()

    for org in ("one", "two"):
        enqueue(bench, "x", "a", org=org)
    worker = made(bench, {"x": Seen()}, [broken, sweep])
    worker.start()
    assert all_seen.wait(WAIT_S)
    assert worker.stop(WAIT_S)


def test_stop_is_bounded_while_a_handler_does_not_end(bench: Bench) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def handler(bench: Bench, org: str, subjects: Sequence[str]) -> None:
        del bench, org, subjects
        begun.set()
        may_end.wait(WAIT_S)

    enqueue(bench, "one", "a")
    worker = made(bench, {"one": handler})
    worker.start()
    worker.wake("dev")
    assert begun.wait(WAIT_S)
    assert not worker.stop(0.01)
    may_end.set()
    assert worker.stop(WAIT_S)


class Notes:
    """A late handler that keeps what it was given, or fails as a store does."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Sequence[Mapping[str, Json]]]] = []
        self.failing = False

    def __call__(self, bench: Bench, org: str, payloads: Sequence[Mapping[str, Json]]) -> None:
        del bench
        if self.failing:
            raise StoreError("full")
        self.calls.append((org, payloads))


def test_late_notes_come_together_by_org_in_order(bench: Bench) -> None:
    notes = Notes()
    late = LateQueue(bench, {"note": notes})
    for number in range(3):
        late("note", "dev", {"number": number})
    late("note", "other", {"number": 9})
    late.flush("dev")
    assert notes.calls == [("dev", [{"number": 0}, {"number": 1}, {"number": 2}])]
    late.flush_all()
    assert notes.calls[1:] == [("other", [{"number": 9}])]
    late.flush_all()
    assert len(notes.calls) == 2


def test_a_full_queue_drops_what_comes(bench: Bench) -> None:
    notes = Notes()
    late = LateQueue(bench, {"note": notes}, waiting_max=2)
    for number in range(5):
        late("note", "dev", {"number": number})
    late.flush("dev")
    late("note", "dev", {"number": 7})
    late.flush("dev")
    assert [payload["number"] for _, payloads in notes.calls for payload in payloads] == [0, 1, 7]


def test_a_failing_store_loses_notes_and_nothing_else(bench: Bench) -> None:
    notes = Notes()
    late = LateQueue(bench, {"note": notes})
    notes.failing = True
    late("note", "dev", {"number": 0})
    late.flush("dev")
    notes.failing = False
    late("note", "dev", {"number": 1})
    late.flush("dev")
    assert notes.calls == [("dev", [{"number": 1}])]


def test_an_unknown_note_is_a_programming_error(bench: Bench) -> None:
    with pytest.raises(KeyError):
        LateQueue(bench, {})("nobody", "dev", {})


def test_stop_hands_on_what_is_left(bench: Bench) -> None:
    notes = Notes()
    late = LateQueue(bench, {"note": notes})
    worker = Worker(bench, {}, (), late, SELDOM)
    worker.start()
    late("note", "dev", {"number": 0})
    assert worker.stop(WAIT_S)
    assert notes.calls == [("dev", [{"number": 0}])]


def test_work_does_not_wait_for_a_clock_that_was_set_back(bench: Bench, clock: Clock) -> None:
    with bench.database.transaction("dev", write=True) as tx:
        tx.outstrip(clock.nanoseconds() + 20 * 3600 * 1_000_000_000)
    enqueue(bench, "a", "x", "y")
    with bench.database.transaction("dev", write=True) as tx:
        assert [job.subject for job in outbox.take(tx, clock(), 10)] == ["x", "y"]


def test_slow_jobs_keep_nobody_waiting(bench: Bench) -> None:
    quick, let_go = Seen(), threading.Event()
    slow = Seen()

    def waits(bench: Bench, org: str, subjects: Sequence[str]) -> None:
        slow(bench, org, subjects)
        assert let_go.wait(WAIT_S)

    enqueue(bench, "slow", "a", "b")
    worker = Worker(bench, {"slow": waits, "quick": quick}, (), LateQueue(bench, {}), SELDOM, {"slow"})
    worker.start()
    try:
        assert slow.wait(lambda: len(slow.calls) == 1)
        enqueue(bench, "quick", "c")
        worker.wake("dev")
        assert quick.wait(lambda: quick.calls == [["c"]])
        assert len(slow.calls) == 1
        let_go.set()
        assert slow.wait(lambda: len(slow.calls) == 2)
    finally:
        let_go.set()
        assert worker.stop()
    assert sorted(slow.calls) == [["a"], ["b"]]


def test_slow_jobs_are_done_with_the_others_when_work_is_asked_for(bench: Bench) -> None:
    slow, quick = Seen(), Seen()
    enqueue(bench, "slow", "a", "b")
    enqueue(bench, "quick", "c")
    worker = Worker(bench, {"slow": slow, "quick": quick}, (), LateQueue(bench, {}), SELDOM, {"slow"})
    assert worker.work("dev") == 3
    assert (slow.calls, quick.calls) == ([["a"], ["b"]], [["c"]])
    assert waiting(bench) == 0
