"""What the rest of Loom may ask of a database.

SQL is written once, beside the domain that needs it, in the dialect that SQLite
and PostgreSQL share: named `:params`, upserts with RETURNING, CTEs, window
functions. No `::` casts and no colons inside literals. Every table's keys
begin with `org` and every statement names it. Times are integer microseconds
UTC; JSON is text. `ORDER BY +id` sorts what other columns found: an engine that
knows nothing of a young table would walk all ids of the org, to be spared the
sorting. What engines do not share stands behind `indexes` and the
verbs `lock` and `stamp`. A parameter that is a list, a tuple or any other
sequence stands in `IN (:name)` alone; the engine binds it whole, however long it is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from loom.storage.indexes import TextIndex, VectorIndex

Value = str | int | float | bytes | None
VALUES = (str, int, float, bytes, type(None))
"""What a Value is; every other parameter is a list."""

Param = Value | Sequence[int] | Sequence[str]
Row = Mapping[str, Value]

SYSTEM_ORG = "\x01system"
"""The org of the server's own rows (tokens). No request can name it: it holds a control character."""


class StoreError(Exception):
    """The store cannot serve: full or failing disk, damaged file, newer schema. Nothing was kept.

    The message says what to do and is safe to show.
    """


class Raced(Exception):
    """Another transaction won; nothing was kept, and the same work may be run again."""


class Crowded(Raced):
    """Somebody else holds what is wanted, and those who share the transaction cannot wait for it.

    The same work is to be run again as a write that stands for itself.
    """


def only(rows: Sequence[Row]) -> Row | None:
    """The one row of a query's, or None.

    Raises:
        AssertionError: there are several.
    """
    if len(rows) > 1:
        raise AssertionError(f"one row was expected, {len(rows)} were found")
    return rows[0] if rows else None


class Transaction(Protocol):
    """An open transaction on one org's rows; it commits when the `with` block ends without error."""

    @property
    def org(self) -> str:
        """The org whose rows this transaction may touch."""
        ...

    @property
    def text(self) -> TextIndex:
        """The word index, changed and read inside this transaction."""
        ...

    @property
    def vectors(self) -> VectorIndex:
        """The vector index, changed and read inside this transaction."""
        ...

    def rows(self, sql: str, /, **params: Param) -> Sequence[Row]:
        """Every row of a query, fully read. `:org` is bound by the transaction itself."""
        ...

    def row(self, sql: str, /, **params: Param) -> Row | None:
        """The one row of a query, or None; more than one is a programming error (AssertionError)."""
        ...

    def run(self, sql: str, /, **params: Param) -> int:
        """Run a statement; the number of rows it changed."""
        ...

    def send(self, sql: str, /, **params: Param) -> None:
        """Run a statement whose number of changed rows nobody asks for.

        It may wait for the next statement that has an answer, or for the end, to share its way
        to the server; should it fail, the error rises there.
        """
        ...

    def send_last(self, sql: str, /, **params: Param) -> None:
        """Like `send`, for a row that many writers change and nothing later in the transaction reads.

        Where writers share a commit it goes with that commit, so that the row is not held from the turn of the
        first to that of the last; should it fail there, it fails for all of them.
        """
        ...

    def run_many(self, sql: str, params: Iterable[Mapping[str, Value]], /) -> None:
        """Run one statement for each set of parameters; no lists among them."""
        ...

    def claim(self, sql: str, /, **params: Param) -> Sequence[Row]:
        """The rows of a query on one table that no other transaction holds; until this one ends, they are held.

        Rows that another transaction is changing are left out, not waited for. For taking work off a list.
        """
        ...

    def lock(self, *key: str) -> None:
        """Until this transaction ends, no other transaction gets past the same `key`.

        Like `send` it may wait for the next statement that has an answer, which then sees what those
        left that held the key before.
        """
        ...

    def lock_own(self, *key: str) -> None:
        """Like `lock`, for what is not the turn's; by whoever holds nothing else yet but the turn of others.

        Where writers share a commit, who joins them waits for nobody: what they hold may be what the holder of the
        key waits for. Instead it, or the next statement that has an answer, raises Crowded. The transaction is of no
        use then; what went to the server together with it is undone.
        """
        ...

    def share(self, *key: str) -> None:
        """Until this transaction ends, no other transaction locks the same `key`; others may share it as well.

        It may wait for the next statement that has an answer, as `lock` may. Taken before other locks.
        """
        ...

    def stamp_soon(self) -> None:
        """Let the next stamp come with the next statement that has an answer: for a writer that holds its lock."""
        ...

    def stamp(self) -> int:
        """A number above every stamp given before in this org's store, about the clock in nanoseconds.

        Versions and item ids come from here: above 2^53, strictly increasing,
        also over several processes and when the clock stands still or goes back.
        """
        ...

    def outstrip(self, number: int) -> None:
        """Let no later stamp be at or below `number`, which came from another store."""
        ...

    def clock_ns(self) -> int:
        """Now, in nanoseconds, by the clock that stamps follow; nobody is asked for it."""
        ...


@dataclass(frozen=True, slots=True)
class Counted:
    """What a count was before, and how much was added.

    Attributes:
        past: the count of the period before.
        present: the count of the period itself, as it was.
        added: what was added to it.
    """

    past: int
    present: int
    added: int


class SharedCounts(Protocol):
    """Counts by name and period that every server of a store adds to. A crash may lose the last of them."""

    def add(self, name: str, period: int, amount: Callable[[int, int], int], unused: tuple[int, int]) -> Counted:
        """Add to a count what `amount` makes of the period's own count and the one of the period before.

        Args:
            name: of the count.
            period: which one; those before the last are forgotten.
            amount: asked with the past and the present count, while no other server changes them.
            unused: a period and how much to take back from it first.

        Raises:
            StoreError: the store cannot serve.
        """
        ...


class Database(Protocol):
    """An open store of every org."""

    def transaction(
        self, org: str, *, write: bool, may_lag: bool = False, turn: Sequence[str] = ()
    ) -> AbstractContextManager[Transaction]:
        """Begin a transaction on one org's rows.

        A write is durable when the block has ended. An error inside the block
        undoes this transaction alone. A read sees one consistent moment; with
        `may_lag` it may be one before the latest writes.

        Writes of one `turn` begin one after another, and may share a commit: it names the one thing that all of
        them lock, before anything else. Empty for a write that stands for itself. Locks are taken as ever.

        Raises:
            StoreError: the store cannot serve.
            Raced: a read that may lag did not come through; run again it does.
        """
        ...

    def look(self, org: str, sql: str, /, **params: Param) -> Row | None:
        """The one row of one query, or None: a read transaction of a single statement, in one way to the server.

        Raises:
            StoreError: the store cannot serve.
        """
        ...

    def orgs(self) -> Sequence[str]:
        """Every org that has a store, the system's left out."""
        ...

    def check(self) -> Sequence[str]:
        """What is wrong with the store, a sentence each; empty when it is sound."""
        ...

    def maintain(self) -> None:
        """Bounded upkeep, called from a timer: checkpoint, optimise."""
        ...

    def share_wakes(self, wake: Callable[[str], None]) -> Callable[[str], None]:
        """Call `wake` with an org soon after another process announces work for it.

        Returns:
            What to call with an org after a write that left work: it calls `wake` here
            and tells the other processes. A word may get lost; nothing may depend on it.
        """
        ...

    def shared_counts(self) -> SharedCounts | None:
        """Counts shared with the other servers of the store; None where one process alone serves it."""
        ...

    def close(self) -> None:
        """Finish and close; later calls raise StoreError."""
        ...
