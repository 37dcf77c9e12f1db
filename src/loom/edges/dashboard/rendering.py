"""Templates, and how stored values look in them. Everything is escaped; nothing stored is ever markup."""

import hashlib
import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined

HERE = Path(__file__).parent
CUT_CHARACTERS = 4000
"""Of a text, what a page shows before somebody asks for all of it."""

SECOND, MINUTE, HOUR, DAY = 1, 60, 3600, 86_400
UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
AGO_DAYS_MAX = 30
KILO = 1024


@cache
def environment() -> Environment:
    """The templates; read when first used, so that `loom --help` does not pay for them."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(ago=ago, when=when, grouped=grouped, plain=plain, cut=cut, bytes=byte_size, short=short)
    known = cast("dict[str, Any]", made.globals)
    known |= {"asset": asset, "CUT_CHARACTERS": CUT_CHARACTERS}
    return made


def rendered(template: str, **values: Any) -> str:
    """A template's text."""
    return environment().get_template(template).render(**values)


@cache
def asset(name: str) -> str:
    """The address of a static file; it changes with the file's content, so that browsers may keep it."""
    digest = hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()
    return f"/static/{name}?v={digest[:16]}"


def moment(value: str) -> datetime:
    """An ISO time of an answer."""
    return datetime.fromisoformat(value)


def ago(value: str | None) -> str:
    """How long ago a time is, in one unit, or the day; `in 3 d` for one to come."""
    if not value:
        return "never"
    seconds = (datetime.now(UTC) - moment(value)).total_seconds()
    if abs(seconds) > AGO_DAYS_MAX * DAY:
        return moment(value).date().isoformat()
    size, unit = next(((size, unit) for size, unit in UNITS if abs(seconds) >= size), (SECOND, ""))
    if not unit:
        return "just now"
    number = f"{abs(int(seconds / size))} {unit}"
    return f"{number} ago" if seconds > 0 else f"in {number}"


def when(value: str | None) -> str:
    """A time to the second, UTC."""
    return moment(value).strftime("%Y-%m-%d %H:%M:%S UTC") if value else "never"


def grouped(number: int | None) -> str:
    """`12 345` with thin spaces."""
    return "" if number is None else f"{number:,}".replace(",", "\u202f")


def byte_size(number: int) -> str:
    """Bytes, in a unit that a person reads."""
    if number < KILO:
        return f"{number} B"
    return f"{number / KILO:.1f} kB" if number < KILO * KILO else f"{number / KILO / KILO:.1f} MB"


def plain(value: object) -> str:
    """A stored value as text: a text as it is, anything else as JSON in lines."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def cut(text: str, length: int = CUT_CHARACTERS) -> str:
    """The beginning of a text."""
    return text if len(text) <= length else text[:length]


def short(text: str, length: int = 80) -> str:
    """The beginning of a text on one line, with an ellipsis where it goes on."""
    line = " ".join(text[: length * 4].split())
    return line if len(line) <= length and len(text) <= length * 4 else line[:length] + "…"


def numbered(text: str, first: int) -> list[tuple[int, str]]:
    """The lines of a text with their numbers; none of an empty one."""
    return list(enumerate(text.split("\n"), first)) if text else []
