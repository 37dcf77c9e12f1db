"""What each part of the ranking is worth: hit@5 and recall@10 with all of them, and with one at a time left out.

The parts are the product's own functions over stores in memory, see `stores.py`, so that one run
compares many rankings of the same vectors.

    python benchmarks/ablate.py --data FOLDER [--cache FOLDER]      (or quality.py --ablate)
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from statistics import fmean

from loom.models.onnx import OnnxEmbedder
from loom.models.sources import installed
from loom.retrieval import lending
from loom.retrieval.fuse import MEANING, WORDS, fuse
from loom.retrieval.recipes import RECIPES
from loom.retrieval.tokens import document
from loom.storage.indexes import Scored
from stores import Asked, Floats, Store, stores, words_scores

TOP = 10
POOL = 100


@dataclass(frozen=True)
class Parts:
    """Which parts are on."""

    words: bool = True
    meaning: bool = True
    day: bool = True
    neighbours: bool = True
    replies: bool = True
    scores_fused: bool = True
    """Scores are fused; ranks, where this is off."""


@dataclass(frozen=True)
class Reached:
    """What a ranking reached on one kind of data, in percent."""

    hit_5: float
    recall_10: float


def ranked(store: Store, asked: Asked, scores: tuple[Floats, Floats], parts: Parts) -> list[int]:
    """The best ten places."""
    words, cosines = scores
    pool = set(cosines.argsort()[::-1][:POOL].tolist()) if parts.meaning else set[int]()
    if parts.words:
        pool |= {one for one in words.argsort()[::-1][:POOL].tolist() if words[one] > 0.0}
    beside: list[lending.Beside] = []
    if parts.neighbours and store.is_talk:
        reach = [*lending.SHARES, *[-far for far in lending.SHARES]]
        last = len(store.texts)
        beside = [(one, one + far, abs(far)) for one in sorted(pool) for far in reach if 0 <= one + far < last]
        pool |= {other for _, other, _ in beside}
    legs: dict[str, Sequence[Scored]] = {}
    if parts.words:
        legs[WORDS] = [Scored(one, float(words[one])) for one in sorted(pool)]
    if parts.meaning:
        legs[MEANING] = [Scored(one, float(cosines[one])) for one in sorted(pool)]
    floors = {WORDS: 0.0, MEANING: store.random_cosine}
    if not parts.scores_fused:
        legs = {name: reciprocal(scored) for name, scored in legs.items()}
        floors = {WORDS: 0.0, MEANING: 0.0}
    order = fuse(legs, RECIPES["balanced"].weights, floors)
    if beside:
        order = lending.lent(order, beside)
    if parts.replies and not lending.asks_what_was_answered(asked.text):
        order = lending.lowered(order, store.replies)
    return [one.item_id for one in order[:TOP]]


def reciprocal(scored: Sequence[Scored]) -> list[Scored]:
    """Ranks as scores: one over sixty and the place."""
    order = sorted(scored, key=lambda one: -one.score)
    return [Scored(one.item_id, 1.0 / (60.0 + place)) for place, one in enumerate(order, 1)]


def reached(found: Sequence[Store], parts: Parts) -> Reached:
    """The figures over every question that has an answer."""
    hits: list[bool] = []
    recalls: list[float] = []
    for store in found:
        counts = list(counts_of(store, with_day=parts.day))
        for asked in store.asked:
            if asked.is_adversarial:
                continue
            best = ranked(store, asked, (words_scores(counts, asked.query), store.cosines(asked.vector)), parts)
            hits.append(bool(asked.gold & set(best[:5])))
            recalls.append(len(asked.gold & set(best)) / len(asked.gold))
    return Reached(100 * fmean(hits), 100 * fmean(recalls))


def counts_of(store: Store, *, with_day: bool) -> Iterator[Counter[str]]:
    """How often each record holds each stem, its day among them or not."""
    if not with_day or not store.days:
        yield from store.counts
        return
    for count, day in zip(store.counts, store.days, strict=True):
        yield count + Counter(document(day).stems)


def table(data: Path, cache: Path | None) -> None:
    """Print the table."""
    embedder = OnnxEmbedder(installed())
    with tempfile.TemporaryDirectory() as folder:
        found = list(stores(data, embedder, cache or Path(folder)))
    embedder.close()
    kinds = {kind: list(group) for kind, group in groupby(found, key=lambda store: store.kind)}
    print(f"{'hit@5 / recall@10':<24}" + "".join(f"{kind:>16}" for kind in kinds))
    rankings = {"all": Parts(), **{f"without {one.name}": Parts(**{one.name: False}) for one in fields(Parts)}}
    for name, parts in rankings.items():
        figures = [reached(group, parts) for group in kinds.values()]
        print(f"{name:<24}" + "".join(f"{one.hit_5:>9.1f} /{one.recall_10:>5.1f}" for one in figures), flush=True)


def main() -> None:
    """Read the options, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds a folder for each data set")
    parser.add_argument("--cache", type=Path, help="folder for vectors, to be found there by the next run")
    given = parser.parse_args()
    table(given.data, given.cache)


if __name__ == "__main__":
    main()
