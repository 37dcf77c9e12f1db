"""Every field of every operation refuses what does not fit, and says which field it was."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from running import Server, running

pytestmark = pytest.mark.slow

IDENTITY = ("org", "namespace", "agent", "user_id", "session_id", "run_id")
UNBOUNDED = {
    ("search.query", "query"),
    ("memory.search", "query"),
    ("knowledge.search", "query"),
    ("conversation.search", "query"),
    ("context.pack", "query"),
    ("tracker.search", "query"),
    ("code.search", "query"),
}
"""A query is data of any length; its first 10,000 characters are used."""
LENGTH_MAX = 3_000_000
"""Characters that no text has more of, whatever its schema says."""

WRONG: dict[str, list[object]] = {
    "string": [7, True, ["x"], {"a": 1}],
    "integer": ["seven", 1.5, [1], {"a": 1}],
    "number": ["seven", [1], {"a": 1}],
    "boolean": ["perhaps", 2, [True], {"a": 1}],
    "array": ["x", 7, {"a": 1}],
    "object": ["x", 7, ["a"]],
}


def types_of(schema: dict[str, Any], root: dict[str, Any]) -> set[str]:
    """The JSON types a schema admits; empty for anything."""
    if "$ref" in schema:
        return types_of(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema:
        found = [types_of(part, root) for part in schema["anyOf"]]
        return {kind for kinds in found for kind in kinds} if all(found) else set()
    if "enum" in schema or "const" in schema:
        return {"string"}
    kind: str | list[str] = schema.get("type", [])
    return {kind} if isinstance(kind, str) else set(kind)


def length_max(schema: dict[str, Any]) -> int:
    """The longest text that a schema says it admits, or more than any text may have where it does not say."""
    parts = [schema, *schema.get("anyOf", [])]
    longest = max((part["maxLength"] for part in parts if "maxLength" in part), default=LENGTH_MAX)
    assert longest <= LENGTH_MAX, schema
    return longest


def json_type(value: object) -> str:
    """The JSON type of a value."""
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return next(name for kind, name in names.items() if isinstance(value, kind))


def wrong_values(types: set[str]) -> list[object]:
    """Values of types that are not admitted."""
    candidates = [value for kind in types & WRONG.keys() for value in WRONG[kind]]
    return [
        value
        for value in candidates
        if json_type(value) not in types and not (json_type(value) == "integer" and "number" in types)
    ]


def refused(server: Server, op: str, body: dict[str, Any], field: str) -> None:
    answer = server.http.post(f"/v1/{op}", content=json.dumps(body), headers={"Content-Type": "application/json"})
    shown = f"{op}.{field}={str(body.get(field))[:60]!r}: {answer.status_code} {answer.text[:200]}"
    assert 400 <= answer.status_code < 500, shown
    detail = answer.json()["detail"]
    assert field in detail.get("field", "") or field in detail["message"], shown


def capabilities(server: Server) -> list[dict[str, Any]]:
    return server.call("ops.capabilities")["ops"]


def base_of(op: dict[str, Any], examples: dict[str, Any]) -> dict[str, Any]:
    return {"namespace": "bad", "agent": "a", **examples[op["name"]]}


@pytest.fixture(scope="module")
def examples(server: Server) -> dict[str, Any]:
    document = server.http.get("/openapi.json").json()
    found: dict[str, Any] = {}
    for path, item in document["paths"].items():
        media = item["post"]["requestBody"]["content"]["application/json"]
        found[path.removeprefix("/v1/")] = media.get("example") or media["schema"].get("examples", [{}])[0]
    return found


def test_wrong_types(server: Server, examples: dict[str, Any]) -> None:
    tried = 0
    for op in capabilities(server):
        schema = op["input_schema"]
        for field, part in schema["properties"].items():
            for value in wrong_values(types_of(part, schema)):
                refused(server, op["name"], {**base_of(op, examples), field: value}, field)
                tried += 1
    assert tried > 300


def test_a_required_field_may_not_be_left_out_or_null(server: Server, examples: dict[str, Any]) -> None:
    for op in capabilities(server):
        for field in set(op["input_schema"].get("required", [])) - set(IDENTITY):
            body = base_of(op, examples)
            refused(server, op["name"], {name: value for name, value in body.items() if name != field}, field)
            if types_of(op["input_schema"]["properties"][field], op["input_schema"]):
                refused(server, op["name"], {**body, field: None}, field)


def test_every_text_is_bounded(server: Server, examples: dict[str, Any]) -> None:
    edited = base_of({"name": "profile.replace"}, examples)
    server.call("profile.set", **{name: edited[name] for name in ("namespace", "agent", "label")}, value=edited["old"])
    for op in capabilities(server):
        schema = op["input_schema"]
        for field, part in schema["properties"].items():
            if types_of(part, schema) == {"string"} and (op["name"], field) not in UNBOUNDED:
                long = "x" * (length_max(part) + 1)
                refused(server, op["name"], {**base_of(op, examples), field: long}, field)


def test_control_characters_and_half_surrogates(server: Server, examples: dict[str, Any]) -> None:
    for op in capabilities(server):
        schema = op["input_schema"]
        for field, part in schema["properties"].items():
            if "string" not in types_of(part, schema):
                continue
            base = base_of(op, examples)
            refused(server, op["name"], {**base, field: "a\x00b"}, field)
            for bad in ("\ud800", "x\udfffy"):
                answer = server.http.post(
                    f"/v1/{op['name']}",
                    content=json.dumps({**base, field: bad}),
                    headers={"Content-Type": "application/json"},
                )
                assert answer.status_code == 400, f"{op['name']}.{field}: {answer.status_code}"
            if field in IDENTITY:
                refused(server, op["name"], {**base, field: "line\nbreak"}, field)
                refused(server, op["name"], {**base, field: "x" * 257}, field)


def test_empty_where_a_text_is_needed(server: Server, examples: dict[str, Any]) -> None:
    cases = [
        ("profile.set", "label"),
        ("profile.append", "label"),
        ("profile.replace", "label"),
        ("profile.replace", "old"),
        ("memory.set", "memory_key"),
        ("search.query", "query"),
        ("memory.search", "query"),
    ]
    by_name = {op["name"]: op for op in capabilities(server)}
    for name, field in cases:
        refused(server, name, {**base_of(by_name[name], examples), field: ""}, field)
    refused(server, "search.query", {**base_of(by_name["search.query"], examples), "query": " \n\t "}, "query")


def test_every_example_works_and_unknown_fields_are_named(
    examples: dict[str, Any], tmp_path: Path, store: Mapping[str, str]
) -> None:
    with running(tmp_path / "home", embedder="hashing", **store) as own:
        every = capabilities(own)
        for op in sorted(every, key=lambda op: op["name"] == "token.mint"):  # which ends access without a token
            example_holds(own, op, examples)


def example_holds(server: Server, op: dict[str, Any], examples: dict[str, Any]) -> None:
    body = copy.deepcopy(base_of(op, examples))
    answer = server.http.post(f"/v1/{op['name']}", json={**body, "colour": "x"})
    if answer.status_code == 200:
        assert answer.json()["ignored_args"] == ["colour"], op["name"]
    else:
        assert 400 <= answer.status_code < 500, f"{op['name']}: {answer.text[:300]}"
        assert answer.json()["detail"]["code"] in op["raises"], op["name"]
