"""Ranks the memories that a reader may see. The indexes propose, the rows decide, the legs are joined."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loom.ledger.indexing import MEMORY_SHELF
from loom.planes import candidates
from loom.planes.candidates import Probe
from loom.planes.memory import neighbours, select
from loom.planes.memory.select import Filter, Seen
from loom.retrieval import dates, reading, tokens
from loom.retrieval.dates import Interval
from loom.retrieval.fuse import MEANING, READING, TIME, WORDS, Fused, fuse
from loom.retrieval.lending import Beside, asks_what_was_answered, lent, lowered
from loom.retrieval.reading import NOTHING_READ, Reading
from loom.retrieval.recipes import Recipe
from loom.retrieval.speakers import OTHERS_SHARE, ROLES, asked_about
from loom.storage.indexes import Scored, Shelf, TextQuery, Vector
from loom.storage.interface import Transaction

POOL_A_HIT: Final = 4
"""Candidates that each leg brings for a hit that is asked for, where that is more than the recipe's own number."""

POOL_MAX: Final = 500
IN_TIME_MAX: Final = 100
"""Candidates that one time in the query brings, where time leads."""

LENDERS: Final = 40
"""Of each leg's best, how many memories' neighbours are looked at."""

QUOTES: Final = str.maketrans(dict.fromkeys('"\u201c\u201d\u201e', " "))


@dataclass(frozen=True, slots=True)
class Quest:
    """What is searched.

    Attributes:
        where: what may be found.
        query: the text, at most 10,000 characters.
        vector: the query's embedding; None when there is none.
        space: the vector's embedding space.
        random_cosine: the median cosine of unrelated texts in that space.
        question_cosine: the median cosine of a question and a text that has nothing to do with it.
        recipe: how to rank.
        pool: how many candidates each leg brings from each namespace; the same for every page of one search.
        read_again: what a cross-encoder says of the best candidates; see `rereading`.
    """

    where: Filter
    query: str
    vector: Vector | None
    space: str
    random_cosine: float
    question_cosine: float
    recipe: Recipe
    pool: int
    read_again: Reading = NOTHING_READ


@dataclass(frozen=True, slots=True)
class Ranking:
    """Every candidate that may be shown, best first.

    Attributes:
        order: their scores, best first.
        query: the question's tokens.
        meaning_lost: whether none of the candidates has a vector in the query's space.
    """

    order: Sequence[Fused]
    query: TextQuery
    meaning_lost: bool


@dataclass(frozen=True, slots=True)
class Lists:
    """What each index proposes, best first; `phrased` are ids of what holds a phrase of the query."""

    words: Sequence[Scored]
    meaning: Sequence[Scored]
    phrased: Sequence[int]

    def seen(self, items: Collection[int]) -> "Lists":
        """The part of it that may be shown."""
        return Lists(
            [one for one in self.words if one.item_id in items],
            [one for one in self.meaning if one.item_id in items],
            [one for one in self.phrased if one in items],
        )


def pool_of(recipe: Recipe, top_k: int) -> int:
    """How many candidates each leg brings for pages of `top_k` hits."""
    return min(POOL_MAX, max(recipe.candidates_max, POOL_A_HIT * top_k))


def ranked(tx: Transaction, quest: Quest) -> Ranking:
    """Every candidate of every namespace in one order; equal scores by item id."""
    recipe = quest.recipe
    query = tokens.query(quest.query, word_weight=recipe.word_weight, common_share=recipe.common_share)
    intervals = dates.intervals(quest.query, quest.where.now_us) if quest.recipe.weights.get(TIME) else []
    items: dict[int, Seen] = {}
    words: list[Scored] = []
    meaning: list[Scored] = []
    phrased: set[int] = set()
    beside: list[Beside] = []
    for namespace in quest.where.namespaces:
        its = replace(quest, where=replace(quest.where, namespaces=(namespace,)))
        rows, lists, pairs = _found_in(tx, its, query, intervals)
        items |= rows
        beside += pairs
        words += lists.words
        meaning += lists.meaning
        phrased |= set(lists.phrased)
    legs: dict[str, Sequence[Scored]] = {WORDS: words}
    meaning_lost = quest.vector is not None and bool(items) and not meaning
    if quest.vector is not None and not meaning_lost:
        legs[MEANING] = meaning
    if intervals:
        legs[TIME] = dates.time_scores(intervals, [(item_id, (one.at,)) for item_id, one in items.items()])
    said = quest.read_again
    if said.scores and not said.in_part:
        legs[READING] = [Scored(item_id, score) for item_id, score in said.scores.items() if item_id in items]
    floors = {WORDS: 0.0, MEANING: quest.random_cosine, TIME: 0.0}
    order = [one for one in fuse(legs, quest.recipe.weights, floors) if one.item_id in items]
    if said.in_part:
        order = reading.joined(order, said, quest.recipe.weights[READING])
    if beside:
        order = lent(order, beside)
    if quest.recipe.neighbours and not asks_what_was_answered(quest.query):
        order = lowered(order, {item_id for item_id, seen in items.items() if neighbours.is_said_by_machine(seen)})
    if quest.recipe.speakers:
        order = lowered(order, _of_others(query, items), OTHERS_SHARE)
    order.sort(key=lambda one: one.item_id not in phrased)
    return Ranking(order, query, meaning_lost)


def _of_others(query: TextQuery, items: Mapping[int, Seen]) -> set[int]:
    """The turns of others than the one speaker whom the question names."""
    talks = {item_id: seen for item_id, seen in items.items() if neighbours.in_a_talk(seen)}
    spoken = {item_id: neighbours.speaker_of(seen) for item_id, seen in talks.items()}
    named = {item_id: name for item_id, name in spoken.items() if name and name not in ROLES}
    about = asked_about(query, set(named.values()))
    return {item_id for item_id, name in named.items() if name != about} if about else set()


def _found_in(
    tx: Transaction, quest: Quest, query: TextQuery, intervals: Sequence[Interval]
) -> tuple[dict[int, Seen], Lists, list[Beside]]:
    """One namespace's candidates that may be shown, every leg's scores of them, and who stands beside whom."""
    found = candidates.proposed(
        _probes(tx, quest, query),
        lambda ids: _rows(tx, quest.where, ids),
        lambda: select.visible(tx, quest.where),
    )
    words, meaning, phrased = found.lists
    items = found.seen
    if intervals and _time_leads(quest.recipe):
        for one in intervals:
            ids = select.in_time(tx, quest.where, one.start_us, one.end_us, IN_TIME_MAX)
            items |= _rows(tx, quest.where, [item_id for item_id in ids if item_id not in items])
    lists = Lists(words, meaning, [one.item_id for one in phrased])
    beside: list[Beside] = []
    if quest.recipe.neighbours:
        more, beside = neighbours.beside(tx, quest.where, items, _lenders(lists, items))
        items |= more
    return items, _completed(tx, quest, query, lists, items), beside


def _lenders(lists: Lists, items: Collection[int]) -> set[int]:
    """The best of each leg. What stands beside a worse one is lent too little to become a hit."""
    seen = lists.seen(items)
    return {one.item_id for leg in (seen.words, seen.meaning) for one in leg[:LENDERS]}


def _probes(tx: Transaction, quest: Quest, query: TextQuery) -> list[Probe]:
    """What is asked for words, for meaning and for phrases."""
    shelf = _shelf(quest)
    phrases = _phrases_of(quest.query, query) if quest.recipe.phrases_first else None
    return [
        candidates.by_words(tx, shelf, query, quest.pool),
        candidates.by_meaning(tx, shelf, quest.space, quest.vector, quest.pool),
        candidates.by_words(tx, shelf, phrases, quest.pool),
    ]


def _completed(tx: Transaction, quest: Quest, query: TextQuery, lists: Lists, items: Collection[int]) -> Lists:
    """The lists with every leg's score of every candidate, where the leg knows it."""
    shelf = _shelf(quest)
    all_words = len(lists.words) < quest.pool  # then what is not in the list holds none of them
    lists = lists.seen(items)
    meaning = list(lists.meaning)
    if quest.vector is not None:
        others = sorted(set(items) - {one.item_id for one in meaning})
        found = tx.vectors.scores(shelf, quest.space, quest.vector, others)
        meaning += [Scored(item_id, score) for item_id, score in sorted(found.items())]
    words = list(lists.words)
    others = sorted(set(items) - {one.item_id for one in words})
    if others and not all_words:
        words += tx.text.best(shelf, query, len(others), others)
    return Lists(words, meaning, lists.phrased)


def _rows(tx: Transaction, where: Filter, ids: Iterable[int]) -> dict[int, Seen]:
    return dict(select.seen(tx, where, sorted(ids)))


def _phrases_of(text: str, query: TextQuery) -> TextQuery:
    """A query that only a phrase answers: the quoted parts, or the whole text when nothing is quoted."""
    phrases = query.phrases or tokens.phrases(f'"{text.translate(QUOTES)}"')
    return replace(query, phrases=phrases, required=True)


def _time_leads(recipe: Recipe) -> bool:
    return recipe.weights.get(TIME, 0.0) >= max(recipe.weights.get(WORDS, 0.0), recipe.weights.get(MEANING, 0.0))


def _shelf(quest: Quest) -> Shelf:
    return Shelf(MEMORY_SHELF, quest.where.namespaces[0])
