"""Numbered steps that bring a store's tables up to date, forward only.

An engine keeps a record of the steps each store has had, by stream: `engine`
for its own tables, `shared` for the tables of the domains. This module knows
the rules; an engine runs the SQL.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from loom.storage.interface import StoreError

ENGINE = "engine"
SHARED = "shared"

_FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step.

    Attributes:
        number: its place in the stream; never used again once released.
        name: what it does, in a few words; recorded beside the number.
        sql: statements without parameters, separated by semicolons.
    """

    number: int
    name: str
    sql: str


def ordered(migrations: Iterable[Migration]) -> Sequence[Migration]:
    """The steps by rising number.

    Raises:
        ValueError: two steps share a number, or a number is below 1.
    """
    steps = sorted(migrations, key=lambda step: step.number)
    numbers = [step.number for step in steps]
    if len(set(numbers)) != len(numbers) or any(number < 1 for number in numbers):
        raise ValueError(f"migration numbers must be positive and differ: {numbers}")
    return tuple(steps)


def pending(stream: str, known: Sequence[Migration], recorded: Mapping[int, str], store: str) -> Sequence[Migration]:
    """The steps that a store still needs, in order.

    Args:
        stream: which sequence, for the message.
        known: the steps this program has, ordered.
        recorded: number and name of every step the store has had.
        store: how to call the store in a message.

    Raises:
        StoreError: the store has had a step that this program does not know.
    """
    names = {step.number: step.name for step in known}
    for number, name in sorted(recorded.items()):
        if number not in names:
            raise StoreError(
                f"{store} was written by a newer Loom: it has {stream} step {number}, which this version does not know."
                " Start a Loom at least as new as the one that wrote it."
            )
        if names[number] != name:
            raise StoreError(
                f"{store} was written by another build of Loom: its {stream} step {number} is {name!r}, here it is"
                f" {names[number]!r}. Start the build that wrote it."
            )
    return tuple(step for step in known if step.number not in recorded)


def from_package(package: str, folder: str = "schema") -> Sequence[Migration]:
    """The steps in a package's folder of `0001_name.sql` files.

    Raises:
        ValueError: a `.sql` file is named otherwise, or a number is used twice.
    """
    steps: list[Migration] = []
    for entry in files(package).joinpath(folder).iterdir():
        if not entry.name.endswith(".sql"):
            continue
        match = _FILE_NAME.fullmatch(entry.name)
        if match is None:
            raise ValueError(f"a migration file is named 0001_what_it_does.sql, not {entry.name}")
        steps.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return ordered(steps)
