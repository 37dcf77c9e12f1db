"""Tokens as lexemes: data, never syntax.

PostgreSQL's own parsers are not used: a tsvector is written from our tokens,
each quoted, with its place. A lexeme reads `<sign><s or w><token>`: the shelf's
sign keeps the postings of shelves apart in the one index, so that a search
costs what its own shelf holds; `s` and `w` tell stems from words.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from loom.storage.indexes import IndexedText, Shelf

STEM = "s"
WORD = "w"

LEXEME_BYTES_MAX = 128
"""A longer token is indexed by its hash; a lexeme may have 2 kB at most."""

TOKENS_KEPT_MAX = 32_768
"""Tokens whose quoted form is remembered; a section that grows is made of the same ones each time."""

PART_TOKENS_MAX = 8_000
"""Tokens of one part of a text: a tsvector counts places up to 16,383 and holds 1 MB."""

PART_BYTES_MAX = 400_000

OVERLAP_TOKENS = 32
"""Words that two parts share, so that a phrase of up to this length across their border is found."""

# Spaces and controls part tokens or end strings; inside a token they say nothing.
_NOT_IN_TOKENS: Mapping[int, None] = dict.fromkeys([*range(33), 127])


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a text.

    Attributes:
        tokens: a tsvector as text.
        token_count: words and stems in it.
    """

    tokens: str
    token_count: int


def shelf_id(org: str, shelf: Shelf) -> int:
    """A shelf's number, over all orgs: 64 bits of a hash, so that nothing has to be looked up."""
    return hashed("shelf", org, shelf.collection, shelf.namespace)


def hashed(*words: str) -> int:
    """64 bits that stand for `words`, as a signed number."""
    digest = hashlib.blake2b(json.dumps(words).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def sign_of(number: int) -> str:
    """Six letters of a shelf's number; shelves that share them are told apart by the whole number in the row."""
    whole = number.to_bytes(8, "big", signed=True)
    return base64.b64encode(whole, b"_-")[:6].decode()


def clean(token: str) -> str:
    """The token without what cannot be stored or parts tokens; may be empty."""
    if not token.isascii():
        token = token.encode("utf-8", "ignore").decode("utf-8")
    return token.translate(_NOT_IN_TOKENS)


def cleaned(tokens: Iterable[str]) -> list[str]:
    """Every token that is something."""
    return list(filter(None, map(clean, tokens)))


def distinct(tokens: Iterable[str]) -> list[str]:
    """Every token that is something, once."""
    return list(dict.fromkeys(cleaned(tokens)))


def lexeme(sign: str, kind: str, token: str) -> str:
    """A token as a quoted lexeme."""
    return f"'{sign}{kind}{_told(token)}'"


def quoted(stored: str) -> str:
    """A lexeme that came out of a row as `lexeme` writes it."""
    return "'" + stored.replace("\\", "\\\\").replace("'", "''") + "'"


@lru_cache(maxsize=TOKENS_KEPT_MAX)
def _told(token: str) -> str:
    """A token as it stands between quotes; empty when nothing of it can be stored."""
    token = clean(token)
    if len(token) * 4 > LEXEME_BYTES_MAX:
        encoded = token.encode()
        if len(encoded) > LEXEME_BYTES_MAX:
            # No token holds a control character, so a hash is never taken for one.
            token = "\x01" + hashlib.blake2b(encoded, digest_size=16).hexdigest()
    if "'" in token or "\\" in token:
        token = token.replace("\\", "\\\\").replace("'", "''")
    return token


def phrase(sign: str, words: Sequence[str]) -> str:
    """Words that stand side by side, as a tsquery."""
    return "(" + " <-> ".join(lexeme(sign, WORD, word) for word in words) + ")"


def parts_of(sign: str, text: IndexedText) -> list[Part]:
    """A text's parts; one for all but very long texts, and one for an empty one."""
    words = [f"'{sign}{WORD}{told}'" for told in map(_told, text.words) if told]
    stems = [f"'{sign}{STEM}{told}'" for told in map(_told, text.stems) if told]
    pieces = zip_longest_pieces(list(_pieces(words, OVERLAP_TOKENS)), list(_pieces(stems, 0)))
    return [_part(word_piece, stem_piece) for word_piece, stem_piece in pieces]


def zip_longest_pieces(words: list[list[str]], stems: list[list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Pieces of words and of stems side by side; at least one pair."""
    for number in range(max(len(words), len(stems), 1)):
        yield (words[number] if number < len(words) else [], stems[number] if number < len(stems) else [])


def _pieces(lexemes: list[str], overlap: int) -> Iterator[list[str]]:
    if len(lexemes) <= PART_TOKENS_MAX and 4 * sum(map(len, lexemes)) < PART_BYTES_MAX:
        if lexemes:
            yield lexemes
        return
    start = 0
    while start < len(lexemes):
        end, size = start, 0
        while end < len(lexemes) and end - start < PART_TOKENS_MAX and size < PART_BYTES_MAX:
            size += 4 * len(lexemes[end])
            end += 1
        yield lexemes[start:end]
        if end == len(lexemes):
            return
        start = max(end - overlap, start + 1)


def _part(words: list[str], stems: list[str]) -> Part:
    # PostgreSQL gathers the places of a lexeme that comes more than once.
    told = [f"{one}:{place}" for line in (words, stems) for place, one in enumerate(line, 1)]
    return Part(" ".join(told), len(words) + len(stems))
