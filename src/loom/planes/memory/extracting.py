"""From messages to claims that are ready to be written: what needs models and reads, and no write.

The language model is asked window by window, told what is stored under keys that may be meant, and its claims are
embedded and compared with what is stored.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from loom.access.caller import ReadScope
from loom.canonical import Json, encoded
from loom.errors import ModelFailed, Unavailable
from loom.ledger import indexing, store
from loom.ledger.rules import Item, Reader, item_id_of, sees
from loom.models.interface import Embedder, EmbedderFailed
from loom.models.writer import Writer, WriterFailed
from loom.ops.fields import instant
from loom.planes.memory import claims, embeds, select
from loom.planes.memory.claims import Claim, Known, Told, Turn
from loom.planes.memory.embeds import Ready
from loom.planes.memory.fields import SetFields, place_of, reader_of
from loom.planes.memory.messages import SetFromMessagesRequest
from loom.planes.memory.ops_write import draft_of
from loom.planes.memory.select import Filter
from loom.retrieval import values
from loom.storage.indexes import Shelf
from loom.storage.interface import Database, Transaction

KNOWN_MAX: Final = 20
"""Stored memories that one call of the model is told."""

LOOKED_AT_MAX: Final = 100
BEFORE_MAX: Final = 2
"""Earlier turns that a call is told, to understand the others by."""

QUERY_LENGTH_MAX: Final = 4000
EMBED_TIMEOUT_S: Final = 10.0
TURNS_SHARE: Final = 0.4
"""How much of a call's room its turns take; the rest is for earlier turns, what is known, and an answer to mend."""

KNOWN_SHARE: Final = 0.2
PART_LENGTH_MIN: Final = 200
"""A part of a message that is not cut again when it is too much for the model."""

RETRY_AFTER_S: Final = 5


@dataclass(frozen=True, slots=True)
class Desk:
    """What extraction works with; it opens no write."""

    database: Database
    embedder: Embedder
    writer: Writer
    scope: ReadScope
    now_us: int

    def read(self, org: str) -> AbstractContextManager[Transaction]:
        """A read transaction; closed before a model is called."""
        return self.database.transaction(org, write=False)


@dataclass(frozen=True, slots=True)
class Found:
    """A claim, and what was made ready for it.

    Attributes:
        claim: it.
        ready: its vectors.
        twin_id: the row that says nearly the same under another key; None when there is none.
    """

    claim: Claim
    ready: Ready
    twin_id: int | None


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that messages say; `failed` when the embedder was of no help in comparing it with what is stored."""

    found: Sequence[Found]
    failed: bool


def fields_of(request: SetFromMessagesRequest, claim: Claim, live: Item | None) -> SetFields:
    """A claim as memory.set takes it. Tags of what it replaces stay."""
    kept = live.head.attributes.tags if live is not None else ()
    return SetFields(
        memory_key=claim.memory_key,
        value=claim.text,
        memory_type=claim.memory_type,
        tags=sorted({*kept, *request.tags}),
        source_trace=claims.trace(request.conversation, claim.turn_ids),
        sensitivity=request.sensitivity,
        valid_at=instant(claim.valid_at),
    )


def answered(desk: Desk, request: SetFromMessagesRequest, timeout_s: float) -> Extraction:
    """What `extracted` gives, for a caller who waits for it.

    Raises:
        Unavailable: the model gave no answer; later it may.
        ModelFailed: it gave none that can be used.
    """
    try:
        return extracted(desk, request, desk.now_us, timeout_s)
    except WriterFailed as error:
        if error.retryable:
            again_s = max(RETRY_AFTER_S, ceil(error.rest_s))
            raise Unavailable(f"the language model failed: {error}", retry_after_s=again_s) from None
        raise ModelFailed(f"the language model failed: {error}") from None


def extracted(desk: Desk, request: SetFromMessagesRequest, said_at: int, timeout_s: float) -> Extraction:
    """Ask the model what the messages say, and compare that with what is stored.

    `said_at` is when messages were said that do not say it themselves, microseconds UTC.

    Raises:
        WriterFailed: the model gave no answer that can be used.
    """
    reading = _Reading(desk, request, time.monotonic() + timeout_s)
    reading.read_all(request.turns(said_at))
    wanted = [claim for claim in reading.claims if claims.storable(claim)]
    place, reader = place_of(request), reader_of(desk, request)
    with desk.read(request.org) as tx:
        there = [within_reach(store.exact(tx, place, one.memory_key), reader, desk.now_us) for one in wanted]
    drafts = [
        draft_of(fields_of(request, one, live), request, desk.now_us) for one, live in zip(wanted, there, strict=True)
    ]
    texts = [embeds.text_of(one.memory_key, made) for one, made in zip(wanted, drafts, strict=True)]
    ready = embeds.made_ready(desk.embedder, texts, embeds.MANY_TIMEOUT_S)
    where = Filter((request.namespace,), reader, desk.now_us)
    found: list[Found] = []
    for claim, made, its in zip(wanted, drafts, ready, strict=True):
        twin = embeds.twin_of(desk, request.org, where, claim.memory_key, made, its)
        found.append(Found(claim, its, None if twin is None else item_id_of(twin.memory_id)))
    return Extraction(found, reading.failed or any(its.failed for its in ready))


def within_reach(item: Item | None, reader: Reader, now_us: int) -> Item | None:
    """The item, while it lives and the caller may see it."""
    if item is None or not item.is_live(now_us):
        return None
    return item if sees(reader, item) else None


def telling(request: SetFromMessagesRequest, reader: Reader, now_us: int) -> Filter:
    """What of the stored memories a model may be told."""
    return Filter((request.namespace,), reader, now_us, agents=(request.agent,))


def _known(item: Item) -> Known:
    """An item as a model is told it."""
    told = Told(item.item_id, item.head.version, item.memory_key)
    return Known(item.memory_key, text_of(item), frozenset({told}))


def text_of(item: Item) -> str:
    """What an item says."""
    return values.value_text(select.value_of(item.head))


class _Reading:
    """One reading of messages, window by window."""

    def __init__(self, desk: Desk, request: SetFromMessagesRequest, until_s: float) -> None:
        self._desk = desk
        self._request = request
        self._until_s = until_s
        about = len(claims.INSTRUCTIONS) + len(encoded(dict(claims.SHAPE)))
        self._room = desk.writer.input_length_max - about
        self._by_key: dict[str, Claim] = {}
        self.failed = False

    @property
    def claims(self) -> Sequence[Claim]:
        """What was read so far; of two claims under one key the later one."""
        return list(self._by_key.values())[: claims.CLAIMS_MAX]

    def read_all(self, turns: Sequence[Turn]) -> None:
        """Read all turns.

        Raises:
            WriterFailed: the model gave no answer that can be used.
        """
        length_max = int(self._room * TURNS_SHARE)
        if length_max < PART_LENGTH_MIN:
            raise WriterFailed("its context is too small to read messages", retryable=False)
        parts = [part for turn in turns for part in claims.split(turn, length_max // 2)]
        before: list[Turn] = []
        for window in claims.windows(parts, length_max):
            self._read(window, before)
            before = _ends(window[-BEFORE_MAX:], length_max // 8)

    def _read(self, window: Sequence[Turn], before: Sequence[Turn]) -> None:
        """Read a window, in smaller parts where it is too much at once."""
        known = self._known(window)
        try:
            said = self._asked(window, before, known)
        except WriterFailed as error:
            halves = _halves(window)
            if not error.too_long or not halves:
                raise
            for half in halves:
                self._read(half, before)
            return
        for claim in said:
            self._by_key.pop(claim.memory_key, None)
            self._by_key[claim.memory_key] = claim

    def _asked(self, window: Sequence[Turn], before: Sequence[Turn], known: Sequence[Known]) -> Sequence[Claim]:
        """One answer, and once another one when the first is none."""
        answer = self._written(claims.message(window, before, known))
        said = claims.read(answer, window, known)
        if said is None:
            answer = self._written(claims.message(window, before, known, answer))
            said = claims.read(answer, window, known)
        if said is None:
            raise WriterFailed("its answer holds no claims, and neither does a second one", retryable=False)
        return said

    def _written(self, message: str) -> Json:
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise WriterFailed("it took too long; send fewer messages, or deferred=true", retryable=True)
        return self._desk.writer.write(claims.INSTRUCTIONS, message, claims.SHAPE, left_s)

    def _known(self, window: Sequence[Turn]) -> Sequence[Known]:
        """What the window's claims may change or repeat: what was just read, then what is stored nearby."""
        read = [Known(one.memory_key, one.text, one.told) for one in reversed(self._by_key.values())]
        room = int(self._room * KNOWN_SHARE)
        kept: dict[str, Known] = {}
        for one in [*read[:KNOWN_MAX], *self._stored(window)]:
            short = replace(one, text=one.text[: claims.KNOWN_VALUE_LENGTH_MAX])
            room -= len(encoded([short.memory_key, short.text]))
            if room < 0 or len(kept) == KNOWN_MAX:
                break
            kept.setdefault(short.memory_key, short)
        return list(kept.values())

    def _stored(self, window: Sequence[Turn]) -> Sequence[Known]:
        """The caller's own memories that are nearest in meaning."""
        asked = "\n".join(turn.text for turn in window)[:QUERY_LENGTH_MAX]
        try:
            vector = self._desk.embedder.embed_query(asked, EMBED_TIMEOUT_S)
        except EmbedderFailed:
            self.failed = True
            return ()
        request, desk = self._request, self._desk
        shelf = Shelf(indexing.MEMORY_SHELF, request.namespace)
        where = telling(request, reader_of(desk, request), desk.now_us)
        with desk.read(request.org) as tx:
            near = tx.vectors.best(shelf, desk.embedder.space.fingerprint, vector, LOOKED_AT_MAX)
            rows = {item.item_id: item for item in select.by_ids(tx, where, [one.item_id for one in near])}
        own = [rows[one.item_id] for one in near if one.item_id in rows]
        place = place_of(request)
        return [_known(item) for item in own if item.place == place][:KNOWN_MAX]


def _ends(turns: Sequence[Turn], length_max: int) -> list[Turn]:
    """Turns of which no more than their ends are kept."""
    return [replace(turn, text=turn.text[-length_max:]) for turn in turns]


def _halves(window: Sequence[Turn]) -> Sequence[Sequence[Turn]]:
    """A window in two; empty when it is not to be cut any more."""
    if len(window) > 1:
        return window[: len(window) // 2], window[len(window) // 2 :]
    length = len(window[0].text)
    return [[part] for part in claims.split(window[0], -(-length // 2))] if length > PART_LENGTH_MIN else ()
