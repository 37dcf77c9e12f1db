"""What each part of the ranking is worth: hit@5 and recall@10 with all of them, and with one at a time left out.

The parts are the product's own functions over stores in memory, see `stores.py`, so that one run
compares many rankings of the same vectors.

    python benchmarks/ablate.py --data FOLDER [--cache FOLDER]      (or quality.py --ablate)
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from statistics import fmean

from loom.models.onnx import OnnxEmbedder
from loom.models.sources import installed
from rankings import Parts, order_of
from stores import Store, stores, words_scores

TOP = 10


@dataclass(frozen=True)
class Reached:
    """What a ranking reached on one kind of data, in percent."""

    hit_5: float
    recall_10: float


def reached(found: Sequence[Store], parts: Parts) -> Reached:
    """The figures over every question that has an answer."""
    hits: list[bool] = []
    recalls: list[float] = []
    for store in found:
        counts = store.indexed if parts.day else store.counts
        for asked in store.asked:
            if asked.is_adversarial:
                continue
            scores = (words_scores(counts, asked.query), store.cosines(asked.vector))
            best = [one.item_id for one in order_of(store, asked, range(len(store.texts)), scores, parts)[:TOP]]
            hits.append(bool(asked.gold & set(best[:5])))
            recalls.append(len(asked.gold & set(best)) / len(asked.gold))
    return Reached(100 * fmean(hits), 100 * fmean(recalls))


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
