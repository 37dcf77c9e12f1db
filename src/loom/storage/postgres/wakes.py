"""Tells servers and workers of one database of each other's writes, by LISTEN and NOTIFY.

One thread with a connection of its own listens, and passes on what this process
announces, gathered: a notification in every write's transaction would make all
commits of the database wait in one line. Nothing depends on a notification; workers look
for jobs from time to time anyway.
"""

import logging
import threading
from collections.abc import Callable

import psycopg

from loom.storage.interface import StoreError
from loom.storage.postgres.connection import Connection

CHANNEL = "loom_wake"
GATHER_S = 0.2
RECONNECT_S = 2.0
STOP_TIMEOUT_S = 5.0
TOGETHER_MAX = 500
"""Orgs announced at once; those beyond are found by the workers' own rounds."""

_LOG = logging.getLogger(__name__)


class Wakes:
    """The thread and what it has to announce. Safe for threads.

    Args:
        connect: gives a new connection in autocommit mode.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._mutex = threading.Lock()
        self._stopping = threading.Event()
        self._waiting: set[str] = set()
        self._listeners: list[Callable[[str], None]] = []
        self._thread: threading.Thread | None = None

    def share(self, wake: Callable[[str], None]) -> Callable[[str], None]:
        """Call `wake` for writes of other processes; the function given back wakes here and announces there."""
        with self._mutex:
            self._listeners.append(wake)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="loom-wakes", daemon=True)
                self._thread.start()

        def wake_everywhere(org: str) -> None:
            wake(org)
            with self._mutex:
                if len(self._waiting) < TOGETHER_MAX:
                    self._waiting.add(org)

        return wake_everywhere

    def close(self) -> None:
        """Announce what is left and stop."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._listen(connection)
            except (psycopg.Error, StoreError) as error:
                _LOG.warning("wakes of other servers are not heard (%s)", type(error).__name__)
                self._stopping.wait(RECONNECT_S)

    def _listen(self, connection: Connection) -> None:
        own = connection.info.backend_pid
        while not self._stopping.is_set():
            heard = {one.payload for one in connection.notifies(timeout=GATHER_S) if one.pid != own}
            for org in heard:
                for wake in self._listeners:
                    wake(org)
            self._announce(connection)
        self._announce(connection)

    def _announce(self, connection: Connection) -> None:
        with self._mutex:
            orgs, self._waiting = sorted(self._waiting), set[str]()
        if orgs:
            connection.execute("SELECT pg_notify(%s, org) FROM unnest(CAST(%s AS TEXT[])) AS org", [CHANNEL, orgs])
