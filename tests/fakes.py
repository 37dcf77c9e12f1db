"""Stand-ins that behave, for what a test must be able to switch, move or look at."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any, ParamSpec, TypeVar

from loom.access.caller import LOCAL, Caller, Install, Transport
from loom.canonical import Json
from loom.jobs import outbox
from loom.jobs.handlers import Bench, Handler, LateHandler
from loom.models.hashing import HashingEmbedder
from loom.models.interface import Embedder, EmbedderFailed, Space
from loom.ops.dispatch import Dispatcher
from loom.ops.registry import Registry
from loom.ops.spec import AnyOp, Kind, Limits
from loom.planes.leg import Leg
from loom.storage.indexes import Vector
from loom.storage.interface import Database

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
HTTP = Transport()
ORG, NAMESPACE, AGENT = "dev", "local", "claude"
DRAIN_TURNS_MAX = 50
JOBS_TAKEN_MAX = 500
AUDIT_DAYS = 365
LIMITS = Limits(fanout_namespaces_max=20, leg_timeout_s=60.0, tombstone_days=14, git_schemes=("https", "ssh", "file"))

BEGUN_S = 60.0

P = ParamSpec("P")
Made = TypeVar("Made")


@dataclass
class Clock:
    """Stands still until it is moved; called, it gives microseconds."""

    now: datetime = START

    def __call__(self) -> int:
        return (self.now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    def nanoseconds(self) -> int:
        return self() * 1000

    def step(self, **span: float) -> None:
        """Move on, by what `timedelta` takes: `clock.step(days=1)`."""
        self.now += timedelta(**span)


def at_once(work: Callable[[], None]) -> None:
    """Starts a breaker's probe in this thread, so that what it came to is known when the call is over."""
    work()


def standing_s() -> float:
    """A steady clock that stands still: no rest that is measured by it is ever over."""
    return 100.0


class Unlimited:
    """Counts no call."""

    def take(self, principal: str, kind: Kind) -> None:
        """Let every call pass."""


class FailingEmbedder:
    """A hashing embedder that fails while it is switched off; `off.set()` and `off.clear()` switch it.

    `texts` counts the texts that were asked for, failed ones included.
    """

    def __init__(self, *, off: bool = True) -> None:
        self._inner = HashingEmbedder()
        self.random_cosine = self._inner.random_cosine
        self.question_cosine = self._inner.question_cosine
        self.off = Event()
        self.texts = 0
        if off:
            self.off.set()

    @property
    def space(self) -> Space:
        return self._inner.space

    def warm(self) -> None:
        pass

    def embed_query(self, text: str, timeout_s: float) -> Vector:
        return self.embed_passages([text], timeout_s)[0]

    def probe(self, timeout_s: float) -> None:
        self._inner.embed_passages(["a text of our own"], timeout_s)
        if self.off.is_set():
            raise EmbedderFailed("the embedder is switched off")

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        self.texts += len(texts)
        if self.off.is_set():
            raise EmbedderFailed("the embedder is switched off")
        return self._inner.embed_passages(texts, timeout_s)

    def close(self) -> None:
        pass


class LateLegs(Executor):
    """Does at once what it is given, save for the legs of some planes, which are at work and never done.

    So who is late is the test's choice, and not the machine's.
    """

    def __init__(self, *planes: str) -> None:
        self._planes = planes

    def submit(self, fn: Callable[P, Made], /, *args: P.args, **kwargs: P.kwargs) -> Future[Made]:
        future = Future[Made]()
        future.set_running_or_notify_cancel()
        if not any(isinstance(one, Leg) and one.name in self._planes for one in args):
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
                future.set_exception(error)
        return future


class BegunLegs(Executor):
    """Gives what it is given to a pool; of one plane's leg it waits until it has begun, as `begun` tells."""

    def __init__(self, pool: Executor, plane: str, begun: Event) -> None:
        self._pool = pool
        self._plane = plane
        self._begun = begun

    def submit(self, fn: Callable[P, Made], /, *args: P.args, **kwargs: P.kwargs) -> Future[Made]:
        future = self._pool.submit(fn, *args, **kwargs)
        if any(isinstance(one, Leg) and one.name == self._plane for one in args):
            assert self._begun.wait(BEGUN_S)
        return future


@dataclass
class Queue:
    """Keeps what was queued for later until it is flushed."""

    bench: Callable[[], Bench]
    handlers: Mapping[str, LateHandler]
    queued: list[tuple[str, str, Mapping[str, Json]]] = field(default_factory=list[tuple[str, str, Mapping[str, Json]]])

    def __call__(self, name: str, org: str, payload: Mapping[str, Json]) -> None:
        self.queued.append((name, org, payload))

    def flush(self, org: str) -> None:
        """Hand what is queued for `org` to its handlers; what has no handler stays."""
        queued, self.queued = self.queued, []
        for name, handler in self.handlers.items():
            payloads = [payload for its_name, its_org, payload in queued if (its_name, its_org) == (name, org)]
            if payloads:
                handler(self.bench(), org, payloads)
        self.queued += [one for one in queued if one[1] != org or one[0] not in self.handlers]


@dataclass
class Core:
    """A dispatcher over a store, and everything a test moves or looks at."""

    dispatcher: Dispatcher
    database: Database
    clock: Clock
    embedder: FailingEmbedder
    later: Queue
    jobs: Mapping[str, Handler]

    def call(self, op: str, /, *, caller: Caller = LOCAL, key: str | None = None, **args: Any) -> dict[str, Any]:
        """One operation's answer, as `claude` in org `dev`, namespace `local` unless said otherwise.

        `key` is the Idempotency-Key.
        """
        where = {"org": ORG, "namespace": NAMESPACE, "agent": AGENT}
        if not caller.tokenless:
            where = {name: value for name, value in where.items() if name not in caller.pins}
        transport = HTTP if key is None else Transport(idempotency_key=key)
        return self.dispatcher.call(op, caller, transport, where | args)

    @property
    def bench(self) -> Bench:
        return replace(bench_of(self.database, self.embedder, self.clock), writer=self.dispatcher.writer)

    def drain(self, org: str = ORG) -> int:
        """Do every job that is due; how many were done."""
        count = 0
        for _ in range(DRAIN_TURNS_MAX):
            with self.database.transaction(org, write=True) as tx:
                taken = outbox.take(tx, self.clock(), JOBS_TAKEN_MAX)
            if not taken:
                return count
            for kind in sorted({job.kind for job in taken}):
                self.jobs[kind](self.bench, org, [job.subject for job in taken if job.kind == kind])
            with self.database.transaction(org, write=True) as tx:
                outbox.done(tx, taken)
            count += len(taken)
        raise AssertionError("jobs make jobs without an end")


def bench_of(database: Database, embedder: Embedder, clock: Clock) -> Bench:
    """What job handlers work with, under `LIMITS`."""
    return Bench(database, embedder, clock, LIMITS.tombstone_days, AUDIT_DAYS)


CoreOf = Callable[..., Core]
"""Makes a core of operations, job handlers and late handlers: `core_of(OPS, JOBS, LATE)`."""


def core_of(
    ops: Iterable[AnyOp],
    jobs: Mapping[str, Handler],
    late: Mapping[str, LateHandler],
    database: Database,
    clock: Clock,
    pool: Executor,
) -> Core:
    """A core of `ops` over `database`, with a hashing embedder that can be switched off."""
    embedder = FailingEmbedder(off=False)
    later = Queue(lambda: bench_of(database, embedder, clock), late)
    dispatcher = Dispatcher(
        registry=Registry(ops),
        database=database,
        embedder=embedder,
        install=Install(),
        rate_limit=Unlimited(),
        clock_us=clock,
        later=later,
        observe=lambda _op, _outcome, _seconds: None,
        pool=pool,
        limits=LIMITS,
        wake=lambda _org: None,
    )
    return Core(dispatcher, database, clock, embedder, later, jobs)
