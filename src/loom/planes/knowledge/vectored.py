"""The plane's passages, as a reindex goes through them."""

from collections.abc import Sequence
from typing import Final, cast

from loom.jobs.handlers import Bench
from loom.jobs.vectored import Meant, Vectored, note_held
from loom.planes.knowledge import indexing, jobs, rules, store
from loom.storage.indexes import Shelf
from loom.storage.interface import Transaction

DOCUMENTS_AT_ONCE: Final = 100

STALE_AFTER = """
SELECT document_id FROM knowledge_document
WHERE org = :org AND document_id > :after AND state = 'ready' AND space <> :space ORDER BY document_id LIMIT :most
"""


def _count(tx: Transaction) -> int:
    row = tx.row(store.CHUNKS_TOTAL)
    return cast("int", row["total"]) if row else 0


def _after(tx: Transaction, after: int, most: int) -> Sequence[tuple[int, Shelf]]:
    rows = tx.rows(store.CHUNKS_AFTER, after=after, most=most)
    return [(cast("int", row["chunk_id"]), indexing.shelf_of(cast("str", row["namespace"]))) for row in rows]


def _read(tx: Transaction, ids: Sequence[int]) -> Sequence[Meant]:
    return [
        Meant(
            cast("int", row["chunk_id"]),
            indexing.shelf_of(cast("str", row["namespace"])),
            [jobs.text_of(store.chunk_of(row))],
        )
        for row in (tx.rows(store.CHUNKS_BY_ID, ids=list(ids)) if ids else ())
    ]


def adopt(bench: Bench, org: str) -> None:
    """Note which passages, and which whole documents, have vectors of the embedder's space."""
    space = bench.embedder.space.fingerprint

    def note(tx: Transaction, shelf: Shelf, ids: Sequence[int]) -> None:
        del shelf
        tx.run_many(store.EMBEDDED, [{"chunk_id": item_id, "space": space} for item_id in ids])

    note_held(bench, org, _after, note)
    _adopt_documents(bench, org, space)


def _adopt_documents(bench: Bench, org: str, space: str) -> None:
    after = 0
    while True:
        with bench.database.transaction(org, write=False) as tx:
            rows = tx.rows(STALE_AFTER, after=after, space=space, most=DOCUMENTS_AT_ONCE)
        if not rows:
            return
        after = cast("int", rows[-1]["document_id"])
        with bench.database.transaction(org, write=True) as tx:
            for row in rows:
                document = jobs.locked(tx, cast("int", row["document_id"]))
                whole = document is not None and not store.unembedded(tx, document.document_id, space, 1)
                if document is not None and whole and document.state == rules.READY:
                    indexing.complete(tx, document, space)


VECTORED = Vectored("knowledge", _count, _after, _read, adopt)
