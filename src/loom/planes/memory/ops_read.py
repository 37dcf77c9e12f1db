"""memory.get and memory.history: reading one memory, now, at a moment, or through all its versions."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field, JsonValue

from loom.access.caller import Role
from loom.errors import NotFound, Rejected
from loom.ledger import rules as ledger
from loom.ledger import store, telling
from loom.ledger.rules import LIVE, Item, Reader, Version
from loom.ops.fields import MEMORY_KEY_LENGTH_MAX, Instant, MemoryKey, microseconds
from loom.ops.spec import Answer, Context, Kind, Op, OpenRequest, Toolset
from loom.planes.memory import rules
from loom.planes.memory.fields import (
    MISSING,
    ReadScopeField,
    VersionShown,
    json_value,
    place_of,
    reader_of,
    version_shown,
)
from loom.planes.memory.ops_remove import EXAMPLE, VERSION_TEXT_LENGTH_MAX
from loom.planes.memory.select import value_of

HISTORY_MAX = 200
HISTORY_CHARACTERS_MAX = 4_000_000
"""Characters of values in one answer of memory.history; one version is always shown."""

MEMORY_ID_LENGTH_MAX = 64
EXPIRED = "expired"


class GetRequest(OpenRequest):
    """What memory.get takes."""

    memory_key: Annotated[MemoryKey, Field(description="The memory's key.")]
    as_of: Annotated[Instant | None, Field(description="Read the memory as it was at this moment; null for now.")] = (
        None
    )
    version_text: Annotated[
        str, Field(max_length=VERSION_TEXT_LENGTH_MAX, description="Read this version of it; empty for the live one.")
    ] = ""
    if_version: Annotated[
        str,
        Field(
            max_length=VERSION_TEXT_LENGTH_MAX,
            description="The version_text you have: while that is still the one, unchanged is true and no value is "
            "sent; empty to have it sent anyway.",
        ),
    ] = ""
    read_scope: ReadScopeField = "namespace"


class GetAnswer(Answer, VersionShown):
    """What memory.get answers."""

    found: Annotated[bool, Field(description="Whether there is a value to read; false is no error.")]
    memory_key: Annotated[str, Field(description="The key that was asked for.")]
    unchanged: Annotated[bool, Field(description="Whether it is still the version that if_version names.")] = False
    value: Annotated[JsonValue, Field(description="The value; null when not found or unchanged.")] = None
    memory_id: Annotated[str, Field(description="Names the row through all its versions.")] = ""
    namespace: Annotated[str, Field(description="The namespace that holds it.")]
    agent: Annotated[str, Field(description="The agent whose row it is.")] = "-"
    user_id: Annotated[str, Field(description="The end user it is about; '-' for none.")] = "-"
    pinned: Annotated[bool, Field(description="Whether it is pinned.")] = False
    lock_mode: Annotated[str, Field(description="Empty, no_delete or read_only.")] = ""
    lock_reason: Annotated[str, Field(description="Why it is locked.")] = ""


class HistoryRequest(OpenRequest):
    """What memory.history takes."""

    memory_key: Annotated[
        str, Field(max_length=MEMORY_KEY_LENGTH_MAX, description="The memory's key; or send memory_id.")
    ] = ""
    memory_id: Annotated[
        str,
        Field(max_length=MEMORY_ID_LENGTH_MAX, description="The row's id; it says which row where many have a key."),
    ] = ""
    limit: Annotated[int, Field(ge=1, le=HISTORY_MAX, description="At most this many versions, the newest first.")] = 50
    before_version_text: Annotated[
        str, Field(max_length=VERSION_TEXT_LENGTH_MAX, description="Only versions older than this; empty for all.")
    ] = ""
    read_scope: ReadScopeField = "namespace"


class HistoryVersion(VersionShown):
    """One version."""

    value: Annotated[JsonValue, Field(description="Its value; null when it has none (any more).")] = None


class HistoryAnswer(Answer):
    """What memory.history answers."""

    memory_key: Annotated[str, Field(description="The memory's key.")]
    memory_id: Annotated[str, Field(description="Names the row through all its versions.")]
    namespace: Annotated[str, Field(description="The namespace that holds it.")]
    agent: Annotated[str, Field(description="The agent whose row it is.")]
    user_id: Annotated[str, Field(description="The end user it is about; '-' for none.")]
    status: Annotated[str, Field(description="What the row is now: live, tombstoned, redacted or expired.")]
    versions: Annotated[list[HistoryVersion], Field(description="Its versions, the newest first.")]
    truncated: Annotated[bool, Field(description="Whether older ones were left out; see next_version_text.")]
    next_version_text: Annotated[
        str, Field(description="Send as before_version_text to read older versions; empty at the end.")
    ]


def get(ctx: Context, request: GetRequest) -> GetAnswer:
    """One memory's value and all that is known of it."""
    place, reader = place_of(request), reader_of(ctx, request)
    if request.as_of is not None and request.version_text:
        raise Rejected("version_text: send as_of or version_text, not both", field="version_text")
    if request.if_version:
        rules.version_number(request.if_version, "if_version")
    if request.version_text:
        number = rules.version_number(request.version_text)
        return numbered(ctx, request, number)
    if request.as_of is not None:
        return at_moment(ctx, request, microseconds(request.as_of))
    item = store.for_read(ctx.tx, place, request.memory_key, reader, ctx.now_us)
    if item is None:
        return not_found(ctx, request)
    head = replace(item.head, status=LIVE, attributes=replace(item.head.attributes, expires_at=item.expires_at))
    return got(ctx, request, item, head)


def got(ctx: Context, request: GetRequest, item: Item, version: Version) -> GetAnswer:
    """The answer for a version that was found; without its value when the caller has it."""
    (version,) = telling.told(ctx.tx, item, [version], ctx.now_us)
    unchanged = request.if_version != "" and int(request.if_version) == version.version
    return GetAnswer.model_validate(
        {
            **version_shown(version),
            "found": True,
            "memory_key": request.memory_key,
            "unchanged": unchanged,
            "value": None if unchanged else json_value(value_of(version)),
            "memory_id": item.memory_id,
            "namespace": item.place.namespace,
            "agent": item.place.agent,
            "user_id": item.place.user_id,
            "pinned": item.pinned,
            "lock_mode": item.lock_mode,
            "lock_reason": item.lock_reason,
        }
    )


def not_found(ctx: Context, request: GetRequest) -> GetAnswer:
    """The answer when there is no value: why, as far as the caller may know."""
    ended = rows(ctx, request)
    status = ending(ended[0], ctx.now_us) if ended else MISSING
    return GetAnswer(found=False, memory_key=request.memory_key, namespace=request.namespace, status=status)


def ending(item: Item, now_us: int) -> str:
    """What became of an item, as answers say it."""
    return EXPIRED if item.status == LIVE and not item.is_live(now_us) else item.status


def rows(ctx: Context, request: GetRequest | HistoryRequest) -> list[Item]:
    """Every row of the key that the caller may see, whatever became of it; the caller's own first."""
    place = place_of(request)
    found = store.seen(ctx.tx, place, request.memory_key, reader_of(ctx, request), ctx.now_us, ended=True)
    return sorted(found, key=lambda item: item.place != place)


def numbered(ctx: Context, request: GetRequest, number: int) -> GetAnswer:
    """One version, if the caller may see it and it still has its value."""
    reader = reader_of(ctx, request)
    for item in rows(ctx, request):
        version = store.version(ctx.tx, item.item_id, number)
        if version is not None and version.value_text is not None and may_see(item, version, reader):
            return got(ctx, request, item, version)
    return not_found(ctx, request)


def at_moment(ctx: Context, request: GetRequest, moment_us: int) -> GetAnswer:
    """The version that lived at a moment: of the caller's own row, else the latest."""
    reader, place = reader_of(ctx, request), place_of(request)
    found: list[tuple[bool, bool, int, Item, Version]] = []
    for item in rows(ctx, request):
        version = store.as_of(ctx.tx, item.item_id, moment_us)
        if version is None or version.value_text is None or not may_see(item, version, reader):
            continue
        expires_at = version.attributes.expires_at
        if expires_at is None or expires_at > moment_us:
            found.append((item.place == place, item.place.user_id == place.user_id, version.version, item, version))
    if not found:
        return not_found(ctx, request)
    best = max(found, key=lambda one: one[:3])
    return got(ctx, request, best[3], best[4])


def may_see(item: Item, version: Version, reader: Reader) -> bool:
    """Whether the reader's scope reaches the version: it may come from another session than the row's latest."""
    return ledger.sees(reader, item, version)


def history(ctx: Context, request: HistoryRequest) -> HistoryAnswer:
    """The versions of one row."""
    item = row_of(ctx, request)
    before = store.BEFORE_ALL
    if request.before_version_text:
        before = rules.version_number(request.before_version_text, "before_version_text")
    reader = reader_of(ctx, request)
    found = telling.told(ctx.tx, item, store.history(ctx.tx, item.item_id, request.limit + 1, before), ctx.now_us)
    shown: list[HistoryVersion] = []
    room, last = HISTORY_CHARACTERS_MAX, 0
    for version in found[: request.limit]:
        room -= version.value_length
        if room < 0 and last:
            break
        last = version.version
        if may_see(item, version, reader):
            known = version_shown(version)
            shown.append(HistoryVersion.model_validate({**known, "value": json_value(value_of(version))}))
    more = bool(found) and last != found[-1].version
    return HistoryAnswer(
        memory_key=item.memory_key,
        memory_id=item.memory_id,
        namespace=item.place.namespace,
        agent=item.place.agent,
        user_id=item.place.user_id,
        status=ending(item, ctx.now_us),
        versions=shown,
        truncated=more,
        next_version_text=str(last) if more else "",
    )


def row_of(ctx: Context, request: HistoryRequest) -> Item:
    """The row that is asked for: the live one first, then the caller's own, then the latest.

    Raises:
        NotFound: there is none that the caller may see.
        Rejected: neither a key nor an id was sent.
    """
    if request.memory_id:
        number = ledger.item_id_of(request.memory_id)
        item = None if number is None else store.by_id(ctx.tx, number)
        known = item is not None and item.place.namespace == request.namespace
        if item is None or not known or not may_see(item, item.head, reader_of(ctx, request)):
            raise NotFound("memory_id: there is no such memory here", field="memory_id")
        return item
    if not request.memory_key:
        raise Rejected("memory_key: send memory_key or memory_id", field="memory_key")
    found = sorted(rows(ctx, request), key=lambda item: not item.is_live(ctx.now_us))
    if not found:
        raise NotFound("memory_key: nothing is stored under this key", field="memory_key")
    return found[0]


GET = Op(
    name="memory.get",
    summary="Read one memory by its key, now, as of a moment, or one version; found=false when there is none.",
    takes=GetRequest,
    gives=GetAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=get,
    example=EXAMPLE,
    toolsets=frozenset({Toolset.DEFAULT, Toolset.ALL}),
)

HISTORY = Op(
    name="memory.history",
    summary="Read every version of one memory or profile section, the newest first.",
    takes=HistoryRequest,
    gives=HistoryAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=history,
    example=EXAMPLE,
    raises=(NotFound,),
)
