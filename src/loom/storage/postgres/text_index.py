"""The word index: tsvectors made of our own tokens, a GIN index, BM25 computed from term frequencies.

Candidates come from the index by the rarest terms of the query; their scores
are exact BM25 over every term. The frequency of a term in a row is read out of
`ts_rank`: for one lexeme with weights of 1 it gives (1 + 1/4 + ... + 1/n^2) / (pi^2 / 6)
for n places, from which n follows.

How many rows hold a term is counted in the index: each time in a small shelf, and remembered for a while in a
large one, where a third more or less does not change a logarithm. So there the terms that many rows hold are counted
in a thousand of them, once for all: the index has to look at each row that it counts (of 100,000 rows, 10 ms for a
term that a tenth of them holds, 40 ms for one that half of them holds).
Nothing is counted when texts are written, so writers share no counter.

Removed tokens stay in dead rows and in the GIN index until both are written anew: `scrub` leaves a wish in the
transaction itself, and the upkeep of whichever process comes first grants it (see `scrub`, the module).
"""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from loom.storage.indexes import IndexedText, Scored, Shelf, TextQuery
from loom.storage.postgres import lexemes, scrub
from loom.storage.postgres.connection import Session
from loom.storage.postgres.lexemes import STEM, WORD

TERMS_MAX = 200
"""Distinct terms of one query; the rest is left out."""

PHRASES_MAX = 50
"""Phrases of one query; the rest is left out."""

PHRASE_TOKENS_MAX = 256
"""Words of one phrase; the rest is left out."""

COMMON_FROM_ROWS = 5_000
"""Below this every term of a query counts: there, common terms still decide the order."""

CANDIDATES_MIN = 2_000
"""In a large shelf, terms beyond the rarest that give so many rows only add to the scores of those."""

SAMPLE_ROWS = 1_000
"""Rows of a large shelf, about, in which common terms are counted."""

SAMPLE_HOLDING_MIN = 10
"""A term that so many of them hold is not counted in all rows: its share is known to a third, more or less."""

COUNTS_KEPT_MAX = 8_192
COMMONS_KEPT_MAX = 256
COUNTS_KEPT_S = 600.0
SIZES_KEPT_S = 60.0
"""How long the counts of a large shelf are remembered."""

K1 = 1.2
B = 0.75
IDF_MIN = 1e-6
"""What a term in more than half of the rows weighs, as in FTS5."""

_SIZE = """
SELECT count(*), coalesce(sum(token_count), 0)::BIGINT FROM text_entry WHERE org = %(org)s AND shelf_id = %(shelf)s
"""
_COUNTS = """
SELECT (SELECT count(*) FROM text_entry AS e
    WHERE e.tokens @@ CAST(asked.term AS tsquery) AND e.org || '' = %(org)s AND e.shelf_id + 0 = %(shelf)s)
FROM unnest(CAST(%(terms)s AS TEXT[])) WITH ORDINALITY AS asked (term, place) ORDER BY place
"""
# Which rows are looked at says a hash: ids are moments, and those have patterns.
_COMMON = """
WITH sampled AS MATERIALIZED (
    SELECT tokens FROM text_entry
    WHERE org = %(org)s AND shelf_id = %(shelf)s AND item_id = ANY(ARRAY(
        SELECT item_id FROM text_entry
        WHERE org = %(org)s AND shelf_id = %(shelf)s AND abs(hashint8(item_id)::BIGINT) %% %(step)s = 0
    ))
)
SELECT lexeme, count(*), (SELECT count(*) FROM sampled) FROM sampled, unnest(tokens)
GROUP BY lexeme HAVING count(*) >= %(least)s
"""
_PUT = """
WITH gone AS (
    DELETE FROM text_entry
    WHERE org = %(org)s AND shelf_id = %(shelf)s AND item_id = %(item)s AND part >= %(parts)s
)
INSERT INTO text_entry (org, shelf_id, item_id, part, token_count, tokens)
VALUES (%(org)s, %(shelf)s, %(item)s, %(part)s, %(token_count)s, CAST(%(tokens)s AS TSVECTOR))
ON CONFLICT (org, shelf_id, item_id, part) DO UPDATE
SET token_count = excluded.token_count, tokens = excluded.tokens
"""
_REMOVE = "DELETE FROM text_entry WHERE org = %(org)s AND shelf_id = %(shelf)s AND item_id = %(item)s"
_DROP = "DELETE FROM text_entry WHERE org = %(org)s AND shelf_id = %(shelf)s"

# Written so that the shelf is compared in the row alone: the index is asked for lexemes, which name the shelf already.
# The inner queries stand for themselves (OFFSET 0): the norm is computed once, and no tokens are carried to the sort.
_BEST = """
SELECT item_id, max(score) AS best FROM (
    SELECT item_id, {score} AS score FROM (
        SELECT item_id, CAST({flat} AS FLOAT8) + CAST(%(slope)s AS FLOAT8) * token_count AS norm, tokens
        FROM text_entry
        WHERE tokens @@ CAST(%(candidates)s AS tsquery) AND org || '' = %(org)s AND shelf_id + 0 = %(shelf)s{allowed}
        OFFSET 0
    ) AS found OFFSET 0
) AS scored
GROUP BY item_id ORDER BY best DESC, item_id DESC LIMIT %(k)s
"""
_ALLOWED = " AND item_id = ANY(CAST(%(allowed)s AS BIGINT[]))"
_TERM = (
    "CAST(%(idf_{n})s AS FLOAT8) * (1 - norm / (CAST(%(weight_{n})s AS FLOAT8)"
    " * round(1 / (1.6449340668482264 * (1 - ts_rank('{{1,1,1,1}}', tokens, CAST(%(term_{n})s AS tsquery)))) - 0.5)"
    " + norm))"
)
_PHRASE = (
    "CASE WHEN tokens @@ CAST(%(term_{n})s AS tsquery) THEN CAST(%(idf_{n})s AS FLOAT8)"
    " * (1 - norm / (CAST(%(weight_{n})s AS FLOAT8) + norm)) ELSE 0 END"
)


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows and tokens a shelf has."""

    rows: int
    tokens: int


@dataclass(frozen=True, slots=True)
class _Term:
    """A part of a query: a lexeme or a phrase as tsquery text, its weight, and the rows that hold it."""

    told: str
    weight: float
    is_phrase: bool
    rows: int = 0


class TextCounts:
    """Remembers the sizes of large shelves and in how many of their rows terms occur. Safe for threads."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._mutex = threading.Lock()
        self._kept: OrderedDict[tuple[int, str], tuple[Size | int, float]] = OrderedDict()
        self._commons: dict[int, tuple[Mapping[str, int], float]] = {}

    def get(self, shelf: int, term: str, kept_s: float) -> Size | int | None:
        """What was counted, unless that was longer than `kept_s` ago; the term "" stands for the shelf's size."""
        with self._mutex:
            kept = self._kept.get((shelf, term))
            if kept is None or self._clock_s() - kept[1] > kept_s:
                return None
            self._kept.move_to_end((shelf, term))
            return kept[0]

    def put(self, shelf: int, term: str, counted: Size | int) -> None:
        """Remember; what was unused for longest makes room."""
        with self._mutex:
            self._kept[(shelf, term)] = (counted, self._clock_s())
            self._kept.move_to_end((shelf, term))
            if len(self._kept) > COUNTS_KEPT_MAX:
                self._kept.popitem(last=False)

    def common(self, shelf: int) -> Mapping[str, int] | None:
        """What `keep_common` was given, unless that was longer than `COUNTS_KEPT_S` ago."""
        with self._mutex:
            kept = self._commons.get(shelf)
            return kept[0] if kept is not None and self._clock_s() - kept[1] <= COUNTS_KEPT_S else None

    def keep_common(self, shelf: int, common: Mapping[str, int]) -> None:
        """Remember a large shelf's common terms; those of the shelf that was first make room."""
        with self._mutex:
            self._commons.pop(shelf, None)
            self._commons[shelf] = (common, self._clock_s())
            if len(self._commons) > COMMONS_KEPT_MAX:
                self._commons.pop(next(iter(self._commons)))


class PostgresTextIndex:
    """Implements `storage.indexes.TextIndex` inside one transaction. Of equal scores the newer id comes first."""

    def __init__(self, session: Session, org: str, counts: TextCounts) -> None:
        self._session = session
        self._org = org
        self._counts = counts

    def put(self, shelf: Shelf, item_id: int, text: IndexedText) -> None:
        """Index `text` under `item_id`, replacing what was there."""
        self._session.need_write("the word index")
        number = lexemes.shelf_id(self._org, shelf)
        parts = lexemes.parts_of(lexemes.sign_of(number), text)
        common = {"org": self._org, "shelf": number, "item": item_id, "parts": len(parts)}
        puts = [
            (_PUT, {**common, "part": place, "token_count": part.token_count, "tokens": part.tokens})
            for place, part in enumerate(parts)
        ]
        self._session.send_settled((number, item_id), puts)

    def remove(self, shelf: Shelf, item_id: int) -> None:
        """Forget the item."""
        on = self._on(shelf)
        self._session.send_settled((on["shelf"], item_id), [(_REMOVE, {**on, "item": item_id})])

    def scrub(self, shelf: Shelf) -> None:
        """Have an upkeep soon take the bytes of removed rows out of the files, of every table."""
        self._session.need_write(f"the word index of {shelf.collection}")
        self._session.send(scrub.WISH, {})

    def drop(self, shelf: Shelf) -> None:
        """Forget the whole shelf, to the last byte after an upkeep."""
        self._session.send(_DROP, self._on(shelf))
        self._session.send(scrub.WISH, {})

    def best(self, shelf: Shelf, query: TextQuery, k: int, allowed: Collection[int] | None = None) -> Sequence[Scored]:
        """The `k` best items by BM25, best first."""
        if k < 1 or (allowed is not None and not allowed):
            return ()
        number = lexemes.shelf_id(self._org, shelf)
        sign = lexemes.sign_of(number)
        phrases = _phrases(sign, query)
        terms = _terms(sign, query)
        if not phrases and (query.required or not terms):
            return ()
        size = self._size(number)
        if size.rows == 0:
            return ()
        known = self._counted(number, size, [*terms, *phrases])
        terms, phrases = known[: len(terms)], known[len(terms) :]
        if size.rows > COMMON_FROM_ROWS:
            terms = _rare(terms, size.rows * query.common_share)
        candidates = _candidates(terms, phrases, size.rows, max(k, CANDIDATES_MIN), required=query.required)
        return self._scored(number, size, [*terms, *phrases], candidates, (k, allowed))

    def _scored(
        self,
        number: int,
        size: Size,
        terms: Sequence[_Term],
        candidates: Sequence[_Term],
        wanted: tuple[int, Collection[int] | None],
    ) -> Sequence[Scored]:
        k, allowed = wanted
        scoring = [term for term in terms if term.rows > 0] or list(terms)
        params: dict[str, object] = {
            "org": self._org,
            "shelf": number,
            "slope": K1 * B / max(1.0, size.tokens / size.rows),
            "candidates": " | ".join(term.told for term in candidates),
            "k": k,
        }
        for place, term in enumerate(scoring):
            params[f"term_{place}"] = term.told
            params[f"weight_{place}"] = float(term.weight)
            params[f"idf_{place}"] = (K1 + 1) * _idf(term.rows, size.rows)
        if allowed is not None:
            params["allowed"] = list(allowed)
        sql = _statement(tuple(term.is_phrase for term in scoring), narrowed=allowed is not None)
        return [Scored(item_id, score) for item_id, score in self._session.cells(sql, params, prepare=False)]

    def _size(self, number: int) -> Size:
        kept = self._counts.get(number, "", SIZES_KEPT_S)
        if isinstance(kept, Size):
            return kept
        rows, tokens = self._session.cells(_SIZE, {"org": self._org, "shelf": number})[0]
        size = Size(rows, tokens)
        if rows > COMMON_FROM_ROWS and not self._session.write:
            self._counts.put(number, "", size)
        return size

    def _counted(self, number: int, size: Size, terms: Sequence[_Term]) -> list[_Term]:
        """The terms with the number of rows that hold each; about, where many do in a large shelf."""
        large = size.rows > COMMON_FROM_ROWS
        known = {term.told: self._counts.get(number, term.told, COUNTS_KEPT_S) for term in terms} if large else {}
        unknown = [term.told for term in terms if known.get(term.told) is None]
        common: Mapping[str, int] = self._common(number, size) if large and unknown else {}
        found: dict[str, int] = {told: common[told] for told in unknown if told in common}
        rest = [told for told in unknown if told not in common]
        if rest:
            asked = {"org": self._org, "shelf": number, "terms": rest}
            counted = self._session.cells(_COUNTS, asked, prepare=False)
            found |= {told: int(rows) for told, (rows,) in zip(rest, counted, strict=True)}
        if large and not self._session.write:
            for told, rows in found.items():
                self._counts.put(number, told, rows)
        rows_of: dict[str, Size | int | None] = {**known, **found}
        return [_Term(one.told, one.weight, one.is_phrase, _number(rows_of[one.told])) for one in terms]

    def _common(self, number: int, size: Size) -> Mapping[str, int]:
        """The terms that many rows of a large shelf hold, each with about how many."""
        common = self._counts.common(number)
        if common is None:
            step = max(1, size.rows // SAMPLE_ROWS)
            on = {"org": self._org, "shelf": number, "step": step, "least": SAMPLE_HOLDING_MIN}
            rows = self._session.cells(_COMMON, on)
            common = {lexemes.quoted(str(one[0])): size.rows * int(one[1]) // int(one[2]) for one in rows}
            if not self._session.write:
                self._counts.keep_common(number, common)
        return common

    def _on(self, shelf: Shelf) -> dict[str, str | int]:
        return {"org": self._org, "shelf": lexemes.shelf_id(self._org, shelf)}


@lru_cache(maxsize=256)
def _statement(kinds: tuple[bool, ...], *, narrowed: bool) -> str:
    """The search for so many terms (False) and phrases (True): text made of our own words alone."""
    score = " + ".join((_PHRASE if is_phrase else _TERM).format(n=n) for n, is_phrase in enumerate(kinds))
    return _BEST.format(score=score, allowed=_ALLOWED if narrowed else "", flat=K1 * (1 - B))


def _terms(sign: str, query: TextQuery) -> list[_Term]:
    half = TERMS_MAX // 2
    stems = [_Term(lexemes.lexeme(sign, STEM, one), 1.0, is_phrase=False) for one in _first(query.stems, half)]
    weight = query.word_weight
    words = [_Term(lexemes.lexeme(sign, WORD, one), weight, is_phrase=False) for one in _first(query.words, half)]
    return stems + words


def _first(tokens: Sequence[str], most: int) -> list[str]:
    return lexemes.distinct(tokens)[:most]


def _phrases(sign: str, query: TextQuery) -> list[_Term]:
    runs = [lexemes.cleaned(run)[:PHRASE_TOKENS_MAX] for run in query.phrases[:PHRASES_MAX]]
    told = dict.fromkeys(lexemes.phrase(sign, run) for run in runs if run)
    return [_Term(one, query.word_weight, is_phrase=True) for one in told]


def _rare(terms: Sequence[_Term], most: float) -> list[_Term]:
    """The terms worth asking for: the uncommon ones, or all when there is no uncommon one that occurs."""
    rare = [term for term in terms if term.rows <= most]
    return rare if any(term.rows for term in rare) else list(terms)


def _candidates(
    terms: Sequence[_Term], phrases: Sequence[_Term], rows: int, enough: int, *, required: bool
) -> list[_Term]:
    """What a row must hold one of to be scored: in a large shelf, the rarest terms that give enough rows."""
    if required:
        return list(phrases)
    chosen = list(phrases)
    seen = 0
    for term in sorted(terms, key=lambda one: one.rows):
        if rows > COMMON_FROM_ROWS and seen >= enough:
            break
        chosen.append(term)
        seen += term.rows
    return chosen


def _idf(holding: int, rows: int) -> float:
    return max(IDF_MIN, math.log((rows - holding + 0.5) / (holding + 0.5))) if holding <= rows else IDF_MIN


def _number(counted: Size | int | None) -> int:
    return counted if isinstance(counted, int) else 0
