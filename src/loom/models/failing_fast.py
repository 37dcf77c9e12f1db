"""An embedder and a language model behind circuit breakers: while one does not answer, nobody waits for it."""

from collections.abc import Mapping, Sequence

from loom.canonical import Json
from loom.models.breaker import Blame, CircuitBreaker, CircuitOpen
from loom.models.interface import Embedder, EmbedderFailed
from loom.models.wrapping import WrappingEmbedder
from loom.models.writer import Writer, WriterFailed
from loom.storage.indexes import Vector


def embedder_breaker(what: str) -> CircuitBreaker:
    """A breaker for an embedder; `what` it is asked for is told in messages."""
    return CircuitBreaker(f"the embedder, asked for {what},", _of_embedder)


def writer_breaker() -> CircuitBreaker:
    """A breaker for a language model."""
    return CircuitBreaker("the language model", _of_writer)


class FailFastEmbedder(WrappingEmbedder):
    """An `Embedder` that is not asked while it does not answer: its failure then says for how long. Safe for threads.

    Questions and passages have a breaker each: an endpoint can be too slow for a question's second and quick enough
    for a passage's ten, and either must not stop the other.
    """

    def __init__(self, inner: Embedder, questions: CircuitBreaker, passages: CircuitBreaker) -> None:
        super().__init__(inner)
        self._questions = questions
        self._passages = passages

    def embed_query(self, text: str, timeout_s: float) -> Vector:
        """The vector of a query; see `Embedder`."""
        try:
            with self._questions.call():
                return self._inner.embed_query(text, timeout_s)
        except CircuitOpen as rests:
            raise EmbedderFailed(str(rests), rest_s=rests.rest_s) from None

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """One vector for each passage; see `Embedder`."""
        if not texts:
            return []  # nothing is asked, so nothing is learnt
        try:
            with self._passages.call():
                return self._inner.embed_passages(texts, timeout_s)
        except CircuitOpen as rests:
            raise EmbedderFailed(str(rests), rest_s=rests.rest_s) from None


class FailFastWriter:
    """A `Writer` that is not asked while it does not answer: its failure then says for how long. Safe for threads."""

    def __init__(self, inner: Writer, breaker: CircuitBreaker) -> None:
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
            with self._breaker.call():
                return self._inner.write(instructions, text, shape, timeout_s)
        except CircuitOpen as rests:
            raise WriterFailed(str(rests), retryable=True, rest_s=rests.rest_s) from None


def _of_embedder(error: BaseException) -> Blame:
    return error.blame if isinstance(error, EmbedderFailed) else Blame.CALLERS


def _of_writer(error: BaseException) -> Blame:
    if not isinstance(error, WriterFailed) or error.crowded:
        return Blame.CALLERS
    return Blame.SERVICE if error.retryable or error.misconfigured else Blame.INPUT
