"""A bounded pool of connections that only read."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import apsw

from loom.storage.interface import StoreError
from loom.storage.sqlite.connection import FAILURES, execute, store_error

READER_WAIT_MAX_S = 30.0
"""How long a call waits for a free read connection."""


class Readers:
    """Read connections of one store, opened when first needed and kept until closed."""

    def __init__(self, opened: Callable[[], apsw.Connection], file_name: str, readers_max: int) -> None:
        self._opened = opened
        self._file_name = file_name
        self._free = threading.BoundedSemaphore(readers_max)
        self._mutex = threading.Lock()
        self._idle: list[apsw.Connection] = []

    @contextmanager
    def snapshot(self) -> Generator[apsw.Connection, None, None]:
        """A connection that sees one moment of the store until the block ends.

        Raises:
            StoreError: no connection came free in time, or the file cannot be read.
        """
        if not self._free.acquire(timeout=READER_WAIT_MAX_S):
            raise StoreError("Too many calls read the store at once; try again.")
        try:
            connection = self._begin()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close the idle connections; the caller sees to it that none is in use."""
        with self._mutex:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _begin(self) -> apsw.Connection:
        with self._mutex:
            connection = self._idle.pop() if self._idle else None
        try:
            if connection is None:
                connection = self._opened()
            execute(connection, "BEGIN")
            # The snapshot is taken by the first read, not by BEGIN.
            execute(connection, "SELECT last FROM store_stamp")
        except FAILURES as error:
            if connection is not None:
                connection.close()
            raise store_error(error, self._file_name) from error
        return connection

    def _give_back(self, connection: apsw.Connection) -> None:
        try:
            if connection.in_transaction:
                execute(connection, "ROLLBACK")
        except apsw.Error:
            connection.close()
            return
        with self._mutex:
            self._idle.append(connection)
