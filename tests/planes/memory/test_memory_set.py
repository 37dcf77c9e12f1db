import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from memory_kit import VIEWER, WRITER, found, keys, of_session, of_user, refused, sweep

from fakes import ORG, Core
from loom.errors import (
    AmbiguousKey,
    Denied,
    KeyReused,
    KindConflict,
    Locked,
    NotFound,
    PinnedConflict,
    Rejected,
    ShaMismatch,
    TooLong,
)
from loom.planes.memory.fields import VALUE_LENGTH_MAX

VALUES: list[Any] = [
    "text",
    "",
    None,
    True,
    0,
    -1.5,
    2**70,
    [],
    {},
    {"ü": ["日本語", {"nested": None}], "a": 1},
    "line\nbreak \t \x07 \u2028 \U0001f600 \u202e",
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_any_json_comes_back_as_it_was(core: Core, value: Any) -> None:
    made = core.call("memory.set", memory_key="k", value=value)
    got = core.call("memory.get", memory_key="k")
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert got["found"]
    assert got["value"] == value
    assert made["content_sha256"] == got["content_sha256"] == hashlib.sha256(canonical.encode()).hexdigest()
    assert made["value_length"] == got["value_length"] == len(canonical)
    assert made["version"] > 2**53
    assert made["version_text"] == str(made["version"]) == got["version_text"]
    assert "value" not in made


def test_attributes_are_kept_and_tags_sorted_once(core: Core) -> None:
    core.call(
        "memory.set",
        memory_key="k",
        value="v",
        memory_type="decision",
        tags=["z", "ä", "z"],
        confidence=0.25,
        source_trace="meeting",
        valid_at="2026-01-01T00:00:00+02:00",
        valid_to="2026-06-01T00:00:00Z",
        ttl_seconds=60,
        session_id="s",
        run_id="r",
    )
    got = core.call("memory.get", memory_key="k", session_id="s")
    assert got["memory_type"] == "decision"
    assert got["tags"] == ["z", "ä"]
    assert (got["confidence"], got["source_trace"]) == (0.25, "meeting")
    assert (got["valid_at"], got["valid_to"]) == ("2025-12-31T22:00:00Z", "2026-06-01T00:00:00Z")
    assert got["expires_at"] == "2026-03-01T12:01:00Z"
    assert (got["session_id"], got["run_id"]) == ("s", "r")


def test_unicode_in_every_text_field(core: Core) -> None:
    text = "ünï 日本 \U0001f600 \u202e %_"
    core.call(
        "memory.set",
        memory_key=text,
        value={text: text},
        memory_type="ünï",
        tags=[text],
        source_trace=text,
        namespace="ns " + text,
        agent="agent " + text,
        user_id="user " + text,
        session_id="session " + text,
        run_id="run " + text,
    )
    where: dict[str, Any] = {"namespace": "ns " + text, "agent": "agent " + text, "user_id": "user " + text}
    got = core.call("memory.get", memory_key=text, **where)
    assert (got["value"], got["tags"], got["source_trace"]) == ({text: text}, [text], text)
    assert (got["session_id"], got["run_id"]) == ("session " + text, "run " + text)
    assert keys(core.call("memory.list", prefix=text, tags=[text], contains=text, **where)) == [text]
    assert keys(core.call("memory.search", query=text, tags=[text], memory_types=["ünï"], **where)) == [text]


def test_nothing_new_writes_no_version(core: Core) -> None:
    first = core.call("memory.set", memory_key="k", value={"a": 1, "b": 2}, tags=["x", "y"], source_trace="one")
    texts = core.embedder.texts
    again = core.call("memory.set", memory_key="k", value={"b": 2, "a": 1}, tags=["y", "x"])
    assert (first["created"], first["changed"]) == (True, True)
    assert (again["created"], again["changed"]) == (False, False)
    assert again["version"] == first["version"]
    assert core.embedder.texts == texts
    changes: list[dict[str, Any]] = [{"tags": ["x"]}, {"confidence": 0.5}, {"memory_type": "episodic"}, {"value": 1}]
    for change in changes:
        args: dict[str, Any] = {"value": {"a": 1, "b": 2}, "tags": ["x", "y"], **change}
        assert core.call("memory.set", memory_key="k", **args)["changed"], change
    assert len(core.call("memory.history", memory_key="k")["versions"]) == 5


def test_another_time_to_live_writes_no_version(core: Core) -> None:
    first = core.call("memory.set", memory_key="k", value="v", ttl_seconds=60)
    again = core.call("memory.set", memory_key="k", value="v", ttl_seconds=120)
    assert (again["version"], again["expires_at"]) == (first["version"], "2026-03-01T12:02:00Z")
    assert core.call("memory.set", memory_key="k", value="v")["expires_at"] is None


def test_a_dry_run_writes_nothing(core: Core) -> None:
    answer = core.call("memory.set", memory_key="k", value="v", dry_run=True)
    assert (answer["created"], answer["changed"], answer["dry_run"], answer["version"]) == (True, True, True, 0)
    assert not core.call("memory.get", memory_key="k")["found"]
    live = core.call("memory.set", memory_key="k", value="v")
    over = core.call("memory.set", memory_key="k", value="w", dry_run=True)
    assert (over["created"], over["changed"], over["version"]) == (False, True, live["version"])
    assert over["content_sha256"] == hashlib.sha256(b'"w"').hexdigest()
    assert core.call("memory.get", memory_key="k")["value"] == "v"
    refused(ShaMismatch, core.call, "memory.set", memory_key="k", value="w", if_match_sha256="0" * 64, dry_run=True)


def test_the_hash_guards_a_set(core: Core) -> None:
    first = core.call("memory.set", memory_key="k", value="one")
    core.call("memory.set", memory_key="k", value="two", if_match_sha256=first["content_sha256"].upper())
    error = refused(
        ShaMismatch, core.call, "memory.set", memory_key="k", value="three", if_match_sha256=first["content_sha256"]
    )
    assert error.extras["current_sha256"] == core.call("memory.get", memory_key="k")["content_sha256"]
    missing = refused(ShaMismatch, core.call, "memory.set", memory_key="no", value=1, if_match_sha256="0" * 64)
    assert missing.extras["current_sha256"] == ""
    core.call("memory.delete", memory_key="k")
    refused(ShaMismatch, core.call, "memory.set", memory_key="k", value=1, if_match_sha256=first["content_sha256"])


def test_of_eight_sets_with_one_hash_exactly_one_wins(core: Core) -> None:
    for turn in range(5):
        seen = core.call("memory.set", memory_key=f"k{turn}", value="start")["content_sha256"]

        def attempt(writer: int, turn: int = turn, seen: str = seen) -> bool:
            try:
                core.call("memory.set", memory_key=f"k{turn}", value=writer, if_match_sha256=seen)
            except ShaMismatch:
                return False
            return True

        with ThreadPoolExecutor(8) as threads:
            assert sum(threads.map(attempt, range(8))) == 1


def test_eight_threads_lose_no_version(core: Core) -> None:
    def work(thread: int) -> None:
        for turn in range(10):
            core.call("memory.set", memory_key="k", value=f"{thread} {turn}")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    versions = core.call("memory.history", memory_key="k", limit=200)["versions"]
    assert len({one["version_text"] for one in versions}) == 80
    assert [one["status"] for one in versions] == ["live"] + ["superseded"] * 79
    assert core.call("memory.get", memory_key="k")["value"] == versions[0]["value"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"memory_key": ""}, "memory_key"),
    ({"memory_key": "x" * 513}, "memory_key"),
    ({"memory_key": 7}, "memory_key"),
    ({"memory_type": ""}, "memory_type"),
    ({"memory_type": "x" * 65}, "memory_type"),
    ({"tags": "x"}, "tags"),
    ({"tags": [""]}, "tags.0"),
    ({"tags": ["x"] * 65}, "tags"),
    ({"tags": ["x" * 129]}, "tags.0"),
    ({"confidence": 1.5}, "confidence"),
    ({"confidence": -0.1}, "confidence"),
    ({"confidence": "high"}, "confidence"),
    ({"source_trace": "x" * 2001}, "source_trace"),
    ({"source_trace": "memory.delete_version:1"}, "source_trace"),
    ({"sensitivity": "secret"}, "sensitivity"),
    ({"valid_at": "yesterday"}, "valid_at"),
    ({"valid_at": "2026-01-01T00:00:00"}, "valid_at"),
    ({"valid_at": "2026-02-01T00:00:00Z", "valid_to": "2026-01-01T00:00:00Z"}, "valid_to"),
    ({"ttl_seconds": -1}, "ttl_seconds"),
    ({"ttl_seconds": 10**12}, "ttl_seconds"),
    ({"char_limit": 10}, "char_limit"),
    ({"char_limit": 0}, "char_limit"),
    ({"if_match_sha256": "x" * 65}, "if_match_sha256"),
    ({"dry_run": "yes"}, "dry_run"),
    ({"agent": "*"}, "agent"),
    ({"value": 1, "memory_type": "profile"}, "value"),
]


@pytest.mark.parametrize(("args", "field"), BAD, ids=lambda part: str(part)[:40])
def test_bad_input_names_the_field(core: Core, args: dict[str, Any], field: str) -> None:
    error = refused(Rejected, core.call, "memory.set", **({"memory_key": "k", "value": "v"} | args))
    assert error.extras["field"] == field
    assert field in error.message


def test_a_value_may_not_be_left_out_but_may_be_null(core: Core) -> None:
    assert refused(Rejected, core.call, "memory.set", memory_key="k").extras["field"] == "value"
    assert core.call("memory.set", memory_key="k", value=None)["changed"]


def test_a_value_has_a_cap(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="x" * (VALUE_LENGTH_MAX - 2))
    error = refused(TooLong, core.call, "memory.set", memory_key="k", value="x" * (VALUE_LENGTH_MAX - 1))
    assert error.extras == {"field": "value", "value_length": VALUE_LENGTH_MAX + 1, "char_limit": VALUE_LENGTH_MAX}


def test_a_section_obeys_its_cap_and_is_no_memory(core: Core) -> None:
    core.call("memory.set", memory_key="persona", value="brief", memory_type="profile", char_limit=20)
    error = refused(
        TooLong, core.call, "memory.set", memory_key="persona", value="x" * 19, memory_type="profile", char_limit=20
    )
    assert error.extras["char_limit"] == 20
    refused(TooLong, core.call, "memory.update", memory_key="persona", value="x" * 19)
    refused(TooLong, core.call, "memory.set", memory_key="p", value="x" * 8191, memory_type="profile")
    refused(KindConflict, core.call, "memory.set", memory_key="persona", value="v")
    core.call("memory.set", memory_key="k", value="v")
    refused(KindConflict, core.call, "memory.set", memory_key="k", value="v", memory_type="profile")
    refused(Rejected, core.call, "memory.update", memory_key="k", memory_type="profile")
    assert keys(core.call("memory.list")) == ["k"]
    assert keys(core.call("memory.list", memory_types=["profile"])) == ["persona"]
    assert found(core, "brief", memory_types=["profile"]) == []


def test_a_blank_key_and_value_can_be_kept(core: Core) -> None:
    core.call("memory.set", memory_key=" ", value="")
    core.call("memory.set_many", items=[{"memory_key": "\t", "value": " "}, {"memory_key": "k", "value": "walrus"}])
    core.embedder.off.set()
    core.call("memory.set", memory_key=" ", value=None, tags=[" "])
    core.embedder.off.clear()
    assert core.drain() == 1
    assert found(core, "walrus")[0] == "k"
    assert core.call("memory.get", memory_key=" ")["found"]


def test_a_near_duplicate_is_reported_and_kept(core: Core) -> None:
    first = core.call("memory.set", memory_key="user/drink", value="Maria drinks green tea every single morning")
    other = core.call("memory.set", memory_key="user/tea", value="Maria drinks green tea every single morning.")
    assert other["duplicate_of"]["memory_key"] == "user/drink"
    assert other["duplicate_of"]["memory_id"] == first["memory_id"]
    assert 0.8 < other["duplicate_of"]["similarity"] <= 1.0
    assert sorted(keys(core.call("memory.list"))) == ["user/drink", "user/tea"]
    assert "duplicate_of" not in core.call(
        "memory.set", memory_key="user/no", value="Maria drinks no tea in the morning"
    )
    assert "duplicate_of" not in core.call("memory.set", memory_key="user/drink", value="Maria drinks coffee")


def test_a_duplicate_the_writer_may_not_see_is_not_reported(core: Core) -> None:
    core.call("memory.set", memory_key="a", value="the launch code is walrus plumbago", user_id="ann")
    core.call("memory.set", memory_key="b", value="another secret claim entirely", namespace="other")
    places: list[dict[str, Any]] = [{"caller": of_user("bob")}, {"namespace": "third"}]
    for where in places:
        for value in ("the launch code is walrus plumbago", "another secret claim entirely"):
            assert "duplicate_of" not in core.call("memory.set", memory_key=f"mine {value}", value=value, **where)


def test_a_failing_embedder_fails_no_write(core: Core) -> None:
    core.embedder.off.set()
    made = core.call("memory.set", memory_key="k", value="walrus")
    assert made["degraded"] == ["embedder"]
    assert found(core, "walrus") == ["k"]
    core.embedder.off.clear()
    assert core.call("memory.search", query="walrus")["degraded"] == ["meaning"]
    assert core.drain() == 1
    answer = core.call("memory.search", query="walrus")
    assert (answer["degraded"], keys(answer)) == ([], ["k"])
    assert answer["results"][0]["similarity"] > 0.3
    assert "degraded" not in core.call("memory.set", memory_key="k", value="other")
    assert core.drain() == 0


def test_a_written_row_is_found_by_meaning_at_once(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="walrus")
    assert core.drain() == 0
    assert core.call("memory.search", query="walrus")["results"][0]["similarity"] > 0.3


def test_high_sensitivity_is_read_but_never_searched(core: Core) -> None:
    texts = core.embedder.texts
    core.call("memory.set", memory_key="k", value="plumbago", sensitivity="high")
    assert core.embedder.texts == texts
    assert core.call("memory.get", memory_key="k")["value"] == "plumbago"
    assert keys(core.call("memory.list", contains="plumbago")) == ["k"]
    assert found(core, "plumbago") == []
    core.call("memory.update", memory_key="k", sensitivity="normal")
    assert found(core, "plumbago") == ["k"]
    core.call("memory.update", memory_key="k", sensitivity="high")
    assert found(core, "plumbago") == []
    core.drain()
    assert found(core, "plumbago") == []


def test_an_idempotency_key_gives_the_first_answer_again(core: Core) -> None:
    first = core.call("memory.set", memory_key="k", value="v", key="one")
    core.call("memory.set", memory_key="k", value="w")
    assert core.call("memory.set", memory_key="k", value="v", key="one") == first
    assert core.call("memory.get", memory_key="k")["value"] == "w"
    refused(KeyReused, core.call, "memory.set", memory_key="k", value="x", key="one")
    with core.database.transaction(ORG, write=False) as tx:
        assert "value" not in json.loads(
            str((tx.row("SELECT answer FROM idempotency WHERE org = :org") or {})["answer"])
        )
    core.clock.step(hours=25)
    sweep(core)
    with core.database.transaction(ORG, write=False) as tx:
        assert tx.row("SELECT answer FROM idempotency WHERE org = :org") is None


def test_roles(core: Core) -> None:
    refused(Denied, core.call, "memory.set", memory_key="k", value="v", caller=VIEWER)
    core.call("memory.set", memory_key="k", value="v", caller=WRITER)
    assert core.call("memory.get", memory_key="k", caller=VIEWER)["found"]
    for op in ("store.export", "store.import"):
        refused(Denied, core.call, op, caller=WRITER, lines=[{}])


def test_a_narrow_token_does_not_touch_what_it_does_not_reach(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="v", user_id="ann", session_id="s1")
    one, two = of_session("ann", "s1"), of_session("ann", "s2")
    refused(Denied, core.call, "memory.set", memory_key="k", value="x", caller=two)
    for op, args in (
        ("memory.update", {"value": 1}),
        ("memory.delete", {}),
        ("memory.touch", {"ttl_seconds": 5}),
        ("memory.pin", {}),
        ("memory.lock", {}),
        ("memory.redact", {}),
        ("memory.delete_version", {"version_text": "1"}),
    ):
        refused(Denied, core.call, op, memory_key="k", caller=two, **args)
    refused(NotFound, core.call, "memory.update", memory_key="k", value=1, caller=of_user("bob"))
    assert core.call("memory.update", memory_key="k", value=1, caller=one)["changed"]


def test_update_keeps_what_is_not_sent(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="v", tags=["a"], confidence=0.5, source_trace="t", ttl_seconds=600)
    changed = core.call("memory.update", memory_key="k", value={"new": True}, confidence=None)
    assert (changed["created"], changed["changed"]) == (False, True)
    got = core.call("memory.get", memory_key="k")
    assert (got["value"], got["tags"], got["confidence"], got["source_trace"]) == ({"new": True}, ["a"], 0.5, "t")
    assert got["expires_at"] == "2026-03-01T12:10:00Z"
    assert not core.call("memory.update", memory_key="k", tags=["a"])["changed"]
    core.call("memory.update", memory_key="k", tags=[], ttl_seconds=0)
    got = core.call("memory.get", memory_key="k")
    assert (got["value"], got["tags"], got["expires_at"]) == ({"new": True}, [], None)
    error = refused(ShaMismatch, core.call, "memory.update", memory_key="k", value=1, if_match_sha256="0" * 64)
    assert error.extras["current_sha256"] == got["content_sha256"]
    assert found(core, "new") == ["k"]


def test_update_refuses_what_is_not_there_and_what_is_not_clear(core: Core) -> None:
    refused(NotFound, core.call, "memory.update", memory_key="k", value=1)
    core.call("memory.set", memory_key="k", value="a", agent="codex")
    assert core.call("memory.update", memory_key="k", value="b")["agent"] == "codex"
    core.call("memory.set", memory_key="k", value="c", agent="cursor")
    error = refused(AmbiguousKey, core.call, "memory.update", memory_key="k", value="d")
    assert error.extras["writers"] == ["codex", "cursor"]
    assert core.call("memory.update", memory_key="k", value="d", agent="cursor")["agent"] == "cursor"
    core.call("memory.delete", memory_key="k", agent="cursor")
    assert core.call("memory.update", memory_key="k", value="e", agent="cursor")["agent"] == "codex"
    core.call("memory.delete", memory_key="k", agent="codex")
    refused(NotFound, core.call, "memory.update", memory_key="k", value=1, agent="codex")


def test_guards_stop_a_set(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="v")
    core.call("memory.pin", memory_key="k")
    refused(PinnedConflict, core.call, "memory.set", memory_key="k", value="w", ttl_seconds=5)
    core.call("memory.lock", memory_key="k", mode="read_only")
    refused(Locked, core.call, "memory.set", memory_key="k", value="w")
    refused(Locked, core.call, "memory.update", memory_key="k", value="w")
