"""Series of days, as the page's chart and its table read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

AGENTS_MAX = 5
"""Lines of a chart; further agents are summed up in one."""

OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over days.

    Attributes:
        days: ISO dates, each a day after the one before.
        lines: a name and a number for each day.
    """

    days: Sequence[str]
    lines: Mapping[str, Sequence[int]]

    @property
    def is_empty(self) -> bool:
        """Whether every number is 0."""
        return not any(any(line) for line in self.lines.values())

    @property
    def data(self) -> dict[str, Any]:
        """What the script draws: seconds since 1970, and a list for each line."""
        seconds = [int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) for day in self.days]
        return {"x": seconds, "lines": [{"name": name, "y": list(line)} for name, line in self.lines.items()]}

    @property
    def rows(self) -> list[tuple[str, list[int]]]:
        """The days on which something happened, the latest first, for those who read tables."""
        numbers = [[line[place] for line in self.lines.values()] for place in range(len(self.days))]
        return [(day, row) for day, row in zip(self.days, numbers, strict=True) if any(row)][::-1]


def writes(days: Sequence[Mapping[str, Any]]) -> Chart:
    """What `ops.overview` says of each day."""
    names = ("memories", "documents", "conversations")
    lines = {name: [int(day[name]) for day in days] for name in names}
    return Chart([str(day["day"]) for day in days], {name: line for name, line in lines.items() if any(line)})


def reads(entries: Sequence[Mapping[str, Any]], days_count: int) -> Chart:
    """What `profile.reads` says, a line for each of the busiest agents."""
    today = datetime.now(UTC).date()
    days = [(today - timedelta(days=back)).isoformat() for back in range(days_count - 1, -1, -1)]
    place = {day: number for number, day in enumerate(days)}
    totals: dict[str, int] = {}
    for entry in entries:
        totals[entry["agent"]] = totals.get(entry["agent"], 0) + entry["read_count"]
    shown = sorted(totals, key=lambda agent: -totals[agent])[:AGENTS_MAX]
    lines: dict[str, list[int]] = {agent: [0] * len(days) for agent in shown}
    for entry in entries:
        name = entry["agent"] if entry["agent"] in lines else OTHERS
        number = place.get(entry["day"][:10])
        if number is not None:
            lines.setdefault(name, [0] * len(days))[number] += entry["read_count"]
    return Chart(days, {("no name" if name == "-" else name): line for name, line in lines.items()})
