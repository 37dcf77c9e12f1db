"""Jobs whose model is left alone for a while: they wait, are not counted as failed, and others go on."""

import logging
from collections.abc import Sequence

import pytest

from fakes import Clock, bench_of
from loom.jobs import outbox
from loom.jobs.handlers import Bench, Handler, NotDone, PutOff
from loom.jobs.late import LateQueue
from loom.jobs.worker import TOGETHER_MAX, Timing, Worker
from loom.models.hashing import HashingEmbedder
from loom.models.interface import EmbedderFailed
from loom.storage.interface import Database
from running import wait_until

REST_S = 0.3
PATIENCE_S = 20.0
SELDOM = Timing(poll_s=3600, sweep_s=3600, maintain_s=3600, late_s=3600)


class Resting:
    """A handler whose model rests while `error` is set."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.calls: list[list[str]] = []

    def __call__(self, bench: Bench, org: str, subjects: Sequence[str]) -> None:
        del bench, org
        self.calls.append(sorted(subjects))
        if self.error is not None:
            raise self.error


@pytest.fixture
def bench(database: Database, clock: Clock) -> Bench:
    return bench_of(database, HashingEmbedder(), clock)


def made(bench: Bench, slow: tuple[str, ...] = (), **handlers: Handler) -> Worker:
    return Worker(bench, handlers, [], LateQueue(bench, {}), SELDOM, slow=slow)


def rows(bench: Bench) -> list[tuple[str, int, int]]:
    """The jobs: subject, failures, and in how many microseconds each is due."""
    with bench.database.transaction("dev", write=False) as tx:
        found = tx.rows("SELECT subject, attempts, run_at FROM job WHERE org = :org ORDER BY subject")
    return [
        (str(row["subject"]), int(str(row["attempts"])), max(0, int(str(row["run_at"])) - bench.clock_us()))
        for row in found
    ]


def enqueue(bench: Bench, kind: str, *subjects: str) -> None:
    with bench.database.transaction("dev", write=True) as tx:
        for subject in subjects:
            outbox.enqueue(tx, kind, subject)


@pytest.mark.parametrize("error", [PutOff(REST_S), EmbedderFailed("it rests", rest_s=REST_S)], ids=["put off", "rest"])
@pytest.mark.parametrize("slow", [(), ("one",)], ids=["quick", "slow"])
def test_they_wait_for_the_rest_and_have_not_failed(
    bench: Bench, clock: Clock, caplog: pytest.LogCaptureFixture, error: Exception, slow: tuple[str, ...]
) -> None:
    one, two = Resting(error), Resting(None)
    enqueue(bench, "one", "a")
    enqueue(bench, "two", "b")
    worker = made(bench, slow, one=one, two=two)
    with caplog.at_level(logging.DEBUG, "loom"):
        worker.work("dev")
    assert (one.calls, two.calls) == ([["a"]], [["b"]])
    assert rows(bench) == [("a", 0, int(REST_S * 1_000_000))]
    assert caplog.text == ""
    one.error = None
    clock.step(seconds=REST_S)
    wait_until(lambda: worker.work("dev") == 1, PATIENCE_S)
    assert rows(bench) == []
    assert one.calls == [["a"], ["a"]]


def test_others_of_the_kind_are_not_even_taken_meanwhile(bench: Bench, clock: Clock) -> None:
    one, two = Resting(PutOff(3600.0)), Resting(None)
    subjects = [f"{number:03}" for number in range(3 * TOGETHER_MAX)]
    enqueue(bench, "one", *subjects)
    worker = made(bench, one=one, two=two)
    assert worker.work("dev") == TOGETHER_MAX
    assert len(one.calls) == 1
    enqueue(bench, "two", "b")
    assert worker.work("dev") == 1
    assert worker.settle(lambda _: None) == len(subjects)
    assert len(one.calls) == 1
    assert {(failures, due) for _, failures, due in rows(bench)} == {(0, 0), (0, 3_600_000_000)}
    clock.step(seconds=1)


@pytest.mark.parametrize("error", [EmbedderFailed("not in time"), NotDone("not in time")])
def test_a_failure_that_is_no_rest_is_one_and_is_told_in_a_line(
    bench: Bench, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    one = Resting(error)
    enqueue(bench, "one", "a")
    made(bench, one=one).work("dev")
    assert [(subject, failures) for subject, failures, _ in rows(bench)] == [("a", 1)]
    assert [record.getMessage() for record in caplog.records] == ["1 jobs one failed: not in time"]
