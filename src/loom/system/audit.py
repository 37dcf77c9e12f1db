"""audit.list: what changed access and what took information away, and who did it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from loom.access.caller import ReadScope, Role
from loom.errors import Denied, Rejected
from loom.jobs.handlers import Bench
from loom.ops import audit
from loom.ops.audit import Filter, Record
from loom.ops.fields import DAY_US, Instant, instant, microseconds
from loom.ops.spec import IDENTITY_LENGTH_MAX, Answer, Context, Kind, Op, Prepare, ServerRequest, prepared_as
from loom.storage.interface import SYSTEM_ORG

LIST_MAX = 200
OP_LENGTH_MAX = 64
OWN_ORGS = ("tracker", "code")
"""Planes that may keep an org of their own."""

CURSOR = re.compile(r"([0-9]{1,18})\.([0-9]{1,18}|[0-8][0-9]{18})\.([0-9])")
CURSOR_LENGTH_MAX = 40

Name = Annotated[str, Field(max_length=IDENTITY_LENGTH_MAX)]


class ListRequest(ServerRequest):
    """What audit.list takes."""

    about_namespace: Annotated[Name, Field(description="Only what was done to this namespace; empty for all.")] = ""
    principal: Annotated[Name, Field(description="Only what this token did, by its token_id; empty for all.")] = ""
    op: Annotated[
        str, Field(max_length=OP_LENGTH_MAX, description="Only this operation, for instance token.mint; empty for all.")
    ] = ""
    since: Annotated[Instant | None, Field(description="Only from this moment on; null for no bound.")] = None
    until: Annotated[Instant | None, Field(description="Only before this moment; null for no bound.")] = None
    limit: Annotated[int, Field(ge=1, le=LIST_MAX, description="At most this many records.")] = 50
    cursor: Annotated[
        str, Field(max_length=CURSOR_LENGTH_MAX, description="next_cursor of the answer before; empty to begin.")
    ] = ""


class RecordShown(BaseModel):
    """One thing that was done."""

    model_config = ConfigDict(frozen=True)

    at: Annotated[Instant, Field(description="When.")]
    op: Annotated[str, Field(description="The operation.")]
    namespace: Annotated[str, Field(description="Where; '-' for what belongs to no namespace, such as a token.")]
    principal: Annotated[str, Field(description="Who: the token_id, or local for a caller without a token.")]
    agent: Annotated[str, Field(description="The agent that the token or the client names; '-' for none.")]
    about: Annotated[
        dict[str, str],
        Field(description="Names and ids of what it was about. Empty once the namespace was deleted."),
    ]
    outcome: Annotated[dict[str, int | bool], Field(description="Numbers, and yes or no, of what came of it.")]


class ListAnswer(Answer):
    """What audit.list answers."""

    records: Annotated[list[RecordShown], Field(description="The records, the newest first.")]
    next_cursor: Annotated[str, Field(description="Send as cursor to read on; empty at the end.")]


@dataclass(frozen=True, slots=True)
class Page:
    """Records of every store that was asked, with the place of each in the order of stores."""

    records: Sequence[tuple[int, Record]]
    more: bool


def read(prepare: Prepare, request: ListRequest) -> Page:
    """Read one page: from the org, from the planes' own orgs, and of the system's rows what concerns the org.

    Raises:
        Denied: the token does not read every user's rows.
        Rejected: the cursor is none.
    """
    if prepare.scope is not ReadScope.NAMESPACE:
        raise Denied("the audit needs a token that reads the whole namespace")
    at, record_id, place = _place(request.cursor)
    orgs = [*dict.fromkeys((request.org, *(prepare.org_of(plane, request.org) for plane in OWN_ORGS))), SYSTEM_ORG]
    found = list[tuple[int, Record]]()
    for number, org in enumerate(orgs):
        where = Filter(
            tenant=request.org if org == SYSTEM_ORG else org,
            since=microseconds(request.since) if request.since else 0,
            until=microseconds(request.until) if request.until else audit.AT_MAX,
            op=request.op,
            principal=request.principal,
            namespace=request.about_namespace,
            reader=prepare.caller,
        )
        # Of one moment and id in several stores, those of the later stores come first.
        before = (at, record_id + 1 if number < place and record_id < audit.AT_MAX else record_id)
        with prepare.read(org) as tx:
            found += [(number, record) for record in audit.listed(tx, where, before, request.limit + 1)]
    found.sort(key=lambda one: (one[1].at, one[1].record_id, one[0]), reverse=True)
    return Page(found[: request.limit], more=len(found) > request.limit)


def list_records(ctx: Context, request: ListRequest) -> ListAnswer:
    """Show the page."""
    del request
    page = prepared_as(ctx, Page)
    return ListAnswer(
        records=[_shown(record) for _, record in page.records],
        next_cursor=_cursor(*page.records[-1]) if page.more else "",
    )


def forget_old(bench: Bench, org: str) -> None:
    """Forget records past their time."""
    before_us = bench.clock_us() - bench.audit_days * DAY_US
    with bench.database.transaction(org, write=False) as tx:
        if not audit.any_over(tx, before_us):
            return
    with bench.database.transaction(org, write=True) as tx:
        audit.sweep(tx, before_us)


def _place(cursor: str) -> tuple[int, int, int]:
    if not cursor:
        return (*audit.BEFORE_ALL, 0)
    parts = CURSOR.fullmatch(cursor)
    if parts is None:
        raise Rejected("cursor: not of an earlier answer; begin again without it", field="cursor")
    return int(parts[1]), int(parts[2]), int(parts[3])


def _cursor(place: int, record: Record) -> str:
    return f"{record.at}.{record.record_id}.{place}"


def _shown(record: Record) -> RecordShown:
    return RecordShown(
        at=instant(record.at),
        op=record.op,
        namespace=record.namespace,
        principal=record.principal,
        agent=record.agent,
        about=dict(record.about),
        outcome=dict(record.outcome),
    )


LIST = Op(
    name="audit.list",
    summary="See what changed access and what took information away: who did it, when and to what; the newest first.",
    takes=ListRequest,
    gives=ListAnswer,
    role=Role.ADMIN,
    kind=Kind.READ,
    run=list_records,
    example={"op": "token.mint", "limit": 20},
    prepare=read,
    raises=(Denied,),
    toolsets=frozenset(),
)
