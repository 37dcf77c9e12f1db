"""A text in an encoding that has to be guessed, by charset-normalizer. Run as a program."""

import sys
from typing import Final

from charset_normalizer import from_bytes

from loom.extraction.child import Found, Unreadable, serve

SAMPLE_BYTES: Final = 256 * 1024
WESTERN: Final = "cp1252"
ITS_KIN: Final = frozenset({"cp1250", "cp1254", "cp1257"})
_BESIDE_LETTERS: Final = frozenset(
    "\u2018\u2019\u201c\u201d\u201e\u2013\u2014\u2026\u20ac\u00ab\u00bb\u00b0\u00a7\u00a0"
)

ENCODINGS: Final = [
    *(WESTERN, *sorted(ITS_KIN), "cp1251", "cp1253", "cp1255", "cp1256", "koi8_r"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
]
"""What files are still written in; among every encoding there is, short texts are taken for rare ones."""


def extract(content: bytes) -> Found:
    """The text in the likeliest encoding.

    Raises:
        Unreadable: it is likely no text.
    """
    guess = from_bytes(content[:SAMPLE_BYTES], cp_isolation=ENCODINGS).best()
    if guess is None or b"\x00" in content:
        raise Unreadable("is neither a text nor of a format that can be read")
    encoding = WESTERN if guess.encoding in ITS_KIN and is_western(content) else guess.encoding
    try:
        return Found("", [content.decode(encoding)])
    except UnicodeDecodeError:
        raise Unreadable("changes its encoding midway; save it as UTF-8") from None


def is_western(content: bytes) -> bool:
    """Whether the bytes are letters and plain punctuation in the commonest of the kin; others show as signs."""
    try:
        text = content.decode(WESTERN)
    except UnicodeDecodeError:
        return False
    return all(letter.isalpha() or letter in _BESIDE_LETTERS for letter in set(text) if not letter.isascii())


if __name__ == "__main__":
    sys.exit(serve(extract))
