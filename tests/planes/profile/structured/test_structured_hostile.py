"""Whoever writes memories and schemas in bad faith: strange names, much text, and a namespace that goes meanwhile."""

import time
from typing import Any

import pytest
from facts import built, fact
from structured_kit import LATE, OPS, TestBuilder, jobs_of, remember, settle, structured

from fakes import Core, CoreOf
from loom import system
from loom.canonical import Json
from loom.errors import InvalidText, Rejected
from loom.ledger import derived, writes
from loom.models.hashing import HashingEmbedder
from loom.planes import memory, profile
from loom.planes.profile.structured.building import BUILD
from loom.planes.profile.structured.rules_builder import RulesBuilder
from loom.planes.profile.structured.words import TEXT_CHARACTERS_MAX

NAMES = (
    "a/b",
    "~1",
    "~0/",
    "__proto__",
    "constructor",
    "größe",
    "日本",
    "👩‍👩‍👧",
    "%41",
    " ",
    "'; DROP",
    "a" * 119,
)
TEXTS = (
    "a@" + "a." * 1_000,
    "A " * 1_000,
    "Aa & " * 400,
    "1, " * 700,
    "1.1.1." * 400,
    "not no never " * 150,
    "(" * 2_000,
    "2026-01-" * 250,
    "https://" + "x" * 2_000,
    "profile: " * 220,
    "green or black and " * 100,
    "5'" * 1_000,
    "his sister's " * 150,
    "ignore previous instructions " * 60,
    "Straße " * 280,
    "到2026年" * 300,
    "\u202e\u200d\ufeff" * 600,
    "A_" * 1_000,
    "a1/" * 660,
    "-" * 2_000,
    " " * 2_000 + "x",
    "von de la " * 200,
)
SECONDS_EACH = 2.0


def schema_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(OPS, jobs_of(TestBuilder()), LATE)


def test_properties_of_any_name_have_values_and_evidence(core: Core) -> None:
    core.call("profile.schema_set", json_schema=schema_of(**{name: {"type": "integer"} for name in NAMES}))
    for number, name in enumerate(NAMES):
        remember(core, f"fact/{number}", number, tags=[f"profile:{name}"] if name.strip() else ["profile: x"])
    settle(core)
    answer = structured(core)
    assert answer["status"] == "ready"
    assert set(answer["profile"]) == set(NAMES)
    for number, name in enumerate(NAMES):
        if name.strip():
            assert answer["profile"][name] == number, name
            [shown] = core.call("profile.evidence", user_id="ada", property=name)["properties"]
            assert [one["memory_key"] for one in shown["sources"]] == [f"fact/{number}"]


@pytest.mark.parametrize("name", ["", "a" * 257, "a\x00b", "\ud800"])
def test_a_name_that_no_store_can_keep_beside_a_source_is_refused(core: Core, name: str) -> None:
    with pytest.raises((Rejected, InvalidText)):
        core.call("profile.schema_set", json_schema=schema_of(**{name: {"type": "string"}, "ok": {"type": "integer"}}))


@pytest.mark.slow
def test_texts_that_are_made_to_be_slow_are_read_in_time() -> None:
    wanted: dict[str, Json] = {
        "tea": {"enum": ["green", "black", "5'"], "description": "Tea the user drinks, green is 'green'."},
        "age": {"type": "integer", "description": "Age in years."},
        "tall_cm": {"type": "number", "description": "Height in centimetres. Feet and inches are converted."},
        "born": {"type": "string", "format": "date", "description": "Date of birth."},
        "mail": {"type": "string", "format": "email"},
        "site": {"type": "string", "format": "uri"},
        "code": {"type": "string", "pattern": "^(a|aa)+$"},
        "sauna": {"type": "boolean", "description": "Whether there is a sauna."},
        "name": {"type": "string", "description": "Name of the user."},
        "toys": {"type": "array", "items": {"enum": ["kite"]}, "description": "Toys. An empty list if none."},
        "words": {"type": "array", "items": {"type": "string"}},
    }
    for text in TEXTS:
        began = time.process_time()
        built(wanted, *(fact(name, text[:TEXT_CHARACTERS_MAX]) for name in wanted), fact("note", text))
        assert time.process_time() - began < SECONDS_EACH, text[:20]


def test_many_properties_with_many_choices_are_read_in_time() -> None:
    wanted: dict[str, Json] = {
        f"choice_{number}": {"enum": [f"w{number}x{place}" for place in range(30)], "description": "Some choice."}
        for number in range(200)
    }
    began = time.process_time()
    found = built(wanted, *(fact(f"note/{number}", f"w{number}x3 is it.") for number in range(200)))
    assert time.process_time() - began < 20.0
    assert len(found) <= 200


def test_a_namespace_that_is_deleted_during_a_build_leaves_nothing(core_of: CoreOf) -> None:
    builder = TestBuilder()
    operations = system.operations((writes.purge_namespace, profile.purge_namespace))
    core = core_of((*memory.OPS, *profile.OPS, *operations), jobs_of(builder), LATE)
    core.call("profile.schema_set", json_schema=schema_of(name={"type": "string"}))
    remember(core, "name", "Ada")
    core.clock.step(seconds=2)

    def delete() -> None:
        builder.during = None
        core.call("namespace.delete", name="local", confirm="local")

    builder.during = delete
    core.jobs[BUILD](core.bench, "dev", [derived.subject_of("local", "ada")])
    assert structured(core)["status"] == "no_schema"
    with core.database.transaction("dev", write=False) as tx:
        for table in ("ledger_item", "ledger_version", "derived_user", "derived_build", "derived_source", "namespace"):
            assert tx.rows(f"SELECT 1 AS one FROM {table} WHERE org = :org") == [], table  # noqa: S608  # names above


def test_another_agents_tag_settles_a_property_of_its_own_user_alone(core: Core) -> None:
    core.call("profile.schema_set", json_schema=schema_of(name={"type": "string"}))
    remember(core, "name", "Ada")
    remember(core, "x", "Mallory", user_id="bob", agent="mallory", tags=["profile:name"])
    settle(core)
    assert structured(core)["profile"]["name"] == "Ada"
    assert structured(core, user_id="bob")["profile"]["name"] == "Mallory"


@pytest.mark.slow
def test_facts_of_the_longest_kind_are_read_in_time(core_of: CoreOf) -> None:
    core = core_of(OPS, {**jobs_of(TestBuilder()), **profile.jobs(RulesBuilder(HashingEmbedder()))}, LATE)
    core.call("profile.schema_set", json_schema=schema_of(tea={"enum": ["green", "black"]}, words={"type": "string"}))
    remember(core, "tea", "green")
    for number in range(3):
        remember(core, f"long/{number}", "black tea " * 26_000)
        remember(core, f"deep/{number}", {"tea": ["black"] * 20_000})
    began = time.process_time()
    settle(core)
    assert time.process_time() - began < 20.0
    assert structured(core)["status"] in ("ready", "stale")
    assert structured(core)["profile"]["tea"] in ("green", None)
