"""Stand-ins that behave, for what a test must be able to switch."""

from collections.abc import Sequence
from threading import Event

from loom.models.hashing import HashingEmbedder
from loom.models.interface import EmbedderFailed, Space
from loom.storage.indexes import Vector


class FailingEmbedder:
    """A hashing embedder that fails while it is switched off; `off.set()` and `off.clear()` switch it.

    `texts` counts the texts that were asked for, failed ones included.
    """

    def __init__(self, *, off: bool = True) -> None:
        self._inner = HashingEmbedder()
        self.off = Event()
        self.texts = 0
        if off:
            self.off.set()

    @property
    def space(self) -> Space:
        return self._inner.space

    @property
    def random_cosine(self) -> float:
        return self._inner.random_cosine

    def warm(self) -> None:
        pass

    def embed_query(self, text: str, timeout_s: float) -> Vector:
        return self.embed_passages([text], timeout_s)[0]

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        self.texts += len(texts)
        if self.off.is_set():
            raise EmbedderFailed("the embedder is switched off")
        return self._inner.embed_passages(texts, timeout_s)

    def close(self) -> None:
        pass
