"""Messages that are read later: the rows that hold them, and the job that reads them.

A row is made with its job, and goes in the transaction that writes what its messages say. The job carries the row's
number alone. A row whose namespace is deleted meanwhile is gone, and nothing is written of it.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from loom.access.caller import ReadScope
from loom.errors import Conflict, LoomError
from loom.jobs import outbox
from loom.jobs.handlers import Bench, Handler, Sweep
from loom.planes.memory import extracting
from loom.planes.memory.extracting import Desk
from loom.planes.memory.keeping import kept
from loom.planes.memory.messages import SetFromMessagesRequest
from loom.storage.interface import Raced, Row, Transaction

EXTRACT: Final = "memory.extract"
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

ATTEMPTS_MAX: Final = 4

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
SELECT namespace, read_scope, request, attempts, taken_until, created_at FROM memory_extraction
WHERE org = :org AND extraction_id = :extraction_id
"""
LET_GO = "UPDATE memory_extraction SET taken_until = 0 WHERE org = :org AND extraction_id = :extraction_id"
DROP = "DELETE FROM memory_extraction WHERE org = :org AND extraction_id = :extraction_id"
ANY_OLD = "SELECT 1 AS one FROM memory_extraction WHERE org = :org AND created_at <= :before LIMIT 1"
DROP_OLD = "DELETE FROM memory_extraction WHERE org = :org AND created_at <= :before"
PURGE = "DELETE FROM memory_extraction WHERE org = :org AND namespace = :namespace"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Later:
    """A write that a job makes; what `Context` is to an operation."""

    tx: Transaction
    now_us: int
    scope: ReadScope


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


def extract(bench: Bench, org: str, subjects: Sequence[str]) -> None:
    """The job `memory.extract`: have messages read, write what they say, and forget them."""
    for subject in subjects:
        _extract(bench, org, int(subject))


def _extract(bench: Bench, org: str, number: int) -> None:
    row = _taken(bench, org, number)
    if row is None:
        return
    scope = ReadScope(cast("int", row["read_scope"]))
    # Messages without a time of their own were said when they were sent.
    said_at = cast("int", row["created_at"])
    request = SetFromMessagesRequest.model_validate(json.loads(cast("str", row["request"])))
    if bench.writer is None:
        _put_off(bench, org, number, cast("int", row["attempts"]), "no language model is configured")
        return
    desk = Desk(bench.database, bench.embedder, bench.writer, scope, bench.clock_us())
    try:
        found = extracting.extracted(desk, request, said_at, TIMEOUT_S)
    except LoomError as error:
        _put_off(bench, org, number, cast("int", row["attempts"]), error.message)
        return
    for turn in range(ATTEMPTS_MAX):
        try:
            with bench.database.transaction(org, write=True) as tx:
                if tx.run(DROP, extraction_id=number):
                    kept(Later(tx, bench.clock_us(), scope), request, found)
                return
        except Raced:
            if turn == ATTEMPTS_MAX - 1:
                raise


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


def _put_off(bench: Bench, org: str, number: int, attempts: int, why: str) -> None:
    """Try again later, each time later than before."""
    log.warning("messages wait for the language model: %s", why)
    with bench.database.transaction(org, write=True) as tx:
        if tx.run(LET_GO, extraction_id=number):
            outbox.enqueue(tx, EXTRACT, str(number), AGAIN_US << min(attempts, DOUBLINGS_MAX))


def drop_old(bench: Bench, org: str) -> None:
    """Forget messages that no model has read for a week."""
    before = bench.clock_us() - KEPT_US
    with bench.database.transaction(org, write=False) as tx:
        if tx.row(ANY_OLD, before=before) is None:
            return
    with bench.database.transaction(org, write=True) as tx:
        count = tx.run(DROP_OLD, before=before)
    log.warning("%d calls' messages were forgotten: no language model has read them for a week", count)


def purge_namespace(tx: Transaction, namespace: str) -> int:
    """Forget the messages of a namespace; how many calls' went."""
    return tx.run(PURGE, namespace=namespace)


JOBS: Mapping[str, Handler] = {EXTRACT: extract}
SLOW: frozenset[str] = frozenset({EXTRACT})
SWEEPS: tuple[Sweep, ...] = (drop_old,)
