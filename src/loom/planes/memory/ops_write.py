"""memory.set and memory.update: writing one memory."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from loom.access.caller import Role
from loom.errors import AmbiguousKey, KindConflict, Locked, NotFound, PinnedConflict, ShaMismatch, TooLong
from loom.ledger import embedding, store, writes
from loom.ledger import rules as ledger
from loom.ledger.rules import PROFILE, Draft, Item
from loom.ops.fields import EMBEDDER, CharLimit, IfMatch, Instant, Tags, microseconds
from loom.ops.identity import check_one_agent
from loom.ops.spec import Context, Kind, Op, Prepare, Request, Toolset, prepared_as
from loom.planes.memory import embeds, rules
from loom.planes.memory.embeds import Ready, Twin
from loom.planes.memory.fields import (
    Confidence,
    KeyRequest,
    MemoryAnswer,
    MemoryType,
    Sensitivity,
    SetFields,
    SourceTrace,
    TtlSeconds,
    Writing,
    answer_fields,
    json_of,
    place_of,
    reader_of,
)
from loom.planes.memory.select import Filter, value_of


class SetRequest(SetFields, Request):
    """What memory.set takes."""

    dry_run: Annotated[bool, Field(description="Check everything, say what would happen, write nothing.")] = False


class Duplicate(BaseModel):
    """A live memory under another key that says nearly the same."""

    model_config = ConfigDict(frozen=True)

    memory_key: Annotated[str, Field(description="Its key.")]
    memory_id: Annotated[str, Field(description="Its id.")]
    agent: Annotated[str, Field(description="Who wrote it.")]
    user_id: Annotated[str, Field(description="The end user it is about.")]
    similarity: Annotated[float, Field(description="Cosine of the two in the embedding space, at most 1.")]


class SetAnswer(MemoryAnswer):
    """What memory.set answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"duplicate_of", "degraded"})

    created: Annotated[bool, Field(description="Whether no live memory had the key before.")]
    changed: Annotated[bool, Field(description="Whether a version was written; false when it said nothing new.")]
    dry_run: Annotated[bool, Field(description="Whether this is only what would have happened.")] = False
    duplicate_of: Annotated[
        Duplicate | None,
        Field(description="A memory under another key that says nearly the same; both are kept. Absent when none."),
    ] = None
    degraded: Annotated[
        list[str] | None,
        Field(description="embedder when it was not ready: search by meaning follows. Absent when nothing was lost."),
    ] = None


class UpdateRequest(KeyRequest):
    """What memory.update takes: what is left out (or null) stays as it is."""

    value: Annotated[JsonValue, Field(description="The new value; left out or null, the old one stays.")] = None
    memory_type: Annotated[MemoryType | None, Field(description="The new type; null keeps it.")] = None
    tags: Annotated[Tags | None, Field(description="The new tags, all of them; null keeps them.")] = None
    confidence: Annotated[Confidence | None, Field(description="How sure the claim is now; null keeps it.")] = None
    source_trace: Annotated[SourceTrace | None, Field(description="Where the change comes from; null keeps it.")] = None
    sensitivity: Annotated[Sensitivity | None, Field(description="normal or high; null keeps it.")] = None
    valid_at: Annotated[Instant | None, Field(description="From when the claim holds; null keeps it.")] = None
    valid_to: Annotated[Instant | None, Field(description="Until when the claim holds; null keeps it.")] = None
    ttl_seconds: Annotated[
        TtlSeconds | None, Field(description="Forget the memory after this many seconds; 0 never, null keeps it.")
    ] = None
    char_limit: Annotated[CharLimit | None, Field(description="A section's new cap; null keeps it.")] = None
    if_match_sha256: Annotated[
        IfMatch,
        Field(description="Change only while the live value has this content_sha256, else 409; empty for no check."),
    ] = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one write. `item` is None for a dry run of a new key."""

    item: Item | None
    created: bool
    changed: bool


def draft_of(fields: SetFields, request: Request, now_us: int) -> Draft:
    """The draft that the fields stand for."""
    return rules.drafted(json_of(fields.value), rules.attributes_of(fields, now_us), request)


def put(ctx: Writing, request: Request, fields: SetFields, ready: Ready, *, dry_run: bool) -> Outcome:
    """Create or replace the caller's own row of a key.

    Every refusal comes before the first change, so that a caller who writes many can go on after one.
    """
    made = draft_of(fields, request, ctx.now_us)
    place, key = place_of(request), fields.memory_key
    ledger.check_own_words(key, fields.memory_type)
    store.lock(ctx.tx, place, key)
    row = store.exact(ctx.tx, place, key)
    ledger.check_reach(row, reader_of(ctx, request))
    ledger.check_kind(row, ctx.now_us, section=made.attributes.memory_type == PROFILE)
    ledger.check_match(row, fields.if_match_sha256, ctx.now_us)
    ledger.check_writable(row)
    rules.check_expiry(row, made.attributes.expires_at)
    live = row if row is not None and row.is_live(ctx.now_us) else None
    if live is not None and rules.says_nothing_new(live, made):
        if not dry_run and live.expires_at != made.attributes.expires_at:
            live = writes.set_expiry(ctx.tx, live, made.attributes.expires_at)
        return Outcome(live, created=False, changed=False)
    if dry_run:
        return Outcome(live, created=live is None, changed=True)
    written = writes.write(ctx.tx, row, (place, key), made, ready.for_draft(key, made))
    return Outcome(written, created=live is None, changed=True)


def ready_to_set(prepare: Prepare, request: SetRequest) -> Ready:
    """Embed the value, unless it says nothing new, and look for its twin."""
    check_one_agent(request)
    made = draft_of(request, request, prepare.now_us)
    key, place = request.memory_key, place_of(request)
    row = embeds.current(prepare, request.org, place, key)
    if row is not None and row.is_live(prepare.now_us) and rules.says_nothing_new(row, made):
        return embeds.NOTHING
    ready = embeds.made_ready(prepare.embedder, [embeds.text_of(key, made)], embedding.WRITE_TIMEOUT_S)[0]
    where = Filter((request.namespace,), reader_of(prepare, request), prepare.now_us)
    return replace(ready, twin=embeds.twin_of(prepare, request.org, where, key, made, ready))


def set_memory(ctx: Context, request: SetRequest) -> SetAnswer:
    """Create or replace; say who says the same."""
    ready = prepared_as(ctx, Ready)
    outcome = put(ctx, request, request, ready, dry_run=request.dry_run)
    degraded = [EMBEDDER] if ready.failed and outcome.changed else None
    return set_answer(ctx, request, request, outcome).model_copy(
        update={"dry_run": request.dry_run, "duplicate_of": duplicate(ready.twin), "degraded": degraded}
    )


def set_answer(ctx: Context, request: Request, fields: SetFields, outcome: Outcome) -> SetAnswer:
    """What is answered of a write; for a dry run, of what it would have made."""
    made = draft_of(fields, request, ctx.now_us)
    item = outcome.item
    known = dict(answer_fields(item)) if item else unwritten(request, fields, ctx.now_us)
    if outcome.changed and (item is None or item.head.content_sha256 != made.measured.sha256):
        known |= {"content_sha256": made.measured.sha256, "value_length": made.measured.length}
    return SetAnswer.model_validate({**known, "created": outcome.created, "changed": outcome.changed})


def unwritten(request: Request, fields: SetFields, now_us: int) -> dict[str, object]:
    """The answer's fields for a row that a dry run did not write: its version is 0."""
    item = Item(
        item_id=0,
        place=place_of(request),
        memory_key=fields.memory_key,
        head=ledger.Version(0, ledger.LIVE, "-", "-", None, "", 0, rules.attributes_of(fields, now_us), now_us),
        status=ledger.LIVE,
        expires_at=rules.expiry(fields.ttl_seconds, now_us),
        ended_at=None,
        pinned=False,
        lock_mode="",
        lock_reason="",
    )
    return {**answer_fields(item), "memory_id": ""}


def duplicate(twin: Twin | None) -> Duplicate | None:
    """A twin as answers show it."""
    if twin is None:
        return None
    return Duplicate(
        memory_key=twin.memory_key,
        memory_id=twin.memory_id,
        agent=twin.agent,
        user_id=twin.user_id,
        similarity=twin.similarity,
    )


def merged(item: Item, request: UpdateRequest, now_us: int) -> Draft:
    """The draft of the live version with the request's changes."""
    changes: dict[str, object] = {}
    for name in ("memory_type", "confidence", "source_trace", "sensitivity", "char_limit"):
        given = getattr(request, name)
        if given is not None:
            changes[name] = given
    for name in ("valid_at", "valid_to"):
        given = getattr(request, name)
        if given is not None:
            changes[name] = microseconds(given)
    if request.tags is not None:
        changes["tags"] = rules.tags_of(request.tags)
    expires_at = item.expires_at if request.ttl_seconds is None else rules.expiry(request.ttl_seconds, now_us)
    before = item.head.attributes
    attributes = rules.checked(replace(before, expires_at=expires_at, **changes))
    value = value_of(item.head) if request.value is None else json_of(request.value)
    made = rules.drafted(value, attributes, request)
    session_id = item.head.session_id if request.session_id == "-" else request.session_id
    return replace(made, session_id=session_id)


def ready_to_update(prepare: Prepare, request: UpdateRequest) -> Ready:
    """Embed what the memory will say."""
    reader = reader_of(prepare, request)
    with prepare.read(request.org) as tx:
        item = store.meant(tx, place_of(request), request.memory_key, lambda one: one.is_live(prepare.now_us), reader)
    ledger.check_reach(item, reader)
    rules.check_live(item, prepare.now_us)
    made = merged(item, request, prepare.now_us)
    if rules.says_nothing_new(item, made):
        return embeds.NOTHING
    return embeds.made_ready(prepare.embedder, [embeds.text_of(item.memory_key, made)], embedding.WRITE_TIMEOUT_S)[0]


def update(ctx: Context, request: UpdateRequest) -> SetAnswer:
    """Change what was sent, keep the rest."""
    ready = prepared_as(ctx, Ready)
    reader = reader_of(ctx, request)
    item = store.for_write(ctx.tx, place_of(request), request.memory_key, lambda one: one.is_live(ctx.now_us), reader)
    ledger.check_reach(item, reader)
    rules.check_live(item, ctx.now_us)
    rules.check_same_kind(item, request.memory_type)
    rules.check_built(item, says_more=request.value is not None or request.valid_at is not None)
    ledger.check_match(item, request.if_match_sha256, ctx.now_us)
    ledger.check_writable(item)
    made = merged(item, request, ctx.now_us)
    if request.ttl_seconds:
        rules.check_expiry(item, made.attributes.expires_at)
    changed = not rules.says_nothing_new(item, made)
    if changed:
        item = writes.write(ctx.tx, item, (item.place, item.memory_key), made, ready.for_draft(item.memory_key, made))
    elif item.expires_at != made.attributes.expires_at:
        item = writes.set_expiry(ctx.tx, item, made.attributes.expires_at)
    degraded = [EMBEDDER] if ready.failed and changed else None
    return SetAnswer.model_validate({**answer_fields(item), "created": False, "changed": changed, "degraded": degraded})


EVERYWHERE = frozenset({Toolset.DEFAULT, Toolset.ALL})

SET = Op(
    name="memory.set",
    summary="Remember one claim under a readable key: creates it, or writes a new version of it.",
    takes=SetRequest,
    gives=SetAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=set_memory,
    example={"memory_key": "project/database", "value": "The project uses PostgreSQL 18.", "tags": ["stack"]},
    prepare=ready_to_set,
    raises=(TooLong, ShaMismatch, KindConflict, PinnedConflict, Locked),
    toolsets=EVERYWHERE,
    destructive=True,
)

UPDATE = Op(
    name="memory.update",
    summary="Change a memory's value or attributes and keep the rest as it is.",
    takes=UpdateRequest,
    gives=SetAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=update,
    example={"memory_key": "project/database", "confidence": 0.9},
    prepare=ready_to_update,
    raises=(NotFound, AmbiguousKey, TooLong, ShaMismatch, PinnedConflict, Locked),
    destructive=True,
)
