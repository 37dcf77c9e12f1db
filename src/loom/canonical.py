"""One canonical form of a JSON value, and the measures taken from it.

Every path that hashes or measures a value goes through `encoded`, so that a
hash or a length from one operation always agrees with another's.
"""

import hashlib
import json
from dataclasses import dataclass

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def encoded(value: Json) -> str:
    """The value as JSON: sorted keys, no spaces, non-ASCII kept."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Measured:
    """A value in canonical form with its hash and length.

    Attributes:
        text: the canonical JSON.
        sha256: lower-case hex SHA-256 of the UTF-8 bytes of `text`.
        length: length of `text` in characters.
    """

    text: str
    sha256: str
    length: int


def measured(value: Json) -> Measured:
    """`value` in canonical form, hashed and measured."""
    text = encoded(value)
    return Measured(text, hashlib.sha256(text.encode()).hexdigest(), len(text))
