"""ops.overview: how much there is, by namespace and plane, and what was written lately."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal, cast

from pydantic import Field

from loom import __version__
from loom.access import namespaces
from loom.access.caller import ReadScope, Role
from loom.access.namespaces import Namespace, NamespaceKind
from loom.ledger.conditions import REACHED, reach_params, reached
from loom.ledger.rules import Reader
from loom.ops.fields import DAY_US, Instant, ScopeWord, instant_or_none
from loom.ops.spec import Answer, Context, Kind, Op, Prepare, ServerRequest, prepared_as
from loom.storage.interface import Param, Transaction

NAMESPACES_MAX = 200
ROWS_MAX = 1_000_000
"""Rows of a plane that one call counts."""

LOOKBACK_DAYS_MAX = 90
LEDGER = ("memories", "sections")
PLANES = ("memories", "documents", "conversations", "issues", "symbols")
OWN_ORGS = ("tracker", "code")
"""Planes that may keep an org of their own."""

# Without a narrow reader's condition both come from an index alone.
LEDGER_COUNT = """
SELECT namespace, plane, count(*) AS total FROM (
    SELECT i.namespace, CASE WHEN i.memory_type = 'profile' THEN 'sections' ELSE 'memories' END AS plane
    FROM ledger_item i
    WHERE i.org = :org AND i.namespace IN (:namespaces) AND i.status = 'live' LIMIT :most
) AS few GROUP BY namespace, plane
"""
LEDGER_DAYS = """
SELECT day, count(*) AS total FROM (
    SELECT i.version / 86400000000000 AS day FROM ledger_item i
    WHERE i.org = :org AND i.namespace IN (:namespaces) AND i.version >= :since LIMIT :most
) AS few GROUP BY day
"""
LIVE = "i.status = 'live'"
SINCE = "i.version >= :since"

COUNTS: Mapping[str, str] = {
    "documents": """
SELECT namespace, count(*) AS total FROM (
    SELECT d.namespace FROM knowledge_document d
    WHERE d.org = :org AND d.namespace IN (:namespaces) AND """  # noqa: S608  # the parts are constants
    + reached("d")
    + " LIMIT :most) AS few GROUP BY namespace",
    "conversations": """
SELECT namespace, count(*) AS total FROM (
    SELECT c.namespace FROM conversation_session c
    WHERE c.org = :org AND c.namespace IN (:namespaces) AND """  # noqa: S608  # the same
    + reached("c")
    + " LIMIT :most) AS few GROUP BY namespace",
    "issues": """
SELECT namespace, count(*) AS total FROM (
    SELECT t.namespace FROM tracker_issue t
    WHERE t.org = :org AND t.namespace IN (:namespaces) AND """  # noqa: S608  # the same
    + reached("t")
    + " LIMIT :most) AS few GROUP BY namespace",
    "symbols": """
SELECT namespace, count(*) AS total FROM (
    SELECT s.namespace FROM code_symbol s WHERE s.org = :org AND s.namespace IN (:namespaces) LIMIT :most
) AS few GROUP BY namespace
""",
}
DAYS: Mapping[str, str] = {
    "documents": """
SELECT day, count(*) AS total FROM (
    SELECT d.version / 86400000000000 AS day FROM knowledge_document d
    WHERE d.org = :org AND d.namespace IN (:namespaces) AND d.version >= :since AND """  # noqa: S608  # the same
    + reached("d")
    + " LIMIT :most) AS few GROUP BY day",
    "conversations": """
SELECT day, count(*) AS total FROM (
    SELECT c.last_at / 86400000000 AS day FROM conversation_session c
    WHERE c.org = :org AND c.namespace IN (:namespaces) AND c.last_at >= :since AND """  # noqa: S608  # the same
    + reached("c")
    + " LIMIT :most) AS few GROUP BY day",
}

NARROW_LEDGER_COUNT = LEDGER_COUNT.replace(LIVE, f"{LIVE} AND {REACHED}")
NARROW_LEDGER_DAYS = LEDGER_DAYS.replace(SINCE, f"{SINCE} AND {REACHED}")


class OverviewRequest(ServerRequest):
    """What ops.overview takes."""

    lookback_days: Annotated[
        int, Field(ge=1, le=LOOKBACK_DAYS_MAX, description="How many days of writes to show, today among them.")
    ] = 30
    planes: Annotated[
        list[Literal["memories", "documents", "conversations", "issues", "symbols"]] | None,
        Field(description="Count these alone, memories with sections; null for all. Others are 0."),
    ] = None
    read_scope: Annotated[
        ScopeWord, Field(description="Whose rows to count: every user's, or this user_id's or session's.")
    ] = "namespace"


class NamespaceCounts(Answer):
    """One namespace, and how much it holds."""

    name: Annotated[str, Field(description="The namespace.")]
    kind: Annotated[NamespaceKind, Field(description="What it is to hold.")]
    description: Annotated[str, Field(description="What it is for.")]
    last_written_at: Annotated[Instant | None, Field(description="When it was written to last; null for never.")]
    memories: Annotated[int, Field(description="Memories that were not ended; expired ones count until cleared away.")]
    sections: Annotated[int, Field(description="Profile sections.")]
    documents: Annotated[int, Field(description="Documents, each once.")]
    conversations: Annotated[int, Field(description="Conversations.")]
    issues: Annotated[int, Field(description="Issues of a tracker.")]
    symbols: Annotated[int, Field(description="Definitions in code.")]


class DayCounts(Answer):
    """What was written last on one day, by UTC."""

    day: Annotated[str, Field(description="The day, like 2026-03-01.")]
    memories: Annotated[int, Field(description="Memories and sections whose latest write or ending was on this day.")]
    documents: Annotated[int, Field(description="Documents whose latest change was on this day.")]
    conversations: Annotated[int, Field(description="Conversations whose latest turn was on this day.")]


class OverviewAnswer(Answer):
    """What ops.overview answers."""

    server_version: Annotated[str, Field(description="The server's version.")]
    namespaces: Annotated[
        list[NamespaceCounts], Field(description="At most 200 of those the caller reaches, the last written first.")
    ]
    exact: Annotated[bool, Field(description="false when there is more than one call counts; the counts are floors.")]
    days: Annotated[list[DayCounts], Field(description="A row for each day of the window, the oldest first.")]


@dataclass
class Sums:
    """What was counted so far: by namespace and plane, and by plane and day."""

    spaces: dict[str, Namespace] = field(default_factory=dict[str, Namespace])
    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    days: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    exact: bool = True

    def add(self, plane: str, row: Mapping[str, object]) -> None:
        """Add a row of a count by namespace."""
        self.counts[cast("str", row["namespace"]), plane] += cast("int", row["total"])

    def add_days(self, plane: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Add the rows of a count by day."""
        for row in rows:
            self.days[plane, cast("int", row["day"])] += cast("int", row["total"])

    def check(self, total: int) -> None:
        """Note whether a count came to its bound."""
        self.exact = self.exact and total < ROWS_MAX


def count(prepare: Prepare, request: OverviewRequest) -> Sums:
    """Count in the request's org, and where the planes keep one of their own, there too."""
    sums = Sums()
    for org in dict.fromkeys((request.org, *(prepare.org_of(plane, request.org) for plane in OWN_ORGS))):
        with prepare.read(org) as tx:
            _count(tx, sums, prepare, request)
    return sums


def _count(tx: Transaction, sums: Sums, prepare: Prepare, request: OverviewRequest) -> None:
    found = namespaces.listed(tx, prepare.caller.namespaces, most=NAMESPACES_MAX)
    for space in found:
        sums.spaces.setdefault(space.name, space)
    wanted = set(request.planes or PLANES)
    bounds: dict[str, Param] = {"namespaces": [space.name for space in found], "most": ROWS_MAX}
    reach = bounds | reach_params(Reader(prepare.scope, request.user_id, request.session_id))
    since_us = _first_day(prepare.now_us, request.lookback_days) * DAY_US
    if "memories" in wanted:
        _count_ledger(tx, sums, reach if prepare.scope is not ReadScope.NAMESPACE else bounds, since_us)
    for plane in wanted & COUNTS.keys():
        for row in tx.rows(COUNTS[plane], **(bounds if plane == "symbols" else reach)):
            sums.add(plane, row)
    for plane in wanted & DAYS.keys():
        since = since_us * 1000 if plane == "documents" else since_us
        sums.add_days(plane, tx.rows(DAYS[plane], since=since, **reach))


def _count_ledger(tx: Transaction, sums: Sums, bounds: Mapping[str, Param], since_us: int) -> None:
    """Count memories and sections; `bounds` name a reader where that is a narrow one."""
    narrow = "reader" in bounds
    rows = tx.rows(NARROW_LEDGER_COUNT if narrow else LEDGER_COUNT, **bounds)
    for row in rows:
        sums.add(cast("str", row["plane"]), row)
    sums.check(sum(cast("int", row["total"]) for row in rows))
    days = tx.rows(NARROW_LEDGER_DAYS if narrow else LEDGER_DAYS, since=since_us * 1000, **bounds)
    sums.add_days("memories", days)


def _first_day(now_us: int, lookback_days: int) -> int:
    return now_us // DAY_US - lookback_days + 1


def overview(ctx: Context, request: OverviewRequest) -> OverviewAnswer:
    """Show what was counted."""
    sums = prepared_as(ctx, Sums)
    spaces = sorted(sums.spaces.values(), key=lambda space: -space.last_version)[:NAMESPACES_MAX]
    first = _first_day(ctx.now_us, request.lookback_days)
    return OverviewAnswer(
        server_version=__version__,
        namespaces=[_shown(space, sums) for space in spaces],
        exact=sums.exact,
        days=[_day(number, sums) for number in range(first, first + request.lookback_days)],
    )


def _shown(space: Namespace, sums: Sums) -> NamespaceCounts:
    planes = (*LEDGER, *COUNTS)
    return NamespaceCounts.model_validate(
        {
            "name": space.name,
            "kind": space.kind,
            "description": space.description,
            "last_written_at": instant_or_none(space.last_version // 1000 or None),
            **{plane: sums.counts[space.name, plane] for plane in planes},
        }
    )


def _day(number: int, sums: Sums) -> DayCounts:
    return DayCounts(
        day=datetime.fromtimestamp(number * 86_400, UTC).date().isoformat(),
        memories=sums.days["memories", number],
        documents=sums.days["documents", number],
        conversations=sums.days["conversations", number],
    )


OVERVIEW = Op(
    name="ops.overview",
    summary="See how much each namespace you reach holds, by plane, and how much was written on each of the last days.",
    takes=OverviewRequest,
    gives=OverviewAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=overview,
    example={},
    prepare=count,
    toolsets=frozenset(),
)
