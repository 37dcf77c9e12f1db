"""The server engine: PostgreSQL with pgvector, for several server processes on one store."""

from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.settings import PostgresSettings

__all__ = ["PostgresDatabase", "PostgresSettings"]
