"""context.pack and context.activate: what an agent is to know, within a budget."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from fakes import Core, CoreOf
from loom import federation
from loom.access.caller import Caller, ReadScope, Role
from loom.canonical import Json
from loom.errors import LoomError
from loom.ledger import embedding
from loom.planes import memory, profile
from loom.planes.leg import Leg, Question, Section
from loom.storage.interface import StoreError, Transaction

TRACKER: dict[str, Json] = {
    "verdict": "duplicate",
    "candidates": [
        {"verdict": "duplicate", "issue": {"number": 7, "title": "It </context> crashes", "state": "open", "url": ""}}
    ],
}
PASSAGE: dict[str, Json] = {
    "title": "Guide",
    "uri": "docs/guide.md",
    "first_line": 3,
    "last_line": 9,
    "first_page": None,
    "headings": ["Deploy", "Shop"],
    "text": "Run the script.",
}
TURN: dict[str, Json] = {
    "session": "s1",
    "speaker": "Ada",
    "role": "user",
    "said_at": "2026-01-01T00:00:00Z",
    "text": "Ship it.",
}


def leg(name: str, body: dict[str, Json], hits: int = 1, error: Exception | None = None) -> Leg:
    def ask(tx: Transaction, question: Question) -> Section:
        del tx, question
        if error is not None:
            raise error
        return Section(body, hits)

    return Leg(name, ask)


@pytest.fixture(name="core")
def _core(core_of: CoreOf) -> Core:
    legs = [
        memory.LEG,
        profile.LEG,
        leg("tracker", TRACKER),
        leg("knowledge", {"results": [PASSAGE]}),
        leg("conversations", {"results": [TURN]}),
    ]
    core = core_of([*memory.OPS, *profile.OPS, *federation.ops(legs)], embedding.JOBS, {**memory.LATE, **profile.LATE})
    core.call(
        "memory.set", memory_key="shop/deploy", value="The shop is deployed with make ship.", memory_type="decision"
    )
    core.call("profile.set", label="persona", value="Ada runs the shop.")
    core.call("profile.set", label="goals", value="Deploy the shop every day & <night>.")
    return core


def names(answer: dict[str, Any]) -> list[str]:
    return [section["name"] for section in answer["sections"]]


def test_a_pack_holds_every_plane(core: Core) -> None:
    answer = core.call("context.pack", query="deploy the shop")
    assert names(answer) == ["tracker", "profile", "memory", "knowledge", "conversations"]
    root = ET.fromstring(answer["text"])  # noqa: S314  # our own text
    assert [child.tag for child in root] == ["known_defects", "profile", "memories", "documents", "conversations"]
    [issue] = root.iter("issue")
    assert (issue.get("number"), issue.get("match"), issue.text) == ("7", "duplicate", "It </context> crashes")
    [stored] = root.iter("memory")
    assert (stored.get("key"), stored.text) == ("shop/deploy", "The shop is deployed with make ship.")
    [passage] = root.iter("passage")
    assert (passage.get("lines"), passage.get("under"), passage.get("page")) == ("3-9", "Deploy / Shop", None)
    [turn] = root.iter("turn")
    assert (turn.get("said_by"), turn.text) == ("Ada", "Ship it.")
    assert answer["tokens"] <= 2000
    assert answer["degraded"] == []


def test_a_section_without_a_budget_is_not_even_asked(core: Core) -> None:
    answer = core.call("context.pack", query="deploy the shop", budgets={"tracker": 0, "conversations": 0})
    assert names(answer) == ["profile", "memory", "knowledge"]
    assert "known_defects" not in answer["text"]


def test_a_new_defect_says_nothing(core_of: CoreOf) -> None:
    core = core_of(federation.ops([leg("tracker", TRACKER | {"verdict": "new"}, 0)]))
    assert core.call("context.pack", query="crash") == {"text": "", "tokens": 0, "sections": [], "degraded": []}


def test_the_budget_bounds_the_pack(core: Core) -> None:
    for number in range(60):
        core.call("memory.set", memory_key=f"shop/{number}", value=f"the shop deploys {'word ' * 200}{number}")
    answer = core.call("context.pack", query="deploy the shop", tokens_max=500)
    assert len(answer["text"]) <= 4 * 500 + len("<context>\n\n</context>") + 10
    [section] = [one for one in answer["sections"] if one["name"] == "memory"]
    assert section["left_out"] > 0
    wide = core.call("context.pack", query="deploy the shop", tokens_max=500, budgets={"memory": 450})
    assert next(one for one in wide["sections"] if one["name"] == "memory")["tokens"] > section["tokens"]


def test_a_leg_that_fails_is_left_out_and_named(core_of: CoreOf) -> None:
    core = core_of(
        federation.ops([leg("knowledge", {}, error=StoreError("x")), leg("conversations", {"results": [TURN]})])
    )
    answer = core.call("context.pack", query="ship")
    assert (names(answer), answer["degraded"]) == (["conversations"], ["knowledge"])


def test_activate_gives_the_guide_the_goals_and_the_profile(core: Core) -> None:
    answer = core.call("context.activate")
    assert names(answer) == ["how_to", "goals", "profile"]
    root = ET.fromstring(answer["text"])  # noqa: S314  # our own text
    assert [child.tag for child in root] == ["how_to", "goals", "profile"]
    goals, others = root.find("goals"), root.find("profile")
    assert goals is not None
    assert others is not None
    assert [section.text for section in goals] == ["Deploy the shop every day & <night>."]
    assert [section.get("label") for section in others] == ["persona"]
    assert "search.query" in answer["text"]


def test_activate_of_an_empty_namespace_is_the_guide(core: Core) -> None:
    assert names(core.call("context.activate", namespace="empty")) == ["how_to"]


def test_activate_is_the_same_text_as_long_as_nothing_changes(core: Core) -> None:
    first = core.call("context.activate")["text"]
    core.clock.step(hours=5)
    assert core.call("context.activate")["text"] == first


def test_a_large_profile_leaves_room_for_the_goals(core: Core) -> None:
    for number in range(40):
        core.call("profile.set", label=f"a{number:02}", value="x" * 900)
    answer = core.call("context.activate", tokens_max=800)
    assert answer["tokens"] <= 800
    goals, others = answer["sections"][1], answer["sections"][2]
    assert (goals["shown"], goals["left_out"]) == (1, 0)
    assert others["left_out"] > 0


def test_reading_the_profile_this_way_is_noted(core: Core) -> None:
    core.call("context.activate", agent="codex")
    core.call("context.pack", query="deploy the shop", agent="cursor")
    entries = core.call("profile.activity")["entries"]
    assert {(one["agent"], one["last_op"]) for one in entries} == {
        ("codex", "context.activate"),
        ("cursor", "search.query"),
    }


def test_a_narrow_token_is_shown_no_other_users_sections(core: Core) -> None:
    core.call("profile.set", label="secret", value="of bob", user_id="bob")
    ada = Caller("ada", Role.VIEWER, {"org": "dev", "user_id": "ada"}, read_scope=ReadScope.OWN_USER)
    asked = "of bob secret"
    assert "of bob" in core.call("context.activate")["text"]
    assert "of bob" in core.call("context.pack", query=asked)["text"]
    assert "of bob" not in core.call("context.activate", caller=ada)["text"]
    assert "of bob" not in core.call("context.pack", caller=ada, query=asked)["text"]


@pytest.mark.parametrize(
    ("op", "field", "value"),
    [
        ("context.pack", "query", " "),
        ("context.pack", "tokens_max", 199),
        ("context.pack", "tokens_max", 32_001),
        ("context.pack", "budgets", {"memory": -1}),
        ("context.pack", "budgets", {"nonsense": 5}),
        ("context.activate", "tokens_max", 1),
    ],
)
def test_bad_input_names_its_field(core: Core, op: str, field: str, value: Any) -> None:
    args: dict[str, Any] = {"query": "x"} if op == "context.pack" else {}
    with pytest.raises(LoomError) as raised:
        core.call(op, **(args | {field: value}))
    assert raised.value.status == 422
    assert str(raised.value.extras["field"]).split(".")[0] == field


def test_without_an_embedder_a_pack_is_made_by_words(core: Core) -> None:
    core.embedder.off.set()
    answer = core.call("context.pack", query="deploy the shop")
    assert "memory" in names(answer)
    assert answer["degraded"] == ["embedder"]
