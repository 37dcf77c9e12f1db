"""What may be written to a memory. Pure: no database, no clock."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel, JsonValue

from loom.canonical import Json
from loom.errors import Locked, NotFound, PinnedConflict, Rejected, TooLong
from loom.ledger import rules
from loom.ledger.rules import CHAR_LIMIT_DEFAULT, PROFILE, Attributes, Draft, Item, Version
from loom.ops import invalid
from loom.ops.fields import microseconds_or_none
from loom.ops.spec import Request
from loom.planes.memory.fields import VALUE_LENGTH_MAX, SetFields

SECOND_US = 1_000_000
EXPIRED_TRACE = "expired"
"""The trace of the version that ends a memory whose time is over."""

Model = TypeVar("Model", bound=BaseModel)


def tags_of(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags as they are kept: sorted, each once."""
    return tuple(sorted(set(tags)))


def expiry(ttl_seconds: int, now_us: int) -> int | None:
    """The moment a time to live ends; None for 0, which is never."""
    return now_us + ttl_seconds * SECOND_US if ttl_seconds else None


def attributes_of(fields: SetFields, now_us: int) -> Attributes:
    """What the fields say about the value.

    Raises:
        Rejected: the claim ends before it begins, or a cap is sent for what is not a section.
    """
    section = fields.memory_type == PROFILE
    return checked(
        Attributes(
            memory_type=fields.memory_type,
            tags=tags_of(fields.tags),
            confidence=float(fields.confidence),
            source_trace=fields.source_trace,
            sensitivity=fields.sensitivity,
            valid_at=microseconds_or_none(fields.valid_at),
            valid_to=microseconds_or_none(fields.valid_to),
            expires_at=expiry(fields.ttl_seconds, now_us),
            char_limit=(fields.char_limit or CHAR_LIMIT_DEFAULT) if section else fields.char_limit,
        )
    )


def checked(attributes: Attributes) -> Attributes:
    """The attributes, once they make sense together.

    Raises:
        Rejected: the claim ends before it begins, or a cap is set for what is not a section.
    """
    begins, ends = attributes.valid_at, attributes.valid_to
    if begins is not None and ends is not None and ends < begins:
        raise Rejected("valid_to: lies before valid_at", field="valid_to")
    if attributes.char_limit is not None and attributes.memory_type != PROFILE:
        raise Rejected("char_limit: only a section (memory_type profile) has a cap of its own", field="char_limit")
    return attributes


def drafted(value: Json, attributes: Attributes, request: Request) -> Draft:
    """A value ready to be written.

    Raises:
        TooLong: the value is over its section's cap or over 262,144 characters.
        Rejected: a section that is not a text, or a trace that may not be written.
    """
    made = rules.draft(value, attributes, request.session_id, request.run_id)
    check_length(made.measured.length, attributes, "value")
    return made


def check_length(length: int, attributes: Attributes, field: str) -> None:
    """TooLong when a value without a cap of its own is over 262,144 characters."""
    if length > VALUE_LENGTH_MAX and attributes.char_limit is None:
        raise TooLong(
            f"{field}: {length} characters when encoded, the cap is {VALUE_LENGTH_MAX}; "
            "store documents with knowledge.add, or several memories",
            field=field,
            value_length=length,
            char_limit=VALUE_LENGTH_MAX,
        )


def says_nothing_new(live: Item | None, made: Draft) -> bool:
    """Whether the live version says all that the draft says.

    When it expires is no part of it, and an empty trace asks for no other.
    """
    if live is None or live.head.content_sha256 != made.measured.sha256:
        return False
    now = replace(live.head.attributes, expires_at=None)
    trace = made.attributes.source_trace or now.source_trace
    return now == replace(made.attributes, expires_at=None, source_trace=trace)


def check_expiry(item: Item | None, expires_at: int | None) -> None:
    """PinnedConflict or Locked when the row may not be given an end."""
    if item is None or expires_at is None:
        return
    if item.lock_mode:
        raise Locked(f"the row is locked {item.lock_mode} and cannot be made to expire", lock=item.lock_mode)
    if item.pinned:
        raise PinnedConflict("the memory is pinned and does not expire; unpin it with memory.pin", field="ttl_seconds")


def check_version_deletable(item: Item, version: Version | None, older: Version | None) -> Version:
    """The version, once it may be taken away.

    Raises:
        NotFound: there is no such version, or it has no value any more.
        Locked: the row is locked.
        PinnedConflict: it is the last value of a pinned memory.
    """
    if version is None or version.value_text is None:
        raise NotFound("version_text: the memory has no such version with a value", field="version_text")
    last = version.version == item.head.version and older is None
    rules.check_deletable(item if last else replace(item, pinned=False))
    return version


def check_live(item: Item, now_us: int) -> None:
    """NotFound unless the memory lives."""
    if not item.is_live(now_us):
        raise NotFound("memory_key: it is not live; memory.restore brings back a deleted one", field="memory_key")


def version_number(version_text: str, field: str = "version_text") -> int:
    """The number that a version's text stands for.

    Raises:
        Rejected: it is not one.
    """
    if not version_text.isascii() or not version_text.isdigit():
        raise Rejected(f"{field}: a version's number as a decimal text, as answers give it", field=field)
    number = int(version_text)
    if number >= 1 << 63:
        raise Rejected(f"{field}: no version has so large a number", field=field)
    return number


def parsed(model: type[Model], raw: JsonValue) -> Model:
    """One item of a list as its model.

    Raises:
        Rejected: naming the first field that does not fit.
    """
    if not isinstance(raw, dict):
        raise Rejected("item: should be an object", field="item")
    return invalid.parsed(model, raw, "item")


def check_built(item: Item, *, says_more: bool) -> None:
    """Rejected when an update would change what a built row says, or when that was so."""
    if item.is_derived and says_more:
        raise Rejected(
            "value: a structured profile is built from the user's memories; change those, and it follows",
            field="value",
        )


def check_same_kind(item: Item, memory_type: str | None) -> None:
    """Rejected when an update would turn a memory into a section or back."""
    if memory_type is not None and memory_type != item.head.attributes.memory_type:
        rules.check_own_words("", memory_type)
        if item.is_derived:
            raise Rejected("memory_type: a structured profile stays one", field="memory_type")
    if memory_type is not None and (memory_type == PROFILE) != item.is_section:
        raise Rejected(
            "memory_type: a section stays a section and a memory a memory; write it under another key",
            field="memory_type",
        )
