from typing import Any

import pytest
from edge_kit import Kit
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from loom.edges.openapi import document, errors_of
from loom.ops.schema import answer_schema, request_schema


@pytest.fixture
def described(kit: Kit) -> dict[str, Any]:
    return document(kit.registry, "1.2.3")


def test_every_operation_has_a_path_and_every_status_it_can_give(kit: Kit, described: dict[str, Any]) -> None:
    assert set(described["paths"]) == {f"/v1/{op.name}" for op in kit.registry}
    for op in kit.registry:
        post = described["paths"][f"/v1/{op.name}"]["post"]
        statuses = {"200", *(str(error.status) for error in errors_of(op))}
        assert set(post["responses"]) == statuses
        assert post["requestBody"]["content"]["application/json"]["example"] == dict(op.example)
        assert post["operationId"] == op.name
    assert "409" in described["paths"]["/v1/note.set"]["post"]["responses"]
    assert "409" not in described["paths"]["/v1/note.get"]["post"]["responses"]


def test_every_reference_leads_somewhere(described: dict[str, Any]) -> None:
    def walk(part: Any) -> None:
        if isinstance(part, dict):
            target = part.get("$ref")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            if isinstance(target, str):
                found: Any = described
                for key in target.removeprefix("#/").split("/"):
                    found = found[key]
            for value in part.values():  # pyright: ignore[reportUnknownVariableType]
                walk(value)
        elif isinstance(part, list):
            for value in part:  # pyright: ignore[reportUnknownVariableType]
                walk(value)

    walk(described)


def test_identity_is_not_required_on_the_wire_but_is_in_the_contract(kit: Kit, described: dict[str, Any]) -> None:
    op = kit.registry.named("note.set")
    assert described["components"]["schemas"]["note.set.request"]["required"] == ["key", "value"]
    assert request_schema(op, listed=False)["required"] == ["org", "namespace", "agent", "key", "value"]


def test_a_listed_schema_shows_only_two_identity_fields_and_requires_none(kit: Kit) -> None:
    schema = request_schema(kit.registry.named("note.set"), listed=True)
    assert list(schema["properties"]) == ["namespace", "run_id", "key", "value", "tags", "mode", "if_match_sha256"]
    assert schema["required"] == ["key", "value"]
    assert schema["properties"]["tags"]["default"] == []
    assert schema["properties"]["mode"]["enum"] == ["keep", "replace"]
    assert schema["properties"]["key"]["description"] == "The note's key."


def test_answers_fit_their_schema_with_and_without_what_may_be_absent(kit: Kit, http: TestClient) -> None:
    schema = answer_schema(kit.registry.named("note.set"))
    assert schema["type"] == "object"
    assert "$schema" not in schema
    assert "note" not in schema["required"]
    check = Draft202012Validator(schema)
    for extra in ({}, {"other": 1}):
        check.validate(http.post("/v1/note.set", json={"key": "a", "value": "b", **extra}).json())  # pyright: ignore[reportUnknownMemberType]


def test_the_document_is_served(http: TestClient, described: dict[str, Any]) -> None:
    assert http.get("/openapi.json").json() == described
