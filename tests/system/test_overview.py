"""ops.overview: what is counted, for whom."""

from collections.abc import Mapping
from typing import Any

import pytest

from fakes import ORG, Core, CoreOf
from loom import system
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import Rejected
from loom.planes import code, conversation, knowledge, memory, profile, tracker


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    planes = (memory, profile, conversation, knowledge, tracker)
    ops = [op for plane in planes for op in plane.OPS]
    library = code.Library(knowledge.keep_text, knowledge.forget_text)
    return core_of([*ops, *code.ops(library), *system.OPS])


def spaces(core: Core, **args: Any) -> dict[str, dict[str, int]]:
    return {space["name"]: counts(space) for space in core.call("ops.overview", **args)["namespaces"]}


def counts(space: Mapping[str, object]) -> dict[str, int]:
    return {name: value for name, value in space.items() if value and isinstance(value, int)}


def filled(core: Core) -> Core:
    for number in range(3):
        core.call("memory.set", memory_key=f"k{number}", value="x", user_id="ada" if number else "-")
    core.call("memory.set", memory_key="gone", value="x")
    core.call("memory.delete", memory_key="gone")
    core.call("profile.set", label="goals", value="x", user_id="bob")
    core.call("conversation.append", session="s", user_id="ada", messages=[{"role": "user", "content": "hi"}])
    core.call("knowledge.add", text="Tea.", uri="a", namespace="docs")
    core.call("tracker.add", number=1, title="Crash", namespace="bugs", org="tracker")
    return core


def test_an_empty_store_has_nothing_to_count(core: Core) -> None:
    answer = core.call("ops.overview", lookback_days=3)
    assert (answer["namespaces"], answer["exact"]) == ([], True)
    assert [day["day"] for day in answer["days"]] == ["2026-02-27", "2026-02-28", "2026-03-01"]
    assert not any(day["memories"] or day["documents"] or day["conversations"] for day in answer["days"])


def test_each_plane_is_counted_where_it_is_kept(core: Core) -> None:
    assert spaces(filled(core)) == {
        "local": {"memories": 3, "sections": 1, "conversations": 1},
        "docs": {"documents": 1},
        "bugs": {"issues": 1},
    }


def test_a_token_sees_its_own_org_alone(core: Core) -> None:
    filled(core)
    found = core.call("ops.overview", caller=Caller("token", Role.VIEWER, {"org": ORG}))
    assert {space["name"] for space in found["namespaces"]} == {"local", "docs"}


def test_days_are_those_of_the_latest_write(core: Core) -> None:
    core.call("memory.set", memory_key="a", value="x")
    core.call("memory.set", memory_key="b", value="x")
    core.clock.step(days=2)
    core.call("memory.set", memory_key="b", value="y")
    core.call("knowledge.add", text="Tea.", uri="a")
    days = {day["day"]: (day["memories"], day["documents"]) for day in core.call("ops.overview")["days"]}
    assert (len(days), days["2026-03-01"], days["2026-03-03"]) == (30, (1, 0), (1, 1))
    assert sum(memories for memories, _ in days.values()) == 2


def test_planes_that_are_not_asked_for_are_not_counted(core: Core) -> None:
    assert spaces(filled(core), planes=["conversations"])["local"] == {"conversations": 1}


@pytest.mark.parametrize(
    ("scope", "pins", "counted"),
    [
        (ReadScope.OWN_USER, {"user_id": "ada"}, {"memories": 3, "conversations": 1}),
        (ReadScope.OWN_USER, {"user_id": "bob"}, {"memories": 1, "sections": 1}),
        (ReadScope.OWN_SESSION, {"user_id": "ada", "session_id": "other"}, {"memories": 1}),
    ],
)
def test_a_narrow_reader_learns_of_nobody_else(
    core: Core, scope: ReadScope, pins: dict[str, str], counted: dict[str, int]
) -> None:
    filled(core)
    reader = Caller("narrow", Role.VIEWER, {"org": ORG, **pins}, frozenset({"local"}), scope)
    found = core.call("ops.overview", caller=reader)
    names = [space["name"] for space in found["namespaces"]]
    assert names == ["local"], "nor of namespaces out of reach"
    assert counts(found["namespaces"][0]) == counted
    of_days = sum(day["memories"] for day in found["days"])
    assert of_days == counted["memories"] + counted.get("sections", 0) + 1, "and what ended"


def test_another_org_learns_nothing(core: Core) -> None:
    filled(core)
    other = Caller("other", Role.ADMIN, {"org": "other"})
    assert core.call("ops.overview", caller=other)["namespaces"] == []


@pytest.mark.parametrize("args", [{"lookback_days": 0}, {"lookback_days": 91}, {"planes": ["secrets"]}])
def test_bad_windows_and_planes_are_refused(core: Core, args: dict[str, Any]) -> None:
    with pytest.raises(Rejected):
        core.call("ops.overview", **args)
