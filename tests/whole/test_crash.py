"""Nothing acknowledged is lost when the process dies, and the indexes agree with the rows."""

import threading
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from running import READY_TIMEOUT_S, Server, running, wait_until

pytestmark = pytest.mark.slow

ROUNDS = 4
WRITERS = 4


def write_until_dead(server: Server, acknowledged: dict[str, str], first: int) -> None:
    number = first
    with server.client() as http:
        while True:
            key, word = f"k{number}", f"zq{number}x"
            body = {"namespace": "crash", "agent": "a", "memory_key": key, "value": f"the {word} stays"}
            try:
                answer = http.post("/v1/memory.set", json=body)
            except httpx.TransportError:
                return
            if answer.status_code == 200:
                acknowledged[key] = word
            number += WRITERS


def test_kill_during_writes_loses_nothing_acknowledged(tmp_path: Path, store: Mapping[str, str]) -> None:
    acknowledged: dict[str, str] = {}
    for turn in range(ROUNDS):
        with running(tmp_path / "home", synchronous="FULL", **store) as server:
            first = turn * 100_000
            threads = [
                threading.Thread(target=write_until_dead, args=(server, acknowledged, first + writer))
                for writer in range(WRITERS)
            ]
            before = len(acknowledged)
            for thread in threads:
                thread.start()
            wait_until(lambda before=before: len(acknowledged) >= before + 30, READY_TIMEOUT_S)
            server.kill()
            for thread in threads:
                thread.join(30)
    assert len(acknowledged) >= ROUNDS * 30
    with running(tmp_path / "home", synchronous="FULL", **store) as server:
        for key, word in acknowledged.items():
            got = server.call("memory.get", namespace="crash", agent="a", memory_key=key)
            assert got["found"], key
            assert got["value"] == f"the {word} stays"
        for key, word in list(acknowledged.items())[::7]:
            found = server.call("memory.search", namespace="crash", agent="a", query=word, recipe="verbatim")
            assert key in [hit["memory_key"] for hit in found["results"]]
        total = server.call("memory.list", namespace="crash", agent="a", limit=1)["total"]
        assert total >= len(acknowledged)
        wait_until(lambda: server.call("ops.health")["status"] == "ok", READY_TIMEOUT_S)


def test_a_second_server_on_the_same_store_shares_it(tmp_path: Path, store: Mapping[str, str]) -> None:
    home = tmp_path / "home"
    with running(home, embedder="hashing", **store) as one, running(home, embedder="hashing", **store) as two:
        one.call("memory.set", namespace="n", agent="a", memory_key="k", value="written by the first zebraword")
        found = two.call("search.query", namespace="n", query="zebraword")
        assert [hit["memory_key"] for hit in found["memory"]["results"]] == ["k"]
        two.call("profile.append", namespace="n", agent="a", label="p", addition="from two")
        one.call("profile.append", namespace="n", agent="a", label="p", addition="from one")
        rendered = two.call("profile.render", namespace="n", agent="a", format="markdown")["rendered"]
        assert "from two\nfrom one" in rendered
        one.call("memory.delete", namespace="n", agent="a", memory_key="k")
        assert two.call("search.query", namespace="n", query="zebraword")["memory"]["results"] == []


def test_a_stop_finishes_what_was_begun_and_exits_cleanly(tmp_path: Path, store: Mapping[str, str]) -> None:
    with running(tmp_path / "home", synchronous="FULL", **store) as server:
        server.call("memory.set", namespace="n", agent="a", memory_key="k", value="v")
        assert server.stop() == 0
    with running(tmp_path / "home", synchronous="FULL", **store) as again:
        assert again.call("memory.get", namespace="n", agent="a", memory_key="k")["value"] == "v"
