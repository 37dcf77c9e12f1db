"""One org's file: its write connection, its readers and its upkeep."""

import hashlib
import itertools
import re
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from loom.storage.interface import StoreError
from loom.storage.migrate import ENGINE, SHARED, Migration, from_package, ordered, pending
from loom.storage.sqlite.connection import FAILURES, Session, connect, execute, set_pragma, store_error
from loom.storage.sqlite.readers import Readers
from loom.storage.sqlite.settings import SqliteSettings
from loom.storage.sqlite.stamps import Stamps
from loom.storage.sqlite.text_index import SqliteTextIndex, TermShares
from loom.storage.sqlite.transaction import SqliteTransaction
from loom.storage.sqlite.vector_cache import VectorCache
from loom.storage.sqlite.vector_index import SqliteVectorIndex
from loom.storage.sqlite.writer import Writer

SUFFIX = ".db"
SLUG_LENGTH_MAX = 40
HASH_LENGTH = 16

UPKEEP_BUSY_TIMEOUT_S = 0.5
"""How long upkeep waits for a writer; what it could not do is done next time."""

CHECK_S_MAX = 60.0
"""How long the check of one file may take."""

SCRUB_S_MAX = 5.0
"""How long one upkeep merges marked shelves of a file."""

PROBLEMS_SHOWN_MAX = 10
WAL_WAIT_MAX_S = 5.0
WAL_RETRY_S = 0.05

_MEMORY_NAME = "(empty)"
_NUMBERS = itertools.count(1)
_RECORD = """
CREATE TABLE IF NOT EXISTS store_migration (
    stream TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, applied_us INTEGER NOT NULL,
    PRIMARY KEY (stream, number)
) STRICT, WITHOUT ROWID
"""
_RECORDED = "INSERT INTO store_migration (stream, number, name, applied_us) VALUES (?, ?, ?, ?)"
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
_ORG = "SELECT value FROM store_meta WHERE key = 'org'"


def file_name_of(org: str) -> str:
    """The name of an org's file: readable, and distinct by a hash of the org."""
    slug = re.sub(r"[^a-z0-9]+", "-", org.lower())[:SLUG_LENGTH_MAX].strip("-")
    digest = hashlib.sha256(org.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    return f"{slug}-{digest}{SUFFIX}" if slug else f"{digest}{SUFFIX}"


class Schema:
    """Both streams of migrations, and how they are brought into a connection."""

    def __init__(self, shared: Sequence[Migration]) -> None:
        self._streams = ((ENGINE, from_package("loom.storage.sqlite")), (SHARED, ordered(shared)))

    def apply(self, connection: apsw.Connection, file_name: str, org: str) -> None:
        """Bring a file's tables up to date in one transaction, and note whose file it is.

        Raises:
            StoreError: the file is another org's, not Loom's, or newer than this program.
            apsw.Error: one of FAILURES.
        """
        if not self._missing(connection, file_name):
            _check_org(connection, file_name, org)
            return
        execute(connection, "BEGIN IMMEDIATE")
        try:
            execute(connection, _RECORD)
            # Another process may have been here while this one waited for the lock.
            for stream, step in self._missing(connection, file_name):
                execute(connection, step.sql)
                execute(connection, _RECORDED, (stream, step.number, step.name, time.time_ns() // 1000))
            execute(connection, "INSERT INTO store_meta (key, value) VALUES ('org', ?) ON CONFLICT DO NOTHING", (org,))
            _check_org(connection, file_name, org)
            execute(connection, "COMMIT")
        except BaseException:
            if connection.in_transaction:
                execute(connection, "ROLLBACK")
            raise

    def _missing(self, connection: apsw.Connection, file_name: str) -> Sequence[tuple[str, Migration]]:
        tables = {name for (name,) in execute(connection, _TABLES)}
        recorded: dict[str, dict[int, str]] = {}
        if "store_migration" in tables:
            for stream, number, name in execute(connection, "SELECT stream, number, name FROM store_migration"):
                recorded.setdefault(str(stream), {})[int(str(number))] = str(name)
        elif tables:
            raise StoreError(f"{file_name} is a database, but not a Loom store. Move it out of the store's folder.")
        return [
            (stream, step)
            for stream, known in self._streams
            for step in pending(stream, known, recorded.get(stream, {}), f"The store file {file_name}")
        ]


class OrgFile:
    """An open file of one org. Safe for threads."""

    def __init__(self, path: Path, org: str, settings: SqliteSettings, schema: Schema, vectors: VectorCache) -> None:
        self.name = path.name
        self._path = path
        self._org = org
        self._settings = settings
        self._vectors = vectors
        self._number = next(_NUMBERS)
        self._shares = TermShares()
        self._stamps = Stamps(settings.clock_ns)
        self._connection = self._opened(schema)
        self._writer = Writer(self._connection, self.name, settings.group_max)
        self._readers = Readers(self._opened_to_read, self.name, settings.readers_max)

    @contextmanager
    def transaction(self, *, write: bool) -> Generator[SqliteTransaction, None, None]:
        """A transaction; see `storage.interface.Database`."""
        with self._writer.call() if write else self._readers.snapshot() as connection:
            session = Session(connection, self.name, write=write)
            try:
                yield self._bound(session)
            finally:
                session.end()

    def maintain(self) -> None:
        """Purge, scrub, optimise and checkpoint, each a bounded step; what is busy waits for the next time."""
        with self.transaction(write=True) as transaction:
            transaction.vectors.purge_slice()
        until = time.monotonic() + SCRUB_S_MAX
        more = True
        while more and time.monotonic() < until:
            with self.transaction(write=True) as transaction:
                more = transaction.text.scrub_slice()
        try:
            connection = connect(self._path, self._settings, write=False, busy_timeout_s=UPKEEP_BUSY_TIMEOUT_S)
            try:
                _optimize(connection)
                set_pragma(connection, "wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()
        except apsw.BusyError:
            return
        except FAILURES as error:
            raise store_error(error, self.name) from error

    def check(self) -> Sequence[str]:
        """What is wrong with the file; the word index is checked with it."""
        until = time.monotonic() + CHECK_S_MAX
        try:
            with self._readers.snapshot() as connection:
                connection.set_progress_handler(lambda: time.monotonic() > until, 100_000)
                try:
                    found = set_pragma(connection, f"quick_check({PROBLEMS_SHOWN_MAX})")
                finally:
                    connection.set_progress_handler(None)
        except apsw.InterruptError:
            return [f"{self.name}: not wholly checked, it took more than {CHECK_S_MAX:.0f} s."]
        except FAILURES as error:
            return [str(store_error(error, self.name))]
        return [] if [row[0] for row in found] == ["ok"] else [f"{self.name}: {row[0]}" for row in found]

    def close(self) -> None:
        """Close the connections; the caller sees to it that none is in use."""
        self._vectors.forget_file(self._number)
        self._readers.close()
        self._connection.close()

    def _bound(self, session: Session) -> SqliteTransaction:
        text = SqliteTextIndex(session, self._shares)
        vectors = SqliteVectorIndex(session, self._vectors, self._number)
        return SqliteTransaction(self._org, session, text, vectors, self._stamps)

    def _opened(self, schema: Schema) -> apsw.Connection:
        try:
            connection = connect(self._path, self._settings, write=True, busy_timeout_s=self._settings.busy_timeout_s)
            try:
                _use_wal(connection)
                schema.apply(connection, self.name, self._org)
            except BaseException:
                connection.close()
                raise
        except FAILURES as error:
            raise store_error(error, self.name) from error
        return connection

    def _opened_to_read(self) -> apsw.Connection:
        connection = connect(self._path, self._settings, write=False, busy_timeout_s=self._settings.busy_timeout_s)
        set_pragma(connection, "query_only = ON")
        return connection


class EmptyStore:
    """Serves reads of orgs that have no file yet: the same tables, without a row."""

    def __init__(self, settings: SqliteSettings, schema: Schema) -> None:
        self._settings = settings
        self._schema = schema
        self._vectors = VectorCache(0)
        self._shares = TermShares()
        self._stamps = Stamps(settings.clock_ns)
        self._readers = Readers(self._opened, _MEMORY_NAME, settings.readers_max)

    @contextmanager
    def transaction(self, org: str) -> Generator[SqliteTransaction, None, None]:
        """A transaction that finds nothing."""
        with self._readers.snapshot() as connection:
            session = Session(connection, _MEMORY_NAME, write=False)
            text = SqliteTextIndex(session, self._shares)
            try:
                yield SqliteTransaction(org, session, text, SqliteVectorIndex(session, self._vectors, 0), self._stamps)
            finally:
                session.end()

    def close(self) -> None:
        """Close the connections."""
        self._readers.close()
        self._vectors.close()

    def _opened(self) -> apsw.Connection:
        connection = connect(None, self._settings, write=False, busy_timeout_s=self._settings.busy_timeout_s)
        self._schema.apply(connection, _MEMORY_NAME, _MEMORY_NAME)
        set_pragma(connection, "query_only = ON")
        return connection


def org_in(path: Path, settings: SqliteSettings) -> str | None:
    """The org a file belongs to; None when it was never finished.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        connection = connect(path, settings, write=False, busy_timeout_s=settings.busy_timeout_s)
        try:
            tables = {name for (name,) in execute(connection, _TABLES)}
            rows = execute(connection, _ORG) if "store_meta" in tables else []
        finally:
            connection.close()
    except FAILURES as error:
        raise store_error(error, path.name) from error
    return str(rows[0][0]) if rows else None


def _check_org(connection: apsw.Connection, file_name: str, org: str) -> None:
    rows = execute(connection, _ORG)
    if not rows or rows[0][0] != org:
        raise StoreError(f"The store file {file_name} belongs to another org. Give it back its own name.")


def _use_wal(connection: apsw.Connection) -> None:
    """Switch the journal. Two processes at a new file can be refused at once, so it is tried again."""
    until = time.monotonic() + WAL_WAIT_MAX_S
    while True:
        try:
            set_pragma(connection, "journal_mode = WAL")
        except apsw.BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(WAL_RETRY_S)
        else:
            return


def _optimize(connection: apsw.Connection) -> None:
    """Renew the planner's statistics, and leave no sampled values in them: they would outlive the rows."""
    execute(connection, "BEGIN IMMEDIATE")
    try:
        set_pragma(connection, "optimize = 0x10002")
        tables = {name for (name,) in execute(connection, "SELECT name FROM sqlite_schema")}
        if "sqlite_stat4" in tables:
            execute(connection, "DELETE FROM sqlite_stat4")
        execute(connection, "COMMIT")
    except BaseException:
        if connection.in_transaction:
            execute(connection, "ROLLBACK")
        raise
