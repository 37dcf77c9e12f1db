"""What a cross-encoder is given to read: English, and of a long text the window nearest to the question."""

import re
from typing import Final

from loom.retrieval import tokens
from loom.retrieval.passages import split_passages
from loom.retrieval.tokens import STOP_WORDS
from loom.storage.indexes import TextQuery

WINDOW_WORDS: Final = 110
WINDOW_CHARACTERS: Final = 700
TEXT_CHARACTERS_MAX: Final = 12_000
FOREIGN_SHARE_MAX: Final = 0.1
"""Of a question's letters, how many may be none of English before it is taken for another language."""

_LETTER: Final = re.compile(r"[^\W\d_]")
_WORD: Final = re.compile(r"[a-z]+(?:'[a-z]+)?")
_FOREIGN_TEXT: Final = """
aus bei das dem den der des die ein eine einem einen einer es fuer hat ich im ist mit nach nicht oder sich sie sind
und von war waren warum wann welche welchem welchen welcher welches wer werden wie wieviel wird wo wurde wurden zu zum
zur au aux avec ce comment dans de du elle est et il la le les leur ne ou par pas pour pourquoi quand que quel quelle
qui quoi sur un une al como con cual cuando del donde el en es esta fue la las lo los para por que quien se sin su una
y che chi come cosa di gli il perche quale sono ao da das dos em foi nao na no os ou qual quando quem seu uma het een
van wat wie waar wanneer hoe waarom
"""
_FOREIGN: Final = frozenset(_FOREIGN_TEXT.split()) - STOP_WORDS - {"no"}


def window(text: str, query: TextQuery) -> str:
    """The part of `text` with most of the question's stems, the first of equals; a short text is its own window."""
    if len(text) <= WINDOW_CHARACTERS:
        return text
    parts = split_passages(text[:TEXT_CHARACTERS_MAX], words_max=WINDOW_WORDS, characters_max=WINDOW_CHARACTERS)
    asked = frozenset(query.stems)
    return max(parts, key=lambda part: len(tokens.stems_among(part, asked)), default="")


def is_english(question: str) -> bool:
    """Whether a question can be English: its letters are, and its small words are not rather of another language."""
    letters = _LETTER.findall(question)
    if not letters or sum(not letter.isascii() for letter in letters) > FOREIGN_SHARE_MAX * len(letters):
        return False
    words = _WORD.findall(question.casefold())
    return sum(word in _FOREIGN for word in words) <= sum(word in STOP_WORDS for word in words)
