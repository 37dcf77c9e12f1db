"""What an embedder around another one passes on."""

from collections.abc import Sequence

from loom.models.interface import Embedder, Space
from loom.storage.indexes import Vector


class WrappingEmbedder:
    """An `Embedder` that does as the inner one does. Those that are built on it change what they are there for."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

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
        return self._inner.embed_query(text, timeout_s)

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """One vector for each passage; see `Embedder`."""
        return self._inner.embed_passages(texts, timeout_s)

    def close(self) -> None:
        """Stop the inner one."""
        self._inner.close()
