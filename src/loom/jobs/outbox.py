"""The list of work to do, kept beside the rows it is about."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from loom.storage.interface import Transaction

LEASE_US = 60 * 1_000_000
BACKOFF_US = 1_000_000
BACKOFF_MAX_US = 60 * 1_000_000
BACKOFF_DOUBLINGS_MAX = 6

ENQUEUE = """
INSERT INTO job (org, kind, subject, generation, run_at, attempts, leased_until)
VALUES (:org, :kind, :subject, :generation, :run_at, 0, 0)
ON CONFLICT (org, kind, subject) DO UPDATE
SET generation = CASE WHEN excluded.generation > job.generation THEN excluded.generation
        ELSE job.generation + 1 END,
    run_at = excluded.run_at, attempts = 0, leased_until = 0
"""

DUE = """
SELECT kind, subject, generation, attempts FROM job
WHERE org = :org AND run_at <= :now AND leased_until <= :now
    AND CASE WHEN kind IN (:kinds) THEN 1 ELSE 0 END = :among
ORDER BY generation LIMIT :most
"""

ANY_DUE = """
SELECT 1 AS one FROM job WHERE org = :org AND run_at <= :now AND leased_until <= :now
    AND CASE WHEN kind IN (:kinds) THEN 1 ELSE 0 END = :among
LIMIT 1
"""

NEXT = """
SELECT run_at FROM job WHERE org = :org AND run_at > :now AND run_at <= :until
    AND CASE WHEN kind IN (:kinds) THEN 1 ELSE 0 END = :among
ORDER BY run_at LIMIT 1
"""

LEASE = """
UPDATE job SET leased_until = :until WHERE org = :org AND kind = :kind AND subject = :subject
AND generation = :generation
"""

DONE = "DELETE FROM job WHERE org = :org AND kind = :kind AND subject = :subject AND generation = :generation"

LATER = """
UPDATE job SET attempts = :attempts, run_at = :run_at, leased_until = 0
WHERE org = :org AND kind = :kind AND subject = :subject AND generation = :generation
"""

COUNT = "SELECT count(*) AS waiting FROM job WHERE org = :org"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work that a worker has taken.

    Attributes:
        kind: which handler does it.
        subject: what it is about, in the handler's own words; no stored text.
        generation: tells this request from a later one for the same subject; about when it was asked for, in
            nanoseconds.
        attempts: how often it failed before.
    """

    kind: str
    subject: str
    generation: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Kinds:
    """Some kinds of job: those named, or all but those.

    Attributes:
        names: the kinds.
        among: whether they are meant, and not the others.
    """

    names: tuple[str, ...] = ()
    among: bool = False


EVERY = Kinds()


def enqueue(tx: Transaction, kind: str, subject: str, delay_us: int = 0) -> None:
    """Ask for work, in the transaction that makes it necessary.

    Asking again before it is done asks for the same work, once, anew.
    """
    # The clock and no stamp: that would be one more way to the server while locks are held. What is asked for
    # anew rises in the statement itself, wherever the clock stands.
    now_ns = tx.clock_ns()
    run_at = now_ns // 1000 + delay_us if delay_us else 0
    tx.send(ENQUEUE, kind=kind, subject=subject, generation=now_ns, run_at=run_at)


def due(tx: Transaction, now_us: int, of: Kinds = EVERY) -> bool:
    """Whether there is anything to take; asked in a read, so that looking costs no write."""
    return tx.row(ANY_DUE, now=now_us, kinds=list(of.names), among=int(of.among)) is not None


def next_at(tx: Transaction, now_us: int, until_us: int, of: Kinds = EVERY) -> int | None:
    """When the next job becomes due, if that is after now and until then; microseconds UTC."""
    row = tx.row(NEXT, now=now_us, until=until_us, kinds=list(of.names), among=int(of.among))
    return None if row is None else cast("int", row["run_at"])


def take(tx: Transaction, now_us: int, most: int, of: Kinds = EVERY) -> Sequence[Job]:
    """Take up to `most` due jobs; nobody else gets them for a minute. Those that others are taking are passed by."""
    jobs = [
        Job(
            cast("str", row["kind"]),
            cast("str", row["subject"]),
            cast("int", row["generation"]),
            cast("int", row["attempts"]),
        )
        for row in tx.claim(DUE, now=now_us, most=most, kinds=list(of.names), among=int(of.among))
    ]
    tx.run_many(
        LEASE,
        [
            {"until": now_us + LEASE_US, "kind": job.kind, "subject": job.subject, "generation": job.generation}
            for job in jobs
        ],
    )
    return jobs


def done(tx: Transaction, jobs: Sequence[Job]) -> None:
    """Strike finished jobs off, unless they were asked for anew meanwhile."""
    tx.run_many(
        DONE,
        [{"kind": job.kind, "subject": job.subject, "generation": job.generation} for job in _ordered(jobs)],
    )


def failed(tx: Transaction, jobs: Sequence[Job], now_us: int) -> None:
    """Put jobs back, each later than the time before: 1 s, 2 s, 4 s, at most a minute."""
    for job in _ordered(jobs):
        wait_us = min(BACKOFF_US << min(job.attempts, BACKOFF_DOUBLINGS_MAX), BACKOFF_MAX_US)
        _put_back(tx, job, job.attempts + 1, now_us + wait_us)


def put_off(tx: Transaction, jobs: Sequence[Job], run_at_us: int) -> None:
    """Put back jobs that could not be tried, for a later moment: that was no failure of theirs."""
    for job in _ordered(jobs):
        _put_back(tx, job, job.attempts, run_at_us)


def waiting(tx: Transaction) -> int:
    """How many jobs of the org are not done."""
    row = tx.row(COUNT)
    return cast("int", row["waiting"]) if row else 0


def _put_back(tx: Transaction, job: Job, attempts: int, run_at_us: int) -> None:
    tx.send(
        LATER,
        kind=job.kind,
        subject=job.subject,
        generation=job.generation,
        attempts=attempts,
        run_at=run_at_us,
    )


def _ordered(jobs: Sequence[Job]) -> list[Job]:
    """In the order of every change of many jobs, so that two never wait for each other's rows."""
    return sorted(jobs, key=lambda job: (job.kind, job.subject))
