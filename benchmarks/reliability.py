"""How far probabilities can be trusted: reliability, calibration error, and who is told from whom."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loom.retrieval.calibrate import FEW

Floats = NDArray[np.float64]
ANSWERED, DELETED, FOREIGN, ADVERSARIAL = "answered", "deleted", "foreign", "adversarial"
"""Whether the store holds an answer, has lost it, is of other things altogether, or never had one."""


@dataclass
class Table:
    """Hits as columns."""

    facts: Floats
    right: Floats
    weights: Floats
    kinds: NDArray[np.str_]
    parts: NDArray[np.str_]
    sizes: NDArray[np.int64]
    cases: NDArray[np.str_]
    questions: NDArray[np.int64]
    places: NDArray[np.int64]


def area(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """The area under the ROC curve; equal scores count half."""
    values, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    yes, no = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - yes * (yes + 1) / 2) / (yes * no)) if yes and no and len(values) else 0.5


def error(probability: Floats, right: Floats, weights: Floats) -> float:
    """The expected calibration error over ten bins."""
    bins = np.minimum((probability * 10).astype(int), 9)
    gaps = [abs(float((weights * (probability - right))[bins == one].sum())) for one in range(10)]
    return sum(gaps) / float(weights.sum())


def best_of_each(probability: Floats, questions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each question's best hit."""
    order = np.lexsort((-probability, questions))
    return order[np.r_[True, np.diff(questions[order]) > 0]]


def report(name: str, table: Table, probability: Floats, limits: Mapping[str, float]) -> None:
    """How far probabilities that were not fitted on this data can be trusted."""
    first = table.places == 0
    known = table.weights > 0
    print(f"\n{name}: {int(known.sum())} hits, {int(table.right.sum())} right")
    print(f"{'said':>10}{'hits':>9}{'right':>8}{'first':>9}{'right':>8}")
    for low in range(10):
        inside = np.minimum((probability * 10).astype(int), 9) == low
        columns = "".join(share_right(table, inside & among) for among in (known, known & first))
        print(f"{low / 10:>6.1f}-{(low + 1) / 10:.1f}{columns}")
    print(
        f"calibration error {error(probability, table.right, table.weights):.4f}, of first hits "
        f"{error(probability[first], table.right[first], table.weights[first]):.4f}"
    )
    best = best_of_each(probability, table.questions)
    print(f"{'kind':<12}{'size':>6}{'error':>8}{'first':>8}{'deleted':>9}{'foreign':>9}   doubted of each")
    for kind in np.unique(table.kinds):
        for size in np.unique(table.sizes):
            print(row(table, probability, best, (str(kind), int(size)), limits))


def share_right(table: Table, inside: NDArray[np.bool_]) -> str:
    """Two columns: how many hits, and the share of them, by weight, that is right."""
    if not inside.any():
        return f"{0:>9}{'':>8}"
    return f"{int(inside.sum()):>9}{np.average(table.right[inside], weights=table.weights[inside]):>8.3f}"


def row(
    table: Table, probability: Floats, best: NDArray[np.int64], which: tuple[str, int], limits: Mapping[str, float]
) -> str:
    """One line of the table: calibration errors, AUROC of answered questions against others, and who is doubted."""
    kind, size = which
    inside = (table.kinds == kind) & (table.sizes == size) & (table.weights > 0)
    first = inside & (table.places == 0)
    errors = [error(probability[rows], table.right[rows], table.weights[rows]) for rows in (inside, first)]
    of_best = best[(table.kinds[best] == kind) & (table.sizes[best] == size)]
    case, said = table.cases[of_best], probability[of_best]
    areas = [apart(said, case, other) for other in (DELETED, FOREIGN)]
    share = min(1.0, FEW / size) if size else 0.0
    doubted_under = limits["abstain_under"] + (limits["abstain_under_few"] - limits["abstain_under"]) * share
    doubts = [doubted(said[case == one], doubted_under) for one in (ANSWERED, DELETED, FOREIGN)]
    line = f"{kind:<12}{size or 'all':>6}{errors[0]:>8.3f}{errors[1]:>8.3f}{areas[0]:>9.3f}{areas[1]:>9.3f}   "
    line += "  ".join(f"{doubt:.3f}" for doubt in doubts)
    if (case == ADVERSARIAL).any():
        line += f"   adversarial: AUROC {apart(said, case, ADVERSARIAL):.3f}"
    return line


def apart(said: Floats, case: NDArray[np.str_], other: str) -> float:
    """The AUROC of answered questions against those of another case."""
    both = (case == ANSWERED) | (case == other)
    return area(said[both], case[both] == ANSWERED)


def doubted(said: Floats, doubted_under: float) -> float:
    """The share of questions whose best hit is doubted."""
    return float((said < doubted_under).mean()) if len(said) else float("nan")
