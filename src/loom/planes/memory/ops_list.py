"""memory.list: what is stored, in order, a page at a time."""

import json
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from loom.access.caller import Role
from loom.ledger.rules import LIVE, Item
from loom.ops import handles
from loom.ops.fields import HANDLE_LENGTH_MAX, MEMORY_KEY_LENGTH_MAX, Instant, Tags, instant_or_none, microseconds
from loom.ops.spec import IDENTITY_LENGTH_MAX, Answer, Context, Kind, Op, OpenRequest, Toolset
from loom.planes.memory import listing
from loom.planes.memory.fields import MemoryTypes, ReadScopeField, VersionShown, json_value, reader_of, version_shown
from loom.planes.memory.listing import After, Listing, Order
from loom.planes.memory.ops_read import ending
from loom.planes.memory.select import value_of
from loom.retrieval import budget, values

LIST_MAX = 500
LIST_CHARACTERS_MAX = 4_000_000
"""Characters of values in one answer; one row is always shown."""

CONTAINS_LENGTH_MAX = 1000
AGENTS_MAX = 100

Status = Literal["live", "expired", "tombstoned", "redacted"]
Agents = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=IDENTITY_LENGTH_MAX)]], Field(max_length=AGENTS_MAX)
]


class ListRequest(OpenRequest):
    """What memory.list takes."""

    prefix: Annotated[
        str, Field(max_length=MEMORY_KEY_LENGTH_MAX, description="Only keys that begin with this text.")
    ] = ""
    memory_types: Annotated[
        MemoryTypes | None,
        Field(description="Only these types; null for all but profile sections, which are listed when named."),
    ] = None
    tags: Annotated[Tags | None, Field(description="Only memories with these tags; see tags_match.")] = None
    tags_match: Annotated[Literal["every", "any"], Field(description="Whether every tag is needed, or any.")] = "every"
    contains: Annotated[
        str,
        Field(
            max_length=CONTAINS_LENGTH_MAX,
            description="Only memories whose key or value holds this text, upper and lower case alike. No wildcards.",
        ),
    ] = ""
    agents: Annotated[Agents | None, Field(description="Only rows these agents wrote; null for everybody's.")] = None
    statuses: Annotated[
        list[Status] | None, Field(description="Which rows: live, expired, tombstoned, redacted; null for live ones.")
    ] = None
    as_of: Annotated[Instant | None, Field(description="List what lived at this moment; null for now.")] = None
    order: Annotated[Order, Field(description="By memory_key, or the newest version first.")] = "memory_key"
    bodies: Annotated[
        Literal["excerpt", "full", "none"],
        Field(description="What each row carries: the first 200 characters, the whole value, or neither."),
    ] = "excerpt"
    limit: Annotated[int, Field(ge=1, le=LIST_MAX, description="At most this many rows.")] = 50
    cursor: Annotated[
        str,
        Field(
            max_length=HANDLE_LENGTH_MAX,
            description="next_cursor of the answer before, with the same filters; empty for the first page.",
        ),
    ] = ""
    counted: Annotated[
        bool, Field(description="Whether to count all that pass; without, total is a floor, and the answer is quick.")
    ] = True
    read_scope: ReadScopeField = "namespace"


class ListedMemory(VersionShown):
    """One row."""

    memory_key: Annotated[str, Field(description="The key.")]
    memory_id: Annotated[str, Field(description="Names the row through all its versions.")]
    agent: Annotated[str, Field(description="The agent whose row it is.")]
    user_id: Annotated[str, Field(description="The end user it is about; '-' for none.")]
    pinned: Annotated[bool, Field(description="Whether it is pinned.")]
    lock_mode: Annotated[str, Field(description="Empty, no_delete or read_only.")]
    excerpt: Annotated[str | None, Field(description="The beginning of the value as text; null unless asked for.")] = (
        None
    )
    value: Annotated[JsonValue, Field(description="The whole value; null unless bodies is full.")] = None


class ListAnswer(Answer):
    """What memory.list answers."""

    items: Annotated[list[ListedMemory], Field(description="The rows, in the order asked for.")]
    count: Annotated[int, Field(description="How many rows this answer holds.")]
    total: Annotated[int, Field(description="How many rows pass the filters, on all pages together.")]
    total_exact: Annotated[bool, Field(description="false when total is a floor: more rows than one call looks at.")]
    truncated: Annotated[bool, Field(description="Whether there are more rows after these.")]
    next_cursor: Annotated[str, Field(description="Send as cursor to read on; empty at the end.")]


class Cursor(BaseModel):
    """Where a page ended."""

    model_config = ConfigDict(extra="forbid", strict=True)

    order: Order
    key: Annotated[str, Field(max_length=MEMORY_KEY_LENGTH_MAX)]
    number: Annotated[int, Field(ge=0, lt=1 << 63)]


def list_memories(ctx: Context, request: ListRequest) -> ListAnswer:
    """One page, and how many there are."""
    wanted = listing_of(ctx, request)
    after = None
    if request.cursor:
        cursor = handles.unpacked(Cursor, request.cursor, "cursor")
        wanted = replace(wanted, order=cursor.order)
        after = After(cursor.key, cursor.number)
    if request.counted:
        found, total, exact = listing.read(ctx.tx, wanted, after, request.limit + 1)
    else:
        found = listing.some(ctx.tx, wanted, after, request.limit + 1)
        total, exact = min(len(found), request.limit), False
    page = within_budget(found[: request.limit], request.bodies)
    more = len(found) > len(page)
    place = listing.place_after(wanted.order, page[-1]) if more else After()
    return ListAnswer(
        items=[listed(item, request.bodies, None if wanted.past else ctx.now_us) for item in page],
        count=len(page),
        total=total,
        total_exact=exact,
        truncated=more,
        next_cursor=handles.packed(Cursor(order=wanted.order, key=place.key, number=place.number)) if more else "",
    )


def listing_of(ctx: Context, request: ListRequest) -> Listing:
    """What the request asks for."""
    return Listing(
        namespace=request.namespace,
        reader=reader_of(ctx, request),
        moment_us=ctx.now_us if request.as_of is None else microseconds(request.as_of),
        past=request.as_of is not None,
        prefix=request.prefix,
        memory_types=tuple(request.memory_types or ()),
        agents=None if request.agents is None else tuple(request.agents),
        statuses=tuple(request.statuses or (LIVE,)),
        order=request.order,
        test=test_of(request),
        now_us=ctx.now_us,
    )


def test_of(request: ListRequest) -> "Test | None":
    """The part of the filter that engines would decide differently: tags, and letters beyond ASCII."""
    tags, needle = frozenset(request.tags or ()), request.contains.casefold()
    return Test(tags, request.tags_match == "every", needle) if tags or needle else None


class Test:
    """Whether an item has the tags and holds the text."""

    def __init__(self, tags: frozenset[str], every: bool, needle: str) -> None:  # noqa: FBT001  # built in one place
        self._tags, self._every, self._needle = tags, every, needle

    def __call__(self, item: Item) -> bool:
        """Test one item."""
        held = self._tags & set(item.head.attributes.tags)
        if self._tags and (held != self._tags if self._every else not held):
            return False
        if not self._needle or self._needle in item.memory_key.casefold():
            return True
        return self._needle in text_of(item).casefold()


def text_of(item: Item) -> str:
    """The value as text: a text as it is, anything else as JSON."""
    value = value_of(item.head)
    if item.head.value_text is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def within_budget(items: list[Item], bodies: str) -> list[Item]:
    """As many of the items as fit into one answer, one at least."""
    if bodies != "full":
        return items
    room = LIST_CHARACTERS_MAX
    for place, item in enumerate(items):
        room -= item.head.value_length
        if room < 0 and place:
            return items[:place]
    return items


def listed(item: Item, bodies: str, now_us: int | None) -> ListedMemory:
    """One row as it is shown now; without a moment, as it was when its version lived."""
    value = value_of(item.head)
    known = version_shown(item.head)
    has_value = item.head.value_text is not None
    return ListedMemory.model_validate(
        {
            **known,
            "status": LIVE if now_us is None else ending(item, now_us),
            "expires_at": known["expires_at"] if now_us is None else instant_or_none(item.expires_at),
            "memory_key": item.memory_key,
            "memory_id": item.memory_id,
            "agent": item.place.agent,
            "user_id": item.place.user_id,
            "pinned": item.pinned,
            "lock_mode": item.lock_mode,
            "excerpt": budget.excerpt(values.value_text(value)) if bodies == "excerpt" and has_value else None,
            "value": json_value(value) if bodies == "full" else None,
        }
    )


LIST = Op(
    name="memory.list",
    summary="List memories by prefix, type, tags or text they hold, now or as of a moment; search finds by meaning.",
    takes=ListRequest,
    gives=ListAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=list_memories,
    example={"prefix": "project/", "limit": 20},
    toolsets=frozenset({Toolset.DEFAULT, Toolset.ALL}),
    may_lag=True,
)
