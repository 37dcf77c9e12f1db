"""The server engine: PostgreSQL with pgvector, for several server processes on one store.

Its driver is an extra. Without it, opening says what to install.
"""

from collections.abc import Sequence
from pathlib import Path

from loom.storage.interface import Database, StoreError
from loom.storage.migrate import Migration
from loom.storage.postgres.settings import PostgresSettings

NOT_INSTALLED = "The PostgreSQL driver is not installed. In Loom's folder: pip install '.[postgres]'"

try:
    from loom.storage.postgres.opening import opened, opened_trial
except ImportError as _missing:
    if not (_missing.name or "").startswith("psycopg") and "pq wrapper" not in str(_missing):
        raise

    def opened(url: str, migrations: Sequence[Migration], settings: PostgresSettings) -> Database:
        """Say what is missing."""
        del url, migrations, settings
        raise StoreError(NOT_INSTALLED)

    def opened_trial(folder: Path, migrations: Sequence[Migration], settings: PostgresSettings) -> Database:
        """Say what is missing."""
        del folder, migrations, settings
        raise StoreError(NOT_INSTALLED)


__all__ = ["PostgresSettings", "opened", "opened_trial"]
