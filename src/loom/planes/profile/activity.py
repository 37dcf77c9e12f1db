"""profile.activity: which agents read the profile, and when.

A read is noted without a write of its own: it is queued, and summed up by
agent, user and day a second later. `profile.activity` empties the queue of its
process first, so that it shows the reads before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import AfterValidator, Field

from loom.access.caller import ReadScope, Role
from loom.canonical import Json
from loom.jobs.handlers import Bench
from loom.ops.fields import DAY_US, Instant, instant
from loom.ops.identity import ANY_AGENT
from loom.ops.spec import NONE, Answer, Context, Kind, Op, Prepare, Request
from loom.storage.interface import Transaction

READ = "profile.read"
"""The name under which reads are queued."""

LOOKBACK_DAYS_MAX = 30
KEPT_DAYS = LOOKBACK_DAYS_MAX + 1
ENTRIES_MAX = 20

ADD = """
INSERT INTO profile_read (org, namespace, agent, user_id, day, last_read_at, read_count, last_op)
VALUES (:org, :namespace, :agent, :user_id, :day, :last_read_at, :read_count, :last_op)
ON CONFLICT (org, namespace, day, agent, user_id) DO UPDATE
SET read_count = profile_read.read_count + excluded.read_count,
    last_op = CASE WHEN excluded.last_read_at >= profile_read.last_read_at
        THEN excluded.last_op ELSE profile_read.last_op END,
    last_read_at = CASE WHEN excluded.last_read_at >= profile_read.last_read_at
        THEN excluded.last_read_at ELSE profile_read.last_read_at END
"""

RECENT = """
SELECT agent, last_read_at, total, last_op FROM (
    SELECT agent, last_read_at, last_op,
        CAST(SUM(read_count) OVER (PARTITION BY agent) AS BIGINT) AS total,
        ROW_NUMBER() OVER (PARTITION BY agent ORDER BY last_read_at DESC, user_id) AS place
    FROM profile_read
    WHERE org = :org AND namespace = :namespace AND day >= :day AND last_read_at >= :since
        AND (:any_user = 1 OR user_id = :user_id)
) AS reads
WHERE place = 1 ORDER BY last_read_at DESC, agent LIMIT :most
"""

FORGET_NAMESPACE = "DELETE FROM profile_read WHERE org = :org AND namespace = :namespace"
FORGET = "DELETE FROM profile_read WHERE org = :org AND day < :day"


@dataclass(frozen=True, slots=True)
class Sum:
    """Reads of one agent for one user on one day."""

    last_read_at: int
    read_count: int
    last_op: str


class ActivityRequest(Request):
    """What profile.activity takes."""

    lookback_days: Annotated[
        int,
        Field(ge=1, description="How many days back to look; more than 30 counts as 30."),
        AfterValidator(lambda days: min(days, LOOKBACK_DAYS_MAX)),
    ] = 7


class ProfileActivityEntry(Answer):
    """One agent that read the profile."""

    agent: Annotated[str, Field(description="The agent; '-' for readers that gave no name.")]
    last_read_at: Annotated[Instant, Field(description="When it read last.")]
    read_count: Annotated[
        int, Field(description="How often it read in the window; the window's first day counts as a whole.")
    ]
    last_op: Annotated[str, Field(description="The operation it read with last.")]


class ActivityAnswer(Answer):
    """What profile.activity answers."""

    entries: Annotated[
        list[ProfileActivityEntry],
        Field(description="At most 20 agents that read the profile, the latest first; the dashboard is left out."),
    ]


def note(ctx: Context, request: Request, op_name: str) -> None:
    """Queue the fact of a read. The dashboard's own are not news, and it alone can say so."""
    if ctx.unnoticed:
        return
    agent = (ctx.client or NONE) if request.agent == ANY_AGENT else request.agent
    ctx.later(
        READ,
        request.org,
        {
            "namespace": request.namespace,
            "agent": agent,
            "user_id": request.user_id,
            "op": op_name,
            "at": ctx.now_us,
        },
    )


def add_reads(bench: Bench, org: str, payloads: Sequence[Mapping[str, Json]]) -> None:
    """Add queued reads to the sums of their days."""
    sums: dict[tuple[str, str, str, int], Sum] = {}
    for payload in payloads:
        read = cast("Mapping[str, str]", payload)
        at = cast("int", payload["at"])
        key = (read["namespace"], read["agent"], read["user_id"], at // DAY_US)
        earlier = sums.get(key, Sum(at, 0, read["op"]))
        latest = (at, read["op"]) if at >= earlier.last_read_at else (earlier.last_read_at, earlier.last_op)
        sums[key] = Sum(latest[0], earlier.read_count + 1, latest[1])
    with bench.database.transaction(org, write=True) as tx:
        # In order, so that two processes never wait for each other's rows.
        for (namespace, agent, user_id, day), one in sorted(sums.items(), key=lambda pair: pair[0]):
            tx.run(
                ADD,
                namespace=namespace,
                agent=agent,
                user_id=user_id,
                day=day,
                last_read_at=one.last_read_at,
                read_count=one.read_count,
                last_op=one.last_op,
            )


def forget_old(bench: Bench, org: str) -> None:
    """Remove sums that no window reaches any more."""
    with bench.database.transaction(org, write=True) as tx:
        tx.run(FORGET, day=bench.clock_us() // DAY_US - KEPT_DAYS)


def forget_namespace(tx: Transaction, namespace: str) -> None:
    """Remove every sum of a namespace."""
    tx.run(FORGET_NAMESPACE, namespace=namespace)


def flush(prepare: Prepare, request: Request) -> None:
    """Have the reads before this call added up."""
    prepare.later.flush(request.org)


def activity(ctx: Context, request: ActivityRequest) -> ActivityAnswer:
    """Show the readers of the window."""
    since = ctx.now_us - request.lookback_days * DAY_US
    return ActivityAnswer(entries=recent(ctx.tx, request.namespace, since, None if _sees_all(ctx) else request.user_id))


def recent(tx: Transaction, namespace: str, since_us: int, user_id: str | None) -> list[ProfileActivityEntry]:
    """Agents that read since a moment, for one user or (None) for anybody."""
    rows = tx.rows(
        RECENT,
        namespace=namespace,
        day=since_us // DAY_US,
        since=since_us,
        any_user=int(user_id is None),
        user_id=user_id or "",
        most=ENTRIES_MAX,
    )
    return [
        ProfileActivityEntry(
            agent=cast("str", row["agent"]),
            last_read_at=instant(cast("int", row["last_read_at"])),
            read_count=cast("int", row["total"]),
            last_op=cast("str", row["last_op"]),
        )
        for row in rows
    ]


def _sees_all(ctx: Context) -> bool:
    return ctx.scope is ReadScope.NAMESPACE


ACTIVITY = Op(
    name="profile.activity",
    summary="See which agents read the profile lately, when, and how often.",
    takes=ActivityRequest,
    gives=ActivityAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=activity,
    example={"lookback_days": 7},
    prepare=flush,
)
