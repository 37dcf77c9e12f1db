"""Schemathesis over the server's own description: no request may end in a 500."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from running import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_no_request_ends_in_a_500(tmp_path: Path, store: Mapping[str, str]) -> None:
    with running(
        tmp_path / "home", embedder="hashing", reads_per_minute="1000000", writes_per_minute="1000000", **store
    ) as server:
        # The first token ends access without one, which would hide all operations from the fuzzer.
        token = server.call("token.mint", name="fuzz", role="admin")["token"]
        run = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")),
                "run",
                f"{server.url}/openapi.json",
                f"--header=Authorization: Bearer {token}",
                "--checks=not_a_server_error,status_code_conformance,content_type_conformance,"
                "response_schema_conformance",
                "--phases=examples,coverage,fuzzing",
                "--max-examples=25",
                "--seed=1",
                "--generation-database=none",
                "--generation-allow-x00=false",
                "--workers=2",
                "--no-color",
            ],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
            cwd=tmp_path,
        )
        assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
        with server.client(token) as http:
            health = http.post("/v1/ops.health", json={})
        assert health.json()["status"] == "ok"
