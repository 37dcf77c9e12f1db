"""The protocol's own conformance suite and inspector, in both eras.

The baselines name the scenarios that need tools, resources or prompts made for
the suite, which a memory does not have. A scenario in a baseline that passes
fails the run as well.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from running import Server

pytestmark = [pytest.mark.slow, pytest.mark.clients, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
RunNode = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_conformance(server: Server, node: RunNode, tmp_path: Path, revision: str) -> None:
    baseline = HERE / f"baseline-{revision}.yml"
    done = node(
        "conformance",
        "server",
        "--url",
        f"{server.url}/mcp",
        "--requirements",
        revision,
        "--expected-failures",
        str(baseline),
        "-o",
        str(tmp_path),
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "dns-rebinding-protection" in done.stdout


def inspect(node: RunNode, server: Server, era: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    url = f"{server.url}/mcp?toolset=all"
    return node("mcp-inspector", "--cli", "--transport", "http", "--server-url", url, "--protocol-era", era, *arguments)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_finds_every_schema_portable(server: Server, node: RunNode, era: str) -> None:
    done = inspect(node, server, era, "--method", "tools/list", "--strict")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "loom_op" in done.stdout


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_calls_a_tool(server: Server, node: RunNode, era: str) -> None:
    def call(arguments: dict[str, str]) -> "subprocess.CompletedProcess[str]":
        return inspect(
            node,
            server,
            era,
            "--method",
            "tools/call",
            "--tool-name",
            "loom_memory_set",
            "--tool-args-json",
            json.dumps(arguments),
            "--format",
            "json",
            "-q",
        )

    done = call({"memory_key": f"inspector-{era}", "value": "tea"})
    assert done.returncode == 0, done.stderr[-3000:]
    assert "content_sha256" in json.loads(done.stdout)["result"]["structuredContent"]
    tool_error = 5
    assert call({"value": "tea"}).returncode == tool_error
