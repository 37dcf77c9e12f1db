"""The writer against a real HTTP server that says what the test wrote, and misbehaves as endpoints do."""

import gzip
import json
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from loom.canonical import Json
from loom.models.openai_style import CALLS_AT_ONCE_MAX, RESPONSE_BYTES_MAX, OpenAiStyle
from loom.models.writer import Writer, WriterFailed
from writer_kit import (
    HOLD_TIMEOUT_S,
    KEY,
    Received,
    Reply,
    ScriptedEndpoint,
    always,
    completion,
    refuses,
    says,
    scripted,
    writer_at,
)

SHAPE: dict[str, Json] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}},
    "required": ["name"],
}
SECRET_TEXT = "the-secret-memory"
ADA = {"name": "Ada"}
PATIENCE_S = 60.0


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with scripted() as made:
        yield made


@pytest.fixture
def writer(endpoint: ScriptedEndpoint) -> OpenAiStyle:
    return writer_at(endpoint.url)


def asked(writer: Writer, timeout_s: float = PATIENCE_S) -> Json:
    return writer.write("Do it.", SECRET_TEXT, SHAPE, timeout_s)


def failed(writer: Writer, timeout_s: float = PATIENCE_S) -> WriterFailed:
    with pytest.raises(WriterFailed) as caught:
        asked(writer, timeout_s)
    assert KEY not in str(caught.value)
    assert SECRET_TEXT not in str(caught.value)
    return caught.value


def formats(endpoint: ScriptedEndpoint) -> list[str]:
    return [one.body.get("response_format", {"type": "text"})["type"] for one in endpoint.received]


def test_what_is_sent(endpoint: ScriptedEndpoint, writer: OpenAiStyle) -> None:
    endpoint.script.append(says(ADA))
    assert asked(writer) == ADA
    (got,) = endpoint.received
    assert got.path == "/v1/chat/completions"
    assert got.headers["authorization"] == f"Bearer {KEY}"
    assert (got.system, got.user) == ("Do it.", SECRET_TEXT)
    assert (got.body["temperature"], got.body["max_tokens"], got.body["model"]) == (0, 1_000, "scripted")
    told = got.body["response_format"]["json_schema"]
    assert told["strict"] is True
    assert told["schema"]["additionalProperties"] is False
    assert "minLength" not in json.dumps(told)


def test_without_a_key_none_is_sent(endpoint: ScriptedEndpoint) -> None:
    endpoint.script.append(says(ADA))
    asked(writer_at(endpoint.url, api_key=type(writer_at("http://x")._endpoint.api_key)("")))
    assert "authorization" not in endpoint.received[0].headers


@pytest.mark.parametrize("status", [400, 422])
def test_formats_that_are_refused_are_not_tried_again(
    endpoint: ScriptedEndpoint, writer: OpenAiStyle, status: int
) -> None:
    endpoint.script += [refuses(status), refuses(status), completion(f"Here it is:\n```json\n{json.dumps(ADA)}\n```")]
    endpoint.say = always(says(ADA))
    assert asked(writer) == ADA
    assert formats(endpoint) == ["json_schema", "json_object", "text"]
    assert '"additionalProperties":false' in endpoint.received[2].system
    assert asked(writer) == ADA
    assert formats(endpoint)[3:] == ["text"]


def test_a_refusal_that_no_format_mends_is_not_remembered(endpoint: ScriptedEndpoint, writer: OpenAiStyle) -> None:
    endpoint.script += [refuses(400), refuses(400), refuses(400)]
    assert not failed(writer).retryable
    endpoint.script.append(says(ADA))
    assert asked(writer) == ADA
    assert formats(endpoint)[-1] == "json_schema"


def test_names_and_temperatures_that_newer_models_refuse(endpoint: ScriptedEndpoint, writer: OpenAiStyle) -> None:
    endpoint.script += [refuses(400, param="max_tokens"), refuses(400, param="temperature"), says(ADA)]
    assert asked(writer) == ADA
    last = endpoint.received[-1].body
    assert "temperature" not in last
    assert "max_tokens" not in last
    assert (last["max_completion_tokens"], last["response_format"]["type"]) == (1_000, "json_schema")


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(ADA),
        f"  {json.dumps(ADA)}\n",
        f"<think>Is {{it}} Ada?</think>{json.dumps(ADA)}",
        f"Sure:\n{json.dumps(ADA)}\nAnything else?",
        [{"type": "text", "text": json.dumps(ADA)}],
    ],
)
def test_json_is_found_in_what_the_model_says(
    endpoint: ScriptedEndpoint, writer: OpenAiStyle, content: str | list[Any]
) -> None:
    endpoint.script.append(completion(content))
    assert asked(writer) == ADA


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"<html>busy</html>"),
        Reply(body=b""),
        Reply(body=b"[]"),
        Reply(body=b'{"choices": []}'),
        Reply(body=b'{"choices": [{"message": null}]}'),
        Reply(body=b"[" * 100_000),
        completion(None),
        completion('{"name": 1e999}'),
        completion('{"name": "\\ud800"}'),
        completion('{"name": "a\\u0000b"}'),
        completion("[" * 80 + "]" * 80),
        completion(json.dumps(ADA), refusal="I cannot help with that."),
        completion(json.dumps(ADA), finish="content_filter"),
    ],
)
def test_what_is_no_answer(endpoint: ScriptedEndpoint, writer: OpenAiStyle, reply: Reply) -> None:
    endpoint.script.append(reply)
    caught = failed(writer)
    assert (caught.retryable, caught.too_long) == (False, False)
    assert len(endpoint.received) == 1


@pytest.mark.parametrize(
    "content",
    ["I do not know.", '{"name": "Ada"', '{"name": NaN}', "[" * 100_000, '{"name": ' + "9" * 5_000 + "}", "", "36 of"],
)
def test_what_is_no_json_is_asked_for_in_words_once(
    endpoint: ScriptedEndpoint, writer: OpenAiStyle, content: str
) -> None:
    endpoint.script += [completion(content), completion(content)]
    assert not failed(writer).retryable
    endpoint.script += [completion(content), says(ADA), says(ADA)]
    assert asked(writer) == ADA
    assert asked(writer) == ADA
    assert formats(endpoint) == ["json_schema", "text", "json_schema", "text", "json_schema"]


@pytest.mark.parametrize(
    "reply",
    [
        completion('{"name": "A', finish="length"),
        refuses(413),
        refuses(400, code="context_length_exceeded"),
        refuses(400, type="exceed_context_size_error"),
        refuses(400, message=f"maximum context length is 10: {SECRET_TEXT}"),
    ],
)
def test_what_was_too_long_says_so(endpoint: ScriptedEndpoint, writer: OpenAiStyle, reply: Reply) -> None:
    endpoint.script.append(reply)
    assert failed(writer).too_long
    assert len(endpoint.received) == 1


def test_a_text_over_the_context_is_not_sent(endpoint: ScriptedEndpoint, writer: OpenAiStyle) -> None:
    with pytest.raises(WriterFailed) as caught:
        writer.write("Do it.", "x" * writer.input_length_max, SHAPE, 5.0)
    assert caught.value.too_long
    assert endpoint.received == []


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "LOOM_WRITER_API_KEY"), (403, "LOOM_WRITER_API_KEY"), (404, "LOOM_WRITER_URL"), (418, "HTTP 418")],
)
def test_refusals_are_final(endpoint: ScriptedEndpoint, writer: OpenAiStyle, status: int, words: str) -> None:
    endpoint.script.append(refuses(status, message=f"{KEY} {SECRET_TEXT}"))
    caught = failed(writer)
    assert not caught.retryable
    assert words in str(caught)
    assert len(endpoint.received) == 1


def test_a_used_up_quota_is_final(endpoint: ScriptedEndpoint, writer: OpenAiStyle) -> None:
    endpoint.script.append(refuses(429, code="insufficient_quota"))
    assert not failed(writer).retryable
    assert len(endpoint.received) == 1


@pytest.mark.parametrize("retry_after", ["0", "Sun, 29 Nov 2015 12:00:00 GMT", "soon"])
def test_a_busy_endpoint_is_asked_again(endpoint: ScriptedEndpoint, writer: OpenAiStyle, retry_after: str) -> None:
    endpoint.script += [refuses(429, retry_after=retry_after), refuses(503, retry_after="0"), says(ADA)]
    assert asked(writer) == ADA
    assert len(endpoint.received) == 3


def test_the_wait_that_is_asked_for_is_kept(endpoint: ScriptedEndpoint, writer: OpenAiStyle) -> None:
    endpoint.script += [refuses(429, retry_after="1"), says(ADA)]
    start_s = time.monotonic()
    assert asked(writer) == ADA
    assert time.monotonic() - start_s >= 1.0


def test_a_wait_that_is_too_long_is_not_begun(endpoint: ScriptedEndpoint, writer: OpenAiStyle) -> None:
    endpoint.script.append(refuses(429, retry_after="3600"))
    start_s = time.monotonic()
    assert failed(writer).retryable
    assert time.monotonic() - start_s < PATIENCE_S / 2


def test_retries_are_bounded(endpoint: ScriptedEndpoint, writer: OpenAiStyle) -> None:
    endpoint.say = always(refuses(500, retry_after="0", message=SECRET_TEXT))
    assert failed(writer).retryable
    assert len(endpoint.received) == 4


def test_nobody_listens() -> None:
    with scripted() as gone:
        url = gone.url
    assert failed(writer_at(url), timeout_s=0.4).retryable


@pytest.mark.parametrize("drop_s", [0.0, 0.05])
def test_the_time_is_bounded_as_a_whole(endpoint: ScriptedEndpoint, writer: OpenAiStyle, drop_s: float) -> None:
    # A byte now and then would keep a bound on single reads from ever being met.
    endpoint.script.append(Reply(body=says(ADA).body * 10, until=None if drop_s else endpoint.closing, drop_s=drop_s))
    start_s = time.monotonic()
    assert failed(writer, timeout_s=0.5).retryable
    assert time.monotonic() - start_s < HOLD_TIMEOUT_S / 2


def test_the_setting_bounds_what_a_caller_allows(endpoint: ScriptedEndpoint) -> None:
    endpoint.script.append(Reply(until=endpoint.closing))
    start_s = time.monotonic()
    assert failed(writer_at(endpoint.url, timeout_s=0.3), timeout_s=60.0).retryable
    assert time.monotonic() - start_s < HOLD_TIMEOUT_S / 2


@pytest.mark.parametrize("packed", [False, True])
def test_a_huge_answer_is_not_read_to_its_end(endpoint: ScriptedEndpoint, writer: OpenAiStyle, packed: bool) -> None:
    body = b"x" * (RESPONSE_BYTES_MAX + 1)
    zipped = Reply(body=gzip.compress(body), headers={"Content-Encoding": "gzip"})
    endpoint.script.append(zipped if packed else Reply(body=body))
    assert "too large" in str(failed(writer))


def test_a_huge_error_is_cut(endpoint: ScriptedEndpoint, writer: OpenAiStyle) -> None:
    endpoint.script.append(Reply(status=418, body=b"x" * (RESPONSE_BYTES_MAX + 1)))
    assert "HTTP 418" in str(failed(writer))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_text_follows_a_redirect(endpoint: ScriptedEndpoint, writer: OpenAiStyle, status: int) -> None:
    with scripted(say=always(says(ADA))) as other:
        endpoint.script.append(
            Reply(status=status, headers={"Location": f"{other.url}/chat/completions?{SECRET_TEXT}"})
        )
        assert "LOOM_WRITER_URL" in str(failed(writer))
        assert other.received == []


def test_the_environment_names_no_proxy(
    endpoint: ScriptedEndpoint, writer: OpenAiStyle, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.script.append(says(ADA))
    with scripted(say=always(refuses(502))) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert asked(writer) == ADA
        assert proxy.received == []


def test_neither_key_nor_text_is_logged(
    endpoint: ScriptedEndpoint, writer: OpenAiStyle, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint.script += [
        says({"name": SECRET_TEXT}),
        refuses(401, message=f"{KEY} {SECRET_TEXT}"),
        refuses(400, message=SECRET_TEXT),
        refuses(400, message=SECRET_TEXT),
        refuses(400, message=SECRET_TEXT),
    ]
    asked(writer)
    failed(writer)
    failed(writer)
    assert caplog.records
    assert KEY not in caplog.text
    assert SECRET_TEXT not in caplog.text


def test_the_key_is_not_shown(writer: OpenAiStyle) -> None:
    for shown in (repr(writer), repr(vars(writer)), writer.endpoint, writer.model):
        assert KEY not in shown


def test_calls_of_several_threads(endpoint: ScriptedEndpoint, writer: OpenAiStyle) -> None:
    def echo(got: Received) -> Reply:
        return says({"name": got.user})

    endpoint.say = echo
    texts = [f"text {number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        busy = [pool.submit(writer.write, "Do it.", text, SHAPE, PATIENCE_S) for text in texts]
    assert [one.result() for one in busy] == [{"name": text} for text in texts]


def test_a_call_too_many_is_told_so(endpoint: ScriptedEndpoint, writer: OpenAiStyle) -> None:
    let_go = Event()
    arrived = [Event() for _ in range(CALLS_AT_ONCE_MAX)]

    def held(got: Received) -> Reply:
        arrived[int(got.user)].set()
        return Reply(body=says(ADA).body, until=let_go)

    endpoint.say = held
    with ThreadPoolExecutor(CALLS_AT_ONCE_MAX) as pool:
        busy = [
            pool.submit(writer.write, "Do it.", str(number), SHAPE, PATIENCE_S) for number in range(CALLS_AT_ONCE_MAX)
        ]
        assert all(one.wait(HOLD_TIMEOUT_S) for one in arrived)
        assert failed(writer, timeout_s=0.2).retryable
        let_go.set()
        assert [one.result(PATIENCE_S) for one in busy] == [ADA] * CALLS_AT_ONCE_MAX
    assert len(endpoint.received) == CALLS_AT_ONCE_MAX
