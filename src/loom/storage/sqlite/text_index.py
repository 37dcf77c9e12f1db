"""The word index: an FTS5 table for each shelf.

`bm25()` walks the postings of every term in its table, so a table for each
shelf makes a search cost what its own shelf holds.

The tables are contentless. Measured at 20,000 rows of 60 words, against a table
that keeps its text and has FTS5's `secure-delete` on: 10 against 24 MB; about
the same to insert (0.3 ms each); 0.3 against 1.7 ms to delete. The price: a
removed row's tokens stay in the table until its segments are merged, with or
without `secure-delete`, so `scrub` merges them (4 microseconds a row, 80 ms for
the 20,000). A larger shelf is only marked, and merged in slices by upkeep.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence

from loom.storage.indexes import IndexedText, Scored, Shelf, TextQuery
from loom.storage.interface import Value
from loom.storage.sqlite.connection import Session

TERMS_MAX = 200
"""Distinct terms of one query; the rest is left out."""

PHRASES_MAX = 50
"""Phrases of one query; the rest is left out."""

COMMON_FROM_ROWS = 5_000
"""Below this every term of a query counts: there, common terms still decide the order."""

SHARES_KEPT_MAX = 4096
"""Remembered shares of terms, over all shelves of a file."""

SHARE_DRIFT = 0.25
"""A remembered share is counted anew once the shelf has grown or shrunk by this much."""

SCRUB_AT_ONCE_ROWS_MAX = 20_000
"""A shelf up to this size is scrubbed inside the call."""

# Only spaces part tokens: all other ASCII punctuation belongs to a token, and so does everything beyond ASCII.
_TOKENIZE = "\"ascii tokenchars '!\"\"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~'\""

_MAKE = (
    "CREATE VIRTUAL TABLE text_{shelf} USING fts5"
    "(stem, word, content='', contentless_delete=1, tokenize=" + _TOKENIZE.replace("{", "{{").replace("}", "}}") + ")"
)
_MAKE_TERMS = "CREATE VIRTUAL TABLE text_{shelf}_terms USING fts5vocab(text_{shelf}, 'row')"
_HELD = "SELECT 1 FROM text_{shelf}_docsize WHERE id = :id"
_INSERT = "INSERT INTO text_{shelf} (rowid, stem, word) VALUES (:id, :stem, :word)"
_DELETE = "DELETE FROM text_{shelf} WHERE rowid = :id"
_OPTIMIZE = "INSERT INTO text_{shelf} (text_{shelf}) VALUES ('optimize')"
_MERGE = "INSERT INTO text_{shelf} (text_{shelf}, rank) VALUES ('merge', :pages)"
_DROP = "DROP TABLE text_{shelf}"
_DROP_TERMS = "DROP TABLE text_{shelf}_terms"
_COUNT = "SELECT doc FROM text_{shelf}_terms WHERE term = :term"
# The plus keeps FTS5 from running the whole match once for each allowed row.
_BEST = """
SELECT rowid, -bm25(text_{shelf}, 1.0, :word_weight) AS score FROM text_{shelf}
WHERE text_{shelf} MATCH :match ORDER BY score DESC, rowid DESC LIMIT :k
"""
_BEST_ALLOWED = """
SELECT rowid, -bm25(text_{shelf}, 1.0, :word_weight) AS score FROM text_{shelf}
WHERE text_{shelf} MATCH :match AND +rowid IN (SELECT value FROM json_each(:allowed))
ORDER BY score DESC, rowid DESC LIMIT :k
"""
_FIND_SHELF = """
SELECT shelf_id, row_count FROM text_shelf WHERE collection = :collection AND namespace = :namespace
"""
_ADD_SHELF = """
INSERT INTO text_shelf (collection, namespace) VALUES (:collection, :namespace) RETURNING shelf_id
"""
_ADD_ROWS = "UPDATE text_shelf SET row_count = row_count + :added WHERE shelf_id = :shelf"
_MARK = "UPDATE text_shelf SET unscrubbed = :unscrubbed WHERE shelf_id = :shelf"
_FORGET_SHELF = "DELETE FROM text_shelf WHERE shelf_id = :shelf"
_MARKED = "SELECT shelf_id, unscrubbed FROM text_shelf WHERE unscrubbed <> 0 ORDER BY shelf_id LIMIT 1"

# Spaces and controls part tokens or end strings; inside a token they say nothing.
_NOT_IN_TOKENS: Mapping[int, None] = dict.fromkeys([*range(33), 127])

_MARKED_NEW = 1
_MARKED_STARTED = 2
_MERGE_PAGES = 500


class TermShares:
    """Remembers in what share of a shelf's rows a term occurs. Safe for threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._kept: OrderedDict[tuple[int, str], tuple[float, int]] = OrderedDict()

    def get(self, shelf_id: int, term: str, row_count: int) -> float | None:
        """The share, unless unknown or counted when the shelf had another size."""
        with self._mutex:
            kept = self._kept.get((shelf_id, term))
            if kept is None or abs(row_count - kept[1]) > SHARE_DRIFT * kept[1]:
                return None
            self._kept.move_to_end((shelf_id, term))
            return kept[0]

    def put(self, shelf_id: int, term: str, share: float, row_count: int) -> None:
        """Remember a share; the one unused for longest makes room."""
        with self._mutex:
            self._kept[(shelf_id, term)] = (share, row_count)
            self._kept.move_to_end((shelf_id, term))
            if len(self._kept) > SHARES_KEPT_MAX:
                self._kept.popitem(last=False)


class SqliteTextIndex:
    """Implements `storage.indexes.TextIndex` inside one transaction. Of equal scores the newer id comes first."""

    def __init__(self, session: Session, shares: TermShares) -> None:
        self._session = session
        self._shares = shares

    def put(self, shelf: Shelf, item_id: int, text: IndexedText) -> None:
        """Index `text` under `item_id`, replacing what was there."""
        self._session.need_write("the word index")
        found = self._find(shelf)
        shelf_id = found[0] if found else self._make(shelf)
        held = found is not None and bool(self._do(_HELD, shelf_id, id=item_id))
        if held:
            self._do(_DELETE, shelf_id, id=item_id)
        self._do(_INSERT, shelf_id, id=item_id, stem=_joined(text.stems), word=_joined(text.words))
        if not held:
            self._session.cells(_ADD_ROWS, {"shelf": shelf_id, "added": 1})

    def remove(self, shelf: Shelf, item_id: int) -> None:
        """Forget the item; its tokens may stay in the file until `scrub`."""
        self._session.need_write("the word index")
        found = self._find(shelf)
        if found is not None and self._do(_HELD, found[0], id=item_id):
            self._do(_DELETE, found[0], id=item_id)
            self._session.cells(_ADD_ROWS, {"shelf": found[0], "added": -1})

    def scrub(self, shelf: Shelf) -> None:
        """Leave no byte of removed items once `maintain` has run.

        A shelf above SCRUB_AT_ONCE_ROWS_MAX rows is marked, and upkeep merges it in slices.
        """
        self._session.need_write("the word index")
        found = self._find(shelf)
        if found is None:
            return
        if found[1] <= SCRUB_AT_ONCE_ROWS_MAX:
            self._do(_OPTIMIZE, found[0])
        else:
            self._session.cells(_MARK, {"shelf": found[0], "unscrubbed": _MARKED_NEW})

    def drop(self, shelf: Shelf) -> None:
        """Forget the whole shelf."""
        self._session.need_write("the word index")
        found = self._find(shelf)
        if found is not None:
            self._do(_DROP_TERMS, found[0])
            self._do(_DROP, found[0])
            self._session.cells(_FORGET_SHELF, {"shelf": found[0]})

    def best(self, shelf: Shelf, query: TextQuery, k: int, allowed: Collection[int] | None = None) -> Sequence[Scored]:
        """The `k` best items by BM25, best first."""
        found = self._find(shelf)
        if found is None or k < 1 or (allowed is not None and not allowed):
            return ()
        match = self._match(query, *found)
        if not match:
            return ()
        params: dict[str, Value] = {"match": match, "k": k, "word_weight": query.word_weight}
        if allowed is None:
            rows = self._do(_BEST, found[0], **params)
        else:
            rows = self._do(_BEST_ALLOWED, found[0], allowed=json.dumps(list(allowed)), **params)
        return [Scored(item_id, score) for item_id, score in rows]

    def scrub_slice(self) -> bool:
        """One bounded step of a marked shelf's scrubbing, for upkeep; whether there is more to do."""
        marked = self._session.cells(_MARKED, {})
        if not marked:
            return False
        shelf_id, state = marked[0]
        # A negative count makes FTS5 take every segment into the merge; later steps go on with it.
        pages = -_MERGE_PAGES if state == _MARKED_NEW else _MERGE_PAGES
        done = self._session.run(_MERGE.format(shelf=shelf_id), {"pages": pages}) < 2  # noqa: PLR2004 - FTS5's sign of the end
        state = 0 if done else _MARKED_STARTED
        self._session.cells(_MARK, {"shelf": shelf_id, "unscrubbed": state})
        return True

    def _match(self, query: TextQuery, shelf_id: int, row_count: int) -> str:
        """The FTS5 expression, every token a quoted string; empty when nothing is asked."""
        stems = _distinct(query.stems)[: TERMS_MAX // 2]
        words = _distinct(query.words)[: TERMS_MAX // 2]
        runs = [_cleaned(phrase) for phrase in query.phrases[:PHRASES_MAX]]
        phrases = list(dict.fromkeys(_quoted(" ".join(run)) for run in runs if run))
        if query.required and not phrases:
            return ""
        if row_count > COMMON_FROM_ROWS:
            rare = self._rare({*stems, *words}, shelf_id, row_count, query.common_share)
            stems = [term for term in stems if term in rare]
            words = [term for term in words if term in rare]
        if query.required:
            # Each row with a phrase holds its first word too, so this adds scores and shuts out no row.
            words = list(dict.fromkeys([*words, *(run[0] for run in runs if run)]))
        parts = [f"stem : ({_any_of(stems)})"] if stems else []
        if query.required:
            parts.append(f"word : ({_any_of(words)})")
            return f"(word : ({' OR '.join(phrases)})) AND ({' OR '.join(parts)})"
        asked = [*map(_quoted, words), *phrases]
        if asked:
            parts.append(f"word : ({' OR '.join(asked)})")
        return " OR ".join(parts)

    def _rare(self, terms: set[str], shelf_id: int, row_count: int, common_share: float) -> set[str]:
        """The terms worth asking for: the uncommon ones, or all when there is no uncommon one that occurs."""
        share = {term: self._share(term, shelf_id, row_count) for term in terms}
        if any(0 < one <= common_share for one in share.values()):
            return {term for term in terms if share[term] <= common_share}
        return terms

    def _share(self, term: str, shelf_id: int, row_count: int) -> float:
        share = self._shares.get(shelf_id, term, row_count)
        if share is None:
            # FTS5's ascii tokeniser folded the capitals of what it keeps.
            counted = self._do(_COUNT, shelf_id, term=_folded(term))
            share = counted[0][0] / row_count if counted else 0.0
            if not self._session.write:
                self._shares.put(shelf_id, term, share, row_count)
        return share

    def _find(self, shelf: Shelf) -> tuple[int, int] | None:
        rows = self._session.cells(_FIND_SHELF, {"collection": shelf.collection, "namespace": shelf.namespace})
        return (rows[0][0], rows[0][1]) if rows else None

    def _make(self, shelf: Shelf) -> int:
        names = {"collection": shelf.collection, "namespace": shelf.namespace}
        shelf_id = int(self._session.cells(_ADD_SHELF, names)[0][0])
        self._do(_MAKE, shelf_id)
        self._do(_MAKE_TERMS, shelf_id)
        return shelf_id

    def _do(self, template: str, shelf_id: int, **params: Value) -> list[tuple[int, float]]:
        """Run a statement on a shelf's table; the number in its name is the only text put in."""
        return self._session.cells(template.format(shelf=int(shelf_id)), params)


def _clean(token: str) -> str:
    if not token.isascii():
        token = token.encode("utf-8", "ignore").decode("utf-8")
    return token.translate(_NOT_IN_TOKENS)


def _cleaned(tokens: Iterable[str]) -> list[str]:
    return list(filter(None, map(_clean, tokens)))


def _joined(tokens: Iterable[str]) -> str:
    return " ".join(_cleaned(tokens))


def _distinct(tokens: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(_cleaned(tokens)))


def _folded(term: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in term)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _any_of(terms: Iterable[str]) -> str:
    return " OR ".join(map(_quoted, terms))
