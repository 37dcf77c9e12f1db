"""Memories with their whole history as lines of an export, and lines taken in again.

A structured profile is a memory too, and carried with its history. What its builds read is not: a file is not believed
to say which facts a profile tells. So it is stale until it is built again, and any erasure takes it along.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from loom.errors import Rejected
from loom.ledger import derived, store, telling, writes
from loom.ledger import rules as ledger
from loom.ledger.rules import LIVE, REDACTED, SUPERSEDED, Item, Version
from loom.ops.spec import Context
from loom.planes import cargo
from loom.planes.cargo import Cargo, Carried, Key, Reach
from loom.planes.memory import lines, rules
from loom.planes.memory.lines import MemoryLine
from loom.storage.interface import Transaction

ITEMS = (
    store.COLUMNS
    + """
WHERE i.org = :org AND (:every = 1 OR i.namespace IN (:namespaces)) AND i.item_id >= :least
ORDER BY i.item_id LIMIT :most
"""
)

COUNT = """
SELECT count(*) AS total FROM ledger_item
WHERE org = :org AND (:every = 1 OR namespace IN (:namespaces))
"""

NUMBERS = """
SELECT version, content_sha256 FROM ledger_version
WHERE org = :org AND item_id = :item_id AND version IN (:numbers)
"""


@dataclass(frozen=True, slots=True)
class Ready:
    """A line and its versions, which passed the rules of every write."""

    line: MemoryLine
    versions: Sequence[Version]


def read(tx: Transaction, reach: Reach, after: Key) -> Iterator[Carried]:
    """Lines after a place, which is an item and the version that the line before ended with; 0 for its last."""
    least, before = int(after[0]), int(after[1])
    least += 0 if before else 1
    while True:
        items = [store.item_of(row) for row in tx.rows(ITEMS, least=least, most=cargo.AT_ONCE, **reach.params())]
        for item in items:
            yield from lines_of(tx, item, before if item.item_id == after[0] and before else store.BEFORE_ALL)
        if len(items) < cargo.AT_ONCE:
            return
        least = items[-1].item_id + 1


def lines_of(tx: Transaction, item: Item, before: int) -> Iterator[Carried]:
    """A memory's lines, with its versions below `before`."""
    more = True
    while more:
        versions, more = slice_of(tx, item, before)
        before = versions[-1].version if more else 0
        length = sum(version.value_length for version in versions)
        yield Carried(lines.memory_line(item, versions), (item.item_id, before), length)


def slice_of(tx: Transaction, item: Item, before: int) -> tuple[Sequence[Version], bool]:
    """Versions below `before` for one line, the newest first, and whether older ones are left."""
    there = store.history(tx, item.item_id, lines.VERSIONS_MAX + 1, before)
    there = telling.told(tx, item, there, tx.clock_ns() // 1000)
    taken: list[Version] = []
    room = lines.LINE_CHARACTERS_MAX
    for version in there[: lines.VERSIONS_MAX]:
        room -= version.value_length
        if room < 0 and taken:
            break
        taken.append(version)
    return taken, len(there) > len(taken)


def ready(line: MemoryLine) -> Ready:
    """The line, checked by itself.

    Raises:
        TooLong: a value is over its cap.
        Rejected: the line breaks another rule.
    """
    versions = [lines.version_of(one) for one in line.versions]
    lines.check_versions(line, versions)
    derived.check_carried(line.memory_key, line.agent, versions)
    return Ready(line, versions)


def take(ctx: Context, made: Ready) -> bool:
    """Add the versions that are missing, and make the line's latest one the latest where it is newer.

    What was erased here stays erased: a version that is there is never replaced. What was redacted where
    the line comes from is redacted here too.
    """
    cargo.check_reached(ctx, made.line.namespace)
    if made.line.memory_key != ledger.DERIVED_KEY:
        return take_versions(ctx, made.line, made.versions)
    versions = built_elsewhere(ctx, made)
    return versions is not None and take_versions(ctx, made.line, versions)


def take_versions(ctx: Context, line: MemoryLine, versions: Sequence[Version]) -> bool:
    """`take` without the question who wrote the line's row."""
    number = rules.version_number(line.version_text)
    item_id = ledger.item_id_of(line.memory_id) or 0
    largest = max(item_id, number, *(version.version for version in versions))
    cargo.check_not_ahead(ctx, largest, field="version_text")
    there = same_row(ctx, line, item_id)
    if there is not None and there.status == REDACTED:
        if line.status == REDACTED:
            return False
        raise Rejected("memory_id: the memory was redacted here, and stays so", field="memory_id")
    if there is not None and line.status == REDACTED and number >= there.head.version:
        ledger.check_deletable(there)
        writes.redact(ctx.tx, there)
        return True
    known = numbers_there(ctx, item_id, versions) if there else frozenset[int]()
    new = [version for version in versions if version.version not in known]
    newer = there is None or number > there.head.version
    head = next((version for version in versions if version.version == number), None)
    if newer and head is None:
        raise Rejected("versions: the latest one is not here; import the lines in their order", field="versions")
    if newer:
        ledger.check_writable(there)
    item = lines.item_of(line, head) if newer and head is not None else None
    if not new and not newer:
        return False
    ctx.tx.outstrip(largest)
    for version in new:
        superseded = version.status == LIVE and not (newer and version.version == number)
        writes.insert_version(ctx.tx, item_id, replace(version, status=SUPERSEDED) if superseded else version)
    if item is not None:
        if there is not None and there.status == LIVE:
            writes.supersede(ctx.tx, there)
        writes.insert_item(ctx.tx, there, item)
    return True


def built_elsewhere(ctx: Context, made: Ready) -> Sequence[Version] | None:
    """The versions of a structured profile that may be taken; None to leave what is here as it is.

    A profile that was built here, under an id of its own, stays. One whose latest version may not be taken
    is built again from what is here.
    """
    line = made.line
    place = ledger.Place(line.namespace, line.agent, line.user_id)
    derived.hold(ctx.tx, line.namespace, line.user_id)
    there = store.exact(ctx.tx, place, line.memory_key)
    item_id = ledger.item_id_of(line.memory_id) or 0
    if there is not None and there.item_id != item_id:
        return None
    # What is here already stays as it is; an export of today may tell less of it.
    wanted = [one.version for one in made.versions]
    rows = ctx.tx.rows(NUMBERS, item_id=item_id, numbers=wanted) if wanted else ()
    here = {cast("int", row["version"]) for row in rows}
    versions = [one for one in derived.carried(ctx.tx, place, item_id, made.versions) if one.version not in here]
    number = rules.version_number(line.version_text)
    newer = there is None or number > there.head.version
    return None if newer and all(one.version != number for one in versions) else versions


def same_row(ctx: Context, line: MemoryLine, item_id: int) -> Item | None:
    """The row the line is about, locked; None when it is not there yet.

    Raises:
        Rejected: the key is another row's, or the id another key's.
    """
    place = ledger.Place(line.namespace, line.agent, line.user_id)
    store.lock(ctx.tx, place, line.memory_key)
    there = store.exact(ctx.tx, place, line.memory_key)
    if there is not None and there.item_id != item_id:
        raise Rejected("memory_key: another memory has this key here", field="memory_key")
    if there is None and item_id and store.by_id(ctx.tx, item_id) is not None:
        raise Rejected("memory_id: another key has this id here", field="memory_id")
    return there


def numbers_there(ctx: Context, item_id: int, versions: Sequence[Version]) -> frozenset[int]:
    """Which of these versions the store has.

    Raises:
        Rejected: it has one of them with another value, so it is another store's memory of the same name.
    """
    wanted = {version.version: version.content_sha256 for version in versions}
    rows = ctx.tx.rows(NUMBERS, item_id=item_id, numbers=list(wanted)) if wanted else ()
    known = {cast("int", row["version"]): cast("str", row["content_sha256"]) for row in rows}
    if any(sha256 and wanted[number] and sha256 != wanted[number] for number, sha256 in known.items()):
        raise Rejected("versions: one is here with another value; this is another memory", field="versions")
    return frozenset(known)


CARGO = Cargo(MemoryLine, (0, 0), COUNT, read, ready, take)
