"""The command line and the client beside a real server."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loom.client import Loom
from loom.errors import NotFound, Unauthenticated
from running import Server, free_port, running

pytestmark = pytest.mark.slow

TIMEOUT_S = 60
HELP_CPU_S_MAX = 0.5
ENSURE = """
from loom.edges.cli.launch import ensure_server
from loom.edges.cli.shell import load_settings
print(ensure_server(load_settings()))
"""


def environment(home: Path, **settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOM_")}
    return kept | {"LOOM_HOME": str(home), "LOOM_EMBEDDER": "hashing"} | settings


def loom(home: Path, *argv: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "loom", *argv],
        env=environment(home, **settings),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path / "home", embedder="hashing") as ready:
        yield ready


def test_help_is_quick(tmp_path: Path) -> None:
    before = os.times()
    done = loom(tmp_path, "--help")
    after = os.times()
    assert done.returncode == 0
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    assert cpu_s < HELP_CPU_S_MAX


def test_commands_work_beside_the_server_and_through_it(server: Server, tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = loom(home, "call", "memory.set", "--memory-key", "team/tea", "--value", "green", "--json")
    assert (made.returncode, made.stderr) == (0, "")
    read = loom(home, "call", "memory.get", "--memory-key", "team/tea", "--json", LOOM_URL=server.url)
    assert json.loads(read.stdout)["value"] == "green"
    assert json.loads(read.stdout)["version"] == json.loads(made.stdout)["version"]


def test_the_first_token_ends_calls_without_one(server: Server, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Loom(server.url) as client:
        client.memory.set(memory_key="a", value={"b": [1]}, namespace="team")
        minted = loom(home, "token", "mint", "ann", "--role", "writer", "--namespace", "team")
        assert minted.returncode == 0, minted.stderr
        token = minted.stdout.strip()
        deadline_s = time.monotonic() + TIMEOUT_S
        while True:
            try:
                client.memory.get(memory_key="a", namespace="team")
            except Unauthenticated:
                break
            assert time.monotonic() < deadline_s, "calls without a token are still served"
    with Loom(server.url, token, agent="helper") as client:
        assert client.memory.get(memory_key="a").value == {"b": [1]}
        with pytest.raises(NotFound):
            client.memory.delete(memory_key="none")
    listed = loom(home, "token", "list", "--json")
    (kept,) = json.loads(listed.stdout)["tokens"]
    assert token not in listed.stdout
    assert loom(home, "token", "revoke", kept["token_id"]).returncode == 0


def test_export_and_import_keep_history(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    for value in ("green", "black"):
        assert loom(first, "call", "memory.set", "--memory-key", "tea", "--value", value).returncode == 0
    assert loom(first, "export", "all.jsonl").returncode == 0
    moved = loom(second, "import", str(first / "all.jsonl"), "--json")
    assert json.loads(moved.stdout)["refused"] == []
    assert json.loads(loom(second, "import", str(first / "all.jsonl"), "--json").stdout)["imported"] == 0
    assert loom(second, "export", "all.jsonl").returncode == 0
    assert (second / "all.jsonl").read_text() == (first / "all.jsonl").read_text()


def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    with running(tmp_path / "home", embedder="hashing") as server:
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(TIMEOUT_S) == 130
    (log,) = tmp_path.glob("*.log")
    assert "Traceback" not in log.read_text("utf-8")


def test_two_at_once_start_one_server(tmp_path: Path) -> None:
    home = tmp_path / "home"
    port = free_port()
    both = [
        subprocess.Popen(
            [sys.executable, "-c", ENSURE],
            env=environment(home, LOOM_PORT=str(port)),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        found = [process.communicate(timeout=TIMEOUT_S)[0].strip() for process in both]
        assert found == [f"http://127.0.0.1:{port}"] * 2
    finally:
        started = re.findall(r"process (\d+)", (home / "server.log").read_text("utf-8"))
        for process_id in started:
            os.kill(int(process_id), signal.SIGTERM)
    assert len(started) == 1


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    command = f"{sys.executable} -m loom call --json | head -c 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert (done.stdout, done.stderr) == ("[", "")
