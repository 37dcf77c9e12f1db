"""Fits the weights and thresholds of `loom.planes.tracker.likeness` and prints them.

Bug reports with known duplicates (BEIR form: corpus.jsonl, queries.jsonl, qrels/test.tsv) are imported
through the operation itself. Each report that has a duplicate is asked about, and as many times four of
the others, which count as new; a report's own issue is left out. Folds of the cross-validation never part
reports that are linked. A pair whose titles have the same words and that nobody linked is no evidence
either way (clones for another branch are seldom linked), and left out of fit and measure.

Usage: python benchmarks/fit_tracker.py --data DIR   (DIR holds corpus.jsonl; about four minutes)
"""

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loom import compose
from loom.access.caller import LOCAL, ReadScope, Transport
from loom.compose import App
from loom.config import Settings
from loom.ledger.rules import Reader
from loom.planes.tracker import embeds, likeness, rules, search, store, traits
from loom.planes.tracker.likeness import Facts
from loom.planes.tracker.search import Quest
from loom.planes.tracker.store import Filter

Floats = NDArray[np.float64]
ORG, NAMESPACE = "tracker", "bugs"
QUERY_CHARACTERS = 600
BATCH = 500
JOBS_TOGETHER = 64
NEW_FOR_ONE = 4
FOLDS = 5
RIDGE = 1.0
STEPS = 50
TIMEOUT_S = 60.0
DUPLICATE_PRECISION = 0.75
"""Of the reports called duplicates. Wrong ones by the links are often right: two clones of one task, two spellings
of one title; of those that this bound let through, a person found most to be duplicates that nobody linked."""

RELATED_OTHERS = 0.2
"""Of the reports that have no duplicate, how many may be called related."""

FACTS = ("meaning", "words", "title_words", "same_words", "coverage", "siblings", "same_title", "clash")


@dataclass(frozen=True)
class Asked:
    """A report that is asked about, and the numbers of those it is linked with."""

    number: int
    title: str
    body: str
    gold: frozenset[int]


@dataclass(frozen=True)
class Rows:
    """Every compared pair: facts, what the names say, whether it is linked, the question's place and its fold."""

    facts: Floats
    names: Floats
    labels: Floats
    asked: NDArray[np.int64]
    folds: NDArray[np.int64]


def records(path: Path) -> Iterator[Mapping[str, str]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def questions(folder: Path) -> tuple[Sequence[Mapping[str, str]], Sequence[Asked]]:
    """The reports, and those to ask about: the linked ones, then some of the others."""
    corpus = list(records(folder / "corpus.jsonl"))
    gold: dict[int, set[int]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]:
        one, other, _ = line.split("\t")
        gold.setdefault(int(one), set()).add(int(other))
    asked: list[Asked] = []
    for record in records(folder / "queries.jsonl"):
        title, _, body = record["text"].partition("\n")
        asked.append(Asked(int(record["_id"]), title, body, frozenset(gold[int(record["_id"])])))
    linked = set(gold) | {number for numbers in gold.values() for number in numbers}
    others = [record for record in corpus if int(record["_id"]) not in linked]
    random.Random(1).shuffle(others)
    new = [
        Asked(int(one["_id"]), one["title"], one["text"][:QUERY_CHARACTERS], frozenset())
        for one in others[: NEW_FOR_ONE * len(asked)]
    ]
    return corpus, [*asked, *new]


def fold_of(asked: Sequence[Asked]) -> Mapping[int, int]:
    """A fold for each question; linked ones share theirs."""
    parent: dict[int, int] = {}

    def root(number: int) -> int:
        while parent.get(number, number) != number:
            number = parent[number]
        return number

    for one in asked:
        for other in one.gold:
            parent[root(other)] = root(one.number)
    roots = sorted({root(one.number) for one in asked})
    random.Random(2).shuffle(roots)
    place = {number: place % FOLDS for place, number in enumerate(roots)}
    return {one.number: place[root(one.number)] for one in asked}


def fill(app: App, corpus: Sequence[Mapping[str, str]]) -> None:
    """Import every report and make its vector."""
    items = [{"number": int(one["_id"]), "title": one["title"], "body": one["text"]} for one in corpus]
    for start in range(0, len(items), BATCH):
        answer = app.dispatcher.call(
            "tracker.import", LOCAL, Transport(), {"namespace": NAMESPACE, "items": items[start : start + BATCH]}
        )
        if answer["refused"]:
            raise SystemExit(f"an issue was refused: {answer['refused'][0]}")
    bench = compose.Bench(app.database, app.embedder, compose.clock_us)
    with app.database.transaction(ORG, write=False) as tx:
        ids = sorted(store.allowed(tx, Filter(NAMESPACE, Reader(ReadScope.NAMESPACE, "-", "-"))))
    for start in range(0, len(ids), JOBS_TOGETHER):
        embeds.embed_issues(bench, ORG, [str(one) for one in ids[start : start + JOBS_TOGETHER]])


def row_of(facts: Facts) -> list[float]:
    """The facts in the order of `FACTS`."""
    scores = facts.scores
    return [
        scores.meaning or 0.0,
        scores.words,
        scores.title_words,
        facts.same_words,
        facts.coverage,
        facts.siblings,
        facts.same_title,
        facts.clash,
    ]


def compared(app: App, one: Asked) -> list[tuple[int, Facts]]:
    """The facts about every candidate of a question, by its number."""
    text = rules.embeddable(one.title, one.body)
    embedder = app.embedder
    quest = Quest(
        where=Filter(NAMESPACE, Reader(ReadScope.NAMESPACE, "-", "-"), left_out=one.number),
        title=one.title,
        body=one.body,
        traits=traits.parsed(f"{one.title}\n{one.body}"),
        vector=embeds.vector_of(embedder, text, TIMEOUT_S),
        space=embedder.space.fingerprint,
        random_cosine=embedder.random_cosine,
    )
    report = likeness.report_of(one.title, one.body, quest.traits, ("", ""), frozenset({str(one.number)}))
    with app.database.transaction(ORG, write=False) as tx:
        found, _ = search.duplicates(tx, quest, report)
    return [(candidate.issue.content.number, candidate.facts) for candidate in found]


def gathered(app: App, asked: Sequence[Asked]) -> Rows:
    """Every pair that is evidence."""
    folds = fold_of(asked)
    facts: list[list[float]] = []
    names: list[float] = []
    labels: list[float] = []
    places: list[int] = []
    for place, one in enumerate(asked):
        for number, pair in compared(app, one):
            if pair.same_title and number not in one.gold:
                continue
            facts.append(row_of(pair))
            names.append(likeness.names_logit(pair))
            labels.append(float(number in one.gold))
            places.append(place)
    its_folds = np.array([folds[asked[place].number] for place in places])
    return Rows(np.array(facts), np.array(names), np.array(labels), np.array(places), its_folds)


def fitted(facts: Floats, offset: Floats, labels: Floats) -> Floats:
    """Bias and weights of a logistic regression with a fixed part and a ridge, by Newton's method."""
    columns = np.column_stack([np.ones(len(facts)), facts])
    ridge = np.array([0.0] + [RIDGE] * facts.shape[1])
    weights = np.zeros(columns.shape[1])
    for _ in range(STEPS):
        probability = 1.0 / (1.0 + np.exp(-columns @ weights - offset))
        gradient = columns.T @ (labels - probability) - ridge * weights
        curvature = (columns * (probability * (1.0 - probability))[:, None]).T @ columns
        weights += np.linalg.solve(curvature + np.diag(ridge) + 1e-6 * np.eye(len(weights)), gradient)
    return weights


def predicted(weights: Floats, facts: Floats, offset: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-np.column_stack([np.ones(len(facts)), facts]) @ weights - offset))


def best_of_each(probability: Floats, rows: Rows) -> tuple[Floats, Floats, Floats]:
    """Of each question: its best probability, whether that pair is linked, whether it has a linked pair at all."""
    best: list[float] = []
    right: list[float] = []
    answerable: list[float] = []
    for place in np.unique(rows.asked):
        inside = np.flatnonzero(rows.asked == place)
        first = inside[np.argmax(probability[inside])]
        best.append(probability[first])
        right.append(rows.labels[first])
        answerable.append(rows.labels[inside].max())
    return np.array(best), np.array(right), np.array(answerable)


def thresholds(best: Floats, right: Floats, answerable: Floats) -> tuple[float, float]:
    """From which probability a report is called a duplicate, and from which related."""
    order = np.argsort(-best)
    precision = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero(precision >= DUPLICATE_PRECISION)
    duplicate = float(best[order][good[-1]]) if len(good) else 1.0
    return duplicate, float(np.quantile(best[answerable == 0], 1.0 - RELATED_OTHERS))


def told(best: Floats, right: Floats, answerable: Floats, limits: tuple[float, float]) -> str:
    """What the thresholds do to questions."""
    duplicate, related = best >= limits[0], best >= limits[1]
    return (
        f"duplicate: {int(duplicate.sum())}, precision {right[duplicate].mean() if duplicate.any() else 0.0:.2f}, "
        f"{100 * duplicate[answerable > 0].mean():.0f}% of those with a duplicate, "
        f"{100 * duplicate[answerable == 0].mean():.1f}% of the others; at least related: "
        f"{100 * related[answerable > 0].mean():.0f}% and {100 * related[answerable == 0].mean():.0f}%"
    )


def report(name: str, rows: Rows, columns: Sequence[int]) -> None:
    """Quality on reports held out, then the constants fitted on everything."""
    facts = rows.facts[:, columns]
    held_out = np.empty(len(rows.labels))
    for fold in range(FOLDS):
        inside = rows.folds != fold
        weights = fitted(facts[inside], rows.names[inside], rows.labels[inside])
        held_out[~inside] = predicted(weights, facts[~inside], rows.names[~inside])
    best, right, answerable = best_of_each(held_out, rows)
    print(f"{name}: {len(rows.labels)} pairs, {int(rows.labels.sum())} linked")
    print(f"  first candidate is linked: {100 * right[answerable > 0].mean():.1f}%")
    fold_limits: list[tuple[float, float]] = []
    fold_of_question = np.array([rows.folds[rows.asked == place][0] for place in np.unique(rows.asked)])
    for fold in range(FOLDS):
        inside = fold_of_question != fold
        limits = thresholds(best[inside], right[inside], answerable[inside])
        fold_limits.append(limits)
        print(f"  fold {fold}: {told(best[~inside], right[~inside], answerable[~inside], limits)}")
    limits = thresholds(best, right, answerable)
    print(f"  all held out: {told(best, right, answerable, limits)}")
    weights = fitted(facts, rows.names, rows.labels)
    shown = ", ".join(f"{FACTS[column]} {weight:.2f}" for column, weight in zip(columns, weights[1:], strict=True))
    print(f"  weights: bias {weights[0]:.2f}, {shown}")
    print(f"  duplicate from {limits[0]:.3f}, related from {limits[1]:.3f}")


def measure(app: App, folder: Path) -> Rows:
    """Import, ask, gather."""
    corpus, asked = questions(folder)
    fill(app, corpus)
    return gathered(app, asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with corpus.jsonl, queries.jsonl and qrels/")
    folder: Path = parser.parse_args().data
    with tempfile.TemporaryDirectory() as home:
        app = compose.build(Settings(home=Path(home)))
        try:
            rows = measure(app, folder)
        finally:
            app.close()
    report("with meaning", rows, range(len(FACTS)))
    report("words only", rows, range(1, len(FACTS)))


if __name__ == "__main__":
    main()
