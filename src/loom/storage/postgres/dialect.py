"""What is particular to PostgreSQL and pgvector, in one place.

A database that speaks PostgreSQL's language in part, or spreads rows over
machines, needs other session settings and other index definitions. Both stand
here, with the translation of shared SQL, and nothing else knows them.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from loom.storage.postgres.settings import PostgresSettings

SCHEMA = "loom"
APP_ROLE = "loom_app"
STATEMENTS_KEPT_MAX = 2000
PREPARED_MAX = 400
"""Statements a connection keeps prepared."""

HNSW_LINKS = 16
HNSW_BUILD_WIDTH = 64
HNSW_DIMENSIONS_MAX = 4000
"""pgvector indexes halfvec columns up to this many dimensions; beyond, every search is exact."""

TEXT_INDEXES: Sequence[str] = (
    "CREATE INDEX IF NOT EXISTS text_entry_tokens ON text_entry USING gin (tokens) WITH (fastupdate = on,"
    " gin_pending_list_limit = 256)",
    # Vectors and tokens are read by every search: kept in the row and not compressed, as far as they fit.
    "ALTER TABLE text_entry ALTER COLUMN tokens SET STORAGE EXTERNAL",
    "ALTER TABLE vector_row ALTER COLUMN embedding SET STORAGE EXTERNAL",
)
"""Run once the engine's tables are there; each may run again."""

CLAIMED = " FOR UPDATE SKIP LOCKED"
"""After a query: hold its rows, and leave out those that are held."""

_NAMED = re.compile(r":([a-z_][a-z0-9_]*)")


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def translated(sql: str, lists: tuple[str, ...] = ()) -> str:
    """Shared SQL as psycopg takes it: `:name` as `%(name)s`, `IN (:name)` of a list as `= ANY(...)`.

    Raises:
        ValueError: a list parameter stands elsewhere than in `IN (:name)`.
    """
    sql = sql.replace("%", "%%")
    for name in lists:
        sql, found = re.subn(rf"IN \(:{name}\)", f"= ANY(%({name})s)", sql)
        if not found:
            raise ValueError(f"the list :{name} must stand in IN (:{name})")
    return _NAMED.sub(r"%(\1)s", sql)


def session_settings(settings: PostgresSettings, path: str) -> str:
    """Statements that make a new connection fit for work; `path` is the quoted search path."""
    return "; ".join(
        (
            f"SET search_path TO {path}",
            f"SET statement_timeout TO '{settings.statement_timeout_s}s'",
            f"SET lock_timeout TO '{settings.lock_timeout_s}s'",
            f"SET idle_in_transaction_session_timeout TO '{settings.idle_timeout_s}s'",
            "SET client_min_messages TO warning",
            "SET timezone TO 'UTC'",
            # Compiling a plan costs more than our short statements run.
            "SET jit TO off",
        )
    )


def approximate_search(width: int) -> str:
    """Settings, for one transaction, of a search through a vector index."""
    return f"SET LOCAL hnsw.iterative_scan TO relaxed_order; SET LOCAL hnsw.ef_search TO {int(width)}"


def vector_index_name(shelf_id: int, space_id: int) -> str:
    """The name of a large shelf's own index."""
    return f"vector_near_{shelf_id & (2**64 - 1):016x}_{space_id & (2**64 - 1):016x}"


def vector_index(shelf_id: int, space_id: int, dimension: int) -> str:
    """A large shelf's own index, built while others write."""
    return (
        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {vector_index_name(shelf_id, space_id)} ON vector_row USING hnsw"
        f" ((CAST(embedding AS halfvec({int(dimension)}))) halfvec_ip_ops)"
        f" WITH (m = {HNSW_LINKS}, ef_construction = {HNSW_BUILD_WIDTH})"
        f" WHERE shelf_id = {int(shelf_id)} AND space_id = {int(space_id)}"
    )


def drop_index(name: str) -> str:
    """Remove one of our vector indexes, while others work."""
    return f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"'
