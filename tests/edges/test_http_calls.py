import json
import re
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from edge_kit import Kit
from starlette.testclient import TestClient

from loom.edges.http import JsonLines
from loom.edges.workers import Workers

HERE = "http://localhost:7777"


def test_an_operation_answers_with_flat_json_and_names_what_it_ignored(http: TestClient) -> None:
    answer = http.post("/v1/note.set", json={"key": "a", "value": "tea", "zebra": 1, "apple": 2})
    assert answer.status_code == 200
    body = answer.json()
    assert body["ignored_args"] == ["apple", "zebra"]
    assert body["version"] == 2**53 + 7
    assert body["who"]["org"] == "dev"
    assert "note" not in body
    assert http.post("/v1/note.get", json={"key": "a"}).json() == {"key": "a", "value": "tea"}


@pytest.mark.parametrize("media", ["application/json", "application/json; charset=UTF-8", "Application/JSON", None])
def test_json_is_read_with_and_without_its_content_type(http: TestClient, media: str | None) -> None:
    headers = {"content-type": media} if media else {}
    answer = http.post("/v1/note.set", content=b'{"key":"a","value":"\xc3\xbc"}', headers=headers)
    assert answer.status_code == 200


def test_an_empty_body_is_an_empty_object(http: TestClient) -> None:
    assert http.post("/v1/note.clear").json() == {"count": 0}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("abc-1.2_X", True), ("a" * 64, True), ("a" * 65, False), ("with space", False), ("semi;colon", False)],
)
def test_a_request_id_of_plain_letters_is_kept(http: TestClient, sent: str, kept: bool) -> None:
    back = http.get("/healthz", headers={"x-request-id": sent}).headers["x-request-id"]
    assert (back == sent) is kept
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", back)


@pytest.mark.parametrize(
    ("raw", "name"),
    [(b"claude-code", "claude-code"), ("ünïcode".encode(), "ünïcode"), (b"caf\xe9", "café"), (b"  spaced  ", "spaced")],
)
def test_identity_headers_may_hold_any_letters(http: TestClient, raw: bytes, name: str) -> None:
    headers = [(b"x-loom-agent", raw), (b"x-loom-session", b"talk-1")]
    who = http.post("/v1/note.set", json={"key": "a", "value": "b"}, headers=headers).json()["who"]
    assert who["agent"] == name
    assert who["session_id"] == "talk-1"


def test_an_idempotency_key_gives_the_first_answer_again(http: TestClient) -> None:
    def send(value: str) -> Any:
        return http.post("/v1/note.set", json={"key": "a", "value": value}, headers={"idempotency-key": "k1"})

    first = send("tea")
    assert send("tea").json() == first.json()
    assert send("rain").json()["detail"]["code"] == "KEY_REUSED"


def test_what_waits_for_a_thread_is_bounded(kit: Kit) -> None:
    kit.workers = Workers(threads_max=1, waiting_max=1)
    answers: list[int] = []
    with TestClient(kit.app(), base_url=HERE) as client:

        def wait() -> None:
            answers.append(client.post("/v1/note.trap", json={"key": "wait"}).status_code)

        threads = [threading.Thread(target=wait) for _ in range(2)]
        for thread in threads:
            thread.start()
        assert kit.trap.entered.acquire(timeout=60)
        refused = refused_while_full(client, kit)
        assert refused.json()["detail"]["code"] == "UNAVAILABLE"
        assert refused.headers["retry-after"] == "1"
        kit.trap.release.set()
        for thread in threads:
            thread.join(60)
    assert answers == [200, 200]
    assert kit.workers.inside == 0


def refused_while_full(client: TestClient, kit: Kit) -> Any:
    """The answer to a call made once the queue is full; both waiting calls are inside by then."""
    full = threading.Event()
    deadline = threading.Timer(60, full.set)
    deadline.start()
    while kit.workers.inside < 2 and not full.is_set():
        client.get("/healthz")
    deadline.cancel()
    return client.post("/v1/note.get", json={"key": "a"})


def test_ready_says_which_part_is_not(kit: Kit) -> None:
    state: dict[str, str | None] = {"store": None, "model": None}
    checks = {"store": lambda: state["store"], "model": lambda: state["model"]}
    with TestClient(kit.app(checks=checks), base_url=HERE) as client:
        assert client.get("/readyz").json() == {"status": "ready"}
        state["store"] = "the disk is full"
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["detail"]["reasons"] == ["store: the disk is full"]


def test_metrics_count_calls_and_are_for_admins(kit: Kit, http: TestClient, guarded: TestClient) -> None:
    del kit
    assert "loom_call_seconds" in http.get("/metrics").text
    assert guarded.get("/metrics").status_code == 401
    assert guarded.get("/metrics", headers={"authorization": "Bearer writer"}).status_code == 403
    assert guarded.get("/metrics", headers={"authorization": "Bearer admin"}).status_code == 200


def test_a_log_line_names_the_operation_and_nothing_that_was_sent(
    http: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "loom.http")
    http.post("/v1/note.set", json={"key": "secret-key", "value": "secret-text"}, headers={"x-request-id": "r1"})
    http.post("/v1/secret-text", json={})
    lines = [json.loads(JsonLines().format(r)) for r in caplog.records if r.name == "loom.http"]
    assert [(line["op"], line["status"]) for line in lines] == [("note.set", 200), ("unknown", 404)]
    assert lines[0]["request_id"] == "r1"
    assert lines[0]["duration_ms"] > 0
    assert set(lines[0]) == {"time", "level", "logger", "message", "request_id", "op", "status", "duration_ms"}
    assert lines[0]["time"].endswith("Z")
    assert "secret" not in json.dumps(lines)


def test_the_docs_page_loads_nothing_from_elsewhere(http: TestClient) -> None:
    page = http.get("/docs")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for reference in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        assert reference.startswith(("/", "data:,"))
        if reference.startswith("/"):
            assert http.get(reference).status_code == 200
    assert "innerHTML" not in http.get("/docs/page.js").text


def test_the_root_leads_to_the_docs_page(http: TestClient) -> None:
    answer = http.get("/", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/docs")
    assert http.post("/").status_code == 405


def test_other_origins_get_no_cors_headers(http: TestClient) -> None:
    answer = http.post("/v1/note.get", json={"key": "a"}, headers={"origin": "http://localhost:7777"})
    names: Mapping[str, str] = answer.headers
    assert not any(name.lower().startswith("access-control") for name in names)
