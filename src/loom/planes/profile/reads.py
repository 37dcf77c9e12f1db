"""profile.reads: how often each agent read the profile, day by day."""

from typing import Annotated, cast

from pydantic import AfterValidator, Field

from loom.access.caller import ReadScope, Role
from loom.ops.fields import DAY_US, Instant, instant
from loom.ops.spec import Answer, Context, Kind, Op, Request
from loom.planes.profile.activity import LOOKBACK_DAYS_MAX, flush

ENTRIES_MAX = 1000

BY_DAY = """
SELECT day, agent, CAST(SUM(read_count) AS BIGINT) AS total FROM profile_read
WHERE org = :org AND namespace = :namespace AND day >= :day AND (:any_user = 1 OR user_id = :user_id)
GROUP BY day, agent ORDER BY day DESC, total DESC, agent LIMIT :most
"""


class ReadsRequest(Request):
    """What profile.reads takes."""

    lookback_days: Annotated[
        int,
        Field(ge=1, description="How many days to show, today among them; more than 30 counts as 30."),
        AfterValidator(lambda days: min(days, LOOKBACK_DAYS_MAX)),
    ] = 30


class ReadsEntry(Answer):
    """The reads of one agent on one day, by UTC."""

    day: Annotated[Instant, Field(description="The day's beginning.")]
    agent: Annotated[str, Field(description="The agent; '-' for readers that gave no name.")]
    read_count: Annotated[int, Field(description="How often it read on that day.")]


class ReadsAnswer(Answer):
    """What profile.reads answers."""

    entries: Annotated[
        list[ReadsEntry], Field(description="At most 1,000, the latest day first; days without reads are left out.")
    ]


def reads(ctx: Context, request: ReadsRequest) -> ReadsAnswer:
    """Show the sums of the days."""
    rows = ctx.tx.rows(
        BY_DAY,
        namespace=request.namespace,
        day=ctx.now_us // DAY_US - request.lookback_days + 1,
        any_user=int(ctx.scope is ReadScope.NAMESPACE),
        user_id=request.user_id,
        most=ENTRIES_MAX,
    )
    return ReadsAnswer(
        entries=[
            ReadsEntry(
                day=instant(cast("int", row["day"]) * DAY_US),
                agent=cast("str", row["agent"]),
                read_count=cast("int", row["total"]),
            )
            for row in rows
        ]
    )


READS = Op(
    name="profile.reads",
    summary="See how often each agent read the profile on each of the last days.",
    takes=ReadsRequest,
    gives=ReadsAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=reads,
    example={"lookback_days": 7},
    prepare=flush,
    toolsets=frozenset(),
)
