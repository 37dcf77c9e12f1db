"""Reading the ledger: items by place, by id, their versions."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

from loom.access import namespaces
from loom.errors import AmbiguousKey, NotFound
from loom.ledger.conditions import DELETED_VERSION_PARAMS, IS_LIVE, NOT_DELETED_VERSION, REACHED, reach_params
from loom.ledger.rules import Attributes, Item, Place, Reader, Version, sees
from loom.storage.interface import Param, Row, Transaction

WRITERS_MAX = 50
"""How many writers of one key are looked at, the latest first."""

SELECTED = """
SELECT i.item_id, i.namespace, i.agent, i.user_id, i.memory_key, i.status AS item_status,
    i.expires_at AS item_expires_at, i.ended_at, i.pinned, i.lock_mode, i.lock_reason,
    v.version, v.status, v.session_id, v.run_id, v.memory_type, v.value, v.content_sha256, v.value_length,
    v.char_limit, v.tags, v.confidence, v.source_trace, v.sensitivity, v.valid_at, v.valid_to, v.expires_at,
    v.created_at
"""

JOINED = """
FROM ledger_item i
JOIN ledger_version v ON v.org = i.org AND v.item_id = i.item_id AND v.version = i.version
"""

COLUMNS = SELECTED + JOINED
"""Every column of an item and its latest version, for `item_of`."""

EXACT = (
    COLUMNS
    + """
WHERE i.org = :org AND i.namespace = :namespace AND i.memory_key = :memory_key
    AND i.agent = :agent AND i.user_id = :user_id
"""
)

SEEN_WRITERS = (
    COLUMNS
    + """
WHERE i.org = :org AND i.namespace = :namespace AND i.memory_key = :memory_key
    AND (:user_id = '-' OR i.user_id = :user_id OR i.user_id = '-')
    AND """
    + REACHED
    + " AND (:ended = 1 OR "
    + IS_LIVE
    + """)
ORDER BY CASE WHEN i.user_id = :user_id THEN 0 ELSE 1 END, i.version DESC LIMIT :most
"""
)

WRITERS = (
    COLUMNS
    + """
WHERE i.org = :org AND i.namespace = :namespace AND i.memory_key = :memory_key AND i.user_id = :user_id
    AND """
    + REACHED
    + """
ORDER BY CASE WHEN i.status = 'live' THEN 0 ELSE 1 END, i.version DESC LIMIT :most
"""
)

BY_IDS = (
    COLUMNS
    + """
WHERE i.org = :org AND i.item_id IN (:ids)
"""
)

VERSION_COLUMNS = """
SELECT version, status, session_id, run_id, memory_type, value, content_sha256, value_length, char_limit, tags,
    confidence, source_trace, sensitivity, valid_at, valid_to, expires_at, created_at
FROM ledger_version
"""

HISTORY = (
    VERSION_COLUMNS
    + """
WHERE org = :org AND item_id = :item_id AND version < :before ORDER BY version DESC LIMIT :most
"""
)

VERSION = VERSION_COLUMNS + "WHERE org = :org AND item_id = :item_id AND version = :version"

AS_OF = (
    VERSION_COLUMNS
    + """
WHERE org = :org AND item_id = :item_id AND created_at <= :moment AND """
    + NOT_DELETED_VERSION
    + """
ORDER BY version DESC LIMIT 1
"""
)

OLDER_WITH_VALUE = (
    VERSION_COLUMNS
    + """
WHERE org = :org AND item_id = :item_id AND version < :before AND value IS NOT NULL ORDER BY version DESC LIMIT 1
"""
)

VALUES_COUNT = """
SELECT count(*) AS count FROM ledger_version WHERE org = :org AND item_id = :item_id AND value IS NOT NULL
"""

BEFORE_ALL = (1 << 63) - 1


def lock(tx: Transaction, place: Place, memory_key: str) -> None:
    """Hold the key against every other writer until the transaction ends; taken before the item is read."""
    namespaces.enter(tx, place.namespace)
    tx.lock(*turn(place, memory_key))
    tx.stamp_soon()


def turn(place: Place, memory_key: str) -> tuple[str, ...]:
    """What writers of the key wait for, by name."""
    return "ledger", place.namespace, place.agent, place.user_id, memory_key


def exact(tx: Transaction, place: Place, memory_key: str) -> Item | None:
    """The item of exactly this place and key, whatever its status."""
    row = tx.row(EXACT, namespace=place.namespace, memory_key=memory_key, agent=place.agent, user_id=place.user_id)
    return None if row is None else item_of(row)


def for_read(tx: Transaction, place: Place, memory_key: str, reader: Reader, now_us: int) -> Item | None:
    """The live item a reader means by a key.

    The agent's own row first, else the one written last by any agent. A
    reader for a user sees that user's rows, then rows of no user; a reader
    for no user sees rows of no user, then, where the scope allows, anybody's.
    """
    own = exact(tx, place, memory_key)
    if own is not None and own.is_live(now_us) and sees(reader, own):
        return own
    return next(iter(seen(tx, place, memory_key, reader, now_us)), None)


def seen(
    tx: Transaction, place: Place, memory_key: str, reader: Reader, now_us: int, *, ended: bool = False
) -> Sequence[Item]:
    """The items under a key that a reader may see, of the place's user first, then the latest first; at most 50.

    Args:
        tx: a transaction.
        place: whose rows are meant; its agent is no filter.
        memory_key: the key.
        reader: how far the read reaches across users.
        now_us: what is expired by then is ended.
        ended: whether items that live no more are wanted as well.
    """
    rows = tx.rows(SEEN_WRITERS, ended=int(ended), now=now_us, **_seen_params(place, memory_key, reader))
    return [item_of(row) for row in rows]


def meant(tx: Transaction, place: Place, memory_key: str, prefer: Callable[[Item], bool], reader: Reader) -> Item:
    """The item a writer means by a key: among those preferred, else among all, the agent's own or the only one.

    The agent's own is found even where `reader` does not reach it, so that the
    caller can refuse; of others' rows there nothing is said.

    Raises:
        NotFound: nobody within reach wrote the key for this user.
        AmbiguousKey: several other agents did.
    """
    found = [item_of(row) for row in tx.rows(WRITERS, **_seen_params(place, memory_key, reader))]
    own = exact(tx, place, memory_key)
    if own is not None and own not in found:
        found.append(own)
    for group in ([item for item in found if prefer(item)], found):
        its_own = own if own is not None and own in group else None
        if its_own is not None or len(group) == 1:
            return its_own or group[0]
        if group:
            writers = sorted({item.place.agent for item in group})
            raise AmbiguousKey(
                "memory_key: several agents wrote this key; send the agent", field="agent", writers=writers
            )
    raise NotFound("memory_key: nothing is stored under this key", field="memory_key")


def for_write(tx: Transaction, place: Place, memory_key: str, prefer: Callable[[Item], bool], reader: Reader) -> Item:
    """What `meant` finds, locked until the transaction ends.

    Raises:
        NotFound: nobody within reach wrote the key for this user.
        AmbiguousKey: several other agents did.
    """
    found = meant(tx, place, memory_key, prefer, reader)
    lock(tx, found.place, memory_key)
    again = exact(tx, found.place, memory_key)
    if again is None:
        raise NotFound("memory_key: nothing is stored under this key", field="memory_key")
    return again


def _seen_params(place: Place, memory_key: str, reader: Reader) -> Mapping[str, Param]:
    return {
        "namespace": place.namespace,
        "memory_key": memory_key,
        "user_id": place.user_id,
        "most": WRITERS_MAX,
        **reach_params(reader),
    }


def by_ids(tx: Transaction, item_ids: Collection[int]) -> Mapping[int, Item]:
    """The items with these ids, whatever their status."""
    if not item_ids:
        return {}
    rows = tx.rows(BY_IDS, ids=list(item_ids))
    return {item.item_id: item for item in map(item_of, rows)}


def by_id(tx: Transaction, item_id: int) -> Item | None:
    """The item with this id, whatever its status."""
    return by_ids(tx, [item_id]).get(item_id)


def history(tx: Transaction, item_id: int, most: int, before: int = BEFORE_ALL) -> Sequence[Version]:
    """Versions below `before`, the newest first."""
    return [version_of(row) for row in tx.rows(HISTORY, item_id=item_id, most=most, before=before)]


def version(tx: Transaction, item_id: int, number: int) -> Version | None:
    """One version, or None."""
    row = tx.row(VERSION, item_id=item_id, version=number)
    return None if row is None else version_of(row)


def as_of(tx: Transaction, item_id: int, moment_us: int) -> Version | None:
    """The version that was the latest at a moment; None when there was none yet."""
    row = tx.row(AS_OF, item_id=item_id, moment=moment_us, **DELETED_VERSION_PARAMS)
    return None if row is None else version_of(row)


def older_with_value(tx: Transaction, item_id: int, before: int) -> Version | None:
    """The newest version below `before` that still has its value."""
    row = tx.row(OLDER_WITH_VALUE, item_id=item_id, before=before)
    return None if row is None else version_of(row)


def values_count(tx: Transaction, item_id: int) -> int:
    """How many versions still have their value."""
    row = tx.row(VALUES_COUNT, item_id=item_id)
    return cast("int", row["count"]) if row else 0


def item_of(row: Row) -> Item:
    """An item from a row of `COLUMNS`."""
    return Item(
        item_id=cast("int", row["item_id"]),
        place=Place(cast("str", row["namespace"]), cast("str", row["agent"]), cast("str", row["user_id"])),
        memory_key=cast("str", row["memory_key"]),
        head=version_of(row),
        status=cast("str", row["item_status"]),
        expires_at=cast("int | None", row["item_expires_at"]),
        ended_at=cast("int | None", row["ended_at"]),
        pinned=bool(row["pinned"]),
        lock_mode=cast("str", row["lock_mode"]),
        lock_reason=cast("str", row["lock_reason"]),
    )


def version_of(row: Row) -> Version:
    """A version from a row of `VERSION_COLUMNS` or `COLUMNS`."""
    return Version(
        version=cast("int", row["version"]),
        status=cast("str", row["status"]),
        session_id=cast("str", row["session_id"]),
        run_id=cast("str", row["run_id"]),
        value_text=cast("str | None", row["value"]),
        content_sha256=cast("str", row["content_sha256"]),
        value_length=cast("int", row["value_length"]),
        attributes=Attributes(
            memory_type=cast("str", row["memory_type"]),
            tags=tuple(cast("list[str]", json.loads(cast("str", row["tags"])))),
            confidence=cast("float", row["confidence"]),
            source_trace=cast("str", row["source_trace"]),
            sensitivity=cast("str", row["sensitivity"]),
            valid_at=cast("int | None", row["valid_at"]),
            valid_to=cast("int | None", row["valid_to"]),
            expires_at=cast("int | None", row["expires_at"]),
            char_limit=cast("int | None", row["char_limit"]),
        ),
        created_at=cast("int", row["created_at"]),
    )
