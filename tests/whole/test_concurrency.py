"""Many writers at once, through every face of a real server."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import anyio
import httpx
import pytest
from mcp import Client

from running import Server

pytestmark = pytest.mark.slow

THREADS = 8
EACH = 50


def new(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def section_of(server: Server, namespace: str) -> list[str]:
    shown = server.call("profile.render", namespace=namespace, agent="-", format="markdown")
    return [line for line in shown["rendered"].splitlines() if line.startswith("line ")]


def test_no_append_is_lost_over_http(server: Server) -> None:
    namespace = new("http")

    def work(thread: int) -> None:
        with server.client() as http:
            for turn in range(EACH):
                body = {"namespace": namespace, "agent": "shared", "label": "all", "addition": f"line {thread}.{turn}"}
                assert http.post("/v1/profile.append", json=body).status_code == 200

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    lines = section_of(server, namespace)
    assert len(lines) == len(set(lines)) == THREADS * EACH


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_no_append_is_lost_over_mcp(server: Server, mode: str) -> None:
    namespace = new("mcp")

    async def work(thread: int) -> None:
        async with Client(f"{server.url}/mcp", mode=mode) as client:
            for turn in range(EACH):
                addition = {"label": "all", "addition": f"line {thread}.{turn}"}
                result = await client.call_tool("loom_profile_append", {"namespace": namespace, **addition})
                assert not result.is_error, result.content

    async def everybody() -> None:
        async with anyio.create_task_group() as group:
            for thread in range(THREADS):
                group.start_soon(work, thread)

    anyio.run(everybody)
    lines = section_of(server, namespace)
    assert len(lines) == len(set(lines)) == THREADS * EACH


@pytest.mark.parametrize("op", ["profile.set", "memory.set"])
def test_of_two_sets_with_one_hash_exactly_one_wins(server: Server, op: str) -> None:
    namespace = new("race")
    name = "label" if op == "profile.set" else "memory_key"
    for turn in range(10):
        base = {"namespace": namespace, "agent": "a", name: f"k{turn}"}
        seen = server.call(op, **base, value="start")["content_sha256"]

        def attempt(writer: int, base: dict[str, str] = base, seen: str = seen) -> httpx.Response:
            with server.client() as http:
                return http.post(f"/v1/{op}", json={**base, "value": f"by {writer}", "if_match_sha256": seen})

        with ThreadPoolExecutor(THREADS) as pool:
            codes = sorted(answer.status_code for answer in pool.map(attempt, range(THREADS)))
        assert codes == [200] + [409] * (THREADS - 1)


def test_one_idempotency_key_at_once_writes_once(server: Server) -> None:
    namespace = new("key")
    body = {"namespace": namespace, "agent": "a", "label": "p", "addition": "line once"}

    def send(_: int) -> dict[str, object]:
        with server.client() as http:
            answer = http.post("/v1/profile.append", json=body, headers={"Idempotency-Key": namespace})
        assert answer.status_code == 200
        return answer.json()

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(send, range(THREADS)))
    assert all(answer == answers[0] for answer in answers)
    assert section_of(server, namespace) == ["line once"]
    other = server.http.post(
        "/v1/profile.append", json={**body, "addition": "other"}, headers={"Idempotency-Key": namespace}
    )
    assert (other.status_code, other.json()["detail"]["code"]) == (409, "KEY_REUSED")
