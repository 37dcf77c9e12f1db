"""How a plane's rows are moved to another store: one kind of line at a time, read in order and taken in again.

A plane exports its `CARGO`; `store.export` and `store.import` ask each in turn. A line is a pydantic model
whose fields are checked as those of a write are. What can be made again from a row (index entries, vectors,
passages, symbols) is no part of its line.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from loom.errors import Denied, Rejected
from loom.ops.fields import instant, iso, microseconds, with_zone
from loom.ops.spec import IDENTITY_LENGTH_MAX, Context
from loom.ops.text_checks import has_control
from loom.storage.interface import Param, Transaction

AT_ONCE = 32
"""Rows that an export reads at once, beside the page that it fills."""

NUMBER_END = 1 << 63
COUNT_MAX = 2**31 - 1
SHA256_PATTERN = r"^[0-9a-f]{64}$"

AHEAD_MAX_NS = 10 * 60 * 1_000_000_000
"""How far ahead of the clock a stamp may be, which two clocks that are set may differ by.

It pushes up every later stamp, and with it the times that are told of later versions.
"""

EARLIEST_US = -62_135_596_800_000_000
LATEST_US = 253_402_300_799_999_999
"""The years 1 to 9999, which answers can show."""

Key = tuple[int | str, ...]
"""A place in the order of a cargo's lines."""


def printable(text: str) -> str:
    """The text; ValueError when it holds control characters."""
    if has_control(text):
        raise ValueError("control characters are not allowed")
    return text


def _number(value: object) -> object:
    """A number that stands as text in a line, since most readers of JSON lose the end of so large a one."""
    if isinstance(value, str):
        if not value.isascii() or not value.isdigit() or len(value) > len(str(NUMBER_END)):
            raise ValueError("should be a number as a decimal text")
        return int(value)
    return value


def _moment(value: object) -> object:
    return microseconds(with_zone(value)) if isinstance(value, str) else value


def _shown_moment(us: int) -> str:
    return iso(instant(us))


IdentityText = Annotated[str, Field(min_length=1, max_length=IDENTITY_LENGTH_MAX), AfterValidator(printable)]
Stamp = Annotated[
    int, BeforeValidator(_number), Field(ge=1, lt=NUMBER_END), PlainSerializer(str, return_type=str, when_used="json")
]
"""A row's id or version: an integer of a row, a decimal text of a line."""

Moment = Annotated[
    int,
    BeforeValidator(_moment),
    Field(ge=EARLIEST_US, le=LATEST_US),
    PlainSerializer(_shown_moment, return_type=str, when_used="json"),
]
"""A time: microseconds of a row, ISO-8601 of a line."""

Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]
Sha256 = Annotated[str, Field(pattern=SHA256_PATTERN)]


class Line(BaseModel):
    """Base of what stands in one line of an export."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    KIND: ClassVar[str] = ""
    """The value of the line's field `kind`."""


LineT = TypeVar("LineT", bound=Line)
ReadyT = TypeVar("ReadyT")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Reach:
    """The namespaces that are moved; None for every one of the org."""

    names: tuple[str, ...] | None

    def params(self) -> Mapping[str, Param]:
        """The parameters `every` and `namespaces`."""
        return {"every": int(self.names is None), "namespaces": list(self.names or ("",))}


@dataclass(frozen=True, slots=True)
class Carried:
    """One line that was read.

    Attributes:
        line: what stands in it.
        key: its place; the next line is the first after it.
        length: characters of its texts, about.
    """

    line: Line
    key: Key
    length: int


Read = Callable[[Transaction, Reach, Key], Iterator[Carried]]
"""Gives the lines after a place, in order, as long as somebody asks for more."""


@dataclass(frozen=True, slots=True)
class Cargo(Generic[LineT, ReadyT]):
    """One kind of line.

    Attributes:
        line: its model.
        start: the place before every line.
        count: counts the rows within a reach, as `total`.
        read: reads them.
        ready: makes of a line what `take` needs, outside of any transaction; raises Rejected.
        take: keeps it; whether that changed anything. It checks all before it changes anything.
    """

    line: type[LineT]
    start: Key
    count: str
    read: Read
    ready: Callable[[LineT], ReadyT]
    take: Callable[[Context, ReadyT], bool]

    @property
    def kind(self) -> str:
        """The kind of its lines."""
        return self.line.KIND


AnyCargo = Cargo[Any, Any]


def as_it_is(line: LineT) -> LineT:
    """The `ready` of a line that needs nothing made of it."""
    return line


def fields_of(model: type[BaseModel], found: object) -> dict[str, object]:
    """What of the model's fields an object has under the same names."""
    return {name: getattr(found, name) for name in model.model_fields if hasattr(found, name)}


def in_order(fetch: Callable[[int], Sequence[Found]], number_of: Callable[[Found], int], after: int) -> Iterator[Found]:
    """What `fetch` gives after a number, and after the last number of that, until it gives less than `AT_ONCE`."""
    while True:
        found = fetch(after)
        yield from found
        if len(found) < AT_ONCE:
            return
        after = number_of(found[-1])


def check_reached(ctx: Context, namespace: str) -> None:
    """Denied when the token does not reach the namespace."""
    if not ctx.caller.reaches(namespace):
        raise Denied("namespace: this token does not reach it", field="namespace")


def check_not_ahead(ctx: Context, *stamps: int, field: str) -> None:
    """Rejected when a stamp lies too far ahead of the clock."""
    if max(stamps) > ctx.now_us * 1000 + AHEAD_MAX_NS:
        raise Rejected(f"{field}: lies in the future; is the clock right?", field=field)
