"""The server's process: that it comes up, and how it ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from running import free_port

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


@contextmanager
def served(*arguments: str) -> Generator[tuple[str, "subprocess.Popen[bytes]"]]:
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    process = subprocess.Popen([sys.executable, str(HERE / "serve_kit.py"), str(port), *arguments], env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(url)
        yield url, process
    finally:
        process.kill()
        process.wait(60)


def wait_until_up(url: str) -> None:
    deadline_s = time.monotonic() + 60
    while True:
        try:
            httpx.get(f"{url}/healthz", timeout=1)
        except httpx.TransportError:
            assert time.monotonic() < deadline_s, "the server did not come up"
        else:
            return


def stopped_during_a_call(*arguments: str) -> tuple[httpx.Response, int]:
    """The answer to a call that runs when the signal comes, and the process's exit code."""
    answers: list[httpx.Response] = []
    with served(*arguments) as (url, process):

        def call() -> None:
            answers.append(httpx.post(f"{url}/v1/note.trap", json={"key": "wait"}, timeout=60))

        thread = threading.Thread(target=call)
        thread.start()
        deadline_s = time.monotonic() + 30
        while "loom_calls_inside 2.0" not in httpx.get(f"{url}/metrics", timeout=30).text:
            assert time.monotonic() < deadline_s, "the call did not begin"
        os.kill(process.pid, signal.SIGTERM)
        code = process.wait(60)
        thread.join(60)
    return answers[0], code


def test_a_call_that_runs_comes_to_its_end() -> None:
    answer, _ = stopped_during_a_call("20", "letgo")
    assert answer.status_code == 200
    assert answer.json()["key"] == "wait"


def test_a_call_that_does_not_end_is_told_that_the_server_stopped() -> None:
    answer, _ = stopped_during_a_call("1")
    assert answer.status_code == 503
    assert answer.json()["detail"]["code"] == "UNAVAILABLE"
    assert answer.headers["x-request-id"]


def test_answers_name_no_server_software_and_refuse_what_is_too_large_before_it_is_sent() -> None:
    with served("5") as (url, _):
        answer = httpx.post(f"{url}/v1/note.get", content=b"a" * 20_000_000, timeout=60)
        assert answer.status_code == 413
        assert "server" not in answer.headers
