"""A repository goes in over HTTP, is found in a code scope from another org, and survives a power cut meanwhile."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from lease_kit import end_leases

from running import Server, running, spawn, wait_ready

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

POLLS_MAX = 3_000
READY_TIMEOUT_S = 60.0


def repository(root: Path, files: int) -> Path:
    """A folder of Python files with a README."""
    for number in range(files):
        folder = root / f"part{number // 50}"
        folder.mkdir(parents=True, exist_ok=True)
        body = "".join(
            f"def step_{number}_{place}(x):\n    return step_{number}_{place - 1}(x)\n\n\n" for place in range(30)
        )
        (folder / f"m{number}.py").write_text(body)
    (root / "README.md").write_text("# Kettle works\n\nThe night shift descales every kettle with lemon juice.\n")
    return root


def until(server: Server, namespace: str, state: str) -> dict[str, Any]:
    """The status once it has a state."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        status = server.call("code.index_status", namespace=namespace)
        if status["state"] in (state, "failed"):
            return status
        with suppress(subprocess.TimeoutExpired):
            server.process.wait(0.1)
    raise AssertionError(f"never {state}")


def asked(server: Server, namespace: str) -> dict[str, Any]:
    """A question about lemon juice."""
    return server.call("search.query", namespace=namespace, query="descale kettle lemon juice", explain=True)


def test_a_power_cut_while_indexing(tmp_path: Path) -> None:
    root = repository(tmp_path / "kettles", 600)
    home = tmp_path / "home"
    url, process = spawn(home, {"LOOM_EMBEDDER": "hashing", "LOOM_SYNCHRONOUS": "FULL"})
    wait_ready(url, process)
    server = Server(url, process)
    server.call("code.index", namespace="kettles", source=str(root), vectors=False)
    for _ in range(POLLS_MAX):
        if server.call("code.index_status", namespace="kettles")["files_done"] > 0:
            break
    before = server.call("code.index_status", namespace="kettles")
    server.kill()
    server.http.close()
    end_leases(home, "code")
    with running(home, embedder="hashing", synchronous="FULL") as again:
        status = until(again, "kettles", "ready")
        assert (status["state"], status["files_done"], status["problem"]) == ("ready", 601, ""), before
        assert status["symbols"] == 600 * 30
        answer = again.call("code.symbol", namespace="kettles", name="step_599_7")
        assert [one["qualified_name"] for one in answer["definitions"][0]["callers"]] == ["step_599_8"]


def test_a_code_scope_from_another_org(tmp_path: Path) -> None:
    root = repository(tmp_path / "kettles", 3)
    with running(tmp_path / "home", embedder="hashing") as server:
        server.call("code.index", namespace="kettles", source=str(root))
        assert until(server, "kettles", "ready")["repository"] == "kettles"
        server.call(
            "memory.set", namespace="kettles", agent="a", memory_key="decision/descaling", memory_type="decision",
            value="We descale with lemon juice and never with vinegar.",
        )  # fmt: skip
        found = asked(server, "kettles")
        for _ in range(POLLS_MAX):
            if found["knowledge"]["results"]:
                break
            found = asked(server, "kettles")
        assert found["knowledge"]["results"][0]["uri"] == "README.md"
        assert found["memory"]["results"][0]["memory_key"] == "decision/descaling"
        assert asked(server, "garden")["knowledge"]["results"] == []
        token = server.call("token.mint", name="w", role="writer", org="dev")["token"]
        with server.client(token) as http:
            refused = http.post("/v1/code.index", json={"namespace": "x", "source": str(root)})
            assert refused.status_code == 403
            own = http.post("/v1/code.search", json={"namespace": "kettles", "query": "step"})
            assert own.status_code == 404  # a token's org is its own for every plane


def test_a_token_indexes_the_folders_that_are_open(tmp_path: Path) -> None:
    opened, outside = repository(tmp_path / "open" / "kettles", 1), repository(tmp_path / "outside", 1)
    with running(tmp_path / "home", embedder="hashing", code_folders=str(tmp_path / "open")) as server:
        server.token = server.call("token.mint", name="boss", role="admin")["token"]
        server.http.headers["Authorization"] = f"Bearer {server.token}"
        sources = {"outside": str(outside), "inside": f"https://127.0.0.1:{server.http.base_url.port}/a.git"}
        for namespace, source in sources.items():
            answer = server.http.post("/v1/code.index", json={"namespace": namespace, "source": source})
            assert (answer.status_code, answer.json()["detail"]["field"]) == (403, "source"), answer.text
        server.call("code.index", namespace="kettles", source=str(opened), vectors=False)
        assert until(server, "kettles", "ready")["files_total"] == 2
        command = [sys.executable, "-m", "loom", "code", "index", str(outside), "--no-wait", "--json"]
        local = {"PATH": os.environ["PATH"], "LOOM_HOME": str(tmp_path / "home"), "LOOM_EMBEDDER": "hashing"}
        asked = subprocess.run(command, env=local, capture_output=True, text=True, timeout=60, check=False)
        assert asked.returncode == 0, asked.stderr
