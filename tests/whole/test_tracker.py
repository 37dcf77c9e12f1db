"""Issues go in over HTTP, a failure is recognised in its repository's code scope, and nothing that was kept is lost."""

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from lease_kit import end_leases

from running import Server, running, spawn, wait_ready, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

POLLS_MAX = 600
POLL_S = 0.1
TRACE = "ValueError: no kettle\n"
FAILURE = f"""Traceback (most recent call last):
  File "/srv/kettles/boil.py", line 12, in boil
    heat(kettle)
  File "/srv/kettles/heat.py", line 3, in heat
    raise ValueError("no kettle")
{TRACE}"""


def issue(number: int, title: str, body: str = "") -> dict[str, Any]:
    address = f"https://github.com/Acme/Kettles/issues/{number}"
    return {"number": number, "title": title, "body": body, "state": "OPEN", "labels": [], "url": address}


def repository(root: Path) -> Path:
    """A checked-out repository that knows where it comes from."""
    root.mkdir()
    (root / "boil.py").write_text("def boil(kettle):\n    heat(kettle)\n")
    for command in (["init", "-q"], ["remote", "add", "origin", "git@github.com:acme/kettles.git"]):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)
    return root


def indexed(server: Server, namespace: str) -> None:
    """Wait until the repository is indexed."""
    for _ in range(POLLS_MAX):
        state = server.call("code.index_status", namespace=namespace)["state"]
        assert state != "failed"
        if state == "ready":
            return
        with suppress(subprocess.TimeoutExpired):
            server.process.wait(POLL_S)
    raise AssertionError("never ready")


def test_a_failure_in_a_code_scope_is_recognised(tmp_path: Path) -> None:
    with running(tmp_path / "home", embedder="hashing") as server:
        older = FAILURE.replace("line 12", "line 99").replace("/srv/", "/home/ada/")
        items = [issue(1, "Boiling without a kettle fails", older), issue(2, "Tea is too strong", "Steep it less.")]
        assert server.call("tracker.import", namespace="bugs", items=items)["repository"] == "acme/kettles"
        server.call("code.index", namespace="works", source=str(repository(tmp_path / "kettles")))
        indexed(server, "works")
        verdict = server.call("search.query", namespace="works", query=f"boil fails\n{FAILURE}")["tracker"]
        best = verdict["candidates"][0]
        assert (verdict["verdict"], verdict["namespace"], best["issue"]["number"]) == ("duplicate", "bugs", 1)
        assert best["evidence"]["frames"] == 1.0
        assert "tracker" not in server.call("search.query", namespace="works", query="how is tea made")
        assert "tracker" not in server.call("search.query", query=FAILURE)
        pack = server.call("context.pack", namespace="works", query=f"boil fails\n{FAILURE}")
        assert "Boiling without a kettle fails" in pack["text"]
        server.call("tracker.delete", namespace="bugs", number=1)
        after = server.call("search.query", namespace="works", query=f"boil fails\n{FAILURE}")["tracker"]
        assert (after["verdict"], [one["issue"]["number"] for one in after["candidates"]]) == ("new", [2])


def test_issues_survive_a_power_cut_and_get_their_vectors_after_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    url, process = spawn(home, {"LOOM_EMBEDDER": "hashing", "LOOM_SYNCHRONOUS": "FULL"})
    wait_ready(url, process)
    server = Server(url, process)
    items = [issue(number, f"Kettle {number} leaks", f"word{number}") for number in range(1, 401)]
    assert server.call("tracker.import", namespace="bugs", items=items)["added"] == 400
    server.kill()
    server.http.close()
    end_leases(home, "tracker")
    with running(home, embedder="hashing", synchronous="FULL") as again:
        answer = again.call("tracker.search", namespace="bugs", query="word321")
        assert answer["results"][0]["issue"]["number"] == 321
        assert again.call("tracker.import", namespace="bugs", items=items)["unchanged"] == 400
        wait_until(lambda: again.call("ops.health", org="tracker")["jobs_waiting"] == 0, POLLS_MAX * POLL_S)
        hits = again.call("tracker.search", namespace="bugs", query="word399", top_k=5)["results"]
        assert all(hit["similarity"] is not None for hit in hits)
        again.call("namespace.delete", org="tracker", name="bugs", confirm="bugs")
        assert not again.call("tracker.get", namespace="bugs", number=321)["found"]
        assert again.call("tracker.search", namespace="bugs", query="word321")["results"] == []
