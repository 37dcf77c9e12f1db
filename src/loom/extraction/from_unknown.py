"""A text in an encoding that has to be guessed, by charset-normalizer. Run as a program."""

import sys
from typing import Final

from charset_normalizer import from_bytes

from loom.extraction.child import Found, Unreadable, serve

SAMPLE_BYTES: Final = 256 * 1024


def extract(content: bytes) -> Found:
    """The text in the likeliest encoding.

    Raises:
        Unreadable: it is likely no text.
    """
    guess = from_bytes(content[:SAMPLE_BYTES]).best()
    if guess is None or b"\x00" in content:
        raise Unreadable("is neither a text nor of a format that can be read")
    try:
        return Found("", [content.decode(guess.encoding)])
    except UnicodeDecodeError:
        raise Unreadable("changes its encoding midway; save it as UTF-8") from None


if __name__ == "__main__":
    sys.exit(serve(extract))
