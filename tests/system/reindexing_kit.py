"""What tests of a reindex need: embedders that count and stop, and a look at what came of it."""

from collections.abc import Callable, Sequence

import pytest

from fakes import ORG, Core, bench_of
from loom import compose
from loom.ledger import indexing
from loom.models.hashing import HashingEmbedder
from loom.storage.indexes import Shelf, Vector
from loom.system.reindexing import Reindex
from loom.system.spaces import Spaces

NEW = HashingEmbedder(32)
TOO_MANY = 10_000_000


class Stopped(BaseException):
    """Stands for what ends a process."""


class Counting(HashingEmbedder):
    """Counts what it embeds; `at` is called with the count before each call."""

    def __init__(self, dimension: int = 32, at: Callable[[int], None] = lambda _: None) -> None:
        super().__init__(dimension)
        self.texts: list[str] = []
        self._at = at

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        self._at(len(self.texts))
        self.texts += texts
        return super().embed_passages(texts, timeout_s)


def reindexing(core: Core, spaces: Spaces, embedder: HashingEmbedder = NEW, *, anew: bool = False) -> Reindex:
    bench = bench_of(core.database, embedder, core.clock)
    waits: list[float] = []
    return Reindex(bench, spaces, compose.VECTORED, quiet, anew=anew, settle_s=0, wait=waits.append)


def quiet(what: str, done: int, total: int) -> None:
    del what, done, total


def stop_at(count: int) -> Callable[[int], None]:
    def at(so_far: int) -> None:
        if so_far >= count:
            raise Stopped

    return at


def agrees(core: Core, embedder: HashingEmbedder) -> None:
    """Each memory's vectors are of what it says now, and there are no others."""
    with core.database.transaction(ORG, write=False) as tx:
        (plane,) = [plane for plane in compose.VECTORED if plane.name == "memory"]
        places = plane.after(tx, 0, TOO_MANY)
        items = plane.read(tx, [item_id for item_id, _ in places])
        assert len(items) == len(places)
        for item in items:
            own = embedder.embed_passages(item.passages, 1.0)[0]
            scores = tx.vectors.scores(item.shelf, embedder.space.fingerprint, own, [item.item_id])
            assert scores[item.item_id] == pytest.approx(1.0, abs=5e-3)
        shelf = Shelf(indexing.MEMORY_SHELF, "local")
        best = tx.vectors.best(shelf, embedder.space.fingerprint, embedder.embed_query("stays", 1.0), 1_000)
        assert {one.item_id for one in best} == {item.item_id for item in items if item.shelf == shelf}
