"""An embedder and a language model whose real endpoint hangs: after a few times nobody waits for it."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from embedding_kit import embedding, model_at
from fakes import FailingEmbedder
from loom.models.breaker import FAILURES_MAX, REST_S, Blame, CircuitBreaker
from loom.models.caching import CachingEmbedder
from loom.models.failing_fast import FailFastEmbedder, FailFastWriter, embedder_breaker, writer_breaker
from loom.models.foreign import Family, Memory, opened
from loom.models.interface import EmbedderFailed, checked
from loom.models.library import LibraryModel, Runner
from loom.models.writer import WriterFailed
from loom.storage.indexes import Vector
from writer_kit import Received, Reply, ScriptedEndpoint, always, completion, refuses, says, scripted, writer_at

PATIENCE_S = 10.0
SHORT_S = 0.2
AT_ONCE_S = 0.1
SHAPE = {"type": "object"}


class Hanging:
    """An endpoint that answers, until `hangs` is set; `over` lets go of what it holds."""

    def __init__(self) -> None:
        self.hangs = Event()
        self.over = Event()

    def __call__(self, got: Received) -> Reply:
        reply = embedding(got) if "input" in got.body else says({"a": 1})
        return Reply(body=reply.body, until=self.over) if self.hangs.is_set() else reply


@pytest.fixture
def hanging() -> Hanging:
    return Hanging()


@pytest.fixture
def endpoint(hanging: Hanging) -> Iterator[ScriptedEndpoint]:
    with scripted(say=hanging) as made:
        yield made
        hanging.over.set()


@pytest.fixture
def questions() -> CircuitBreaker:
    return embedder_breaker("questions")


@pytest.fixture
def embedder(endpoint: ScriptedEndpoint, questions: CircuitBreaker) -> Iterator[FailFastEmbedder]:
    memory = Memory(lambda _: None, lambda _space, _facts: None)
    made = FailFastEmbedder(
        opened(model_at(endpoint.url), Family("openai", "scripted"), memory), questions, embedder_breaker("passages")
    )
    yield made
    made.close()


def failure(work: Callable[[], object]) -> EmbedderFailed:
    with pytest.raises(EmbedderFailed) as caught:
        work()
    return caught.value


def test_after_a_few_failures_in_a_row_nobody_waits_and_nothing_is_sent(
    embedder: FailFastEmbedder, endpoint: ScriptedEndpoint, hanging: Hanging
) -> None:
    embedder.embed_query("before", PATIENCE_S)
    hanging.hangs.set()
    asked = partial(embedder.embed_query, "now", SHORT_S)
    for _ in range(FAILURES_MAX):
        began_s = time.monotonic()
        assert failure(asked).rest_s == 0.0
        assert time.monotonic() - began_s >= SHORT_S / 2
    sent = len(endpoint.received)
    for _ in range(20):
        began_s = time.monotonic()
        assert 0.0 < failure(asked).rest_s <= REST_S
        assert time.monotonic() - began_s < AT_ONCE_S
    assert len(endpoint.received) == sent


def test_questions_and_passages_rest_apart(embedder: FailFastEmbedder, hanging: Hanging) -> None:
    embedder.embed_passages(["before"], PATIENCE_S)
    hanging.hangs.set()
    for _ in range(FAILURES_MAX):
        failure(partial(embedder.embed_query, "now", SHORT_S))
    hanging.hangs.clear()
    assert len(embedder.embed_passages(["still"], PATIENCE_S)) == 1
    assert failure(partial(embedder.embed_query, "now", SHORT_S)).rest_s > 0.0
    hanging.hangs.set()
    for _ in range(FAILURES_MAX):
        failure(partial(embedder.embed_passages, ["now"], SHORT_S))
    assert failure(partial(embedder.embed_passages, ["now"], PATIENCE_S)).rest_s > 0.0
    assert embedder.embed_passages([], PATIENCE_S) == []


def test_a_remembered_question_is_answered_while_it_rests(embedder: FailFastEmbedder, hanging: Hanging) -> None:
    cached = CachingEmbedder(embedder)
    known = cached.embed_query("before", PATIENCE_S)
    hanging.hangs.set()
    for _ in range(FAILURES_MAX + 1):
        failure(partial(cached.embed_query, "now", SHORT_S))
    assert cached.embed_query("before", SHORT_S) is known


def test_it_is_asked_again_when_the_rest_is_over(endpoint: ScriptedEndpoint, hanging: Hanging) -> None:
    now_s = [0.0]

    def blame(error: BaseException) -> Blame:
        assert isinstance(error, EmbedderFailed)
        return error.blame

    breaker = CircuitBreaker("it", blame, lambda: now_s[0])
    memory = Memory(lambda _: None, lambda _space, _facts: None)
    inner = opened(model_at(endpoint.url), Family("openai", "scripted"), memory)
    embedder = FailFastEmbedder(inner, breaker, embedder_breaker("passages"))
    hanging.hangs.set()
    for _ in range(FAILURES_MAX):
        failure(partial(embedder.embed_query, "now", SHORT_S))
    hanging.hangs.clear()
    assert failure(partial(embedder.embed_query, "now", SHORT_S)).rest_s > 0.0
    now_s[0] += REST_S
    assert checked(embedder.embed_query("now", PATIENCE_S), 48).shape == (48,)
    assert breaker.rest_s == 0.0
    embedder.close()


def test_a_text_that_it_does_not_take_is_not_its_failure(
    embedder: FailFastEmbedder, endpoint: ScriptedEndpoint, questions: CircuitBreaker
) -> None:
    embedder.embed_query("before", PATIENCE_S)
    endpoint.say = always(refuses(413))
    for _ in range(3 * FAILURES_MAX):
        assert "too long" in str(failure(partial(embedder.embed_query, "long", PATIENCE_S)))
    assert questions.rest_s == 0.0
    endpoint.say = always(refuses(401))
    for _ in range(FAILURES_MAX):
        failure(partial(embedder.embed_query, "x", PATIENCE_S))
    assert questions.rest_s > 0.0


class Full(FailingEmbedder):
    """Has no room for anybody."""

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        raise EmbedderFailed(f"no room for {len(texts)} in {timeout_s} s", blame=Blame.CALLERS)


def test_a_crowd_is_not_its_failure(questions: CircuitBreaker) -> None:
    embedder = FailFastEmbedder(Full(), questions, questions)
    for _ in range(3 * FAILURES_MAX):
        assert failure(partial(embedder.embed_query, "x", SHORT_S)).blame is Blame.CALLERS
    assert questions.rest_s == 0.0


def never(model: str, folder: Path) -> Runner:
    raise AssertionError(model, folder)


def test_a_closed_model_is_to_blame_for_nothing(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    for model in (LibraryModel("m", tmp_path, never), model_at(endpoint.url)):
        model.close()
        assert failure(partial(model.vectors, ["x"], SHORT_S, urgent=True)).blame is Blame.CALLERS


def test_a_language_model_that_hangs_is_not_waited_for(endpoint: ScriptedEndpoint, hanging: Hanging) -> None:
    breaker = writer_breaker()
    writer = FailFastWriter(writer_at(endpoint.url), breaker)
    assert writer.write("do", "text", SHAPE, PATIENCE_S) == {"a": 1}
    assert (writer.endpoint, writer.model) == (endpoint.url, "scripted")
    hanging.hangs.set()
    for _ in range(FAILURES_MAX):
        with pytest.raises(WriterFailed, match="in time"):
            writer.write("do", "text", SHAPE, SHORT_S)
    began_s = time.monotonic()
    with pytest.raises(WriterFailed, match="asked again in") as caught:
        writer.write("do", "text", SHAPE, PATIENCE_S)
    assert time.monotonic() - began_s < AT_ONCE_S
    assert caught.value.retryable
    assert 0.0 < caught.value.rest_s <= REST_S


def test_what_a_language_model_says_is_not_its_failure_and_a_wrong_key_is(endpoint: ScriptedEndpoint) -> None:
    breaker = writer_breaker()
    writer = FailFastWriter(writer_at(endpoint.url), breaker)
    for reply in (completion("no JSON"), completion("{}", refusal="no"), refuses(413)):
        endpoint.say = always(reply)
        for _ in range(FAILURES_MAX):
            with pytest.raises(WriterFailed):
                writer.write("do", "text", SHAPE, PATIENCE_S)
    assert breaker.rest_s == 0.0
    endpoint.say = always(refuses(401))
    for _ in range(FAILURES_MAX):
        with pytest.raises(WriterFailed, match="key"):
            writer.write("do", "text", SHAPE, PATIENCE_S)
    assert breaker.rest_s > 0.0
