"""Vectors in memory: one exact float32 matrix for each shelf and space.

The file is the truth. A matrix is what one transaction after another has read
from it: each asks for the changes above the newest `seq` the matrix has seen,
so that the writes of other processes are found too. Only committed rows come
in here.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loom.storage.indexes import Matrix, Scored, Vector
from loom.storage.sqlite.beside import Beside

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]

GROWTH = 1.5
"""A full matrix grows by this factor, so that single appends seldom copy it."""

GROWN_ROWS_MAX = 16_384
"""And by so many rows at most: room that nothing fills counts against the bound, and drives other matrices out."""

ROOM_AT_LOAD = 1.1
"""A matrix is made with this much room for its rows: memory not yet touched costs next to nothing."""

CAPACITY_MIN = 64

DEAD_SHARE_MAX = 0.25
"""A matrix with more dead rows than this is packed anew."""

DEAD_MIN = 1024
"""Below this many dead rows packing is not worth it."""

ROW_OVERHEAD_BYTES = 150
"""What a row costs besides its numbers: ids, flag and its entry in a dict."""

SUBSET_SHARE_MAX = 0.1
"""When fewer of the rows are allowed, only those are multiplied."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Rows as read from the file; a removed row has no place in `data`.

    Attributes:
        row_ids: the row of each vector in `data`.
        item_ids: the item of each vector in `data`.
        data: the vectors, one a line.
        gone: rows that are removed.
        seq: up to this change, nothing of the shelf and space is missing.
    """

    row_ids: Sequence[int]
    item_ids: Sequence[int]
    data: Matrix
    gone: Sequence[int]
    seq: int

    def view(self) -> "View":
        """The vectors alone, to be searched once."""
        items = np.asarray(self.item_ids, dtype=np.int64)
        return View(self.data, items, np.ones(len(items), dtype=np.bool_), most_alike(items), all_live=True)


@dataclass(frozen=True, slots=True)
class View:
    """A matrix at one moment. Its lines never change; what comes later is behind `len(items)`."""

    data: Matrix
    items: Ids
    live: Mask
    parts_max: int
    all_live: bool


class VectorMatrix:
    """The vectors of one shelf in one space. Safe for threads."""

    def __init__(self, dimension: int, row_count: int = 0) -> None:
        capacity = min(int(row_count * ROOM_AT_LOAD), row_count + GROWN_ROWS_MAX)
        self.catching_up = threading.Lock()
        """Held by the one transaction that reads changes for this matrix."""
        self._mutex = threading.Lock()
        self._dimension = dimension
        self._data: Matrix = np.empty((capacity, dimension), dtype=np.float32)
        self._items: Ids = np.empty(capacity, dtype=np.int64)
        self._live: Mask = np.zeros(capacity, dtype=np.bool_)
        self._place_of: dict[int, int] = {}
        self._count = 0
        self._dead = 0
        self._parts_max = 1
        self._seq = 0

    def view(self, without: Collection[int] = ()) -> View:
        """The matrix now, the rows `without` left out."""
        with self._mutex:
            live = self._live[: self._count].copy()
            for row_id in without:
                place = self._place_of.get(row_id)
                if place is not None:
                    live[place] = False
            all_live = self._dead == 0 and not without
            return View(self._data[: self._count], self._items[: self._count], live, self._parts_max, all_live)

    def seq(self) -> int:
        """The newest change seen."""
        return self._seq

    def bytes_used(self) -> int:
        """About how much memory this takes."""
        return len(self._items) * bytes_of_row(self._dimension)

    def apply(self, changed: Changed) -> None:
        """Take in rows read from the file."""
        with self._mutex:
            for row_id in (*changed.gone, *changed.row_ids):
                self._kill(row_id)
            added = len(changed.row_ids)
            if self._count + added > len(self._items) or self._dead > max(DEAD_MIN, DEAD_SHARE_MAX * self._count):
                self._pack(added)
            new = slice(self._count, self._count + added)
            self._data[new] = changed.data
            self._items[new] = changed.item_ids
            self._live[new] = True
            self._place_of.update(zip(changed.row_ids, range(self._count, self._count + added), strict=True))
            self._count += added
            self._parts_max = max(self._parts_max, most_alike(np.asarray(changed.item_ids, dtype=np.int64)))
            self._seq = max(self._seq, changed.seq)

    def _kill(self, row_id: int) -> None:
        place = self._place_of.pop(row_id, None)
        if place is not None:
            self._live[place] = False
            self._dead += 1

    def _pack(self, added: int) -> None:
        """Move the live rows into new arrays with room to grow; views keep the old ones."""
        old_data, old_items = self._data, self._items
        kept = np.flatnonzero(self._live[: self._count])
        moved = np.full(self._count, -1, dtype=np.int64)
        moved[kept] = np.arange(len(kept))
        needed = len(kept) + added
        capacity = max(CAPACITY_MIN, min(int(needed * GROWTH), needed + GROWN_ROWS_MAX))
        data: Matrix = np.empty((capacity, self._dimension), dtype=np.float32)
        items: Ids = np.empty(capacity, dtype=np.int64)
        live: Mask = np.zeros(capacity, dtype=np.bool_)
        np.take(old_data, kept, axis=0, out=data[: len(kept)])
        items[: len(kept)] = old_items[kept]
        live[: len(kept)] = True
        places = moved.tolist()
        self._place_of = {row_id: places[place] for row_id, place in self._place_of.items()}
        self._data, self._items, self._live = data, items, live
        self._count, self._dead = len(kept), 0


class VectorCache:
    """The matrices of all open files, within a bound of memory; the one unused for longest goes first."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.beside = Beside()
        """Threads that multiply the matrices while their transactions go on."""
        self._mutex = threading.Lock()
        self._matrices: OrderedDict[tuple[int, int, int], VectorMatrix] = OrderedDict()

    def get(self, key: tuple[int, int, int]) -> VectorMatrix | None:
        """The matrix of a file, shelf and space, if it is in memory."""
        with self._mutex:
            matrix = self._matrices.get(key)
            if matrix is not None:
                self._matrices.move_to_end(key)
            return matrix

    def add(self, key: tuple[int, int, int], matrix: VectorMatrix) -> VectorMatrix:
        """Keep `matrix`, unless another thread was first; the one that is kept."""
        with self._mutex:
            return self._matrices.setdefault(key, matrix)

    def forget(self, key: tuple[int, int, int]) -> None:
        """Let one matrix go."""
        with self._mutex:
            self._matrices.pop(key, None)

    def trim(self) -> None:
        """Let matrices go until the bound is kept."""
        with self._mutex:
            used = sum(matrix.bytes_used() for matrix in self._matrices.values())
            while used > self.bytes_max and self._matrices:
                used -= self._matrices.popitem(last=False)[1].bytes_used()

    def forget_file(self, file_id: int) -> None:
        """Let the matrices of one file go."""
        with self._mutex:
            for key in [key for key in self._matrices if key[0] == file_id]:
                del self._matrices[key]

    def close(self) -> None:
        """Let the threads go."""
        self.beside.close()

    def bytes_used(self) -> int:
        """About how much memory all matrices take."""
        with self._mutex:
            return sum(matrix.bytes_used() for matrix in self._matrices.values())


def bytes_of_row(dimension: int) -> int:
    """About how much memory one vector takes."""
    return dimension * np.dtype(np.float32).itemsize + ROW_OVERHEAD_BYTES


def most_alike(items: Ids) -> int:
    """How often the most frequent id occurs; at least 1."""
    if len(items) == 0:
        return 1
    return int(np.unique(items, return_counts=True)[1].max())


def best_of(view: View, vector: Vector, k: int, allowed: Collection[int] | None) -> list[Scored]:
    """The `k` items with the highest dot product; an item counts by its best row."""
    if allowed is None and view.all_live:
        items, scores = view.items, view.data @ vector
    else:
        usable = view.live if allowed is None else view.live & _among(view.items, allowed)
        places = np.flatnonzero(usable)
        few = len(places) <= SUBSET_SHARE_MAX * len(usable)
        items = view.items[places]
        scores = view.data[places] @ vector if few else (view.data @ vector)[places]
    wanted = min(len(items), k * view.parts_max)
    if wanted < len(items):
        top = np.argpartition(scores, len(items) - wanted)[len(items) - wanted :]
        items, scores = items[top], scores[top]
    return merged(items, scores, k)


def merged(items: Ids, scores: Matrix, k: int) -> list[Scored]:
    """The `k` best items, each by its best score; of equal scores the newer id first."""
    best: list[Scored] = []
    seen: set[int] = set()
    for place in np.lexsort((-items, -scores)):
        item_id = int(items[place])
        if item_id not in seen:
            seen.add(item_id)
            best.append(Scored(item_id, float(scores[place])))
            if len(best) == k:
                break
    return best


def _among(items: Ids, allowed: Collection[int]) -> Mask:
    wanted = np.sort(np.fromiter(allowed, dtype=np.int64, count=len(allowed)))
    at = np.searchsorted(wanted, items)
    at[at == len(wanted)] = 0
    return wanted[at] == items
