"""An embedder and a language model whose real endpoint hangs: after a few times nobody waits for it."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from embedding_kit import answering, embedding, inputs, model_at
from fakes import FailingEmbedder, at_once, standing_s
from loom.models.breaker import FAILURES_MAX, PROBING_S, REST_S, Blame, CircuitBreaker
from loom.models.caching import CachingEmbedder
from loom.models.failing_fast import FailFastEmbedder, FailFastWriter, embedder_breaker, writer_breaker
from loom.models.foreign import Family, Memory, opened
from loom.models.interface import EmbedderFailed, checked
from loom.models.library import LibraryModel, Runner
from loom.models.writer import WriterFailed
from loom.storage.indexes import Vector
from writer_kit import Received, Reply, ScriptedEndpoint, always, completion, refuses, says, scripted, writer_at

PATIENCE_S = 60.0
SHORT_S = 0.2
REQUEST_S = 1.0
"""One request of the endpoint, and so a probe, takes so long at most."""

AT_ONCE_S = PATIENCE_S / 2
"""Who was told at once did not wait for as long as it would have waited."""

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
    return embedder_breaker("questions", standing_s, at_once)


@pytest.fixture
def embedder(endpoint: ScriptedEndpoint, questions: CircuitBreaker) -> Iterator[FailFastEmbedder]:
    memory = Memory(lambda _: None, lambda _space, _facts: None)
    made = FailFastEmbedder(
        opened(model_at(endpoint.url, timeout_s=REQUEST_S), Family("openai", "scripted"), memory),
        questions,
        embedder_breaker("passages", standing_s, at_once),
    )
    yield made
    made.close()


def failure(work: Callable[[], object]) -> EmbedderFailed:
    with pytest.raises(EmbedderFailed) as caught:
        work()
    return caught.value


@pytest.mark.slow
def test_after_a_few_failures_in_a_row_nobody_waits_and_nothing_is_sent(
    embedder: FailFastEmbedder, endpoint: ScriptedEndpoint, hanging: Hanging, questions: CircuitBreaker
) -> None:
    embedder.embed_query("before", PATIENCE_S)
    hanging.hangs.set()
    asked = partial(embedder.embed_query, "now", SHORT_S)
    for _ in range(FAILURES_MAX):
        began_s = time.monotonic()
        assert questions.rest_s == 0.0
        assert failure(asked).rest_s == 0.0
        assert time.monotonic() - began_s >= SHORT_S / 2
    sent = len(endpoint.received)
    for _ in range(20):
        began_s = time.monotonic()
        assert 0.0 < failure(partial(embedder.embed_query, "now", PATIENCE_S)).rest_s <= REST_S
        assert time.monotonic() - began_s < AT_ONCE_S
    assert len(endpoint.received) == sent


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_remembered_question_is_answered_while_it_rests(embedder: FailFastEmbedder, hanging: Hanging) -> None:
    cached = CachingEmbedder(embedder)
    known = cached.embed_query("before", PATIENCE_S)
    hanging.hangs.set()
    for _ in range(FAILURES_MAX + 1):
        failure(partial(cached.embed_query, "now", SHORT_S))
    assert cached.embed_query("before", SHORT_S) is known


@pytest.mark.slow
def test_it_is_asked_again_when_the_rest_is_over(endpoint: ScriptedEndpoint, hanging: Hanging) -> None:
    now_s = [0.0]

    def blame(error: BaseException) -> Blame:
        assert isinstance(error, EmbedderFailed)
        return error.blame

    breaker = CircuitBreaker("it", blame, lambda: now_s[0], start=at_once)
    memory = Memory(lambda _: None, lambda _space, _facts: None)
    inner = opened(model_at(endpoint.url, timeout_s=REQUEST_S), Family("openai", "scripted"), memory)
    embedder = FailFastEmbedder(inner, breaker, embedder_breaker("passages", standing_s))
    hanging.hangs.set()
    for _ in range(FAILURES_MAX):
        failure(partial(embedder.embed_query, "now", SHORT_S))
    hanging.hangs.clear()
    assert failure(partial(embedder.embed_query, "now", SHORT_S)).rest_s > 0.0
    now_s[0] += REST_S
    assert failure(partial(embedder.embed_query, "now", SHORT_S)).rest_s == PROBING_S
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


@pytest.mark.slow
def test_a_language_model_that_hangs_is_not_waited_for(endpoint: ScriptedEndpoint, hanging: Hanging) -> None:
    breaker = writer_breaker(standing_s, at_once)
    writer = FailFastWriter(writer_at(endpoint.url, timeout_s=REQUEST_S), breaker)
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


def tried(writer: FailFastWriter, text: str, times: int = FAILURES_MAX) -> None:
    for _ in range(times):
        with pytest.raises(WriterFailed):
            writer.write("do", text, SHAPE, PATIENCE_S)


def test_what_a_language_model_says_is_not_its_failure_and_a_wrong_key_is(endpoint: ScriptedEndpoint) -> None:
    breaker = writer_breaker(standing_s, at_once)
    writer = FailFastWriter(writer_at(endpoint.url), breaker)
    for reply in (completion("no JSON"), completion("{}", refusal="no"), refuses(413)):
        endpoint.say = always(reply)
        tried(writer, "text")
    assert breaker.rest_s == 0.0
    endpoint.say = always(refuses(401))
    for _ in range(FAILURES_MAX):
        with pytest.raises(WriterFailed, match="key"):
            writer.write("do", "text", SHAPE, PATIENCE_S)
    assert breaker.rest_s > 0.0


@pytest.mark.parametrize("to_a_word", [completion("", finish="length"), refuses(400, message="max_tokens is too low")])
@pytest.mark.parametrize("status", [401, 403, 404])
def test_one_orgs_text_does_not_keep_others_from_a_language_model(
    endpoint: ScriptedEndpoint, status: int, to_a_word: Reply
) -> None:
    """A guard before a model refuses some texts as it would a wrong key."""

    def say(got: Received) -> Reply:
        if got.body["max_tokens"] == 1:
            return to_a_word
        return refuses(status) if "poison" in got.user else says({"a": 1})

    endpoint.say = say
    breaker = writer_breaker(standing_s, at_once)
    writer = FailFastWriter(writer_at(endpoint.url), breaker)
    for times in range(1, 4):
        tried(writer, "poison")
        assert not breaker.is_open
        assert writer.write("do", "text", SHAPE, PATIENCE_S) == {"a": 1}
        probes = [got for got in endpoint.received if got.body["max_tokens"] == 1]
        assert len(probes) == times
        assert {"poison", "text"}.isdisjoint(str(probes[-1].body).split())


def test_a_text_that_is_not_sent_tells_nothing_of_a_language_model(endpoint: ScriptedEndpoint) -> None:
    breaker = writer_breaker(standing_s, at_once)
    writer = FailFastWriter(writer_at(endpoint.url), breaker)
    endpoint.say = always(refuses(401))
    too_long = "y" * 100_000
    tried(writer, "text", FAILURES_MAX - 1)
    tried(writer, too_long, 2 * FAILURES_MAX)
    assert not breaker.is_open
    tried(writer, "text", 1)
    assert breaker.is_open
    tried(writer, too_long, 1)
    assert breaker.is_open


POISON = refuses(500, message="failed to encode response: json: unsupported value: NaN", type="insufficient_quota")
"""As ordinary texts make an endpoint fail; of a kind that is not asked again, so that the test takes no time."""


def poisoned(got: Received) -> Reply:
    return POISON if any("poison" in text for text in inputs(got)) else embedding(got)


def another(got: Received) -> Reply:
    """Another model than before."""
    return answering([[1.0, *[0.0] * 47] for _ in inputs(got)])


@pytest.mark.slow
def test_one_callers_text_does_not_keep_others_from_the_embedder(
    embedder: FailFastEmbedder, endpoint: ScriptedEndpoint, questions: CircuitBreaker
) -> None:
    endpoint.say = poisoned
    for _ in range(3 * FAILURES_MAX):
        assert failure(partial(embedder.embed_query, "poison", PATIENCE_S)).blame is Blame.SERVICE
        failure(partial(embedder.embed_passages, ["poison"], PATIENCE_S))
    assert not questions.is_open
    assert checked(embedder.embed_query("good", PATIENCE_S), 48).shape == (48,)
    assert len(embedder.embed_passages(["good"], PATIENCE_S)) == 1
    endpoint.say = always(POISON)
    for _ in range(FAILURES_MAX):
        failure(partial(embedder.embed_query, "good", PATIENCE_S))
    assert questions.is_open


def test_a_model_that_was_changed_behind_its_name_is_left_alone(
    embedder: FailFastEmbedder, endpoint: ScriptedEndpoint, questions: CircuitBreaker
) -> None:
    endpoint.say = another
    for _ in range(FAILURES_MAX):
        assert "another model" in str(failure(partial(embedder.embed_query, "x", PATIENCE_S)))
    assert questions.is_open
