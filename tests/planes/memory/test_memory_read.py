from typing import Any

import pytest
from memory_kit import VIEWER, keys, of_session, of_user, refused

from fakes import Core
from loom.errors import NotFound, Rejected


def test_what_is_not_there_is_not_found_and_no_error(core: Core) -> None:
    got = core.call("memory.get", memory_key="k")
    assert (got["found"], got["status"], got["value"]) == (False, "missing", None)


def test_the_status_says_why_there_is_nothing(core: Core) -> None:
    for key in ("deleted", "redacted", "expired"):
        core.call("memory.set", memory_key=key, value="v", ttl_seconds=60 if key == "expired" else 0)
    core.call("memory.delete", memory_key="deleted")
    core.call("memory.redact", memory_key="redacted")
    core.clock.step(seconds=60)
    for key, status in (("deleted", "tombstoned"), ("redacted", "redacted"), ("expired", "expired")):
        got = core.call("memory.get", memory_key=key)
        assert (got["found"], got["status"], got["value"]) == (False, status, None)
    core.call("memory.set", memory_key="theirs", value="v", user_id="ann")
    core.call("memory.delete", memory_key="theirs", user_id="ann")
    assert core.call("memory.get", memory_key="theirs", caller=of_user("bob"))["status"] == "missing"


def test_the_own_row_comes_first_then_the_latest_of_any_agent(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="codex", agent="codex")
    assert core.call("memory.get", memory_key="k")["value"] == "codex"
    core.call("memory.set", memory_key="k", value="cursor", agent="cursor")
    assert core.call("memory.get", memory_key="k")["agent"] == "cursor"
    core.call("memory.set", memory_key="k", value="claude")
    core.call("memory.set", memory_key="k", value="codex again", agent="codex")
    assert core.call("memory.get", memory_key="k")["value"] == "claude"
    assert core.call("memory.get", memory_key="k", agent="*")["value"] == "codex again"
    core.call("memory.delete", memory_key="k")
    assert core.call("memory.get", memory_key="k")["value"] == "codex again"


def test_a_user_sees_the_users_row_then_the_shared_one(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="shared", agent="codex")
    core.call("memory.set", memory_key="k", value="ann's", user_id="ann", agent="codex")
    core.call("memory.set", memory_key="k", value="shared again", agent="cursor")
    assert core.call("memory.get", memory_key="k", user_id="ann")["value"] == "ann's"
    assert core.call("memory.get", memory_key="k", user_id="bob")["value"] == "shared again"
    assert core.call("memory.get", memory_key="k")["value"] == "shared again"


def test_many_other_users_do_not_crowd_out_the_row_that_may_be_seen(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="shared", agent="codex")
    for number in range(60):
        core.call("memory.set", memory_key="k", value=number, user_id=f"u{number}")
    got = core.call("memory.get", memory_key="k", read_scope="own_user")
    assert got["value"] == "shared"


def test_as_of_reads_the_past(core: Core) -> None:
    core.call("memory.set", memory_key="k", value=1)
    core.clock.step(hours=1)
    core.call("memory.set", memory_key="k", value=2, ttl_seconds=1800)
    core.clock.step(hours=1)
    core.call("memory.set", memory_key="k", value=3)
    core.clock.step(hours=1)
    core.call("memory.delete", memory_key="k")
    wanted = {"11:59": None, "12:30": 1, "13:10": 2, "13:40": None, "14:30": 3, "15:30": None}
    for moment, value in wanted.items():
        got = core.call("memory.get", memory_key="k", as_of=f"2026-03-01T{moment}:00Z")
        assert (got["found"], got["value"]) == (value is not None, value), moment
        listed = core.call("memory.list", as_of=f"2026-03-01T{moment}:00Z", bodies="full")
        assert [one["value"] for one in listed["items"]] == ([] if value is None else [value]), moment
    core.call("memory.redact", memory_key="k")
    assert not core.call("memory.get", memory_key="k", as_of="2026-03-01T12:30:00Z")["found"]
    assert core.call("memory.list", as_of="2026-03-01T12:30:00Z")["total"] == 0


def test_one_version_is_read_by_its_text(core: Core) -> None:
    first = core.call("memory.set", memory_key="k", value=1)
    core.call("memory.set", memory_key="k", value=2)
    got = core.call("memory.get", memory_key="k", version_text=first["version_text"])
    assert (got["value"], got["status"]) == (1, "superseded")
    assert not core.call("memory.get", memory_key="k", version_text="17")["found"]
    for bad in ("x", "-1", "1.0", "\u0661", "9" * 19):
        error = refused(Rejected, core.call, "memory.get", memory_key="k", version_text=bad)
        assert error.extras["field"] == "version_text"
    both = {"version_text": "1", "as_of": "2026-03-01T12:30:00Z"}
    refused(Rejected, core.call, "memory.get", memory_key="k", **both)


def test_history_shows_every_version_and_pages(core: Core) -> None:
    made = [core.call("memory.set", memory_key="k", value=number)["version_text"] for number in range(5)]
    answer = core.call("memory.history", memory_key="k", limit=2)
    assert [one["value"] for one in answer["versions"]] == [4, 3]
    assert answer["truncated"]
    rest = core.call("memory.history", memory_id=answer["memory_id"], before_version_text=answer["next_version_text"])
    assert [one["value"] for one in rest["versions"]] == [2, 1, 0]
    assert answer["next_version_text"] == made[3]
    assert (rest["truncated"], rest["next_version_text"]) == (False, "")
    core.call("memory.delete", memory_key="k")
    answer = core.call("memory.history", memory_key="k")
    assert answer["status"] == "tombstoned"
    assert [one["status"] for one in answer["versions"]] == ["tombstoned"] + ["superseded"] * 5


def test_history_refuses_what_is_not_there(core: Core) -> None:
    made = core.call("memory.set", memory_key="k", value=1, user_id="ann")
    refused(NotFound, core.call, "memory.history", memory_key="no")
    for bad in ("mem_0000000000000001", "x", "mem_zz", "mem_ffffffffffffffff"):
        refused(NotFound, core.call, "memory.history", memory_id=bad)
    refused(NotFound, core.call, "memory.history", memory_id=made["memory_id"], namespace="other")
    refused(NotFound, core.call, "memory.history", memory_id=made["memory_id"], caller=of_user("bob"))
    assert refused(Rejected, core.call, "memory.history").extras["field"] == "memory_key"
    error = refused(Rejected, core.call, "memory.history", memory_key="k", before_version_text="x")
    assert error.extras["field"] == "before_version_text"


def test_versions_of_another_session_are_not_shown(core: Core) -> None:
    one, two = of_session("ann", "s1"), of_session("ann", "s2")
    old = core.call("memory.set", memory_key="k", value="from s1", caller=one)
    core.clock.step(minutes=1)
    core.call("memory.set", memory_key="k", value="from s2", user_id="ann", session_id="s2")
    assert not core.call("memory.get", memory_key="k", caller=one)["found"]
    shown = core.call("memory.history", memory_key="k", caller=two)["versions"]
    assert [version["value"] for version in shown] == ["from s2"]
    assert not core.call("memory.get", memory_key="k", version_text=old["version_text"], caller=two)["found"]
    assert not core.call("memory.get", memory_key="k", as_of="2026-03-01T12:00:30Z", caller=two)["found"]
    assert core.call("memory.list", as_of="2026-03-01T12:00:30Z", caller=two)["total"] == 0
    wide = core.call("memory.history", memory_key="k", user_id="ann")["versions"]
    assert len(wide) == 2


def fill(core: Core) -> None:
    rows: list[dict[str, Any]] = [
        {"memory_key": "a/1", "value": "100% sure", "tags": ["x", "y"]},
        {"memory_key": "a/2", "value": {"city": "ÜBER Köln"}, "tags": ["x"], "memory_type": "decision"},
        {"memory_key": "A/3", "value": "under_score", "tags": ["X"], "agent": "codex"},
        {"memory_key": "b%1", "value": "plain", "agent": "cursor"},
        {"memory_key": "b_2", "value": None, "tags": ['q"x"', "back\\"]},
    ]
    for row in rows:
        core.call("memory.set", **row)


LISTS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["A/3", "a/1", "a/2", "b%1", "b_2"]),
    ({"order": "newest"}, ["b_2", "b%1", "A/3", "a/2", "a/1"]),
    ({"prefix": "a/"}, ["a/1", "a/2"]),
    ({"prefix": "b%"}, ["b%1"]),
    ({"prefix": "b_"}, ["b_2"]),
    ({"memory_types": ["decision", "other"]}, ["a/2"]),
    ({"memory_types": []}, ["A/3", "a/1", "a/2", "b%1", "b_2"]),
    ({"tags": ["x"]}, ["a/1", "a/2"]),
    ({"tags": ["x", "y"]}, ["a/1"]),
    ({"tags": ["y", "X"], "tags_match": "any"}, ["A/3", "a/1"]),
    ({"tags": ["q"]}, []),
    ({"tags": ["back\\"]}, ["b_2"]),
    ({"contains": "%"}, ["a/1", "b%1"]),
    ({"contains": "_"}, ["A/3", "b_2"]),
    ({"contains": "über"}, ["a/2"]),
    ({"contains": "KÖLN"}, ["a/2"]),
    ({"contains": "A/"}, ["A/3", "a/1", "a/2"]),
    ({"contains": "nowhere"}, []),
    ({"agents": ["codex", "cursor"]}, ["A/3", "b%1"]),
    ({"agents": []}, []),
    ({"statuses": ["tombstoned"]}, []),
]


@pytest.mark.parametrize(("filters", "wanted"), LISTS, ids=lambda part: str(part)[:50])
def test_list_filters(core: Core, filters: dict[str, Any], wanted: list[str]) -> None:
    fill(core)
    answer = core.call("memory.list", **filters)
    assert keys(answer) == wanted
    assert (answer["total"], answer["count"], answer["total_exact"]) == (len(wanted), len(wanted), True)
    quick = core.call("memory.list", counted=False, **filters)
    assert (quick["items"], quick["total"], quick["total_exact"]) == (answer["items"], len(wanted), False)
    assert (answer["truncated"], answer["next_cursor"]) == (False, "")


@pytest.mark.parametrize("filters", [{}, {"order": "newest"}, {"contains": "k"}, {"as_of": "2026-03-01T12:00:00Z"}])
def test_list_pages_meet_every_row_once(core: Core, filters: dict[str, Any]) -> None:
    for number in range(25):
        core.call("memory.set", memory_key=f"k{number:02}", value=number)
    seen: list[str] = []
    cursor = ""
    for _ in range(20):
        answer = core.call("memory.list", limit=4, cursor=cursor, **filters)
        assert answer["total"] == 25
        seen += keys(answer)
        cursor = answer["next_cursor"]
        assert answer["truncated"] == bool(cursor)
        if not cursor:
            break
    assert len(seen) == 25
    assert sorted(seen) == sorted(f"k{number:02}" for number in range(25))


def test_list_shows_what_ended_when_asked(core: Core) -> None:
    core.call("memory.set", memory_key="live", value="v")
    core.call("memory.set", memory_key="gone", value="v")
    core.call("memory.set", memory_key="late", value="v", ttl_seconds=5)
    core.call("memory.set", memory_key="black", value="v")
    core.call("memory.delete", memory_key="gone")
    core.call("memory.redact", memory_key="black")
    core.clock.step(seconds=5)
    assert keys(core.call("memory.list")) == ["live"]
    answer = core.call("memory.list", statuses=["live", "expired", "tombstoned", "redacted"])
    assert {one["memory_key"]: one["status"] for one in answer["items"]} == {
        "live": "live",
        "gone": "tombstoned",
        "late": "expired",
        "black": "redacted",
    }


def test_list_bodies(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="word " * 100)
    [none] = core.call("memory.list", bodies="none")["items"]
    [excerpt] = core.call("memory.list")["items"]
    [full] = core.call("memory.list", bodies="full")["items"]
    assert (none["excerpt"], none["value"]) == (None, None)
    assert len(excerpt["excerpt"]) <= 200
    assert excerpt["value"] is None
    assert full["value"] == "word " * 100


def test_a_page_of_whole_values_is_bounded(core: Core) -> None:
    core.call("memory.set_many", items=[{"memory_key": f"k{n:02}", "value": "x" * 250_000} for n in range(20)])
    answer = core.call("memory.list", bodies="full", limit=500)
    assert answer["truncated"]
    assert 10 <= answer["count"] < 20
    rest = core.call("memory.list", bodies="full", limit=500, cursor=answer["next_cursor"])
    assert answer["count"] + rest["count"] == 20


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("memory.list", {"limit": 0}, "limit"),
    ("memory.list", {"limit": 501}, "limit"),
    ("memory.list", {"order": "random"}, "order"),
    ("memory.list", {"tags_match": "some"}, "tags_match"),
    ("memory.list", {"cursor": "!!"}, "cursor"),
    ("memory.list", {"cursor": "eJyrVg"}, "cursor"),
    ("memory.list", {"as_of": "2026-01-01T00:00:00"}, "as_of"),
    ("memory.list", {"statuses": ["dead"]}, "statuses.0"),
    ("memory.list", {"read_scope": "all"}, "read_scope"),
    ("memory.list", {"contains": "x" * 1001}, "contains"),
    ("memory.get", {"memory_key": ""}, "memory_key"),
    ("memory.get", {}, "memory_key"),
    ("memory.get", {"memory_key": "k", "as_of": 7}, "as_of"),
    ("memory.get", {"memory_key": "k", "read_scope": "own"}, "read_scope"),
    ("memory.history", {"memory_key": "k", "limit": 201}, "limit"),
]


@pytest.mark.parametrize(("op", "args", "field"), BAD, ids=lambda part: str(part)[:40])
def test_bad_input_names_the_field(core: Core, op: str, args: dict[str, Any], field: str) -> None:
    error = refused(Rejected, core.call, op, caller=VIEWER, **args)
    assert error.extras["field"] == field


def test_null_is_the_same_as_left_out(core: Core) -> None:
    fill(core)
    nothing: dict[str, Any] = dict.fromkeys(
        ("tags", "memory_types", "agents", "statuses", "as_of", "cursor", "prefix", "contains", "limit", "order")
    )
    assert core.call("memory.list", **nothing) == core.call("memory.list")
    got = core.call("memory.get", memory_key="a/1", as_of=None, version_text=None, read_scope=None)
    assert got == core.call("memory.get", memory_key="a/1")
