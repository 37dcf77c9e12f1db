"""A Loom server process for a benchmark: started, waited for, stopped."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import create_server

import httpx

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        url: where it listens.
        pid: its process.
        ready_s: seconds from its start until `/readyz` said yes.
    """

    url: str
    pid: int
    ready_s: float

    def resident_mb(self) -> float:
        """Resident memory of the process, in MB."""
        lines = Path(f"/proc/{self.pid}/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def free_port() -> int:
    """A port that nothing listens on now."""
    with create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextmanager
def running(home: Path, **settings: str) -> Iterator[Server]:
    """A server on the store in `home`, with settings given as `LOOM_*` values."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "LOOM_HOME": str(home), "LOOM_LOG_LEVEL": "warning"}
    environment |= {f"LOOM_{name.upper()}": value for name, value in settings.items()}
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "loom", "serve", "--port", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(process, url)
        yield Server(url, process.pid, time.perf_counter() - started)
    finally:
        process.terminate()
        process.wait(STOP_TIMEOUT_S)


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.perf_counter() + START_TIMEOUT_S
    while time.perf_counter() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the server stopped with code {process.returncode}; start it by hand to see why")
        try:
            if httpx.get(f"{url}/readyz", timeout=1).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.02)
    raise SystemExit(f"the server was not ready in {START_TIMEOUT_S:.0f} s")
