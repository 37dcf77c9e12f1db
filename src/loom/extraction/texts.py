"""Decodes text files: byte order marks, UTF-8, UTF-16 without a mark, every kind of line end."""

import codecs
import io
from collections.abc import Iterator
from typing import Final

BLOCK_BYTES: Final = 1 << 20
_SAMPLE_BYTES: Final = 4096
_NUL_SHARE_MIN: Final = 0.4
"""Of every second byte of a text in UTF-16 that is mostly Latin."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""UTF-32 before UTF-16, whose mark it begins with."""


class NotText(Exception):
    """The bytes are not in the encoding, or hold what no text holds."""


def encoding_of(content: bytes) -> tuple[str, int]:
    """The likely Unicode encoding, and the length of the mark before the text."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding, len(mark)
    sample = content[: _SAMPLE_BYTES - len(content[:_SAMPLE_BYTES]) % 2]
    half = len(sample) // 2
    if half and sample[1::2].count(0) >= _NUL_SHARE_MIN * half and not sample[::2].count(0):
        return "utf-16-le", 0
    if half and sample[::2].count(0) >= _NUL_SHARE_MIN * half and not sample[1::2].count(0):
        return "utf-16-be", 0
    return "utf-8", 0


def decoded(content: bytes, encoding: str, start: int = 0) -> Iterator[str]:
    """The text after `start` in blocks; every line ends with a line feed alone.

    Raises:
        NotText: the bytes are not of this encoding, or hold a NUL.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)("strict"), translate=True)
    view = memoryview(content)[start:]
    try:
        for place in range(0, max(1, len(view)), BLOCK_BYTES):
            last = place + BLOCK_BYTES >= len(view)
            block = decoder.decode(bytes(view[place : place + BLOCK_BYTES]), final=last)
            if "\x00" in block:
                raise NotText("holds a NUL")
            if block:
                yield block
    except UnicodeError:
        raise NotText(f"is not {encoding}") from None
