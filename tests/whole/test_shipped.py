"""A server as it is shipped: what other tests set, so that a slow machine does not fail them, is left as it is."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from loom.config import Settings
from running import Server, running, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WAIT_S = 60.0
SHIPPED = {name: str(Settings.model_fields[name].default) for name in ("leg_timeout_ms", "synchronous")}
FAILURE = """The kettle does not boil.
Traceback (most recent call last):
  File "/srv/kettles/boil.py", line 2, in boil
    heat(kettle)
ValueError: no kettle
"""


def repository(root: Path) -> Path:
    """A checked-out repository that knows where it comes from."""
    root.mkdir()
    (root / "boil.py").write_text('def boil(kettle):\n    """Boil the kettle."""\n    heat(kettle)\n')
    for command in (["init", "-q"], ["remote", "add", "origin", "git@github.com:acme/kettles.git"]):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)
    return root


def fill(server: Server, root: Path) -> None:
    """Something about kettles in every plane."""
    where = {"namespace": "works", "agent": "a"}
    server.call("profile.set", **where, label="kettles", value="boils them at noon")
    server.call("memory.set", **where, memory_key="kettle", value="The kettle boils at ninety degrees up here.")
    server.call("knowledge.add", **where, uri="kettle.md", text="# Kettles\n\nA kettle boils in four minutes.\n")
    said = [{"role": "user", "content": "Why does the kettle not boil?"}]
    server.call("conversation.append", **where, session="noon", messages=said)
    address = "https://github.com/acme/kettles/issues/1"
    issue = {"number": 1, "title": "The kettle does not boil", "body": FAILURE, "state": "OPEN", "url": address}
    server.call("tracker.import", namespace="bugs", items=[issue])
    server.call("code.index", namespace="works", source=str(root))


def test_every_plane_of_a_small_store_answers_in_time(tmp_path: Path, store: Mapping[str, str]) -> None:
    with running(tmp_path / "home", **SHIPPED, **store) as server:
        fill(server, repository(tmp_path / "kettles"))
        wait_until(lambda: server.call("code.index_status", namespace="works")["state"] == "ready", WAIT_S)
        for org in ("dev", "code", "tracker"):
            wait_until(lambda org=org: server.call("ops.health", org=org)["jobs_waiting"] == 0, WAIT_S)
        answer: dict[str, Any] = {}

        def is_whole() -> bool:
            answer.update(server.call("search.query", namespace="works", agent="a", query=FAILURE, explain=True))
            return answer["degraded"] == []

        # Asked again where the machine itself stood still for longer than a plane has.
        wait_until(is_whole, WAIT_S)
        for plane in ("memory", "knowledge", "conversations"):
            assert answer[plane]["results"], plane
        assert answer["profile"]["sections"]
        assert answer["tracker"]["candidates"]
