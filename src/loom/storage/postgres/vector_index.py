"""The vector index: half-precision vectors in their own table.

A shelf is searched exactly: the cosine of two vectors of unit length is their
inner product, over the shelf's rows by primary key. A large shelf gets an HNSW
index of its own from the engine's upkeep; the search goes through it, on and on until enough
items that pass the filter are found, and a narrow filter is searched exactly.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from loom.storage.indexes import Later, Scored, Shelf, Vector, stacked
from loom.storage.postgres import dialect, lexemes
from loom.storage.postgres.connection import Session

INDEXED_FROM_ROWS = 10_000
"""A shelf of more rows gets an index of its own."""

EXACT_ALLOWED_MAX = 5_000
"""So many allowed items are compared one by one, index or not."""

NEAR_ROWS_MIN = 100
NEAR_ROWS_MAX = 1_000
"""Rows taken from an index: at least, and at most. pgvector keeps up to 1,000 in sight."""

PARTS_GUESSED = 4
"""Rows taken from an index for each item wanted, since several may be of one item."""

SPACES_KEPT_MAX = 4_096

_SPACE = "SELECT dimension FROM vector_space WHERE org = %(org)s AND space = %(space)s"
_ADD_SPACE = """
INSERT INTO vector_space (org, space, dimension) VALUES (%(org)s, %(space)s, %(dimension)s)
ON CONFLICT (org, space) DO NOTHING
"""
_CLEAR = """
DELETE FROM vector_row
WHERE org = %(org)s AND shelf_id = %(shelf)s AND space_id = %(space)s AND item_id = %(item)s AND part >= %(part)s
"""
_PUT = """
INSERT INTO vector_row (org, shelf_id, space_id, item_id, part, embedding)
SELECT %(org)s, %(shelf)s, %(space)s, %(item)s, place - 1, CAST(told AS halfvec)
FROM unnest(CAST(%(told)s AS TEXT[])) WITH ORDINALITY AS given (told, place)
ON CONFLICT (org, shelf_id, space_id, item_id, part) DO UPDATE SET embedding = excluded.embedding
"""
# The spaces of a shelf, found by one probe each: the key has the space before the item.
_SHELF_SPACES = """
ARRAY(WITH RECURSIVE found AS (
    SELECT (SELECT min(space_id) FROM vector_row WHERE org = %(org)s AND shelf_id = %(shelf)s) AS space_id
    UNION ALL
    SELECT (SELECT min(r.space_id) FROM vector_row r
        WHERE r.org = %(org)s AND r.shelf_id = %(shelf)s AND r.space_id > found.space_id)
    FROM found WHERE found.space_id IS NOT NULL
) SELECT space_id FROM found WHERE space_id IS NOT NULL)
"""
_REMOVE = (
    "DELETE FROM vector_row WHERE org = %(org)s AND shelf_id = %(shelf)s AND item_id = %(item)s AND space_id = ANY("  # noqa: S608  # the parts are constants
    + _SHELF_SPACES
    + ")"
)
_REMOVE_ELSEWHERE = _REMOVE + " AND space_id <> %(space)s"
_PAIRS = """
WITH RECURSIVE pair AS (
    (SELECT shelf_id, space_id FROM vector_row WHERE org = %(org)s ORDER BY shelf_id, space_id LIMIT 1)
    UNION ALL
    SELECT following.shelf_id, following.space_id FROM pair CROSS JOIN LATERAL (
        SELECT r.shelf_id, r.space_id FROM vector_row r
        WHERE r.org = %(org)s AND (r.shelf_id, r.space_id) > (pair.shelf_id, pair.space_id)
        ORDER BY r.shelf_id, r.space_id LIMIT 1) AS following
) SELECT shelf_id, space_id FROM pair
"""
_NAMES = "SELECT space, dimension FROM vector_space WHERE org = %(org)s"
_REMOVE_SOME = """
DELETE FROM vector_row
WHERE org = %(org)s AND shelf_id = %(shelf)s AND space_id = %(space)s AND (item_id, part) IN (
    SELECT item_id, part FROM vector_row WHERE org = %(org)s AND shelf_id = %(shelf)s AND space_id = %(space)s
    ORDER BY item_id, part LIMIT %(rows)s)
RETURNING 1
"""
_DROP = "DELETE FROM vector_row WHERE org = %(org)s AND shelf_id = %(shelf)s"
_ON_SHELF = " FROM vector_row WHERE org = %(org)s AND shelf_id = %(shelf)s AND space_id = %(space)s"
_AMONG = " AND item_id = ANY(CAST(%(items)s AS BIGINT[]))"
_COSINE = "-(embedding <#> CAST(%(vector)s AS halfvec))"
_EXACT = f"SELECT item_id, max({_COSINE}) AS score{_ON_SHELF}"
_EXACT_END = " GROUP BY item_id ORDER BY score DESC, item_id DESC LIMIT %(k)s"
_SCORES = f"SELECT item_id, max({_COSINE}){_ON_SHELF}{_AMONG} GROUP BY item_id"
_HELD = f"SELECT DISTINCT item_id{_ON_SHELF}{_AMONG}"
_FIRST = f"SELECT item_id, halfvec_send(embedding){_ON_SHELF} AND part = 0{_AMONG}"
_INDEX_THERE = """
SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%(name)s) AND indisvalid AND indisready
"""
# The shelf and the space stand as numbers, so that the planner sees that the partial index fits.
_NEAR = """
SELECT item_id, -distance FROM (
    SELECT item_id, CAST(embedding AS halfvec({dimension})) <#> CAST(%(vector)s AS halfvec({dimension})) AS distance
    FROM vector_row WHERE org = %(org)s AND shelf_id = {shelf} AND space_id = {space}{among}
    ORDER BY distance LIMIT %(rows)s
) AS near
"""


class Spaces:
    """Remembers the dimension of each org's spaces, which never changes. Safe for threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], int] = OrderedDict()

    def get(self, org: str, space: str) -> int | None:
        """The dimension, if it is known."""
        with self._mutex:
            return self._kept.get((org, space))

    def put(self, org: str, space: str, dimension: int) -> None:
        """Remember a dimension that is committed."""
        with self._mutex:
            self._kept[(org, space)] = dimension
            if len(self._kept) > SPACES_KEPT_MAX:
                self._kept.popitem(last=False)


class PostgresVectorIndex:
    """Implements `storage.indexes.VectorIndex` inside one transaction. Of equal scores the newer id comes first."""

    def __init__(self, session: Session, org: str, spaces: Spaces) -> None:
        self._session = session
        self._org = org
        self._spaces = spaces
        self._made: set[str] = set()

    def put(self, shelf: Shelf, item_id: int, space: str, vectors: Sequence[Vector]) -> None:
        """Keep `vectors` of `space` under `item_id`, replacing what was there in every space."""
        self.add(shelf, item_id, space, vectors)
        self._session.send(_REMOVE_ELSEWHERE, {**self._on(shelf, space), "item": item_id})

    def add(self, shelf: Shelf, item_id: int, space: str, vectors: Sequence[Vector]) -> None:
        """Keep `vectors` of `space` under `item_id`, beside those of other spaces."""
        self._session.need_write("the vector index")
        checked = stacked(vectors)
        dimension = self._dimension(space)
        if dimension is None:
            self._made.add(space)
            self._session.send(_ADD_SPACE, {"org": self._org, "space": space, "dimension": checked.shape[1]})
            dimension = self._dimension(space)
        if dimension != checked.shape[1]:
            raise ValueError(f"the space {space!r} has {dimension} dimensions, the vector {checked.shape[1]}")
        on = {**self._on(shelf, space), "item": item_id}
        self._session.send(_PUT, {**on, "told": [_told(row) for row in checked]})
        self._session.send(_CLEAR, {**on, "part": len(checked)})

    def remove(self, shelf: Shelf, item_id: int) -> None:
        """Forget the item's vectors in every space."""
        self._session.send(_REMOVE, {"org": self._org, "shelf": self._number(shelf), "item": item_id})

    def drop(self, shelf: Shelf) -> None:
        """Forget the whole shelf; upkeep drops its index."""
        self._session.send(_DROP, {"org": self._org, "shelf": self._number(shelf)})

    def spaces(self) -> Mapping[str, int]:
        """Every space that there are vectors of, with its dimension."""
        found = {space for _, space in self._session.cells(_PAIRS, {"org": self._org})}
        names = self._session.cells(_NAMES, {"org": self._org}) if found else ()
        return {name: dimension for name, dimension in names if self._hashed(name) in found}

    def drop_others(self, keep: Collection[str], most: int) -> int:
        """Forget up to `most` vectors of other spaces than these; how many there were."""
        self._session.need_write("the vector index")
        kept = {self._hashed(name) for name in keep}
        dropped = 0
        for shelf, space in self._session.cells(_PAIRS, {"org": self._org}):
            if space not in kept and dropped < most:
                on = {"org": self._org, "shelf": shelf, "space": space, "rows": most - dropped}
                dropped += len(self._session.cells(_REMOVE_SOME, on))
        return dropped

    def best(
        self, shelf: Shelf, space: str, vector: Vector, k: int, allowed: Collection[int] | None = None
    ) -> Sequence[Scored]:
        """The `k` items nearest to `vector` by cosine, best first."""
        if k < 1 or (allowed is not None and not allowed) or not self._fits(space, vector):
            return ()
        items = None if allowed is None else list(allowed)
        if items is None or len(items) > EXACT_ALLOWED_MAX:
            near = self._near(shelf, space, vector, k, items)
            if near is not None:
                return near
        params = {**self._on(shelf, space), "vector": _told(vector), "k": k, "items": items or []}
        sql = _EXACT + ("" if items is None else _AMONG) + _EXACT_END
        return [Scored(item_id, score) for item_id, score in self._session.cells(sql, params, prepare=False)]

    def begin(self, shelf: Shelf, space: str, vector: Vector, k: int) -> Later:
        """`best` of a whole shelf when it is asked for: one connection does one thing at a time."""
        return partial(self.best, shelf, space, vector, k)

    def scores(self, shelf: Shelf, space: str, vector: Vector, item_ids: Collection[int]) -> Mapping[int, float]:
        """The cosine of each named item that has a vector in `space`."""
        if not item_ids or not self._fits(space, vector):
            return {}
        params = {**self._on(shelf, space), "vector": _told(vector), "items": list(item_ids)}
        return dict(self._session.cells(_SCORES, params, prepare=False))

    def missing(self, shelf: Shelf, space: str, item_ids: Collection[int]) -> Sequence[int]:
        """Those of `item_ids` that have no vector in `space`."""
        rows = self._session.cells(_HELD, {**self._on(shelf, space), "items": list(item_ids)})
        held = {row[0] for row in rows}
        return [item_id for item_id in item_ids if item_id not in held]

    def first(self, shelf: Shelf, space: str, item_ids: Collection[int]) -> Mapping[int, Vector]:
        """The first vector of each named item that has one in `space`."""
        rows = self._session.cells(_FIRST, {**self._on(shelf, space), "items": list(item_ids)}) if item_ids else ()
        return {item_id: _received(sent) for item_id, sent in rows}

    def _near(
        self, shelf: Shelf, space: str, vector: Vector, k: int, items: list[int] | None
    ) -> Sequence[Scored] | None:
        """The search through the shelf's own index; None when there is none or it cannot give enough."""
        on = self._on(shelf, space)
        numbers = (int(on["shelf"]), int(on["space"]))
        wanted = max(NEAR_ROWS_MIN, k * PARTS_GUESSED)
        if wanted > NEAR_ROWS_MAX or not self._session.cells(
            _INDEX_THERE, {"name": dialect.vector_index_name(*numbers)}
        ):
            return None
        self._session.settings(dialect.approximate_search(wanted))
        sql = _NEAR.format(
            dimension=len(vector), shelf=numbers[0], space=numbers[1], among="" if items is None else _AMONG
        )
        params = {"org": self._org, "vector": _told(vector), "rows": wanted, "items": items or []}
        best: dict[int, float] = {}
        for item_id, score in self._session.cells(sql, params, prepare=False):
            best[item_id] = max(score, best.get(item_id, score))
        if len(best) < k:
            return None
        ranked = sorted(best.items(), key=lambda pair: (-pair[1], -pair[0]))[:k]
        return [Scored(item_id, score) for item_id, score in ranked]

    def _fits(self, space: str, vector: Vector) -> bool:
        """Whether the space is there; ValueError when it has another dimension."""
        dimension = self._dimension(space)
        if dimension is not None and vector.shape != (dimension,):
            raise ValueError(f"the space {space!r} has {dimension} dimensions, the vector has the shape {vector.shape}")
        return dimension is not None

    def _dimension(self, space: str) -> int | None:
        known = self._spaces.get(self._org, space)
        if known is not None:
            return known
        rows = self._session.cells(_SPACE, {"org": self._org, "space": space})
        if rows and space not in self._made and not self._session.joined:
            self._spaces.put(self._org, space, rows[0][0])
        return rows[0][0] if rows else None

    def _on(self, shelf: Shelf, space: str) -> dict[str, str | int]:
        return {"org": self._org, "shelf": self._number(shelf), "space": self._hashed(space)}

    def _hashed(self, space: str) -> int:
        return lexemes.hashed("space", self._org, space)

    def _number(self, shelf: Shelf) -> int:
        return lexemes.shelf_id(self._org, shelf)


def _told(vector: NDArray[np.float32]) -> str:
    return "[" + ",".join(map(repr, vector.astype(np.float16).astype(np.float32).tolist())) + "]"


def _received(sent: bytes) -> Vector:
    """A vector as the server sends it: a header of two numbers, then halves, the high byte first."""
    return np.frombuffer(sent, dtype=_SENT, offset=_SENT_HEADER_BYTES).astype(np.float32)


_SENT = np.dtype(">f2")
_SENT_HEADER_BYTES = 4
