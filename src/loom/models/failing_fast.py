"""An embedder and a language model behind circuit breakers: while one does not answer, nobody waits for it.

Whether it answers is decided by texts of our own, see `breaker`: an embedder is asked for the fixed texts whose vectors
are known, a language model for one token.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from loom.canonical import Json
from loom.models.breaker import Blame, CircuitBreaker, CircuitOpen, in_background
from loom.models.interface import Embedder, EmbedderFailed
from loom.models.wrapping import WrappingEmbedder
from loom.models.writer import Writer, WriterFailed
from loom.storage.indexes import Vector

QUESTION_PROBE_S: Final = 1.0
PASSAGE_PROBE_S: Final = 10.0
WRITER_PROBE_S: Final = 20.0
"""How long a probe may take: about as long as those who wait have."""

Start = Callable[[Callable[[], None]], None]


class ProbedEmbedder(Embedder, Protocol):
    """An embedder that can be asked whether it answers."""

    def probe(self, timeout_s: float) -> None:
        """Have texts of our own embedded, behind no caller's.

        Raises:
            EmbedderFailed: it gave no vectors in time, or not those that it should.
        """
        ...


class ProbedWriter(Writer, Protocol):
    """A language model that can be asked whether it answers."""

    def probe(self, timeout_s: float) -> None:
        """Have it say something short, behind no caller's text.

        Raises:
            WriterFailed: it said nothing in time.
        """
        ...


def embedder_breaker(
    what: str, clock_s: Callable[[], float] = time.monotonic, start: Start = in_background
) -> CircuitBreaker:
    """A breaker for an embedder, by a steady clock; `what` it is asked for is told in messages."""
    return CircuitBreaker(f"the embedder, asked for {what},", _of_embedder, clock_s, start=start)


def writer_breaker(clock_s: Callable[[], float] = time.monotonic, start: Start = in_background) -> CircuitBreaker:
    """A breaker for a language model, by a steady clock."""
    return CircuitBreaker("the language model", _of_writer, clock_s, start=start)


class FailFastEmbedder(WrappingEmbedder):
    """An `Embedder` that is not asked while it does not answer: its failure then says for how long. Safe for threads.

    Questions and passages have a breaker each: an endpoint can be too slow for a question's second and quick enough
    for a passage's ten, and either must not stop the other.
    """

    def __init__(self, inner: ProbedEmbedder, questions: CircuitBreaker, passages: CircuitBreaker) -> None:
        super().__init__(inner)
        self._probe = inner.probe
        self._questions = questions
        self._passages = passages

    def embed_query(self, text: str, timeout_s: float) -> Vector:
        """The vector of a query; see `Embedder`."""
        try:
            with self._questions.call(partial(self._probed, QUESTION_PROBE_S)):
                return self._inner.embed_query(text, timeout_s)
        except CircuitOpen as rests:
            raise EmbedderFailed(str(rests), rest_s=rests.rest_s) from None

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """One vector for each passage; see `Embedder`."""
        if not texts:
            return []  # nothing is asked, so nothing is learnt
        try:
            with self._passages.call(partial(self._probed, PASSAGE_PROBE_S)):
                return self._inner.embed_passages(texts, timeout_s)
        except CircuitOpen as rests:
            raise EmbedderFailed(str(rests), rest_s=rests.rest_s) from None

    def _probed(self, timeout_s: float) -> EmbedderFailed | None:
        try:
            self._probe(timeout_s)
        except EmbedderFailed as failure:
            return failure
        return None


class FailFastWriter:
    """A `Writer` that is not asked while it does not answer: its failure then says for how long. Safe for threads."""

    def __init__(self, inner: ProbedWriter, breaker: CircuitBreaker) -> None:
        self._inner = inner
        self._breaker = breaker

    @property
    def endpoint(self) -> str:
        """The inner one's."""
        return self._inner.endpoint

    @property
    def model(self) -> str:
        """The inner one's."""
        return self._inner.model

    @property
    def input_length_max(self) -> int:
        """The inner one's."""
        return self._inner.input_length_max

    def write(self, instructions: str, text: str, shape: Mapping[str, Json], timeout_s: float) -> Json:
        """JSON that the model made of the text; see `Writer`."""
        try:
            with self._breaker.call(self._probed):
                return self._inner.write(instructions, text, shape, timeout_s)
        except CircuitOpen as rests:
            raise WriterFailed(str(rests), retryable=True, rest_s=rests.rest_s) from None

    def _probed(self) -> WriterFailed | None:
        try:
            self._inner.probe(WRITER_PROBE_S)
        except WriterFailed as failure:
            return failure
        return None


def _of_embedder(error: BaseException) -> Blame:
    return error.blame if isinstance(error, EmbedderFailed) else Blame.CALLERS


def _of_writer(error: BaseException) -> Blame:
    if not isinstance(error, WriterFailed) or error.tells_nothing:
        return Blame.CALLERS
    return Blame.SERVICE if error.retryable or error.misconfigured else Blame.INPUT
