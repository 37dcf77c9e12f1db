"""What is promised of identity, unknown fields and keys, for every operation."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fakes import ORG, Core
from loom.access.caller import LOCAL, Caller, Install, ReadScope, Role, Transport
from loom.errors import Denied, KeyReused, Rejected
from loom.ops.spec import IDENTITY_FIELDS

NOT_GIVEN = ["-", "", None]
ADMIN = Caller("admin", Role.ADMIN, {"org": ORG})
TEAM = Caller("team", Role.WRITER, {"org": ORG}, frozenset({"team"}))
PINNED = Caller("pinned", Role.WRITER, {"org": ORG, "agent": "bot", "user_id": "ann"}, frozenset({"team"}))
FROM_CLIENT = Transport(agent="codex", session_id="talk-1")
NOTE = {"memory_key": "k", "value": "tea"}


def call(core: Core, op: str, caller: Caller, args: Mapping[str, Any], transport: Transport | None = None) -> Any:
    return core.dispatcher.call(op, caller, transport or Transport(), args)


def identity(answer: Mapping[str, Any]) -> tuple[str, str, str]:
    return answer["namespace"], answer["agent"], answer["user_id"]


@pytest.mark.parametrize("nothing", NOT_GIVEN)
def test_dash_empty_and_null_are_not_given(core: Core, nothing: str | None) -> None:
    answer = call(core, "memory.set", LOCAL, dict.fromkeys(IDENTITY_FIELDS, nothing) | NOTE, FROM_CLIENT)
    assert identity(answer) == ("local", "codex", "-")
    assert "ignored_args" not in answer
    assert call(core, "memory.get", LOCAL, {"memory_key": "k"})["session_id"] == "talk-1"


def test_the_token_comes_before_the_request_the_request_before_the_transport(core: Core) -> None:
    assert identity(call(core, "memory.set", PINNED, NOTE, FROM_CLIENT)) == ("team", "bot", "ann")
    assert identity(call(core, "memory.set", TEAM, NOTE | {"agent": "mine"}, FROM_CLIENT)) == ("team", "mine", "-")
    assert identity(call(core, "memory.set", TEAM, NOTE, FROM_CLIENT)) == ("team", "codex", "-")


@pytest.mark.parametrize(
    "other", [{"org": "other"}, {"namespace": "other"}, {"agent": "other"}, {"user_id": "other"}], ids=str
)
def test_what_a_token_fixes_is_refused_when_sent_otherwise(core: Core, other: dict[str, str]) -> None:
    for op in core.dispatcher.registry:
        if op.role <= PINNED.role:
            with pytest.raises(Denied):
                call(core, op.name, PINNED, dict(op.example) | other)


@pytest.mark.parametrize("nothing", NOT_GIVEN)
def test_no_operation_takes_dash_for_a_namespace(core: Core, nothing: str | None) -> None:
    for op in core.dispatcher.registry:
        if op.takes.model_fields["namespace"].is_required():
            with pytest.raises(Rejected, match="namespace"):
                call(core, op.name, ADMIN, dict(op.example) | {"agent": "a", "namespace": nothing})


def test_an_installs_planes_keep_orgs_of_their_own() -> None:
    assert Install().plane_orgs == {"code": "code", "tracker": "tracker"}


@pytest.mark.parametrize("name", ["feature/x-1", "ünïcode", "with a space", "x" * 256, "'; --", "*.*"])
def test_any_name_without_control_characters_is_legal(core: Core, name: str) -> None:
    answer = call(core, "memory.set", LOCAL, dict.fromkeys(IDENTITY_FIELDS, name) | NOTE)
    assert identity(answer) == (name, name, name)


def test_unknown_fields_are_served_and_named_in_order(core: Core) -> None:
    for op in core.dispatcher.registry:
        if op.name in ("profile.replace", "profile.schema_delete", "memory.restore", "memory.set_from_messages"):
            continue  # their examples need something stored first, or a language model
        own: dict[str, Any] = {"namespace": op.name}
        core.call("memory.set", **own, memory_key="project/database", value="tea")
        version = core.call("memory.get", **own, memory_key="project/database")["version_text"]
        example: dict[str, Any] = (
            own | dict(op.example) | ({"version_text": version} if "version_text" in op.example else {})
        )
        assert core.call(op.name, **example, zoo=1, Ape=None, bee={})["ignored_args"] == ["Ape", "bee", "zoo"]


def test_unknown_fields_of_items_are_served_and_named(core: Core) -> None:
    items: list[dict[str, Any]] = [
        {"memory_key": "a", "value": 1, "tag": ["x"]},
        {"memory_key": "b", "value": 2, "tag": 1, "Zoo": 1},
    ]
    answer = core.call("memory.set_many", key="once", items=items, colour=1)
    assert answer["ignored_args"] == ["colour", "items.Zoo", "items.tag"]
    assert answer["written"] == 2
    assert core.call("memory.set_many", key="once", items=items, colour=1) == answer
    assert "ignored_args" not in core.call("memory.set_many", items=[{"memory_key": "c", "value": 1}])


def test_a_scope_that_an_operation_does_not_take_changes_nothing(core: Core) -> None:
    core.call("profile.render", user_id="ann")
    core.call("profile.render", user_id="bob")
    wide = core.call("profile.activity", user_id="ann")
    narrow = core.call("profile.activity", user_id="ann", read_scope="own_user")
    assert narrow == wide | {"ignored_args": ["read_scope"]}


def test_a_search_reads_as_far_as_it_says(core: Core) -> None:
    for user in ("ann", "bob", "-"):
        core.call("memory.set", memory_key=f"tea/{user}", value="tea", user_id=user)
        core.call("profile.set", label="tea", value="tea", user_id=user)
    narrow = Caller("ann", Role.VIEWER, {"org": ORG, "user_id": "ann"}, read_scope=ReadScope.OWN_USER)
    for answer in (
        core.call("search.query", query="tea", explain=True, user_id="ann", read_scope="own_user"),
        core.call("search.query", query="tea", explain=True, caller=narrow, read_scope="namespace"),
    ):
        assert {hit["user_id"] for hit in answer["memory"]["results"]} == {"ann", "-"}
        assert {section["user_id"] for section in answer["profile"]["sections"]} == {"ann", "-"}
        assert "ignored_args" not in answer


def test_the_first_answer_is_given_again_whatever_happened_since(core: Core) -> None:
    core.call("memory.set", memory_key="k", value=1)
    first = core.call("memory.update", key="once", memory_key="k", value=2)
    core.call("memory.delete", memory_key="k")
    assert core.call("memory.update", key="once", memory_key="k", value=2) == first
    with pytest.raises(KeyReused):
        core.call("memory.update", key="once", memory_key="k", value=3)
    with pytest.raises(KeyReused):
        core.call("profile.append", key="once", label="k", addition="x")


def test_a_replayed_write_asks_no_model(core: Core) -> None:
    core.call("memory.set", key="once", memory_key="k", value="tea")
    asked = core.embedder.texts
    core.call("memory.set", key="once", memory_key="k", value="tea")
    assert core.embedder.texts == asked


def test_a_key_is_kept_for_a_day(core: Core) -> None:
    core.call("profile.append", key="once", label="k", addition="x")
    core.clock.step(hours=23, minutes=59)
    core.call("profile.append", key="once", label="k", addition="x")
    assert core.call("memory.get", memory_key="k")["value"] == "x"
    core.clock.step(minutes=2)
    core.call("profile.append", key="once", label="k", addition="x")
    assert core.call("memory.get", memory_key="k")["value"] == "x\nx"


def test_the_installs_own_values_come_last(core: Core) -> None:
    install = Install(org="here", namespace="home", agent="me")
    dispatcher = replace(core.dispatcher, install=install)
    answer = dispatcher.call("memory.set", LOCAL, Transport(), NOTE)
    assert identity(answer) == ("home", "me", "-")
    assert dispatcher.call("memory.get", LOCAL, Transport(), {"memory_key": "k", "org": "here"})["found"]
    assert not dispatcher.call("memory.get", LOCAL, Transport(), {"memory_key": "k", "org": "dev"})["found"]
