"""The indexes follow the rows, in the rows' own transaction."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from loom.jobs import outbox
from loom.ledger.rules import LIVE, NORMAL, Item
from loom.retrieval import dates, tokens, values
from loom.storage.indexes import Shelf, Vector
from loom.storage.interface import Transaction

MEMORY_SHELF = "memory"
PROFILE_SHELF = "profile"
EMBED = "ledger.embed"
"""The job that makes the vectors a write could not."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A value's vectors, and the embedding space they are of."""

    space: str
    vectors: Sequence[Vector]


def shelf_of(item: Item) -> Shelf:
    """Where the item is indexed: sections and memories of a namespace stand apart."""
    return shelf_for(item.place.namespace, is_section=item.is_section)


def shelf_for(namespace: str, *, is_section: bool) -> Shelf:
    """Where a namespace's sections are indexed, or its memories."""
    return Shelf(PROFILE_SHELF if is_section else MEMORY_SHELF, namespace)


def indexed(item: Item | None) -> bool:
    """Whether search may find the item: live, with a value, not of high sensitivity, and not built from others."""
    return (
        item is not None
        and item.status == LIVE
        and item.head.value_text is not None
        and item.head.attributes.sensitivity == NORMAL
        and not item.is_derived
    )


def text_of(item: Item) -> str:
    """The item's text as search sees it: its key, its value and its tags."""
    return values.searchable(item.memory_key, json.loads(item.head.value_text or '""'), item.head.attributes.tags)


def words_of(item: Item) -> str:
    """What the word index holds of the item: its text, and the day from which its claim holds."""
    valid_at = item.head.attributes.valid_at
    return text_of(item) if valid_at is None else f"{text_of(item)}\n{dates.day_words(valid_at)}"


def update(tx: Transaction, before: Item | None, after: Item, embedded: Embedded | None) -> None:
    """Bring both indexes from what `before` left there to what `after` needs.

    Without `embedded` the old ones go at once, so that a text that is gone is
    not found by its meaning, and the new ones are made by a job.
    """
    if before is not None and indexed(before) and (not indexed(after) or shelf_of(before) != shelf_of(after)):
        forget(tx, before)
    if not indexed(after):
        return
    shelf = shelf_of(after)
    tx.text.put(shelf, after.item_id, tokens.document(words_of(after)))
    if embedded is not None:
        tx.vectors.put(shelf, after.item_id, embedded.space, embedded.vectors)
        return
    if before is not None:
        tx.vectors.remove(shelf, after.item_id)
    outbox.enqueue(tx, EMBED, str(after.item_id))


def forget(tx: Transaction, item: Item) -> None:
    """Take the item out of both indexes."""
    shelf = shelf_of(item)
    tx.text.remove(shelf, item.item_id)
    tx.vectors.remove(shelf, item.item_id)


def scrub(tx: Transaction, item: Item) -> None:
    """Leave no trace of removed text in the index's files."""
    tx.text.scrub(shelf_of(item))
