"""profile.activity: who read, in which window, and who is told."""

from datetime import UTC, datetime
from typing import Any

import pytest

from fakes import Core, CoreOf
from loom.access.caller import LOCAL, Caller, ReadScope, Role, Transport
from loom.errors import Rejected
from loom.ledger import embedding
from loom.planes import profile


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(profile.OPS, embedding.JOBS, profile.LATE)


def entries(core: Core, **args: Any) -> list[dict[str, Any]]:
    return core.call("profile.activity", **args)["entries"]


def readers(core: Core, **args: Any) -> dict[str, int]:
    return {entry["agent"]: entry["read_count"] for entry in entries(core, **args)}


def test_a_read_is_seen_by_the_next_call(core: Core) -> None:
    assert entries(core) == []
    core.call("profile.render")
    core.clock.step(seconds=1)
    core.call("profile.structured")
    assert entries(core) == [
        {
            "agent": "claude",
            "last_read_at": datetime(2026, 3, 1, 12, 0, 1, tzinfo=UTC).isoformat().replace("+00:00", "Z"),
            "read_count": 2,
            "last_op": "profile.structured",
        }
    ]


def test_the_latest_reader_comes_first_and_twenty_are_shown(core: Core) -> None:
    for number in range(25):
        core.clock.step(seconds=1)
        core.call("profile.render", agent=f"agent-{number:02}")
    assert [entry["agent"] for entry in entries(core)] == [f"agent-{number:02}" for number in range(24, 4, -1)]


def test_counts_add_up_over_days_and_users(core: Core) -> None:
    for user_id in ("-", "ada", "bob"):
        core.call("profile.render", user_id=user_id)
        core.clock.step(days=1)
        core.call("profile.render", user_id=user_id)
    assert readers(core) == {"claude": 6}


def test_the_window_ends_where_it_says(core: Core) -> None:
    core.call("profile.render", agent="old")
    core.clock.step(days=7, seconds=1)
    core.call("profile.render", agent="new")
    assert readers(core) == {"new": 1}
    assert readers(core, lookback_days=8) == {"new": 1, "old": 1}
    core.clock.step(days=23)
    assert readers(core, lookback_days=30) == {"new": 1}
    assert readers(core, lookback_days=365) == {"new": 1}


@pytest.mark.parametrize("days", [0, -1, "7", 1.5])
def test_a_window_of_less_than_a_day_is_refused(core: Core, days: object) -> None:
    with pytest.raises(Rejected) as raised:
        core.call("profile.activity", lookback_days=days)
    assert raised.value.extras["field"] == "lookback_days"


def test_the_dashboard_is_no_reader(core: Core) -> None:
    core.dispatcher.call("profile.render", LOCAL, Transport(unnoticed=True), {})
    core.dispatcher.call("profile.render", LOCAL, Transport(unnoticed=True), {"agent": "claude"})
    assert entries(core) == []


def test_no_caller_can_pass_for_the_dashboard(core: Core) -> None:
    core.dispatcher.call("profile.render", LOCAL, Transport(agent="loom-dashboard"), {"unnoticed": True})
    assert [entry["agent"] for entry in entries(core)] == ["loom-dashboard"]


def test_a_reader_without_a_name_is_a_dash(core: Core) -> None:
    core.dispatcher.call("profile.render", LOCAL, Transport(), {})
    core.dispatcher.call("profile.render", LOCAL, Transport(), {"agent": "*"})
    core.dispatcher.call("profile.render", LOCAL, Transport(agent="codex"), {"agent": "*"})
    assert readers(core) == {"-": 2, "codex": 1}


def test_a_narrow_reader_sees_its_own_reads(core: Core) -> None:
    core.call("profile.render", agent="one", user_id="ada")
    core.call("profile.render", agent="two", user_id="bob")
    for scope in (ReadScope.OWN_USER, ReadScope.OWN_SESSION):
        caller = Caller("tok", Role.VIEWER, {"org": "dev", "user_id": "ada"}, None, scope)
        assert readers(core, caller=caller) == {"one": 1}


def test_namespaces_are_apart(core: Core) -> None:
    core.call("profile.render", namespace="other")
    assert entries(core) == []
    assert readers(core, namespace="other") == {"claude": 1}


def test_sums_that_no_window_reaches_go(core: Core) -> None:
    core.call("profile.render", agent="old")
    core.clock.step(days=20)
    core.call("profile.render", agent="new")
    core.call("profile.activity")
    core.clock.step(days=13)
    for sweep in profile.SWEEPS:
        sweep(core.bench, "dev")
    with core.database.transaction("dev", write=False) as tx:
        rows = tx.rows("SELECT agent FROM profile_read WHERE org = :org")
    assert [row["agent"] for row in rows] == ["new"]
