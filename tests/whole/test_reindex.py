"""`loom reindex` beside a running server: killed half way, gone on with, and what servers do after the switch."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from embedding_kit import INNER, answering, embedding, inputs
from loom import compose, config
from loom.models.facts import QUESTIONS, UNRELATED
from running import Server, running, wait_until
from writer_kit import KEY, Received, Reply, Say, ScriptedEndpoint, scripted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

MEMORIES = 300
PATIENCE_S = 120.0
PROBES = {*UNRELATED, *QUESTIONS, "Does the model answer?"}


class Gate:
    """An endpoint that stops to answer after so many requests, until it is opened."""

    def __init__(self, requests: int, say: Say = embedding) -> None:
        self.left = requests
        self.open = Event()
        self._say = say

    def __call__(self, got: Received) -> Reply:
        self.left -= 1
        reply = self._say(got)
        return reply if self.left >= 0 else Reply(body=reply.body, until=self.open)


def turned(got: Received) -> Reply:
    """What another model of the same name and length gives."""
    return answering([np.roll(vector, 7).tolist() for vector in INNER.embed_passages(inputs(got), 1.0)])


def environment(home: Path, **settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOM_")}
    return kept | {"LOOM_HOME": str(home)} | {f"LOOM_{name.upper()}": value for name, value in settings.items()}


def loom(home: Path, *arguments: str, **settings: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "loom", *arguments],
        env=environment(home, **settings),
        cwd=home.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def new_settings(endpoint: ScriptedEndpoint) -> dict[str, str]:
    return {"embedder_url": endpoint.url, "embedder_model": "scripted", "embedder_api_key": KEY}


def fill(server: Server) -> None:
    for start in range(0, MEMORIES, 50):
        items = [{"memory_key": f"k{n}", "value": f"the word{n} stays"} for n in range(start, start + 50)]
        server.call("memory.set_many", items=items)
    server.call("knowledge.add", uri="tea.md", text="# Tea\n\nGreen tea steeps two minutes.\n")
    server.call("conversation.append", session="s", messages=[{"role": "user", "content": "Which kettle is it?"}])
    wait_until(lambda: server.call("ops.health")["jobs_waiting"] == 0, PATIENCE_S)


def finds(server: Server, word: str) -> bool:
    """Whether a memory with the word is found, and by meaning."""
    answer = server.call("memory.search", query=f"where is {word}", explain=True)
    return not answer.get("degraded") and any(word in str(hit) for hit in answer["results"])


def texts_of(endpoint: ScriptedEndpoint) -> list[str]:
    return [text for got in endpoint.received for text in inputs(got) if text not in PROBES]


def test_it_is_killed_gone_on_with_and_switched_while_a_server_serves_and_writes(
    tmp_path: Path, store: Mapping[str, str]
) -> None:
    home, old = tmp_path / "home", {**store, "embedder": "hashing"}
    gate = Gate(5)
    with running(home, **old) as server, scripted(say=gate) as endpoint:
        fill(server)
        new = {**old, **new_settings(endpoint)}
        first = loom(home, "reindex", "--embedder", "openai", **new)
        wait_until(lambda: gate.left < 0, PATIENCE_S)
        assert finds(server, "word7")
        server.call("memory.set", memory_key="k1", value="the changed1 stays")
        server.call("memory.set", memory_key="k900", value="the fresh900 stays")
        server.call("memory.delete", memory_key="k2")
        first.kill()
        first.communicate(timeout=PATIENCE_S)
        gate.open.set()
        done_first = texts_of(endpoint)
        endpoint.received.clear()
        assert finds(server, "changed1")

        over = Event()
        writer = Thread(target=write_on, args=(server, over))
        writer.start()
        second = loom(home, "reindex", "--embedder", "openai", "--json", **new)
        said, told = second.communicate(timeout=PATIENCE_S)
        over.set()
        writer.join()
        assert second.returncode == 0, told
        assert "LOOM_EMBEDDER=openai" in told
        assert '"refused": 0' in said
        again = set(texts_of(endpoint)) & set(done_first)
        assert len(done_first) > 100
        # What the killed one had sent and not yet written: the requests that were held back.
        assert len(again) <= 5 * 32
        assert len(again) < len(done_first) - 30

        wait_until(lambda: server.call("ops.health")["degraded"] == ["embedder"], PATIENCE_S)
        late = server.call("memory.set", memory_key="k901", value="the late901 stays")
        assert late["degraded"] == ["embedder"]
        answer = server.call("memory.search", query="where is word7")
        assert answer["degraded"] == ["embedder"]
        assert any("word7 " in str(hit) for hit in answer["results"])
        refused(home, old)
        with running(home, **{**new, "embedder": "openai"}) as following:
            assert following.call("ops.health")["embedder"]["dimension"] == 48
            wait_until(lambda: following.call("ops.health")["jobs_waiting"] == 0, PATIENCE_S)
            for word in ("word7", "changed1", "fresh900", "late901"):
                assert finds(following, word)
            assert following.call("knowledge.search", query="how long does tea steep")["results"]
    agrees(home, {**new, "embedder": "openai"})


def write_on(server: Server, over: Event) -> None:
    number = 0
    with server.client() as http:
        while not over.is_set():
            body = {"memory_key": f"busy{number % 10}", "value": f"the busy{number} stays"}
            assert http.post("/v1/memory.set", json=body).status_code == 200
            number += 1


def refused(home: Path, old: Mapping[str, str]) -> None:
    """A server and a command with the old setting say what is wrong, in a sentence, and end."""
    for command in (("serve", "--port", "0"), ("call", "ops.health")):
        process = loom(home, *command, **old)
        _, told = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1
        assert "The store's vectors are of scripted (48 dimensions, from openai" in told
        assert "makes vectors of hashing (64 dimensions" in told
        assert "loom reindex --embedder hashing" in told
        assert "Traceback" not in told


def agrees(home: Path, settings: Mapping[str, str]) -> None:
    """Every item has vectors in the new space, and none in another."""
    given = config.load(home.parent, home).model_copy(
        update={name: value for name, value in settings.items() if name not in ("database_url", "embedder_api_key")}
    )
    if "database_url" in settings:
        given = given.model_copy(update={"database_url": type(given.database_url)(settings["database_url"])})
    database = compose.database(given)
    for org in database.orgs():
        with database.transaction(org, write=False) as tx:
            found = tx.vectors.spaces()
            assert list(found.values()) in ([], [48])
            for plane in compose.VECTORED:
                places = plane.after(tx, 0, 10_000)
                wanted = {item.item_id for item in plane.read(tx, [item_id for item_id, _ in places])}
                for space in found:
                    missing = [
                        one for one, shelf in places if one in wanted and tx.vectors.missing(shelf, space, [one])
                    ]
                    assert missing == []
    database.close()


def test_anew_is_killed_and_gone_on_with(tmp_path: Path, store: Mapping[str, str]) -> None:
    """The model behind the name was changed; what a killed run has made of the new one is not made again."""
    home = tmp_path / "home"
    with scripted(say=embedding) as endpoint:
        settings = {**store, **new_settings(endpoint), "embedder": "openai"}
        with running(home, **settings) as server:
            fill(server)
        endpoint.say = gate = Gate(5, turned)
        endpoint.received.clear()
        first = loom(home, "reindex", "--anew", **settings)
        wait_until(lambda: gate.left < 0, PATIENCE_S)
        first.kill()
        first.communicate(timeout=PATIENCE_S)
        gate.open.set()
        done_first = texts_of(endpoint)
        endpoint.received.clear()
        second = loom(home, "reindex", "--anew", "--json", **settings)
        _, told = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 0, told
        done_second = texts_of(endpoint)
        assert len(done_first) > 100
        assert len({*done_first, *done_second}) >= MEMORIES
        # Twice was made what had been sent and was not written yet: what was held back.
        assert len(set(done_first) & set(done_second)) < len(done_first) - 30
        agrees(home, settings)
        of_the_model_of_now(home, settings)
        endpoint.received.clear()
        third = loom(home, "reindex", "--anew", **settings)
        third.communicate(timeout=PATIENCE_S)
        assert len(texts_of(endpoint)) >= MEMORIES


def of_the_model_of_now(home: Path, settings: Mapping[str, str]) -> None:
    """A search by meaning finds what is asked for, which it would not among the vectors of the model before."""
    with running(home, **settings) as server:
        for word in ("word7", "word250"):
            answer = server.call("memory.search", query=f"the {word} stays", explain=True)
            assert not answer.get("degraded")
            assert word in str(answer["results"][0])
            assert answer["results"][0]["similarity"] > 0.8
