"""How often the builder of structured profiles without a language model is right, and how much it settles.

Three tables: the users of the shared data with the constants as shipped (fitted on our own invented people only);
the same, with the constants fitted anew on the shared users of the other five schemas (a schema held out at a time,
what the threshold is worth on a schema nobody saw); and our own people of schemas that nothing was fitted on.

    python benchmarks/profiles.py [--data FOLDER] [--wrong] [--missed keyed]...
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

import fit_profiles
import invented
from fit_profiles import Rows
from invented import Person
from loom.canonical import Json
from loom.models.interface import Embedder
from loom.models.onnx import OnnxEmbedder
from loom.models.sources import NAMED, installed
from loom.planes.profile.structured import properties
from loom.planes.profile.structured.interface import Fact
from loom.planes.profile.structured.rules_builder import RulesBuilder
from loom.planes.profile.structured.scoring import Model
from loom.planes.profile.structured.statements import statements
from scores import Tally, same

BUILD_S = 600.0
OWN_PEOPLE = 40


@dataclass(frozen=True)
class Shown:
    """Which cells are printed."""

    wrong: bool
    missed: frozenset[str]


def shared(folder: Path) -> Iterator[Person]:
    """The users of the shared data."""
    data = json.loads((folder / "profiles" / "dev.json").read_text("utf-8"))
    for user in data["users"]:
        facts = [fact_of(memory) for memory in user["memories"] if memory["sensitivity"] == "normal"]
        yield Person(
            user["user_id"], user["schema"], data["schemas"][user["schema"]], facts, user["gold"], user["evidence"],
            user["difficulty"], user["null_reason"],
        )  # fmt: skip


def fact_of(memory: Mapping[str, Any]) -> Fact:
    """A memory as a builder is given it; its key names it."""
    return Fact(
        memory["memory_key"], memory["memory_key"], memory["value"], memory["memory_type"], memory["tags"],
        moment_us(memory["valid_at"]), moment_us(memory["created_at"]) or 0, 1,
    )  # fmt: skip


def moment_us(text: str | None) -> int | None:
    """Microseconds UTC of an ISO date or time."""
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000_000)


def judge(builder: RulesBuilder, people: Sequence[Person], tally: Tally, shown: Shown) -> None:
    """Build and count each person's cells."""
    for one in people:
        built = builder.build(one.schema, one.facts, BUILD_S)
        for part in properties.wanted(one.schema):
            name, gold = part.name, one.gold[part.name]
            mine = built.get(name)
            value = mine.value if mine else None
            outcome = tally.add(one.difficulty[name], part.kind.name.lower(), value, gold)
            if (
                outcome == "right"
                and mine
                and not {source.memory_id for source in mine.sources} & set(one.evidence[name])
            ):
                tally.without_evidence += 1
            if (outcome == "wrong" and shown.wrong) or (outcome == "missed" and one.difficulty[name] in shown.missed):
                texts = [source.text for source in mine.sources] if mine else [
                    fact.value for fact in one.facts if fact.memory_key in one.evidence.get(name, ())
                ]  # fmt: skip
                why = one.reasons.get(name, one.difficulty[name])
                print(f"    {outcome} {one.name} {name}: {value!r}, gold {gold!r} ({why}) {texts}")


def rows_of(builder: RulesBuilder, people: Sequence[Person], schemas: Sequence[str]) -> Rows:
    """The shared users as rows to fit on: right where value and evidence are gold's."""
    features: list[list[float]] = []
    labels: list[float] = []
    its: list[int] = []
    for one in people:
        said = statements(one.facts)
        if not said:
            continue
        board = builder.board(one.schema, said, monotonic() + BUILD_S)
        for row, part in enumerate(board.parts):
            if len(part.path) > 1:
                continue
            named = {place for place, _ in board.named(part)}
            for place, reading, found in board.rows(row, part):
                if place not in named:
                    features.append(found)
                    labels.append(float(right(one, part.name, said[place].fact.memory_key, reading.candidate.value)))
                    its.append(schemas.index(one.schema_name))
    return Rows(np.array(features), np.array(labels), np.array(its))


def right(one: Person, name: str, key: str, value: Json) -> bool:
    gold = one.gold[name]
    if key not in one.evidence.get(name, ()):
        return False
    return value in gold if isinstance(gold, list) else same(value, gold)


def left_out(embedder: Embedder, people: Sequence[Person], shown: Shown) -> Tally:
    """Each schema judged with constants that were fitted on the users of the other schemas and on our own people."""
    schemas = sorted({one.schema_name for one in people})
    builder = RulesBuilder(embedder)
    rows = rows_of(builder, people, schemas)
    own = fit_profiles.gathered(builder, invented.domains(invented.FIT))
    tally = Tally()
    for number, name in enumerate(schemas):
        inside = rows.schemas != number
        both = Rows(
            np.vstack([own.features, rows.features[inside]]),
            np.concatenate([own.labels, rows.labels[inside]]),
            np.concatenate([own.schemas, rows.schemas[inside] + 1000]),
        )
        weights = fit_profiles.fitted(both, np.ones(len(both.labels), dtype=bool))
        limit = fit_profiles.threshold(fit_profiles.held_out(both), both.labels)
        model = Model(float(weights[0]), tuple(map(float, weights[1:])), limit)
        judge(RulesBuilder(embedder, model=model), [one for one in people if one.schema_name == name], tally, shown)
    return tally


def told(title: str, tally: Tally) -> None:
    print(f"{title}\n{tally.told()}", flush=True)


def measure(embedder: Embedder, folder: Path | None, shown: Shown) -> float:
    """All tables; the precision on our own people that nothing was fitted on."""
    builder = RulesBuilder(embedder)
    if folder is not None:
        people = list(shared(folder))
        tally = Tally()
        judge(builder, people, tally, shown)
        told("shared users, constants as shipped:", tally)
        told("shared users, a schema held out of the fit at a time:", left_out(embedder, people, shown))
    tally = Tally()
    for domain in invented.domains(invented.KEPT_BACK):
        judge(builder, list(invented.people(domain, OWN_PEOPLE)), tally, shown)
    told("our own people of schemas that nothing was fitted on:", tally)
    return tally.precision()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder that holds profiles/dev.json; without it only our own people")
    parser.add_argument("--wrong", action="store_true", help="print the wrong cells")
    parser.add_argument("--missed", action="append", default=[], help="print the missed cells of this difficulty")
    parser.add_argument("--precision-min", type=float, default=0.0, help="fail under this precision on our own people")
    parser.add_argument("--embedder", default="builtin", choices=NAMED, help="the model that comes with an install")
    args = parser.parse_args()
    embedder = OnnxEmbedder(installed(NAMED[args.embedder]))
    try:
        precision = measure(embedder, args.data, Shown(args.wrong, frozenset(args.missed)))
    finally:
        embedder.close()
    if precision < args.precision_min:
        sys.exit(f"precision {precision:.3f} is under {args.precision_min}")


if __name__ == "__main__":
    main()
