"""Field types that several operations share."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
DAY_US = 24 * 3600 * 1_000_000


def instant(us: int) -> datetime:
    """Microseconds since 1970 UTC as a datetime."""
    return EPOCH + us * MICROSECOND


def microseconds(moment: datetime) -> int:
    """A datetime with a zone as microseconds since 1970 UTC."""
    return (moment - EPOCH) // MICROSECOND


def instant_or_none(us: int | None) -> datetime | None:
    """`instant`, for a time that may be missing."""
    return None if us is None else instant(us)


def microseconds_or_none(moment: datetime | None) -> int | None:
    """`microseconds`, for a time that may be missing."""
    return None if moment is None else microseconds(moment)


def iso(moment: datetime) -> str:
    """ISO-8601 in UTC with `Z`, microseconds only where there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def with_zone(value: object) -> datetime:
    """A moment that was sent, in UTC; ValueError when it is none, or has no zone."""
    if isinstance(value, str):
        if len(value) < len("2000-01-01T00:00Z"):
            raise ValueError("wants an ISO-8601 date and time with a zone, like 2026-01-31T09:30:00Z")
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError("wants an ISO-8601 date and time, like 2026-01-31T09:30:00Z") from error
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("wants a zone: add Z for UTC, like 2026-01-31T09:30:00Z")
        try:
            return value.astimezone(UTC)
        except OverflowError as error:
            raise ValueError("is out of range") from error
    raise ValueError("wants an ISO-8601 date and time as text, like 2026-01-31T09:30:00Z")


Instant = Annotated[
    datetime,
    BeforeValidator(with_zone, json_schema_input_type=Annotated[str, Field(json_schema_extra={"format": "date-time"})]),
    PlainSerializer(iso, return_type=str, when_used="json"),
]
"""A moment: ISO-8601 with a zone in, UTC with `Z` out. A time without a zone is refused."""

MEMORY_KEY_LENGTH_MAX = 512
TAGS_MAX = 64
TAG_LENGTH_MAX = 128
SHA256_LENGTH = 64
SOURCE_TRACE_LENGTH_MAX = 2000
CHAR_LIMIT_MAX = 2**31 - 1
QUERY_CHARACTERS_MAX = 10_000
TOP_K_MAX = 100
HANDLE_LENGTH_MAX = 540_000
"""A handle of a next page carries its query and filters, which can be long."""

EMBEDDER = "embedder"
"""How `degraded` names the embedder."""

MemoryKey = Annotated[str, Field(min_length=1, max_length=MEMORY_KEY_LENGTH_MAX)]
"""A readable key: 1 to 512 characters."""

Tags = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=TAG_LENGTH_MAX)]],
    Field(max_length=TAGS_MAX),
]
"""At most 64 tags of 1 to 128 characters."""

IfMatch = Annotated[str, Field(max_length=SHA256_LENGTH)]
"""A lower-case hex SHA-256, or empty for no check."""

CharLimit = Annotated[int, Field(ge=1, le=CHAR_LIMIT_MAX)]
"""Cap on a value's encoded length, in characters."""


def not_blank(text: str) -> str:
    """A text without the space around it.

    Raises:
        ValueError: there is nothing else.
    """
    if not text.strip():
        raise ValueError("is blank; say something")
    return text.strip()


def _asked(query: str) -> str:
    """The part of a query that is used, without the space around it; ValueError when there is nothing to look for."""
    used = query.strip()[:QUERY_CHARACTERS_MAX]
    if not used:
        raise ValueError("is blank; ask something")
    return used


Query = Annotated[str, AfterValidator(_asked)]
"""What to look for: not blank; its first 10,000 characters count."""

NamespaceScope = Annotated[
    Literal["this", "all_mine"],
    Field(description="this: the named namespace alone. all_mine: the caller's other memory namespaces as well."),
]
"""Which namespaces a search reads."""

RoleWord = Literal["viewer", "writer", "admin"]
"""A role, as requests and answers spell it."""

ScopeWord = Literal["namespace", "own_user", "own_session"]
"""How far a read reaches across users; the token's claim is the ceiling."""
