"""An embedder that remembers the vectors of the last questions."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Final

from loom.models.interface import Embedder, Space
from loom.storage.indexes import Vector

QUERIES_MAX: Final = 1_024
"""Questions remembered; with 384 dimensions they take 1.6 MB."""

_KEY_BYTES: Final = 16


class CachingEmbedder:
    """An `Embedder` around another one. Safe for threads.

    Agents ask the same thing again, and a page after the first one asks it too. A question is known by a hash of its
    text, so none is kept; the one not asked for longest goes first.
    """

    def __init__(self, inner: Embedder, queries_max: int = QUERIES_MAX) -> None:
        self._inner = inner
        self._queries_max = queries_max
        self._mutex = Lock()
        self._kept: OrderedDict[bytes, Vector] = OrderedDict()

    @property
    def space(self) -> Space:
        """The inner one's."""
        return self._inner.space

    @property
    def random_cosine(self) -> float:
        """The inner one's."""
        return self._inner.random_cosine

    @property
    def question_cosine(self) -> float:
        """The inner one's."""
        return self._inner.question_cosine

    def warm(self) -> None:
        """Begin to load in the background."""
        self._inner.warm()

    def embed_query(self, text: str, timeout_s: float) -> Vector:
        """The vector of a query; see `Embedder`."""
        key = self._key(text)
        with self._mutex:
            vector = self._kept.get(key)
            if vector is not None:
                self._kept.move_to_end(key)
                return vector
        vector = self._inner.embed_query(text, timeout_s)
        vector.flags.writeable = False  # it is given to many
        with self._mutex:
            self._kept[key] = vector
            self._kept.move_to_end(key)
            if len(self._kept) > self._queries_max:
                self._kept.popitem(last=False)
        return vector

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """One vector for each passage, made anew; see `Embedder`."""
        return self._inner.embed_passages(texts, timeout_s)

    def close(self) -> None:
        """Stop the inner one."""
        self._inner.close()

    def _key(self, text: str) -> bytes:
        told = f"{self.space.fingerprint}\n{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(told, digest_size=_KEY_BYTES).digest()
