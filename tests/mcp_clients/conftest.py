"""A real server, and the clients that `setup.py` installed."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from running import Server, running

HERE = Path(__file__).parent
PLACE = HERE.parents[1] / ".venvs"
CLIENT_TIMEOUT_S = 180

SaidBy = Callable[..., dict[str, Any]]
RunNode = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for a single user on an empty store."""
    if not (PLACE / "node_clients" / ".installed").exists():
        pytest.fail("the clients are not installed; run tests/mcp_clients/setup.py")
    with running(tmp_path_factory.mktemp("home")) as started:
        yield started


def _said_by(client: str, script: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a script prints under a client's own Python, as JSON."""
    python = PLACE / client / "bin" / "python"
    # Deprecations inside the clients are theirs to mend.
    done = subprocess.run(
        [str(python), "-W", "ignore", str(HERE / "scripts" / script), *arguments],
        capture_output=True,
        text=True,
        timeout=CLIENT_TIMEOUT_S,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return said


def _node(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a program of the Node clients under the Node that was installed with them."""
    binaries = PLACE / "node" / "bin"
    return subprocess.run(
        [str(binaries / "node"), str(PLACE / "node_clients" / "node_modules" / ".bin" / program), *arguments],
        capture_output=True,
        text=True,
        timeout=CLIENT_TIMEOUT_S,
        check=False,
        env={**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"},
    )


@pytest.fixture(name="said_by")
def _said_by_fixture() -> SaidBy:
    return _said_by


@pytest.fixture(name="node")
def _node_fixture() -> RunNode:
    return _node
