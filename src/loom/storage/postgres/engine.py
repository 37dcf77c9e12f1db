"""The server database: one PostgreSQL for every org and every server process."""

import logging
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial

from psycopg import ClientCursor
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from loom.storage.interface import SYSTEM_ORG, Param, Row, StoreError
from loom.storage.migrate import Migration
from loom.storage.postgres import upkeep
from loom.storage.postgres.connection import (
    FAULTS,
    Connection,
    Session,
    literal,
    store_error,
    undo,
)
from loom.storage.postgres.counts import PostgresCounts
from loom.storage.postgres.dialect import translated
from loom.storage.postgres.migrations import bring_up_to_date, connect
from loom.storage.postgres.pools import CLOSED, Replica, primary
from loom.storage.postgres.scrub import Scrubber
from loom.storage.postgres.settings import PostgresSettings
from loom.storage.postgres.stamps import Stamps
from loom.storage.postgres.text_index import PostgresTextIndex, TextCounts
from loom.storage.postgres.transaction import PostgresTransaction
from loom.storage.postgres.turns import Turns
from loom.storage.postgres.vector_index import PostgresVectorIndex, Spaces
from loom.storage.postgres.wakes import Wakes

ORGS_KNOWN_MAX = 100_000

_BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT set_config('loom.org', %s, true)"
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT set_config('loom.org', %s, true)"
_FOR_ORG = "SELECT set_config('loom.org', %s, true)"
_NOTE_ORG = (
    "BEGIN; SELECT set_config('loom.org', %(org)s, true);"
    " INSERT INTO store_org (org) VALUES (%(org)s) ON CONFLICT (org) DO NOTHING; COMMIT"
)
_ORGS = "SELECT org FROM store_org WHERE org <> :org"

_LOG = logging.getLogger(__name__)


class PostgresDatabase:
    """Implements `storage.interface.Database`. Safe for threads; many processes may share the database.

    A thread has one transaction at a time, whatever the org: a second one
    inside the first raises RuntimeError, for all threads could end up waiting
    for a second connection each.
    """

    def __init__(
        self,
        url: str,
        migrations: Sequence[Migration],
        settings: PostgresSettings | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """Connect and bring the tables up to date; `on_close` is called when all connections are closed.

        Raises:
            StoreError: the database cannot be used; the message says what to do.
            ValueError: two migrations share a number.
        """
        self._url = url
        self._settings = settings if settings is not None else PostgresSettings()
        self._stamps = Stamps(self._settings.clock_ns)
        self._counts, self._spaces = TextCounts(), Spaces()
        self._in_block = threading.local()
        self._orgs_known: set[str] = set()
        self._scrubber = Scrubber(self._settings.rewrite_bytes_max)
        self._closed = False
        self._on_close = on_close
        with connect(url, self._settings) as connection:
            self._prepared = bring_up_to_date(connection, migrations, self._settings)
        self._pool = primary(url, self._settings, self._prepared)
        self._replica = Replica(self._settings, self._prepared) if self._settings.replica_url else None
        self.turns = Turns(self._begun_write, self._pool.give_back, self._settings)
        self._wakes = Wakes(lambda: connect(url, self._settings))

    @contextmanager
    def transaction(
        self, org: str, *, write: bool, may_lag: bool = False, turn: Sequence[str] = ()
    ) -> Generator[PostgresTransaction, None, None]:
        """Begin a transaction on one org's rows; see `storage.interface.Database`."""
        self._check_alone()
        self._in_block.active = True
        try:
            if write and turn:
                self._check_open()
                with self.turns.taken(org, tuple(turn)) as session:
                    yield self._over(session, org)
            else:
                with self._begun(org, write=write, may_lag=may_lag) as transaction:
                    yield transaction
        finally:
            self._in_block.active = False

    def look(self, org: str, sql: str, /, **params: Param) -> Row | None:
        """The one row of one query, or None."""
        self._check_alone()
        self._check_open()
        found: list[Row] = []

        def ask(connection: Connection) -> None:
            # Statements of one pipeline are one transaction, so the org is gone when it ends.
            cursor = connection.cursor(row_factory=dict_row)
            with connection.pipeline():
                connection.execute(_FOR_ORG, [org])
                cursor.execute(literal(translated(sql, ())), {**params, "org": org})
            found[:] = cursor.fetchall()

        try:
            self._pool.give_back(self._pool.begun(ask))
        except FAULTS as error:
            raise store_error(error) from error
        if len(found) > 1:
            raise AssertionError(f"one row was expected, {len(found)} were found")
        return found[0] if found else None

    def orgs(self) -> Sequence[str]:
        """Every org that was written to, the system's left out."""
        with self._begun(SYSTEM_ORG, write=False) as transaction:
            return sorted(str(row["org"]) for row in transaction.rows(_ORGS))

    def check(self) -> Sequence[str]:
        """What is wrong with the database, a sentence each."""
        self._check_alone()
        self._check_open()
        try:
            with connect(self._url, self._settings) as connection:
                return upkeep.check(connection, self._prepared.path)
        except StoreError as error:
            return [str(error)]
        except FAULTS as error:
            return [str(store_error(error))]

    def maintain(self) -> None:
        """Upkeep by one server at a time: no byte of what was removed, an index for each large vector shelf.

        Raises:
            StoreError: the database cannot be reached.
        """
        self._check_alone()
        self._check_open()
        try:
            with connect(self._url, self._settings) as connection:
                upkeep.maintain(connection, self._prepared.path, self._scrubber)
        except FAULTS as error:
            raise store_error(error) from error

    def share_wakes(self, wake: Callable[[str], None]) -> Callable[[str], None]:
        """Tell `wake` of every org that a server of this database wrote to; what to call after a write here."""
        return self._wakes.share(wake)

    def shared_counts(self) -> PostgresCounts:
        """Counts in the database."""
        return PostgresCounts(partial(self.transaction, SYSTEM_ORG, write=True))

    def close(self) -> None:
        """Let transactions end, then close every connection."""
        self._check_alone()
        self._closed = True
        self._wakes.close()
        self._pool.close()
        if self._replica is not None:
            self._replica.close()
        self._on_close()

    @contextmanager
    def _begun(self, org: str, *, write: bool, may_lag: bool = False) -> Generator[PostgresTransaction, None, None]:
        self._check_open()
        begin = partial(self._begin_on, org=org, write=write)
        replica = self._replica if may_lag and not write else None
        connection = None if replica is None else replica.begun(begin)
        if replica is not None and connection is not None:
            with replica.guarded(connection), self._used(connection, org, write=False) as transaction:
                yield transaction
            return
        connection = self._pool.begun(begin)
        try:
            with self._used(connection, org, write=write) as transaction:
                yield transaction
        finally:
            self._pool.give_back(connection)

    @contextmanager
    def _used(self, connection: Connection, org: str, *, write: bool) -> Generator[PostgresTransaction, None, None]:
        """The transaction begun on `connection`; ended with the block."""
        session = Session(connection, write=write)
        try:
            yield self._over(session, org)
            if write or connection.info.transaction_status != TransactionStatus.INERROR:
                session.commit()
            else:
                undo(connection)
        except BaseException:
            session.end()
            undo(connection)
            raise

    def _over(self, session: Session, org: str) -> PostgresTransaction:
        return PostgresTransaction(
            org,
            session,
            PostgresTextIndex(session, org, self._counts),
            PostgresVectorIndex(session, org, self._spaces),
            self._stamps,
        )

    def _begun_write(self, org: str) -> Connection:
        """A connection of the pool with a write transaction begun."""
        return self._pool.begun(partial(self._begin_on, org=org, write=True))

    def _begin_on(self, connection: Connection, org: str, *, write: bool) -> None:
        if write:
            self._note_org(connection, org)
        ClientCursor(connection).execute(literal(_BEGIN_WRITE if write else _BEGIN_READ), [org])

    def _note_org(self, connection: Connection, org: str) -> None:
        """Note an org that is written to; at once, so that its first writers do not wait for each other."""
        if org in self._orgs_known:
            return
        ClientCursor(connection).execute(literal(_NOTE_ORG), {"org": org})
        if len(self._orgs_known) >= ORGS_KNOWN_MAX:
            self._orgs_known.clear()
        self._orgs_known.add(org)

    def _check_alone(self) -> None:
        if getattr(self._in_block, "active", False):
            raise RuntimeError("this thread already has a transaction open; end it first")

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(CLOSED)
