"""Documents with the real model and a real server: search.query, large files, a crash in the middle."""

import base64
import time
from pathlib import Path
from typing import Any

import pytest

from running import Server, running

pytestmark = pytest.mark.slow

READY_TIMEOUT_S = 60.0
PART_BYTES = 2 * 1024 * 1024
LARGE_BYTES = 50 * 1024 * 1024
RESIDENT_MB_MAX = 900

KITCHEN = "# Office\n\n## Kitchen\n\nThe kettle is in the second cupboard, beside the sugar.\n"


def wait_for(server: Server, namespace: str, **wanted: int) -> dict[str, Any]:
    """Until knowledge.list counts so many documents in each state."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        listed = server.call("knowledge.list", namespace=namespace)
        if all(listed[state] == count for state, count in wanted.items()):
            return listed
        assert time.monotonic() < deadline, listed


def large_text(sections: int) -> str:
    return "\n\n".join(f"## Part {n}\n\nThe walrus of part {n} eats {n % 7} clams a day." for n in range(sections))


def test_search_query_answers_from_documents_and_holds_back_what_is_far(server: Server) -> None:
    where = {"namespace": "knowledge-query", "namespace_scope": "this"}
    server.call("knowledge.add", namespace="knowledge-query", uri="office", text=KITCHEN)
    server.call("knowledge.add", namespace="knowledge-query", uri="sea", text="# Sea\n\nWalruses eat clams.")
    near = server.call("search.query", **where, query="where can I find the thing to boil water in?")
    assert near["knowledge"]["results"][0]["headings"] == ["Office", "Kitchen"]
    far = "SELECT * FROM pg_stat_activity WHERE state = 'idle in transaction'"
    held = server.call("search.query", **where, query=far)
    assert held["knowledge"]["results"] == []
    assert held["withheld"]["knowledge"] == 2
    assert "passages" in held["withheld"]["reason"]
    explained = server.call("search.query", **where, query=far, explain=True)
    assert len(explained["knowledge"]["results"]) == 2
    assert all(hit["below_floor"] for hit in explained["knowledge"]["results"])
    assert "withheld" not in explained


def test_deleted_text_is_in_no_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running(home) as server:
        server.call(
            "knowledge.add", namespace="n", uri="secret", text="# A\n\nThe xylopyrography is quattuordecillion."
        )
        for number in range(20):
            server.call("knowledge.add", namespace="n", uri=f"o{number}", text=f"other {number}")
        assert server.call("knowledge.search", namespace="n", query="xylopyrography")["results"]
        server.call("knowledge.delete", namespace="n", uri="secret")
        server.stop()
    stored = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    for word in (b"xylopyrography", b"quattuordecillion"):
        assert word not in stored


@pytest.mark.timeout(300)
def test_indexing_goes_on_after_a_crash(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running(home, embedder="hashing", synchronous="FULL") as server:
        made = server.call("knowledge.add", namespace="n", uri="long", text=large_text(9_000))
        assert made["state"] == "pending"
        server.kill()
    with running(home, embedder="hashing", synchronous="FULL") as server:
        listed = wait_for(server, "n", ready=1)
        assert listed["items"][0]["passage_count"] == 9_000
        hits = server.call("knowledge.search", namespace="n", query="walrus of part 8765", top_k=1)["results"]
        assert hits[0]["headings"] == ["Part 8765"]


@pytest.mark.timeout(600)
def test_fifty_megabytes_go_in_with_bounded_memory(tmp_path: Path) -> None:
    line = "The walrus number {} eats clams all day, and then it sleeps a while on the ice.\n"
    content = "".join(line.format(number) for number in range(LARGE_BYTES // len(line))).encode()
    with running(tmp_path / "home", embedder="hashing", log_level="error") as server:
        upload = ""
        for part, start in enumerate(range(0, len(content), PART_BYTES)):
            piece = base64.b64encode(content[start : start + PART_BYTES]).decode("ascii")
            upload = server.call("knowledge.upload", namespace="n", upload_id=upload, part=part, content_base64=piece)[
                "upload_id"
            ]
        made = server.call("knowledge.add", namespace="n", upload_id=upload, file_name="large.txt", uri="large")
        assert (made["state"], made["byte_count"]) == ("pending", len(content))
        last = made["line_count"]
        got = server.call("knowledge.get", namespace="n", uri="large", first_line=last, line_count=1)
        assert got["text"] == line.format(last - 1).strip()
        peak = Path(f"/proc/{server.process.pid}/status").read_text("ascii").split("VmHWM:")[1].split()[0]
        assert int(peak) / 1024 < RESIDENT_MB_MAX
        assert server.call("knowledge.delete", namespace="n", uri="large")["revisions_deleted"] == 1
        assert server.call("knowledge.search", namespace="n", query="walrus")["results"] == []
