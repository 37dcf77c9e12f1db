"""Keeps both indexes in step with the passages, in the transaction that changes them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, cast

from loom.jobs import outbox
from loom.planes.knowledge import chunks, rules, store
from loom.planes.knowledge.chunks import Chunk, Place
from loom.planes.knowledge.rules import Document
from loom.retrieval import tokens
from loom.storage.indexes import Shelf, Vector
from loom.storage.interface import Transaction

COLLECTION: Final = "knowledge"
INDEX: Final = "knowledge.index"
"""The job that cuts a long text and indexes its words."""

EMBED: Final = "knowledge.embed"
"""The job that makes the vectors of passages that have none."""

FORGET: Final = "knowledge.forget"
"""The job that takes away what is left of a long text that is gone."""

FORGOTTEN_AT_ONCE_MAX: Final = 1_000
"""Passages that leave the indexes in one transaction; of a longer text the rest follows, and is not shown meanwhile."""

NO_REVISION: Final = 0


def shelf_of(namespace: str) -> Shelf:
    """Where a namespace's passages are indexed."""
    return Shelf(COLLECTION, namespace)


def put(
    tx: Transaction, document: Document, made: Sequence[Chunk], vectors: Sequence[Vector] | None, space: str
) -> Document:
    """Add passages to the document and their words to the index; vectors too, where they are known.

    Returns:
        the document with its new count; its row is the caller's to write.
    """
    shelf = shelf_of(document.namespace)
    numbered = [(tx.stamp(), chunk) for chunk in made]
    for place, (chunk_id, chunk) in enumerate(numbered):
        text = chunks.searchable(document.title, chunk.headings, chunk.text)
        tx.text.put(shelf, chunk_id, tokens.document(text))
        if vectors is not None:
            tx.vectors.put(shelf, chunk_id, space, [vectors[place]])
    store.put_chunks(tx, document, numbered, document.chunk_count, space if vectors is not None else "")
    return replace(document, chunk_count=document.chunk_count + len(numbered))


def complete(tx: Transaction, document: Document, space: str) -> None:
    """Note that the words of every passage are indexed, and its vectors in `space`; without one they are to be made."""
    if space:
        store.put(tx, replace(document, state=rules.READY, reason="", cut_until=None, space=space))
        return
    store.put(tx, replace(document, state=rules.PENDING, reason="", cut_until=None, space=""))
    outbox.enqueue(tx, EMBED, str(document.document_id))


def begin(tx: Transaction, document: Document) -> None:
    """Leave a long text to the job that cuts it."""
    store.put(tx, replace(document, state=rules.PENDING, reason="", cut_until=Place(), space=""))
    outbox.enqueue(tx, INDEX, str(document.document_id))


def forget(tx: Transaction, document_id: int, revision: int = NO_REVISION) -> bool:
    """Take passages of other revisions than this one out of both indexes; whether some are left for the job."""
    rows = tx.rows(store.GONE, document_id=document_id, revision=revision, most=FORGOTTEN_AT_ONCE_MAX)
    ids = [cast("int", row["chunk_id"]) for row in rows]
    for row, chunk_id in zip(rows, ids, strict=True):
        shelf = shelf_of(cast("str", row["namespace"]))
        tx.text.remove(shelf, chunk_id)
        tx.vectors.remove(shelf, chunk_id)
    if ids:
        tx.run(store.DROP_CHUNKS, ids=ids)
    left = len(ids) == FORGOTTEN_AT_ONCE_MAX
    if left:
        outbox.enqueue(tx, FORGET, str(document_id))
    return left


def delete(tx: Transaction, document: Document) -> None:
    """Remove the document with every revision, at once and for good."""
    for statement in store.DROP_DOCUMENT:
        tx.run(statement, document_id=document.document_id)
    if forget(tx, document.document_id):
        # What is left has no document and so is not shown; neither is its text kept until the job comes to it.
        tx.run(store.BLANK_CHUNKS, document_id=document.document_id, revision=NO_REVISION)
    tx.text.scrub(shelf_of(document.namespace))


def purge_namespace(tx: Transaction, namespace: str) -> int:
    """Remove every document of a namespace; how many there were."""
    for statement in store.DROP_NAMESPACE:
        tx.run(statement, namespace=namespace)
    count = tx.run(store.DROP_DOCUMENTS, namespace=namespace)
    tx.text.drop(shelf_of(namespace))
    tx.vectors.drop(shelf_of(namespace))
    return count
