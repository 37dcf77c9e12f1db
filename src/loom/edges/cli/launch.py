"""Finds the server of this machine, and starts one in the background when there is none."""

import subprocess
import sys
import time
from pathlib import Path

import filelock
import httpx

from loom.config import Settings
from loom.edges.cli.problem import Problem

OK = 200
START_TIMEOUT_S = 60.0
PROBE_TIMEOUT_S = 2.0
PROBE_PAUSE_S = 0.1
LOG_NAME = "server.log"
LOCK_NAME = "start.lock"
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared, not bound


def server_url(settings: Settings) -> str:
    """Where the server of these settings answers."""
    if settings.url:
        return settings.url.rstrip("/")
    return local_url(settings.host, settings.port)


def local_url(host: str, port: int) -> str:
    """The URL under which this machine reaches a server that listens on `host`."""
    name = ANY_ADDRESS.get(host, host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def answers(url: str, path: str = "/readyz") -> bool:
    """Whether a server answers there with 200."""
    try:
        return httpx.get(url + path, timeout=PROBE_TIMEOUT_S, trust_env=False).status_code == OK
    except (httpx.HTTPError, httpx.InvalidURL):
        return False


def ensure_server(settings: Settings) -> str:
    """The URL of a ready server; one is started when none answers and the settings name no other machine's.

    Of several processes that ask at once, one starts the server and the others wait.

    Raises:
        Problem: no server is ready within a minute, or it ended.
    """
    url = server_url(settings)
    if answers(url):
        return url
    if settings.url:
        raise Problem(f"no Loom server answers at {url}")
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(settings.home / LOCK_NAME, timeout=START_TIMEOUT_S):
            if not answers(url):
                _start(settings, url)
    except filelock.Timeout:
        raise Problem(f"another process is starting the server at {url} and does not come to an end") from None
    except OSError as error:
        raise Problem(
            f"the home folder {settings.home} (LOOM_HOME) cannot be written: {error.strerror or error}"
        ) from None
    return url


def _start(settings: Settings, url: str) -> None:
    log_path = settings.home / LOG_NAME
    process = _spawn(settings, log_path)
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        if answers(url):
            return
        if process.poll() is not None and not answers(url, "/healthz"):
            raise Problem(f"the server did not start; {log_path} says why")
        time.sleep(PROBE_PAUSE_S)
    raise Problem(f"the server at {url} was not ready within {START_TIMEOUT_S:.0f} s; {log_path} says more")


def _spawn(settings: Settings, log_path: Path) -> subprocess.Popen[bytes]:
    """A server that outlives this process. It runs in the home folder, so that a project's `loom.toml` has no say."""
    command = [sys.executable, "-m", "loom", "serve", "--home", str(settings.home)]
    command += ["--host", settings.host, "--port", str(settings.port)]
    with log_path.open("ab") as log:
        return subprocess.Popen(  # noqa: S603  # our own program
            command,
            cwd=settings.home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
