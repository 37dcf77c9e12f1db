"""Ranks turns: by their words, by their meaning, and by what the turns beside them say.

What is beside a turn lends it a share of its score, see `loom.retrieval.lending`. This is done when
a question is asked and not in the index: a turn that is appended or deleted changes
the rank of its neighbours at once, and its words stand nowhere but in its own entry.

Measured on LoCoMo (four dialogues, 582 questions, every turn ranked), hit@5 and hit@10: plain
BM25 58.4, 69.1; words and meaning fused 67.4, 74.7; with the day in the word index 68.2, 76.6;
with neighbours 73.4, 82.3; with the turns of those who are not asked about lowered, see
`loom.retrieval.speakers`, 78.0, 85.9. The shares were the best or next to it on either half of the dialogues.
On BEAM (eight chats with an assistant, 144 questions), which had no part in choosing them:
BM25 54.2, 65.3; without neighbours 63.9, 72.2; with them 68.1, 77.1. Adding neighbours' scores up,
instead of taking the best, was worse on LoCoMo (79.0 at best), and so was embedding a turn
together with the one before (77.8).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from loom.ledger import conditions
from loom.ledger.rules import Reader
from loom.planes import candidates
from loom.planes.candidates import Probe
from loom.planes.conversation import indexing, store
from loom.retrieval import tokens
from loom.retrieval.fuse import MEANING, WORDS, Fused, fuse
from loom.retrieval.lending import REACH, Beside, asks_what_was_answered, lent, lowered
from loom.retrieval.speakers import OTHERS_SHARE, ROLES, asked_about
from loom.storage.indexes import Scored, TextQuery, Vector
from loom.storage.interface import Param, Transaction

ASIDE: Final = "aside"

WEIGHTS: Final = {WORDS: 0.4, MEANING: 0.6, ASIDE: 0.1}
"""Words against meaning as everywhere; what only a tool call holds comes after nearly all that was said."""

POOL: Final = 100
"""Candidates that each leg brings from each namespace, where not more are asked for."""

POOL_A_HIT: Final = 4
POOL_MAX: Final = 400
WORDS_POOL_FACTOR: Final = 3
"""Words are asked for more, so that the scores of most neighbours are among them."""

LENDERS: Final = 40
"""Of each leg's best, how many turns' neighbours are looked at, where not more hits are asked for."""

ASIDES_MAX: Final = 50
EARLIEST_US: Final = -(1 << 62)
LATEST_US: Final = 1 << 62

_ASKED = """
    AND (:session = '' OR s.session_id = :session)
    AND (:any_role = 1 OR t.role IN (:roles))
    AND t.said_at >= :since AND t.said_at < :until
"""

_SPOTS = """
t.item_id, t.seq, s.session_key, s.last_at FROM conversation_turn t
JOIN conversation_session s ON s.org = t.org AND s.session_key = t.session_key
WHERE """

SEEN = "SELECT " + _SPOTS + "t.org = :org AND " + store.VISIBLE + _ASKED + " AND t.item_id IN (:ids)"

# Of one namespace, in the order of an index, so that no page sorts what is on the others.
VISIBLE_PAGE = (
    "SELECT "
    + _SPOTS
    + "t.org = :org AND s.org = :org AND s.namespace = :namespace AND "
    + conditions.reached("s")
    + _ASKED
    + """
    AND s.last_at >= :last_at
    AND (s.last_at > :last_at OR s.session_key > :key OR (s.session_key = :key AND t.seq > :seq))
ORDER BY s.last_at, s.session_key, t.seq LIMIT :most
"""
)


SPEAKERS = """
SELECT item_id, role, speaker FROM conversation_turn
WHERE org = :org AND item_id IN (:ids) AND (role = 'assistant' OR speaker <> '')
"""

BESIDE = """
SELECT t.item_id, n.item_id AS other, n.place - t.place AS distance FROM conversation_turn t
JOIN conversation_turn n ON n.org = t.org AND n.session_key = t.session_key AND n.spoken = 1
    AND n.place >= t.place - :reach AND n.place <= t.place + :reach
WHERE t.org = :org AND t.spoken = 1 AND t.item_id IN (:ids) AND n.item_id <> t.item_id
"""


@dataclass(frozen=True, slots=True)
class Filter:
    """What a search may find. Times are microseconds UTC.

    Attributes:
        namespaces: the ones to read.
        reader: how far the read reaches across users.
        session: only turns of conversations of this name; empty for all.
        roles: only turns of these roles; empty for all.
        since: only turns said then or later.
        until: only turns said before.
    """

    namespaces: tuple[str, ...]
    reader: Reader
    session: str = ""
    roles: tuple[str, ...] = ()
    since: int = EARLIEST_US
    until: int = LATEST_US

    @property
    def narrow(self) -> bool:
        """Whether most turns of a namespace are likely to be filtered out."""
        return bool(self.session)

    def params(self) -> Mapping[str, Param]:
        """The parameters of what is asked for, and of what the reader may see, but for the namespaces."""
        return {
            **conditions.reach_params(self.reader),
            "session": self.session,
            "any_role": int(not self.roles),
            "roles": list(self.roles) or [""],
            "since": self.since,
            "until": self.until,
        }


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
        top_k: how many hits are wanted.
    """

    where: Filter
    query: str
    vector: Vector | None
    space: str
    random_cosine: float
    question_cosine: float
    top_k: int

    @property
    def pool(self) -> int:
        """How many candidates each leg brings."""
        return min(POOL_MAX, max(POOL, POOL_A_HIT * self.top_k))


@dataclass(frozen=True, slots=True)
class Ranking:
    """Turns, best first, and whether their meaning could not be compared."""

    order: Sequence[Fused]
    query: TextQuery
    meaning_lost: bool


@dataclass
class Found:
    """What the namespaces bring: scores by leg, the turns that may be shown, and who stands beside whom."""

    words: list[Scored]
    meaning: list[Scored]
    asides: list[Scored]
    shown: set[int]
    beside: list[Beside]


def ranked(tx: Transaction, quest: Quest) -> Ranking:
    """The best turns of every namespace in one order; equal scores by the newer turn."""
    query = tokens.query(quest.query)
    found = Found([], [], [], set(), [])
    for namespace in quest.where.namespaces:
        its = replace(quest, where=replace(quest.where, namespaces=(namespace,)))
        _find(tx, its, query, found)
    meaning_lost = quest.vector is not None and bool(found.words) and not found.meaning
    legs: dict[str, Sequence[Scored]] = {WORDS: found.words, ASIDE: found.asides}
    if quest.vector is not None and not meaning_lost:
        legs[MEANING] = found.meaning
    floors = {WORDS: 0.0, ASIDE: 0.0, MEANING: quest.random_cosine}
    order = lent(fuse(legs, WEIGHTS, floors), found.beside)
    replies, names = _spoken_by(tx, found.shown)
    if not asks_what_was_answered(quest.query):
        order = lowered(order, replies)
    about = asked_about(query, set(names.values()))
    if about:
        order = lowered(order, {item_id for item_id, name in names.items() if name != about}, OTHERS_SHARE)
    return Ranking([one for one in order if one.item_id in found.shown], query, meaning_lost)


def _find(tx: Transaction, quest: Quest, query: TextQuery, found: Found) -> None:
    """Add what one namespace has."""
    proposals = candidates.proposed(
        _probes(tx, quest, query),
        lambda ids: _seen(tx, quest.where, ids),
        lambda: visible(tx, quest.where),
        narrow=quest.where.narrow,
    )
    said, meant, asides = proposals.lists
    seen = proposals.seen
    first = {one.item_id for one in (*said[: quest.pool], *meant, *asides)}
    beside = _beside(tx, _lenders(quest, (said, meant), seen))
    others = {other for _, other, _ in beside} - first
    found.shown |= seen | _seen(tx, quest.where, others)
    found.beside += beside
    known = seen | others
    found.words += [one for one in said if one.item_id in known]
    found.asides += [one for one in asides if one.item_id in known]
    if quest.vector is not None:
        found.meaning += [one for one in meant if one.item_id in known]
        lacking = sorted(known - {one.item_id for one in meant})
        shelf = indexing.said_shelf(quest.where.namespaces[0])
        scores = tx.vectors.scores(shelf, quest.space, quest.vector, lacking)
        found.meaning += [Scored(item_id, score) for item_id, score in sorted(scores.items())]
    # A neighbour that holds none of the words and has no vector yet is a candidate all the same.
    found.words += [Scored(item_id, 0.0) for item_id in sorted(others - {one.item_id for one in said})]


def _probes(tx: Transaction, quest: Quest, query: TextQuery) -> list[Probe]:
    """What is asked for words, for meaning, and for what went on beside what was said."""
    namespace = quest.where.namespaces[0]
    said, beside = indexing.said_shelf(namespace), indexing.aside_shelf(namespace)
    return [
        candidates.by_words(tx, said, query, WORDS_POOL_FACTOR * quest.pool, looked_at=quest.pool),
        candidates.by_meaning(tx, said, quest.space, quest.vector, quest.pool),
        candidates.by_words(tx, beside, query, ASIDES_MAX, may_starve=False),
    ]


def _lenders(quest: Quest, legs: Iterable[Sequence[Scored]], seen: Collection[int]) -> set[int]:
    """The best turns of each leg. What stands beside a worse one is lent too little to become a hit."""
    most = min(quest.pool, max(LENDERS, quest.top_k))
    return {one.item_id for leg in legs for one in [one for one in leg if one.item_id in seen][:most]}


def _seen(tx: Transaction, where: Filter, ids: Collection[int]) -> set[int]:
    rows = tx.rows(SEEN, ids=sorted(ids), namespaces=list(where.namespaces), **where.params()) if ids else ()
    return {cast("int", row["item_id"]) for row in rows}


def _spoken_by(tx: Transaction, ids: Collection[int]) -> tuple[set[int], Mapping[int, str]]:
    """The turns of an assistant, and who speaks in those whose speaker has a name."""
    rows = tx.rows(SPEAKERS, ids=sorted(ids)) if ids else ()
    replies = {cast("int", row["item_id"]) for row in rows if row["role"] == "assistant"}
    names = {cast("int", row["item_id"]): cast("str", row["speaker"]) for row in rows}
    return replies, {item_id: name for item_id, name in names.items() if name and name.casefold() not in ROLES}


def visible(tx: Transaction, where: Filter, page: int = candidates.PAGE_IDS) -> Iterator[Collection[int]]:
    """The turns of the only namespace that may be shown, in pages."""
    params = {"namespace": where.namespaces[0], **where.params()}

    def read(after: tuple[int, int, int], most: int) -> list[tuple[tuple[int, int, int], int | None]]:
        last_at, key, seq = after
        rows = tx.rows(VISIBLE_PAGE, last_at=last_at, key=key, seq=seq, most=most, **params)
        return [
            (
                (cast("int", row["last_at"]), cast("int", row["session_key"]), cast("int", row["seq"])),
                cast("int", row["item_id"]),
            )
            for row in rows
        ]

    return candidates.pages(read, (EARLIEST_US, 0, 0), page)


def _beside(tx: Transaction, ids: Collection[int]) -> list[Beside]:
    """Turns with something said near others: one, the other, how far apart."""
    rows = tx.rows(BESIDE, ids=sorted(ids), reach=REACH) if ids else ()
    return [(cast("int", row["item_id"]), cast("int", row["other"]), cast("int", row["distance"])) for row in rows]
