"""tracker.list: issues by their number, the latest first, a page at a time."""

import re
from typing import Annotated, Literal

from pydantic import Field

from loom.access.caller import Role
from loom.errors import Rejected
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest
from loom.planes.tracker import store
from loom.planes.tracker.fields import Name, ReadScopeField, ShownIssue, reader_of, shown
from loom.planes.tracker.rules import Issue
from loom.planes.tracker.store import Filter, Place

LIST_MAX = 200
CURSOR = re.compile(r"([0-9]{1,18})\.([0-9]{1,19})")
CURSOR_LENGTH_MAX = 40
NUMBER_MAX = 2**63 - 1


class ListRequest(OpenRequest):
    """What tracker.list takes."""

    state: Annotated[Literal["", "open", "closed"], Field(description="Only open or closed ones; empty for both.")] = ""
    component: Annotated[Name, Field(description="Only of this component; empty for any.")] = ""
    limit: Annotated[int, Field(ge=1, le=LIST_MAX, description="At most this many issues.")] = 50
    cursor: Annotated[
        str, Field(max_length=CURSOR_LENGTH_MAX, description="next_cursor of the answer before; empty to begin.")
    ] = ""
    read_scope: ReadScopeField = "namespace"


class ListAnswer(Answer):
    """What tracker.list answers."""

    issues: Annotated[list[ShownIssue], Field(description="The issues, the highest number first.")]
    total: Annotated[int, Field(description="How many issues pass the filters, on all pages together.")]
    next_cursor: Annotated[str, Field(description="Send as cursor to read on; empty at the end.")]


def list_issues(ctx: Context, request: ListRequest) -> ListAnswer:
    """One page, and how many there are."""
    where = Filter(
        namespace=request.namespace,
        reader=reader_of(ctx, request),
        state=request.state,
        component=request.component,
    )
    found = store.listed(ctx.tx, where, place_of(request.cursor), request.limit + 1)
    page = found[: request.limit]
    return ListAnswer(
        issues=[shown(issue) for issue in page],
        total=store.count(ctx.tx, where),
        next_cursor=cursor_of(page[-1]) if len(found) > len(page) else "",
    )


def cursor_of(issue: Issue) -> str:
    """Where a page ended."""
    return f"{issue.content.number}.{issue.item_id}"


def place_of(cursor: str) -> Place:
    """The issue that a cursor names; before all for an empty one.

    Raises:
        Rejected: it is no cursor.
    """
    if not cursor:
        return store.BEFORE_ALL
    parts = CURSOR.fullmatch(cursor)
    if parts is None or int(parts[2]) > NUMBER_MAX:
        raise Rejected("cursor: not of an earlier answer; begin again without it", field="cursor")
    return Place(int(parts[1]), int(parts[2]))


LIST = Op(
    name="tracker.list",
    summary="List issues by their number, the latest first.",
    takes=ListRequest,
    gives=ListAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=list_issues,
    example={"state": "open", "limit": 20},
)

OPS = (LIST,)
