"""Finds the issues that a report may repeat. The indexes and the names propose, the rows decide."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log1p
from typing import Final

from loom.planes import candidates
from loom.planes.tracker import likeness, store
from loom.planes.tracker.likeness import Facts, Rarity, Report, Scores
from loom.planes.tracker.rules import FRAME, MENTION, PATH, Issue, names
from loom.planes.tracker.store import Filter
from loom.planes.tracker.traits import Traits
from loom.retrieval import tokens
from loom.retrieval.calibrate import nearness
from loom.storage.indexes import Scored, Shelf, Vector
from loom.storage.interface import Transaction

COLLECTION: Final = "tracker"
POOL: Final = 60
"""Issues that each index proposes."""

SCORED: Final = 200
"""Issues whose scores for the words are known; one further down counts as without any."""

SHARING_MAX: Final = 20
"""Issues that each kind of name proposes."""

COMPARED_MAX: Final = 24
"""Issues that are compared name by name and word by word."""

WORDS, TITLE_WORDS, MEANING = 0.5, 0.2, 0.3
"""What each list weighs for the choice of those: of 126 reports with a known duplicate, 0.8 have it among the first
five; words alone 0.72, meaning alone 0.72, and 0.4 or 0.6 for words as much as this."""

NAMED: Final = 1.5
"""What an issue gains that the report mentions by its number."""


@dataclass(frozen=True, slots=True)
class Quest:
    """What is looked for.

    Attributes:
        where: what may be found.
        title: a line.
        body: the rest.
        traits: what the report names.
        vector: its embedding; None when there is none.
        space: the vector's embedding space.
        random_cosine: the median cosine of unrelated texts in that space.
    """

    where: Filter
    title: str
    body: str
    traits: Traits
    vector: Vector | None
    space: str
    random_cosine: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate, how well it fits, and what the indexes say of it."""

    item_id: int
    score: float
    scores: Scores


@dataclass(frozen=True, slots=True)
class Candidate:
    """An issue that was compared."""

    issue: Issue
    facts: Facts
    probability: float


@dataclass(frozen=True, slots=True)
class Lists:
    """What each index proposes, best first. Of the words' lists the first few are proposals, the rest are scores."""

    words: Sequence[Scored]
    title_words: Sequence[Scored]
    meaning: Sequence[Scored]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates, best first, and whether none of them has a vector in the report's space."""

    order: Sequence[Ranked]
    meaning_lost: bool


def shelf(namespace: str) -> Shelf:
    """Where a namespace's issues are indexed."""
    return Shelf(COLLECTION, namespace)


def ranked(tx: Transaction, quest: Quest) -> Ranking:
    """Every candidate that may be shown; equal scores by item id."""
    mentions = quest.traits.mentions
    named = store.by_numbers(tx, quest.where, _numbers(mentions))
    keyed = store.by_numbers(tx, quest.where, _numbers([name.partition("-")[2] for name in mentions]))
    lists, seen = _proposed(tx, quest)
    ids = {*seen, *named, *keyed}
    if not ids:
        return Ranking((), meaning_lost=False)
    words, title_words = _relative(lists.words, ids), _relative(lists.title_words, ids)
    near = _near(tx, quest, ids)
    top = max(near.values(), default=0.0)
    order = [
        Ranked(
            item_id,
            WORDS * words.get(item_id, 0.0)
            + TITLE_WORDS * title_words.get(item_id, 0.0)
            + MEANING * (near.get(item_id, 0.0) / top if top > 0.0 else 0.0)
            + NAMED * (item_id in named),
            Scores(words.get(item_id, 0.0), title_words.get(item_id, 0.0), near.get(item_id)),
        )
        for item_id in ids
    ]
    order.sort(key=lambda one: (-one.score, one.item_id))
    return Ranking(order, quest.vector is not None and not near)


def duplicates(tx: Transaction, quest: Quest, report: Report) -> tuple[Sequence[Candidate], bool]:
    """The issues that the report may repeat, the likeliest first; and whether meaning was lost."""
    ranking = ranked(tx, quest)
    chosen = _chosen(tx, quest, ranking.order)
    issues = store.by_ids(tx, quest.where, [one.item_id for one in chosen])
    rarity = rarity_in(tx, quest)
    found: list[Candidate] = []
    for one in chosen:
        issue = issues.get(one.item_id)
        if issue is not None:
            facts = likeness.compared(report, report_of(issue), one.scores, rarity)
            found.append(Candidate(issue, facts, likeness.probability(facts)))
    found.sort(key=lambda one: (-one.probability, one.issue.item_id))
    return found, ranking.meaning_lost


def report_of(issue: Issue) -> Report:
    """A stored issue as it is compared."""
    content = issue.content
    return likeness.candidate_report(
        content.title,
        content.body,
        content.traits,
        (content.component, content.version),
        (content.number, content.url),
    )


def rarity_in(tx: Transaction, quest: Quest) -> Rarity:
    """How much each name of the report says, by how many issues of the namespace have it."""
    namespace = quest.where.namespace
    total = store.count(tx, Filter(namespace, quest.where.reader))
    by_kind: dict[str, list[str]] = {}
    for kind, name in names(quest.traits):
        by_kind.setdefault(kind, []).append(name)
    common = {kind: store.common(tx, namespace, kind, found) for kind, found in by_kind.items()}

    @cache
    def rarity(kind: str, name: str) -> float:
        return log1p((total + 1) / (1 + common.get(kind, {}).get(name, 0)))

    return rarity


def _chosen(tx: Transaction, quest: Quest, order: Sequence[Ranked]) -> Sequence[Ranked]:
    """Those to compare: the best, and of the others those that share a stack or a path, the best first."""
    best, others = order[:COMPARED_MAX], order[COMPARED_MAX:]
    sharing = {*_sharing(tx, quest, FRAME), *_sharing(tx, quest, PATH)} if others else set[int]()
    return [*best, *[one for one in others if one.item_id in sharing][:COMPARED_MAX]]


def _sharing(tx: Transaction, quest: Quest, kind: str) -> list[int]:
    wanted = [name for its, name in names(quest.traits) if its == kind]
    return store.sharing(tx, quest.where.namespace, kind, wanted, SHARING_MAX)


def _proposed(tx: Transaction, quest: Quest) -> tuple[Lists, set[int]]:
    """What the indexes propose, and of that and of what the names propose, what may be shown."""
    its = shelf(quest.where.namespace)
    whole, title = tokens.query(f"{quest.title}\n{quest.body}"), tokens.query(quest.title)
    probes = [
        candidates.by_words(tx, its, whole, SCORED, looked_at=POOL),
        candidates.by_words(tx, its, None if title == whole else title, SCORED, looked_at=POOL),
        candidates.by_meaning(tx, its, quest.space, quest.vector, POOL),
    ]
    found = candidates.proposed(
        probes, lambda ids: store.seen(tx, quest.where, sorted(ids)), lambda: store.visible(tx, quest.where)
    )
    words, title_words, meaning = found.lists
    named = {item_id for kind in (FRAME, PATH, MENTION) for item_id in _sharing(tx, quest, kind)} - found.seen
    seen = found.seen | store.seen(tx, quest.where, sorted(named))
    return Lists(words, words if title == whole else title_words, meaning), seen


def _relative(found: Sequence[Scored], ids: Collection[int]) -> Mapping[int, float]:
    """Each issue's BM25 score against the best one's that may be shown."""
    top = max((one.score for one in found if one.item_id in ids), default=0.0)
    return {one.item_id: one.score / top for one in found if one.item_id in ids} if top > 0.0 else {}


def _near(tx: Transaction, quest: Quest, ids: Collection[int]) -> Mapping[int, float]:
    """How near each issue with a vector is, 0 to 1."""
    if quest.vector is None:
        return {}
    cosines = tx.vectors.scores(shelf(quest.where.namespace), quest.space, quest.vector, sorted(ids))
    return {item_id: max(0.0, nearness(cosine, quest.random_cosine)) for item_id, cosine in cosines.items()}


def _numbers(mentions: Sequence[str]) -> list[int]:
    """The mentions that are numbers."""
    return [int(digits) for digits in mentions if digits.isascii() and digits.isdigit()]
