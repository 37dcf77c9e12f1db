"""An embedding model that the library fastembed runs on this machine. The library is an extra.

It fetches a model's files when it first loads it, into a folder of Loom's, and needs no network after.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from loom.models.breaker import Blame
from loom.models.foreign import Family
from loom.models.interface import EmbedderFailed, unit
from loom.models.lanes import CLOSED, PASSAGES_WAITING_MAX, QUERIES_WAITING_MAX, Lane, result
from loom.models.sources import SourceUnusable
from loom.storage.indexes import Vector

FASTEMBED: Final = "fastembed"
NOT_INSTALLED: Final = "The library fastembed is not installed. In Loom's folder: pip install '.[fastembed]'"
TEXT_CHARACTERS_MAX: Final = 16_384
"""More than the tokens of nearly every such model hold; it bounds the tokeniser's time."""
PROBES_WAITING_MAX: Final = 16

INSTALLED: Final = find_spec(FASTEMBED) is not None

E5: Final = ("query: ", "passage: ")
"""What models of the E5 family want before their texts."""


class Runner(Protocol):
    """The part of fastembed's `TextEmbedding` that is used here."""

    def embed(self, documents: list[str], batch_size: int) -> Iterable[NDArray[np.float32]]:
        """A vector for each text."""
        ...


try:
    from fastembed import TextEmbedding  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
except ImportError as _missing:
    if not (_missing.name or "").startswith("fastembed"):
        raise

    def load(model: str, folder: Path) -> Runner:
        """Say what is missing."""
        del model, folder
        raise SourceUnusable(NOT_INSTALLED)

else:

    def load(model: str, folder: Path) -> Runner:
        """The model, its files fetched into `folder` where they are not there yet; ValueError for an unknown name."""
        return TextEmbedding(  # pyright: ignore[reportUnknownVariableType]
            model_name=model, cache_dir=str(folder), threads=1
        )


def prefixes_of(model: str) -> tuple[str, str]:
    """What a model wants before a query and before a passage, as far as its name tells."""
    return E5 if "e5-" in model.lower() else ("", "")


def family_of(model: str, query_prefix: str, passage_prefix: str, dimension: int) -> Family:
    """The family of a model that fastembed runs; prefixes that are not given are those of the model's kind."""
    usual = prefixes_of(model)
    return Family(FASTEMBED, model, query_prefix or usual[0], passage_prefix or usual[1], dimension)


class LibraryModel:
    """A `foreign.Model` that fastembed runs. Loads on `warm` or on the first call, once, in the background.

    Each text runs alone, as with the built-in model, so that its vector does not depend on others; questions have
    threads of their own.
    """

    def __init__(self, model: str, folder: Path, loading: Callable[[str, Path], Runner] = load) -> None:
        """Nothing is loaded yet.

        Raises:
            SourceUnusable: the library is not installed.
        """
        if loading is load and not INSTALLED:
            raise SourceUnusable(NOT_INSTALLED)
        self._model = model
        self._folder = folder
        self._load_with = loading
        self._queries = Lane.of("embed-query", QUERIES_WAITING_MAX)
        self._passages = Lane.of("embed-passage", PASSAGES_WAITING_MAX)
        self._probes = Lane.of("embed-probe", PROBES_WAITING_MAX)
        self._lock = Lock()
        self._loading: Future[Callable[[str], Vector]] | None = None

    def warm(self) -> None:
        """Begin to load in the background."""
        self._load()

    def vectors(self, texts: Sequence[str], timeout_s: float, *, urgent: bool) -> list[Vector]:
        """One vector for each text; see `foreign.Model`."""
        return self._embed(self._queries if urgent else self._passages, texts, timeout_s)

    def probe(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """As `vectors`, by threads of its own; see `foreign.Model`."""
        return self._embed(self._probes, texts, timeout_s)

    def _embed(self, lane: Lane, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        deadline = time.monotonic() + timeout_s
        embed = result(self._load(), deadline, late=Blame.CALLERS)  # who comes too early says nothing of the model
        waiting: list[Future[Vector]] = []
        try:
            waiting.extend(lane.submit(embed, text, deadline) for text in texts)
            return [result(future, deadline) for future in waiting]
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """Stop the threads; texts that wait are dropped."""
        for lane in (self._queries, self._passages, self._probes):
            lane.close()

    def _load(self) -> Future[Callable[[str], Vector]]:
        with self._lock:
            if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
                try:
                    self._loading = self._passages.workers.submit(self._loaded)
                except RuntimeError:  # what a pool that was shut down raises
                    raise EmbedderFailed(CLOSED, blame=Blame.CALLERS) from None
            return self._loading

    def _loaded(self) -> Callable[[str], Vector]:
        try:
            runner = self._load_with(self._model, self._folder)
        except ValueError:
            raise EmbedderFailed(f"fastembed knows no model {self._model}, or cannot have its files") from None

        def embed(text: str) -> Vector:
            readable = text[:TEXT_CHARACTERS_MAX].encode("utf-8", "replace").decode()
            (vector,) = runner.embed([readable], batch_size=1)
            return unit(np.asarray(vector, dtype=np.float32))

        return embed
