"""One SQLite connection: how it is opened, used and how its failures are told.

SQL errors, broken constraints and wrong parameters are programming errors and
rise as `apsw` raises them. Nothing is turned into `Raced`: a write transaction
owns the file from its first statement, so a broken constraint is never a race.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import apsw

from loom.storage.interface import Row, StoreError, Value
from loom.storage.sqlite.settings import SqliteSettings

Cells = tuple[Any, ...]
"""One row as SQLite gives it; the query that asked knows the types."""

Bound = Mapping[str, Value] | Sequence[Value] | None
"""Values for the parameters of a statement."""

FILE_MODE = 0o600
STATEMENTS_KEPT_MAX = 256
CACHE_KIBIBYTES = 4000
PAGE_BYTES = 4096
CHECKPOINT_PAGES = 1000
LOG_BYTES_KEPT_MAX = 16 * 1024 * 1024

FAILURES = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.FormatError,
    apsw.FullError,
    apsw.IOError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
    apsw.SchemaChangeError,
)
"""What SQLite says when the store, not the program, is at fault."""


_TOLD: Sequence[tuple[tuple[type[apsw.Error], ...], str]] = (
    (
        (apsw.BusyError, apsw.LockedError, apsw.ProtocolError, apsw.SchemaChangeError),
        "The store file {file} is busy in another process. Nothing was kept; try again.",
    ),
    (
        (apsw.FullError,),
        "The store file {file} cannot grow: the disk is full or the file is at its size bound."
        " Nothing was kept; free some space and try again.",
    ),
    (
        (apsw.CorruptError, apsw.NotADBError, apsw.FormatError),
        "The store file {file} is damaged or not a Loom store. Move it away and restore it from a backup.",
    ),
    (
        (apsw.ReadOnlyError, apsw.PermissionsError),
        "The store file {file} cannot be written."
        " Give the server's user the right to write to the file and its folder.",
    ),
    (
        (apsw.CantOpenError,),
        "The store file {file} cannot be opened. Check that its folder exists, has space and may be read and"
        " written by the server's user.",
    ),
    ((apsw.NoMemError,), "The store file {file} could not be used for want of memory. Nothing was kept."),
)


def store_error(error: apsw.Error, file_name: str) -> StoreError:
    """`error` in words that may be shown; names the file, never its folder or contents."""
    for kinds, told in _TOLD:
        if isinstance(error, kinds):
            return StoreError(told.format(file=file_name))
    return StoreError(
        f"The disk failed while the store file {file_name} was used. Nothing was kept; check the disk, then try again."
    )


def connect(path: Path | None, settings: SqliteSettings, *, write: bool, busy_timeout_s: float) -> apsw.Connection:
    """Open a file, or a private store in memory when `path` is None.

    A connection that only reads refuses every change once `freeze` was called.

    Raises:
        apsw.Error: one of FAILURES.
    """
    if write and path is not None:
        _make_private(path)
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX
    if write or path is None:
        flags |= apsw.SQLITE_OPEN_CREATE
    name = ":memory:" if path is None else str(path)
    connection = apsw.Connection(name, flags=flags, statementcachesize=STATEMENTS_KEPT_MAX)
    try:
        connection.set_busy_timeout(max(1, int(busy_timeout_s * 1000)))
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        for pragma in (
            f"cache_size = -{CACHE_KIBIBYTES}",
            "secure_delete = ON",
            "foreign_keys = OFF",
            "temp_store = MEMORY",
            "cell_size_check = ON",
            f"journal_size_limit = {LOG_BYTES_KEPT_MAX}",
            f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
        ):
            set_pragma(connection, pragma)
        set_pragma(connection, f"synchronous = {settings.synchronous}")
        if settings.file_bytes_max is not None:
            set_pragma(connection, f"max_page_count = {max(1, settings.file_bytes_max // PAGE_BYTES)}")
    except BaseException:
        connection.close()
        raise
    return connection


def _make_private(path: Path) -> None:
    """Make a file that is not there yet so that its owner alone can read it; SQLite gives its log the same rights.

    A file that is there is not touched: to open and close it here would end the locks of this process on it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, FILE_MODE))
    except OSError:
        return  # it is there, or SQLite is about to say why it cannot be


class _Cursor(Protocol):
    def __next__(self) -> Cells: ...
    def __iter__(self) -> Iterator[Cells]: ...
    def fetchall(self) -> list[Cells]: ...
    def get_description(self) -> Sequence[Sequence[str]]: ...


class _Executes(Protocol):
    def execute(self, statements: str, bindings: Bound = None, /) -> _Cursor: ...
    def executemany(self, statements: str, bindings: Iterable[Bound], /) -> _Cursor: ...


def _typed(connection: apsw.Connection) -> _Executes:
    """The connection with the types we use; apsw's own are unknown to a checker in part."""
    return cast("_Executes", connection)


def execute(connection: apsw.Connection, sql: str, params: Bound = None) -> list[Cells]:
    """Run statements to their end; every row. Half-read ones would not all run."""
    return _typed(connection).execute(sql, params).fetchall()


def set_pragma(connection: apsw.Connection, pragma: str) -> Sequence[Cells]:
    """Run one pragma to its end: one whose rows are not all read may not take effect."""
    return execute(connection, f"PRAGMA {pragma}")


class Session:
    """A connection during one transaction: runs statements and tells failures as StoreError."""

    def __init__(self, connection: apsw.Connection, file_name: str, *, write: bool) -> None:
        self._connection = connection
        self._file_name = file_name
        self.write = write
        self._open = True

    def end(self) -> None:
        """Refuse all further use."""
        self._open = False

    def need_write(self, what: str) -> None:
        """Raise RuntimeError when this transaction only reads."""
        if not self.write:
            raise RuntimeError(f"{what} needs a write transaction")

    def cells(self, sql: str, params: Mapping[str, Value]) -> list[Cells]:
        """Every row of a statement, as tuples."""
        self._check_open()
        try:
            return execute(self._connection, sql, params)
        except FAILURES as error:
            raise self._told(error) from error

    def rows(self, sql: str, params: Mapping[str, Value]) -> list[Row]:
        """Every row of a statement, by column name."""
        self._check_open()
        try:
            cursor = _typed(self._connection).execute(sql, params)
            first = next(cursor, None)
            if first is None:
                return []
            names = [column[0] for column in cursor.get_description()]
            found: list[Row] = [dict(zip(names, first, strict=True))]
            found.extend(dict(zip(names, cells, strict=True)) for cells in cursor)
        except FAILURES as error:
            raise self._told(error) from error
        return found

    def run(self, sql: str, params: Mapping[str, Value]) -> int:
        """Run a statement to its end; the rows it changed."""
        self.need_write("a change")
        self._check_open()
        before = self._connection.total_changes()
        try:
            execute(self._connection, sql, params)
        except FAILURES as error:
            raise self._told(error) from error
        return self._connection.total_changes() - before

    def run_many(self, sql: str, params: Iterable[Mapping[str, Value]]) -> None:
        """Run one statement for each set of parameters."""
        self.need_write("a change")
        self._check_open()
        try:
            _typed(self._connection).executemany(sql, params).fetchall()
        except FAILURES as error:
            raise self._told(error) from error

    def _check_open(self) -> None:
        if not self._open:
            raise RuntimeError("this transaction has ended")
        if not self._connection.in_transaction:
            # SQLite undid the transaction after a failure; without this, what follows would commit by itself.
            raise StoreError(f"The store file {self._file_name} failed earlier in this transaction. Nothing was kept.")

    def _told(self, error: apsw.Error) -> StoreError:
        if isinstance(error, apsw.ReadOnlyError):
            self.need_write("a change")
        return store_error(error, self._file_name)
