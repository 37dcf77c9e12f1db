"""An embedder that remembers the vectors of the last questions."""

import hashlib
from collections import OrderedDict
from threading import Lock
from typing import Final

from loom.models.interface import Embedder
from loom.models.wrapping import WrappingEmbedder
from loom.storage.indexes import Vector

QUERIES_MAX: Final = 1_024
"""Questions remembered; with 384 dimensions they take 1.6 MB."""

_KEY_BYTES: Final = 16


class CachingEmbedder(WrappingEmbedder):
    """Passages are made anew each time. Safe for threads.

    Agents ask the same thing again, and a page after the first one asks it too. A question is known by a hash of its
    text, so none is kept; the one not asked for longest goes first.
    """

    def __init__(self, inner: Embedder, queries_max: int = QUERIES_MAX) -> None:
        super().__init__(inner)
        self._queries_max = queries_max
        self._mutex = Lock()
        self._kept: OrderedDict[bytes, Vector] = OrderedDict()

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

    def _key(self, text: str) -> bytes:
        told = f"{self.space.fingerprint}\n{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(told, digest_size=_KEY_BYTES).digest()
