"""Which schemas a namespace may have, what their errors say, and which values fit."""

import time
from contextlib import suppress
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structured_kit import LATE, OPS, OTHER_SCHEMA, SCHEMA, TestBuilder, jobs_of, remember, structured

from fakes import Core, CoreOf
from loom.access.caller import Caller, Role
from loom.canonical import Json, measured
from loom.errors import Denied, NotFound, Rejected, ShaMismatch
from loom.planes.profile.structured import schema as schemas
from loom.planes.profile.structured.schema import Misfit, Schema


def opened(document: dict[str, Any]) -> Schema:
    schemas.checked(document)
    found = schemas.opened(measured(cast("Json", document)).text)
    assert found is not None
    return found


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def chain(count: int) -> dict[str, Any]:
    """Each part refers to the next one twice, so that following them all takes 2^count steps."""
    parts: dict[str, Any] = {"d0": {"type": "string"}}
    for number in range(1, count):
        parts[f"d{number}"] = {"allOf": [{"$ref": f"#/$defs/d{number - 1}"}] * 2}
    return {**of(a={"$ref": f"#/$defs/d{count - 1}"}), "$defs": parts}


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        inner = {"items": inner}
    return of(a=inner)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no type": ({}, "/type"),
    "another type": ({"type": "array"}, "/type"),
    "types": ({"type": ["object", "null"]}, "/type"),
    "a type that is none": (of(age={"type": "int"}), "/properties/age/type"),
    "a property that is no schema": (of(age=3), "/properties/age"),
    "an escaped name": (of(**{"a/b~c": {"type": "int"}}), "/properties/a~1b~0c/type"),
    "another draft": ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, "/$schema"),
    "a schema elsewhere": (of(a={"$ref": "https://example.org/x"}), "/properties/a/$ref"),
    "a file": (of(a={"$ref": "file:///etc/passwd"}), "/properties/a/$ref"),
    "a relative one": (of(a={"$ref": "x.json#/a"}), "/properties/a/$ref"),
    "a dynamic one elsewhere": (of(a={"$dynamicRef": "https://example.org/x"}), "/properties/a/$dynamicRef"),
    "nothing there": (of(a={"$ref": "#/$defs/b"}), "/properties/a/$ref"),
    "no schema there": ({**of(a={"$ref": "#/title"}), "title": "x"}, "/properties/a/$ref"),
    "an anchor that is none": (of(a={"$ref": "#b"}), "/properties/a/$ref"),
    "itself": ({**of(a={"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/a"}}}, "/$defs/a"),
    "the whole": (of(a={"items": {"$ref": "#"}}), "/properties/a/items"),
    "an address inside": (of(a={"$id": "https://example.org/x"}), "/properties/a/$id"),
    "a pattern that is none": (of(a={"pattern": "("}), "/properties/a/pattern"),
    "a long pattern": (of(a={"pattern": "a" * 501}), "/properties/a/pattern"),
    "a pattern of names": (of(a={"patternProperties": {"(a+)+$": True}}), "/properties/a/patternProperties/(a+)+$"),
    "too deep": (nested(40), ""),
    "too many steps": (chain(30), "/$defs/"),
    "too many properties": (of(**{f"p{number}": {} for number in range(201)}), "/properties"),
    "too large": (of(a={"description": "x" * 66_000}), ""),
}


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(OPS, jobs_of(TestBuilder()), LATE)


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_a_schema_is_refused_by_its_place(case: str) -> None:
    document, pointer = WRONG[case]
    began = time.process_time()
    with pytest.raises(Rejected) as refused:
        schemas.checked(document)
    assert time.process_time() - began < 5
    assert refused.value.extras["field"] == "json_schema"
    assert str(refused.value.extras["pointer"]).startswith(pointer)
    assert pointer != "" or refused.value.extras["pointer"] == ""


def test_as_much_as_is_allowed_is_taken() -> None:
    opened(of(**{f"p{number}": {"type": "string"} for number in range(200)}))
    opened(of(a={"description": "x" * 65_000}))
    opened({"type": "object"})
    opened({**of(a={"$ref": "#b"}, b={"$ref": "#/$defs/c~1d"}), "$defs": {"x": {"$anchor": "b"}, "c/d": {}}})
    opened(of(a=True, b={"$dynamicRef": "#it"}, c={"$dynamicAnchor": "it", "type": "string"}))
    opened(of(a={"enum": [{"$ref": "https://example.org"}]}, b={"default": {"$ref": "#/nowhere"}}))


def test_values_are_held_to_types_formats_and_what_they_refer_to() -> None:
    schema = opened(
        {
            **of(
                born={"type": "string", "format": "date"},
                mail={"type": "string", "format": "email"},
                site={"type": "string", "format": "uri"},
                met={"type": "string", "format": "date-time"},
                size={"$ref": "#/$defs/size"},
                code={"type": "string", "pattern": "^[A-Z]{2}$"},
                likes={"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            ),
            "$defs": {"size": {"enum": ["s", "m"]}},
            "required": ["born", "other"],
            "additionalProperties": False,
        }
    )
    good: dict[str, Json] = {
        "born": "1815-12-10",
        "mail": "ada@example.org",
        "site": "https://example.org/a",
        "met": "2026-01-31T09:30:00Z",
        "size": "s",
        "code": "GB",
        "likes": ["tea", "maths"],
    }
    bad: dict[str, Json] = {
        "born": "10 December",
        "mail": "ada",
        "site": "no site",
        "met": "yesterday",
        "size": "xl",
        "code": "gb",
        "likes": ["tea", "tea"],
    }
    assert schema.fitting(good) == good
    assert schema.fitting(bad) == {}
    assert schema.fitting({"born": good["born"], "size": "xl", "unknown": 1, "mail": None}) == {"born": good["born"]}
    assert schema.fitting({"code": "G" * 9000}) == {}


def test_values_that_are_forbidden_together_are_not_kept() -> None:
    schema = opened({**of(a={"type": "string"}, b={"type": "string"}), "not": {"required": ["a", "b"]}})
    assert schema.fitting({"a": "x"}) == {"a": "x"}
    with pytest.raises(Misfit):
        schema.fitting({"a": "x", "b": "y"})
    either = opened({**of(a={"type": "string"}, b={}), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})
    assert either.fitting({}) == {}
    assert either.fitting({"a": "x"}) == {"a": "x"}


@pytest.mark.parametrize("pattern", [r"^(a|a|aa)+$", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(.*)*x", r"^(a?){30}a{30}$"])
def test_a_pattern_that_takes_for_ever_does_not_match(pattern: str) -> None:
    schema = opened(of(a={"type": "string", "pattern": pattern}))
    began = time.process_time()
    schema.fitting({"a": "a" * 4000 + "!"})
    assert time.process_time() - began < 2


words = st.sampled_from(
    ["type", "properties", "$ref", "$defs", "items", "anyOf", "pattern", "a", "object", "#", "#/$defs/a"]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(words, json_values, max_size=4))
def test_whatever_comes_is_taken_or_refused(document: dict[str, Any]) -> None:
    for tried in (document, {"type": "object", **document}, of(a=document)):
        try:
            schemas.checked(tried)
        except Rejected:
            continue
        with suppress(Misfit):
            opened(tried).fitting({"a": {"a": [1, "x"]}})


def test_setting_reading_and_deleting(core: Core) -> None:
    nothing = core.call("profile.schema_get")
    assert (nothing["found"], nothing["json_schema"], nothing["schema_sha256"]) == (False, None, "")
    first = core.call("profile.schema_set", json_schema=SCHEMA)
    assert first["changed"]
    assert first["schema_sha256"] == measured(SCHEMA).sha256
    again = core.call("profile.schema_set", json_schema=SCHEMA)
    assert again == {**first, "changed": False}
    shown = core.call("profile.schema_get")
    assert shown["json_schema"] == SCHEMA
    assert list(shown["json_schema"]["properties"]) == list(SCHEMA["properties"])
    assert shown["updated_by"] == "local"
    assert shown["updated_at"] == first["updated_at"]
    second = core.call("profile.schema_set", json_schema=OTHER_SCHEMA, if_match_sha256=first["schema_sha256"].upper())
    assert core.call("profile.schema_get", version_text=first["version_text"])["json_schema"] == SCHEMA
    with pytest.raises(ShaMismatch) as refused:
        core.call("profile.schema_set", json_schema=SCHEMA, if_match_sha256=first["schema_sha256"])
    assert refused.value.extras["current_sha256"] == second["schema_sha256"]
    with pytest.raises(ShaMismatch):
        core.call("profile.schema_delete", if_match_sha256=first["schema_sha256"])
    core.call("profile.schema_delete", if_match_sha256=second["schema_sha256"])
    gone = core.call("profile.schema_get")
    assert not gone["found"]
    assert [one["schema_sha256"] for one in gone["history"]] == ["", second["schema_sha256"], first["schema_sha256"]]
    with pytest.raises(NotFound):
        core.call("profile.schema_delete")
    with pytest.raises(ShaMismatch):
        core.call("profile.schema_set", json_schema=SCHEMA, if_match_sha256=second["schema_sha256"])
    assert core.call("profile.schema_set", json_schema=SCHEMA)["changed"]


def test_a_refused_schema_changes_nothing(core: Core) -> None:
    core.call("profile.schema_set", json_schema=SCHEMA)
    before = core.call("profile.schema_get")
    for document, _ in WRONG.values():
        with pytest.raises(Rejected):
            core.call("profile.schema_set", json_schema=document)
    wrong: list[Any] = [[], "x", None, 3]
    for value in wrong:
        with pytest.raises(Rejected):
            core.call("profile.schema_set", json_schema=value)
    with pytest.raises(Rejected):
        core.call("profile.schema_get", version_text="x")
    assert core.call("profile.schema_get") == before


def test_only_an_admin_changes_a_schema_and_namespaces_are_apart(core: Core) -> None:
    writer = Caller("t", Role.WRITER, {"org": "dev"}, None)
    with pytest.raises(Denied):
        core.call("profile.schema_set", json_schema=SCHEMA, caller=writer)
    with pytest.raises(Denied):
        core.call("profile.schema_delete", caller=writer)
    core.call("profile.schema_set", json_schema=SCHEMA)
    assert core.call("profile.schema_get", caller=writer)["found"]
    assert not core.call("profile.schema_get", namespace="other")["found"]
    assert not core.call("profile.schema_get", org="other")["found"]
    narrow = Caller("t", Role.ADMIN, {"org": "dev"}, frozenset({"other"}))
    with pytest.raises(Denied):
        core.call("profile.schema_set", json_schema=OTHER_SCHEMA, caller=narrow, namespace="local")


def test_a_stored_schema_that_cannot_be_used_any_more_counts_for_none(core: Core) -> None:
    remember(core, "name", "Ada")
    core.call("profile.schema_set", json_schema=SCHEMA)
    for text in ('{"type":"object","properties":{"a":{"type":"of old"}}}', "{", "[]", '{"$ref":"https://x"}'):
        with core.database.transaction("dev", write=True) as tx:
            tx.run("UPDATE profile_schema SET definition = :text WHERE org = :org", text=text)
        answer = structured(core)
        assert (answer["status"], answer["profile"], answer["memory_id"]) == ("no_schema", {}, "")
        core.clock.step(seconds=2)
        core.drain()
        assert core.call("profile.evidence", user_id="ada")["properties"] == []
        assert core.call("profile.users")["users"][0]["status"] == "no_schema"
