"""One build of a user's profile.

The facts are read at one moment, values are made of them outside any transaction, and those are written only
where nothing that was read has been taken away since.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, cast

from loom.access import namespaces
from loom.canonical import Json, encoded
from loom.jobs import outbox
from loom.jobs.handlers import Bench
from loom.ledger import derived, indexing, writes
from loom.ledger import store as ledger
from loom.ledger.rules import DERIVED, DERIVED_KEY, READ_ONLY, Attributes, Item, draft, item_id_of
from loom.planes.profile.structured import queries, status, store
from loom.planes.profile.structured.interface import Builder, BuildFailed, Fact, Settled, Source
from loom.planes.profile.structured.schema import Misfit, Schema
from loom.planes.profile.structured.status import Look, Work
from loom.planes.profile.structured.store import Build
from loom.retrieval import values
from loom.storage.indexes import Shelf, Vector
from loom.storage.interface import Raced, Transaction

BUILD: Final = "profile.build"
"""The job that builds; its subjects are `derived.subject_of`."""

FACTS_MAX: Final = 10_000
"""Facts that one build is given, the last written first; the profile of a user with more says that it is stale."""

FACTS_LENGTH_MAX: Final = 4_000_000
"""Characters of their values together, encoded."""

PROFILE_LENGTH_MAX: Final = 256 * 1024
"""Characters of a profile, encoded."""

SOURCES_MAX: Final = 20
"""Sources kept of one property, the strongest first."""

TURNS_MAX: Final = 3
"""Times that one job builds, while what it read keeps changing; the last time bears with what was merely rewritten."""

EXACT_BUILDERS: Final = frozenset({"rules"})
"""Builders whose sources name every memory that a value comes from. Of others' values nothing is kept when a memory
that they could read is erased.
"""

ENDED_TRACE: Final = "no facts are left"


@dataclass(frozen=True, slots=True)
class Room:
    """How much one build is given.

    Attributes:
        facts_max: how many facts.
        length_max: characters of their values together, encoded.
    """

    facts_max: int = FACTS_MAX
    length_max: int = FACTS_LENGTH_MAX


class Outrun(Exception):
    """What a build read went on changing; it is to be tried later."""


@dataclass(frozen=True, slots=True)
class Read:
    """What a build has to work with, as it was at one moment.

    Attributes:
        look: the user's state.
        facts: what the profile is made of.
        versions: the version of each fact that was read, by the id of its row.
        unserved: facts that there was no room for; counted up to the first.
        turns_at: when a fact begins or ends to hold, the soonest; None when nothing says so.
    """

    look: Look
    facts: Sequence[Fact]
    versions: Mapping[int, int]
    unserved: int
    turns_at: int | None


def read(tx: Transaction, who: tuple[str, str], now_us: int, room: Room, space: str) -> Read:
    """Read the state and the facts of a user (namespace and name), in one read transaction.

    The vectors of `space` that stand beside the facts come with them; none where it is empty.
    """
    found = status.look(tx, *who, now_us)
    if found.work is not Work.BUILD:
        return Read(found, (), {}, 0, None)
    rows = ledger_facts(tx, who, now_us, room)
    held = [item for item in rows[0] if holds(item, now_us)]
    ids = [item.item_id for item in held]
    vectors: Mapping[int, Vector] = {}
    if space:
        vectors = tx.vectors.first(Shelf(indexing.MEMORY_SHELF, who[0]), space, ids)
    facts = [fact_of(item, vectors.get(item.item_id)) for item in held]
    turns = [moment for item in rows[0] for moment in turns_of(item) if moment > now_us]
    versions = {item.item_id: item.head.version for item in held}
    return Read(found, facts, versions, rows[1], min(turns, default=None))


def ledger_facts(tx: Transaction, who: tuple[str, str], now_us: int, room: Room) -> tuple[list[Item], int]:
    """As many of the user's facts as there is room for, and how many were left out, counted up to the first."""
    found = store.facts(tx, *who, now_us, room.facts_max + 1)
    taken: list[Item] = []
    left = room.length_max
    for item in found[: room.facts_max]:
        left -= item.head.value_length
        if left < 0:
            break
        taken.append(item)
    return taken, int(len(taken) < len(found))


def holds(item: Item, now_us: int) -> bool:
    """Whether what a memory says is true at a moment, as far as it says when it is."""
    begins, ends = turns_of_both(item)
    return (begins is None or begins <= now_us) and (ends is None or ends > now_us)


def turns_of_both(item: Item) -> tuple[int | None, int | None]:
    """When what a memory says begins and ends to be true."""
    return item.head.attributes.valid_at, item.head.attributes.valid_to


def turns_of(item: Item) -> list[int]:
    """The same, without what is not known."""
    return [moment for moment in turns_of_both(item) if moment is not None]


def fact_of(item: Item, vector: Vector | None = None) -> Fact:
    """A memory as builders see it."""
    head = item.head
    return Fact(
        memory_id=item.memory_id,
        memory_key=item.memory_key,
        value=cast("Json", json.loads(head.value_text or "null")),
        memory_type=head.attributes.memory_type,
        tags=head.attributes.tags,
        valid_at=head.attributes.valid_at,
        created_at=head.created_at,
        version=head.version,
        vector=vector,
    )


def build(bench: Bench, builder: Builder, org: str, who: tuple[str, str], timeout_s: float, room: Room) -> None:
    """Build the profile of a user (`who` is namespace and user), if there is anything to do.

    Raises:
        BuildFailed: the builder could not, or its values do not fit the schema.
        Outrun: what was read changed, time after time.
    """
    until_s = time.monotonic() + timeout_s
    for turn in range(TURNS_MAX):
        now_us = bench.clock_us()
        with bench.database.transaction(org, write=False) as tx:
            found = read(tx, who, now_us, room, builder.space)
        if found.look.work is Work.NOTHING or found.look.schema is None:
            with bench.database.transaction(org, write=True) as tx:
                tx.run(queries.RELEASE, namespace=who[0], user_id=who[1])
            return
        settled: Mapping[str, Settled] = {}
        if found.facts:
            settled = builder.build(found.look.schema.document, found.facts, max(0.0, until_s - time.monotonic()))
        made = fitting(found.look.schema, settled, found)
        with suppress(Raced), bench.database.transaction(org, write=True) as tx:
            if write(tx, who, found, made, builder.name, last=turn == TURNS_MAX - 1):
                return
        if time.monotonic() >= until_s:
            break
    raise Outrun


def fitting(schema: Schema, settled: Mapping[str, Settled], found: Read) -> Mapping[str, Settled]:
    """What of a builder's work can be kept: values that the schema allows, each from facts it was given.

    Raises:
        BuildFailed: the values are forbidden together, or too long together.
    """
    known = {fact.memory_id: fact.version for fact in found.facts}
    sourced = {
        name: replace(one, sources=[source for source in one.sources if known.get(source.memory_id) == source.version])
        for name, one in settled.items()
    }
    try:
        allowed = schema.fitting({name: one.value for name, one in sourced.items() if one.sources})
    except Misfit as misfit:
        raise BuildFailed(str(misfit)) from misfit
    if len(encoded({name: allowed.get(name) for name in schema.properties})) > PROFILE_LENGTH_MAX:
        raise BuildFailed(f"the profile is over {PROFILE_LENGTH_MAX} characters")
    return {name: replace(sourced[name], value=value) for name, value in allowed.items()}


def write(
    tx: Transaction, who: tuple[str, str], found: Read, made: Mapping[str, Settled], builder: str, *, last: bool
) -> bool:
    """Write what was built; False when what it rests on has changed so that it has to be built again.

    The user is held against erasures first, so that none comes between the look at what was read and the end.

    Raises:
        Raced: the namespace has no schema any more.
    """
    namespace, user_id = who
    derived.hold(tx, namespace, user_id)
    namespaces.touch(tx, namespace, tx.stamp())
    tx.run(queries.RELEASE, namespace=namespace, user_id=user_id)
    place = derived.place_of(namespace, user_id)
    now = store.user(tx, namespace, user_id)
    schema = store.latest_schema(tx, namespace)
    if schema is None:
        # Of a namespace that was deleted meanwhile nothing may come back, its name neither: all is undone.
        raise Raced("the schema is gone")
    if found.look.stored is None or schema.version != found.look.stored.version:
        return False
    exact = builder in EXACT_BUILDERS
    if now.changes != found.look.user.changes and not is_good(tx, found, made, exact=exact, last=last):
        return False
    item, _ = store.held(tx, namespace, user_id)
    if is_other(found.look.item, item):
        # Whoever asked for a build did not know what was done to the row since.
        tx.run(queries.UNWANT, namespace=namespace, user_id=user_id)
        return False
    if found.look.work is Work.END and item is not None and not item.pinned and not item.lock_mode:
        writes.tombstone(tx, item, ENDED_TRACE)
        tx.run(queries.BUILT, namespace=namespace, user_id=user_id, read_at=found.look.now_us)
        return True
    if ledger.exact(tx, place, DERIVED_KEY) is not None and item is None:
        raise BuildFailed("a memory has the profile's key")
    written = put(tx, found, item, {name: one.value for name, one in made.items()}, builder, who)
    done = Build(
        built_at=cast("int", written.head.attributes.valid_at),
        changes=found.look.user.changes,
        schema_version=schema.version,
        builder=builder,
        exact=exact,
        unserved=found.unserved,
        turns_at=found.turns_at,
    )
    store.put_build(tx, written, done, [*columns(found, made)])
    tx.run(queries.BUILT, namespace=namespace, user_id=user_id, read_at=found.look.now_us)
    if found.turns_at is not None and not now.waiting_since:
        delay_us = max(1, found.turns_at - found.look.now_us)
        outbox.enqueue(tx, BUILD, derived.subject_of(namespace, user_id), delay_us)
    return True


def is_good(tx: Transaction, found: Read, made: Mapping[str, Settled], *, exact: bool, last: bool) -> bool:
    """Whether what was made of the facts may still be written, though something changed since they were read.

    What was merely written anew makes a profile stale at once, which it says; the last turn bears with that,
    or memories that never rest would have none. What was taken away is never written.
    """
    if not last:
        return store.unchanged(tx, found.versions)
    told = {item_id_of(source.memory_id) for one in made.values() for source in one.sources}
    versions = {number: version for number, version in found.versions.items() if not exact or number in told}
    return store.still_said(tx, versions)


def is_other(before: Item | None, after: Item | None) -> bool:
    """Whether the row itself was written, erased, hidden or locked since."""
    if before is None or after is None:
        return before is not after
    return (before.head.version, before.status, before.lock_mode == READ_ONLY, before.head.attributes.sensitivity) != (
        after.head.version,
        after.status,
        after.lock_mode == READ_ONLY,
        after.head.attributes.sensitivity,
    )


def put(
    tx: Transaction, found: Read, item: Item | None, made: Mapping[str, Json], builder: str, who: tuple[str, str]
) -> Item:
    """Write the version that holds the profile. Two builds of one moment are told apart by a microsecond.

    The moment leads to what is kept of the build, so that no version that was there before may have it.
    """
    schema = cast("Schema", found.look.schema)
    built_at = found.look.now_us if item is None else store.free_moment(tx, item.item_id, found.look.now_us)
    live = item if item is not None and item.is_live(found.look.now_us) else None
    attributes = replace(
        # What a person said of the row stays while it lives, above all that it is sensitive.
        live.head.attributes if live else Attributes(),
        memory_type=DERIVED,
        source_trace=f"built by {builder}",
        valid_at=built_at,
        valid_to=None,
        expires_at=live.expires_at if live else None,
    )
    value: dict[str, Json] = {name: made.get(name) for name in schema.properties}
    return writes.write(tx, item, (derived.place_of(*who), DERIVED_KEY), draft(value, attributes))


def columns(found: Read, made: Mapping[str, Settled]) -> Iterator[Mapping[str, str | int]]:
    """The sources of a build as they are kept: places in a memory's text instead of text."""
    facts = {fact.memory_id: fact for fact in found.facts}
    for name, one in made.items():
        for place, source in enumerate(one.sources[:SOURCES_MAX]):
            start, characters = span_of(facts[source.memory_id].value, source)
            yield {
                "property": name,
                "place": place,
                "source_id": item_id_of(source.memory_id) or 0,
                "source_version": source.version,
                "span_start": start,
                "span_characters": characters,
            }


def span_of(value: Json, source: Source) -> tuple[int, int]:
    """Where a source's text stands in the memory's; (-1, 0) when it is not found there."""
    start = values.value_text(value).find(source.text) if source.text else -1
    return (start, len(source.text)) if start >= 0 else (-1, 0)


def text_at(value: Json, span: tuple[int, int], characters_max: int) -> str:
    """The part of a memory's text that a source stands for; its beginning where that is not known."""
    text = values.value_text(value)
    start, characters = span if span[0] >= 0 else (0, characters_max)
    return text[start : start + min(characters, characters_max)]
