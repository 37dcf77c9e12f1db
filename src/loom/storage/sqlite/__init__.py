"""The embedded engine: one SQLite file for each org, words in FTS5, vectors searched exactly in memory."""

from loom.storage.sqlite.engine import SqliteDatabase
from loom.storage.sqlite.settings import SqliteSettings

__all__ = ["SqliteDatabase", "SqliteSettings"]
