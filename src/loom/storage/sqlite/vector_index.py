"""The vector index: float16 blobs in the file, searched exactly in memory.

A reading transaction brings the shared matrix up to date and searches it. It
may thus be ahead of the transaction's own moment by what was committed since,
never behind; callers check every item when they fetch its row.

A writing transaction never feeds the shared matrix, for its rows and those of
the calls that share its commit may yet be undone. It searches the matrix as it
is, and reads every later change from the file for itself alone.

A shelf too large for the memory bound is read from the file in pieces.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from loom.storage.indexes import Later, Matrix, Scored, Shelf, Vector, stacked
from loom.storage.interface import StoreError, Value
from loom.storage.sqlite.connection import Session
from loom.storage.sqlite.vector_cache import (
    Changed,
    VectorCache,
    VectorMatrix,
    View,
    best_of,
    bytes_of_row,
    merged,
)

PIECE_ROWS = 20_000
"""Rows read from the file at once."""

LOAD_WAIT_MAX_S = 30.0
"""How long a call waits while another loads the same matrix."""

PURGE_FROM_ROWS = 10_000
"""So many removed rows are taken out together; a cache that missed one of them is loaded anew."""

BESIDE_FROM_ROWS = 10_000
"""A smaller shelf is searched in less time (0.6 ms) than it is worth to hand it to another thread."""

ROW_ID_MAX = 2**63 - 1
"""The greatest row id of SQLite."""

_STORED = np.dtype("<f2")

_FIND = """
SELECT shelf.shelf_id, space.space_id, space.dimension FROM vector_shelf AS shelf, vector_space AS space
WHERE shelf.collection = :collection AND shelf.namespace = :namespace AND space.name = :space
"""
_FIND_SHELF = "SELECT shelf_id FROM vector_shelf WHERE collection = :collection AND namespace = :namespace"
_ADD_SHELF = """
INSERT INTO vector_shelf (collection, namespace) VALUES (:collection, :namespace)
ON CONFLICT (collection, namespace) DO NOTHING
"""
_FIND_SPACE = "SELECT dimension FROM vector_space WHERE name = :space"
_ADD_SPACE = "INSERT INTO vector_space (name, dimension) VALUES (:space, :dimension)"
_NEXT_SEQ = "UPDATE vector_change SET last = last + 1 WHERE one = 1 RETURNING last"
_PUT = """
INSERT INTO vector_row (shelf_id, space_id, item_id, part, seq, data)
VALUES (:shelf_id, :space_id, :item_id, :part, :seq, :data)
ON CONFLICT (shelf_id, item_id, space_id, part) DO UPDATE SET seq = excluded.seq, data = excluded.data
"""
_REMOVE_PARTS = """
UPDATE vector_row SET seq = :seq, data = NULL
WHERE shelf_id = :shelf_id AND item_id = :item_id AND space_id = :space_id AND part >= :part AND data IS NOT NULL
"""
_REMOVE_ELSEWHERE = """
UPDATE vector_row SET seq = :seq, data = NULL
WHERE shelf_id = :shelf_id AND item_id = :item_id AND space_id <> :space_id AND data IS NOT NULL
"""
_REMOVE = """
UPDATE vector_row SET seq = :seq, data = NULL
WHERE shelf_id = :shelf_id AND item_id = :item_id AND data IS NOT NULL
"""
_SHELVES = "SELECT shelf_id FROM vector_shelf"
_SPACES = "SELECT space_id, name, dimension FROM vector_space"
_ANY = "SELECT 1 FROM vector_row WHERE shelf_id = :shelf_id AND space_id = :space_id AND data IS NOT NULL LIMIT 1"
# A removed row moves to the end of its order, so the next slice does not pass it again.
_REMOVE_SOME = """
UPDATE vector_row SET seq = :seq, data = NULL WHERE row_id IN (
    SELECT row_id FROM vector_row WHERE shelf_id = :shelf_id AND space_id = :space_id AND data IS NOT NULL
    ORDER BY seq LIMIT :row_count)
RETURNING 1
"""
_DROP = (
    "DELETE FROM vector_row WHERE shelf_id = :shelf_id",
    "DELETE FROM vector_purge WHERE shelf_id = :shelf_id",
    "DELETE FROM vector_shelf WHERE shelf_id = :shelf_id",
)
_CHANGES = """
SELECT row_id, item_id, seq, data FROM vector_row
WHERE shelf_id = :shelf_id AND space_id = :space_id AND (seq, row_id) > (:seq, :row_id)
ORDER BY seq, row_id LIMIT :row_count
"""
_COUNT = "SELECT count(*) FROM vector_row WHERE shelf_id = :shelf_id AND space_id = :space_id AND seq > :seq"
_PURGED = "SELECT purged_seq FROM vector_purge WHERE shelf_id = :shelf_id AND space_id = :space_id"
_SCORED = """
SELECT item_id, data FROM vector_row
WHERE shelf_id = :shelf_id AND space_id = :space_id AND data IS NOT NULL
AND item_id IN (SELECT value FROM json_each(:item_ids))
"""
_FIRST = """
SELECT item_id, data FROM vector_row
WHERE shelf_id = :shelf_id AND space_id = :space_id AND part = 0 AND data IS NOT NULL
AND item_id IN (SELECT value FROM json_each(:item_ids))
"""
_HELD = """
SELECT DISTINCT item_id FROM vector_row
WHERE shelf_id = :shelf_id AND space_id = :space_id AND data IS NOT NULL
AND item_id IN (SELECT value FROM json_each(:item_ids))
"""
_REMOVED_COUNT = "SELECT count(*) FROM (SELECT 1 FROM vector_row WHERE data IS NULL LIMIT :row_count)"
_TO_PURGE = """
SELECT row_id, shelf_id, space_id, seq FROM vector_row WHERE data IS NULL ORDER BY row_id LIMIT :row_count
"""
_PURGE = "DELETE FROM vector_row WHERE row_id = :row_id"
_NOTE_PURGE = """
INSERT INTO vector_purge (shelf_id, space_id, purged_seq) VALUES (:shelf_id, :space_id, :seq)
ON CONFLICT (shelf_id, space_id) DO UPDATE SET purged_seq = max(purged_seq, excluded.purged_seq)
"""


class SqliteVectorIndex:
    """Implements `storage.indexes.VectorIndex` inside one transaction. Of equal scores the newer id comes first."""

    def __init__(self, session: Session, cache: VectorCache, file_id: int) -> None:
        self._session = session
        self._cache = cache
        self._file_id = file_id

    def put(self, shelf: Shelf, item_id: int, space: str, vectors: Sequence[Vector]) -> None:
        """Keep `vectors` of `space` under `item_id`, replacing what was there in every space."""
        ids = self._kept(shelf, item_id, space, vectors)
        self._session.cells(_REMOVE_ELSEWHERE, ids)

    def add(self, shelf: Shelf, item_id: int, space: str, vectors: Sequence[Vector]) -> None:
        """Keep `vectors` of `space` under `item_id`, beside those of other spaces."""
        self._kept(shelf, item_id, space, vectors)

    def _kept(self, shelf: Shelf, item_id: int, space: str, vectors: Sequence[Vector]) -> dict[str, Value]:
        """Keep vectors of one space; the numbers of what they were kept under."""
        self._session.need_write("the vector index")
        checked = stacked(vectors)
        known = self._session.cells(_FIND_SPACE, {"space": space})
        if not known:
            self._session.cells(_ADD_SPACE, {"space": space, "dimension": checked.shape[1]})
        elif known[0][0] != checked.shape[1]:
            raise ValueError(f"the space {space!r} has {known[0][0]} dimensions, the vector {checked.shape[1]}")
        self._session.cells(_ADD_SHELF, {"collection": shelf.collection, "namespace": shelf.namespace})
        found = self._find(shelf, space)
        if found is None:
            raise AssertionError("the shelf and the space were just made")
        ids: dict[str, Value] = {**found.ids(), "item_id": item_id, "seq": self._next_seq()}
        stored = checked.astype(_STORED)
        self._session.run_many(_PUT, ({**ids, "part": part, "data": row.tobytes()} for part, row in enumerate(stored)))
        self._session.cells(_REMOVE_PARTS, {**ids, "part": len(stored)})
        return ids

    def remove(self, shelf: Shelf, item_id: int) -> None:
        """Forget the item's vectors in every space."""
        self._session.need_write("the vector index")
        found = self._session.cells(_FIND_SHELF, {"collection": shelf.collection, "namespace": shelf.namespace})
        if found:
            self._session.cells(_REMOVE, {"shelf_id": found[0][0], "item_id": item_id, "seq": self._next_seq()})

    def drop(self, shelf: Shelf) -> None:
        """Forget the whole shelf. Its id is not used again, so no cache can serve it."""
        self._session.need_write("the vector index")
        found = self._session.cells(_FIND_SHELF, {"collection": shelf.collection, "namespace": shelf.namespace})
        for statement in _DROP if found else ():
            self._session.cells(statement, {"shelf_id": found[0][0]})

    def spaces(self) -> Mapping[str, int]:
        """Every space that there are vectors of, with its dimension."""
        shelves = [row[0] for row in self._session.cells(_SHELVES, {})]
        return {
            name: dimension
            for space_id, name, dimension in self._session.cells(_SPACES, {})
            if any(self._session.cells(_ANY, {"shelf_id": shelf_id, "space_id": space_id}) for shelf_id in shelves)
        }

    def drop_others(self, keep: Collection[str], most: int) -> int:
        """Forget up to `most` vectors of other spaces than these; how many there were."""
        self._session.need_write("the vector index")
        shelves = [row[0] for row in self._session.cells(_SHELVES, {})]
        others = [row[0] for row in self._session.cells(_SPACES, {}) if row[1] not in keep]
        dropped = 0
        for ids in ({"shelf_id": shelf_id, "space_id": space_id} for space_id in others for shelf_id in shelves):
            if dropped < most and self._session.cells(_ANY, ids):
                slice_ = {**ids, "seq": self._next_seq(), "row_count": most - dropped}
                dropped += len(self._session.cells(_REMOVE_SOME, slice_))
        return dropped

    def best(
        self, shelf: Shelf, space: str, vector: Vector, k: int, allowed: Collection[int] | None = None
    ) -> Sequence[Scored]:
        """The `k` items nearest to `vector` by cosine, best first."""
        found = self._find(shelf, space)
        if found is None or k < 1 or (allowed is not None and not allowed):
            return ()
        _check_dimension(space, found.dimension, vector)
        key = (self._file_id, found.shelf_id, found.space_id)
        if self._session.write:
            return self._best_with_changes(found, self._usable(key), _Asked(vector, k, allowed))
        matrix = self._caught_up(key, found)
        if matrix is None:
            return self._best_with_changes(found, None, _Asked(vector, k, allowed))
        return best_of(matrix.view(), vector, k, allowed)

    def begin(self, shelf: Shelf, space: str, vector: Vector, k: int) -> Later:
        """Begin `best` of a whole shelf; the matrix is multiplied beside what the transaction does next."""
        found = self._find(shelf, space)
        matrix = None
        if found is not None and k > 0 and not self._session.write:
            _check_dimension(space, found.dimension, vector)
            matrix = self._caught_up((self._file_id, found.shelf_id, found.space_id), found)
        if matrix is None:
            return partial(self.best, shelf, space, vector, k)
        view = matrix.view()
        if len(view.items) < BESIDE_FROM_ROWS:
            return partial(best_of, view, vector, k, None)
        return self._cache.beside.begin(partial(best_of, view, vector, k, None))

    def scores(self, shelf: Shelf, space: str, vector: Vector, item_ids: Collection[int]) -> Mapping[int, float]:
        """The cosine of each named item that has a vector in `space`."""
        found = self._find(shelf, space)
        if found is None or not item_ids:
            return {}
        _check_dimension(space, found.dimension, vector)
        rows = self._session.cells(_SCORED, {**found.ids(), "item_ids": json.dumps(list(item_ids))})
        scored: dict[int, float] = {}
        if rows:
            cosines = _decoded([data for _, data in rows], found.dimension) @ vector
            for (item_id, _), cosine in zip(rows, cosines.tolist(), strict=True):
                scored[item_id] = max(cosine, scored.get(item_id, cosine))
        return scored

    def missing(self, shelf: Shelf, space: str, item_ids: Collection[int]) -> Sequence[int]:
        """Those of `item_ids` that have no vector in `space`."""
        found = self._find(shelf, space)
        if found is None:
            return list(item_ids)
        rows = self._session.cells(_HELD, {**found.ids(), "item_ids": json.dumps(list(item_ids))})
        held = {row[0] for row in rows}
        return [item_id for item_id in item_ids if item_id not in held]

    def first(self, shelf: Shelf, space: str, item_ids: Collection[int]) -> Mapping[int, Vector]:
        """The first vector of each named item that has one in `space`."""
        found = self._find(shelf, space)
        if found is None or not item_ids:
            return {}
        rows = self._session.cells(_FIRST, {**found.ids(), "item_ids": json.dumps(list(item_ids))})
        decoded = _decoded([data for _, data in rows], found.dimension)
        return {item_id: vector for (item_id, _), vector in zip(rows, decoded, strict=True)}

    def purge_slice(self) -> bool:
        """Take out rows removed long enough ago to have piled up, for upkeep; whether there were any."""
        if self._session.cells(_REMOVED_COUNT, {"row_count": PURGE_FROM_ROWS})[0][0] < PURGE_FROM_ROWS:
            return False
        rows = self._session.cells(_TO_PURGE, {"row_count": PURGE_FROM_ROWS})
        newest: dict[tuple[int, int], int] = {}
        for _, shelf_id, space_id, seq in rows:
            newest[shelf_id, space_id] = max(seq, newest.get((shelf_id, space_id), 0))
        self._session.run_many(_PURGE, ({"row_id": row[0]} for row in rows))
        for (shelf_id, space_id), seq in newest.items():
            self._session.cells(_NOTE_PURGE, {"shelf_id": shelf_id, "space_id": space_id, "seq": seq})
        return True

    def _find(self, shelf: Shelf, space: str) -> "_Found | None":
        names = {"collection": shelf.collection, "namespace": shelf.namespace, "space": space}
        rows = self._session.cells(_FIND, names)
        return _Found(*rows[0]) if rows else None

    def _next_seq(self) -> int:
        return int(self._session.cells(_NEXT_SEQ, {})[0][0])

    def _usable(self, key: tuple[int, int, int]) -> VectorMatrix | None:
        """The matrix in memory, unless it missed removals whose rows are purged."""
        matrix = self._cache.get(key)
        if matrix is None:
            return None
        purged = self._session.cells(_PURGED, {"shelf_id": key[1], "space_id": key[2]})
        if purged and matrix.seq() < purged[0][0]:
            self._cache.forget(key)
            return None
        return matrix

    def _caught_up(self, key: tuple[int, int, int], found: "_Found") -> VectorMatrix | None:
        """The matrix with all that this transaction can see, or None when it is too large to keep."""
        matrix = self._usable(key)
        if matrix is None:
            row_count = int(self._session.cells(_COUNT, {**found.ids(), "seq": 0})[0][0])
            if row_count * bytes_of_row(found.dimension) > self._cache.bytes_max:
                return None
            matrix = self._cache.add(key, VectorMatrix(found.dimension, row_count))
        if not matrix.catching_up.acquire(timeout=LOAD_WAIT_MAX_S):
            raise StoreError("The vector index is being loaded for too long; try again.")
        try:
            grown = False
            for piece in self._changes(found, matrix.seq()):
                matrix.apply(piece)
                grown = True
        finally:
            matrix.catching_up.release()
        if grown:
            self._cache.trim()
        return matrix

    def _best_with_changes(self, found: "_Found", matrix: VectorMatrix | None, asked: "_Asked") -> Sequence[Scored]:
        """Search `matrix`, and every change after it read from the file."""
        candidates: list[Scored] = []
        changed: set[int] = set()
        for piece in self._changes(found, 0 if matrix is None else matrix.seq()):
            changed.update(piece.row_ids, piece.gone)
            candidates.extend(asked.best(piece.view()))
        if matrix is not None:
            candidates.extend(asked.best(matrix.view(without=changed)))
        items = np.asarray([one.item_id for one in candidates], dtype=np.int64)
        return merged(items, np.asarray([one.score for one in candidates], dtype=np.float32), asked.k)

    def _changes(self, found: "_Found", seq: int) -> Iterator[Changed]:
        """The changes after `seq`, in pieces. A row comes at most once in all of them."""
        # Every row of change `seq` is known, so begin behind the last row it can have.
        row_id = ROW_ID_MAX
        while True:
            after = {"seq": seq, "row_id": row_id, "row_count": PIECE_ROWS}
            rows = self._session.cells(_CHANGES, {**found.ids(), **after})
            if not rows:
                return
            row_id, _, seq, _ = rows[-1]
            last = len(rows) < PIECE_ROWS
            held = [row for row in rows if row[3] is not None]
            yield Changed(
                row_ids=[row[0] for row in held],
                item_ids=[row[1] for row in held],
                data=_decoded([row[3] for row in held], found.dimension),
                gone=[row[0] for row in rows if row[3] is None],
                # The last change of a full piece may go on in the next one.
                seq=seq if last else seq - 1,
            )
            if last:
                return


@dataclass(frozen=True, slots=True)
class _Found:
    shelf_id: int
    space_id: int
    dimension: int

    def ids(self) -> dict[str, Value]:
        return {"shelf_id": self.shelf_id, "space_id": self.space_id}


@dataclass(frozen=True, slots=True)
class _Asked:
    vector: Vector
    k: int
    allowed: Collection[int] | None

    def best(self, view: View) -> list[Scored]:
        return best_of(view, self.vector, self.k, self.allowed)


def _decoded(blobs: Sequence[bytes], dimension: int) -> Matrix:
    joined = b"".join(blobs)
    if len(joined) != len(blobs) * dimension * _STORED.itemsize:
        raise StoreError("The vector index holds a vector of the wrong size; restore the store from a backup.")
    return np.frombuffer(joined, dtype=_STORED).reshape(len(blobs), dimension).astype(np.float32)


def _check_dimension(space: str, dimension: int, vector: Vector) -> None:
    if vector.shape != (dimension,):
        raise ValueError(f"the space {space!r} has {dimension} dimensions, the vector has the shape {vector.shape}")
