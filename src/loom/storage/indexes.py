"""The two indexes every engine offers: words and vectors.

An index is divided into shelves. Its cost follows the shelf that is searched,
not the store. An index knows item ids alone: whether an item is live and
visible is the caller's to check when it fetches the rows.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""One embedding: float32, one dimension, unit length."""

Matrix = NDArray[np.float32]
"""Vectors as rows."""

UNIT_TOLERANCE = 1e-2
"""How far a vector's length may be from 1."""

PARTS_MAX = 10_000
"""Vectors of one item."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """One searchable collection of one namespace, for example `memory` of `local`."""

    collection: str
    namespace: str


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A text as the word index keeps it, made by the one tokeniser.

    Attributes:
        words: normalised tokens in order, unstemmed.
        stems: the same text's stemmed tokens in order.
    """

    words: Sequence[str]
    stems: Sequence[str]


COMMON_SHARE: Final = 0.2
"""The usual `TextQuery.common_share`."""


@dataclass(frozen=True, slots=True)
class TextQuery:
    """What to look for. Everything in it is data, never syntax.

    Attributes:
        words: unstemmed query tokens; any may match.
        stems: stemmed query tokens; any may match.
        phrases: runs of unstemmed tokens that must stand side by side; a hit
            with a phrase ranks by it as well.
        word_weight: weight of unstemmed matches against 1.0 for stemmed ones.
        required: when true, a hit must hold one of `phrases`.
        common_share: in a large shelf a term in more than this share of the rows is left out when rarer ones remain.
    """

    words: Sequence[str]
    stems: Sequence[str]
    phrases: Sequence[Sequence[str]] = ()
    word_weight: float = 0.5
    required: bool = False
    common_share: float = COMMON_SHARE


class Scored(NamedTuple):
    """An item and its score; higher is better. Scores of one answer can be compared."""

    item_id: int
    score: float


Later = Callable[[], Sequence[Scored]]
"""What a search that was begun will have found; it waits for it."""


class TextIndex(Protocol):
    """BM25 over tokens."""

    def put(self, shelf: Shelf, item_id: int, text: IndexedText) -> None:
        """Index `text` under `item_id`, replacing what was there."""
        ...

    def remove(self, shelf: Shelf, item_id: int) -> None:
        """Forget the item; no error when it is not there."""
        ...

    def scrub(self, shelf: Shelf) -> None:
        """Leave no byte of removed items in the shelf's files after the next checkpoint."""
        ...

    def drop(self, shelf: Shelf) -> None:
        """Forget the whole shelf."""
        ...

    def best(self, shelf: Shelf, query: TextQuery, k: int, allowed: Collection[int] | None = None) -> Sequence[Scored]:
        """The `k` best items by BM25, best first; among `allowed` only, where given."""
        ...


class VectorIndex(Protocol):
    """Nearest neighbours by cosine. An item may have several vectors; its best one counts."""

    def put(self, shelf: Shelf, item_id: int, space: str, vectors: Sequence[Vector]) -> None:
        """Keep `vectors` of the embedding space `space` under `item_id`, replacing what was there in every space.

        What an item says may have changed since the vectors of another space were made, so they go.

        Raises:
            ValueError: a vector is empty, not finite, or not of unit length.
        """
        ...

    def add(self, shelf: Shelf, item_id: int, space: str, vectors: Sequence[Vector]) -> None:
        """Keep `vectors` beside those that the item has in other spaces, replacing what was there in `space` alone.

        Whoever calls this knows that the item says what it said when the others were made.

        Raises:
            ValueError: as `put`.
        """
        ...

    def remove(self, shelf: Shelf, item_id: int) -> None:
        """Forget the item's vectors in every space; no error when there are none."""
        ...

    def spaces(self) -> Mapping[str, int]:
        """Every space that the org has vectors of, with its dimension. For a start or a timer, not for a call."""
        ...

    def drop_others(self, keep: Collection[str], most: int) -> int:
        """Forget up to `most` vectors of the org whose space is none of `keep`; how many there were."""
        ...

    def drop(self, shelf: Shelf) -> None:
        """Forget the whole shelf."""
        ...

    def best(
        self, shelf: Shelf, space: str, vector: Vector, k: int, allowed: Collection[int] | None = None
    ) -> Sequence[Scored]:
        """The `k` items nearest to `vector` by cosine, best first; among `allowed` only, where given."""
        ...

    def begin(self, shelf: Shelf, space: str, vector: Vector, k: int) -> Later:
        """Begin `best` of a whole shelf beside what the transaction does next, where that is quicker.

        Ask for it inside the transaction.
        """
        ...

    def scores(self, shelf: Shelf, space: str, vector: Vector, item_ids: Collection[int]) -> Mapping[int, float]:
        """The cosine of each named item that has a vector in `space`."""
        ...

    def missing(self, shelf: Shelf, space: str, item_ids: Collection[int]) -> Sequence[int]:
        """Those of `item_ids` that have no vector in `space`."""
        ...

    def first(self, shelf: Shelf, space: str, item_ids: Collection[int]) -> Mapping[int, Vector]:
        """The first vector of each named item that has one in `space`, at half precision; for a bounded number."""
        ...


def stacked(vectors: Sequence[Vector]) -> Matrix:
    """The vectors of one item as the rows of a matrix.

    Raises:
        ValueError: there are none or too many, or one is empty, not finite, not of unit length or of another length.
    """
    if not 1 <= len(vectors) <= PARTS_MAX:
        raise ValueError(f"an item has 1 to {PARTS_MAX} vectors, not {len(vectors)}")
    for vector in vectors:
        if vector.ndim != 1 or vector.dtype != np.float32 or len(vector) == 0:
            raise ValueError(f"a vector is one line of float32, not {vector.shape} of {vector.dtype}")
        if len(vector) != len(vectors[0]):
            raise ValueError("the vectors of one item differ in length")
    matrix = np.stack(vectors)
    # A length that is not finite fails this comparison too.
    if not np.all(np.abs(np.linalg.norm(matrix, axis=1) - 1.0) <= UNIT_TOLERANCE):
        raise ValueError("a vector is not finite or not of unit length")
    return matrix
