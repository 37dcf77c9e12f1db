"""Ranks the passages that a reader may see. The indexes propose, the rows decide, words and meaning are joined."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from loom.ledger import conditions
from loom.ledger.conditions import reach_params
from loom.ledger.rules import Reader
from loom.planes import candidates
from loom.planes.knowledge import store
from loom.planes.knowledge.indexing import shelf_of
from loom.planes.knowledge.store import StoredChunk
from loom.retrieval import tokens
from loom.retrieval.calibrate import coverage, nearness
from loom.retrieval.fuse import MEANING, WORDS, Fused, fuse
from loom.storage.indexes import Scored, TextQuery, Vector
from loom.storage.interface import Row, Transaction

WEIGHTS: Final[Mapping[str, float]] = {WORDS: 0.4, MEANING: 0.6}
CANDIDATES_MIN: Final = 100
CANDIDATES_A_HIT: Final = 4
CANDIDATES_MAX: Final = 500

NEARNESS_FLOOR: Final = -0.45
COVERAGE_FLOOR: Final = 0.5
"""A hit is under the floor when it is this far away, and holds less than half of the question's words: the model does
not know every language, words do.

A short question is further from its answer than two texts of one kind are from each other, hence below 0. With the
built-in model, 99 of 100 right hits on XQuAD and on SciFact are nearer. Of what is asked of the wrong one of the two
collections, a third to four fifths is held back.
"""

_PASSAGES = """
c.chunk_id, c.ordinal, d.document_id, d.version, d.tags FROM knowledge_chunk c
JOIN knowledge_document d ON d.org = c.org AND d.document_id = c.document_id AND d.revision = c.revision
WHERE (:document_id = 0 OR d.document_id = :document_id) AND """

SEEN = "SELECT " + _PASSAGES + store.VISIBLE + " AND c.chunk_id IN (:ids)"

# Of one namespace, in the order of an index, so that no page sorts what is on the others.
VISIBLE_PAGE = (
    "SELECT "
    + _PASSAGES
    + "d.org = :org AND d.namespace = :namespace AND "
    + conditions.reached("d")
    + """
    AND d.version >= :version AND (d.version > :version OR c.ordinal > :ordinal)
ORDER BY d.version, c.ordinal LIMIT :most
"""
)

HITS = """
SELECT c.chunk_id, c.document_id, c.ordinal, c.headings, c.first_line, c.last_line, c.first_page, c.last_page,
    c.content, d.title AS document_title, d.uri, d.namespace, d.agent, d.user_id, d.tags, d.revision, d.version
FROM knowledge_chunk c
JOIN knowledge_document d ON d.org = c.org AND d.document_id = c.document_id AND d.revision = c.revision
WHERE c.org = :org AND c.chunk_id IN (:ids)
"""

UNFINISHED = (
    """
SELECT count(*) AS count FROM knowledge_document d
WHERE """
    + store.VISIBLE
    + " AND d.state <> 'ready'"
)


@dataclass(frozen=True, slots=True)
class Quest:
    """What is searched.

    Attributes:
        namespaces: the ones to read.
        reader: how far the read reaches across users.
        query: the text, at most 10,000 characters.
        vector: the query's embedding; None when there is none.
        space: the vector's embedding space.
        random_cosine: the median cosine of unrelated texts in that space.
        top_k: at most this many hits.
        per_document: at most this many passages of one document.
        tags: a document must have all of them.
        document_id: of this document alone; 0 for any.
    """

    namespaces: tuple[str, ...]
    reader: Reader
    query: str
    vector: Vector | None
    space: str
    random_cosine: float
    top_k: int
    per_document: int
    tags: tuple[str, ...] = ()
    document_id: int = 0

    @property
    def pool(self) -> int:
        """How many candidates each index brings from each namespace."""
        return min(CANDIDATES_MAX, max(CANDIDATES_MIN, CANDIDATES_A_HIT * self.top_k))


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found.

    Attributes:
        stored: the passage.
        row: what is known of its document.
        score: 0 to 1, how it ranks.
        cosine: how near it is to the question; None when it has no vector.
        below_floor: whether it is too far away to be shown unasked.
    """

    stored: StoredChunk
    row: Row
    score: float
    cosine: float | None
    below_floor: bool


@dataclass(frozen=True, slots=True)
class Lists:
    """What each index proposes, best first."""

    words: Sequence[Scored]
    meaning: Sequence[Scored]


def found(tx: Transaction, quest: Quest) -> list[Hit]:
    """The best passages, at most `top_k`, those of one document bounded; equal scores by id."""
    query = tokens.query(quest.query)
    documents: dict[int, int] = {}
    words: list[Scored] = []
    meaning: list[Scored] = []
    for namespace in quest.namespaces:
        seen, lists = _found_in(tx, replace(quest, namespaces=(namespace,)), query)
        documents |= seen
        words += lists.words
        meaning += lists.meaning
    legs = {WORDS: words}
    if quest.vector is not None and (meaning or not documents):
        legs[MEANING] = meaning
    order = fuse(legs, WEIGHTS, {WORDS: 0.0, MEANING: quest.random_cosine})
    chosen = _spread([one for one in order if one.item_id in documents], documents, quest)
    return _hits(tx, quest, query, chosen)


def unfinished(tx: Transaction, namespaces: Sequence[str], reader: Reader) -> int:
    """How many documents the reader may see that are not indexed to the end."""
    row = tx.row(UNFINISHED, **store.seen_params(namespaces, reader))
    return cast("int", row["count"]) if row else 0


def _found_in(tx: Transaction, quest: Quest, query: TextQuery) -> tuple[dict[int, int], Lists]:
    """One namespace's passages that may be shown, each with its document, and their scores."""
    shelf = shelf_of(quest.namespaces[0])
    found = candidates.proposed(
        [
            candidates.by_words(tx, shelf, query, quest.pool),
            candidates.by_meaning(tx, shelf, quest.space, quest.vector, quest.pool),
        ],
        lambda ids: _seen(tx, quest, ids),
        lambda: visible(tx, quest),
        narrow=bool(quest.document_id),
    )
    words, meaning = found.lists
    return found.seen, _completed(tx, quest, query, Lists(words, meaning), found.seen)


def _completed(tx: Transaction, quest: Quest, query: TextQuery, lists: Lists, seen: Collection[int]) -> Lists:
    """The lists with each index's score of every candidate that may be shown, where it has one."""
    shelf = shelf_of(quest.namespaces[0])
    words = [one for one in lists.words if one.item_id in seen]
    meaning = [one for one in lists.meaning if one.item_id in seen]
    if quest.vector is not None:
        others = sorted(set(seen) - {one.item_id for one in meaning})
        scores = tx.vectors.scores(shelf, quest.space, quest.vector, others)
        meaning += [Scored(chunk_id, score) for chunk_id, score in sorted(scores.items())]
    others = sorted(set(seen) - {one.item_id for one in words})
    if others and len(lists.words) >= quest.pool:
        words += tx.text.best(shelf, query, len(others), others)
    return Lists(words, meaning)


def _seen(tx: Transaction, quest: Quest, ids: Collection[int]) -> dict[int, int]:
    """The passages that may be shown, each with its document."""
    params = store.seen_params(quest.namespaces, quest.reader) | {"document_id": quest.document_id}
    return {
        cast("int", row["chunk_id"]): cast("int", row["document_id"])
        for row in (tx.rows(SEEN, ids=sorted(ids), **params) if ids else ())
        if _has_tags(row, quest)
    }


def visible(tx: Transaction, quest: Quest, page: int = candidates.PAGE_IDS) -> Iterator[Collection[int]]:
    """The passages of the only namespace that may be shown, in pages."""
    params = {"namespace": quest.namespaces[0], "document_id": quest.document_id, **reach_params(quest.reader)}

    def read(after: tuple[int, int], most: int) -> list[tuple[tuple[int, int], int | None]]:
        version, ordinal = after
        rows = tx.rows(VISIBLE_PAGE, version=version, ordinal=ordinal, most=most, **params)
        return [
            (
                (cast("int", row["version"]), cast("int", row["ordinal"])),
                cast("int", row["chunk_id"]) if _has_tags(row, quest) else None,
            )
            for row in rows
        ]

    return candidates.pages(read, (0, -1), page)


def _has_tags(row: Row, quest: Quest) -> bool:
    return not quest.tags or set(quest.tags) <= set(tags_in(row))


def _spread(order: Sequence[Fused], documents: Mapping[int, int], quest: Quest) -> list[Fused]:
    """The best, not too many of one document."""
    taken: dict[int, int] = {}
    chosen: list[Fused] = []
    for one in order:
        document = documents[one.item_id]
        taken[document] = taken.get(document, 0) + 1
        if taken[document] <= quest.per_document:
            chosen.append(one)
        if len(chosen) == quest.top_k:
            break
    return chosen


def _hits(tx: Transaction, quest: Quest, query: TextQuery, chosen: Sequence[Fused]) -> list[Hit]:
    ids = [one.item_id for one in chosen]
    rows = {cast("int", row["chunk_id"]): row for row in (tx.rows(HITS, ids=ids) if ids else ())}
    hits: list[Hit] = []
    for one in chosen:
        row = rows[one.item_id]
        cosine = one.raw(MEANING)
        stored = store.chunk_of(row)
        hits.append(Hit(stored, row, one.score, cosine, _is_far(quest, query, stored, cosine)))
    return hits


def _is_far(quest: Quest, query: TextQuery, stored: StoredChunk, cosine: float | None) -> bool:
    if cosine is None or nearness(cosine, quest.random_cosine) >= NEARNESS_FLOOR:
        return False
    return coverage(query, tokens.stems_among(stored.chunk.text, query.stems)) < COVERAGE_FLOOR


def tags_in(row: Row) -> list[str]:
    """The tags of a document, as its row keeps them."""
    return cast("list[str]", json.loads(cast("str", row["tags"])))
