"""Schemas made strict: what every endpoint takes, and what it then means."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.models.strict_schema import inlined, strict

ALLOWED = {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "description"}


def keywords(schema: Any) -> set[str]:
    """Every keyword of a made schema."""
    found = set(schema)
    for part in [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), schema.get("items")]:
        if part is not None:
            found |= keywords(part)
    return found


def test_every_property_is_required_and_an_optional_one_may_be_null() -> None:
    made = strict(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}, "c": {"enum": ["x", None]}},
            "required": ["a"],
            "minProperties": 1,
        }
    )
    assert made.exact
    assert made.schema == {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "c": {"enum": ["x", None]},
        },
        "required": ["a", "b", "c"],
        "additionalProperties": False,
    }


def test_references_are_followed_within_the_document() -> None:
    root: dict[str, Any] = {
        "$defs": {"city/town": {"type": "string", "description": "A city."}, "loop": {"$ref": "#/$defs/loop"}},
        "type": "object",
        "properties": {
            "home": {"$ref": "#/$defs/city~1town", "description": "Where they live."},
            "work": {"$ref": "#/properties/home"},
            "loop": {"$ref": "#/$defs/loop"},
            "gone": {"$ref": "#/$defs/gone"},
            "far": {"$ref": "https://example.com/schema"},
        },
        "required": ["home", "work", "loop", "gone", "far"],
    }
    properties: Any = strict(root).schema["properties"]
    assert properties["home"] == {"type": "string", "description": "Where they live."}
    assert properties["work"] == properties["home"]
    assert inlined({"$ref": "#/$defs/city~1town"}, root)["type"] == "string"
    assert "$ref" not in json.dumps(properties)


def test_a_schema_that_never_ends_is_cut() -> None:
    tree: dict[str, Any] = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    assert not strict(tree).exact
    wide: dict[str, Any] = {"$defs": {"n": {"type": "object", "properties": {}}}}
    wide["$defs"]["n"]["properties"] = {f"p{n}": {"$ref": "#/$defs/n"} for n in range(50)}
    assert len(json.dumps(strict({**wide, "$ref": "#/$defs/n"}).schema)) < 4_000_000


def test_parts_add_up() -> None:
    made = strict(
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            ]
        }
    ).schema
    assert made["properties"] == {"a": {"enum": [1], "type": "integer"}, "b": {"type": "string"}}


@pytest.mark.parametrize(
    "free",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array"},
        {},
        {"not": {"type": "string"}},
        {"oneOf": []},
    ],
)
def test_what_cannot_be_said_exactly(free: dict[str, Any]) -> None:
    assert not strict({"type": "object", "properties": {"a": free}}).exact


schemas: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "object", "array", "null", "odd", ["string", "null"], 3]),
            "enum": st.lists(st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)), max_size=3),
            "format": st.just("date"),
            "$ref": st.sampled_from(["#", "#/properties/a", "#/allOf/0", "x", 3]),
            "description": st.one_of(st.text(max_size=5), st.none()),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array"]),
            "properties": st.dictionaries(st.sampled_from(["a", "b", "$ref"]), inner, max_size=2),
            "items": st.one_of(inner, st.booleans()),
            "prefixItems": st.lists(inner, max_size=2),
            "anyOf": st.lists(inner, max_size=2),
            "allOf": st.lists(inner, max_size=2),
            "required": st.one_of(st.lists(st.sampled_from(["a", "z"]), max_size=2), st.none()),
        },
    ),
    max_leaves=5,
)


@given(schemas)
def test_whatever_comes_the_form_is_kept(schema: Any) -> None:
    made = strict(schema)
    assert keywords(dict(made.schema)) <= ALLOWED
    json.dumps(made.schema)
