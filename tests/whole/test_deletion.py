"""What is gone is found by no operation, by no word and no meaning, and is not in the files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from running import READY_TIMEOUT_S, Server, running, wait_until

pytestmark = pytest.mark.slow

SECRET = "the walrus password is plumbago"
MEANING = "what is the secret code of the sea animal?"


def delete(server: Server, namespace: str) -> None:
    server.call("memory.delete", namespace=namespace, agent="a", memory_key="gone")


def redact(server: Server, namespace: str) -> None:
    server.call("memory.redact", namespace=namespace, agent="a", memory_key="gone")


def delete_version(server: Server, namespace: str) -> None:
    got = server.call("memory.get", namespace=namespace, agent="a", memory_key="gone")
    server.call(
        "memory.delete_version",
        namespace=namespace,
        agent="a",
        memory_key="gone",
        version_text=got["version_text"],
    )


def expire(server: Server, namespace: str) -> None:
    server.call("memory.touch", namespace=namespace, agent="a", memory_key="gone", ttl_seconds=1)
    read = {"namespace": namespace, "agent": "a", "memory_key": "gone"}
    wait_until(lambda: not server.call("memory.get", **read)["found"], READY_TIMEOUT_S)


WAYS = [delete, redact, delete_version, expire]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_is_gone_is_found_by_nothing(server: Server, way: Callable[[Server, str], None]) -> None:
    namespace = f"deletion-{way.__name__}"
    server.call("memory.set", namespace=namespace, agent="a", memory_key="gone", value=SECRET)
    for number in range(8):
        server.call(
            "memory.set", namespace=namespace, agent="a", memory_key=f"live{number}", value=f"walrus fact {number}"
        )
    found = server.call("search.query", namespace=namespace, query="walrus password plumbago", explain=True)
    assert "gone" in [hit["memory_key"] for hit in found["memory"]["results"]]
    way(server, namespace)
    for query in ("walrus password plumbago", "plumbago", MEANING):
        for op, extra in (("memory.search", {"top_k": 5}), ("search.query", {"top_k": 5, "explain": True})):
            answer = server.call(op, namespace=namespace, query=query, **extra)
            assert "plumbago" not in json.dumps({**answer, "query": ""}), (op, query)
    filled = server.call("memory.search", namespace=namespace, query="walrus", top_k=8)
    assert len(filled["results"]) == 8
    for op, extra in (
        ("memory.get", {"memory_key": "gone"}),
        ("memory.list", {"contains": "plumbago"}),
        ("memory.list", {}),
        ("profile.render", {}),
    ):
        assert "plumbago" not in json.dumps(server.call(op, namespace=namespace, agent="a", **extra)), op


def test_redacted_bytes_leave_the_files(tmp_path: Path) -> None:
    home = tmp_path / "home"
    words = ("xylopyrography", "quattuordecillion")
    with running(home) as server:
        for turn in range(3):
            server.call(
                "memory.set", namespace="n", agent="a", memory_key="k", value=f"{words[0]} {words[1]} version {turn}"
            )
        for number in range(50):
            server.call("memory.set", namespace="n", agent="a", memory_key=f"o{number}", value=f"other {number}")
        server.call("search.query", namespace="n", query=words[0])
        server.call("memory.redact", namespace="n", agent="a", memory_key="k")
        assert server.call("memory.history", namespace="n", agent="a", memory_key="k")["versions"]
        server.stop()
    stored = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    for word in words:
        assert word.encode() not in stored
        assert word[4:].encode() not in stored


def test_a_replaced_section_is_not_found_by_its_old_words(server: Server) -> None:
    where = {"namespace": "deletion-section", "agent": "a", "label": "notes"}
    server.call("profile.set", **where, value="The gnomon casts a shadow. She likes tea.")
    server.call("profile.replace", **where, old="The gnomon casts a shadow. ", new="")
    found = server.call("search.query", namespace=where["namespace"], query="gnomon")
    assert found["profile"]["sections"] == [] or "gnomon" not in json.dumps(found["profile"])
