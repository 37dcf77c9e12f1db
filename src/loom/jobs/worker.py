"""Does what calls left for later, in threads of its own.

One thread takes jobs: soon for an org that was just written to, and from
time to time for every org, since another process or a crash may have left some.
A second one hands on late notes every second. Neither ever dies of an error:
a failed job is put back for later, and what went wrong is logged.
"""

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from loom.jobs import outbox
from loom.jobs.handlers import Bench, Handler, Sweep
from loom.jobs.late import LateQueue
from loom.jobs.outbox import Job
from loom.storage.interface import SYSTEM_ORG, Raced, Transaction

TOGETHER_MAX = 32
"""Jobs taken, and handed to a handler, at once."""

ROUNDS_MAX = 64
"""Takings for one org before the others have their turn."""

ORGS_MAX = 64
"""Orgs looked at in one round of polling or upkeep; the next round goes on with the others."""

STOP_TIMEOUT_S = 10.0
ATTEMPTS_MAX = 4

Done = TypeVar("Done")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """How often things are done, in seconds.

    Attributes:
        poll_s: every org's jobs, woken or not.
        sweep_s: the sweeps.
        maintain_s: the store's own upkeep.
        late_s: late notes.
        gather_s: how long to wait after a write for more of them. Many writes in a row then make
            one round of jobs, and do not meet a job of each one on the store's one writer.
    """

    poll_s: float = 5.0
    sweep_s: float = 60.0
    maintain_s: float = 300.0
    late_s: float = 1.0
    gather_s: float = 0.2


class Worker:
    """Runs jobs, sweeps, upkeep and late notes. Safe for threads.

    Args:
        bench: what handlers work with.
        handlers: by the kind of job; a job of another kind waits for a process that knows it.
        sweeps: bounded upkeep of one org.
        late: the queue to empty.
        timing: how often.
    """

    def __init__(
        self,
        bench: Bench,
        handlers: Mapping[str, Handler],
        sweeps: Sequence[Sweep],
        late: LateQueue,
        timing: Timing | None = None,
    ) -> None:
        self._bench = bench
        self._handlers = dict(handlers)
        self._sweeps = tuple(sweeps)
        self._late = late
        timing = timing or Timing()
        self._timing = timing
        self._changed = threading.Condition()
        self._woken: set[str] = set()
        self._stopping = False
        self._takes_jobs = True
        self._threads: list[threading.Thread] = []
        self._chores = (
            _Chore("jobs", timing.poll_s, _Rounds(self._orgs).each(self.work)),
            _Chore("sweeps", timing.sweep_s, _Rounds(self._every_org).each(self.sweep)),
            _Chore("upkeep", timing.maintain_s, bench.database.maintain),
        )

    def wake(self, org: str) -> None:
        """Look for the org's jobs soon; returns at once."""
        with self._changed:
            if self._takes_jobs:
                self._woken.add(org)
                self._changed.notify_all()

    def start(self, *, jobs: bool = True) -> None:
        """Begin. Once only. Without `jobs`, late notes alone: other processes do the rest."""
        loops = [("loom-late", self._run_late), *([("loom-jobs", self._run_jobs)] if jobs else [])]
        self._takes_jobs = jobs
        self._threads = [threading.Thread(target=loop, name=name, daemon=True) for name, loop in loops]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Take no more jobs, finish what is under way, hand on late notes; whether all ended in time.

        What did not end is taken up again when its lease is over.
        """
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        until_s = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        ended = not any(thread.is_alive() for thread in self._threads)
        if ended:
            attempted("late notes", self._late.flush_all)
        return ended

    def work(self, org: str) -> int:
        """Do the org's due jobs; how many were tried."""
        tried = 0
        for _ in range(ROUNDS_MAX):
            count = self._round(org)
            if not count:
                return tried
            tried += count
        self.wake(org)
        return tried

    def settle(self, show: Callable[[int], None] | None) -> int:
        """Do the jobs of every org that are due, in this thread; how many are left, because they failed or are not due.

        Args:
            show: told how many are left after each taking; None to do none and count them.
        """
        left = 0
        for org in self._bench.database.orgs():
            waiting = self._waiting(org)
            while show is not None and waiting and self._round(org):
                waiting = self._waiting(org)
                show(left + waiting)
            left += waiting
        return left

    def _waiting(self, org: str) -> int:
        with self._bench.database.transaction(org, write=False) as tx:
            return outbox.waiting(tx)

    def _round(self, org: str) -> int:
        """Take some of the org's due jobs and do them; how many there were."""
        jobs = () if self._stopping else self._taken(org)
        for kind, group in groupby(sorted(jobs, key=_batch), key=_batch):
            self._do(org, kind[0], list(group))
        return len(jobs)

    def sweep(self, org: str) -> None:
        """Run every sweep on the org."""
        for one in self._sweeps:
            attempted("a sweep", lambda one=one: one(self._bench, org))

    def _taken(self, org: str) -> Sequence[Job]:
        with self._bench.database.transaction(org, write=False) as tx:
            if not outbox.due(tx, self._bench.clock_us()):
                return ()
        return self._written(org, lambda tx: outbox.take(tx, self._bench.clock_us(), TOGETHER_MAX))

    def _do(self, org: str, kind: str, jobs: Sequence[Job]) -> None:
        handler = self._handlers.get(kind)
        done = handler is not None and attempted(
            f"{len(jobs)} jobs {kind}", lambda: handler(self._bench, org, [job.subject for job in jobs])
        )
        if done:
            self._written(org, lambda tx: outbox.done(tx, jobs))
        else:
            self._written(org, lambda tx: outbox.failed(tx, jobs, self._bench.clock_us()))

    def _written(self, org: str, work: Callable[[Transaction], Done]) -> Done:
        """What `work` gives in a write transaction, again when another one won the race.

        Raises:
            Raced: it lost 4 times in a row.
        """
        for _ in range(ATTEMPTS_MAX - 1):
            with suppress(Raced), self._bench.database.transaction(org, write=True) as tx:
                return work(tx)
        with self._bench.database.transaction(org, write=True) as tx:
            return work(tx)

    def _run_jobs(self) -> None:
        while self._await_work():
            if self._woken and self._stopped_within(self._timing.gather_s):
                return
            for org in self._take_woken():
                attempted("jobs", lambda org=org: self.work(org))
            for chore in self._chores:
                if not self._stopping:
                    chore.do_when_due()

    def _run_late(self) -> None:
        while not self._stopped_within(self._timing.late_s):
            attempted("late notes", self._late.flush_all)

    def _await_work(self) -> bool:
        """Wait for a woken org or a chore; False when it is time to stop."""
        with self._changed:
            wait_s = min(chore.due_in_s() for chore in self._chores)
            self._changed.wait_for(lambda: self._stopping or bool(self._woken), timeout=max(0.0, wait_s))
            return not self._stopping

    def _take_woken(self) -> Iterable[str]:
        with self._changed:
            woken, self._woken = self._woken, set()
        return sorted(woken)

    def _stopped_within(self, wait_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._stopping, timeout=wait_s)

    def _orgs(self) -> Sequence[str]:
        return self._bench.database.orgs()

    def _every_org(self) -> Sequence[str]:
        return [*self._bench.database.orgs(), SYSTEM_ORG]


def _batch(job: Job) -> tuple[str, str]:
    """What a job is done together with: its kind; alone once it failed, so that it spoils no others."""
    return job.kind, job.subject if job.attempts else ""


class _Chore:
    """Something done from time to time; the first time at once."""

    def __init__(self, what: str, every_s: float, do: Callable[[], object]) -> None:
        self._what = what
        self._every_s = every_s
        self._do = do
        self._due_s = time.monotonic()

    def due_in_s(self) -> float:
        """Seconds until it is due; below 0 when it is."""
        return self._due_s - time.monotonic()

    def do_when_due(self) -> None:
        """Do it if it is time."""
        if self.due_in_s() <= 0:
            attempted(self._what, self._do)
            self._due_s = time.monotonic() + self._every_s


class _Rounds:
    """Goes through all orgs, so many at a time."""

    def __init__(self, orgs: Callable[[], Sequence[str]]) -> None:
        self._orgs = orgs
        self._left: list[str] = []

    def each(self, work: Callable[[str], object]) -> Callable[[], None]:
        """A step that does `work` for the next orgs; one that fails does not keep the others waiting."""

        def step() -> None:
            if not self._left:
                self._left = list(self._orgs())
            now, self._left = self._left[:ORGS_MAX], self._left[ORGS_MAX:]
            for org in now:
                attempted("upkeep of an org", lambda org=org: work(org))

        return step


def attempted(what: str, work: Callable[[], object]) -> bool:
    """Do `work`; whether it ended well.

    An error is logged with the place where it happened and without its words, which can hold stored text.
    """
    try:
        work()
    except Exception as error:  # noqa: BLE001  # the worker outlives whatever a handler does
        where = "".join(traceback.format_tb(error.__traceback__))
        log.error("%s failed with %s\n%s", what, type(error).__name__, where)  # noqa: TRY400  # see above
        return False
    return True
