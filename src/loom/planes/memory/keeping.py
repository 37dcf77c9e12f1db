"""Writing claims that were read out of messages. Every guard of memory.set holds, and a few of its own."""

from collections.abc import Sequence
from typing import Final

from loom.errors import LoomError
from loom.ledger import store
from loom.ledger.rules import NORMAL, Item
from loom.ops.fields import EMBEDDER, instant
from loom.planes.memory import claims, select
from loom.planes.memory.claims import Told
from loom.planes.memory.extracting import Extraction, Found, fields_of, telling, text_of, within_reach
from loom.planes.memory.fields import Writing, place_of, reader_of
from loom.planes.memory.messages import ClaimAnswer, SetFromMessagesAnswer, SetFromMessagesRequest
from loom.planes.memory.ops_write import put
from loom.planes.memory.select import Filter

HIGH: Final = "its key holds a memory of high sensitivity, which only memory.set and memory.update change"
GONE: Final = (
    "what was stored and the model was told has been taken away meanwhile, and the claim may repeat it; send the"
    " messages again"
)
OLDER: Final = "what its key says holds from a later time on"


def kept(ctx: Writing, request: SetFromMessagesRequest, extraction: Extraction) -> SetFromMessagesAnswer:
    """Write each claim that says something new, and none that may repeat what was taken away."""
    gone = taken_away(ctx, request, extraction)
    items = [
        _answer(one, "skipped", GONE) if one.claim.told & gone else _kept(ctx, request, one) for one in extraction.found
    ]
    return answer_of(items, failed=extraction.failed)


def taken_away(ctx: Writing, request: SetFromMessagesRequest, extraction: Extraction) -> frozenset[Told]:
    """Of the versions that a model was told, those that it may be told no more.

    They are deleted, redacted, expired, of high sensitivity or out of reach by now. One that was followed
    by a newer version still stands in the history.

    The keys of claims and of what was told are locked, in one order, as in memory.set_many. So whoever takes something
    away either is waited for and seen here, or waits until the claims are written, and takes it away after that.
    """
    told = frozenset[Told]().union(*(one.claim.told for one in extraction.found))
    place = place_of(request)
    for key in sorted({one.claim.memory_key for one in extraction.found} | {one.memory_key for one in told}):
        store.lock(ctx.tx, place, key)
    where = telling(request, reader_of(ctx, request), ctx.now_us)
    items = {item.item_id: item for item in select.by_ids(ctx.tx, where, sorted({one.item_id for one in told}))}
    return frozenset(one for one in told if not _stands(ctx, one, items.get(one.item_id)))


def _stands(ctx: Writing, told: Told, item: Item | None) -> bool:
    """Whether what was told can be read still, in an item that may be told."""
    if item is None or item.head.version == told.version:
        return item is not None
    version = store.version(ctx.tx, told.item_id, told.version)
    return version is not None and version.value_text is not None and version.attributes.sensitivity == NORMAL


def answer_of(items: Sequence[ClaimAnswer], *, failed: bool = False, deferred: bool = False) -> SetFromMessagesAnswer:
    """The answer, with its sums."""
    actions = [one.action for one in items]
    return SetFromMessagesAnswer(
        items=list(items),
        created=actions.count("created"),
        updated=actions.count("updated"),
        unchanged=actions.count("unchanged"),
        skipped=actions.count("skipped"),
        deferred=deferred,
        degraded=[EMBEDDER] if failed else None,
    )


def _kept(ctx: Writing, request: SetFromMessagesRequest, found: Found) -> ClaimAnswer:
    """Write one claim. `put` refuses before it changes anything, so a refusal leaves nothing half done."""
    reader = reader_of(ctx, request)
    # A row out of the caller's reach is compared with nothing; `put` refuses to write over it.
    live = within_reach(store.exact(ctx.tx, place_of(request), found.claim.memory_key), reader, ctx.now_us)
    where = Filter((request.namespace,), reader, ctx.now_us)
    ids = [] if found.twin_id is None else [found.twin_id]
    twin = next(iter(select.by_ids(ctx.tx, where, ids)), None)
    spared = _spared(request, found, live, twin)
    if spared is not None:
        return spared
    try:
        outcome = put(ctx, request, fields_of(request, found.claim, live), found.ready, dry_run=False)
    except LoomError as refusal:
        return _answer(found, "skipped", refusal.message)
    near = "" if twin is None else f"{twin.memory_key} says nearly the same"
    action = "unchanged" if not outcome.changed else "created" if outcome.created else "updated"
    return _answer(found, action, near, outcome.item)


def _spared(request: SetFromMessagesRequest, found: Found, live: Item | None, twin: Item | None) -> ClaimAnswer | None:
    """The answer for a claim that is not to be written; None when it is."""
    claim = found.claim
    if live is None:
        if twin is None or twin.place.user_id != request.user_id or not claims.adds_nothing(claim.text, text_of(twin)):
            return None  # what is true of one user is not said by another one's memory
        return _answer(found, "skipped", f"{twin.memory_key} says it already", twin)
    attributes = live.head.attributes
    if attributes.sensitivity != NORMAL and request.sensitivity == NORMAL:
        return _answer(found, "skipped", HIGH)
    if claims.adds_nothing(claim.text, text_of(live)):
        return _answer(found, "unchanged", "", live)
    older = attributes.valid_at is not None and claim.valid_at < attributes.valid_at
    return _answer(found, "skipped", OLDER, live) if older else None


def _answer(found: Found, action: str, reason: str, item: Item | None = None) -> ClaimAnswer:
    written = item is not None and action != "skipped"
    return ClaimAnswer.model_validate(
        {
            "memory_key": found.claim.memory_key,
            "memory_id": item.memory_id if item is not None else "",
            "version": item.head.version if written and item is not None else None,
            "version_text": str(item.head.version) if written and item is not None else "",
            "action": action,
            "reason": reason,
            "valid_at": instant(found.claim.valid_at),
            "turns": list(found.claim.turn_ids),
        }
    )
