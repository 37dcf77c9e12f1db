"""profile.list and profile.reads: what the dashboard asks of the profile."""

import pytest

from fakes import ORG, Core, CoreOf
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import Rejected
from loom.planes import profile


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(profile.OPS, {}, profile.LATE)


def test_sections_are_listed_with_their_room(core: Core) -> None:
    assert core.call("profile.list") == {"sections": [], "truncated": False}
    core.call("profile.set", label="b", value="x" * 300, char_limit=400)
    core.call("profile.set", label="a", value="y", user_id="ada")
    b, a = core.call("profile.list")["sections"][::-1]
    assert (a["label"], a["user_id"], a["value_length"], a["char_limit"]) == ("a", "ada", 3, 8192)
    assert (b["excerpt"], b["value_length"], b["char_limit"]) == ("x" * 200, 302, 400)
    again = core.call("profile.set", label="b", value="z", if_match_sha256=b["content_sha256"])
    assert again["value_length"] == 3


def test_a_reader_of_one_user_sees_no_other_users_sections(core: Core) -> None:
    for user in ("-", "ada", "bob"):
        core.call("profile.set", label=user, value="x", user_id=user)
    reader = Caller("ada", Role.VIEWER, {"org": ORG, "user_id": "ada"}, None, ReadScope.OWN_USER)
    assert [one["label"] for one in core.call("profile.list", caller=reader)["sections"]] == ["-", "ada"]
    assert [one["label"] for one in core.call("profile.list", namespace="other")["sections"]] == []


def test_reads_are_shown_by_day_and_agent(core: Core) -> None:
    for agent, count in (("codex", 1), ("claude", 2)):
        for _ in range(count):
            core.call("profile.render", agent=agent)
    core.clock.step(days=1)
    core.call("profile.render", agent="codex", user_id="ada")
    entries = core.call("profile.reads")["entries"]
    assert [(one["day"], one["agent"], one["read_count"]) for one in entries] == [
        ("2026-03-02T00:00:00Z", "codex", 1),
        ("2026-03-01T00:00:00Z", "claude", 2),
        ("2026-03-01T00:00:00Z", "codex", 1),
    ]
    assert len(core.call("profile.reads", lookback_days=1)["entries"]) == 1
    core.clock.step(days=29)
    assert [one["agent"] for one in core.call("profile.reads", lookback_days=99)["entries"]] == ["codex"]


def test_reads_for_other_users_are_not_a_narrow_readers_to_know(core: Core) -> None:
    core.call("profile.render", agent="codex", user_id="bob")
    reader = Caller("ada", Role.VIEWER, {"org": ORG, "user_id": "ada"}, None, ReadScope.OWN_USER)
    assert core.call("profile.reads", caller=reader)["entries"] == []
    with pytest.raises(Rejected):
        core.call("profile.reads", lookback_days=0)
