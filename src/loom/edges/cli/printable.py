"""Stored text at a terminal: whatever it holds, it can move no cursor, set no title and turn no line around."""

import json
import unicodedata

REPLACEMENT = "\ufffd"
JOINERS = "\u200c\u200d"
"""Emoji are put together with one of these, and Persian words kept apart with the other."""

KEPT = frozenset(f"\n\t{JOINERS}")


def printable(text: str) -> str:
    """`text` with a mark in place of each character that a terminal might obey or cannot show."""
    if text.isprintable():
        return text
    return "".join(letter if _is_harmless(letter) else REPLACEMENT for letter in text)


def printable_json(value: object, indent: int | None = None) -> str:
    """`value` as JSON, in which such characters are escaped: it reads back as the same value."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isprintable():
        return text
    # The lines and spaces between the values are harmless, so that only letters of texts are escaped.
    return "".join(letter if _is_harmless(letter) else json.dumps(letter)[1:-1] for letter in text)


def _is_harmless(letter: str) -> bool:
    return letter.isprintable() or letter in KEPT or unicodedata.category(letter) == "Zs"
