"""Opens the server engine with what a server's settings say."""

from collections.abc import Sequence
from pathlib import Path

from loom.storage.interface import Database
from loom.storage.migrate import Migration
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.settings import PostgresSettings
from loom.storage.postgres.trial import TrialServer


def opened(url: str, migrations: Sequence[Migration], settings: PostgresSettings) -> Database:
    """The store in the PostgreSQL at `url`.

    Raises:
        StoreError: it cannot be used; the message says what to do.
    """
    return PostgresDatabase(url, migrations, settings)


def opened_trial(folder: Path, migrations: Sequence[Migration], settings: PostgresSettings) -> Database:
    """The store in a PostgreSQL started for it in `folder`; it ends when the store is closed.

    Raises:
        StoreError: the package with PostgreSQL is missing, or it does not start.
    """
    server = TrialServer(folder)
    server.start()
    try:
        return PostgresDatabase(server.url(), migrations, settings, on_close=server.stop)
    except BaseException:
        server.stop()
        raise
