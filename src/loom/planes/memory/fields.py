"""Fields and answers that memory operations share."""

from collections.abc import Mapping
from typing import Annotated, Literal, Protocol, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from loom.access.caller import ReadScope
from loom.canonical import Json
from loom.ledger.rules import Item, Place, Reader, Version
from loom.ops.fields import (
    SOURCE_TRACE_LENGTH_MAX,
    CharLimit,
    IfMatch,
    Instant,
    MemoryKey,
    ScopeWord,
    Tags,
    instant,
    instant_or_none,
)
from loom.ops.spec import Answer, Request
from loom.storage.interface import Transaction

VALUE_LENGTH_MAX = 256 * 1024
"""Cap on any memory's value: characters of its canonical JSON."""

MEMORY_TYPE_LENGTH_MAX = 64
TTL_S_MAX = 100 * 366 * 24 * 3600
TYPES_MAX = 32
MISSING = "missing"

MemoryType = Annotated[str, Field(min_length=1, max_length=MEMORY_TYPE_LENGTH_MAX)]
"""A kind of memory: semantic, episodic, procedural, decision, constraint, profile, or a word of one's own."""

MemoryTypes = Annotated[list[MemoryType], Field(max_length=TYPES_MAX)]

Confidence = Annotated[float, Field(ge=0.0, le=1.0)]

SourceTrace = Annotated[str, Field(max_length=SOURCE_TRACE_LENGTH_MAX)]

Sensitivity = Literal["normal", "high"]

TtlSeconds = Annotated[int, Field(ge=0, le=TTL_S_MAX)]


class SetFields(BaseModel):
    """One memory to write; what memory.set and each item of memory.set_many take."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    memory_key: Annotated[MemoryKey, Field(description="The readable name of the claim, for instance user/diet.")]
    value: Annotated[JsonValue, Field(description="The claim: a text or any other JSON, at most 262,144 characters.")]
    memory_type: Annotated[
        MemoryType,
        Field(description="semantic, episodic, procedural, decision, constraint, profile, or a word of your own."),
    ] = "semantic"
    tags: Annotated[Tags, Field(description="Words to filter by; kept sorted, each once.")] = Field(
        default_factory=list[str]
    )
    confidence: Annotated[Confidence, Field(description="How sure the claim is, from 0 to 1.")] = 1.0
    source_trace: Annotated[SourceTrace, Field(description="Where the claim comes from, in your own words.")] = ""
    sensitivity: Annotated[
        Sensitivity, Field(description="high keeps the memory out of every search and prompt; get and list show it.")
    ] = "normal"
    valid_at: Annotated[Instant | None, Field(description="From when the claim holds; null if not known.")] = None
    valid_to: Annotated[Instant | None, Field(description="Until when the claim holds; null for no end.")] = None
    ttl_seconds: Annotated[
        TtlSeconds, Field(description="Forget the memory after this many seconds; 0 to keep it.")
    ] = 0
    char_limit: Annotated[
        CharLimit | None,
        Field(description="For type profile alone: the section's cap in characters of JSON; null for 8192."),
    ] = None
    if_match_sha256: Annotated[
        IfMatch,
        Field(description="Write only while the live value has this content_sha256, else 409; empty for no check."),
    ] = ""


class KeyRequest(Request):
    """Base of operations on one key."""

    memory_key: Annotated[MemoryKey, Field(description="The memory's key.")]


class MemoryAnswer(Answer):
    """What every write of one memory answers: where it is and which version lives; never the value."""

    memory_key: Annotated[str, Field(description="The memory's key.")]
    memory_id: Annotated[str, Field(description="Names the row for good, through all its versions.")]
    namespace: Annotated[str, Field(description="The namespace that holds it.")]
    agent: Annotated[str, Field(description="The agent whose row it is.")]
    user_id: Annotated[str, Field(description="The end user it is about; '-' for none.")]
    version: Annotated[int, Field(description="Number of the row's latest version, above 2^53.")]
    version_text: Annotated[str, Field(description="The same number as text, to send back without rounding.")]
    status: Annotated[str, Field(description="live, tombstoned or redacted.")]
    content_sha256: Annotated[str, Field(description="Hash of the live value; empty when there is none.")]
    value_length: Annotated[int, Field(description="Characters of the live value as canonical JSON.")]
    created_at: Annotated[Instant, Field(description="When this version was written.")]
    expires_at: Annotated[Instant | None, Field(description="When the memory is forgotten; null for never.")]
    pinned: Annotated[bool, Field(description="Whether it is pinned: it cannot be deleted and never expires.")]
    lock_mode: Annotated[str, Field(description="Empty, no_delete or read_only.")]


class VersionShown(BaseModel):
    """What is known of a version besides its value; shared by get, history and list."""

    model_config = ConfigDict(frozen=True)

    memory_type: Annotated[str, Field(description="semantic, decision, ... ; empty when not found.")] = ""
    tags: Annotated[list[str], Field(description="Its tags, sorted.")] = Field(default_factory=list[str])
    confidence: Annotated[float, Field(description="How sure the claim is, 0 to 1.")] = 1.0
    source_trace: Annotated[str, Field(description="Where it comes from.")] = ""
    sensitivity: Annotated[str, Field(description="normal or high.")] = "normal"
    valid_at: Annotated[Instant | None, Field(description="From when the claim holds.")] = None
    valid_to: Annotated[Instant | None, Field(description="Until when the claim holds.")] = None
    expires_at: Annotated[Instant | None, Field(description="When it is forgotten; null for never.")] = None
    char_limit: Annotated[int | None, Field(description="A section's cap; null for none.")] = None
    version: Annotated[int | None, Field(description="The version's number, above 2^53.")] = None
    version_text: Annotated[str, Field(description="The same number as text.")] = ""
    status: Annotated[
        str, Field(description="live, superseded, tombstoned, redacted, expired; missing when there is nothing.")
    ] = MISSING
    content_sha256: Annotated[str, Field(description="Hash of the value; empty when there is none.")] = ""
    value_length: Annotated[int, Field(description="Characters of the value as canonical JSON.")] = 0
    created_at: Annotated[Instant | None, Field(description="When this version was written.")] = None
    session_id: Annotated[str, Field(description="The conversation it comes from.")] = "-"
    run_id: Annotated[str, Field(description="The agent run it comes from.")] = "-"


ReadScopeField = Annotated[
    ScopeWord,
    Field(
        description="How far the read reaches across users: every user, this user_id, or this session; "
        "rows of no user are always read. A token that reaches less far wins."
    ),
]


def answer_fields(item: Item) -> Mapping[str, object]:
    """What a `MemoryAnswer` says of an item."""
    head = item.head
    return {
        "memory_key": item.memory_key,
        "memory_id": item.memory_id,
        "namespace": item.place.namespace,
        "agent": item.place.agent,
        "user_id": item.place.user_id,
        "version": head.version,
        "version_text": str(head.version),
        "status": item.status,
        "content_sha256": head.content_sha256,
        "value_length": head.value_length,
        "created_at": instant(head.created_at),
        "expires_at": instant_or_none(item.expires_at),
        "pinned": item.pinned,
        "lock_mode": item.lock_mode,
    }


def version_shown(version: Version) -> Mapping[str, object]:
    """A version as `VersionShown` has it."""
    known = version.attributes
    return {
        "memory_type": known.memory_type,
        "tags": list(known.tags),
        "confidence": known.confidence,
        "source_trace": known.source_trace,
        "sensitivity": known.sensitivity,
        "valid_at": instant_or_none(known.valid_at),
        "valid_to": instant_or_none(known.valid_to),
        "expires_at": instant_or_none(known.expires_at),
        "char_limit": known.char_limit,
        "version": version.version,
        "version_text": str(version.version),
        "status": version.status,
        "content_sha256": version.content_sha256,
        "value_length": version.value_length,
        "created_at": instant(version.created_at),
        "session_id": version.session_id,
        "run_id": version.run_id,
    }


def place_of(request: Request) -> Place:
    """Where the caller's own rows are."""
    return Place(request.namespace, request.agent, request.user_id)


class Scoped(Protocol):
    """What has a scope; a `Context` or a `Prepare`, for instance."""

    @property
    def scope(self) -> ReadScope:
        """How far a read reaches."""
        ...


class Writing(Scoped, Protocol):
    """What a write needs; a `Context` is one."""

    @property
    def tx(self) -> Transaction:
        """The open transaction."""
        ...

    @property
    def now_us(self) -> int:
        """Now, in microseconds UTC."""
        ...


def reader_of(bench: Scoped, request: Request) -> Reader:
    """How far this call reaches; for a write, how far its token does."""
    return Reader(bench.scope, request.user_id, request.session_id)


def json_of(value: JsonValue) -> Json:
    """A validated JSON value, as the rooms below call it."""
    return cast("Json", value)


def json_value(value: Json) -> JsonValue:
    """A stored JSON value, as answers spell it."""
    return cast("JsonValue", value)
