"""Checks on every text and number of a request, before any field is looked at."""

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, cast

from loom.errors import InvalidText, Rejected

DEPTH_MAX = 64
INTEGER_BITS_MAX = 1024
SURROGATE = re.compile("[\ud800-\udfff]")


def check(args: Mapping[str, Any], depth_max: int = DEPTH_MAX) -> None:
    """Walk `args` and refuse what no store or client can carry.

    Raises:
        InvalidText: a lone surrogate, NaN or Infinity, anywhere.
        Rejected: a NUL character, nesting deeper than `depth_max`, or an integer of over 1,024 bits.
    """
    for name in args:
        _check_text(_shown(name), name)
    stack: list[tuple[str, object, int]] = [(_shown(name), value, 0) for name, value in args.items()]
    while stack:
        field, value, depth = stack.pop()
        if depth > depth_max:
            raise Rejected(f"{field}: nested deeper than {depth_max} levels", field=field)
        if isinstance(value, dict):
            parts = cast("dict[object, object]", value)
            stack.extend((field, part, depth + 1) for pair in parts.items() for part in pair)
        elif isinstance(value, list):
            stack.extend((field, part, depth + 1) for part in cast("list[object]", value))
        else:
            _check_leaf(field, value)


def _check_leaf(field: str, value: object) -> None:
    if isinstance(value, str):
        _check_text(field, value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidText(f"{field}: NaN and Infinity are not JSON", field=field)
    elif isinstance(value, int) and value.bit_length() > INTEGER_BITS_MAX:
        raise Rejected(f"{field}: an integer of over {INTEGER_BITS_MAX} bits", field=field)


def _check_text(field: str, text: str) -> None:
    if SURROGATE.search(text):
        raise InvalidText(f"{field}: holds half of a surrogate pair, which is not valid Unicode", field=field)
    if "\x00" in text:
        raise Rejected(f"{field}: holds a NUL character; remove it", field=field)


def _shown(name: str) -> str:
    """A field's name as an error may repeat it: short, and printable."""
    return "".join(c if c.isprintable() else "?" for c in name[:64])


def has_control(text: str) -> bool:
    """Whether `text` holds a control character or half of a surrogate pair (Unicode categories Cc and Cs).

    What a transport says of a call comes to no other check.
    """
    return any(unicodedata.category(c) in ("Cc", "Cs") for c in text)
