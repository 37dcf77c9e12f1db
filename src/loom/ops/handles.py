"""Opaque texts that carry a place in a list or search from one call to the next.

They hold no identity and no rights.
"""

import base64
import binascii
import json
import zlib
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from loom.errors import Rejected
from loom.ops.fields import HANDLE_LENGTH_MAX

CONTENT_LENGTH_MAX = 400_000
"""Bytes that a handle may unpack to: a query of 10,000 characters and its filters, all of them escaped."""

Content = TypeVar("Content", bound=BaseModel)


def packed(content: BaseModel) -> str:
    """The content as URL-safe text."""
    data = zlib.compress(content.model_dump_json().encode(), 6)
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def unpacked(model: type[Content], handle: str, field: str) -> Content:
    """What `packed` was given.

    Raises:
        Rejected: the handle is not one, or was made by another version.
    """
    refusal = Rejected(f"{field}: not a handle of an earlier answer; begin again without it", field=field)
    if len(handle) > HANDLE_LENGTH_MAX:
        raise refusal
    try:
        data = base64.b64decode(handle.encode("ascii") + b"=" * (-len(handle) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(data, CONTENT_LENGTH_MAX)
        if not unpacker.eof or unpacker.unused_data:
            raise refusal
        return model.model_validate(json.loads(text))
    except (UnicodeError, binascii.Error, zlib.error, json.JSONDecodeError, RecursionError, ValidationError):
        raise refusal from None
