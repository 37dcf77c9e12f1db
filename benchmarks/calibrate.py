"""Fits what `loom.retrieval.calibrate` knows, and prints how far its probabilities can be trusted.

Every question is asked of stores of several sizes, one record to all of its collection: with a
record that answers it, without any, and of records of other collections, where nothing is
even alike. Each kind of data and each size counts the same. Of a store of a hundred records or more four of five
questions are answerable, as in the data (a fifth of LoCoMo's and a tenth of BEAM's questions have no answer); of a
smaller one, which knows little yet, every other. The probabilities that are printed come
from a fit on other data: other parts of the collection (`by part`), or other kinds of data altogether (`by kind`).

    python benchmarks/calibrate.py --data FOLDER [--cache FOLDER] [--write FILE]

`--write` puts the weights into `src/loom/retrieval/calibration.toml`, with the hashes of the data they were fitted on.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loom.models.onnx import OnnxEmbedder
from loom.models.sources import installed
from loom.retrieval import calibrate
from loom.retrieval.calibrate import CANDIDATES_MAX, FEW, Evidence, Logistic, probability_of
from rankings import ALL, Parts, order_of
from reliability import ADVERSARIAL, ANSWERED, DELETED, FOREIGN, Table, best_of_each, report
from stores import DOCUMENTS, TALKS, Asked, Floats, Store, stores, words_scores

SIZES = (1, 3, 10, 100)
WHOLE = 0
"""The size of a store with everything."""

TOP = 10
QUESTIONS_MAX = 250
PARTS = 4
ANSWERABLE = 0.8
ANSWERABLE_OF_FEW = 0.5
MANY = 100
"""Of stores of fewer records half of the questions are answerable."""

HITS_SACRIFICED = 0.005
"""Of the right hits among many, how many are flagged, of the kind of data that loses most."""

ANSWERS_SACRIFICED = 0.02
"""Of the questions that are answered, whose best hit is doubted, over all kinds of data."""

PAIRS = 1_000
"""Questions and records of other data whose cosines are compared, of each two kinds."""

RIDGE = 1.0
STEPS = 12
SEED = 7
FACTS = (
    "nearness", "nearness_coverage", "nearness_many", "nearness_few", "coverage", "coverage_many", "coverage_few",
    "lead", "lead_many", "ahead_many", "ahead_of_fifth_many", "many", "few",
)  # fmt: skip
WITHOUT_MEANING = tuple(name for name in FACTS if not name.startswith(("nearness", "lead")))


@dataclass(frozen=True)
class Hit:
    """One hit of one question: what is known of it, and whether it answers."""

    kind: str
    part: str
    size: int
    case: str
    question: int
    place: int
    right: bool
    evidence: Evidence


def facts_of(one: Evidence) -> list[float]:
    """The facts that are weighed, in the order of `FACTS`."""
    count = max(1, min(CANDIDATES_MAX, one.candidates))
    near, covered, many, few = one.nearness or 0.0, one.coverage, log(count), 1.0 / count
    return [
        near, near * covered, near * many, near * few, covered, covered * many, covered * few,
        one.lead, one.lead * many, one.ahead * many, one.ahead_of_fifth * many, many, few,
    ]  # fmt: skip


def ask(
    store: Store, asked: Asked, chosen: Sequence[int], whole: tuple[Floats, Floats] | None, parts: Parts
) -> Iterator[tuple[int, Evidence]]:
    """The best hits of a question among the chosen records: place and evidence."""
    places = np.array(chosen)
    if whole is None:
        words = words_scores([store.indexed[place] for place in chosen], asked.query)
        cosines = store.cosines(asked.vector)[places]
    else:
        words, cosines = whole[0][places], whole[1][places]
    order = order_of(store, asked, [int(place) for place in chosen], (words, cosines), parts)
    among = calibrate.standing(order)
    for hit in order[:TOP]:
        stems = store.indexed[hit.item_id].keys()
        yield hit.item_id, calibrate.evidence(asked.query, stems, hit, among, store.question_cosine)


def cases(store: Store, asked: Asked, rng: np.random.Generator) -> Iterator[tuple[int, str, list[int]]]:
    """The stores that a question is asked of: their size, which case it is, and the places of their records."""
    everything = set(range(len(store.texts)))
    gold, rest = sorted(asked.gold), sorted(everything - asked.gold)
    for size in SIZES:
        if size > len(rest):
            continue
        with_gold = [int(rng.choice(gold)), *rng.choice(rest, size - 1, replace=False).tolist()]
        yield size, ADVERSARIAL if asked.is_adversarial else ANSWERED, sorted(with_gold)
        if not asked.is_adversarial:
            yield size, DELETED, sorted(rng.choice(rest, size, replace=False).tolist())
    yield WHOLE, ADVERSARIAL if asked.is_adversarial else ANSWERED, sorted(everything)
    if not asked.is_adversarial:
        yield WHOLE, DELETED, rest


def gathered(found: Sequence[Store], parts: Parts) -> Iterator[Hit]:
    """Every hit of every question in every case."""
    rng = np.random.default_rng(SEED)
    question = 0
    for number, store in enumerate(found):
        others = [other for other in found if other.kind.partition("/")[0] != store.kind.partition("/")[0]]
        chosen = rng.permutation(len(store.asked))[:QUESTIONS_MAX]
        for turn, asked in enumerate(store.asked[place] for place in sorted(chosen.tolist())):
            part = store.name if store.is_talk else f"{store.name} {turn % PARTS}"
            whole = (words_scores(store.indexed, asked.query), store.cosines(asked.vector))
            for size, case, places in cases(store, asked, rng):
                hits = ask(store, asked, places, whole if size == WHOLE else None, parts)
                question += 1
                for place, (record, evidence) in enumerate(hits):
                    right = case == ANSWERED and record in asked.gold
                    yield Hit(store.kind, part, size, case, question, place, right, evidence)
            other = others[(number + turn) % len(others)]
            for size in SIZES:
                question += 1
                places = rng.choice(len(other.texts), size, replace=False).tolist()
                for place, (_, evidence) in enumerate(ask(other, asked, places, None, parts)):
                    yield Hit(store.kind, part, size, FOREIGN, question, place, evidence=evidence, right=False)


def table_of(hits: Sequence[Hit]) -> Table:
    """The hits as columns, weighted so that every kind, size and case counts as it should."""
    table = Table(
        facts=np.array([facts_of(hit.evidence) for hit in hits]),
        right=np.array([float(hit.right) for hit in hits]),
        weights=np.zeros(len(hits)),
        kinds=np.array([hit.kind for hit in hits]),
        parts=np.array([hit.part for hit in hits]),
        sizes=np.array([hit.size for hit in hits]),
        cases=np.array([hit.case for hit in hits]),
        questions=np.array([hit.question for hit in hits]),
        places=np.array([hit.place for hit in hits]),
    )
    for kind in np.unique(table.kinds):
        for size in np.unique(table.sizes):
            answerable = ANSWERABLE if size in (MANY, WHOLE) else ANSWERABLE_OF_FEW
            wrong = 1.0 - answerable
            shares = {ANSWERED: answerable, DELETED: wrong if size == WHOLE else wrong / 2, FOREIGN: wrong / 2}
            for case, share in shares.items():
                inside = (table.kinds == kind) & (table.sizes == size) & (table.cases == case)
                asked = (inside & (table.places == 0)).sum()
                table.weights[inside] = share / max(1, asked)
    table.weights *= len(hits) / table.weights.sum()
    return table


def fitted(facts: Floats, right: Floats, weights: Floats) -> Floats:
    """Bias and weights of a logistic regression with a little ridge, by Newton's method."""
    columns = np.column_stack([np.ones(len(facts)), facts])
    found = np.zeros(columns.shape[1])
    ridge = RIDGE * np.eye(len(found))
    for _ in range(STEPS):
        probability = 1.0 / (1.0 + np.exp(-columns @ found))
        gradient = columns.T @ (weights * (right - probability)) - RIDGE * found
        curvature = (columns * (weights * probability * (1.0 - probability))[:, None]).T @ columns
        found += np.linalg.solve(curvature + ridge, gradient)
    return found


def predicted(found: Floats, facts: Floats) -> Floats:
    """The probabilities of such a regression."""
    return 1.0 / (1.0 + np.exp(-np.clip(np.column_stack([np.ones(len(facts)), facts]) @ found, -30.0, 30.0)))


def held_out(table: Table, facts: Floats, folds: NDArray[np.str_]) -> Floats:
    """Each hit's probability by a fit on the other folds."""
    probability = np.zeros(len(facts))
    for fold in np.unique(folds):
        inside = folds == fold
        probability[inside] = predicted(
            fitted(facts[~inside], table.right[~inside], table.weights[~inside]), facts[inside]
        )
    return probability


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file that was fitted on, by its path in the folder."""
    used = [path for name in (*TALKS, *DOCUMENTS) for path in sorted((folder / name).rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in used}


def written(path: Path, tables: Mapping[str, Mapping[str, float]], data: Mapping[str, str]) -> None:
    """Write the weights and the data's hash."""
    whole = hashlib.sha256("\n".join(f"{name} {value}" for name, value in sorted(data.items())).encode()).hexdigest()
    lines = ["# Made by benchmarks/calibrate.py; see loom.retrieval.calibrate for the names.", "", "[data]"]
    lines.append(f'files_sha256 = "{whole}"')
    for name, values in tables.items():
        lines += ["", f"[{name}]", *[f"{key} = {value:.5f}" for key, value in values.items()]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def under(values: Floats, weights: Floats, share: float) -> float:
    """The value that a share of them, by weight, is under."""
    order = np.argsort(values)
    return float(values[order][np.searchsorted(np.cumsum(weights[order]), share * weights.sum())])


def thresholds(table: Table, probability: Floats) -> dict[str, float]:
    """Under which probabilities hits are flagged and answers doubted, from probabilities of a fit on other data."""
    best = best_of_each(probability, table.questions)
    best = best[table.cases[best] == ANSWERED]
    few = (table.sizes[best] > 0) & (table.sizes[best] <= FEW)
    right = (table.right > 0) & ((table.sizes == MANY) | (table.sizes == WHOLE))
    return {
        "flagged_under": min(
            under(probability[inside], table.weights[inside], HITS_SACRIFICED)
            for kind in np.unique(table.kinds)
            for inside in [right & (table.kinds == kind)]
        ),
        "abstain_under": under(probability[best[~few]], table.weights[best[~few]], ANSWERS_SACRIFICED),
        "abstain_under_few": under(probability[best[few]], table.weights[best[few]], ANSWERS_SACRIFICED),
    }


def weights_of(table: Table, names: Sequence[str]) -> tuple[dict[str, float], Floats]:
    """The fitted weights, and the facts' columns that were used."""
    facts = table.facts[:, [FACTS.index(name) for name in names]]
    found = fitted(facts, table.right, table.weights)
    values = dict.fromkeys(FACTS, 0.0) | dict(zip(names, found[1:].tolist(), strict=True))
    return {"bias": float(found[0])} | values, facts


def check(hits: Sequence[Hit], values: Mapping[str, float]) -> None:
    """See that the product's probabilities are those of the weights, so that what is printed is what it says.

    Raises:
        SystemExit: they are not.
    """
    logistic = Logistic.model_validate(values)
    found = np.array([values[name] for name in ("bias", *FACTS)])
    by_weights = predicted(found, np.array([facts_of(hit.evidence) for hit in hits]))
    said = np.array([probability_of(hit.evidence, logistic) for hit in hits])
    if not np.allclose(by_weights, said):
        raise SystemExit("what the product makes of the weights is not what was fitted")


def question_cosine(found: Sequence[Store]) -> float:
    """The median cosine of questions and records of other kinds of data, each two kinds counted alike."""
    rng = np.random.default_rng(SEED)
    asked: dict[str, list[NDArray[np.float32]]] = {}
    held: dict[str, list[NDArray[np.float32]]] = {}
    for store in found:
        asked.setdefault(store.kind, []).extend(one.vector for one in store.asked)
        held.setdefault(store.kind, []).extend(store.vectors)
    pairs = [
        float(asked[one][rng.integers(len(asked[one]))] @ held[other][rng.integers(len(held[other]))])
        for one in asked
        for other in held
        if one != other
        for _ in range(PAIRS)
    ]
    return float(np.median(pairs))


def main() -> None:
    """Gather, cross-validate, print, and write when told to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds a folder for each data set")
    parser.add_argument("--cache", type=Path, help="folder for vectors, to be found there by the next run")
    parser.add_argument("--write", type=Path, help="file for the weights")
    given = parser.parse_args()
    embedder = OnnxEmbedder(installed())
    with tempfile.TemporaryDirectory() as folder:
        found = list(stores(given.data, embedder, given.cache or Path(folder)))
    embedder.close()
    print(f"question_cosine {question_cosine(found):.3f}")
    tables: dict[str, Mapping[str, float]] = {}
    for name, used, parts in (
        ("with_meaning", FACTS, ALL),
        ("words_only", WITHOUT_MEANING, Parts(meaning=False)),
    ):
        hits = list(gathered(found, parts))
        table = table_of(hits)
        weights, facts = weights_of(table, used)
        of_others = held_out(table, facts, table.kinds)
        limits = thresholds(table, of_others)
        report(f"{name}, by part", table, held_out(table, facts, table.parts), limits)
        report(f"{name}, by kind", table, of_others, limits)
        tables[name] = weights | limits
        check(hits, tables[name])
        print("\n".join(f"{key} = {value:.5f}" for key, value in tables[name].items()))
    if given.write:
        written(given.write, tables, hashes(given.data))


if __name__ == "__main__":
    main()
