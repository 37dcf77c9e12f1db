"""The shape of every error, pinned in one place."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from edge_kit import Kit, token_only
from starlette.testclient import TestClient

from loom.edges.http import Hosts, JsonLines
from loom.errors import LoomError
from loom.ops.ratelimit import PerMinute

HERE = "http://localhost:7777"
DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000

# name, method, path, headers, body, status, code
MATRIX: list[tuple[str, str, str, Mapping[str, str], bytes, int, str]] = [
    ("not json", "POST", "/v1/note.get", {}, b"{'key'}", 400, "MALFORMED_JSON"),
    ("not an object", "POST", "/v1/note.get", {}, b"[1]", 400, "MALFORMED_JSON"),
    ("nan", "POST", "/v1/note.get", {}, b'{"key": NaN}', 400, "MALFORMED_JSON"),
    ("infinity", "POST", "/v1/note.get", {}, b'{"key": -Infinity}', 400, "MALFORMED_JSON"),
    ("a number too large to be finite", "POST", "/v1/note.get", {}, b'{"key": 1e999}', 400, "INVALID_TEXT"),
    ("half a surrogate pair", "POST", "/v1/note.get", {}, b'{"key": "\\ud800"}', 400, "MALFORMED_JSON"),
    ("half a pair as a name", "POST", "/v1/note.get", {}, b'{"\\udfff": 1}', 400, "MALFORMED_JSON"),
    ("not utf-8", "POST", "/v1/note.get", {}, b'{"key": "\xff"}', 400, "MALFORMED_JSON"),
    ("too deep to parse", "POST", "/v1/note.get", {}, DEEP, 400, "MALFORMED_JSON"),
    ("deep", "POST", "/v1/note.get", {}, b'{"key":' + b"[" * 100 + b"]" * 100 + b"}", 422, "VALIDATION"),
    ("nul", "POST", "/v1/note.get", {}, b'{"key": "\\u0000"}', 422, "VALIDATION"),
    ("a field is missing", "POST", "/v1/note.get", {}, b"", 422, "VALIDATION"),
    ("a field of a wrong type", "POST", "/v1/note.get", {}, b'{"key": 1}', 422, "VALIDATION"),
    ("no such note", "POST", "/v1/note.get", {}, b'{"key": "none"}', 404, "NOT_FOUND"),
    ("no such operation", "POST", "/v1/note.fly", {}, b"{}", 404, "UNKNOWN_OP"),
    ("no such path", "GET", "/v2", {}, b"", 404, "NOT_FOUND"),
    ("no oauth", "GET", "/.well-known/oauth-protected-resource/mcp", {}, b"", 404, "NOT_FOUND"),
    ("a slash too many", "POST", "/v1/note.get/", {}, b"{}", 404, "NOT_FOUND"),
    ("get on an operation", "GET", "/v1/note.get", {}, b"", 405, "METHOD_NOT_ALLOWED"),
    ("post on health", "POST", "/healthz", {}, b"", 405, "METHOD_NOT_ALLOWED"),
    ("get on mcp", "GET", "/mcp", {}, b"", 405, "METHOD_NOT_ALLOWED"),
    ("delete on mcp", "DELETE", "/mcp", {}, b"", 405, "METHOD_NOT_ALLOWED"),
    ("conflict", "POST", "/v1/note.set", {}, b'{"key":"a","value":"b","if_match_sha256":"1"}', 409, "SHA_MISMATCH"),
    ("too large", "POST", "/v1/note.set", {}, b'{"key": "' + b"a" * 2000 + b'"}', 413, "BODY_TOO_LARGE"),
    ("too large for mcp", "POST", "/mcp", {}, b"a" * 2000, 413, "BODY_TOO_LARGE"),
    ("a form", "POST", "/v1/note.get", {"content-type": "text/plain"}, b"{}", 415, "WRONG_MEDIA"),
    ("latin", "POST", "/v1/note.get", {"content-type": "application/json; charset=latin1"}, b"{}", 415, "WRONG_MEDIA"),
    ("compressed", "POST", "/v1/note.get", {"content-encoding": "gzip"}, b"{}", 415, "WRONG_MEDIA"),
    ("another host", "POST", "/v1/note.get", {"host": "evil.example"}, b'{"key":"a"}', 421, "WRONG_HOST"),
    ("another host, health", "GET", "/healthz", {"host": "localhost.evil.example:7777"}, b"", 421, "WRONG_HOST"),
    ("a host and more", "GET", "/healthz", {"host": "[::1].evil.example"}, b"", 421, "WRONG_HOST"),
    ("a host and two ports", "GET", "/healthz", {"host": "127.0.0.1:80:evil"}, b"", 421, "WRONG_HOST"),
    ("a host behind a name", "GET", "/healthz", {"host": "localhost@evil.example"}, b"", 421, "WRONG_HOST"),
    ("another origin", "POST", "/v1/note.get", {"origin": "https://evil.example"}, b"{}", 403, "WRONG_ORIGIN"),
    ("another port", "POST", "/mcp", {"origin": "http://localhost:3000"}, b"{}", 403, "WRONG_ORIGIN"),
    ("no origin at all", "POST", "/v1/note.get", {"origin": "null"}, b"{}", 403, "WRONG_ORIGIN"),
    ("a wrong token", "POST", "/v1/note.get", {"authorization": "Bearer no"}, b"{}", 401, "UNAUTHENTICATED"),
    ("a wrong token for mcp", "POST", "/mcp", {"authorization": "Bearer no"}, b"{}", 401, "UNAUTHENTICATED"),
    ("a role too low", "POST", "/v1/note.set", {"authorization": "Bearer viewer"}, b"{}", 403, "DENIED"),
    ("broken", "POST", "/v1/note.trap", {}, b'{"key": "break"}', 500, "INTERNAL"),
]


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/note.get"), ("POST", "/mcp"), ("GET", "/metrics")])
def test_two_tokens_are_none(http: TestClient, method: str, path: str) -> None:
    lines = [("authorization", ""), ("authorization", "Bearer no"), ("content-type", "application/json")]
    answer = http.request(method, path, content=b"{}" if method == "POST" else None, headers=lines)
    assert answer.status_code == 401
    assert answer.json()["detail"]["code"] == "UNAUTHENTICATED"


@pytest.fixture
def small(kit: Kit) -> Iterator[TestClient]:
    with TestClient(kit.app(body_length_max=1000), base_url=HERE) as client:
        yield client


def shown_error(status: int, body: Any) -> dict[str, Any]:
    """The error's detail, once its shape is the one that all have."""
    assert set(body) == {"detail"}
    detail = body["detail"]
    assert isinstance(detail["code"], str)
    assert isinstance(detail["message"], str)
    assert detail["message"]
    assert isinstance(detail["retryable"], bool)
    assert detail["category"] in {"request", "auth", "not_found", "conflict", "limit", "server"}
    known = {error.code: error for error in every_error(LoomError)}
    assert known[detail["code"]].status == status
    return detail


def every_error(root: type[LoomError]) -> Iterator[type[LoomError]]:
    yield root
    for child in root.__subclasses__():
        yield from every_error(child)


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status", "code"), [row[1:] for row in MATRIX], ids=[row[0] for row in MATRIX]
)
def test_every_error_has_one_shape(
    kit: Kit, method: str, path: str, headers: Mapping[str, str], body: bytes, status: int, code: str
) -> None:
    large = len(body) == len(DEEP)
    with TestClient(kit.app(body_length_max=10**6 if large else 1000), base_url=HERE) as client:
        answer = client.request(method, path, headers=dict(headers), content=body)
    assert (answer.status_code, answer.json()["detail"]["code"]) == (status, code)
    shown_error(status, answer.json())
    assert answer.headers["x-request-id"]
    assert answer.headers["content-type"] == "application/json"
    assert "4711" not in answer.text
    assert "Traceback" not in answer.text


def test_a_head_request_to_an_operation_is_refused(http: TestClient) -> None:
    answer = http.head("/v1/note.get")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


def test_a_body_that_grows_over_the_limit_while_it_arrives_is_refused(small: TestClient) -> None:
    answer = small.post("/v1/note.get", content=iter([b'{"key": "'] + [b"a" * 100] * 20 + [b'"}']))
    assert "content-length" not in answer.request.headers
    assert answer.status_code == 413
    assert shown_error(413, answer.json())["body_length_max"] == 1000


def test_a_401_asks_for_a_bearer_token_and_names_no_oauth_server(guarded: TestClient) -> None:
    answer = guarded.post("/v1/note.get", json={"key": "a"})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_token_is_asked_for_before_the_body_is_parsed_or_the_operation_looked_up(guarded: TestClient) -> None:
    assert guarded.post("/v1/note.fly", content=b"{").status_code == 401


def test_a_call_over_the_rate_limit_says_when_to_come_back() -> None:
    kit = Kit(rate_limit=PerMinute(1, 1))
    with TestClient(kit.app(token_only), base_url=HERE, headers={"authorization": "Bearer viewer"}) as client:
        client.post("/v1/note.get", json={"key": "a"})
        answer = client.post("/v1/note.get", json={"key": "a"})
    detail = shown_error(429, answer.json())
    assert detail["retryable"] is True
    assert int(answer.headers["retry-after"]) == round(detail["retry_after_s"])
    kit.pool.shutdown()


def test_a_failing_store_is_503_with_retry_after(kit: Kit, http: TestClient) -> None:
    kit.database.failing = True
    answer = http.post("/v1/note.get", json={"key": "a"})
    assert shown_error(503, answer.json())["code"] == "UNAVAILABLE"
    assert answer.headers["retry-after"] == "1"


def test_calls_are_refused_while_the_server_stops_and_health_goes_on(kit: Kit, http: TestClient) -> None:
    kit.lifecycle.stopping()
    for path in ("/v1/note.get", "/mcp"):
        assert shown_error(503, http.post(path, json={"key": "a"}).json())["retryable"] is True
    assert http.get("/healthz").status_code == 200
    assert http.get("/readyz").status_code == 503


def test_an_unexpected_error_is_logged_with_its_id_and_its_place_but_without_what_it_says(
    http: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    from_caller = "my-id.1"
    http.post("/v1/note.trap", json={"key": "break"}, headers={"x-request-id": from_caller})
    record = next(r for r in caplog.records if r.message == "unexpected error")
    assert getattr(record, "request_id", None) == from_caller
    line = json.loads(json_line(record))
    assert line["error"][0]["type"] == "builtins.ZeroDivisionError"
    assert any("edge_kit.py" in place for place in line["error"][0]["stack"])
    assert "4711" not in json_line(record)


def json_line(record: Any) -> str:
    from_logs: str = JsonLines().format(record)
    return from_logs


def test_configured_hosts_and_origins_pass(kit: Kit) -> None:
    hosts = Hosts.of(["Memory.Example", "other.example:81"], ["https://App.example/"])
    with TestClient(kit.app(hosts=hosts), base_url=HERE) as client:

        def status(host: str, origin: str | None = None) -> int:
            headers = {"host": host} | ({"origin": origin} if origin else {})
            return client.get("/healthz", headers=headers).status_code

        assert status("memory.example") == 200
        assert status("memory.example:9000") == 200
        assert status("other.example:81") == 200
        assert status("other.example") == 421
        assert status("[::1]:7777") == 200
        assert status("memory.example", "https://app.example") == 200
        assert status("memory.example", "http://memory.example") == 200
        assert status("memory.example", "http://memory.example:81") == 403
        assert status("127.0.0.1:7777", "http://localhost:7777") == 200
