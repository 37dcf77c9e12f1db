"""Crowds before healthy models, models that load and models that are stuck: which of them are left alone."""

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier, Event

import numpy as np
import pytest
from numpy.typing import NDArray

from embedding_kit import INNER, embedding, model_at
from fakes import at_once, standing_s
from loom.models.breaker import FAILURES_MAX, Blame, CircuitBreaker
from loom.models.facts import UNRELATED, measured
from loom.models.failing_fast import FailFastEmbedder, embedder_breaker
from loom.models.foreign import Family, ForeignEmbedder, Memory, opened
from loom.models.interface import EmbedderFailed, checked
from loom.models.library import LibraryModel, Runner
from loom.models.writer import WriterFailed
from writer_kit import Received, Reply, says, scripted, writer_at

PATIENCE_S = 60.0
SHORT_S = 0.2
SHAPE = {"type": "object"}


@pytest.fixture
def questions() -> CircuitBreaker:
    return embedder_breaker("questions", standing_s, at_once)


def failure(work: Callable[[], object]) -> EmbedderFailed:
    with pytest.raises(EmbedderFailed) as caught:
        work()
    return caught.value


@pytest.mark.slow
def test_a_crowd_before_a_healthy_slow_language_model_tells_nothing_of_it() -> None:
    """Four turns, 0.7 s a call and a second's time: the first four are answered, and the others too late."""

    def say(got: Received) -> Reply:
        Event().wait(0.7)
        return says({"a": len(got.user)})

    late = list[WriterFailed]()

    def one(_: int) -> None:
        try:
            writer.write("do", "text", SHAPE, 1.0)
        except WriterFailed as failed:
            late.append(failed)

    with scripted(say=say) as endpoint:
        writer = writer_at(endpoint.url)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(8)))
    assert len(late) >= FAILURES_MAX
    assert all(failed.tells_nothing for failed in late)


def together(count: int, work: Callable[[], object]) -> int:
    """Let so many do this at once; how many of them failed."""
    gate = Barrier(count)

    def one(_: int) -> bool:
        gate.wait(PATIENCE_S)
        try:
            work()
        except EmbedderFailed:
            return True
        return False

    with ThreadPoolExecutor(count) as pool:
        return sum(pool.map(one, range(count)))


@pytest.mark.slow
def test_a_crowd_before_a_healthy_slow_endpoint_leaves_it_closed() -> None:
    """Four places, 0.7 s a call and a second's time: the first four are answered, and the others too late."""

    def say(got: Received) -> Reply:
        hold.wait(0.7)
        return embedding(got)

    hold = Event()
    hold.set()
    with scripted(say=say) as endpoint:
        memory = Memory(lambda _: None, lambda _space, _facts: None)
        passages = embedder_breaker("passages", standing_s)
        inner = opened(model_at(endpoint.url), Family("openai", "scripted"), memory)
        embedder = FailFastEmbedder(inner, embedder_breaker("questions", standing_s), passages)
        embedder.embed_passages(["before"], PATIENCE_S)
        hold.clear()
        assert together(12, partial(embedder.embed_passages, ["x"], 1.0)) >= FAILURES_MAX
        assert len(embedder.embed_passages(["good"], PATIENCE_S)) == 1
        assert not passages.is_open
        late = Counter[Blame]()

        def blamed() -> None:
            try:
                inner.embed_passages(["x"], 1.0)
            except EmbedderFailed as failed:
                late[failed.blame] += 1

        together(12, blamed)
        assert late[Blame.CALLERS] >= FAILURES_MAX
        assert late[Blame.SERVICE] == 0
        embedder.close()


class SlowRunner:
    """Takes a tenth of a second for each text."""

    def embed(self, documents: list[str], batch_size: int) -> Iterable[NDArray[np.float32]]:
        Event().wait(0.1)
        yield from INNER.embed_passages(documents, float(batch_size))


def of_library(model: LibraryModel, questions: CircuitBreaker) -> FailFastEmbedder:
    facts = measured(INNER.embed_passages(UNRELATED, 1.0), [INNER.embed_query("q", 1.0)])
    inner = ForeignEmbedder(model, Family("fastembed", "m").space(48), facts)
    return FailFastEmbedder(inner, questions, embedder_breaker("passages", standing_s))


@pytest.mark.slow
def test_a_crowd_before_a_healthy_library_leaves_it_closed(tmp_path: Path) -> None:
    """40 questions by two threads, 0.1 s each and a second's time: half of them are never begun."""
    questions = embedder_breaker("questions", standing_s)
    embedder = of_library(LibraryModel("m", tmp_path, lambda _name, _folder: SlowRunner()), questions)
    embedder.embed_query("before", PATIENCE_S)
    assert together(40, partial(embedder.embed_query, "x", 1.0)) >= FAILURES_MAX
    assert checked(embedder.embed_query("good", PATIENCE_S), 48).shape == (48,)
    assert not questions.is_open
    embedder.close()


def test_a_model_that_is_loading_is_not_failing(tmp_path: Path, questions: CircuitBreaker) -> None:
    loaded = Event()

    def load(name: str, folder: Path) -> Runner:
        assert loaded.wait(PATIENCE_S), (name, folder)
        return SlowRunner()

    embedder = of_library(LibraryModel("m", tmp_path, load), questions)
    embedder.warm()
    for _ in range(2 * FAILURES_MAX):
        assert failure(partial(embedder.embed_query, "x", 0.01)).blame is Blame.CALLERS
    loaded.set()
    assert checked(embedder.embed_query("good", PATIENCE_S), 48).shape == (48,)
    assert not questions.is_open
    embedder.close()


@pytest.mark.slow
def test_a_library_that_hangs_is_left_alone(tmp_path: Path, questions: CircuitBreaker) -> None:
    hold, model = Event(), SlowRunner()
    hold.set()

    class Stuck:
        def embed(self, documents: list[str], batch_size: int) -> Iterable[NDArray[np.float32]]:
            hold.wait(PATIENCE_S)
            return model.embed(documents, batch_size)

    embedder = of_library(LibraryModel("m", tmp_path, lambda _name, _folder: Stuck()), questions)
    embedder.embed_query("before", PATIENCE_S)
    hold.clear()
    together(FAILURES_MAX, partial(embedder.embed_query, "x", SHORT_S))
    assert questions.is_open  # though of those calls one waited behind the others
    hold.set()
    embedder.close()
