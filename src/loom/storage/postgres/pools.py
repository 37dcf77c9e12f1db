"""Connections that transactions borrow: those to the primary, and those to a replica that some reads may use."""

import logging
import random
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import cast

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from loom.storage.interface import Raced, StoreError
from loom.storage.postgres import dialect
from loom.storage.postgres.adapt import adapt
from loom.storage.postgres.connection import Connection, literal, store_error
from loom.storage.postgres.migrations import Prepared, passes_walls
from loom.storage.postgres.piped import PipedConnection
from loom.storage.postgres.settings import PostgresSettings

CLOSED = "The store is closed."

Begin = Callable[[Connection], None]
"""Begins a transaction on a connection."""

LOST_PAUSES_S = 0.5
"""At most so long pause the tries of one transaction for a connection that is not lost, all together."""

REPLICA_LOST_MAX = 1
"""Lost connections to a replica before the primary is asked instead."""

_LOST_STATES = ("08", "57P")
"""How the codes of a connection's and of a server's end begin; a statement that was stopped (57014) is none."""

_LOG = logging.getLogger(__name__)


class Pool:
    """Connections to one server. Safe for threads.

    Args:
        url: of the server.
        settings: the bounds.
        configure: makes a new connection fit for work.
        name: shown by the server beside each connection.
        wait_s: how long a transaction waits for a connection.
        lost_max: how many lost connections a transaction is given before it is told so.
    """

    def __init__(
        self, url: str, settings: PostgresSettings, configure: Begin, name: str, *, wait_s: float, lost_max: int
    ) -> None:
        self._lost_max = lost_max
        self._pool = ConnectionPool(
            url,
            connection_class=cast("type[Connection]", PipedConnection),
            kwargs={"autocommit": True, "connect_timeout": settings.connect_timeout_s, "application_name": name},
            min_size=settings.connections_min,
            max_size=settings.connections_max,
            max_waiting=settings.waiting_max,
            timeout=wait_s,
            configure=configure,
            name=name,
            open=True,
        )

    def begun(self, begin: Begin) -> Connection:
        """A connection with a begun transaction; `give_back` it.

        Connections can have been lost while they lay in the pool or as the pool made them, for instance when the
        server was started anew. Nothing has run yet, so the pool looks through those it has and another is tried: at
        once, then after short pauses of random length, for a server that ends connections has others to serve as well.

        Raises:
            StoreError: there is none.
        """
        lost = 0
        while True:
            connection = self._taken()
            try:
                begin(connection)
            except psycopg.OperationalError as error:
                self.give_back(connection)
                if lost == self._lost_max or not _tells_of_loss(error):
                    raise store_error(error) from error
            except BaseException:
                self.give_back(connection)
                raise
            else:
                return connection
            if lost > 0:
                time.sleep(random.uniform(0.5, 1) * LOST_PAUSES_S / self._lost_max)  # noqa: S311  # jitter, not a secret
            lost += 1
            self._pool.check()

    def give_back(self, connection: Connection) -> None:
        """End the loan."""
        self._pool.putconn(connection)

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    def _taken(self) -> Connection:
        try:
            return self._pool.getconn()
        except PoolTimeout:
            raise StoreError(
                "The database gave no connection in time: it is busy or cannot be reached. Nothing was kept; try again."
            ) from None
        except TooManyRequests:
            raise StoreError("Too many calls wait for the database. Nothing was kept; try again.") from None
        except PoolClosed:
            raise StoreError(CLOSED) from None


def primary(url: str, settings: PostgresSettings, prepared: Prepared) -> Pool:
    """Connections to the server that writes."""

    def configure(connection: Connection) -> None:
        _fit(connection, settings, prepared.path, prepared.role)

    # As many connections as there are can have been lost together.
    lost_max = settings.connections_max
    return Pool(url, settings, configure, "loom", wait_s=settings.connection_wait_s, lost_max=lost_max)


class Replica:
    """Connections to a server that follows the primary. One that fails is left alone for a while. Safe for threads."""

    def __init__(self, settings: PostgresSettings, prepared: Prepared) -> None:
        def configure(connection: Connection) -> None:
            # Its login need not be the primary's.
            role = dialect.APP_ROLE if passes_walls(connection) else None
            _fit(connection, settings, prepared.path, role)

        self._pool = Pool(
            settings.replica_url,
            settings,
            configure,
            "loom replica",
            wait_s=settings.replica_wait_s,
            lost_max=REPLICA_LOST_MAX,
        )
        self._rest_s = settings.replica_rest_s
        self._mutex = threading.Lock()
        self._rests_until_s = 0.0

    def begun(self, begin: Begin) -> Connection | None:
        """A connection with a begun transaction, for `guarded`; None when the primary is to be asked."""
        with self._mutex:
            if time.monotonic() < self._rests_until_s:
                return None
        try:
            return self._pool.begun(begin)
        except (StoreError, psycopg.Error) as error:
            self._rest(error)
            return None

    @contextmanager
    def guarded(self, connection: Connection) -> Generator[None, None, None]:
        """What goes wrong in the block lets the replica rest, and the same work may be run again, on the primary.

        Raises:
            Raced: instead of what went wrong.
        """
        try:
            yield
        except (StoreError, Raced, psycopg.Error) as error:
            # A replica may also end a read that stands in the way of what it follows, or lack a table made just now.
            self._rest(error)
            raise Raced("the replica failed") from error
        finally:
            self._pool.give_back(connection)

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    def _rest(self, error: Exception) -> None:
        with self._mutex:
            self._rests_until_s = time.monotonic() + self._rest_s
        _LOG.warning("the replica failed (%s); reads go to the primary for %.1f s", type(error).__name__, self._rest_s)


def _tells_of_loss(error: psycopg.OperationalError) -> bool:
    """Whether the connection is gone: its end came without a word, or with one about the connection or the server."""
    return error.sqlstate is None or error.sqlstate.startswith(_LOST_STATES)


def _fit(connection: Connection, settings: PostgresSettings, path: str, role: str | None) -> None:
    adapt(connection)
    connection.prepared_max = dialect.PREPARED_MAX
    connection.execute(literal(dialect.session_settings(settings, path)))
    if role is not None:
        connection.execute(literal(f"SET ROLE {role}"))
