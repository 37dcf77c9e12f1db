"""Messages that are read later: the rows that hold them, and the job that reads them.

A row is made with its job, and goes in the transaction that writes what its messages say. The job carries the row's
number alone. A row whose namespace is deleted meanwhile is gone, and nothing is written of it.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from loom.access.caller import ReadScope
from loom.errors import Conflict, LoomError
from loom.jobs import outbox
from loom.jobs.handlers import Bench, Handler, NotDone, PutOff, Sweep
from loom.models.writer import WriterFailed
from loom.ops import audit
from loom.planes.memory import extracting, keeping
from loom.planes.memory.extracting import Desk, Extraction
from loom.planes.memory.messages import SetFromMessagesRequest
from loom.storage.interface import Raced, Row, Transaction

EXTRACT: Final = "memory.extract"
OP_NAME: Final = "memory.set_from_messages"
OPEN_MAX: Final = 100
"""Calls of one caller whose messages are yet to be read."""

TIMEOUT_S: Final = 300.0
"""How long the model may take for the messages of one call."""

TAKEN_US: Final = 420 * 1_000_000
"""How long a worker has a row to itself: longer than it can take."""

AGAIN_US: Final = 15 * 1_000_000
DOUBLINGS_MAX: Final = 8
KEPT_US: Final = 7 * 24 * 3600 * 1_000_000
"""How long messages are kept that no model reads."""

RACES_MAX: Final = 4

TRIES_MAX: Final = 60
"""How often messages are read while the model does not answer, or not in time: for over two days, a weekend's."""

FAILURES_MAX: Final = 5
"""How often messages are read to which the model has no answer that can be used."""

RETOLD_MAX: Final = 3
"""How often they are read again because what the model was told was taken away meanwhile."""

FORGOTTEN_MAX: Final = 100
"""Calls' messages that one sweep forgets."""

PUT = """
INSERT INTO memory_extraction
    (org, extraction_id, namespace, user_id, principal, read_scope, request, attempts, taken_until, created_at)
VALUES (:org, :extraction_id, :namespace, :user_id, :principal, :read_scope, :request, 0, 0, :created_at)
"""
OPEN = "SELECT count(*) AS count FROM memory_extraction WHERE org = :org AND principal = :principal"
TAKE = """
UPDATE memory_extraction SET taken_until = :until, attempts = attempts + 1
WHERE org = :org AND extraction_id = :extraction_id AND taken_until <= :now
"""
READ = """
SELECT principal, read_scope, request, attempts, failures, taken_until, created_at FROM memory_extraction
WHERE org = :org AND extraction_id = :extraction_id
"""
LET_GO = """
UPDATE memory_extraction SET taken_until = 0, attempts = :attempts, failures = :failures
WHERE org = :org AND extraction_id = :extraction_id
"""
DROP = "DELETE FROM memory_extraction WHERE org = :org AND extraction_id = :extraction_id"
OLD = """
SELECT extraction_id, principal, read_scope, request, attempts, failures, created_at FROM memory_extraction
WHERE org = :org AND created_at <= :before ORDER BY created_at, extraction_id LIMIT :most
"""
PURGE = "DELETE FROM memory_extraction WHERE org = :org AND namespace = :namespace"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Later:
    """A write that a job makes; what `Context` is to an operation."""

    tx: Transaction
    now_us: int
    scope: ReadScope


@dataclass(frozen=True, slots=True)
class _Taken:
    """A row, as its job reads it.

    Attributes:
        number: names it.
        request: what was asked, with the messages.
        principal: who asked.
        scope: how far who asked reads.
        attempts: how often it was begun, this time included.
        failures: how often the model had no answer that can be used.
        said_at: when it was asked, microseconds UTC.
    """

    number: int
    request: SetFromMessagesRequest
    principal: str
    scope: ReadScope
    attempts: int
    failures: int
    said_at: int

    @classmethod
    def of(cls, number: int, row: Row) -> "_Taken":
        """What a row says."""
        return cls(
            number,
            SetFromMessagesRequest.model_validate(json.loads(cast("str", row["request"]))),
            cast("str", row["principal"]),
            ReadScope(cast("int", row["read_scope"])),
            cast("int", row["attempts"]),
            cast("int", row["failures"]),
            cast("int", row["created_at"]),
        )

    @property
    def counts(self) -> Mapping[str, int]:
        """The row's number and counts, as `LET_GO` takes them."""
        return {"extraction_id": self.number, "attempts": self.attempts, "failures": self.failures}


def put(tx: Transaction, request: SetFromMessagesRequest, whose: tuple[str, ReadScope], now_us: int) -> None:
    """Keep a call's messages and ask for them to be read. `whose` is the caller's principal and scope.

    Raises:
        Conflict: too many wait already.
    """
    principal, scope = whose
    tx.lock(EXTRACT, principal)
    row = tx.row(OPEN, principal=principal)
    if row is not None and cast("int", row["count"]) >= OPEN_MAX:
        raise Conflict("deferred: too many calls wait for the language model; try again when some are read")
    number = tx.stamp()
    tx.run(
        PUT,
        extraction_id=number,
        namespace=request.namespace,
        user_id=request.user_id,
        principal=principal,
        read_scope=int(scope),
        request=request.model_dump_json(),
        created_at=now_us,
    )
    outbox.enqueue(tx, EXTRACT, str(number))


class NotRead(NotDone):
    """Messages were not read; the log says why. Their rows wait, or are gone, and the audit says so."""


def extract(bench: Bench, org: str, subjects: Sequence[str]) -> None:
    """The job `memory.extract`: have messages read, write what they say, and forget them.

    Raises:
        NotRead: of some calls they were not; what is worth another try has asked for it.
        PutOff: the model is left alone for a while.
    """
    whole = [_extract(bench, org, int(subject)) for subject in subjects]
    if not all(whole):
        raise NotRead(f"{whole.count(False)} calls' messages were not read")


def _extract(bench: Bench, org: str, number: int) -> bool:
    """Do one row, if it is there and nobody else does; False when its messages were not read."""
    row = _taken(bench, org, number)
    if row is None:
        return True
    taken = _Taken.of(number, row)
    if bench.writer is None:
        # Not a try: when there is a model again, there are as many left.
        _put_off(bench, org, replace(taken, attempts=taken.attempts - 1), "no language model is configured")
        return False
    if taken.attempts > TRIES_MAX:  # each try brought the worker down
        return _failed(bench, org, taken, "whoever read them did not live to tell")
    desk = Desk(bench.database, bench.embedder, bench.writer, taken.scope, bench.clock_us())
    try:
        # Messages without a time of their own were said when they were sent.
        found = extracting.extracted(desk, taken.request, taken.said_at, TIMEOUT_S)
    except WriterFailed as error:
        return _unanswered(bench, org, taken, error)
    except LoomError as error:
        return _failed(bench, org, replace(taken, failures=taken.failures + 1), error.message)
    for turn in range(RACES_MAX):
        try:
            with bench.database.transaction(org, write=True) as tx:
                _keep(Later(tx, bench.clock_us(), taken.scope), taken, found)
        except Raced:
            if turn == RACES_MAX - 1:
                raise
        else:
            break
    return True


def _keep(later: Later, taken: _Taken, found: Extraction) -> None:
    """Write what was found and forget the messages; have them read again where it may repeat what is gone."""
    tx = later.tx
    if taken.attempts <= RETOLD_MAX and keeping.taken_away(later, taken.request, found):
        if tx.run(LET_GO, **taken.counts):
            outbox.enqueue(tx, EXTRACT, str(taken.number))
    elif tx.run(DROP, extraction_id=taken.number):
        keeping.kept(later, taken.request, found)


def _taken(bench: Bench, org: str, number: int) -> Row | None:
    """The row, for this worker alone; None when it is gone, or another worker has it."""
    now_us = bench.clock_us()
    with bench.database.transaction(org, write=True) as tx:
        mine = tx.run(TAKE, extraction_id=number, now=now_us, until=now_us + TAKEN_US) == 1
        row = tx.row(READ, extraction_id=number)
        if row is not None and not mine:
            # This job's lease ran out while the other worker was at it; should that one die, the row is read later.
            outbox.enqueue(tx, EXTRACT, str(number), cast("int", row["taken_until"]) - now_us)
    return row if mine else None


def _unanswered(bench: Bench, org: str, taken: _Taken, error: WriterFailed) -> bool:
    """Try again later; where the model was not even asked, that was no try."""
    if error.rest_s > 0:
        with bench.database.transaction(org, write=True) as tx:
            tx.run(LET_GO, **replace(taken, attempts=taken.attempts - 1).counts)
        raise PutOff(error.rest_s)
    unusable = not error.retryable and not error.misconfigured
    return _failed(bench, org, replace(taken, failures=taken.failures + unusable), str(error))


def _failed(bench: Bench, org: str, taken: _Taken, why: str) -> bool:
    """Try again later, or forget messages that were tried often enough; False."""
    if taken.failures < FAILURES_MAX and taken.attempts < TRIES_MAX:
        _put_off(bench, org, taken, why)
        return False
    log.error("a call's messages are forgotten unread after %d tries: %s", taken.attempts, why)
    with bench.database.transaction(org, write=True) as tx:
        if tx.run(DROP, extraction_id=taken.number):
            _note_forgotten(tx, taken, bench.clock_us())
    return False


def _put_off(bench: Bench, org: str, taken: _Taken, why: str) -> None:
    """Try again later, each time later than before."""
    log.warning("messages wait for the language model (try %d): %s", taken.attempts, why)
    with bench.database.transaction(org, write=True) as tx:
        if tx.run(LET_GO, **taken.counts):
            outbox.enqueue(tx, EXTRACT, str(taken.number), AGAIN_US << min(taken.attempts, DOUBLINGS_MAX))


def _note_forgotten(tx: Transaction, taken: _Taken, now_us: int) -> None:
    """Tell the audit that messages are gone which were acknowledged, and were never read."""
    audit.record(
        tx,
        audit.Entry(
            tenant=tx.org,
            op=OP_NAME,
            namespace=taken.request.namespace,
            principal=taken.principal,
            agent=taken.request.agent,
            outcome={"messages_forgotten": len(taken.request.messages), "tries": taken.attempts},
        ),
        now_us,
    )


def drop_old(bench: Bench, org: str) -> None:
    """Forget messages that no model has read for a week."""
    before = bench.clock_us() - KEPT_US
    with bench.database.transaction(org, write=False) as tx:
        if not tx.rows(OLD, before=before, most=1):
            return
    with bench.database.transaction(org, write=True) as tx:
        rows = tx.rows(OLD, before=before, most=FORGOTTEN_MAX)
        old = [_Taken.of(cast("int", row["extraction_id"]), row) for row in rows]
        for one in old:
            tx.run(DROP, extraction_id=one.number)
            _note_forgotten(tx, one, bench.clock_us())
    log.error("%d calls' messages are forgotten: no language model has read them for a week", len(old))


def purge_namespace(tx: Transaction, namespace: str) -> int:
    """Forget the messages of a namespace; how many calls' went."""
    return tx.run(PURGE, namespace=namespace)


JOBS: Mapping[str, Handler] = {EXTRACT: extract}
SLOW: frozenset[str] = frozenset({EXTRACT})
SWEEPS: tuple[Sweep, ...] = (drop_old,)
