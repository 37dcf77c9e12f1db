"""A server with a language model, as it is configured and restarted in real life; the endpoint is scripted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from running import running, wait_until
from writer_kit import KEY, Received, Reply, says, scripted

pytestmark = pytest.mark.slow

WAIT_S = 40.0
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}, "pet": {"type": "string"}}}
SAID = {"id": "m1", "role": "user", "time": "2026-02-10T09:00:00Z", "content": "I moved to Berlin."}


def model(got: Received) -> Reply:
    """Takes down one claim, and finds the city in what the memories say."""
    if "turns" in got.data:
        claim = {
            "key": "user/home",
            "claim": "They live in Berlin.",
            "type": "semantic",
            "valid_at": None,
            "turns": ["t1"],
        }
        return says({"claims": [claim]})
    ids = [one["id"] for one in got.data["facts"] if "Berlin" in str(one["value"])]
    null: dict[str, Any] = {"value": None, "facts": []}
    return says({"city": {"value": "Berlin", "facts": ids} if ids else null, "pet": null})


def test_deferred_messages_survive_a_kill_and_end_in_a_profile(tmp_path: Path, store: Mapping[str, str]) -> None:
    home = tmp_path / "home"
    with scripted(say=model) as endpoint:
        settings = {
            **store,
            "embedder": "hashing",
            "synchronous": "FULL",
            "writer_url": endpoint.url,
            "writer_model": "scripted",
            "writer_api_key": KEY,
            "log_level": "debug",
        }
        with running(home, **settings, later_work="elsewhere") as server:
            server.call("profile.schema_set", json_schema=SCHEMA)
            answer = server.call(
                "memory.set_from_messages", messages=[SAID], session="monday", user_id="ann", deferred=True
            )
            assert answer["deferred"]
            server.kill()
        assert endpoint.received == []
        with running(home, **settings) as server:
            structured = {"user_id": "ann"}
            wait_until(lambda: server.call("profile.structured", **structured)["status"] == "ready", WAIT_S)
            wait_until(lambda: server.call("profile.structured", **structured)["profile"]["city"] == "Berlin", WAIT_S)
            got = server.call("memory.get", memory_key="user/home", user_id="ann")
            assert (got["value"], got["source_trace"]) == ("They live in Berlin.", "conversation:monday/m1")
            evidence = server.call("profile.evidence", **structured)
            assert got["memory_id"] in str(evidence)
            said = server.call("memory.set_from_messages", messages=[SAID], user_id="ann")
            assert [one["action"] for one in said["items"]] == ["unchanged"]
    assert all(got.headers["authorization"] == f"Bearer {KEY}" for got in endpoint.received)
    logged = "".join(path.read_text("utf-8") for path in home.parent.glob("*.log"))
    assert logged
    assert KEY not in logged
    assert "Berlin" not in logged
