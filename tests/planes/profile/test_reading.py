"""profile.render and profile.structured through the one call path."""

import itertools
from typing import Any

import pytest

from fakes import Core, CoreOf
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import Denied, Rejected
from loom.ledger import embedding, store, writes
from loom.ledger.rules import HIGH, PROFILE, Attributes, Place, draft
from loom.planes import profile


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(profile.OPS, embedding.JOBS, profile.LATE)


def fill(core: Core, *rows: tuple[str, str, str]) -> None:
    for label, agent, user_id in rows:
        core.call("profile.set", label=label, agent=agent, user_id=user_id, value=f"{label} of {agent} for {user_id}")


def viewer(scope: ReadScope, user_id: str = "ada") -> Caller:
    return Caller("tok", Role.VIEWER, {"org": "dev", "user_id": user_id}, None, scope)


def test_nothing_stored_renders_to_nothing(core: Core) -> None:
    answer = core.call("profile.render")
    assert answer == {"rendered": "", "section_count": 0, "total_chars": 0, "labels": []}


def test_order_is_label_then_agent_then_user_whatever_came_first(core: Core) -> None:
    rows = sorted(itertools.product(("Zoo", "a", "ä"), ("alpha", "beta"), ("-", "ada")), reverse=True)
    fill(core, *rows)
    answer = core.call("profile.render", format="markdown")
    bodies = [line for line in answer["rendered"].split("\n") if " of " in line]
    assert bodies == [f"{label} of {agent} for {user_id}" for label, agent, user_id in sorted(rows)]
    assert answer["labels"] == [label for label, _, _ in sorted(rows)]
    assert answer["section_count"] == len(rows)
    assert answer["total_chars"] == len(answer["rendered"])


def test_an_unchanged_profile_renders_to_the_same_bytes(core: Core) -> None:
    fill(core, ("b", "claude", "-"), ("a", "codex", "ada"))
    first = core.call("profile.render")
    fill(core, ("a", "codex", "ada"), ("b", "claude", "-"))
    core.clock.step(days=1)
    assert core.call("profile.render") == first


def test_named_labels_come_in_the_order_named(core: Core) -> None:
    fill(core, ("a", "claude", "-"), ("b", "claude", "-"), ("c", "claude", "-"), ("b", "codex", "-"))
    answer = core.call("profile.render", labels=["c", "nope", "b", "c", "b"])
    assert answer["labels"] == ["c", "b", "b"]
    assert answer["rendered"].index("b of claude") < answer["rendered"].index("b of codex")
    assert core.call("profile.render", labels=[])["section_count"] == 0
    assert core.call("profile.render", labels=None)["section_count"] == 4


def test_this_agent_renders_the_callers_own(core: Core) -> None:
    fill(core, ("a", "claude", "-"), ("a", "codex", "-"))
    assert "codex" not in core.call("profile.render", scope="this_agent")["rendered"]
    assert core.call("profile.render", scope="namespace")["section_count"] == 2
    assert core.call("profile.render", scope="this_agent", agent="nobody")["section_count"] == 0


def test_what_has_ended_or_is_sensitive_is_not_rendered(core: Core) -> None:
    for label in ("gone", "late", "secret", "high", "live"):
        core.call("profile.set", label=label, value="text")
    with core.database.transaction("dev", write=True) as tx:
        rows = {
            label: store.exact(tx, Place("local", "claude", "-"), label) for label in ("gone", "late", "secret", "high")
        }
        gone, late, secret, high = rows.values()
        assert gone is not None
        assert late is not None
        assert secret is not None
        assert high is not None
        writes.tombstone(tx, gone, "")
        writes.set_expiry(tx, late, core.clock() + 1_000_000)
        writes.redact(tx, secret)
        made = draft("text", Attributes(memory_type=PROFILE, sensitivity=HIGH))
        writes.write(tx, high, (high.place, "high"), made)
        writes.write(tx, None, (Place("local", "claude", "-"), "memory"), draft("text", Attributes()))
    assert core.call("profile.render")["labels"] == ["late", "live"]
    core.clock.step(seconds=1)
    assert core.call("profile.render")["labels"] == ["live"]


def test_users_see_themselves_and_nobody(core: Core) -> None:
    fill(core, ("a", "claude", "-"), ("b", "claude", "ada"), ("c", "claude", "bob"))
    assert core.call("profile.render")["labels"] == ["a", "b", "c"]
    assert core.call("profile.render", user_id="ada", read_scope="own_user")["labels"] == ["a", "b"]
    assert core.call("profile.render", caller=viewer(ReadScope.OWN_USER))["labels"] == ["a", "b"]
    assert core.call("profile.render", caller=viewer(ReadScope.OWN_USER), read_scope="namespace")["labels"] == [
        "a",
        "b",
    ]
    with pytest.raises(Denied):
        core.call("profile.render", caller=viewer(ReadScope.OWN_USER), user_id="bob")


def test_sessions_are_apart_under_the_narrowest_scope(core: Core) -> None:
    core.call("profile.set", label="one", value="x", user_id="ada", session_id="s1")
    core.call("profile.set", label="two", value="x", user_id="ada", session_id="s2")
    core.call("profile.set", label="all", value="x", session_id="s3")
    answer = core.call("profile.render", caller=viewer(ReadScope.OWN_SESSION), session_id="s1")
    assert answer["labels"] == ["all", "one"]


def test_namespaces_and_orgs_are_apart(core: Core) -> None:
    fill(core, ("a", "claude", "-"))
    assert core.call("profile.render", namespace="other")["section_count"] == 0
    assert core.call("profile.render", org="other")["section_count"] == 0
    inside = Caller("tok", Role.VIEWER, {"org": "dev"}, frozenset({"local"}))
    with pytest.raises(Denied):
        core.call("profile.render", caller=inside, namespace="other")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "html"),
        ("format", "XML"),
        ("format", 7),
        ("scope", "user"),
        ("read_scope", "all"),
        ("labels", "persona"),
        ("labels", [""]),
        ("labels", ["x"] * 1001),
    ],
)
def test_bad_input_names_its_field(core: Core, field: str, value: Any) -> None:
    with pytest.raises(Rejected) as raised:
        core.call("profile.render", **{field: value})
    assert str(raised.value.extras["field"]).split(".")[0] == field


def test_a_structured_profile_has_no_schema_yet(core: Core) -> None:
    assert core.call("profile.structured", user_id="ada") == {
        "status": "no_schema",
        "profile": {},
        "built_at": None,
        "memory_id": "",
        "version": 0,
        "version_text": "0",
        "schema_sha256": "",
    }


def test_a_structured_profile_is_more_than_a_session(core: Core) -> None:
    with pytest.raises(Rejected) as raised:
        core.call("profile.structured", read_scope="own_session")
    assert raised.value.extras["field"] == "read_scope"
    with pytest.raises(Denied):
        core.call("profile.structured", caller=viewer(ReadScope.OWN_SESSION))
    assert core.call("profile.structured", caller=viewer(ReadScope.OWN_USER))["status"] == "no_schema"
