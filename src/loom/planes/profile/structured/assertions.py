"""The library that validates, kept from what takes for ever: a pattern has a time, and no text is fetched."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, cast
from urllib.parse import urlsplit
from uuid import UUID

import regex
from jsonschema import Draft202012Validator, FormatChecker, ValidationError, validators
from referencing.jsonschema import EMPTY_REGISTRY

from loom.canonical import Json

MATCH_TIMEOUT_S: Final = 0.05
"""How long one pattern may look at one text; beyond, it does not match."""

SUBJECT_LENGTH_MAX: Final = 8_192


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that does not fit.

    Attributes:
        path: the steps to it, from the whole.
        rule: the keyword that says so.
    """

    path: tuple[str | int, ...]
    rule: str


class Validator:
    """Whether values fit a schema.

    Args:
        document: the schema; its references lead into itself.
    """

    def __init__(self, document: Mapping[str, Json]) -> None:
        self._inner: Any = _BOUNDED(dict(document), registry=EMPTY_REGISTRY, format_checker=_FORMATS)

    def faults(self, value: Json) -> list[Fault]:
        """What of the value does not fit."""
        return [_fault(error) for error in self._inner.iter_errors(value)]


def faults_of_schema(document: Mapping[str, Json]) -> list[Fault]:
    """What of a schema is not draft 2020-12, the deepest first."""
    inner: Any = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    found = [_fault(error) for error in inner.iter_errors(document)]
    return sorted(found, key=lambda fault: (-len(fault.path), [str(step) for step in fault.path]))


def compiles(pattern: str) -> bool:
    """Whether a pattern is one."""
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError, MemoryError):
        return False
    return True


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text, within its time."""
    if len(text) > SUBJECT_LENGTH_MAX:
        return False
    try:
        return regex.compile(pattern).search(text, timeout=MATCH_TIMEOUT_S) is not None
    except TimeoutError:
        return False


def _pattern(validator: object, pattern: str, instance: object, schema: object) -> Iterator[ValidationError]:
    del validator, schema
    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError("does not match the pattern, or takes too long to")


def _fault(error: Any) -> Fault:
    return Fault(tuple(error.absolute_path), str(error.validator))


def _is_date(value: str) -> bool:
    return len(value) == len("2026-01-31") and bool(date.fromisoformat(value))


def _is_date_time(value: str) -> bool:
    return "T" in value.upper() and datetime.fromisoformat(value).tzinfo is not None


def _is_email(value: str) -> bool:
    name, _, domain = value.rpartition("@")
    return bool(name) and bool(domain) and not any(character.isspace() for character in value)


def _is_uri(value: str) -> bool:
    parts = urlsplit(value)
    return bool(parts.scheme) and bool(parts.netloc or parts.path) and not any(one.isspace() for one in value)


def _is_ipv4(value: str) -> bool:
    return bool(IPv4Address(value).packed)


def _is_ipv6(value: str) -> bool:
    return bool(IPv6Address(value).packed)


def _is_uuid(value: str) -> bool:
    return str(UUID(value)) == value.lower()


_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "date": _is_date,
    "date-time": _is_date_time,
    "email": _is_email,
    "uri": _is_uri,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "uuid": _is_uuid,
}
"""Formats that a value has to have; the draft leaves that open, and a date that is none is of no use to anybody."""


def _of_texts(check: Callable[[str], bool]) -> Callable[[object], bool]:
    def checked(value: object) -> bool:
        return not isinstance(value, str) or check(value)

    return checked


def _formats() -> Any:
    made: Any = FormatChecker(formats=())
    made.checkers = {name: (_of_texts(check), ValueError) for name, check in _CHECKS.items()}
    return made


_FORMATS: Final = _formats()
_BOUNDED: Final = cast("Any", validators).extend(Draft202012Validator, validators={"pattern": _pattern})
