"""A cross-encoder: reads a question and a text together, and says how well the one answers the other.

It is far better than two vectors at telling an answer from what is merely near, and a
thousand times dearer, so it reads few texts, for as long as it is given and no longer.
"""

import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Final, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from tokenizers import Tokenizer

from loom.models.onnx import Session, session
from loom.models.sources import SourceUnusable, file_sha256

DEFAULT_RERANKER: Final = "ms-marco-minilm-l12-en"
WORKERS: Final = 2
WAITING_MAX: Final = 64
"""Texts that wait for a worker, over all questions; a question that finds no place goes on without."""

CHARACTERS_MAX: Final = 2_000


class Reranker(Protocol):
    """Says how well texts answer a question. Safe to call from several threads."""

    def warm(self) -> None:
        """Begin to load in the background; returns at once, and may be called again."""
        ...

    def scores(self, question: str, texts: Sequence[str], timeout_s: float) -> list[float]:
        """A score for each of the first texts, in order; higher is better, any number.

        Returns within `timeout_s` with as many as were done by then, none while the model is loading.
        """
        ...

    def close(self) -> None:
        """Stop the workers; later calls give no scores."""
        ...


class _Row(BaseModel):
    """One row of `rerankers.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    package: str
    version: str
    folder: str
    weights: str
    tokenizer: str
    weights_sha256: str
    tokenizer_sha256: str
    licence: str
    tokens_max: int = Field(gt=0)


@dataclass(frozen=True, slots=True)
class RerankerSource:
    """A reranker's files, and what they must hash to."""

    weights: Path
    tokenizer: Path
    weights_sha256: str
    tokenizer_sha256: str
    tokens_max: int

    def verify(self) -> None:
        """Read both files and compare their hashes.

        Raises:
            SourceUnusable: a file is missing or differs.
        """
        for path, expected in ((self.weights, self.weights_sha256), (self.tokenizer, self.tokenizer_sha256)):
            if file_sha256(path) != expected:
                raise SourceUnusable(f"{path.name} of the reranker is not the file that is expected")


def installed_reranker(name: str = DEFAULT_RERANKER) -> RerankerSource:
    """The source of a reranker whose files lie in an installed package; the package's code is not run.

    Raises:
        SourceUnusable: the reranker is unknown or its package is not installed.
    """
    text = resources.files("loom.models").joinpath("rerankers.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text).get(name)
    if found is None:
        raise SourceUnusable(f"no reranker is named {name!r}")
    row = _Row.model_validate(found)
    spec = find_spec(row.package)
    if spec is None or not spec.submodule_search_locations:
        raise SourceUnusable(f"the reranker {name} comes with the package {row.package}, which is not installed")
    folder = Path(spec.submodule_search_locations[0]) / row.folder
    return RerankerSource(
        folder / row.weights, folder / row.tokenizer, row.weights_sha256, row.tokenizer_sha256, row.tokens_max
    )


class _Model:
    """A loaded cross-encoder. Safe from several threads."""

    def __init__(self, source: RerankerSource) -> None:
        source.verify()
        self._tokenizer = Tokenizer.from_file(str(source.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(source.tokens_max)  # pyright: ignore[reportUnknownMemberType]
        self._session: Session = session(str(source.weights))
        self._inputs = frozenset(one.name for one in self._session.get_inputs())

    def score(self, question: str, text: str) -> float:
        """How well `text` answers `question`; one pair alone, so that it depends on nothing else."""
        encoding = self._tokenizer.encode(_readable(question), _readable(text))
        ids = np.array([encoding.ids], dtype=np.int64)
        types = np.array([encoding.type_ids], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
        logits = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        return float(logits.ravel()[0])


class OnnxReranker:
    """A `Reranker` over a source. Loads on `warm` or on the first call, once, in the background."""

    def __init__(self, source: RerankerSource) -> None:
        self._source = source
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="rerank")
        self._places = BoundedSemaphore(WAITING_MAX)
        self._lock = Lock()
        self._loading: Future[_Model] | None = None

    def warm(self) -> None:
        """Begin to load in the background; see `Reranker`."""
        with self._lock:
            if self._loading is None:
                try:
                    self._loading = self._workers.submit(_Model, self._source)
                except RuntimeError:  # what a pool that was shut down raises
                    return

    def scores(self, question: str, texts: Sequence[str], timeout_s: float) -> list[float]:
        """Scores of the first texts; see `Reranker`."""
        deadline = time.monotonic() + timeout_s
        self.warm()
        loading = self._loading
        if loading is None or not loading.done() or loading.exception() is not None:
            return []
        model = loading.result()
        waiting: list[Future[float]] = []
        for text in texts:
            future = self._submit(model, question, text)
            if future is None:
                break
            waiting.append(future)
        made: list[float] = []
        for future in waiting:
            score = _score_by(future, deadline)
            if score is None:
                break
            made.append(score)
        for future in waiting:
            future.cancel()
        return made

    def close(self) -> None:
        """Stop the workers."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _submit(self, model: _Model, question: str, text: str) -> Future[float] | None:
        if not self._places.acquire(blocking=False):
            return None
        try:
            future = self._workers.submit(model.score, question, text)
        except RuntimeError:
            self._places.release()
            return None
        future.add_done_callback(lambda _: self._places.release())
        return future


def _readable(text: str) -> str:
    return text[:CHARACTERS_MAX].encode("utf-8", "replace").decode()


def _score_by(future: Future[float], deadline: float) -> float | None:
    """What is done by the deadline; None for what is late or failed."""
    try:
        error = future.exception(timeout=max(0.0, deadline - time.monotonic()))
    except (TimeoutError, CancelledError):
        return None
    return None if error is not None else future.result()
