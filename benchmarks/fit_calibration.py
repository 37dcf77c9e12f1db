"""Fits the calibration of `loom.retrieval.calibrate` on LoCoMo and prints its table.

Each turn is a record. A question's ten best records are labelled by the turns
that LoCoMo names as its evidence; the same question asked of the next dialogue has no right
record at all. Dialogues are the folds of the cross-validation.

Usage: python benchmarks/fit_calibration.py --data DIR   (DIR holds locomo*.json)
"""

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bm25s
import numpy as np
from numpy.typing import NDArray

from loom.models.interface import Embedder
from loom.models.onnx import OnnxEmbedder
from loom.models.sources import installed
from loom.retrieval.calibrate import coverage, nearness
from loom.retrieval.fuse import MEANING, WORDS, fuse
from loom.retrieval.recipes import RECIPES
from loom.retrieval.tokens import document, query
from loom.storage.indexes import Scored, TextQuery

Floats = NDArray[np.float64]
TIMEOUT_S = 3_600.0
TOP = 10
ADVERSARIAL = 5
HITS_SACRIFICED = 0.005
ANSWERS_SACRIFICED = 0.01
RIDGE = 1e-3
STEPS = 50
TURN_ID = re.compile(r"D\d+:\d+")


@dataclass(frozen=True)
class Question:
    """A question with the places of the records that answer it."""

    text: str
    asked: TextQuery
    gold: frozenset[int]


class Dialogue:
    """The records of one dialogue, searchable by words and by meaning."""

    def __init__(self, raw: dict[str, object], embedder: Embedder) -> None:
        sessions = raw["conversation"]
        assert isinstance(sessions, dict)  # noqa: S101 - a script's guard
        turns = [turn for value in sessions.values() if isinstance(value, list) for turn in value]
        self.texts = [f"{turn['speaker']}: {turn['text']} {turn.get('blip_caption', '')}".strip() for turn in turns]
        places = {turn["dia_id"]: place for place, turn in enumerate(turns)}
        tokens = [document(text) for text in self.texts]
        self.stems = [frozenset(one.stems) for one in tokens]
        self.index = bm25s.BM25(k1=1.2, b=0.75)
        self.index.index([list(one.stems) for one in tokens], show_progress=False)
        self.vectors = np.array(embedder.embed_passages(self.texts, TIMEOUT_S))
        self.questions: list[Question] = []
        asked = raw["qa"]
        assert isinstance(asked, list)  # noqa: S101 - a script's guard
        for one in asked:
            gold = frozenset(places[turn] for turn in TURN_ID.findall(" ".join(one["evidence"])) if turn in places)
            if gold and one["category"] != ADVERSARIAL:
                self.questions.append(Question(one["question"], query(one["question"]), gold))

    def facts(self, question: Question, vector: NDArray[np.float32], random_cosine: float) -> tuple[Floats, list[int]]:
        """One row for each of the ten best records: nearness and coverage; and the records' places."""
        known = [stem for stem in question.asked.stems if stem in self.index.vocab_dict]
        scores = self.index.get_scores(known) if known else np.zeros(len(self.texts))
        words = [Scored(place, float(score)) for place, score in enumerate(scores) if score > 0.0]
        cosines = self.vectors @ vector
        meaning = [Scored(place, float(cosine)) for place, cosine in enumerate(cosines)]
        floors = {WORDS: 0.0, MEANING: random_cosine}
        weights = RECIPES["balanced"].weights
        ranked = fuse({WORDS: words, MEANING: meaning}, weights, floors)[:TOP]
        rows = [
            [nearness(float(cosines[one.item_id]), random_cosine), coverage(question.asked, self.stems[one.item_id])]
            for one in ranked
        ]
        return np.array(rows), [one.item_id for one in ranked]


def fitted(facts: Floats, labels: Floats) -> Floats:
    """Bias and weights of a logistic regression with a little ridge, by Newton's method."""
    columns = np.column_stack([np.ones(len(facts)), facts])
    weights = np.zeros(columns.shape[1])
    for _ in range(STEPS):
        probability = 1.0 / (1.0 + np.exp(-columns @ weights))
        gradient = columns.T @ (labels - probability) - RIDGE * weights
        curvature = (columns * (probability * (1.0 - probability))[:, None]).T @ columns
        weights += np.linalg.solve(curvature + RIDGE * np.eye(len(weights)), gradient)
    return weights


def predicted(weights: Floats, facts: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-np.column_stack([np.ones(len(facts)), facts]) @ weights))


def area(scores: Floats, labels: Floats) -> float:
    """The area under the ROC curve: how often a right record scores above a wrong one."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    right = labels > 0
    return float((ranks[right].sum() - right.sum() * (right.sum() + 1) / 2) / (right.sum() * (~right).sum()))


def best_of_each(scores: Floats, groups: Floats) -> Floats:
    return np.array([scores[groups == group].max() for group in np.unique(groups)])


def limits(probability: Floats, labels: Floats, groups: Floats) -> tuple[float, float]:
    """Under which a hit is flagged, and under which an answer is doubted."""
    best, answerable = best_of_each(probability, groups), best_of_each(labels, groups) > 0
    return (
        float(np.quantile(probability[labels > 0], HITS_SACRIFICED)),
        float(np.quantile(best[answerable], ANSWERS_SACRIFICED)),
    )


def report(name: str, facts: Floats, labels: Floats, folds: Floats, groups: Floats) -> None:
    """Quality on dialogues held out, then the constants fitted on everything."""
    held_out = np.empty(len(labels))
    print(f"{name}: {len(labels)} hits, {int(labels.sum())} right")
    for fold in np.unique(folds):
        inside = folds != fold
        weights = fitted(facts[inside], labels[inside])
        flag, doubt = limits(predicted(weights, facts[inside]), labels[inside], groups[inside])
        held_out[~inside] = predicted(weights, facts[~inside])
        gold = labels[~inside] > 0
        best = best_of_each(held_out[~inside], groups[~inside])
        answerable = best_of_each(labels[~inside], groups[~inside]) > 0
        print(
            f"  dialogue {int(fold)}: flags {100 * (held_out[~inside][gold] < flag).mean():.1f}% of right hits, "
            f"{100 * (held_out[~inside][~gold] < flag).mean():.1f}% of wrong; doubts "
            f"{100 * (best[answerable] < doubt).mean():.1f}% of answerable questions, "
            f"{100 * (best[~answerable] < doubt).mean():.1f}% of the others"
        )
    answerable = best_of_each(labels, groups)
    questions_area = area(best_of_each(held_out, groups), answerable)
    print(f"  AUC of hits {area(held_out, labels):.3f}, of questions {questions_area:.3f}")
    for low in np.arange(0.0, 1.0, 0.1):
        inside = (held_out >= low) & (held_out < low + 0.1)
        if inside.sum():
            print(f"  said {low:.1f}..{low + 0.1:.1f}: right {labels[inside].mean():.2f} of {int(inside.sum())}")
    weights = fitted(facts, labels)
    flag, doubt = limits(predicted(weights, facts), labels, groups)
    print(f"  weights {', '.join(f'{value:.3f}' for value in weights)}; flag {flag:.4f}, doubt {doubt:.4f}")


def gathered(dialogues: Sequence[Dialogue], embedder: Embedder) -> tuple[Floats, Floats, Floats, Floats]:
    """Facts, labels, folds and question numbers of every hit."""
    facts: list[Floats] = []
    labels: list[float] = []
    folds: list[int] = []
    groups: list[int] = []
    for number, dialogue in enumerate(dialogues):
        other = dialogues[(number + 1) % len(dialogues)]
        for question in dialogue.questions:
            vector = embedder.embed_query(question.text, TIMEOUT_S)
            for asked_of, gold in ((dialogue, question.gold), (other, frozenset[int]())):
                rows, places = asked_of.facts(question, vector, embedder.random_cosine)
                group = groups[-1] + 1 if groups else 0
                facts.append(rows)
                labels.extend(float(place in gold) for place in places)
                folds.extend([number] * len(places))
                groups.extend([group] * len(places))
    return np.concatenate(facts), np.array(labels), np.array(folds, dtype=float), np.array(groups, dtype=float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with locomo*.json")
    folder: Path = parser.parse_args().data
    embedder = OnnxEmbedder(installed())
    raw = [one for path in sorted(folder.glob("locomo*.json")) for one in json.loads(path.read_text(encoding="utf-8"))]
    dialogues = [Dialogue(one, embedder) for one in raw]
    facts, labels, folds, groups = gathered(dialogues, embedder)
    report("with meaning", np.column_stack([facts, facts.prod(axis=1)]), labels, folds, groups)
    report("words only", facts[:, 1:], labels, folds, groups)
    embedder.close()


if __name__ == "__main__":
    main()
