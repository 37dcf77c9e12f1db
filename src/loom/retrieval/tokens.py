"""The one tokeniser, for documents and for queries.

A text is normalised (NFKC), folded (accents, case) and cut into chunks: words
with what joins them (`user_id`, `foo.bar/baz-qux`, `o'brien`), runs of a script without
spaces, symbols. A chunk gives a *main* sequence (its parts, or the run's
bigrams) and *extras* (the identifier whole, the run's single characters). A
document's tokens are all main tokens in order and then all extras, so that a
phrase matches however its words were joined.

A token holds no space and no ASCII punctuation but `_`. Stems are Porter's second
English stemmer (snowball); other languages and identifiers stay as they are.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import Final, NamedTuple, Protocol, cast

import Stemmer

from loom.retrieval.scripts import FLAGS, SPACELESS, Folds
from loom.storage.indexes import COMMON_SHARE, IndexedText, TextQuery

DOCUMENT_CHARACTERS_MAX: Final = 200_000
QUERY_CHARACTERS_MAX: Final = 10_000
QUERY_TOKENS_MAX: Final = 200
PHRASES_MAX: Final = 16
PHRASE_TOKENS_MAX: Final = 40
TOKEN_CHARACTERS_MAX: Final = 128
WORD_WEIGHT: Final = 0.5
_CACHED_CHUNKS_MAX: Final = 65_536
_CACHED_CHUNK_CHARACTERS_MAX: Final = 40
_STEM_CHARACTERS_MIN: Final = 3

_STOP_TEXT: Final = """
a about am an and any are as at be been but by can could did do does for from had has have he her him his how i
if in is it its me my of on or our she should so some than that the their them then there these they this to us
was we were what when where which who whom whose why will with would you your
"""
STOP_WORDS: Final = frozenset(_STOP_TEXT.split())
"""English words that a question holds whatever it is about."""

_WORD: Final = rf"[^\x00-/:-@\[-^`{{-\x7f{FLAGS}{SPACELESS}]"
_CHUNK: Final = re.compile(
    rf"[{SPACELESS}]+|[{FLAGS}]{{1,2}}|(?<![A-Za-z0-9_])[A-Za-z](?:\+\+|#)(?![A-Za-z0-9_])"
    rf"|{_WORD}+(?:[-./:@'\\]{_WORD}+)*"
)
_ASCII_CHUNK: Final = re.compile(
    r"(?<![A-Za-z0-9_])[A-Za-z](?:\+\+|#)(?![A-Za-z0-9_])|[A-Za-z0-9_]+(?:[-./:@'\\][A-Za-z0-9_]+)*"
)
_IS_SPACELESS: Final = re.compile(rf"[{SPACELESS}]")
_GROUPED_DIGITS: Final = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_SEGMENTS: Final = re.compile(r"[./:@\\]")
_LINE_NUMBERS: Final = re.compile(r"(?<=[A-Za-z])(?::[0-9]+)+\Z")
"""Where in a file; left out of the whole form, so that `src/app.py:12` is `src/app.py` too."""
_PIECES: Final = re.compile(r"[-_']+")
_CASES: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_HUMPED: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]{3}[0-9]|[0-9][A-Za-z]{3}")
_ENDING: Final = re.compile(r"'(?:s|re|ve|ll|d|m)\Z", re.IGNORECASE)
_NEGATION: Final = re.compile(r"n't\Z", re.IGNORECASE)
_QUOTED: Final = re.compile('["\u201c\u201e]([^"\u201c\u201d\u201e]+)["\u201c\u201d]')
_SPELLED: Final = {"++": "_plus_plus", "#": "_sharp"}

_folds: Final = Folds()


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the library's name


# Its own memory of words is off: `_stem` has one.
_snowball: Final = cast("_Stemmer", Stemmer.Stemmer("english", 0))  # pyright: ignore[reportUnknownMemberType]
_snowball_lock: Final = Lock()  # the stemmer keeps the word it works on in itself


class _Tokens(NamedTuple):
    """One chunk's tokens in order, each with its stem beside it."""

    main: tuple[str, ...]
    stems: tuple[str, ...]
    extras: tuple[str, ...] = ()
    extra_stems: tuple[str, ...] = ()


def document(text: str) -> IndexedText:
    """The tokens under which `text` is indexed; the first 200,000 characters count.

    Linear in the length of the text. Never raises.
    """
    words: list[str] = []
    stems: list[str] = []
    extras: list[str] = []
    extra_stems: list[str] = []
    for tokens in _chunks(text[:DOCUMENT_CHARACTERS_MAX]):
        words.extend(tokens.main)
        stems.extend(tokens.stems)
        extras.extend(tokens.extras)
        extra_stems.extend(tokens.extra_stems)
    return IndexedText([*words, *extras], [*stems, *extra_stems])


def stems_among(text: str, stems: Collection[str]) -> frozenset[str]:
    """Those of `stems` that `document(text)` has.

    A stem begins as its word does, so plain words that begin otherwise than all of `stems` are passed over.
    """
    wanted = frozenset(stems)
    initials = frozenset(stem[:1] for stem in wanted)
    held: set[str] = set()
    for chunk in _found(text[:DOCUMENT_CHARACTERS_MAX]):
        if chunk[0].lower() in initials or not (chunk.isascii() and chunk.isalpha() and chunk[1:].islower()):
            tokens = _tokens(chunk)
            held.update(tokens.stems)
            held.update(tokens.extra_stems)
    return wanted & held


def query(
    text: str, *, word_weight: float = WORD_WEIGHT, required: bool = False, common_share: float = COMMON_SHARE
) -> TextQuery:
    """What `text` asks for; its first 10,000 characters and 200 distinct tokens count.

    Parts in double quotes are phrases as well. Stop words are dropped when
    other words remain. Single characters of a spaceless script are asked for only when they
    stand alone, for in a document every character is a token.

    Args:
        text: the question, plain data whatever it holds.
        word_weight: weight of unstemmed matches against 1.0 for stemmed ones.
        required: a hit must hold one of the phrases; without phrases it has no effect.
        common_share: as in `TextQuery`.
    """
    text = text[:QUERY_CHARACTERS_MAX]
    words: dict[str, None] = {}
    stems: dict[str, None] = {}
    pairs = [pair for pair in _query_pairs(text) if pair[0] not in STOP_WORDS] or list(_query_pairs(text))
    for word, stem in pairs:
        if len(words) >= QUERY_TOKENS_MAX:
            break
        words.setdefault(word)
        stems.setdefault(stem)
    found = phrases(text)
    return TextQuery(
        words=list(words),
        stems=list(stems),
        phrases=found,
        word_weight=word_weight,
        required=required and bool(found),
        common_share=common_share,
    )


def phrases(text: str) -> Sequence[Sequence[str]]:
    """The token runs of the parts of `text` in double quotes, at most 16 of at most 40 tokens."""
    runs: list[list[str]] = []
    for match in _QUOTED.finditer(text):
        run = [word for tokens in _chunks(match[1]) for word in tokens.main][:PHRASE_TOKENS_MAX]
        if run and run not in runs:
            runs.append(run)
        if len(runs) >= PHRASES_MAX:
            break
    return runs


def _query_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Each token of a query with its stem; identifiers whole, no single characters of runs."""
    for tokens in _chunks(text):
        yield from zip(tokens.main, tokens.stems, strict=True)
        if tokens.extras and not _IS_SPACELESS.match(tokens.extras[0]):
            yield from zip(tokens.extras, tokens.extra_stems, strict=True)


def _chunks(text: str) -> Iterator[_Tokens]:
    return map(_tokens, _found(text))


def _found(text: str) -> list[str]:
    """The chunks of a text, as they stand in it once it is normalised."""
    if text.isascii():
        pattern = _ASCII_CHUNK
    else:
        pattern = _CHUNK
        text = unicodedata.normalize("NFKC", text).translate(_folds)
    if "," in text:
        text = _GROUPED_DIGITS.sub("", text)
    return pattern.findall(text)


def _tokens(chunk: str) -> _Tokens:
    return _cached(chunk) if len(chunk) <= _CACHED_CHUNK_CHARACTERS_MAX else _cut(chunk)


@lru_cache(maxsize=_CACHED_CHUNKS_MAX)
def _cached(chunk: str) -> _Tokens:
    return _cut(chunk)


def _cut(chunk: str) -> _Tokens:
    """The tokens of one chunk: a run, a flag, `c++`, or words and what joins them."""
    if _IS_SPACELESS.match(chunk):
        return _run(chunk)
    if chunk[1:] in _SPELLED:
        spelled = chunk[0].casefold() + _SPELLED[chunk[1:]]
        return _Tokens((spelled,), (spelled,))
    main: list[str] = []
    extras: list[str] = []
    for segment in _SEGMENTS.split(chunk):
        parts, whole = _segment(segment)
        main.extend(parts)
        if whole:
            extras.append(whole)
    named = _LINE_NUMBERS.sub("", chunk)
    joined = "_".join(filter(None, map(_whole, _SEGMENTS.split(named))))
    if len(main) > 1 and joined not in extras:
        extras.insert(0, joined)
    extras = [extra for extra in extras if len(extra) <= TOKEN_CHARACTERS_MAX and extra not in main]
    clipped = tuple(part[:TOKEN_CHARACTERS_MAX] for part in main)
    return _Tokens(clipped, tuple(map(_stem, clipped)), tuple(extras), tuple(map(_stem, extras)))


def _segment(segment: str) -> tuple[list[str], str]:
    """The parts of what stands between dots and slashes, and its whole form if it has several parts."""
    if _NEGATION.search(segment):
        return [_plain(segment.replace("'", ""))], ""
    segment = _ENDING.sub("", segment)
    parts: list[str] = []
    for piece in _PIECES.split(segment):
        if not piece:
            continue
        cased = _CASES.findall(piece) if piece.isascii() and _HUMPED.search(piece) else [piece]
        parts.extend(_plain(part) for part in cased)
    return parts, _whole(segment) if len(parts) > 1 else ""


def _whole(segment: str) -> str:
    """A segment as one token: apostrophes gone, hyphens as `_`, none at its ends."""
    return _plain(_ENDING.sub("", segment).replace("'", "").replace("-", "_").strip("_"))


def _plain(part: str) -> str:
    if part.isascii():
        return part.lower()
    return unicodedata.normalize("NFKC", part.casefold())


def _run(run: str) -> _Tokens:
    """Bigrams of a spaceless run, and its characters as extras; a character keeps the marks that follow it."""
    characters: list[str] = []
    for character in run:
        if characters and unicodedata.category(character)[0] == "M" and len(characters[-1]) < TOKEN_CHARACTERS_MAX // 2:
            characters[-1] += character
        else:
            characters.append(character)
    if len(characters) == 1:
        return _Tokens((characters[0],), (characters[0],))
    bigrams = tuple(first + second for first, second in pairwise(characters))
    return _Tokens(bigrams, bigrams, tuple(characters), tuple(characters))


@lru_cache(maxsize=_CACHED_CHUNKS_MAX)
def _stem(word: str) -> str:
    if len(word) < _STEM_CHARACTERS_MIN or not (word.isascii() and word.isalpha()):
        return word
    with _snowball_lock:
        return _snowball.stemWord(word)
