"""JSON Schemas as endpoints of language models take them. Pure.

Endpoints know a part of JSON Schema, each another one. What all of them know: types, objects whose properties are all
required and no others allowed, lists, enumerations, choices, descriptions. The rest is dropped here, and whoever asked
checks the answer against the schema that was meant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loom.canonical import Json, encoded

DEPTH_MAX: Final = 24
"""Levels of a schema that are kept, the schemas that references name included; below, anything goes."""

NODES_MAX: Final = 20_000
"""Parts of a schema that are kept: references to references can make a small schema endless."""

TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
SCALARS: Final = ("string", "number", "boolean", "null")
CHOICES: Final = ("anyOf", "oneOf")


@dataclass(frozen=True, slots=True)
class Strict:
    """A schema that endpoints take.

    Attributes:
        schema: it.
        exact: whether an endpoint may be told to hold to it to the letter. False where the meant schema has an object
            whose properties are not known, or a value of any type.
    """

    schema: Mapping[str, Json]
    exact: bool


def strict(shape: Mapping[str, Json]) -> Strict:
    """What endpoints are told of `shape`, a JSON Schema; references are followed within it."""
    maker = _Maker(shape)
    made = maker.node(dict(shape), 0)
    return Strict(made, maker.exact)


def inlined(schema: Json, root: Mapping[str, Json]) -> dict[str, Json]:
    """A part of the schema `root` as a schema of its own, in the strict form, that refers to nothing outside."""
    return _Maker(root).node(schema, 0)


class _Maker:
    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._count = 0
        self.exact = True

    def node(self, schema: Json, depth: int) -> dict[str, Json]:
        """One schema, made strict."""
        self._count += 1
        if not isinstance(schema, dict) or depth > DEPTH_MAX or self._count > NODES_MAX:
            return self._anything()
        schema = self._merged(schema, depth)
        told: dict[str, Json] = {}
        if isinstance(schema.get("description"), str):
            told["description"] = schema["description"]
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list) and values:
            return told | _enumeration(values)
        types = _types(schema)
        if not types:
            choices = next((schema[word] for word in CHOICES if isinstance(schema.get(word), list)), None)
            if isinstance(choices, list) and choices:
                return told | _any_of([self.node(choice, depth + 1) for choice in choices])
            return told | self._anything()
        if len(types) == 1:
            return told | self._typed(types[0], schema, depth)
        return told | _any_of([self._typed(one, schema, depth) for one in types])

    def _typed(self, kind: str, schema: Mapping[str, Json], depth: int) -> dict[str, Json]:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            items = schema.get("items", schema.get("prefixItems"))
            if isinstance(items, list):
                return {"type": "array", "items": _any_of([self.node(one, depth + 1) for one in items])}
            return {"type": "array", "items": self.node(items, depth + 1)}
        return {"type": kind}

    def _object(self, schema: Mapping[str, Json], depth: int) -> dict[str, Json]:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            self.exact = False
            return {"type": "object"}
        needed = schema.get("required")
        needed = needed if isinstance(needed, list) else []
        made: dict[str, Json] = {}
        for name, part in properties.items():
            one = self.node(part, depth + 1)
            made[name] = one if name in needed else nullable(one)
        return {
            "type": "object",
            "properties": made,
            "required": list(made),
            "additionalProperties": False,
        }

    def _merged(self, schema: Mapping[str, Json], depth: int) -> dict[str, Json]:
        """The schema with what its reference and its `allOf` name put in its place; its own words win."""
        merged = dict(schema)
        for _ in range(DEPTH_MAX):
            found: list[Json] = []
            reference, every = merged.pop("$ref", None), merged.pop("allOf", None)
            if isinstance(reference, str):
                found.append(resolved(self._root, reference))
            found.extend(every if isinstance(every, list) else [])
            if not found:
                return merged
            for part in found:
                if isinstance(part, dict):
                    merged = _joined(part, merged)
            self._count += len(found)
            if self._count > NODES_MAX or depth > DEPTH_MAX:
                break
        merged.pop("$ref", None)
        merged.pop("allOf", None)
        return merged

    def _anything(self) -> dict[str, Json]:
        self.exact = False
        return _any_of([{"type": kind} for kind in SCALARS])


def nullable(schema: dict[str, Json]) -> dict[str, Json]:
    """The schema, with null allowed."""
    if schema.get("type") == "null" or _lists_null(schema.get("enum")):
        return schema
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        if any(isinstance(choice, dict) and choice.get("type") == "null" for choice in choices):
            return schema
        return {**schema, "anyOf": [*choices, {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]}


def resolved(root: Mapping[str, Json], reference: str) -> Json:
    """What a reference within the document points at; None when it points at nothing there."""
    if reference == "#":
        return dict(root)
    if not reference.startswith("#/"):
        return None
    at: Json = dict(root)
    for part in reference.removeprefix("#/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(at, dict) and name in at:
            at = at[name]
        elif isinstance(at, list) and name.isascii() and name.isdigit() and int(name) < len(at):
            at = at[int(name)]
        else:
            return None
    return at


def _joined(one: Mapping[str, Json], over: Mapping[str, Json]) -> dict[str, Json]:
    """Two schemas as one: `over` wins, but for properties and required names, which add up."""
    joined = {**one, **over}
    properties, more = one.get("properties"), over.get("properties")
    if isinstance(properties, dict) and isinstance(more, dict):
        joined["properties"] = {**properties, **more}
    needed, also = one.get("required"), over.get("required")
    if isinstance(needed, list) and isinstance(also, list):
        joined["required"] = [*needed, *also]
    return joined


def _any_of(choices: Sequence[dict[str, Json]]) -> dict[str, Json]:
    return {"anyOf": list[Json](choices)}


def _types(schema: Mapping[str, Json]) -> Sequence[str]:
    named = schema.get("type")
    if isinstance(named, str):
        return [named] if named in TYPES else []
    if isinstance(named, list):
        return [kind for kind in TYPES if kind in named]
    if isinstance(schema.get("properties"), dict):
        return ["object"]
    return ["array"] if "items" in schema or "prefixItems" in schema else []


def _enumeration(values: Sequence[Json]) -> dict[str, Json]:
    """An `enum` with the types of its members, which some endpoints want named. Each member once."""
    members = list({encoded(value): value for value in values}.values())
    kinds = sorted({_kind(value) for value in members})
    told: dict[str, Json] = {"enum": members}
    if len(kinds) == 1 and kinds[0] not in ("object", "array"):
        told["type"] = kinds[0]
    return told


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _lists_null(values: Json) -> bool:
    return isinstance(values, list) and None in values
