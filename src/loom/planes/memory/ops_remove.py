"""memory.delete, restore, delete_version and redact: taking a memory away, and bringing it back."""

from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from loom.access.caller import Role
from loom.errors import AmbiguousKey, Conflict, Locked, NotFound, PinnedConflict, ShaMismatch
from loom.ledger import embedding, store, writes
from loom.ledger import rules as ledger
from loom.ledger.rules import Item, Version
from loom.ops import idempotency
from loom.ops.fields import DAY_US, EMBEDDER, IfMatch, Instant, instant_or_none
from loom.ops.spec import Audited, Context, Kind, Op, Prepare, prepared_as
from loom.planes.memory import embeds, rules
from loom.planes.memory.embeds import Ready
from loom.planes.memory.fields import KeyRequest, MemoryAnswer, SourceTrace, answer_fields, place_of, reader_of
from loom.planes.memory.select import value_of

REASONS_TOLD_BY = ("memory.lock", "memory.pin", "memory.touch")
"""Operations whose answers repeat why a memory is locked."""

VERSION_TEXT_LENGTH_MAX = 19


class DeleteRequest(KeyRequest):
    """What memory.delete takes."""

    source_trace: Annotated[SourceTrace, Field(description="Why it is deleted, in your own words.")] = ""
    if_match_sha256: Annotated[
        IfMatch,
        Field(description="Delete only while the live value has this content_sha256, else 409; empty for no check."),
    ] = ""


class DeleteAnswer(MemoryAnswer):
    """What memory.delete answers."""

    recoverable_until: Annotated[Instant | None, Field(description="Until when memory.restore brings it back.")] = None


class RestoreAnswer(MemoryAnswer):
    """What memory.restore answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"degraded"})

    restored_version_text: Annotated[str, Field(description="The version whose value lives again.")]
    degraded: Annotated[
        list[str] | None,
        Field(description="embedder when it was not ready: search by meaning follows. Absent when nothing was lost."),
    ] = None


class DeleteVersionRequest(KeyRequest):
    """What memory.delete_version takes."""

    version_text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=VERSION_TEXT_LENGTH_MAX,
            description="The version to erase, as the version_text of an answer.",
        ),
    ]


class DeleteVersionAnswer(MemoryAnswer):
    """What memory.delete_version answers: the row as it is now."""

    deleted_version_text: Annotated[str, Field(description="The version whose value is gone for good.")]


class RedactAnswer(MemoryAnswer):
    """What memory.redact answers."""

    versions_redacted: Annotated[int, Field(description="Versions whose text was erased by this call.")]


def opened(ctx: Context, request: KeyRequest) -> Item:
    """The row that the key means, locked; the live one where there is one."""
    reader = reader_of(ctx, request)
    item = store.for_write(ctx.tx, place_of(request), request.memory_key, lambda one: one.is_live(ctx.now_us), reader)
    ledger.check_reach(item, reader)
    return item


def delete(ctx: Context, request: DeleteRequest) -> DeleteAnswer:
    """End the memory; it can be restored for a while."""
    item = opened(ctx, request)
    rules.check_live(item, ctx.now_us)
    ledger.check_match(item, request.if_match_sha256, ctx.now_us)
    ledger.check_deletable(item)
    ledger.check_trace(request.source_trace)
    ended = writes.tombstone(ctx.tx, item, request.source_trace, request.run_id)
    until = recoverable_until(ended, ctx.limits.tombstone_days)
    return DeleteAnswer.model_validate({**answer_fields(ended), "recoverable_until": instant_or_none(until)})


def recoverable_until(item: Item, tombstone_days: int) -> int | None:
    """When an ended item is purged, in microseconds; None for one that did not end."""
    return None if item.ended_at is None else item.ended_at + tombstone_days * DAY_US


def to_restore(prepare: Prepare, request: KeyRequest) -> Ready:
    """Embed the value that will live again."""
    reader, place = reader_of(prepare, request), place_of(request)
    with prepare.read(request.org) as tx:
        item = store.meant(tx, place, request.memory_key, lambda one: not one.is_live(prepare.now_us), reader)
        older = None if item.is_live(prepare.now_us) else last_value(item, store.older_with_value(tx, *before(item)))
    ledger.check_reach(item, reader)
    if older is None:
        return embeds.NOTHING
    made = revived(older)
    return embeds.made_ready(prepare.embedder, [embeds.text_of(item.memory_key, made)], embedding.WRITE_TIMEOUT_S)[0]


def before(item: Item) -> tuple[int, int]:
    """Where to look for the version to restore: at the item's latest and below."""
    return item.item_id, item.head.version


def last_value(item: Item, older: Version | None) -> Version | None:
    """The newest version with a value: the head itself of an item that has merely expired."""
    return item.head if item.head.value_text is not None else older


def revived(version: Version) -> ledger.Draft:
    """A version's value and attributes, to live again without an end."""
    attributes = replace(version.attributes, expires_at=None)
    return ledger.draft(value_of(version), attributes, version.session_id, version.run_id)


def restore(ctx: Context, request: KeyRequest) -> RestoreAnswer:
    """Bring back what was deleted or has expired."""
    ready = prepared_as(ctx, Ready)
    reader, place = reader_of(ctx, request), place_of(request)
    item = store.for_write(ctx.tx, place, request.memory_key, lambda one: not one.is_live(ctx.now_us), reader)
    ledger.check_reach(item, reader)
    if item.is_live(ctx.now_us):
        raise Conflict("memory_key: the memory is live; there is nothing to restore", field="memory_key")
    ledger.check_writable(item)
    until = recoverable_until(item, ctx.limits.tombstone_days)
    older = last_value(item, store.older_with_value(ctx.tx, *before(item)))
    if older is None or (until is not None and until <= ctx.now_us):
        raise NotFound("memory_key: nothing is left to restore", field="memory_key")
    made = replace(revived(older), run_id=request.run_id)
    vectors = ready.for_draft(item.memory_key, made)
    live = writes.write(ctx.tx, item, (item.place, item.memory_key), made, vectors)
    known = {**answer_fields(live), "restored_version_text": str(older.version)}
    return RestoreAnswer.model_validate({**known, "degraded": [EMBEDDER] if ready.failed else None})


def delete_version(ctx: Context, request: DeleteVersionRequest) -> DeleteVersionAnswer:
    """Erase one version for good."""
    number = rules.version_number(request.version_text)
    reader = reader_of(ctx, request)
    item = store.for_write(
        ctx.tx,
        place_of(request),
        request.memory_key,
        lambda one: store.version(ctx.tx, one.item_id, number) is not None,
        reader,
    )
    ledger.check_reach(item, reader)
    found = store.version(ctx.tx, item.item_id, number)
    if found is not None and not ledger.sees(reader, item, found):
        found = None
    older = store.older_with_value(ctx.tx, item.item_id, number)
    rules.check_version_deletable(item, found, older)
    after = writes.delete_version(ctx.tx, item, number)
    return DeleteVersionAnswer.model_validate({**answer_fields(after), "deleted_version_text": str(number)})


def redact(ctx: Context, request: KeyRequest) -> RedactAnswer:
    """Erase the text of every version."""
    item = opened(ctx, request)
    ledger.check_deletable(item)
    count = store.values_count(ctx.tx, item.item_id)
    if item.status == ledger.REDACTED:
        return RedactAnswer.model_validate({**answer_fields(item), "versions_redacted": 0})
    after = writes.redact(ctx.tx, item)
    for op in REASONS_TOLD_BY:
        idempotency.forget_text(ctx.tx, op, {"memory_id": item.memory_id}, "lock_reason")
    return RedactAnswer.model_validate({**answer_fields(after), "versions_redacted": count})


EXAMPLE = {"memory_key": "project/database"}
GUARDED = (NotFound, AmbiguousKey, PinnedConflict, Locked)

DELETE = Op(
    name="memory.delete",
    summary="Delete a memory; it is found no more at once, and memory.restore brings it back until recoverable_until.",
    takes=DeleteRequest,
    gives=DeleteAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=delete,
    example=EXAMPLE,
    raises=(*GUARDED, ShaMismatch),
    destructive=True,
    audited=Audited(about=("memory_key", "memory_id")),
)

RESTORE = Op(
    name="memory.restore",
    summary="Bring back a memory that was deleted or has expired, with the value and attributes it had.",
    takes=KeyRequest,
    gives=RestoreAnswer,
    role=Role.WRITER,
    kind=Kind.WRITE,
    run=restore,
    example=EXAMPLE,
    prepare=to_restore,
    raises=(NotFound, AmbiguousKey, Conflict, Locked),
)

DELETE_VERSION = Op(
    name="memory.delete_version",
    summary="Erase one version of a memory for good; where it was the live one, the next older lives again.",
    takes=DeleteVersionRequest,
    gives=DeleteVersionAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=delete_version,
    example={**EXAMPLE, "version_text": "1790000000000000000"},
    raises=GUARDED,
    destructive=True,
    audited=Audited(about=("memory_key", "memory_id", "deleted_version_text")),
)

REDACT = Op(
    name="memory.redact",
    summary="Erase a memory's text from every version and index for good; that there was one stays known.",
    takes=KeyRequest,
    gives=RedactAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=redact,
    example=EXAMPLE,
    raises=GUARDED,
    destructive=True,
    audited=Audited(about=("memory_key", "memory_id"), outcome=("versions_redacted",)),
)
