"""Changing the ledger. Each change moves the row and its indexes together."""

import json
from dataclasses import replace

from loom.access import namespaces
from loom.ledger import derived, indexing, store
from loom.ledger.indexing import Embedded
from loom.ledger.rules import (
    DELETED_VERSION_TRACE,
    LIVE,
    REDACTED,
    SUPERSEDED,
    TOMBSTONED,
    Attributes,
    Draft,
    Item,
    Place,
    Version,
)
from loom.storage.indexes import Shelf
from loom.storage.interface import Transaction, Value

PUT_ITEM = """
INSERT INTO ledger_item (org, item_id, namespace, agent, user_id, memory_key, session_id, version, status,
    memory_type, sensitivity, expires_at, ended_at, pinned, lock_mode, lock_reason)
VALUES (:org, :item_id, :namespace, :agent, :user_id, :memory_key, :session_id, :version, :status,
    :memory_type, :sensitivity, :expires_at, :ended_at, :pinned, :lock_mode, :lock_reason)
ON CONFLICT (org, item_id) DO UPDATE
SET session_id = excluded.session_id, version = excluded.version, status = excluded.status,
    memory_type = excluded.memory_type, sensitivity = excluded.sensitivity, expires_at = excluded.expires_at,
    ended_at = excluded.ended_at, pinned = excluded.pinned, lock_mode = excluded.lock_mode,
    lock_reason = excluded.lock_reason
"""

PUT_VERSION = """
INSERT INTO ledger_version (org, item_id, version, status, session_id, run_id, memory_type, value, content_sha256,
    value_length, char_limit, tags, confidence, source_trace, sensitivity, valid_at, valid_to, expires_at, created_at)
VALUES (:org, :item_id, :version, :status, :session_id, :run_id, :memory_type, :value, :content_sha256,
    :value_length, :char_limit, :tags, :confidence, :source_trace, :sensitivity, :valid_at, :valid_to, :expires_at,
    :created_at)
"""

SET_STATUS = "UPDATE ledger_version SET status = :status WHERE org = :org AND item_id = :item_id AND version = :version"

ERASE_VERSION = """
UPDATE ledger_version
SET status = :status, value = NULL, content_sha256 = '', value_length = 0, tags = '[]', source_trace = :source_trace
WHERE org = :org AND item_id = :item_id AND version = :version
"""

ERASE_VERSIONS = """
UPDATE ledger_version
SET status = :status, value = NULL, content_sha256 = '', value_length = 0, tags = '[]', source_trace = ''
WHERE org = :org AND item_id = :item_id
"""

PURGE_VERSIONS = "DELETE FROM ledger_version WHERE org = :org AND item_id = :item_id"
PURGE_ITEM = "DELETE FROM ledger_item WHERE org = :org AND item_id = :item_id"

PURGE_JOBS = """
DELETE FROM job WHERE org = :org AND kind = :embed
    AND subject IN (SELECT CAST(item_id AS TEXT) FROM ledger_item WHERE org = :org AND namespace = :namespace)
"""
PURGE_ALL_VERSIONS = """
DELETE FROM ledger_version WHERE org = :org
    AND item_id IN (SELECT item_id FROM ledger_item WHERE org = :org AND namespace = :namespace)
"""
PURGE_ITEMS = "DELETE FROM ledger_item WHERE org = :org AND namespace = :namespace"


def write(
    tx: Transaction, current: Item | None, at: tuple[Place, str], draft: Draft, embedded: Embedded | None = None
) -> Item:
    """Add a version with the draft's value, and make it the live one.

    Args:
        tx: a write transaction.
        current: the item as it is, read in this transaction; None for a new key.
        at: the place and the memory key.
        draft: what to write.
        embedded: the value's embeddings, when they are known; None has them made later.
    """
    place, memory_key = at
    number = tx.stamp()
    item = Item(
        item_id=current.item_id if current else number,
        place=place,
        memory_key=memory_key,
        head=Version(
            version=number,
            status=LIVE,
            session_id=draft.session_id,
            run_id=draft.run_id,
            value_text=draft.measured.text,
            content_sha256=draft.measured.sha256,
            value_length=draft.measured.length,
            attributes=draft.attributes,
            created_at=number // 1000,
        ),
        status=LIVE,
        expires_at=draft.attributes.expires_at,
        ended_at=None,
        pinned=current.pinned if current else False,
        lock_mode=current.lock_mode if current else "",
        lock_reason=current.lock_reason if current else "",
    )
    _add_head(tx, current, item)
    indexing.update(tx, current, item, embedded)
    derived.changed(tx, current, item, number)
    return item


def tombstone(tx: Transaction, item: Item, source_trace: str, run_id: str = "-") -> Item:
    """End the item with a version that has no value. It can be restored until it is purged."""
    number = tx.stamp()
    attributes = replace(item.head.attributes, source_trace=source_trace, expires_at=None)
    head = Version(number, TOMBSTONED, item.head.session_id, run_id, None, "", 0, attributes, created_at=number // 1000)
    ended = replace(item, head=head, status=TOMBSTONED, expires_at=None, ended_at=number // 1000)
    _add_head(tx, item, ended)
    indexing.update(tx, item, ended, None)
    derived.changed(tx, item, ended, number)
    return ended


def delete_version(tx: Transaction, item: Item, number: int) -> Item:
    """Erase one version's value for good; where it was the live one, the next older with a value lives again."""
    tx.send(
        ERASE_VERSION,
        item_id=item.item_id,
        version=number,
        status=TOMBSTONED,
        source_trace=f"{DELETED_VERSION_TRACE}{number}",
    )
    after = item
    if number == item.head.version:
        older = store.older_with_value(tx, item.item_id, number)
        if older is None:
            head = replace(item.head, status=TOMBSTONED, value_text=None, content_sha256="", value_length=0)
            after = replace(item, head=head, status=TOMBSTONED, expires_at=None, ended_at=tx.stamp() // 1000)
        else:
            tx.send(SET_STATUS, item_id=item.item_id, version=older.version, status=LIVE)
            head = replace(older, status=LIVE)
            # What is pinned stays, whatever time its older version was given.
            expires_at = None if item.pinned else older.attributes.expires_at
            after = replace(item, head=head, status=LIVE, expires_at=expires_at, ended_at=None)
        _put_item(tx, after)
        indexing.update(tx, item, after, None)
    _left_derived(tx, item, after, number)
    indexing.scrub(tx, item)
    return after


def redact(tx: Transaction, item: Item) -> Item:
    """Erase the text of every version; the key, its place and its times stay."""
    tx.send(ERASE_VERSIONS, item_id=item.item_id, status=REDACTED)
    attributes = replace(item.head.attributes, tags=(), source_trace="")
    head = replace(
        item.head, status=REDACTED, value_text=None, content_sha256="", value_length=0, attributes=attributes
    )
    after = replace(item, head=head, status=REDACTED, expires_at=None, ended_at=None, lock_reason="")
    _put_item(tx, after)
    indexing.update(tx, item, after, None)
    _left_derived(tx, item, after)
    indexing.scrub(tx, item)
    return after


def set_guards(tx: Transaction, item: Item, *, pinned: bool, lock_mode: str, lock_reason: str) -> Item:
    """Pin or lock; no version is written."""
    after = replace(item, pinned=pinned, lock_mode=lock_mode, lock_reason=lock_reason)
    _put_item(tx, after)
    return after


def set_expiry(tx: Transaction, item: Item, expires_at: int | None) -> Item:
    """Change when the item is forgotten; no version is written."""
    after = replace(item, expires_at=expires_at)
    _put_item(tx, after)
    return after


def purge(tx: Transaction, item: Item) -> None:
    """Remove the item with all its versions, for good."""
    indexing.forget(tx, item)
    tx.send(PURGE_VERSIONS, item_id=item.item_id)
    tx.send(PURGE_ITEM, item_id=item.item_id)
    _left_derived(tx, item, None)
    derived.forget(tx, item)
    indexing.scrub(tx, item)


def purge_namespace(tx: Transaction, namespace: str) -> int:
    """Remove every item of a namespace with all its versions, indexes and jobs, for good; how many items went."""
    tx.send(PURGE_JOBS, namespace=namespace, embed=indexing.EMBED)
    tx.send(PURGE_ALL_VERSIONS, namespace=namespace)
    for collection in (indexing.MEMORY_SHELF, indexing.PROFILE_SHELF):
        tx.text.drop(Shelf(collection, namespace))
        tx.vectors.drop(Shelf(collection, namespace))
    return tx.run(PURGE_ITEMS, namespace=namespace)


def insert_version(tx: Transaction, item_id: int, version: Version) -> None:
    """Store a version as it is, number and times included: what an import does."""
    tx.send(PUT_VERSION, **_version_params(item_id, version))


def supersede(tx: Transaction, item: Item) -> None:
    """Mark the item's live version as followed by a newer one."""
    tx.send(SET_STATUS, item_id=item.item_id, version=item.head.version, status=SUPERSEDED)


def insert_item(tx: Transaction, before: Item | None, item: Item) -> None:
    """Store an item as it is and bring its indexes in step: what an import does last."""
    _put_item(tx, item)
    namespaces.touch(tx, item.place.namespace, item.head.version)
    indexing.update(tx, before, item, None)
    stamp = tx.stamp()
    derived.changed(tx, before, item, stamp)
    derived.brought(tx, item, stamp)


def _left_derived(tx: Transaction, item: Item, after: Item | None, number: int | None = None) -> None:
    """Take what was erased of an item, or of one version of it, out of the row that is built from it.

    In the transaction that erases. `after` is None for an item that is gone altogether.
    """
    if item.is_derived:
        return
    # A build that is about to be written waits for this transaction, or this one for it.
    derived.hold(tx, item.place.namespace, item.place.user_id)
    if after is not None:
        stamp = tx.stamp()
        namespaces.touch(tx, item.place.namespace, stamp)
        derived.changed(tx, item, after, stamp)
    found = derived.tainted(tx, item, number)
    if found is None:
        return
    if found.rest is not None:
        write(tx, found.item, (found.item.place, found.item.memory_key), found.rest)
    derived.erase(tx, found, item, number)


def _add_head(tx: Transaction, current: Item | None, item: Item) -> None:
    if current is not None and current.status == LIVE:
        supersede(tx, current)
    tx.send(PUT_VERSION, **_version_params(item.item_id, item.head))
    _put_item(tx, item)
    namespaces.touch(tx, item.place.namespace, item.head.version)


def _put_item(tx: Transaction, item: Item) -> None:
    tx.send(
        PUT_ITEM,
        item_id=item.item_id,
        namespace=item.place.namespace,
        agent=item.place.agent,
        user_id=item.place.user_id,
        memory_key=item.memory_key,
        session_id=item.head.session_id,
        version=item.head.version,
        status=item.status,
        memory_type=item.head.attributes.memory_type,
        sensitivity=item.head.attributes.sensitivity,
        expires_at=item.expires_at,
        ended_at=item.ended_at,
        pinned=int(item.pinned),
        lock_mode=item.lock_mode,
        lock_reason=item.lock_reason,
    )


def _version_params(item_id: int, version: Version) -> dict[str, Value]:
    attributes: Attributes = version.attributes
    return {
        "item_id": item_id,
        "version": version.version,
        "status": version.status,
        "session_id": version.session_id,
        "run_id": version.run_id,
        "memory_type": attributes.memory_type,
        "value": version.value_text,
        "content_sha256": version.content_sha256,
        "value_length": version.value_length,
        "char_limit": attributes.char_limit,
        "tags": json.dumps(attributes.tags, ensure_ascii=False),
        "confidence": attributes.confidence,
        "source_trace": attributes.source_trace,
        "sensitivity": attributes.sensitivity,
        "valid_at": attributes.valid_at,
        "valid_to": attributes.valid_to,
        "expires_at": attributes.expires_at,
        "created_at": version.created_at,
    }
