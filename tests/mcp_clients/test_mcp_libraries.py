"""Client libraries that agents are built with, each as its users run it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from running import Server

pytestmark = [pytest.mark.slow, pytest.mark.clients, pytest.mark.timeout(300)]

SaidBy = Callable[..., dict[str, Any]]


def check(said: dict[str, Any]) -> None:
    """The same for every client: tools listed, a write answered with structure, an error that names its field."""
    assert {"loom_memory_set", "loom_search", "loom_op"} <= set(said["tools"])
    answer = said["answer"]
    assert answer["ignored_args"] == ["zebra"]
    assert len(answer["content_sha256"]) == 64
    assert said["failed"] is True
    assert '"VALIDATION"' in said["error"]
    assert "memory_key" in said["error"]


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
def test_the_protocols_own_library(server: Server, said_by: SaidBy, mode: str) -> None:
    check(said_by("mcp", "with_mcp.py", f"{server.url}/mcp", mode))


def test_langchain(server: Server, said_by: SaidBy) -> None:
    check(said_by("langchain", "with_langchain.py", f"{server.url}/mcp"))


def test_openai_agents_also_with_every_field_sent(server: Server, said_by: SaidBy) -> None:
    said = said_by("openai", "with_openai.py", f"{server.url}/mcp")
    check(said)
    assert said["strict_failed"] is False, said["strict_text"]


def test_pydantic_ai(server: Server, said_by: SaidBy) -> None:
    check(said_by("pydantic", "with_pydantic.py", f"{server.url}/mcp"))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_bridge_carries_the_clients_name(server: Server, said_by: SaidBy, tmp_path: Path, mode: str) -> None:
    said = said_by(
        "mcp",
        "with_stdio.py",
        mode,
        sys.executable,
        "-m",
        "loom",
        "mcp",
        LOOM_HOME=str(tmp_path),
        LOOM_PORT=server.url.rpartition(":")[2],
        CLAUDE_CODE_SESSION_ID=f"talk-{mode}",
    )
    check(said)
    assert said["answer"]["agent"] == "codex"
