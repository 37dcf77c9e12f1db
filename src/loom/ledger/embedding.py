"""Vectors for values that were written without them."""

from collections.abc import Sequence
from typing import cast

from loom.access import namespaces
from loom.jobs.handlers import Bench
from loom.jobs.vectored import Meant, Vectored
from loom.ledger import indexing, store
from loom.ledger.indexing import Embedded
from loom.ledger.rules import PROFILE, Item
from loom.models.interface import Embedder
from loom.retrieval.passages import split_passages
from loom.storage.indexes import Shelf
from loom.storage.interface import Transaction

EMBED_TIMEOUT_S = 12.0
"""How long one embedding call of the job may take. All the calls of one taking fit into its lease."""

WRITE_TIMEOUT_S = 10.0
"""How long one write waits for the embedder before it leaves the vectors to a job."""

AT_ONCE_MAX = 8
"""Items that one embedding call of the job takes: at most 128 passages, well within its time."""


COUNT = "SELECT count(*) AS total FROM ledger_item WHERE org = :org AND status = 'live'"
AFTER = """
SELECT item_id, namespace, memory_type FROM ledger_item
WHERE org = :org AND item_id > :after AND status = 'live' ORDER BY item_id LIMIT :most
"""


def embedded(embedder: Embedder, texts: Sequence[str], timeout_s: float = EMBED_TIMEOUT_S) -> list[Embedded]:
    """Each text's vectors, one for every passage of it; a blank text has one as well.

    Raises:
        EmbedderFailed: the model gave no vectors in time.
    """
    passages = [_passages(text) for text in texts]
    flat = [passage for group in passages for passage in group]
    vectors = iter(embedder.embed_passages(flat, timeout_s))
    return [Embedded(embedder.space.fingerprint, [next(vectors) for _ in group]) for group in passages]


def embed_items(bench: Bench, org: str, subjects: Sequence[str]) -> None:
    """The job `ledger.embed`: subjects are item ids.

    A few are done at a time, and kept before the next few begin. A row that
    changed while its text was embedded is left to the job that its change enqueued.
    """
    ids = [int(subject) for subject in subjects]
    for start in range(0, len(ids), AT_ONCE_MAX):
        _embed_few(bench, org, ids[start : start + AT_ONCE_MAX])


def _embed_few(bench: Bench, org: str, ids: Sequence[int]) -> None:
    space = bench.embedder.space.fingerprint
    with bench.database.transaction(org, write=False) as tx:
        items = [
            item
            for item in store.by_ids(tx, ids).values()
            if indexing.indexed(item) and tx.vectors.missing(indexing.shelf_of(item), space, [item.item_id])
        ]
    if not items:
        return
    made = embedded(bench.embedder, [indexing.text_of(item) for item in items])
    with bench.database.transaction(org, write=True) as tx:
        for namespace in sorted({item.place.namespace for item in items}):
            namespaces.enter(tx, namespace)
        # A write that is about to commit has taken the old vectors away already; it would not see these. The keys are
        # held in the order in which everybody holds several.
        for item in sorted(items, key=lambda item: (item.place.namespace, item.memory_key)):
            tx.lock(*store.turn(item.place, item.memory_key))
        now = store.by_ids(tx, [item.item_id for item in items])
        for item, vectors in zip(items, made, strict=True):
            if unchanged(item, now.get(item.item_id)):
                tx.vectors.put(indexing.shelf_of(item), item.item_id, vectors.space, vectors.vectors)


def unchanged(before: Item, after: Item | None) -> bool:
    """Whether the item still has the text that was embedded."""
    return after is not None and indexing.indexed(after) and after.head.version == before.head.version


def _passages(text: str) -> Sequence[str]:
    return split_passages(text) or [""]


def _count(tx: Transaction) -> int:
    row = tx.row(COUNT)
    return cast("int", row["total"]) if row else 0


def _after(tx: Transaction, after: int, most: int) -> Sequence[tuple[int, Shelf]]:
    return [
        (
            cast("int", row["item_id"]),
            indexing.shelf_for(cast("str", row["namespace"]), is_section=row["memory_type"] == PROFILE),
        )
        for row in tx.rows(AFTER, after=after, most=most)
    ]


def _read(tx: Transaction, ids: Sequence[int]) -> Sequence[Meant]:
    return [
        Meant(item.item_id, indexing.shelf_of(item), _passages(indexing.text_of(item)))
        for item in store.by_ids(tx, ids).values()
        if indexing.indexed(item)
    ]


JOBS = {indexing.EMBED: embed_items}
VECTORED = Vectored("memory", _count, _after, _read)
