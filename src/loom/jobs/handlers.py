"""What a job handler is given, and the three shapes of work done outside a call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loom.canonical import Json
from loom.models.interface import Embedder
from loom.models.writer import Writer
from loom.storage.interface import Database


class NotDone(Exception):
    """Work was not done, for a reason that is known and needs no traceback. The message holds no stored text."""


class PutOff(Exception):
    """A job's turn has not come: what it needs is left alone for a while, since it failed several times in a row.

    Attributes:
        rest_s: for how long.
    """

    def __init__(self, rest_s: float) -> None:
        super().__init__(f"put off for {rest_s:.0f} s")
        self.rest_s = rest_s


@dataclass(frozen=True, slots=True)
class Bench:
    """What a handler works with. It opens transactions itself, and never holds one while a model runs.

    Attributes:
        database: opens the transactions.
        embedder: turns text into vectors.
        clock_us: now, in microseconds UTC.
        tombstone_days: how long a deleted memory can be restored.
        audit_days: how long the audit keeps its records.
        writer: the language model; None when none is configured.
    """

    database: Database
    embedder: Embedder
    clock_us: Callable[[], int]
    tombstone_days: int
    audit_days: int
    writer: Writer | None = None


Handler = Callable[[Bench, str, Sequence[str]], None]
"""Does one kind of job for an org and some subjects. An error puts all of them back for later; an `EmbedderFailed` or
a `PutOff` with a rest until then, as if they had not been taken."""

Sweep = Callable[[Bench, str], None]
"""Bounded upkeep of one org, run from time to time. Nothing may depend on it for correctness."""

LateHandler = Callable[[Bench, str, Sequence[Mapping[str, Json]]], None]
"""Takes what `Context.later` queued for an org, some at once."""
