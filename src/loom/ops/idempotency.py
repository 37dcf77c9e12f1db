"""A write that is sent twice under one key happens once and is answered twice.

The first answer is kept in the write's own transaction, so that a crash
between the two cannot happen. Only answers are kept, never errors.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from loom.errors import KeyReused, Rejected
from loom.ops.text_checks import has_control
from loom.storage.interface import Transaction

KEPT_US = 24 * 3600 * 1_000_000
KEY_LENGTH_MAX = 255
SWEPT_MAX = 10_000
"""Answers that one sweep forgets, and those of the same moment."""

SEEN = """
SELECT op, body_sha256, answer FROM idempotency
WHERE org = :org AND principal = :principal AND idempotency_key = :key AND expires_at > :now
"""

KEEP = """
INSERT INTO idempotency (org, principal, idempotency_key, op, body_sha256, answer, expires_at)
VALUES (:org, :principal, :key, :op, :body_sha256, :answer, :expires_at)
ON CONFLICT (org, principal, idempotency_key) DO UPDATE
SET op = excluded.op, body_sha256 = excluded.body_sha256, answer = excluded.answer, expires_at = excluded.expires_at
"""

ABOUT = """
SELECT principal, idempotency_key, answer FROM idempotency
WHERE org = :org AND op = :op AND replace(answer, :told, '') <> answer
"""
REWORD = """
UPDATE idempotency SET answer = :answer
WHERE org = :org AND principal = :principal AND idempotency_key = :key
"""

ANY_OVER = "SELECT 1 AS one FROM idempotency WHERE org = :org AND expires_at <= :now LIMIT 1"
SWEEP = """
DELETE FROM idempotency WHERE org = :org AND expires_at <= :now AND expires_at <= (
    SELECT max(oldest.expires_at) FROM (
        SELECT expires_at FROM idempotency WHERE org = :org ORDER BY expires_at LIMIT :most
    ) AS oldest)
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One write under a key.

    Attributes:
        principal: who sent it; keys of two callers never meet.
        key: the caller's key.
        op: the operation's name.
        body_sha256: the hash of the request's arguments and of whose write it is.
    """

    principal: str
    key: str
    op: str
    body_sha256: str


def attempt(principal: str, key: str, op: str, args: Mapping[str, Any]) -> Attempt:
    """The attempt that `key` and `args` stand for.

    Raises:
        Rejected: the key is empty, too long or holds a control character.
    """
    if not key or len(key) > KEY_LENGTH_MAX or has_control(key):
        raise Rejected(f"Idempotency-Key: 1 to {KEY_LENGTH_MAX} characters, no control characters")
    body = json.dumps(args, sort_keys=True, separators=(",", ":"))
    return Attempt(principal, key, op, hashlib.sha256(body.encode()).hexdigest())


def lock(tx: Transaction, this: Attempt) -> None:
    """Hold the key until the transaction ends, so that of two attempts at once the second waits.

    Taken before all else. One that joins others, who hold more, does not wait: see `Transaction.lock_own`.
    """
    tx.lock_own("idempotency", this.principal, this.key)


def earlier_answer(tx: Transaction, this: Attempt, now_us: int) -> dict[str, Any] | None:
    """The answer kept for this attempt, or None when it is the first.

    Raises:
        KeyReused: the key was used for another request.
    """
    row = tx.row(SEEN, principal=this.principal, key=this.key, now=now_us)
    if row is None:
        return None
    if (row["op"], row["body_sha256"]) != (this.op, this.body_sha256):
        raise KeyReused("Idempotency-Key: used before with another request; take a new key")
    return cast("dict[str, Any]", json.loads(str(row["answer"])))


def keep(tx: Transaction, this: Attempt, answer: Mapping[str, Any], now_us: int) -> None:
    """Keep the first answer for 24 hours."""
    tx.send(
        KEEP,
        principal=this.principal,
        key=this.key,
        op=this.op,
        body_sha256=this.body_sha256,
        answer=json.dumps(answer),
        expires_at=now_us + KEPT_US,
    )


def forget_text(tx: Transaction, op: str, about: Mapping[str, str], *fields: str) -> None:
    """Empty fields in kept answers of `op` that are about this: what they repeat was deleted."""
    for row in tx.rows(ABOUT, op=op, told=json.dumps(next(iter(about.values())))):
        answer = cast("dict[str, Any]", json.loads(str(row["answer"])))
        if all(answer.get(name) == value for name, value in about.items()):
            emptied: dict[str, Any] = {field: type(answer.get(field, ""))() for field in fields}
            told = json.dumps(answer | emptied)
            tx.run(REWORD, principal=row["principal"], key=row["idempotency_key"], answer=told)


def any_over(tx: Transaction, now_us: int) -> bool:
    """Whether there is anything to sweep; asked in a read, so that looking costs no write."""
    return tx.row(ANY_OVER, now=now_us) is not None


def sweep(tx: Transaction, now_us: int) -> int:
    """Forget answers past their time, the oldest first; how many went."""
    return tx.run(SWEEP, now=now_us, most=SWEPT_MAX)
