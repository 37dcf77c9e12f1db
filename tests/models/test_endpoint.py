"""Embeddings from a real HTTP server that says what the test wrote, and misbehaves as endpoints do."""

import json
import logging
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import numpy as np
import pytest

from embedding_kit import INNER, answering, embedding, holding, inputs, model_at
from loom.models.embeddings_wire import BATCH_LENGTH_MAX, BATCH_TEXTS_MAX, TEXT_LENGTH_MAX
from loom.models.endpoint import CUT_TO_MIN, EndpointModel
from loom.models.interface import EmbedderFailed
from loom.storage.indexes import Vector
from running import wait_until
from writer_kit import HOLD_TIMEOUT_S, KEY, Received, Reply, ScriptedEndpoint, always, refuses, scripted

PATIENCE_S = 60.0
SECRET_TEXT = "the-secret-memory"


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with scripted(say=embedding) as made:
        yield made


@pytest.fixture
def model(endpoint: ScriptedEndpoint) -> Iterator[EndpointModel]:
    made = model_at(endpoint.url)
    yield made
    made.close()


def made(model: EndpointModel, *texts: str, timeout_s: float = PATIENCE_S, urgent: bool = False) -> list[Vector]:
    return model.vectors(texts, timeout_s, urgent=urgent)


def failed(model: EndpointModel, timeout_s: float = PATIENCE_S) -> str:
    with pytest.raises(EmbedderFailed) as caught:
        made(model, SECRET_TEXT, timeout_s=timeout_s)
    assert KEY not in str(caught.value)
    assert SECRET_TEXT not in str(caught.value)
    return str(caught.value)


def test_what_is_sent_and_what_comes_of_it(endpoint: ScriptedEndpoint, model: EndpointModel) -> None:
    (vector,) = made(model, "green tea")
    (got,) = endpoint.received
    assert got.path == "/v1/embeddings"
    assert got.headers["authorization"] == f"Bearer {KEY}"
    assert got.body == {"model": "scripted", "input": ["green tea"]}
    assert vector.dtype == np.float32
    assert np.allclose(vector, INNER.embed_passages(["green tea"], 1.0)[0], atol=1e-6)
    assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-5)
    assert made(model) == []
    assert len(endpoint.received) == 1


def test_texts_go_in_batches_by_count_and_by_characters_and_come_back_in_order(
    endpoint: ScriptedEndpoint, model: EndpointModel
) -> None:
    texts = [f"word{number} " * (1 + number % 7) for number in range(3 * BATCH_TEXTS_MAX + 5)]
    long = [f"long{number} " * (BATCH_LENGTH_MAX // 20) for number in range(4)]
    vectors = made(model, *texts, *long)
    expected = INNER.embed_passages([*texts, *(text[:TEXT_LENGTH_MAX] for text in long)], 1.0)
    assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(vectors, expected, strict=True))
    for got in endpoint.received:
        sent = inputs(got)
        assert len(sent) <= BATCH_TEXTS_MAX
        assert len(sent) == 1 or sum(map(len, sent)) <= BATCH_LENGTH_MAX
    assert len(endpoint.received) < 10


def test_one_connection_serves_many_calls(endpoint: ScriptedEndpoint, model: EndpointModel) -> None:
    started_s = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(made, model, f"q{number}", urgent=True) for number in range(60)]
        vectors = [one.result(PATIENCE_S)[0] for one in asked]
    assert time.monotonic() - started_s < PATIENCE_S
    expected = INNER.embed_passages([f"q{number}" for number in range(60)], 1.0)
    assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(vectors, expected, strict=True))
    assert len(endpoint.received) == 60


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_asked_again(endpoint: ScriptedEndpoint, model: EndpointModel, status: int) -> None:
    endpoint.script += [refuses(status), refuses(status, retry_after="0")]
    assert len(made(model, "green tea")) == 1
    assert len(endpoint.received) == 3


def test_retry_after_is_heeded_and_never_beyond_the_time(endpoint: ScriptedEndpoint, model: EndpointModel) -> None:
    endpoint.script.append(refuses(429, retry_after="1"))
    started_s = time.monotonic()
    made(model, "green tea")
    assert time.monotonic() - started_s >= 1.0
    endpoint.script.append(refuses(429, retry_after="3600"))
    started_s = time.monotonic()
    assert "HTTP 429" in failed(model)
    assert time.monotonic() - started_s < PATIENCE_S / 2


def test_it_is_asked_a_bounded_number_of_times(endpoint: ScriptedEndpoint, model: EndpointModel) -> None:
    endpoint.say = always(refuses(503, retry_after="0"))
    assert "HTTP 503" in failed(model)
    assert len(endpoint.received) == 4


@pytest.mark.parametrize(
    ("reply", "told", "times"),
    [
        (refuses(401), "refuses the key", 1),
        (refuses(404), "LOOM_EMBEDDER_MODEL", 1),
        (refuses(429, code="insufficient_quota"), "quota", 1),
        (Reply(302, b"", {"Location": "http://127.0.0.1:9/"}), "sends on to another address", 1),
        (refuses(418), "HTTP 418", 1),
    ],
)
def test_what_will_not_pass_is_not_asked_again(
    endpoint: ScriptedEndpoint, model: EndpointModel, reply: Reply, told: str, times: int
) -> None:
    endpoint.say = always(reply)
    assert told in failed(model)
    assert len(endpoint.received) == times


MALFORMED = {
    "not JSON": b"<html>",
    "no object": b"[1]",
    "no data": b"{}",
    "data of another kind": b'{"data": {"embedding": [1]}}',
    "too few": b'{"data": []}',
    "too many": b'{"data": [{"embedding": [1, 0]}, {"embedding": [1, 0]}]}',
    "no embedding": b'{"data": [{"index": 0}]}',
    "an empty one": b'{"data": [{"embedding": []}]}',
    "text in it": b'{"data": [{"embedding": ["1", "0"]}]}',
    "a truth in it": b'{"data": [{"embedding": [true, 0]}]}',
    "null in it": b'{"data": [{"embedding": [null, 1]}]}',
    "base64": b'{"data": [{"embedding": "AAAA"}]}',
    "zero": b'{"data": [{"embedding": [0, 0]}]}',
    "not finite": b'{"data": [{"embedding": [NaN, 1]}]}',
    "infinite": b'{"data": [{"embedding": [1e999, 1]}]}',
    "a huge integer": b'{"data": [{"embedding": [' + b"9" * 400 + b", 1]}]}",
    "numbered otherwise": b'{"data": [{"index": 5, "embedding": [1, 0]}]}',
    "nested too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_answer_is_a_failure(endpoint: ScriptedEndpoint, model: EndpointModel, body: bytes) -> None:
    endpoint.script.append(Reply(body=body))
    failed(model)
    assert len(made(model, "green tea")) == 1


def test_vectors_are_placed_by_their_numbers(endpoint: ScriptedEndpoint, model: EndpointModel) -> None:
    data = [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]
    endpoint.script.append(Reply(body=json.dumps({"data": data}).encode()))
    first, second = made(model, "a", "b")
    assert (first.tolist(), second.tolist()) == ([1, 0], [0, 1])
    data[0]["index"] = 0
    endpoint.script.append(Reply(body=json.dumps({"data": data}).encode()))
    with pytest.raises(EmbedderFailed, match="numbered"):
        made(model, "a", "b")


def test_vectors_of_several_lengths_or_another_than_asked_are_a_failure(
    endpoint: ScriptedEndpoint, model: EndpointModel
) -> None:
    endpoint.script.append(answering([[1, 0], [1, 0, 0]]))
    with pytest.raises(EmbedderFailed, match="3 numbers, and 2"):
        made(model, "a", "b")
    asking = model_at(endpoint.url, dimension=32)
    assert "48 numbers, and 32 are expected" in failed(asking)
    assert endpoint.received[-1].body["dimensions"] == 32
    asking.close()


def test_an_endpoint_that_knows_no_dimensions_is_asked_without(endpoint: ScriptedEndpoint) -> None:
    def say(got: Received) -> Reply:
        return refuses(400, param="dimensions") if "dimensions" in got.body else embedding(got)

    endpoint.say = say
    asking = model_at(endpoint.url, dimension=48)
    assert len(made(asking, "a")) == len(made(asking, "b")) == 1
    # The text, the short one with and without, the text again; and from then on without.
    assert ["dimensions" in got.body for got in endpoint.received] == [True, True, False, False, False]
    asking.close()


def test_a_batch_that_is_too_large_is_sent_in_halves(endpoint: ScriptedEndpoint, model: EndpointModel) -> None:
    endpoint.say = holding(8, 10_000)
    texts = [f"word{number}" for number in range(30)]
    vectors = made(model, *texts)
    expected = INNER.embed_passages(texts, 1.0)
    assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(vectors, expected, strict=True))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8192 tokens"),
        (413, "no"),
        (500, "input is too large to process. increase the physical batch size"),
    ],
)
def test_a_text_that_is_too_long_alone_is_cut(
    endpoint: ScriptedEndpoint, model: EndpointModel, status: int, message: str
) -> None:
    endpoint.say = holding(8, 1_000, status, message)
    long = "many words " * 400
    (vector, short) = made(model, long, "short")
    assert np.allclose(short, INNER.embed_passages(["short"], 1.0)[0], atol=1e-5)
    kept = next(inputs(got)[0] for got in endpoint.received if len(inputs(got)) == 1 and len(inputs(got)[0]) <= 1_000)
    assert long.startswith(kept)
    assert len(kept) > 500
    assert np.allclose(vector, INNER.embed_passages([kept], 1.0)[0], atol=1e-5)
    endpoint.say = holding(8, CUT_TO_MIN // 2, 413)
    with pytest.raises(EmbedderFailed, match="too long"):
        made(model, long)


def test_it_is_given_up_when_the_time_is_over(endpoint: ScriptedEndpoint, model: EndpointModel) -> None:
    hold = Event()
    endpoint.script.append(Reply(body=b"{}", until=hold))
    started_s = time.monotonic()
    assert "in time" in failed(model, timeout_s=0.3)
    assert time.monotonic() - started_s < HOLD_TIMEOUT_S / 2
    hold.set()
    endpoint.script.append(Reply(body=b"x" * 1_000, drop_s=0.05))
    assert "in time" in failed(model, timeout_s=0.3)
    assert len(made(model, "green tea")) == 1


def test_one_request_has_its_own_time_within_the_calls(endpoint: ScriptedEndpoint) -> None:
    hold = Event()
    endpoint.script.append(Reply(body=b"{}", until=hold))
    quick = model_at(endpoint.url, timeout_s=0.3)
    assert "in time" in failed(quick)
    hold.set()
    quick.close()


def test_questions_do_not_wait_behind_bulks(endpoint: ScriptedEndpoint, model: EndpointModel) -> None:
    hold = Event()

    def say(got: Received) -> Reply:
        reply = embedding(got)
        return Reply(body=reply.body, until=hold) if inputs(got) == ["bulk"] else reply

    endpoint.say = say
    with ThreadPoolExecutor(8) as pool:
        bulks = [pool.submit(made, model, "bulk") for _ in range(6)]
        assert len(made(model, "a question", urgent=True)) == 1
        hold.set()
        assert all(len(bulk.result(PATIENCE_S)) == 1 for bulk in bulks)


def test_an_endpoint_that_is_not_there_is_a_failure() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # taken, so that nobody else listens there
        nowhere = model_at(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        nowhere._exchange = replace(nowhere._exchange, backoff_s=0.01)
        assert "cannot be reached" in failed(nowhere)
        nowhere.close()


def test_an_answer_that_is_too_large_is_not_read_to_its_end(endpoint: ScriptedEndpoint, model: EndpointModel) -> None:
    endpoint.script.append(Reply(body=b" " * (33 * 1024 * 1024)))
    assert "too large" in failed(model)


def test_unreadable_and_empty_texts_are_sent_as_what_json_holds(
    endpoint: ScriptedEndpoint, model: EndpointModel
) -> None:
    assert len(made(model, "\ud800 x", "")) == 2
    assert inputs(endpoint.received[0]) == ["? x", " "]


def test_a_closed_model_fails(endpoint: ScriptedEndpoint) -> None:
    closed = model_at(endpoint.url)
    made(closed, "green tea")
    closed.close()
    assert "closed" in failed(closed)
    never = model_at(endpoint.url)
    never.close()
    assert "closed" in failed(never)


def test_a_call_that_is_under_way_ends_when_the_model_is_closed(endpoint: ScriptedEndpoint) -> None:
    hold = Event()
    endpoint.script.append(Reply(body=b"{}", until=hold))
    closing = model_at(endpoint.url)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(closing.vectors, ["green tea"], PATIENCE_S, urgent=False)
        wait_until(lambda: bool(endpoint.received), PATIENCE_S)
        started_s = time.monotonic()
        closing.close()
        with pytest.raises(EmbedderFailed):
            call.result(PATIENCE_S)
        assert time.monotonic() - started_s < HOLD_TIMEOUT_S / 2
        hold.set()


def test_neither_key_nor_text_is_logged(
    endpoint: ScriptedEndpoint, model: EndpointModel, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.script += [refuses(429), refuses(401)]
    with caplog.at_level(logging.DEBUG, "loom"):
        failed(model)
    assert SECRET_TEXT not in caplog.text
    assert KEY not in caplog.text
    assert KEY not in repr(model._endpoint)
