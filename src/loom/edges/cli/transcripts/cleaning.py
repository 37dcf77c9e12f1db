"""Makes a message fit to be sent: whole characters, bounded depth and length."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

CONTENT_LENGTH_MAX = 900_000
"""Characters of a message's content that are sent; below what conversation.append takes, for escapes."""

STRING_LENGTHS = (100_000, 20_000, 2_000, 200)
"""How long a text may be in a content that is too long, tried in this order."""

DEPTH_MAX = 20
INTEGER_BITS_MAX = 64
NAME_LENGTH_MAX = 256
CUT = "\u2026"

_BAD = re.compile("[\x00\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def text(value: object) -> str:
    """`value` if it is a text, without what cannot be stored; else empty."""
    return _whole(value) if isinstance(value, str) else ""


def name(value: object) -> str:
    """A text that can be a name: short, without control characters."""
    return _CONTROL.sub(" ", text(value))[:NAME_LENGTH_MAX]


def moment(value: object) -> str:
    """A time with a zone, from ISO-8601 text or seconds since 1970; empty when it is none."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at.astimezone(UTC).isoformat() if at.tzinfo is not None else ""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, tz=UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        pass
    return ""


def mapping(value: object) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def cleaned(value: object, depth: int = 0) -> Any:
    """`value` without half characters, NUL, endless depth and endless numbers."""
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, dict):
        if depth >= DEPTH_MAX:
            return CUT
        parts = cast("dict[str, object]", value)
        return {_whole(key): cleaned(part, depth + 1) for key, part in parts.items()}
    if isinstance(value, list):
        return [cleaned(part, depth + 1) for part in cast("list[object]", value)] if depth < DEPTH_MAX else CUT
    if isinstance(value, int) and value.bit_length() > INTEGER_BITS_MAX:
        return float(value) if value.bit_length() < 1000 else CUT  # noqa: PLR2004  # what a float can hold
    return value


def fitting(content: Any) -> tuple[Any, bool]:
    """The content at a length that can be sent, and whether it had to be shortened."""
    content = without_data(content)
    if _length(content) <= CONTENT_LENGTH_MAX:
        return content, False
    for most in STRING_LENGTHS:
        shorter = _clipped(content, most)
        if _length(shorter) <= CONTENT_LENGTH_MAX:
            return shorter, True
    whole = json.dumps(content, ensure_ascii=False)
    return whole[: CONTENT_LENGTH_MAX // 2], True


def without_data(content: Any) -> Any:
    """The content without the bytes of pictures, which conversation.append leaves out as well."""
    if isinstance(content, list):
        return [without_data(part) for part in cast("list[Any]", content)]
    if not isinstance(content, dict):
        return content
    parts = cast("Mapping[str, Any]", content)
    if isinstance(parts.get("data"), str) and parts.get("type") == "base64":
        return {**parts, "data": f"{len(parts['data'])} characters left out"}
    return {key: without_data(part) for key, part in parts.items()}


def _whole(value: str) -> str:
    if _BAD.search(value) is None:
        return value
    joined = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined.replace("\x00", "")


def _clipped(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= most else value[: most - 1] + CUT
    if isinstance(value, list):
        return [_clipped(part, most) for part in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _clipped(part, most) for key, part in cast("dict[str, Any]", value).items()}
    return value


def _length(content: Any) -> int:
    return len(json.dumps(content, ensure_ascii=False))
