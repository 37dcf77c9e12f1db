"""What the tokeniser knows about Unicode: which characters join, split, fold or vanish.

The sources are the Unicode character database (general categories, blocks)
as Python ships it. Characters that this Python does not know yet are taken
as letters, so that a newer script is searchable all the same.
"""

import unicodedata
from typing import Final

SPACELESS: Final = (
    "\u0e01-\u0e3e\u0e40-\u0e4f\u0e80-\u0ecf\u0edc-\u0edf"  # Thai, Lao, without their digits
    "\u1000-\u103f\u1050-\u109f\ua9e0-\ua9ef\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17df\u1980-\u19cf\u1a20-\u1a7f"  # Khmer, New Tai Lue, Tai Tham
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7fb"  # Hangul
    "\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # Hiragana, Katakana
    "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3105-\u312f"  # radicals, marks, Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua48c\uf900-\ufad9"  # Han, Yi
    "\U0001aff0-\U0001b16f\U00020000-\U0003fffd"  # further kana, further Han
)
"""Scripts written without spaces between words, as the inside of a regular expression's class."""

FLAGS: Final = "\U0001f1e6-\U0001f1ff"
"""Regional indicators; two of them are one flag."""

_DROPPED_MARKS: Final = (
    (0x0300, 0x036F),  # accents
    (0x0591, 0x05C7),  # Hebrew points
    (0x0610, 0x061A),  # Arabic signs
    (0x064B, 0x065F),  # Arabic vowel signs
    (0x0670, 0x0670),
    (0x06D6, 0x06ED),
    (0x0730, 0x074A),  # Syriac points
    (0x08CA, 0x08FF),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFE20, 0xFE2F),
    (0xE0100, 0xE01EF),
)
_FOLDED: Final = {
    "\u00f8": "o",
    "\u00d8": "O",
    "\u0142": "l",
    "\u0141": "L",
    "\u0111": "d",
    "\u0110": "D",
    "\u00e6": "ae",
    "\u00c6": "AE",
    "\u0153": "oe",
    "\u0152": "OE",
    "\u0131": "i",
    "\u00f0": "d",
    "\u00d0": "D",
    "\u00fe": "th",
    "\u00de": "TH",
    "\u0451": "\u0435",  # Cyrillic io is often written ie
    "\u0401": "\u0415",
    "\u0622": "\u0627",  # alef with madda or hamza is often written bare
    "\u0623": "\u0627",
    "\u0625": "\u0627",
    "\u0671": "\u0627",
    "\u0640": "",  # tatweel only stretches a word
    "\u2018": "'",
    "\u2019": "'",
    "\u02bc": "'",
    "\u2010": "-",
    "\u2011": "-",
}
_ACCENTED_UNTIL: Final = 0x0400
"""Below it are Latin and Greek, whose marked and unmarked letters are one letter to a searcher."""
_GREEK_AND_LATIN_EXTENDED: Final = range(0x1E00, 0x2000)
_PICTURES: Final = range(0x1F000, 0x1FB00)
_NONCHARACTER: Final = 0xFFFE


class Folds(dict[int, str]):
    """What each character becomes before words are cut; filled as characters are met.

    Used as the table of `str.translate`. ASCII stays as it is. A letter loses
    its accents; a symbol gets spaces around it, so that it is a token of its own;
    punctuation and controls become a space; invisible joiners vanish. It holds
    at most one entry for each Unicode character.
    """

    def __missing__(self, code: int) -> str:
        folded = _fold(code)
        self[code] = folded
        return folded


def _fold(code: int) -> str:
    character = chr(code)
    category = unicodedata.category(character)
    if character in _FOLDED:
        return _FOLDED[character]
    if category[0] == "M":
        return "" if any(first <= code <= last for first, last in _DROPPED_MARKS) else character
    if category in {"Cf", "Sk"}:
        return ""
    if category in {"So", "Sc"} or (category == "Cn" and code in _PICTURES):
        is_flag = unicodedata.name(character, "").startswith("REGIONAL INDICATOR")
        return character if is_flag else f" {character} "
    is_gap = category[0] in "PZS" or category in {"Cc", "Cs", "Co"} or code & _NONCHARACTER == _NONCHARACTER
    if is_gap:
        return " " if category == "Cc" or not character.isascii() else character
    return _bare(character)


def _bare(letter: str) -> str:
    """A Latin or Greek letter without its accents; any other letter as it is."""
    if ord(letter) >= _ACCENTED_UNTIL and ord(letter) not in _GREEK_AND_LATIN_EXTENDED:
        return letter
    decomposed = unicodedata.normalize("NFD", letter)
    return "".join(c for c in decomposed if unicodedata.category(c) != "Mn") or letter
