"""An embedder that runs an ONNX model on the processor.

A quantised model's vector of a text depends on what the text is padded or batched
with, so every text runs alone, unpadded, in a session of one thread; several
texts run in several workers. Queries have workers of their own: a query never waits
behind a bulk of passages, it only shares the processor with them.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Final, Protocol, cast

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from loom.models import canaries, packed
from loom.models.encoder_graph import graph
from loom.models.interface import EmbedderFailed, Space, checked, unit
from loom.models.lanes import CLOSED, PASSAGES_WAITING_MAX, QUERIES_WAITING_MAX, Lane, result
from loom.models.sources import Source
from loom.models.unigram import UnigramTokenizer
from loom.storage.indexes import Vector

TEXT_CHARACTERS_MAX: Final = 16_384
"""More than any model's tokens hold; it bounds the tokeniser's time."""


class Session(Protocol):
    """The part of an inference session that is used here."""

    def get_inputs(self) -> Sequence["_Input"]:
        """What the model takes."""
        ...

    def run(self, output_names: None, input_feed: Mapping[str, NDArray[np.int64]]) -> Sequence[NDArray[np.float32]]:
        """Every output for these inputs."""
        ...


class _Input(Protocol):
    name: str


class _Options(Protocol):
    intra_op_num_threads: int
    inter_op_num_threads: int


Tokens = Callable[[str], list[int]]
"""From a text to its tokens, of which there are not too many."""


class _Model:
    """A loaded model: text in, unit vector out. Safe from several threads."""

    def __init__(self, source: Source) -> None:
        source.verify()
        self._space = source.space
        self._tokens, self._session = _from_packed(source) if source.form == "packed" else _from_onnx(source)
        self._inputs = frozenset(one.name for one in self._session.get_inputs())

    def embed(self, text: str) -> Vector:
        """The vector of `text`, whose prefix is already in place."""
        readable = text[:TEXT_CHARACTERS_MAX].encode("utf-8", "replace").decode()
        ids = np.array([self._tokens(readable)], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, {name: feed[name] for name in self._inputs})[0][0]
        pooled = hidden[0] if self._space.pooling == "cls" else hidden.mean(axis=0)
        return checked(unit(pooled), self._space.dimension)


class OnnxEmbedder:
    """An `Embedder` over a model source. Loads on `warm` or on the first call, once, in the background."""

    def __init__(self, source: Source) -> None:
        self.space: Space = source.space
        self.random_cosine: float = source.random_cosine
        self.question_cosine: float = source.question_cosine
        self._source = source
        self._queries = Lane.of("embed-query", QUERIES_WAITING_MAX)
        self._passages = Lane.of("embed-passage", PASSAGES_WAITING_MAX)
        self._lock = Lock()
        self._loading: Future[_Model] | None = None

    def warm(self) -> None:
        """Begin to load in the background; returns at once, and may be called again."""
        self._load()

    def embed_query(self, text: str, timeout_s: float) -> Vector:
        """The vector of a query; see `Embedder`."""
        return self._embed(self._queries, [self.space.query_prefix + text], timeout_s)[0]

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """One vector for each passage, in order; see `Embedder`."""
        return self._embed(self._passages, [self.space.passage_prefix + text for text in texts], timeout_s)

    def close(self) -> None:
        """Stop the workers; texts that wait are dropped."""
        for lane in (self._queries, self._passages):
            lane.close()

    def _load(self) -> Future[_Model]:
        with self._lock:
            if self._loading is None:
                try:
                    self._loading = self._passages.workers.submit(_loaded, self._source)
                except RuntimeError:  # what a pool that was shut down raises
                    raise EmbedderFailed(CLOSED) from None
            return self._loading

    def _embed(self, lane: Lane, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        deadline = time.monotonic() + timeout_s
        model = result(self._load(), deadline)
        waiting: list[Future[Vector]] = []
        try:
            waiting.extend(lane.submit(model.embed, text, deadline) for text in texts)
            return [result(future, deadline) for future in waiting]
        finally:
            for future in waiting:
                future.cancel()


def session(weights: str | bytes) -> Session:
    """A session of one thread over a file or a model in memory; the library has no types, so they are given here."""
    options = cast("_Options", onnxruntime.SessionOptions())  # pyright: ignore[reportUnknownMemberType]
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    made = onnxruntime.InferenceSession(weights, cast("None", options), providers=["CPUExecutionProvider"])
    return cast("Session", made)


def _from_onnx(source: Source) -> tuple[Tokens, Session]:
    tokenizer = Tokenizer.from_file(str(source.tokenizer))
    tokenizer.no_padding()
    tokenizer.enable_truncation(source.space.tokens_max)  # pyright: ignore[reportUnknownMemberType]
    return lambda text: tokenizer.encode(text).ids, session(str(source.weights))


def _from_packed(source: Source) -> tuple[Tokens, Session]:
    read = packed.read(source.weights)
    return UnigramTokenizer(read.pieces, source.space.tokens_max), session(graph(read))


def _loaded(source: Source) -> _Model:
    model = _Model(source)
    canaries.check(source.space, model.embed, canaries.known(source.space.model))
    return model
