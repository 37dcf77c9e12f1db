"""The server engine: PostgreSQL with pgvector, for several server processes on one store.

Its driver is an extra. Without it, opening says what to install.
"""

from collections.abc import Sequence
from pathlib import Path

from loom.storage.interface import Database, StoreError
from loom.storage.migrate import Migration

NOT_INSTALLED = "The PostgreSQL driver is not installed. Install it with: pip install 'loom[postgres]'"

try:
    from loom.storage.postgres.opening import opened, opened_trial
except ImportError as _missing:
    if not (_missing.name or "").startswith("psycopg") and "pq wrapper" not in str(_missing):
        raise

    def opened(url: str, migrations: Sequence[Migration], connections_max: int, replica_url: str) -> Database:
        """Say what is missing."""
        del url, migrations, connections_max, replica_url
        raise StoreError(NOT_INSTALLED)

    def opened_trial(folder: Path, migrations: Sequence[Migration], connections_max: int) -> Database:
        """Say what is missing."""
        del folder, migrations, connections_max
        raise StoreError(NOT_INSTALLED)


__all__ = ["opened", "opened_trial"]
