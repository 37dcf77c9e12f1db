"""Embedding models that Loom does not know beforehand: behind an endpoint, or run by another library.

What Loom must know of a model's space is measured once, with a few fixed texts, and kept beside the store: how long a
vector is, how near two unrelated texts are, and the vectors of some texts. Each time a server starts, and from time to
time after, the model is asked for those again: one that was changed behind its name is noticed before it is used.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final, Protocol

from loom.models import canaries
from loom.models.facts import QUESTIONS, UNRELATED, Facts, measured
from loom.models.interface import EmbedderFailed, Space, checked
from loom.storage.indexes import Vector

PROBE_TIMEOUT_S: Final = 120.0
"""How long the first call may take; a library may have to fetch the model."""

CHECKED_AGAIN_S: Final = 3_600.0
TRIED_AGAIN_S: Final = 30.0
"""How long a model that gave other vectors than recorded is not asked again."""


class Model(Protocol):
    """What computes the vectors. Safe for threads."""

    def warm(self) -> None:
        """Begin to load in the background; returns at once."""
        ...

    def vectors(self, texts: Sequence[str], timeout_s: float, *, urgent: bool) -> list[Vector]:
        """One vector of unit length for each text, in order; `urgent` ones do not wait behind others.

        Raises:
            EmbedderFailed: not all came in time.
        """
        ...

    def probe(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """As `vectors`, in no queue with others: what it comes to tells of the model, and not of its callers."""
        ...

    def close(self) -> None:
        """Stop; later calls fail."""
        ...


@dataclass(frozen=True, slots=True)
class Family:
    """What is known of a model's space before it is asked.

    Attributes:
        source: what runs it: `openai` for an endpoint, else the library's name.
        model: the model's name there.
        query_prefix: put before a query.
        passage_prefix: put before a passage.
        dimension: numbers in a vector; 0 when only the model knows.
    """

    source: str
    model: str
    query_prefix: str = ""
    passage_prefix: str = ""
    dimension: int = 0

    def space(self, dimension: int) -> Space:
        """The space, once it is known how long a vector is. What only the model's host knows stays open."""
        return Space(
            source=self.source,
            model=self.model,
            weights_sha256="",
            tokenizer_sha256="",
            dimension=dimension,
            pooling="",
            normalised=True,
            query_prefix=self.query_prefix,
            passage_prefix=self.passage_prefix,
            tokens_max=0,
            quantisation="",
        )

    def covers(self, space: Space) -> bool:
        """Whether it is one of this model."""
        return space == self.space(self.dimension or space.dimension)


@dataclass(frozen=True, slots=True)
class Memory:
    """Where what was measured is kept.

    Attributes:
        find: the space and the facts of a family, if they were kept.
        keep: keeps them.
    """

    find: Callable[[Family], tuple[Space, Facts] | None]
    keep: Callable[[Space, Facts], None]


def opened(model: Model, family: Family, memory: Memory) -> "ForeignEmbedder":
    """The embedder of a model; the model is asked only when nothing is known of it yet.

    Raises:
        EmbedderFailed: it had to be asked and gave no vectors, or vectors of another length than the family says.
    """
    known = memory.find(family)
    if known is None:
        texts = [family.passage_prefix + text for text in UNRELATED]
        texts += [family.query_prefix + question for question in QUESTIONS]
        vectors = model.vectors(texts, PROBE_TIMEOUT_S, urgent=False)
        space = family.space(len(vectors[0]))
        if family.dimension not in (0, space.dimension):
            raise EmbedderFailed(
                f"the model gives vectors of {space.dimension} numbers, and LOOM_EMBEDDER_DIMENSION says"
                f" {family.dimension}"
            )
        known = space, measured(vectors[: len(UNRELATED)], vectors[len(UNRELATED) :])
        memory.keep(*known)
    return ForeignEmbedder(model, *known)


class ForeignEmbedder:
    """An `Embedder` over a foreign model. Safe for threads."""

    def __init__(self, model: Model, space: Space, facts: Facts, clock_s: Callable[[], float] = time.monotonic) -> None:
        self.space: Space = space
        self.random_cosine: float = facts.random_cosine
        self.question_cosine: float = facts.question_cosine
        self._model = model
        self._facts = facts
        self._clock_s = clock_s
        self._checking = Lock()
        self._good_until_s = float("-inf")
        self._bad_until_s = float("-inf")
        self._bad: str = ""

    def warm(self) -> None:
        """Begin to load in the background; returns at once, and may be called again."""
        self._model.warm()

    def embed_query(self, text: str, timeout_s: float) -> Vector:
        """The vector of a query; see `Embedder`."""
        return self._embed([self.space.query_prefix + text], timeout_s, urgent=True)[0]

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """One vector for each passage, in order; see `Embedder`."""
        return self._embed([self.space.passage_prefix + text for text in texts], timeout_s, urgent=False)

    def probe(self, timeout_s: float) -> None:
        """See that the model answers, and is the one that was measured; see `failing_fast.ProbedEmbedder`."""
        self._compare(lambda texts: self._model.probe(texts, timeout_s))

    def close(self) -> None:
        """Stop the model."""
        self._model.close()

    def _embed(self, texts: Sequence[str], timeout_s: float, *, urgent: bool) -> list[Vector]:
        if not texts:
            return []
        until_s = time.monotonic() + timeout_s
        self._check(until_s)
        vectors = self._model.vectors(texts, max(0.0, until_s - time.monotonic()), urgent=urgent)
        return [checked(vector, self.space.dimension) for vector in vectors]

    def _check(self, until_s: float) -> None:
        """See to it that the model is the one that was measured.

        Raises:
            EmbedderFailed: it gives other vectors, or none in time.
        """
        if self._clock_s() < self._good_until_s:
            return
        if not self._checking.acquire(timeout=max(0.0, until_s - time.monotonic())):
            raise EmbedderFailed("the model was not checked in time")
        try:
            now_s = self._clock_s()
            if now_s < self._bad_until_s:
                raise EmbedderFailed(self._bad)
            if now_s >= self._good_until_s:
                left_s = max(0.0, until_s - time.monotonic())
                self._compare(lambda texts: self._model.vectors(texts, left_s, urgent=True))
        finally:
            self._checking.release()

    def _compare(self, vectors: Callable[[Sequence[str]], list[Vector]]) -> None:
        texts = [self.space.passage_prefix + text for text in self._facts.canaries]
        made = dict(zip(texts, vectors(texts), strict=True))
        try:
            canaries.check(self.space, made.__getitem__, self._facts.canaries)
        except EmbedderFailed as failure:
            self._good_until_s, self._bad_until_s = float("-inf"), self._clock_s() + TRIED_AGAIN_S
            self._bad = f"{failure}: another model answers under its name now; see loom reindex --anew"
            raise EmbedderFailed(self._bad) from None
        self._good_until_s = self._clock_s() + CHECKED_AGAIN_S
