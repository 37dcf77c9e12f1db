"""Fits the weights of `loom.planes.profile.structured.scoring` on invented people and writes `fitted.py`.

Every value that a near statement could give a property is a row: right if the statement was written to settle
that property and the value is the one it gives. A ridge keeps the weights small. The threshold is the lowest at
which the values taken are right in `PRECISION` of the rows held out, a whole schema at a time.

Usage: python benchmarks/fit_profiles.py [--dry]
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import numpy as np
from numpy.typing import NDArray

import invented
from invented import Domain, Person
from loom.models.interface import Embedder
from loom.models.onnx import OnnxEmbedder
from loom.models.sources import installed
from loom.planes.profile.structured.rules_builder import RulesBuilder
from loom.planes.profile.structured.scoring import FEATURES, Model
from loom.planes.profile.structured.statements import statements
from scores import same

Floats = NDArray[np.float64]
PEOPLE = 60
RIDGE = 0.5
STEPS = 60
ALIKE_MAX = 3
"""Rows of one statement for one property and value, in different company."""

PRECISION = 0.975
"""Of the rows taken. The rules around them see to most of what is left."""

BUILD_S = 600.0
NOT_NEGATIVE = FEATURES[:8] + FEATURES[9:14]
FITTED = Path(__file__).parents[1] / "src" / "loom" / "planes" / "profile" / "structured" / "fitted.py"


@dataclass(frozen=True)
class Rows:
    """Features, whether each is right, and the schema it is of."""

    features: Floats
    labels: Floats
    schemas: NDArray[np.int64]


def rows_of(builder: RulesBuilder, people: Sequence[Person]) -> tuple[list[list[float]], list[float]]:
    """The rows of some people."""
    features: list[list[float]] = []
    labels: list[float] = []
    seen = Counter[tuple[str, str, str, str]]()
    for one in people:
        said = statements(one.facts)
        if not said:
            continue
        board = builder.board(one.schema, said, monotonic() + BUILD_S)
        for row, part in enumerate(board.parts):
            named = {place for place, _ in board.named(part)}
            for place, reading, its in board.rows(row, part):
                text = said[place].text
                same_row = (one.schema_name, part.name, text, str(reading.candidate.value))
                seen[same_row] += 1
                if place in named or seen[same_row] > ALIKE_MAX:
                    continue
                features.append(its)
                labels.append(float(right(one, part.name, reading.candidate.value, text)))
    return features, labels


def right(one: Person, name: str, value: object, text: str) -> bool:
    """Whether a statement gives a property this value."""
    given = SAYS[one.schema_name].get((name, text))
    return given is not None and (value in given if isinstance(given, list) else same(value, given))


SAYS: dict[str, Mapping[tuple[str, str], object]] = {}


def gathered(builder: RulesBuilder, domains: Sequence[Domain]) -> Rows:
    """The rows of all people of all domains."""
    features: list[list[float]] = []
    labels: list[float] = []
    schemas: list[int] = []
    for number, domain in enumerate(domains):
        SAYS[domain.name] = {(one.name, text): value for one in domain.properties for text, value in one.says}
        its, are = rows_of(builder, list(invented.people(domain, PEOPLE)))
        features += its
        labels += are
        schemas += [number] * len(are)
    return Rows(np.array(features), np.array(labels), np.array(schemas))


def fitted(rows: Rows, inside: NDArray[np.bool_]) -> Floats:
    """Bias and weights by Newton's method. A weight that is negative and ought not be is left out of another fit."""
    features, labels = rows.features[inside], rows.labels[inside]
    kept = list(range(features.shape[1]))
    while True:
        columns = np.column_stack([np.ones(len(features)), features[:, kept]])
        ridge = np.array([0.0] + [RIDGE] * len(kept))
        weights = np.zeros(columns.shape[1])
        for _ in range(STEPS):
            probability = 1.0 / (1.0 + np.exp(-np.clip(columns @ weights, -30, 30)))
            gradient = columns.T @ (labels - probability) - ridge * weights
            curvature = (columns * (probability * (1.0 - probability))[:, None]).T @ columns
            weights += np.linalg.solve(curvature + np.diag(ridge) + 1e-6 * np.eye(len(weights)), gradient)
        bad = [
            kept[place]
            for place, weight in enumerate(weights[1:])
            if weight < 0 and FEATURES[kept[place]] in NOT_NEGATIVE
        ]
        if not bad:
            break
        kept = [column for column in kept if column not in bad]
    whole = np.zeros(features.shape[1] + 1)
    whole[0] = weights[0]
    whole[np.array(kept) + 1] = weights[1:]
    return whole


def predicted(weights: Floats, features: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-np.clip(weights[0] + features @ weights[1:], -30, 30)))


def threshold(probability: Floats, labels: Floats) -> float:
    """The lowest probability from which the rows taken are right often enough."""
    order = np.argsort(-probability, kind="stable")
    precision = np.cumsum(labels[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero(precision >= PRECISION)
    return float(probability[order][good[-1]]) if len(good) else 1.0


def held_out(rows: Rows) -> Floats:
    """Each row's probability by weights that were fitted without its schema."""
    probability = np.zeros(len(rows.labels))
    for schema in np.unique(rows.schemas):
        outside = rows.schemas == schema
        probability[outside] = predicted(fitted(rows, ~outside), rows.features[outside])
    return probability


def model_of(embedder: Embedder, domains: Sequence[Domain]) -> Model:
    """The model fitted on some domains."""
    rows = gathered(RulesBuilder(embedder), domains)
    probability = held_out(rows)
    limit = threshold(probability, rows.labels)
    taken = probability >= limit
    print(
        f"{len(rows.labels)} rows, {int(rows.labels.sum())} right; held out by schema: from {limit:.3f} "
        f"{int(taken.sum())} are taken, {100 * rows.labels[taken].mean():.1f}% of them right, "
        f"{100 * rows.labels[taken].sum() / rows.labels.sum():.1f}% of the right ones"
    )
    weights = fitted(rows, np.ones(len(rows.labels), dtype=bool))
    return Model(round(float(weights[0]), 2), tuple(round(float(one), 2) for one in weights[1:]), round(limit, 3))


def source_of(model: Model) -> str:
    """The module that holds the model."""
    weights = "".join(f"        {weight},  # {name}\n" for name, weight in zip(FEATURES, model.weights, strict=True))
    return (
        '"""Constants of `scoring`, written by `benchmarks/fit_profiles.py`."""\n\n'
        "from typing import Final\n\nfrom loom.planes.profile.structured.scoring import Model\n\n"
        f'FITTED_ON_SHA256: Final = "{invented.sha256_of(invented.FIT)}"\n'
        '"""Of the statements that the constants were fitted on."""\n\n'
        f"MODEL: Final = Model(\n    bias={model.bias},\n    weights=(\n{weights}    ),\n"
        f"    taken_from={model.taken_from},\n)\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry", action="store_true", help="print the constants, and write nothing")
    dry: bool = parser.parse_args().dry
    embedder = OnnxEmbedder(installed())
    try:
        text = source_of(model_of(embedder, invented.domains(invented.FIT)))
    finally:
        embedder.close()
    print(text)
    if not dry:
        FITTED.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
