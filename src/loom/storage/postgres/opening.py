"""Opens the server engine with what a server's settings say."""

from collections.abc import Sequence
from pathlib import Path

from loom.storage.interface import Database
from loom.storage.migrate import Migration
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.settings import PostgresSettings
from loom.storage.postgres.trial import TrialServer


def opened(url: str, migrations: Sequence[Migration], connections_max: int, replica_url: str) -> Database:
    """The store in the PostgreSQL at `url`; reads that may lag go to `replica_url` where there is one.

    Raises:
        StoreError: it cannot be used; the message says what to do.
    """
    return PostgresDatabase(url, migrations, PostgresSettings(connections_max=connections_max, replica_url=replica_url))


def opened_trial(folder: Path, migrations: Sequence[Migration], connections_max: int) -> Database:
    """The store in a PostgreSQL started for it in `folder`; it ends when the store is closed.

    Raises:
        StoreError: the package with PostgreSQL is missing, or it does not start.
    """
    server = TrialServer(folder)
    server.start()
    try:
        settings = PostgresSettings(connections_max=connections_max)
        return PostgresDatabase(server.url(), migrations, settings, on_close=server.stop)
    except BaseException:
        server.stop()
        raise
