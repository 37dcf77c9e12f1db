"""Whether a value is one that a schema allows, in bounded time whatever the schema is."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol, cast

import referencing
import regex
from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.exceptions import SchemaError, UnknownType
from referencing.exceptions import Unresolvable

from loom.canonical import Json

PATTERN_TIMEOUT_S: Final = 0.05
"""How long one pattern of a schema may look at one value."""

PATTERN_CHARACTERS_MAX: Final = 1_000
VALUE_CHARACTERS_MAX: Final = 2_000

_NO_MATCH: Final = "does not match the pattern"


class _Checker(Protocol):
    def is_valid(self, instance: object) -> bool: ...
    def evolve(self, *, schema: object) -> "_Checker": ...


_search: Final = cast("Callable[..., object | None]", regex.search)


def matches(pattern: str, text: str) -> bool:
    """Whether `pattern` is found in `text`. One that is no pattern, is too long, or takes too long matches nothing."""
    if len(pattern) > PATTERN_CHARACTERS_MAX or len(text) > VALUE_CHARACTERS_MAX:
        return False
    try:
        return _search(pattern, text, timeout=PATTERN_TIMEOUT_S) is not None
    except (regex.error, TimeoutError, RecursionError, ValueError, OverflowError, MemoryError):
        return False


def _pattern(_: object, pattern: object, instance: object, __: object) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not (isinstance(pattern, str) and matches(pattern, instance)):
        yield ValidationError(_NO_MATCH)


def _pattern_properties(validator: Any, patterns: object, instance: object, _: object) -> Iterator[ValidationError]:
    if isinstance(instance, dict) and isinstance(patterns, dict):
        for pattern, subschema in cast("dict[str, object]", patterns).items():
            for name, value in cast("dict[str, object]", instance).items():
                if matches(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)


_extend: Final = cast("Callable[..., object]", validators.extend)  # pyright: ignore[reportUnknownMemberType]
_Bounded: Final = cast(
    "Callable[..., _Checker]",
    _extend(Draft202012Validator, {"pattern": _pattern, "patternProperties": _pattern_properties}),
)


class Checked:
    """A schema that values are held against. Looks nothing up outside the schema.

    Args:
        schema: the whole schema, which the references of its parts look into.
    """

    def __init__(self, schema: Mapping[str, Json]) -> None:
        registry: referencing.Registry[object] = referencing.Registry()
        formats = Draft202012Validator.FORMAT_CHECKER
        self._whole = _Bounded(dict(schema), registry=registry, format_checker=formats)

    def allows(self, part: Json, value: Json) -> bool:
        """Whether the part `part` of the schema allows `value`. What cannot be decided is not allowed."""
        try:
            return self._whole.evolve(schema=part).is_valid(value)
        except (
            UnknownType,
            SchemaError,
            Unresolvable,
            RecursionError,
            TypeError,
            ValueError,
            KeyError,
            AttributeError,
            OverflowError,
        ):
            return False
