"""A real server whose real embedding endpoint hangs: writes and searches go on at once, and vectors are made later."""

import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from threading import Event

import pytest

from embedding_kit import embedding
from loom.models.breaker import FAILURES_MAX
from running import Server, running, wait_until
from writer_kit import KEY, Received, Reply, scripted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CALLS = 30
ANSWER_TIMEOUT_S = 2
"""Who waits for the endpoint waits so long."""

AT_ONCE_S = ANSWER_TIMEOUT_S / 2
PATIENCE_S = 150.0


class Hanging:
    """An endpoint that answers, until `hangs` is set."""

    def __init__(self) -> None:
        self.hangs = Event()
        self.over = Event()

    def __call__(self, got: Received) -> Reply:
        return Reply(body=embedding(got).body, until=self.over if self.hangs.is_set() else None)


def gauge(server: Server, name: str) -> float:
    lines = server.http.get("/metrics").text.splitlines()
    (told,) = [line for line in lines if line.startswith(f"loom_embedder_{name} ")]
    return float(told.split()[1])


def test_calls_go_on_at_once_while_the_endpoint_hangs(tmp_path: Path, store: Mapping[str, str]) -> None:
    hanging = Hanging()
    with scripted(say=hanging) as endpoint:
        there = {"embedder": "openai", "embedder_url": endpoint.url, "embedder_model": "m", "embedder_api_key": KEY}
        with running(tmp_path / "home", **store, **there, embedder_timeout_s=str(ANSWER_TIMEOUT_S)) as server:
            server.call("memory.set", memory_key="before", value="The kettle is blue.")
            assert gauge(server, "rest_seconds") == gauge(server, "open") == 0.0
            hanging.hangs.set()
            writes, searches = list[float](), list[float]()
            for number in range(CALLS):
                writes.append(timed(server, "memory.set", memory_key=f"k{number}", value=f"The word{number} stays."))
                searches.append(timed(server, "search.query", query=f"where is the word{number}"))
            for took in (writes, searches):
                assert median(took) < AT_ONCE_S
                assert len([one for one in took if one > AT_ONCE_S]) < 2 * FAILURES_MAX
            answer = server.call("search.query", query="what stays of word7")
            assert answer["degraded"] == ["embedder"]
            assert "word7 " in str(answer)
            assert gauge(server, "open") == 1.0
            health = server.call("ops.health")
            assert (health["degraded"], health["jobs_waiting"] >= CALLS - 1) == (["embedder"], True)
            hanging.hangs.clear()
            hanging.over.set()
            wait_until(lambda: not server.call("ops.health")["degraded"], PATIENCE_S)
            wait_until(lambda: server.call("ops.health")["jobs_waiting"] == 0, PATIENCE_S)
            assert "embedder_rest_s" not in server.call("ops.health")
            wait_until(lambda: gauge(server, "open") == 0.0, PATIENCE_S)
            found = server.call("memory.search", query="the word9 stays", explain=True)
            assert not found.get("degraded")
            assert "word9 " in str(found["results"][0])


def timed(server: Server, op: str, **args: str) -> float:
    began_s = time.monotonic()
    assert server.call(op, **args)["degraded"] == ["embedder"]
    return time.monotonic() - began_s
