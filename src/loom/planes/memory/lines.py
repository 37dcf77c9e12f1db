"""The line of an export that holds a memory with some of its versions; nothing of it is lost."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from loom.errors import Rejected
from loom.ledger import rules as ledger
from loom.ledger.rules import LIVE, SUPERSEDED, TOMBSTONED, Attributes, Item, Place, Version
from loom.ops.fields import (
    CharLimit,
    Instant,
    MemoryKey,
    Tags,
    instant_or_none,
    microseconds,
    microseconds_or_none,
)
from loom.planes.cargo import IdentityText, Line
from loom.planes.memory import rules
from loom.planes.memory.fields import (
    Confidence,
    MemoryType,
    Sensitivity,
    json_of,
    json_value,
    version_shown,
)
from loom.planes.memory.select import value_of

VERSIONS_MAX = 100
"""Versions in one line; a memory with more has several lines, the newest versions first."""

LINE_CHARACTERS_MAX = 1_000_000
"""Characters of values in one line; one version always fits."""

TRACE_LENGTH_MAX = 1_000_000
REASON_LENGTH_MAX = 500

NumberText = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,18}$")]
STRICT = ConfigDict(frozen=True, extra="ignore", strict=True)


class VersionLine(BaseModel):
    """One version. `has_value` tells a value that is null from one that is gone."""

    model_config = STRICT

    version_text: NumberText
    status: Literal["live", "superseded", "tombstoned", "redacted"]
    session_id: IdentityText = "-"
    run_id: IdentityText = "-"
    has_value: bool
    value: JsonValue = None
    content_sha256: Annotated[str, Field(max_length=64)] = ""
    memory_type: MemoryType
    tags: Tags = Field(default_factory=list[str])
    confidence: Confidence = 1.0
    source_trace: Annotated[str, Field(max_length=TRACE_LENGTH_MAX)] = ""
    sensitivity: Sensitivity = "normal"
    valid_at: Instant | None = None
    valid_to: Instant | None = None
    expires_at: Instant | None = None
    char_limit: CharLimit | None = None
    created_at: Instant


class MemoryLine(Line):
    """A memory, what of it is not versioned, and some of its versions, the newest first."""

    KIND: ClassVar[str] = "memory"

    kind: Literal["memory"]
    memory_id: Annotated[str, Field(max_length=64)]
    namespace: IdentityText
    agent: IdentityText
    user_id: IdentityText
    memory_key: MemoryKey
    status: Literal["live", "tombstoned", "redacted"]
    version_text: NumberText
    expires_at: Instant | None = None
    ended_at: Instant | None = None
    pinned: bool = False
    lock_mode: Literal["", "no_delete", "read_only"] = ""
    lock_reason: Annotated[str, Field(max_length=REASON_LENGTH_MAX)] = ""
    versions: Annotated[list[VersionLine], Field(max_length=VERSIONS_MAX)]


def memory_line(item: Item, versions: Sequence[Version]) -> MemoryLine:
    """A memory and some of its versions as a line."""
    return MemoryLine.model_validate(
        {
            "kind": "memory",
            "memory_id": item.memory_id,
            "namespace": item.place.namespace,
            "agent": item.place.agent,
            "user_id": item.place.user_id,
            "memory_key": item.memory_key,
            "status": item.status,
            "version_text": str(item.head.version),
            "expires_at": instant_or_none(item.expires_at),
            "ended_at": instant_or_none(item.ended_at),
            "pinned": item.pinned,
            "lock_mode": item.lock_mode,
            "lock_reason": item.lock_reason,
            "versions": [version_line(version) for version in versions],
        }
    )


def version_line(version: Version) -> VersionLine:
    """One version as part of a line."""
    value = {"has_value": version.value_text is not None, "value": json_value(value_of(version))}
    return VersionLine.model_validate({**version_shown(version), **value})


def version_of(line: VersionLine) -> Version:
    """The version that a line keeps, once it passes the rules of every write.

    Raises:
        TooLong: its value is over its cap.
        Rejected: its hash is not its value's, its number is too large, or it breaks another rule.
    """
    attributes = Attributes(
        memory_type=line.memory_type,
        tags=rules.tags_of(line.tags),
        confidence=float(line.confidence),
        source_trace=line.source_trace,
        sensitivity=line.sensitivity,
        valid_at=microseconds_or_none(line.valid_at),
        valid_to=microseconds_or_none(line.valid_to),
        expires_at=microseconds_or_none(line.expires_at),
        char_limit=line.char_limit,
    )
    text, sha256, length = None, "", 0
    if line.has_value:
        made = ledger.draft(json_of(line.value), rules.checked(attributes))
        text, sha256, length = made.measured.text, made.measured.sha256, made.measured.length
        rules.check_length(length, attributes, "versions")
        if line.content_sha256 != sha256:
            raise Rejected("versions: content_sha256 is not the hash of the value", field="versions")
    return Version(
        version=rules.version_number(line.version_text),
        status=line.status,
        session_id=line.session_id,
        run_id=line.run_id,
        value_text=text,
        content_sha256=sha256,
        value_length=length,
        attributes=attributes,
        created_at=microseconds(line.created_at),
    )


def item_of(line: MemoryLine, head: Version) -> Item:
    """The item that a line is about, with this latest version.

    Raises:
        Rejected: its id is not one, or its status does not fit its latest version.
    """
    item_id = ledger.item_id_of(line.memory_id)
    if not item_id:
        raise Rejected("memory_id: should be mem_ and 16 hex digits", field="memory_id")
    if (line.status == LIVE) != (head.value_text is not None) or head.status != line.status:
        raise Rejected("status: does not fit the latest version", field="status")
    if (line.ended_at is not None) != (line.status == TOMBSTONED):
        raise Rejected("ended_at: stands with a deleted memory, and with no other", field="ended_at")
    return Item(
        item_id=item_id,
        place=Place(line.namespace, line.agent, line.user_id),
        memory_key=line.memory_key,
        head=head,
        status=line.status,
        expires_at=microseconds_or_none(line.expires_at),
        ended_at=microseconds_or_none(line.ended_at),
        pinned=line.pinned,
        lock_mode=line.lock_mode,
        lock_reason=line.lock_reason,
    )


def check_versions(line: MemoryLine, versions: Sequence[Version]) -> None:
    """Rejected unless the line's versions can be of one memory."""
    numbers = [version.version for version in versions]
    if len(set(numbers)) != len(numbers):
        raise Rejected("versions: two have one number", field="versions")
    for version in versions:
        if version.status == LIVE and str(version.version) != line.version_text:
            raise Rejected("versions: only the latest can be live", field="versions")
        if version.status in (LIVE, SUPERSEDED) and version.value_text is None:
            raise Rejected("versions: a live or superseded version has a value", field="versions")
        if line.status == ledger.REDACTED and version.value_text is not None:
            raise Rejected("versions: a redacted memory has no values", field="versions")
