"""A real Loom server in a process of its own, for tests of the whole."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
LEG_TIMEOUT_MS = 60_000
"""So that no plane is left out of an answer because the machine was busy."""

PORTS_EACH = 500
"""Ports of one test process, that no other one of its run hands out."""

PROCESSES_MAX = 25
"""Processes of a run that have ports of their own; further ones share."""

PORTS_FROM = 20_000 + PORTS_EACH * (
    int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PROCESSES_MAX
)
"""All are below 32,768, from where on Linux gives them to connections and to listeners that name none."""

_PLACES = itertools.count(os.getpid())


@dataclass
class Server:
    """A server process and how to call it."""

    url: str
    process: subprocess.Popen[str]
    token: str | None = None
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = self.client()

    def client(self, token: str | None = None) -> httpx.Client:
        """A new HTTP client; close it or not, the test ends soon."""
        bearer = token or self.token
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    def call(self, op: str, /, **args: object) -> dict[str, Any]:
        """The answer of one operation; a refusal fails the test."""
        answer = self.http.post(f"/v1/{op}", json=args)
        assert answer.status_code == 200, f"{op}: {answer.status_code} {answer.text[:500]}"
        return answer.json()

    def kill(self) -> None:
        """Stop the process as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(STOP_TIMEOUT_S)

    def stop(self) -> int:
        """Ask it to stop; the exit code."""
        self.process.terminate()
        return self.process.wait(STOP_TIMEOUT_S)


def free_port() -> int:
    """A port that nothing listens on, and that this run hands out to nobody else.

    Another run on the same machine has the same ports; each process begins at a place of its own among them, so that
    two seldom want one at the same moment.
    """
    for place in itertools.islice(_PLACES, PORTS_EACH):
        port = PORTS_FROM + place % PORTS_EACH
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


def spawn(home: Path, settings: Mapping[str, str]) -> tuple[str, subprocess.Popen[str]]:
    """Start `loom serve` on the store in `home`; its URL and process, not waited for.

    Its planes have long to answer, and its store survives its own death. One that is to survive a power cut as well
    says `LOOM_SYNCHRONOUS` FULL (the disk is slow), and one that is to be as it is shipped says so of both.
    """
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOM_")}
    environment = kept | {
        "LOOM_HOME": str(home),
        "LOOM_LOG_LEVEL": "warning",
        "LOOM_LEG_TIMEOUT_MS": str(LEG_TIMEOUT_MS),
        "LOOM_SYNCHRONOUS": "NORMAL",
        **settings,
    }
    log = (home.parent / f"{home.name}-{port}.log").open("w", encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "loom", "serve", "--port", str(port)],
        env=environment,
        stdout=log,
        stderr=subprocess.STDOUT,
        text=True,
    )
    log.close()
    return f"http://127.0.0.1:{port}", process


def wait_ready(url: str, process: subprocess.Popen[str]) -> None:
    """Until `/readyz` says yes; fails when the process ends or the time is over."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    with httpx.Client(timeout=2) as http:
        while time.monotonic() < deadline:
            assert process.poll() is None, f"the server ended with code {process.returncode}"
            try:
                if http.get(f"{url}/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
    raise AssertionError("the server was not ready in time")


def wait_until(condition: Callable[[], bool], timeout_s: float) -> None:
    """Until the condition holds; fails when the time is over."""
    deadline, nothing = time.monotonic() + timeout_s, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not come to hold in time"
        nothing.wait(0.1)


@contextmanager
def running(home: Path, **settings: str) -> Generator[Server]:
    """A ready server on the store in `home`; `LOOM_*` settings by their short names."""
    home.mkdir(parents=True, exist_ok=True)
    url, process = spawn(home, {f"LOOM_{name.upper()}": value for name, value in settings.items()})
    server = None
    try:
        wait_ready(url, process)
        server = Server(url, process)
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
        if server is not None:
            server.http.close()
