"""JSON Schemas of an operation's two types, as every face shows them."""

from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from pydantic_core import CoreSchema, to_jsonable_python

from loom.ops.spec import IDENTITY_FIELDS, AnyOp

SHOWN_IDENTITY = ("namespace", "run_id")
"""The identity fields that a listed tool shows; the others come from the token and the transport."""

SCHEMAS_MAX = 512
"""Types whose schemas are kept, in each direction: more than the operations have. Each face asks for all of them."""

IGNORED_ARGS: Mapping[str, object] = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Names of sent fields that this operation does not have, sorted; absent when there are none.",
}


class _Untitled(GenerateJsonSchema):
    """JSON Schema 2020-12 without the titles that repeat a field's name."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """No field gets a title: its name says it."""
        del schema
        return False

    def generate(self, schema: CoreSchema, mode: Any = "validation") -> dict[str, Any]:
        """The schema, without the class's own title and docstring."""
        whole = super().generate(schema, mode)
        whole.pop("title", None)
        whole.pop("description", None)
        return whole


def request_schema(op: AnyOp, *, listed: bool) -> dict[str, Any]:
    """The schema of what `op` takes.

    Args:
        op: the operation.
        listed: for an MCP tool: only `namespace` and `run_id` of the identity
            fields are shown, and none of them is required.
    """
    schema = deepcopy(_generated(op.takes, "validation"))
    _add_made_defaults(op.takes, schema)
    if listed:
        for field in IDENTITY_FIELDS:
            if field not in SHOWN_IDENTITY:
                schema["properties"].pop(field, None)
        _not_required(schema, frozenset(IDENTITY_FIELDS))
    return schema


def answer_schema(op: AnyOp) -> dict[str, Any]:
    """The schema of what `op` gives, `ignored_args` included."""
    schema = deepcopy(_generated(op.gives, "serialization"))
    schema["type"] = "object"
    schema.setdefault("properties", {})["ignored_args"] = dict(IGNORED_ARGS)
    _not_required(schema, op.gives.ABSENT_WHEN_NONE)
    return schema


@lru_cache(SCHEMAS_MAX)
def _generated(model: type[BaseModel], mode: JsonSchemaMode) -> dict[str, Any]:
    return model.model_json_schema(mode=mode, schema_generator=_Untitled)


def _not_required(schema: dict[str, Any], fields: frozenset[str]) -> None:
    required = [name for name in schema.pop("required", []) if name not in fields]
    if required:
        schema["required"] = required


def _add_made_defaults(model: type[BaseModel], schema: dict[str, Any]) -> None:
    """Show the defaults that a factory makes; the generator leaves them out."""
    for name, field in model.model_fields.items():
        default = _made(field)
        if default is not None:
            schema["properties"][field.alias or name].setdefault("default", default)


def _made(field: FieldInfo) -> object:
    if field.default_factory is None:
        return None
    return to_jsonable_python(field.get_default(call_default_factory=True, validated_data={}))
