"""Facts that earlier builds took apart: a fact is read once, however often its user's profile is built."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final

from loom.canonical import Json
from loom.planes.profile.structured import statements
from loom.planes.profile.structured.interface import Fact
from loom.planes.profile.structured.statements import Statement

CHARACTERS_MAX: Final = 1_000_000
"""Of the facts that are kept, about 20 MB with what was read out of them."""

FACT_CHARACTERS: Final = 200
"""What a fact counts beside its text."""

FACT_CHARACTERS_MAX: Final = 20_000
"""A fact with more text is read each time."""


@dataclass(frozen=True, slots=True)
class _Entry:
    fact: tuple[Json, ...]
    said: Sequence[Statement]
    characters: int


class Kept:
    """Statements of facts, the latest version of each memory only. Safe for threads.

    All that a statement is made of is compared before one is used again, so that no two stores, whose memories may
    have the same names, are ever mixed up.
    """

    def __init__(self, characters_max: int = CHARACTERS_MAX) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._characters = 0
        self._characters_max = characters_max
        self._lock = Lock()

    def statements(self, facts: Iterable[Fact]) -> list[Statement]:
        """As `statements.statements`."""
        return statements.in_order(statement for fact in facts for statement in self._of(fact))

    def _of(self, fact: Fact) -> Sequence[Statement]:
        # Of other values only what is read, however deep they are.
        text = fact.value if isinstance(fact.value, str) else repr(list(statements.leaves(fact.value)))
        told: tuple[Json, ...] = (
            fact.memory_key, type(fact.value).__name__, text, fact.version, fact.created_at, fact.valid_at, *fact.tags
        )  # fmt: skip
        with self._lock:
            entry = self._entries.get(fact.memory_id)
            if entry is not None and entry.fact == told:
                self._entries.move_to_end(fact.memory_id)
                return entry.said
        said = tuple(statements.of_fact(replace(fact, vector=None)))
        self._keep(fact.memory_id, _Entry(told, said, len(text) + FACT_CHARACTERS))
        return said

    def _keep(self, memory_id: str, entry: _Entry) -> None:
        with self._lock:
            before = self._entries.pop(memory_id, None)
            self._characters -= before.characters if before else 0
            if entry.characters > FACT_CHARACTERS_MAX:
                return
            self._entries[memory_id] = entry
            self._characters += entry.characters
            while self._characters > self._characters_max:
                self._characters -= self._entries.popitem(last=False)[1].characters
