"""The product's ranking of a store in memory, whole or with parts of it left out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loom.retrieval import lending
from loom.retrieval.fuse import MEANING, WORDS, Fused, fuse
from loom.retrieval.recipes import RECIPES
from loom.retrieval.speakers import OTHERS_SHARE, asked_about
from loom.storage.indexes import Scored
from stores import Asked, Floats, Store

POOL = 100


@dataclass(frozen=True)
class Parts:
    """Which parts are on."""

    words: bool = True
    meaning: bool = True
    day: bool = True
    neighbours: bool = True
    replies: bool = True
    speakers: bool = True
    scores_fused: bool = True
    """Scores are fused; ranks, where this is off."""


ALL = Parts()


def order_of(
    store: Store,
    asked: Asked,
    places: Sequence[int],
    scores: tuple[Floats, Floats],
    parts: Parts = ALL,
) -> list[Fused]:
    """The candidates among the records at `places`, best first; an item's id is its place in the store.

    Args:
        store: all records; turns beside each other are neighbours where both are at `places`.
        asked: the question.
        places: the records that are there.
        scores: by words and by meaning, of these records in their order.
        parts: what is on.
    """
    words, cosines = scores
    near = set(np.argsort(-cosines, kind="stable")[:POOL].tolist()) if parts.meaning else set[int]()
    if parts.words:
        near |= {one for one in np.argsort(-words, kind="stable")[:POOL].tolist() if words[one] > 0.0}
    at = {place: one for one, place in enumerate(places)}
    pool = {places[one] for one in near}
    beside: list[lending.Beside] = []
    if parts.neighbours and store.is_talk:
        reach = [*lending.SHARES, *[-far for far in lending.SHARES]]
        beside = [(one, one + far, abs(far)) for one in sorted(pool) for far in reach if one + far in at]
        pool |= {other for _, other, _ in beside}
    legs: dict[str, Sequence[Scored]] = {}
    if parts.words:
        legs[WORDS] = [Scored(one, float(words[at[one]])) for one in sorted(pool)]
    if parts.meaning:
        legs[MEANING] = [Scored(one, float(cosines[at[one]])) for one in sorted(pool)]
    floors = {WORDS: 0.0, MEANING: store.random_cosine}
    if not parts.scores_fused:
        legs = {name: reciprocal(scored) for name, scored in legs.items()}
        floors = {WORDS: 0.0, MEANING: 0.0}
    order = fuse(legs, RECIPES["balanced"].weights, floors)
    if beside:
        order = lending.lent(order, beside)
    if parts.replies and not lending.asks_what_was_answered(asked.text):
        order = lending.lowered(order, store.replies & pool)
    if parts.speakers:
        order = lending.lowered(order, of_others(store, asked, pool), OTHERS_SHARE)
    return order


def of_others(store: Store, asked: Asked, pool: set[int]) -> set[int]:
    """The turns of others than the speaker whom the question names."""
    named = {place: store.speakers[place] for place in pool if store.speakers and store.speakers[place]}
    about = asked_about(asked.query, set(named.values()))
    return {place for place, name in named.items() if name != about} if about else set()


def reciprocal(scored: Sequence[Scored]) -> list[Scored]:
    """Ranks as scores: one over sixty and the place."""
    order = sorted(scored, key=lambda one: -one.score)
    return [Scored(one.item_id, 1.0 / (60.0 + place)) for place, one in enumerate(order, 1)]
