"""The audit: a record of each write that changes access or takes information away, kept in that write's transaction.

A record says who did what, when, in which namespace and to what: names, ids and numbers, never a stored text.
An operation says with `Op.audited` that its calls are recorded; what every other write costs stays as it is.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import cast

from loom.access.caller import Caller, Transport
from loom.ops import identity
from loom.ops.spec import NONE, Answer, AnyOp, Audited, Context, Request
from loom.storage.interface import Row, Transaction

ABOUT_LENGTH_MAX = 512
"""Characters kept of each name, as many as a memory's key has at most."""

SWEPT_MAX = 10_000
"""Records that one sweep forgets, and those of the same moment."""

KEEP = """
INSERT INTO audit_record (org, tenant, at, record_id, op, namespace, principal, agent, about, outcome)
VALUES (:org, :tenant, :at, :record_id, :op, :namespace, :principal, :agent, :about, :outcome)
"""

LATELY = """
SELECT at, record_id, op, namespace, principal, agent, about, outcome FROM audit_record
WHERE org = :org AND tenant = :tenant AND at >= :since AND op = :op ORDER BY at DESC, record_id DESC LIMIT :most
"""
LATELY_MAX = 1_000
"""Records of one operation among which one of the same is looked for."""

COUNT_UP = """
UPDATE audit_record SET outcome = :outcome
WHERE org = :org AND tenant = :tenant AND at = :at AND record_id = :record_id
"""

FORGET_NAMES = "UPDATE audit_record SET about = '{}' WHERE org = :org AND namespace = :namespace AND about <> '{}'"

LISTED = """
SELECT at, record_id, op, namespace, principal, agent, about, outcome FROM audit_record
WHERE org = :org AND tenant = :tenant AND at >= :since AND at < :until
AND at <= :before_at AND (at < :before_at OR (at = :before_at AND record_id < :before_id))
AND (:any_op = 1 OR op = :op)
AND (:any_principal = 1 OR principal = :principal)
AND (:any_namespace = 1 OR namespace = :namespace)
AND (:every = 1 OR namespace IN (:reached) OR principal = :reader)
ORDER BY at DESC, record_id DESC LIMIT :most
"""

ANY_OVER = "SELECT 1 AS one FROM audit_record WHERE org = :org AND at < :before LIMIT 1"
SWEEP = """
DELETE FROM audit_record WHERE org = :org AND at < :before AND at <= (
    SELECT max(oldest.at) FROM (
        SELECT at FROM audit_record WHERE org = :org ORDER BY at LIMIT :most
    ) AS oldest)
"""

AT_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that was done.

    Attributes:
        at: when, microseconds UTC.
        record_id: orders records of one moment, within one org's store.
        op: the operation.
        namespace: where; `-` for what belongs to none.
        principal: the token's id, or `local`.
        agent: the agent that the token or the client names; `-` for none.
        about: names and ids.
        outcome: numbers and yes or no.
    """

    at: int
    record_id: int
    op: str
    namespace: str
    principal: str
    agent: str
    about: Mapping[str, str]
    outcome: Mapping[str, int | bool]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records are wanted.

    Attributes:
        tenant: of this org.
        since: at this moment or after it, microseconds UTC.
        until: before this moment.
        op: of this operation; empty for any.
        principal: of this one; empty for any.
        namespace: about this one; empty for any.
        reader: who asks; a caller with namespaces sees those, and what it did itself.
    """

    tenant: str
    since: int
    until: int
    op: str
    principal: str
    namespace: str
    reader: Caller


@dataclass(frozen=True, slots=True)
class Entry:
    """What is recorded that no audited operation did.

    Attributes:
        tenant: the org that it concerns.
        op: the operation that it belongs to.
        namespace: where; `-` for what belongs to none.
        principal: a token's id, `local`, or `-` for nobody that is known.
        agent: the agent that was named; `-` for none.
        about: names and ids.
        outcome: numbers and yes or no.
    """

    tenant: str
    op: str
    namespace: str = NONE
    principal: str = NONE
    agent: str = NONE
    about: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(dict[str, str]()))
    outcome: Mapping[str, int | bool] = field(default_factory=lambda: MappingProxyType(dict[str, int | bool]()))


BEFORE_ALL = (AT_MAX, AT_MAX)
"""Above the newest record."""


def keep(ctx: Context, op: AnyOp, transport: Transport, request: Request, answer: Answer) -> None:
    """Record a call that has done its work, if the operation's calls are recorded."""
    audited = op.audited
    if audited is None:
        return
    entry = Entry(
        tenant=audited.tenant(ctx, request, answer) if audited.tenant is not None else request.org,
        op=op.name,
        namespace=_namespace(op, audited, request),
        principal=ctx.caller.principal,
        agent=identity.doer(ctx.caller, transport, request),
        about={name: _name(name, request, answer) for name in audited.about},
        outcome={name: _number(getattr(answer, name)) for name in audited.outcome},
    )
    record(ctx.tx, entry, ctx.now_us)


def record(tx: Transaction, entry: Entry, at_us: int) -> None:
    """Record something in the transaction that does it."""
    tx.send(
        KEEP,
        tenant=entry.tenant,
        at=at_us,
        record_id=tx.stamp(),
        op=entry.op,
        namespace=entry.namespace,
        principal=entry.principal,
        agent=entry.agent,
        about=json.dumps({name: value[:ABOUT_LENGTH_MAX] for name, value in entry.about.items()}),
        outcome=json.dumps(dict(entry.outcome)),
    )


def count_up(tx: Transaction, entry: Entry, at_us: int, within_us: int) -> None:
    """Record something that happens over and over: numbers are added to a record of the same that is not so old yet.

    So what anybody may cause as often as they like takes little room. Yes and no stand as they are.
    """
    tx.lock("audit", entry.tenant, entry.op)
    rows = tx.rows(LATELY, tenant=entry.tenant, op=entry.op, since=at_us - within_us, most=LATELY_MAX)
    for row in rows:
        earlier = _record(row)
        same = (earlier.namespace, earlier.principal, earlier.about) == (entry.namespace, entry.principal, entry.about)
        if same and earlier.outcome.keys() == entry.outcome.keys():
            sums = {name: _sum(earlier.outcome[name], value) for name, value in entry.outcome.items()}
            place = {"at": earlier.at, "record_id": earlier.record_id}
            tx.run(COUNT_UP, tenant=entry.tenant, outcome=json.dumps(sums), **place)
            return
    record(tx, entry, at_us)


def _sum(earlier: int, now: int) -> int:
    return now if isinstance(now, bool) else earlier + now


def listed(tx: Transaction, where: Filter, before: tuple[int, int], most: int) -> Sequence[Record]:
    """At most so many records, the newest first, from below a place (its time and id) on."""
    reached = where.reader.namespaces
    rows = tx.rows(
        LISTED,
        tenant=where.tenant,
        since=where.since,
        until=where.until,
        before_at=before[0],
        before_id=before[1],
        any_op=int(not where.op),
        op=where.op,
        any_principal=int(not where.principal),
        principal=where.principal,
        any_namespace=int(not where.namespace),
        namespace=where.namespace,
        every=int(reached is None),
        reached=sorted(reached or ()),
        reader=where.reader.principal,
        most=most,
    )
    return [_record(row) for row in rows]


def forget_names(tx: Transaction, namespace: str) -> None:
    """Drop what the records of a namespace are about: it is deleted with all that is in it."""
    tx.run(FORGET_NAMES, namespace=namespace)


def any_over(tx: Transaction, before_us: int) -> bool:
    """Whether there is anything to sweep; asked in a read, so that looking costs no write."""
    return tx.row(ANY_OVER, before=before_us) is not None


def sweep(tx: Transaction, before_us: int) -> int:
    """Forget records of before a moment, the oldest first; how many went."""
    return tx.run(SWEEP, before=before_us, most=SWEPT_MAX)


def _namespace(op: AnyOp, audited: Audited, request: Request) -> str:
    """The namespace that was changed. What is kept with the system's rows is in none, whatever was sent along."""
    return NONE if op.own_org else str(getattr(request, audited.namespace))


def _name(name: str, request: Request, answer: Answer) -> str:
    """A field of the answer, which knows what was meant, or else of the request."""
    value = getattr(answer, name) if name in type(answer).model_fields else getattr(request, name)
    return str(value)


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"an outcome is a number or a yes or no, not a {type(value).__name__}")
    return value


def _record(row: Row) -> Record:
    return Record(
        at=cast("int", row["at"]),
        record_id=cast("int", row["record_id"]),
        op=str(row["op"]),
        namespace=str(row["namespace"]),
        principal=str(row["principal"]),
        agent=str(row["agent"]),
        about=cast("dict[str, str]", json.loads(str(row["about"]))),
        outcome=cast("dict[str, int | bool]", json.loads(str(row["outcome"]))),
    )
