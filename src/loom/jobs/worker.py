"""Does what calls left for later, in threads of its own.

One thread takes jobs: soon for an org that was just written to, and from
time to time for every org, since another process or a crash may have left some.
A second one does the same for slow kinds, which wait for others (a language model),
so that nobody waits for them; a third hands on late notes every second. None ever dies of
an error: a failed job is put back for later, and what went wrong is logged.
"""

import logging
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from loom.jobs import outbox
from loom.jobs.handlers import Bench, Handler, NotDone, PutOff, Sweep
from loom.jobs.late import LateQueue
from loom.jobs.outbox import Job, Kinds
from loom.models.interface import EmbedderFailed
from loom.storage.interface import SYSTEM_ORG, Raced, Transaction

TOGETHER_MAX = 32
"""Jobs taken, and handed to a handler, at once."""

ROUNDS_MAX = 64
"""Takings for one org before the others have their turn."""

ORGS_MAX = 64
"""Orgs looked at in one round of polling or upkeep; the next round goes on with the others."""

SECOND_US = 1_000_000
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


@dataclass(slots=True)
class _Lane:
    """Jobs that one thread takes.

    Attributes:
        kinds: which.
        most: how many at once.
        woken: the orgs to look at soon.
        later_s: when an org's next job becomes due, by the steady clock, where that is before the next look.
        rests_s: until when kinds of job are not taken, by the steady clock: what they need does not answer.
    """

    kinds: Kinds
    most: int
    woken: set[str] = field(default_factory=set[str])
    later_s: dict[str, float] = field(default_factory=dict[str, float])
    rests_s: dict[str, float] = field(default_factory=dict[str, float])

    def wanted(self) -> Kinds:
        """The kinds to take now."""
        now_s = time.monotonic()
        resting = {kind for kind, until_s in list(self.rests_s.items()) if until_s > now_s}
        if self.kinds.among:
            return Kinds(tuple(kind for kind in self.kinds.names if kind not in resting), among=True)
        return Kinds((*self.kinds.names, *sorted(resting)))


class Worker:
    """Runs jobs, sweeps, upkeep and late notes. Safe for threads.

    Args:
        bench: what handlers work with.
        handlers: by the kind of job; a job of another kind waits for a process that knows it.
        sweeps: bounded upkeep of one org.
        late: the queue to empty.
        timing: how often.
        slow: kinds of job that are done one at a time, in a thread of their own.
        fit: whether this process may do jobs and sweeps now; it looks again later.
    """

    def __init__(
        self,
        bench: Bench,
        handlers: Mapping[str, Handler],
        sweeps: Sequence[Sweep],
        late: LateQueue,
        timing: Timing | None = None,
        slow: Collection[str] = (),
        fit: Callable[[], bool] = lambda: True,
    ) -> None:
        self._bench = bench
        self._handlers = dict(handlers)
        self._sweeps = tuple(sweeps)
        self._late = late
        self._fit = fit
        timing = timing or Timing()
        self._timing = timing
        self._changed = threading.Condition()
        self._quick = _Lane(Kinds(tuple(slow)), TOGETHER_MAX)
        self._slow = _Lane(Kinds(tuple(slow), among=True), 1)
        self._stopping = False
        self._takes_jobs = True
        self._threads: list[threading.Thread] = []
        self._chores = (
            _Chore("jobs", timing.poll_s, _Rounds(self._orgs).each(lambda org: self._work(org, self._quick))),
            _Chore("sweeps", timing.sweep_s, _Rounds(self._every_org).each(self.sweep)),
            _Chore("upkeep", timing.maintain_s, bench.database.maintain),
        )
        self._slow_chore = _Chore(
            "slow jobs", timing.poll_s, _Rounds(self._orgs).each(lambda org: self._work(org, self._slow))
        )

    def wake(self, org: str) -> None:
        """Look for the org's jobs soon; returns at once."""
        with self._changed:
            if self._takes_jobs:
                self._quick.woken.add(org)
                self._slow.woken.add(org)
                self._changed.notify_all()

    def start(self, *, jobs: bool = True) -> None:
        """Begin. Once only. Without `jobs`, late notes alone: other processes do the rest."""
        loops = [("loom-late", self._run_late)]
        if jobs:
            loops += [("loom-jobs", self._run_jobs), ("loom-slow", self._run_slow)]
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
        if not any(thread.is_alive() for thread in self._threads[:1]):
            attempted("late notes", self._late.flush_all)
        return not any(thread.is_alive() for thread in self._threads)

    def work(self, org: str) -> int:
        """Do the org's due jobs, slow ones too; how many were tried."""
        return self._work(org, self._quick) + self._work(org, self._slow)

    def _work(self, org: str, lane: _Lane) -> int:
        tried = 0
        for _ in range(ROUNDS_MAX):
            count = self._round(org, lane)
            if not count:
                self._note_next(org, lane)
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
            while show is not None and waiting and (self._round(org, self._quick) or self._round(org, self._slow)):
                waiting = self._waiting(org)
                show(left + waiting)
            left += waiting
        return left

    def _waiting(self, org: str) -> int:
        with self._bench.database.transaction(org, write=False) as tx:
            return outbox.waiting(tx)

    def _round(self, org: str, lane: _Lane) -> int:
        """Take some of the org's due jobs and do them; how many there were."""
        jobs = () if self._stopping or not self._fit() else self._taken(org, lane)
        for kind, group in groupby(sorted(jobs, key=_batch), key=_batch):
            self._do(org, kind[0], list(group), lane)
        return len(jobs)

    def sweep(self, org: str) -> None:
        """Run every sweep on the org."""
        for one in self._sweeps if self._fit() else ():
            attempted("a sweep", lambda one=one: one(self._bench, org))

    def _taken(self, org: str, lane: _Lane) -> Sequence[Job]:
        with self._bench.database.transaction(org, write=False) as tx:
            kinds = lane.wanted()
            if not outbox.due(tx, self._bench.clock_us(), kinds):
                return ()
        return self._written(org, lambda tx: outbox.take(tx, self._bench.clock_us(), lane.most, kinds))

    def _note_next(self, org: str, lane: _Lane) -> None:
        """Wake for the org's next job when it becomes due, where that is sooner than the next look at every org."""
        now_us = self._bench.clock_us()
        with self._bench.database.transaction(org, write=False) as tx:
            next_us = outbox.next_at(tx, now_us, now_us + int(self._timing.poll_s * SECOND_US), lane.kinds)
        with self._changed:
            lane.later_s.pop(org, None)
            if next_us is not None:
                lane.later_s[org] = time.monotonic() + (next_us - now_us) / SECOND_US

    def _do(self, org: str, kind: str, jobs: Sequence[Job], lane: _Lane) -> None:
        handler, subjects, rests_s = self._handlers.get(kind), [job.subject for job in jobs], list[float]()
        done = handler is not None and attempted(
            f"{len(jobs)} jobs {kind}", lambda: rests_s.append(_rest_s(handler, self._bench, org, subjects))
        )
        rest_s = sum(rests_s)
        if rest_s > 0:
            lane.rests_s[kind] = time.monotonic() + rest_s
            run_at_us = self._bench.clock_us() + int(rest_s * SECOND_US)
            self._written(org, lambda tx: outbox.put_off(tx, jobs, run_at_us))
        elif done:
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
        while self._await_work(self._quick, self._chores):
            if self._quick.woken and self._stopped_within(self._timing.gather_s):
                return
            self._do_woken(self._quick)
            for chore in self._chores:
                if not self._stopping:
                    chore.do_when_due()

    def _run_slow(self) -> None:
        while self._await_work(self._slow, (self._slow_chore,)):
            self._do_woken(self._slow)
            if not self._stopping:
                self._slow_chore.do_when_due()

    def _do_woken(self, lane: _Lane) -> None:
        for org in self._take_woken(lane):
            attempted("jobs", lambda org=org: self._work(org, lane))

    def _run_late(self) -> None:
        while not self._stopped_within(self._timing.late_s):
            attempted("late notes", self._late.flush_all)

    def _await_work(self, lane: _Lane, chores: Sequence["_Chore"]) -> bool:
        """Wait for a woken org or a chore; False when it is time to stop."""
        with self._changed:
            now_s = time.monotonic()
            later_s = min(lane.later_s.values(), default=float("inf")) - now_s
            wait_s = min(later_s, *(chore.due_in_s() for chore in chores))
            self._changed.wait_for(lambda: self._stopping or bool(lane.woken), timeout=max(0.0, wait_s))
            lane.woken |= {org for org, due_s in lane.later_s.items() if due_s <= time.monotonic()}
            return not self._stopping

    def _take_woken(self, lane: _Lane) -> Iterable[str]:
        with self._changed:
            woken, lane.woken = lane.woken, set[str]()
            for org in woken:
                lane.later_s.pop(org, None)
        return sorted(woken)

    def _stopped_within(self, wait_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._stopping, timeout=wait_s)

    def _orgs(self) -> Sequence[str]:
        return self._bench.database.orgs()

    def _every_org(self) -> Sequence[str]:
        return [*self._bench.database.orgs(), SYSTEM_ORG]


def _rest_s(handler: Handler, bench: Bench, org: str, subjects: Sequence[str]) -> float:
    """Do jobs; how long they are put off because what they need is left alone for a while, 0 when they are done."""
    try:
        handler(bench, org, subjects)
    except PutOff as put_off:
        return put_off.rest_s
    except EmbedderFailed as failure:
        if failure.rest_s <= 0:
            raise
        return failure.rest_s
    return 0.0


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

    One that was to be expected is logged in its words. Any other is logged with the place where it happened and without
    its words, which can hold stored text.
    """
    try:
        work()
    except (EmbedderFailed, NotDone) as error:
        log.warning("%s failed: %s", what, error)
        return False
    except Exception as error:  # noqa: BLE001  # the worker outlives whatever a handler does
        where = "".join(traceback.format_tb(error.__traceback__))
        log.error("%s failed with %s\n%s", what, type(error).__name__, where)  # noqa: TRY400  # see above
        return False
    return True
