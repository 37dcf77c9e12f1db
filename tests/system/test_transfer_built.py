"""What an import makes again, files of before, and values that are too long."""

from concurrent.futures import Executor
from pathlib import Path

import pytest

from fakes import ORG, Clock, Core
from filled import Line, exported, imported, whole_core, with_part
from loom.storage.interface import Database


@pytest.fixture
def core(database: Database, clock: Clock, pool: Executor, tmp_path: Path) -> Core:
    return whole_core(tmp_path / "home", database, clock, pool)


def test_structured_profiles_are_built_again(core: Core) -> None:
    schema = {"type": "object", "properties": {"diet": {"type": "string", "description": "What the user eats."}}}
    core.call("profile.schema_set", json_schema=schema)
    core.call("memory.set", memory_key="diet", value="vegan", user_id="ann")
    core.clock.step(minutes=5)
    core.drain()
    assert core.call("profile.structured", user_id="ann")["profile"]["diet"] == "vegan"
    lines = exported(core, ORG)
    assert [line["kind"] for line in lines] == ["namespace", "memory", "profile_schema"]
    assert imported(core, lines, "there")["imported"] == 3
    core.clock.step(minutes=5)
    core.drain("there")
    assert core.call("profile.structured", org="there", user_id="ann")["profile"]["diet"] == "vegan"
    core.call("profile.schema_delete")
    core.clock.step(seconds=1)
    assert imported(core, exported(core, ORG), "there")["refused"] == []
    assert not core.call("profile.schema_get", org="there")["found"]


def test_lines_of_before_still_go_in(core: Core) -> None:
    old: list[Line] = [
        {
            "kind": "namespace",
            "name": "local",
            "namespace_kind": "memory",
            "description": "d",
            "created_at": "2026-01-01T00:00:00Z",
        },
        {
            "kind": "memory",
            "memory_id": "mem_188a0c1f5c2d8000",
            "namespace": "local",
            "agent": "claude",
            "user_id": "-",
            "memory_key": "k",
            "status": "live",
            "version_text": "1768467600000000000",
            "expires_at": None,
            "ended_at": None,
            "pinned": False,
            "lock_mode": "",
            "lock_reason": "",
            "versions": [
                {
                    "version_text": "1768467600000000000",
                    "status": "live",
                    "session_id": "-",
                    "run_id": "-",
                    "has_value": True,
                    "value": "tea",
                    "content_sha256": "2a7b8bd1a7d3f5e8d86a3f4f6ed6b0a1",
                    "memory_type": "semantic",
                    "created_at": "2026-01-15T09:00:00Z",
                }
            ],
        },
    ]
    refused = imported(core, old, ORG)["refused"]
    assert [one["reason"] for one in refused] == ["versions: content_sha256 is not the hash of the value"]
    made = core.call("memory.set", org="x", memory_key="h", value="tea")["content_sha256"]
    old[1]["versions"][0]["content_sha256"] = made
    answer = imported(core, old, ORG)
    assert (answer["imported"], answer["unchanged"], answer["refused"]) == (1, 1, [])
    assert core.call("memory.get", memory_key="k")["value"] == "tea"


def test_a_value_over_the_cap_is_told_as_a_set_tells_it(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="tea")
    line = exported(core, ORG)[1]
    long = with_part(line, "versions", {"value": "x" * 262_143})
    [refusal] = imported(core, [long], "there")["refused"]
    assert refusal["code"] == "TOO_LONG"
    assert "262145 characters" in refusal["reason"]
