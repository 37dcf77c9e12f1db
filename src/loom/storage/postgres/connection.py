"""One PostgreSQL connection during one transaction, and how failures are told.

SQL errors and wrong parameters are programming errors and rise as psycopg
raises them. A lost race is `Raced`; what the server is at fault for is a
`StoreError` in words that may be shown.
"""

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString, cast

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, TupleRow, dict_row

from loom.storage.interface import Param, Raced, Row, StoreError

Connection = psycopg.Connection[TupleRow]

RACES = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)
"""Another transaction was first; the same work done again will see what it did."""

BUSY = "The database is busy: another write holds what this one needs. Nothing was kept; try again."

_TOLD: Sequence[tuple[tuple[type[psycopg.Error], ...], str]] = (
    ((errors.LockNotAvailable,), BUSY),
    (
        (errors.QueryCanceled,),
        "The database took too long over one statement and stopped it. Nothing was kept; try again.",
    ),
    (
        (errors.DiskFull, errors.OutOfMemory, errors.InsufficientResources, errors.IoError),
        "The database server is out of disk or memory. Nothing was kept; give it some, then try again.",
    ),
    (
        (errors.TooManyConnections,),
        "The database server accepts no more connections. Raise its max_connections or lower"
        " LOOM_DATABASE_CONNECTIONS_MAX.",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        "The database server only reads: it is a replica or in recovery."
        " Point LOOM_DATABASE_URL at the one that writes.",
    ),
    (
        (errors.IndexCorrupted, errors.DataCorrupted),
        "The database reports damaged data. Restore it from a backup.",
    ),
)

LOST = "The database cannot be reached or ended the connection. Nothing was kept; try again."
LOST_AT_COMMIT = "The database did not confirm this write; read it back before trying again."
FAULTS = (
    psycopg.OperationalError,
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
    errors.DataCorrupted,
    errors.IndexCorrupted,
)
"""What psycopg raises when the server, not the program, is at fault."""


def store_error(error: psycopg.Error) -> StoreError:
    """`error` in words that may be shown."""
    for kinds, told in _TOLD:
        if isinstance(error, kinds):
            return StoreError(told)
    return StoreError(LOST)


def literal(sql: str) -> LiteralString:
    """SQL that is our own text; psycopg's types ask for a literal."""
    return cast("LiteralString", sql)


_UNDO = "ROLLBACK; SELECT pg_advisory_unlock_all()"

SENT_MAX = 64
"""Statements that wait to share one way to the server."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A statement that goes with the next one, and who is given its one row; `insists`: or ends the transaction."""

    sql: str
    params: Mapping[str, object]
    take: Callable[[TupleRow], object] | None = None
    insists: bool = False


class Session:
    """A connection during one transaction.

    What is sent without an answer waits, and goes to the server with the next statement that has
    one: a writer holds its locks for as long as it goes back and forth.

    Args:
        connection: with the transaction begun.
        write: whether it may change anything.
    """

    joined = False
    """Whether others wrote in the transaction before: what is read in it may then never be committed."""

    def __init__(self, connection: Connection, *, write: bool) -> None:
        self._connection = connection
        self.write = write
        self._open = True
        self._waiting: list[_Waiting] = []

    def end(self) -> None:
        """Refuse all further use."""
        self._open = False

    def need_write(self, what: str) -> None:
        """Raise RuntimeError when this transaction only reads."""
        if not self.write:
            raise RuntimeError(f"{what} needs a write transaction")
        self._check_open()

    def rows(self, sql: str, params: Mapping[str, Param]) -> Sequence[Row]:
        """Every row of a statement, by column name."""
        self._check_open()
        try:
            cursor = self._connection.cursor(row_factory=dict_row)
            with self._together():
                cursor.execute(literal(sql), params)
            found: list[DictRow] = cursor.fetchall()
        except psycopg.Error as error:
            raise self._told(error) from error
        return found

    def cells(self, sql: str, params: Mapping[str, object], *, prepare: bool | None = None) -> list[TupleRow]:
        """Every row of a statement, as tuples; none of one that gives no rows."""
        self._check_open()
        try:
            cursor = self._connection.cursor(binary=True)
            with self._together():
                cursor.execute(literal(sql), params, prepare=prepare)
            # Asked for inside, the answer would be waited for twice.
            return cursor.fetchall()
        except psycopg.Error as error:
            raise self._told(error) from error

    def run(self, sql: str, params: Mapping[str, Param]) -> int:
        """Run a statement; the rows it changed."""
        self.need_write("a change")
        try:
            with self._together():
                cursor = self._connection.execute(literal(sql), params)
        except psycopg.Error as error:
            raise self._told(error) from error
        return cursor.rowcount

    def run_many(self, sql: str, params: Iterable[Mapping[str, object]]) -> None:
        """Run one statement for each set of parameters."""
        for one in params:
            self.send(sql, one)

    def send(self, sql: str, params: Mapping[str, object]) -> None:
        """Run a statement together with the next one that has an answer."""
        self.need_write("a change")
        self._wait(_Waiting(sql, params))

    def send_last(self, sql: str, params: Mapping[str, object]) -> None:
        """The same; a session that shares its commit runs it with that."""
        self.send(sql, params)

    def send_settled(self, about: Hashable, statements: Sequence[tuple[str, Mapping[str, object]]]) -> None:
        """Run statements that settle what is kept about one thing, which nothing later in the transaction reads.

        A session that shares its commit runs them with that, unless a later one settles the same anew.
        """
        del about
        for sql, params in statements:
            self.send(sql, params)

    def ask(self, sql: str, params: Mapping[str, object], take: Callable[[TupleRow], object]) -> None:
        """Run a query together with the next statement that has an answer; `take` is given its one row."""
        self._check_open()
        self._wait(_Waiting(sql, params, take))

    def insist(self, sql: str, params: Mapping[str, object], refusal: Raced) -> None:
        """Run a query of a truth like `ask`: the session ends where it does not hold, and `refusal` is raised.

        What goes to the server with it has run by then, to be undone: no error of the server's, which it would log,
        stops it. A commit is not among that.
        """

        def take(row: TupleRow) -> None:
            if not row[0]:
                self.end()
                raise refusal

        self._check_open()
        self._wait(_Waiting(sql, params, take, insists=True))

    def flush(self) -> None:
        """Run what waits."""
        if self._waiting:
            try:
                with self._together():
                    pass
            except psycopg.Error as error:
                raise self._told(error) from error

    def leave(self, mark: str) -> None:
        """Run what waits and the statement `mark`, and leave the transaction open for another session.

        Raises:
            StoreError: the transaction can be used no more, or a statement was refused.
            Raced: another transaction won.
        """
        self._check_open()
        self._settle()
        self.end()
        try:
            with self._together():
                self._connection.execute(literal(mark))
        except psycopg.Error as error:
            raise self._told(error) from error
        if self._connection.info.transaction_status != TransactionStatus.INTRANS:
            raise StoreError(LOST)

    def commit(self) -> None:
        """Run what waits, and commit.

        Raises:
            StoreError: nothing was kept, or, where it says so, that is not known.
            Raced: another transaction won.
        """
        self._check_open()
        self._settle()
        self.end()
        try:
            with self._together():
                self._connection.execute("COMMIT")
        except RACES as error:
            raise Raced("another transaction won") from error
        except psycopg.Error as error:
            if self._connection.info.transaction_status == TransactionStatus.INERROR:
                # One that waited was refused, so there was no commit.
                raise self._told(error) from error
            if isinstance(error, FAULTS):
                raise StoreError(LOST_AT_COMMIT if self.write else LOST) from error
            raise

    def settings(self, sql: str) -> None:
        """Run statements without parameters."""
        self._check_open()
        self.flush()
        try:
            self._connection.execute(literal(sql))
        except psycopg.Error as error:
            raise self._told(error) from error

    @contextmanager
    def _together(self) -> Generator[None, None, None]:
        """What waits and the statement in the block, in one go."""
        if not self._waiting:
            yield
            return
        waiting, self._waiting = self._waiting, []
        asked: list[tuple[psycopg.Cursor[TupleRow], Callable[[TupleRow], object]]] = []
        with self._connection.pipeline():
            for one in waiting:
                cursor = self._connection.execute(literal(one.sql), one.params)
                if one.take is not None:
                    asked.append((cursor, one.take))
            yield
        for cursor, take in asked:
            row = cursor.fetchone()
            if row is None:
                raise AssertionError("what was asked on the way gives one row")
            take(row)

    def _settle(self) -> None:
        """Run what waits where some of it insists: it is to be known before anything is kept."""
        if any(one.insists for one in self._waiting):
            self.flush()

    def _wait(self, one: _Waiting) -> None:
        self._waiting.append(one)
        if len(self._waiting) >= SENT_MAX:
            self.flush()

    def _check_open(self) -> None:
        if not self._open:
            raise RuntimeError("this transaction has ended")
        if self._connection.info.transaction_status == TransactionStatus.INERROR:
            # Everything is undone already; say so instead of a puzzling error for what follows.
            raise StoreError("The database refused an earlier statement of this transaction. Nothing was kept.")

    def _told(self, error: psycopg.Error) -> Exception:
        if isinstance(error, RACES):
            return Raced("another transaction won")
        if isinstance(error, errors.ReadOnlySqlTransaction) and not self.write:
            return RuntimeError("a change needs a write transaction")
        return store_error(error) if isinstance(error, FAULTS) else error


def undo(connection: Connection) -> None:
    """Roll back; a connection that cannot is closed, which does the same."""
    try:
        if not connection.closed:
            connection.execute(_UNDO)
    except psycopg.Error:
        connection.close()
