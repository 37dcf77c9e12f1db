"""What is done from time to time, by the login itself and by one server at a time."""

from collections.abc import Iterator, Sequence

from psycopg import errors

from loom.storage.postgres import dialect
from loom.storage.postgres.connection import Connection, literal
from loom.storage.postgres.migrations import OUTSIDE_THE_WALL
from loom.storage.postgres.scrub import Scrubber
from loom.storage.postgres.vector_index import INDEXED_FROM_ROWS

LOCK_KEY = (1280266061, 3)
INDEXES_MAX = 64
"""Large vector shelves with an index of their own; the planner looks at each of them."""

STATEMENT_TIMEOUT_S = 3600

# A table that is spread over other servers (Citus) has neither pages nor rows here, whatever it holds.
_SURELY_SMALL = """
SELECT 1 FROM pg_class WHERE oid = to_regclass('vector_row') AND relpages > 0 AND reltuples BETWEEN 0 AND %s
"""
_ORGS = "SELECT org FROM store_org ORDER BY org"
_LARGE = """
SELECT shelf_id, space_id, count(*), min(vector_dims(embedding)) FROM vector_row WHERE org = %s
GROUP BY shelf_id, space_id HAVING count(*) > %s
"""
_INDEXES = """
SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass('vector_row') AND c.relname LIKE 'vector\\_near\\_%'
"""
_BROKEN = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = CAST(%s AS regnamespace) AND NOT i.indisvalid AND c.relname NOT LIKE 'vector\\_near\\_%%'
"""
_OPEN = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org'
WHERE c.relnamespace = CAST(%s AS regnamespace) AND c.relkind IN ('r', 'p')
    AND NOT (c.relrowsecurity AND c.relforcerowsecurity) AND c.relname <> ALL(%s)
"""


def check(connection: Connection, path: str) -> Sequence[str]:
    """What is wrong, a sentence each."""
    _settle(connection, path)
    broken = connection.execute(_BROKEN, [dialect.SCHEMA]).fetchall()
    open_ = connection.execute(_OPEN, [dialect.SCHEMA, list(OUTSIDE_THE_WALL)]).fetchall()
    return [
        *(f"The index {name} is not valid. Run: REINDEX INDEX {dialect.SCHEMA}.{name};" for (name,) in broken),
        *(f"The table {name} has no row-level security; start the server again to set it." for (name,) in open_),
    ]


def maintain(connection: Connection, path: str, scrubber: Scrubber) -> None:
    """Scrub after removals, and give each large vector shelf its index; nothing while another server does so."""
    _settle(connection, path)
    turn = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", LOCK_KEY).fetchone()
    if turn is None or not turn[0]:
        return
    scrubber.round(connection)
    _index_vectors(connection)
    # The server notices a moment later that a connection was closed, and until then the next upkeep would do nothing.
    # After an error that moment does no harm.
    connection.execute("SELECT pg_advisory_unlock(%s, %s)", LOCK_KEY)


def _settle(connection: Connection, path: str) -> None:
    connection.execute(literal(f"SET search_path TO {path}"))
    connection.execute(literal(f"SET statement_timeout TO '{STATEMENT_TIMEOUT_S}s'"))


def _index_vectors(connection: Connection) -> None:
    there = {str(name): bool(valid) for name, valid in connection.execute(_INDEXES)}
    wanted = dict(sorted(_large(connection), key=lambda one: -one[1][3])[:INDEXES_MAX])
    for name, valid in there.items():
        if name not in wanted or not valid:
            connection.execute(literal(dialect.drop_index(name)))
    for name, (shelf, space, dimension, _) in wanted.items():
        if not there.get(name, False):
            try:
                connection.execute(literal(dialect.vector_index(shelf, space, dimension)))
            except errors.DeadlockDetected:
                # Building waits for old transactions, and one of them may wait for us; the next upkeep tries again.
                connection.execute(literal(dialect.drop_index(name)))


def _large(connection: Connection) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
    """Index name, shelf, space, dimension and row count of every shelf that deserves an index."""
    if connection.execute(_SURELY_SMALL, [INDEXED_FROM_ROWS // 2]).fetchone() is not None:
        return
    for (org,) in connection.execute(_ORGS).fetchall():
        # The wall stands for the owner as well, so each org is looked at from inside.
        connection.execute("SELECT set_config('loom.org', %s, false)", [org])
        for shelf, space, rows, dimension in connection.execute(_LARGE, [org, INDEXED_FROM_ROWS]).fetchall():
            if dimension <= dialect.HNSW_DIMENSIONS_MAX:
                yield dialect.vector_index_name(shelf, space), (shelf, space, dimension, rows)
