"""Structured profiles in an export, what an import makes again, files of before, and values that are too long."""

from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

from fakes import ORG, Clock, Core
from filled import Line, exported, imported, whole_core, with_part
from loom.ledger.rules import DERIVED_KEY
from loom.storage.interface import Database


@pytest.fixture
def core(database: Database, clock: Clock, pool: Executor, tmp_path: Path) -> Core:
    return whole_core(tmp_path / "home", database, clock, pool)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "diet": {"type": "string", "description": "What the user eats."},
        "age": {"type": "integer", "description": "Age in years."},
    },
}
KEY = DERIVED_KEY


def settle(core: Core, org: str) -> None:
    core.clock.step(minutes=5)
    core.drain(org)


def with_profile(core: Core) -> None:
    """A user whose profile has two versions, each of two facts."""
    core.call("profile.schema_set", json_schema=SCHEMA)
    core.call("memory.set", memory_key="diet", value="vegan", user_id="ann")
    core.call("memory.set", memory_key="age", value=36, user_id="ann")
    settle(core, ORG)
    core.call("memory.set", memory_key="age", value=37, user_id="ann")
    settle(core, ORG)


def shown(core: Core, org: str) -> tuple[str, Any, Any]:
    answer = core.call("profile.structured", org=org, user_id="ann")
    return answer["status"], answer["profile"].get("diet"), answer["profile"].get("age")


def values(core: Core, org: str) -> list[Any]:
    """What the versions of the profile's row say, the newest first."""
    return [one["value"] for one in core.call("memory.history", org=org, memory_key=KEY, user_id="ann")["versions"]]


def profile_line(lines: list[Line]) -> Line:
    [line] = [line for line in lines if line.get("memory_key") == KEY]
    return line


def test_structured_profiles_go_with_their_history_and_are_built_anew(core: Core) -> None:
    with_profile(core)
    assert shown(core, ORG) == ("ready", "vegan", 37)
    lines = exported(core, ORG)
    assert [line["kind"] for line in lines] == ["namespace", *["memory"] * 3, "profile_schema"]
    answer = imported(core, lines, "there")
    assert (answer["imported"], answer["refused"]) == (5, [])
    assert values(core, "there") == values(core, ORG)
    # Nothing is shown of what a file says: what the facts say is.
    assert shown(core, "there") == ("stale", None, None)
    assert [line for line in exported(core, "there") if line["kind"] == "memory"] == [
        line for line in lines if line["kind"] == "memory"
    ]
    settle(core, "there")
    assert shown(core, "there") == ("ready", "vegan", 37)
    assert len(values(core, "there")) == 3
    answer = imported(core, lines, "there")
    assert (answer["imported"], answer["refused"]) == (0, [])
    assert shown(core, "there") == ("ready", "vegan", 37)


def test_what_is_redacted_leaves_the_profile_that_was_imported(core: Core) -> None:
    with_profile(core)
    lines = exported(core, ORG)
    imported(core, lines, "there")
    core.call("memory.redact", org="there", memory_key="diet", user_id="ann")
    assert "vegan" not in str(exported(core, "there"))
    settle(core, "there")
    assert shown(core, "there") == ("ready", None, 37)
    # The same file, and a later one whose profile still tells it, do not bring it back.
    core.call("memory.set", memory_key="age", value=38, user_id="ann")
    settle(core, ORG)
    for later in (lines, exported(core, ORG)):
        answer = imported(core, later, "there")
        assert [one["reason"] for one in answer["refused"]] == ["memory_id: the memory was redacted here, and stays so"]
        assert "vegan" not in str(exported(core, "there"))
        settle(core, "there")
    assert shown(core, "there") == ("ready", None, 38)
    assert "vegan" not in str(exported(core, "there"))


def test_what_is_served_no_more_is_not_told_by_a_profile_that_was_imported(core: Core) -> None:
    """Nothing is known of what it was made of, so a fact that it may tell hides all of it."""
    with_profile(core)
    imported(core, exported(core, ORG), "there")
    core.clock.step(seconds=1)
    core.call("memory.set", org="there", memory_key="later", value="since then", user_id="ann")
    core.call("memory.delete", org="there", memory_key="later", user_id="ann")
    assert "vegan" in str(values(core, "there"))
    core.call("memory.update", org="there", memory_key="diet", user_id="ann", sensitivity="high")
    assert values(core, "there") == [{"diet": None, "age": None}] * 2
    settle(core, "there")
    assert [one["diet"] for one in values(core, "there")] == [None] * 3
    assert shown(core, "there") == ("ready", None, 37)


def test_one_version_that_is_deleted_for_good_leaves_it_too(core: Core) -> None:
    with_profile(core)
    core.call("memory.set", memory_key="diet", value="omnivore", user_id="ann")
    settle(core, ORG)
    lines = exported(core, ORG)
    imported(core, lines, "there")
    [_, first] = core.call("memory.history", org="there", memory_key="diet", user_id="ann")["versions"]
    core.call(
        "memory.delete_version", org="there", memory_key="diet", user_id="ann", version_text=first["version_text"]
    )
    assert "vegan" not in str(exported(core, "there"))
    settle(core, "there")
    assert shown(core, "there") == ("ready", "omnivore", 37)
    imported(core, lines, "there")
    assert "vegan" not in str(exported(core, "there"))


def test_a_redacted_profile_stays_away_after_an_import(core: Core) -> None:
    with_profile(core)
    core.call("memory.redact", memory_key=KEY, user_id="ann")
    imported(core, exported(core, ORG), "there")
    settle(core, "there")
    assert shown(core, "there") == ("pending", None, None)
    core.call("memory.set", org="there", memory_key="age", value=40, user_id="ann")
    settle(core, "there")
    assert shown(core, "there") == ("ready", "vegan", 40)


def test_a_profile_that_was_built_here_stays(core: Core) -> None:
    with_profile(core)
    core.call("profile.schema_set", org="there", json_schema=SCHEMA)
    core.call("memory.set", org="there", memory_key="diet", value="fish", user_id="ann")
    settle(core, "there")
    before = values(core, "there")
    answer = imported(core, [profile_line(exported(core, ORG))], "there")
    assert (answer["unchanged"], answer["refused"]) == (1, [])
    assert values(core, "there") == before


def test_a_profile_written_by_hand_is_never_shown_as_built(core: Core) -> None:
    with_profile(core)
    real = profile_line(exported(core, ORG))
    forged = real["versions"][0]
    value = forged["value"] | {"diet": "poison"}
    number = str(int(real["version_text"]) + 1)
    for built_at in (forged["valid_at"], "2026-03-01T12:00:00Z"):
        made = forged | {"version_text": number, "value": value, "valid_at": built_at}
        made["content_sha256"] = core.call("memory.set", org="x", memory_key="h", value=value)["content_sha256"]
        followed = [one | {"status": "superseded"} for one in real["versions"]]
        line = real | {"version_text": number, "versions": [made, *followed]}
        answer = imported(core, [line], ORG)
        assert answer["refused"] == []
        assert core.call("profile.structured", user_id="ann")["profile"]["diet"] != "poison"
        settle(core, ORG)
        assert shown(core, ORG) == ("ready", "vegan", 37)
        assert core.call("profile.evidence", user_id="ann")["status"] == "ready"


OTHER_FORMS: list[tuple[str, Callable[[Line], Line]]] = [
    ("agent", lambda line: line | {"agent": "claude"}),
    ("memory_key", lambda line: with_part(line, "versions", {"memory_type": "semantic"})),
    ("memory_type", lambda line: line | {"memory_key": "other"}),
    ("versions", lambda line: with_part(line, "versions", {"valid_at": None})),
    ("versions", lambda line: with_part(line, "versions", {"valid_at": "2999-01-01T00:00:00Z"})),
    ("versions", lambda line: with_part(line, "versions", {"value": "text"})),
]


@pytest.mark.parametrize(("field", "change"), OTHER_FORMS)
def test_a_profile_of_another_form_is_refused(core: Core, field: str, change: Callable[[Line], Line]) -> None:
    with_profile(core)
    answer = imported(core, [exported(core, ORG)[0], change(profile_line(exported(core, ORG)))], "there")
    [refusal] = answer["refused"]
    assert field in refusal["reason"]
    assert answer["imported"] == 1


def test_a_schema_that_was_deleted_is_deleted_there_too(core: Core) -> None:
    with_profile(core)
    imported(core, exported(core, ORG), "there")
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
