"""What a namespace's JSON Schema may be, and which values fit it. Pure: no database, no clock.

A schema comes from a caller and judges values later, in the worker: it is small, refers to nothing outside itself,
refers to itself in no circle, and its patterns are given a time.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast

from loom.canonical import Json, Measured, encoded, measured
from loom.errors import Rejected
from loom.planes.profile.structured import assertions, walking
from loom.planes.profile.structured.assertions import Validator
from loom.planes.profile.structured.walking import Path, Unusable

BYTES_MAX: Final = 64 * 1024
PROPERTIES_MAX: Final = 200
PROPERTY_LENGTH_MAX: Final = 256
DEPTH_MAX: Final = 32
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

POINTER_LENGTH_MAX: Final = 500

VALUE_LENGTH_MAX: Final = 8_192
"""Characters of one property's value, once encoded."""

OPENED_MAX: Final = 128
"""Schemas kept open."""

PRESENCE: Final = ("required", "minProperties", "dependentRequired")
"""What asks for a property to be there. An unsettled one is null, so that nothing can ask."""


class Misfit(Exception):
    """Values that the schema allows one by one and forbids together."""


@dataclass(frozen=True)
class Schema:
    """A schema that was checked.

    Attributes:
        document: the schema itself.
        properties: its top-level properties, in its order.
        validator: judges values, without asking for any to be there.
    """

    document: Mapping[str, Json]
    properties: Mapping[str, Json]
    validator: Validator

    def fitting(self, values: Mapping[str, Json]) -> dict[str, Json]:
        """Those of the values that the schema allows: known, not null, not too long, valid.

        Raises:
            Misfit: what is left of them is forbidden together.
        """
        left: dict[str, Json] = {
            name: value
            for name, value in values.items()
            if name in self.properties and value is not None and len(encoded(value)) <= VALUE_LENGTH_MAX
        }
        # What an empty profile lacks as well is not the values' fault.
        without = set(self.validator.faults({}))
        # Each turn takes at least one value away.
        for _ in range(len(left) + 1):
            faults = [fault for fault in self.validator.faults(left) if fault not in without]
            if not faults:
                return left
            wrong = {str(fault.path[0]) for fault in faults if fault.path}
            if not wrong:
                break
            left = {name: value for name, value in left.items() if name not in wrong}
        raise Misfit("the values do not fit the schema together")


def checked(document: Mapping[str, Json]) -> Measured:
    """The schema in its canonical form, once Loom can use it.

    Raises:
        Rejected: it cannot; `pointer` names the place, as a JSON pointer.
    """
    try:
        return _checked(document)
    except Unusable as fault:
        pointer = pointer_of(fault.path)[:POINTER_LENGTH_MAX]
        where = pointer or "the schema itself"
        raise Rejected(f"json_schema: {where}: {fault.reason}", field="json_schema", pointer=pointer) from fault


def _checked(document: Mapping[str, Json]) -> Measured:
    _check_depth(dict(document))
    made = measured(dict(document))
    if len(made.text.encode()) > BYTES_MAX:
        raise Unusable((), f"is larger than {BYTES_MAX} bytes")
    if document.get("$schema", DIALECT) not in (DIALECT, DIALECT + "#"):
        raise Unusable(("$schema",), f"should be {DIALECT}")
    faults = assertions.faults_of_schema(document)
    if faults:
        raise Unusable(tuple(map(str, faults[0].path)), f"is not what draft 2020-12 allows ({faults[0].rule})")
    if document.get("type") != "object":
        raise Unusable(("type",), "should be object: a profile is one")
    properties = cast("Mapping[str, Json]", document.get("properties", {}))
    if len(properties) > PROPERTIES_MAX:
        raise Unusable(("properties",), f"has more than {PROPERTIES_MAX} properties")
    for name in properties:
        if not name or len(name) > PROPERTY_LENGTH_MAX:
            raise Unusable(("properties", name[:PROPERTY_LENGTH_MAX]), f"a name has 1 to {PROPERTY_LENGTH_MAX} letters")
    walking.check(document)
    return made


def _check_depth(document: Json) -> None:
    """Unusable when it is nested too deeply to be walked."""
    stack: list[tuple[int, Json]] = [(1, document)]
    while stack:
        depth, value = stack.pop()
        if depth > DEPTH_MAX:
            raise Unusable((), f"is nested more than {DEPTH_MAX} deep")
        if isinstance(value, dict):
            stack.extend((depth + 1, one) for one in value.values())
        elif isinstance(value, list):
            stack.extend((depth + 1, one) for one in value)


def pointer_of(path: Path) -> str:
    """Steps as a JSON pointer."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


@lru_cache(maxsize=OPENED_MAX)
def opened(text: str) -> Schema | None:
    """A stored schema, ready to judge; None when this version of Loom cannot use it."""
    try:
        document = cast("Json", json.loads(text))
        if not isinstance(document, dict):
            return None
        _checked(document)
    except (ValueError, RecursionError, Unusable):
        return None
    asked = {name: part for name, part in document.items() if name not in PRESENCE}
    return Schema(document, cast("Mapping[str, Json]", document.get("properties", {})), Validator(asked))


def unchanged(before: Schema | None, after: Schema) -> frozenset[str]:
    """Properties that mean the same in both, so that a value of the one is a value of the other."""
    if before is None or any(
        before.document.get(word) != after.document.get(word) for word in ("$defs", "definitions")
    ):
        return frozenset()
    return frozenset(name for name, part in after.properties.items() if before.properties.get(name, ...) == part)
