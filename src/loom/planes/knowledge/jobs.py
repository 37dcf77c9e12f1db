"""What a write leaves for later: long texts are cut and indexed, vectors are made, what is gone is taken away.

Each job does a bounded part and asks for itself again while there is more, so that others have their turn; what is
done is in the store, and a restart goes on from there. Subjects are document ids.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, cast

from loom.jobs import outbox
from loom.jobs.handlers import Bench, Handler, Sweep
from loom.models.interface import EmbedderFailed
from loom.planes.knowledge import chunks, indexing, rules, store
from loom.planes.knowledge.chunks import STRETCH_PARTS
from loom.planes.knowledge.rules import Document
from loom.planes.knowledge.store import StoredChunk
from loom.storage.indexes import Vector
from loom.storage.interface import Transaction

STRETCHES_MAX: Final = 16
"""Stretches of a text that one turn cuts, a transaction each: about 4 million characters."""

EMBEDDED_MAX: Final = 256
"""Passages that one turn embeds, over all its documents."""

EMBEDDED_AT_ONCE_MAX: Final = 32
EMBED_TIMEOUT_S: Final = 60.0
NO_VECTORS: Final = "the embedder gave no vectors; found by words until it does, and tried again"

UPLOAD_KEPT_US: Final = 3_600 * 1_000_000
STALE_MAX: Final = 100

STALE = """
SELECT document_id FROM knowledge_document
WHERE org = :org AND state = 'ready' AND space <> :space ORDER BY document_id LIMIT :most
"""
OLD_UPLOADS = "SELECT 1 AS one FROM knowledge_upload WHERE org = :org AND created_at <= :before LIMIT 1"
DROP_OLD_UPLOADS = "DELETE FROM knowledge_upload WHERE org = :org AND created_at <= :before"
STILL_THERE = "SELECT chunk_id FROM knowledge_chunk WHERE org = :org AND chunk_id IN (:ids)"


def index(bench: Bench, org: str, subjects: Sequence[str]) -> None:
    """The job `knowledge.index`: cut texts and index their words."""
    turns = STRETCHES_MAX
    for subject in subjects:
        while turns and _index_stretch(bench, org, int(subject)):
            turns -= 1
        if not turns:
            _again(bench, org, indexing.INDEX, subject)


def _index_stretch(bench: Bench, org: str, document_id: int) -> bool:
    """Cut and index the next stretch of a text; whether there is more of it."""
    with bench.database.transaction(org, write=False) as tx:
        document = store.by_id(tx, document_id)
        if document is None or document.cut_until is None:
            return False
        place = document.cut_until
        revision = store.revision(tx, document_id, document.revision)
        found = store.parts(tx, (document_id, document.revision), STRETCH_PARTS + 1, (place.part, 0, 0))
    if revision is None:
        return False
    last = len(found) <= STRETCH_PARTS
    if found:
        made, following = chunks.cut(found[:STRETCH_PARTS], place, revision.manner, last=last)
    else:
        made, following = [], place
    with bench.database.transaction(org, write=True) as tx:
        store.lock(tx, document.namespace, document.user_id, document.uri)
        now = store.by_id(tx, document_id)
        if now is None or now.revision != document.revision or now.cut_until != place:
            return now is not None and now.cut_until is not None
        grown = indexing.put(tx, now, made, None, "")
        if last:
            indexing.complete(tx, grown, "")
        else:
            store.put(tx, replace(grown, cut_until=following))
    return not last


def embed(bench: Bench, org: str, subjects: Sequence[str]) -> None:
    """The job `knowledge.embed`: make vectors.

    Raises:
        EmbedderFailed: the model gave none; the documents say so until a later turn succeeds, unless it was not asked.
    """
    room = EMBEDDED_MAX
    for place, subject in enumerate(subjects):
        done = False
        while room > 0 and not done:
            try:
                count, done = _embed_some(bench, org, int(subject))
            except EmbedderFailed as failure:
                # A model that is left alone for a while was not asked for them: they wait, and nothing failed.
                for waiting in subjects[place:] if failure.rest_s <= 0 else ():
                    _note_failure(bench, org, int(waiting))
                raise
            room -= count
        if not done:
            _again(bench, org, indexing.EMBED, subject)


def _embed_some(bench: Bench, org: str, document_id: int) -> tuple[int, bool]:
    """Embed the next passages of a document: how many, and whether it is complete or gone."""
    space = bench.embedder.space.fingerprint
    with bench.database.transaction(org, write=False) as tx:
        document = store.by_id(tx, document_id)
        found = store.unembedded(tx, document_id, space, EMBEDDED_AT_ONCE_MAX)
        # A reindex may have made some already.
        missing = _missing(tx, document, space, found)
    if document is None or document.cut_until is not None:
        return 0, True
    vectors: list[Vector] = []
    if missing:
        vectors = bench.embedder.embed_passages([text_of(one) for one in missing], EMBED_TIMEOUT_S)
    with bench.database.transaction(org, write=True) as tx:
        store.lock(tx, document.namespace, document.user_id, document.uri)
        now = store.by_id(tx, document_id)
        if now is None or now.revision != document.revision:
            return len(found), True
        _put_vectors(tx, document.namespace, space, missing, vectors)
        _note_embedded(tx, space, [one.chunk_id for one in found])
        done = not store.unembedded(tx, document_id, space, 1)
        if done:
            indexing.complete(tx, now, space)
    return len(found), done


def _put_vectors(
    tx: Transaction, namespace: str, space: str, found: Sequence[StoredChunk], vectors: Sequence[Vector]
) -> None:
    ids = [one.chunk_id for one in found]
    there = {cast("int", row["chunk_id"]) for row in (tx.rows(STILL_THERE, ids=ids) if ids else ())}
    for chunk_id, vector in zip(ids, vectors, strict=True):
        if chunk_id in there:
            tx.vectors.put(indexing.shelf_of(namespace), chunk_id, space, [vector])


def _missing(tx: Transaction, document: Document | None, space: str, found: Sequence[StoredChunk]) -> list[StoredChunk]:
    """Those of the passages that have no vector in `space`."""
    if document is None or not found:
        return []
    shelf = indexing.shelf_of(document.namespace)
    missing = set(tx.vectors.missing(shelf, space, [one.chunk_id for one in found]))
    return [one for one in found if one.chunk_id in missing]


def _note_embedded(tx: Transaction, space: str, ids: Sequence[int]) -> None:
    tx.run_many(store.EMBEDDED, [{"chunk_id": chunk_id, "space": space} for chunk_id in ids])


def locked(tx: Transaction, document_id: int) -> Document | None:
    """The document, held until the transaction ends; None when it is gone."""
    document = store.by_id(tx, document_id)
    if document is None:
        return None
    store.lock(tx, document.namespace, document.user_id, document.uri)
    return store.by_id(tx, document_id)


def text_of(found: StoredChunk) -> str:
    """What the embedder reads of a passage."""
    return chunks.searchable(found.title, found.chunk.headings, found.chunk.text)


def _note_failure(bench: Bench, org: str, document_id: int) -> None:
    with bench.database.transaction(org, write=True) as tx:
        document = locked(tx, document_id)
        if document is not None and document.state == rules.PENDING and document.cut_until is None:
            store.put(tx, replace(document, state=rules.FAILED, reason=NO_VECTORS))


def forget(bench: Bench, org: str, subjects: Sequence[str]) -> None:
    """The job `knowledge.forget`: take old passages out of the indexes, and leave no trace of deleted ones."""
    for subject in subjects:
        with bench.database.transaction(org, write=True) as tx:
            document = store.by_id(tx, int(subject))
            spaces = {
                cast("str", row["namespace"])
                for row in tx.rows(store.GONE, document_id=int(subject), revision=indexing.NO_REVISION, most=1)
            }
            indexing.forget(tx, int(subject), document.revision if document else indexing.NO_REVISION)
            if document is None:
                for namespace in spaces:
                    tx.text.scrub(indexing.shelf_of(namespace))


def _again(bench: Bench, org: str, kind: str, subject: str) -> None:
    with bench.database.transaction(org, write=True) as tx:
        outbox.enqueue(tx, kind, subject)


def embed_stale(bench: Bench, org: str) -> None:
    """Ask for vectors of documents whose vectors are of another model."""
    with bench.database.transaction(org, write=False) as tx:
        rows = tx.rows(STALE, space=bench.embedder.space.fingerprint, most=STALE_MAX)
    if not rows:
        return
    with bench.database.transaction(org, write=True) as tx:
        for row in rows:
            document = locked(tx, cast("int", row["document_id"]))
            if document is not None and document.state == rules.READY:
                indexing.complete(tx, document, "")


def drop_uploads(bench: Bench, org: str) -> None:
    """Forget files that were sent in part and never added."""
    before = bench.clock_us() - UPLOAD_KEPT_US
    with bench.database.transaction(org, write=False) as tx:
        if tx.row(OLD_UPLOADS, before=before) is None:
            return
    with bench.database.transaction(org, write=True) as tx:
        tx.run(DROP_OLD_UPLOADS, before=before)


JOBS: Mapping[str, Handler] = MappingProxyType({indexing.INDEX: index, indexing.EMBED: embed, indexing.FORGET: forget})
SWEEPS: tuple[Sweep, ...] = (embed_stale, drop_uploads)
