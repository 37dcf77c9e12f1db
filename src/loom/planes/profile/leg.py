"""The profile's part of search.query: sections that hold the query's words, then those near its meaning."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import cast

from loom.access.caller import ReadScope
from loom.canonical import Json
from loom.ledger import store
from loom.ledger.indexing import PROFILE_SHELF
from loom.ledger.rules import Item, sees
from loom.ops.spec import Context, Request
from loom.planes.leg import Leg, Question, Section
from loom.planes.profile import activity, rules
from loom.planes.profile.store import is_served, visible_ids
from loom.retrieval import tokens
from loom.retrieval.calibrate import nearness
from loom.storage.indexes import Shelf
from loom.storage.interface import Transaction

WORDS, MEANING = "words", "meaning"

CANDIDATES_MIN = 50
"""Hits taken from each index, before expired ones are left out; more when more are asked for."""

NEARNESS_MIN = -0.42
COSINE_MIN = 0.3
"""How near a section must be to match by meaning alone: against unrelated texts of its space, and in any space.

A short question is further from any section than two texts are from each other,
hence below 0. With the built-in model (0.56): of 16 questions about a profile
of 7 sections 13 reach the right one by meaning, 8 % of the wrong ones are
reached, and none by 11 questions about something else.
"""

EXCERPT_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Match:
    """A section that may match, how, and how well; scores of the two ways are not comparable."""

    item_id: int
    way: str
    score: float


def ask(tx: Transaction, question: Question) -> Section:
    """The best sections of the question's namespaces, at most `top_k`.

    Those that hold words of the query come before those that are near it. Of
    either kind, the namespace that was named comes first: scores of two
    namespaces are not comparable, and its profile is the one that was meant.
    """
    matches: dict[int, Match] = {}
    for way in (words, meaning):
        for names in (question.namespaces[:1], question.namespaces[1:]):
            found = [match for name in names for match in way(tx, question, name)]
            for match in sorted(found, key=lambda match: (-match.score, match.item_id)):
                matches.setdefault(match.item_id, match)
    items = store.by_ids(tx, list(matches))
    shown = [
        section_of(items[match.item_id], match, question.bodies)
        for match in matches.values()
        if match.item_id in items and is_shown(items[match.item_id], question)
    ][: question.top_k]
    return Section({"sections": cast("Json", shown)}, len(shown))


def words(tx: Transaction, question: Question, namespace: str) -> Iterator[Match]:
    """Sections of a namespace that hold words of the query."""
    found = tx.text.best(
        Shelf(PROFILE_SHELF, namespace),
        tokens.query(question.query),
        max(CANDIDATES_MIN, question.top_k),
        allowed(tx, question, namespace),
    )
    return (Match(hit.item_id, WORDS, hit.score) for hit in found)


def meaning(tx: Transaction, question: Question, namespace: str) -> Iterator[Match]:
    """Sections of a namespace whose vectors are nearer to the query's than unrelated ones are."""
    if question.vector is None:
        return iter(())
    found = tx.vectors.best(
        Shelf(PROFILE_SHELF, namespace),
        question.space,
        question.vector,
        max(CANDIDATES_MIN, question.top_k),
        allowed(tx, question, namespace),
    )
    return (Match(hit.item_id, MEANING, hit.score) for hit in found if is_near(hit.score, question.across_cosine))


def is_near(cosine: float, across_cosine: float) -> bool:
    """Whether a section answers a question of this cosine by its meaning."""
    return cosine >= COSINE_MIN and nearness(cosine, across_cosine) >= NEARNESS_MIN


def allowed(tx: Transaction, question: Question, namespace: str) -> Collection[int] | None:
    """The sections a narrow reader sees, so that others' do not take their places; None for all."""
    if question.reader.scope is ReadScope.NAMESPACE:
        return None
    return visible_ids(tx, namespace, question.reader, question.now_us)


def is_shown(item: Item, question: Question) -> bool:
    """The row's own word on whether the reader may see it; an index knows ids alone."""
    return (
        is_served(item, question.now_us) and item.place.namespace in question.namespaces and sees(question.reader, item)
    )


def section_of(item: Item, match: Match, bodies: str) -> dict[str, Json]:
    """A matching section as search.query shows it; without its text when `bodies` is none."""
    text = rules.text_of(item)
    shown: dict[str, Json] = {
        "label": item.memory_key,
        "agent": item.place.agent,
        "user_id": item.place.user_id,
        "namespace": item.place.namespace,
        "content_sha256": item.head.content_sha256,
        "version": item.head.version,
        "version_text": str(item.head.version),
        "match": match.way,
        "score": match.score,
    }
    if bodies == "none":
        return shown
    whole = bodies != "excerpt" or len(text) <= EXCERPT_CHARACTERS
    return shown | {"text": text if whole else text[:EXCERPT_CHARACTERS], "truncated": not whole}


def noticed(ctx: Context, request: Request) -> None:
    """Note that a search read the profile."""
    activity.note(ctx, request, "search.query")


LEG = Leg("profile", ask, noticed)
