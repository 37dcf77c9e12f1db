"""Whether a built value is the right one, and counts of what came of each cell."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

NUMBER_TOLERANCE = 0.05
DIFFICULTIES = ("keyed", "typed", "language")


def same(one: object, other: object) -> bool:
    """Whether two values are the same: lists as sets, numbers nearly, text without case, objects part by part."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= NUMBER_TOLERANCE
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().casefold() == other.strip().casefold()
    if isinstance(one, list) and isinstance(other, list):
        return {str(item).casefold() for item in cast("list[object]", one)} == {
            str(item).casefold() for item in cast("list[object]", other)
        }
    if isinstance(one, dict) and isinstance(other, dict):
        mine, its = cast("dict[str, object]", one), cast("dict[str, object]", other)
        return mine.keys() == its.keys() and all(same(value, its[name]) for name, value in mine.items())
    return one == other


def agrees(built: object, gold: object) -> bool:
    """Whether every part of a built object is the gold one; for what is no object, whether it is the same."""
    if not (isinstance(built, dict) and isinstance(gold, dict)):
        return same(cast("object", built), gold)
    its = cast("dict[str, object]", gold)
    return all(same(value, its.get(name)) for name, value in cast("dict[str, object]", built).items())


@dataclass
class Tally:
    """Cells by what they are and what came of them: `right`, `wrong`, `missed`, `null`."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    without_evidence: int = 0
    whole_right: int = 0

    def add(self, group: str, kind: str, built: object, gold: object) -> str:
        """Count a cell under its difficulty and its type; what came of it."""
        if built is None:
            outcome = "null" if gold is None else "missed"
        else:
            outcome = "right" if gold is not None and agrees(built, gold) else "wrong"
            self.whole_right += gold is not None and same(built, gold)
        gone = "null cell" if gold is None else group
        self.counts[gone, outcome] += 1
        self.counts[f"type {kind}", outcome] += 1
        self.counts["all", outcome] += 1
        return outcome

    def precision(self, name: str = "all") -> float:
        """Right values of all that were given."""
        right, wrong = self.counts[name, "right"], self.counts[name, "wrong"]
        return right / (right + wrong) if right + wrong else 1.0

    def coverage(self, name: str) -> float:
        """Right values of all that gold has."""
        value = sum(self.counts[name, outcome] for outcome in ("right", "wrong", "missed"))
        return self.counts[name, "right"] / value if value else 1.0

    def told(self) -> str:
        """The table."""
        right, wrong = self.counts["all", "right"], self.counts["all", "wrong"]
        lines = [
            f"  precision {self.precision():.3f}: {right} of {right + wrong} values given "
            f"({self.whole_right} as whole objects); {self.without_evidence} right ones with other evidence"
        ]
        lines += [
            f"  {name:<10} coverage {self.coverage(name):.3f}: {_row(self.counts, name)}" for name in DIFFICULTIES
        ]
        lines.append(f"  null cells filled {self.counts['null cell', 'wrong']} of {_total(self.counts, 'null cell')}")
        for name in sorted({name for name, _ in self.counts if name.startswith("type ")}):
            lines.append(f"  {name:<14} {_row(self.counts, name)}, null {self.counts[name, 'null']}")
        return "\n".join(lines)


def _row(counts: Mapping[tuple[str, str], int], name: str) -> str:
    return ", ".join(f"{outcome} {counts.get((name, outcome), 0)}" for outcome in ("right", "wrong", "missed"))


def _total(counts: Mapping[tuple[str, str], int], name: str) -> int:
    return sum(count for (group, _), count in counts.items() if group == name)
