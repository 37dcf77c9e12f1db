"""memory.touch, pin and lock: how long a memory stays, and who may change it. No version is written."""

from typing import Annotated, Literal

from pydantic import Field

from loom.access.caller import Role
from loom.errors import AmbiguousKey, Locked, NotFound, PinnedConflict
from loom.ledger import rules as ledger
from loom.ledger import writes
from loom.ops.spec import Audited, Context, Kind, Op
from loom.planes.memory import rules
from loom.planes.memory.fields import KeyRequest, MemoryAnswer, TtlSeconds, answer_fields
from loom.planes.memory.ops_remove import EXAMPLE, opened

LOCK_REASON_LENGTH_MAX = 500


class TouchRequest(KeyRequest):
    """What memory.touch takes."""

    ttl_seconds: Annotated[
        TtlSeconds | None, Field(description="Forget the memory after this many seconds from now; 0 or null: never.")
    ] = None


class PinRequest(KeyRequest):
    """What memory.pin takes."""

    pinned: Annotated[bool, Field(description="true to pin, false to unpin.")] = True


class LockRequest(KeyRequest):
    """What memory.lock takes."""

    mode: Annotated[
        Literal["", "no_delete", "read_only"],
        Field(description="read_only: no change at all; no_delete: changes, but no deletion; empty: unlock (admin)."),
    ] = "read_only"
    reason: Annotated[
        str, Field(max_length=LOCK_REASON_LENGTH_MAX, description="Why it is locked, shown to those who read it.")
    ] = ""


class GuardAnswer(MemoryAnswer):
    """What touch, pin and lock answer."""

    lock_reason: Annotated[str, Field(description="Why the memory is locked; empty when it is not.")]


def touch(ctx: Context, request: TouchRequest) -> GuardAnswer:
    """Change when the memory is forgotten."""
    item = opened(ctx, request)
    rules.check_live(item, ctx.now_us)
    ledger.check_writable(item)
    expires_at = rules.expiry(request.ttl_seconds or 0, ctx.now_us)
    rules.check_expiry(item, expires_at)
    return shown(writes.set_expiry(ctx.tx, item, expires_at))


def pin(ctx: Context, request: PinRequest) -> GuardAnswer:
    """Pin or unpin. A pinned memory never expires, so that its time to live is taken away."""
    item = opened(ctx, request)
    rules.check_live(item, ctx.now_us)
    ledger.check_writable(item)
    if request.pinned and item.expires_at is not None:
        item = writes.set_expiry(ctx.tx, item, None)
    return shown(
        writes.set_guards(ctx.tx, item, pinned=request.pinned, lock_mode=item.lock_mode, lock_reason=item.lock_reason)
    )


def lock(ctx: Context, request: LockRequest) -> GuardAnswer:
    """Lock, tighten or loosen. A locked memory never expires, so that its time to live is taken away."""
    item = opened(ctx, request)
    rules.check_live(item, ctx.now_us)
    ledger.check_lock_change(item, request.mode, ctx.caller.role)
    if request.mode and item.expires_at is not None:
        item = writes.set_expiry(ctx.tx, item, None)
    reason = request.reason if request.mode else ""
    return shown(writes.set_guards(ctx.tx, item, pinned=item.pinned, lock_mode=request.mode, lock_reason=reason))


def shown(item: ledger.Item) -> GuardAnswer:
    """The answer for an item as it is now."""
    return GuardAnswer.model_validate({**answer_fields(item), "lock_reason": item.lock_reason})


TOUCH = Op(
    name="memory.touch",
    summary="Give a memory a time to live from now on, or take it away; its value stays as it is.",
    takes=TouchRequest,
    gives=GuardAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=touch,
    example={**EXAMPLE, "ttl_seconds": 86_400},
    raises=(NotFound, AmbiguousKey, PinnedConflict, Locked),
)

PIN = Op(
    name="memory.pin",
    summary="Pin a memory so that it cannot be deleted and never expires, or unpin it.",
    takes=PinRequest,
    gives=GuardAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=pin,
    example={**EXAMPLE, "pinned": True},
    raises=(NotFound, AmbiguousKey, Locked),
)

LOCK = Op(
    name="memory.lock",
    summary="Lock a memory against deletion or against any change; only an admin can loosen a lock.",
    takes=LockRequest,
    gives=GuardAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=lock,
    example={**EXAMPLE, "mode": "no_delete", "reason": "agreed with the customer"},
    raises=(NotFound, AmbiguousKey, Locked),
    audited=Audited(about=("memory_key", "memory_id", "lock_mode")),
)
