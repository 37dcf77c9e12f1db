"""Takes the bytes of removed text out of the database's files.

PostgreSQL leaves them in three places. Vacuum frees the place of a dead row and does not overwrite it; it
never takes a word out of a GIN index; and ANALYZE keeps samples of columns. So tables are written anew (VACUUM
FULL, with their TOAST and their indexes) as far as they are small enough for others to wait for it. A larger
one is vacuumed, its word index is rebuilt beside the old one, which locks nobody out, and that its free space may
hold text is noted in store_unwiped and logged until something has written it anew. Samples are never taken.

Who removes leaves a wish in the same transaction. A wish is granted once no snapshot is left that could still
see what it removed, and struck off at the end: a crash in between has it done again. The log of PostgreSQL, backups
and standbys are not reached from here.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from psycopg import errors, sql

from loom.storage.postgres import dialect
from loom.storage.postgres.connection import Connection, literal

WISH = """
INSERT INTO store_scrub (transaction_id) VALUES (CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT))
ON CONFLICT (transaction_id) DO NOTHING
"""

LOCK_WAIT_S = 1

REST_SHARE = 20
"""After a round this many times its length passes before the next one of this process."""

WISHES_MAX = 10_000
"""Wishes granted by one round; the next one takes the others."""

WORD_TABLE, WORD_INDEX = "text_entry", "text_entry_tokens"
UNTOUCHED = ("store_migration", "store_scrub", "store_unwiped", "store_org", "store_stamp")
"""Tables that hold no text of anyone's."""

# A snapshot sees everything of a transaction that is at or above its xmin. A wish from another cluster, of a restored
# dump, has a number that no transaction here has had yet: there is nothing left to wait for.
_GRANTED = """
WITH held AS (
    SELECT age(backend_xmin) AS old FROM pg_stat_activity
    WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
        AND (datname = current_database() OR backend_type = 'walsender')
    UNION ALL SELECT age(xmin) FROM pg_replication_slots WHERE xmin IS NOT NULL
    UNION ALL SELECT age(transaction) FROM pg_prepared_xacts WHERE database = current_database()
), here AS (
    SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT) AS next
)
SELECT transaction_id FROM store_scrub, here
WHERE transaction_id >= next OR next - transaction_id > coalesce((SELECT max(old) FROM held), -1)
ORDER BY transaction_id LIMIT %s
"""
_DONE = "DELETE FROM store_scrub WHERE transaction_id = ANY(CAST(%s AS BIGINT[]))"
# Of a table that is spread over other servers (Citus) the size here says nothing, so it is never locked.
_TABLES = """
SELECT relname, CASE WHEN to_regclass('pg_dist_partition') IS NULL THEN pg_total_relation_size(oid) END FROM pg_class
WHERE relnamespace = CAST(%s AS regnamespace) AND relkind = 'r' AND relname <> ALL(%s) ORDER BY relname
"""
_LEFT_OVERS = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = CAST(%s AS regnamespace) AND NOT i.indisvalid AND c.relname LIKE %s
"""
_NOTE = """
INSERT INTO store_unwiped (table_name, file_node)
SELECT relname, relfilenode FROM pg_class WHERE relnamespace = CAST(%s AS regnamespace) AND relname = %s
ON CONFLICT (table_name) DO UPDATE SET file_node = excluded.file_node, since = now()
WHERE store_unwiped.file_node <> excluded.file_node
"""
_WIPED = "DELETE FROM store_unwiped WHERE table_name = %s"
_UNWIPED = """
SELECT u.table_name, to_char(u.since AT TIME ZONE 'UTC', 'YYYY-MM-DD') FROM store_unwiped u
JOIN pg_class c ON c.relname = u.table_name AND c.relfilenode = u.file_node
WHERE c.relnamespace = CAST(%s AS regnamespace) ORDER BY u.table_name
"""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    byte_size: int | None


class Scrubber:
    """Grants wishes, in rounds with rests between them.

    Args:
        rewrite_bytes_max: up to this size, indexes and all, a table is written anew.
        clock_s: seconds that never go back.
        lock_wait_s: how long the rewriting of a table waits for its lock, while others queue behind it.
    """

    def __init__(
        self,
        rewrite_bytes_max: int,
        clock_s: Callable[[], float] = time.monotonic,
        lock_wait_s: int = LOCK_WAIT_S,
    ) -> None:
        self._rewrite_bytes_max = rewrite_bytes_max
        self._lock_wait_s = lock_wait_s
        self._clock_s = clock_s
        self._rests_until_s = 0.0

    def round(self, connection: Connection) -> None:
        """Grant the wishes that can be; one process at a time.

        Where a table's lock is not to be had the round ends: the next one begins again.
        """
        started_s = self._clock_s()
        if started_s < self._rests_until_s:
            return
        wishes = [number for (number,) in connection.execute(_GRANTED, [WISHES_MAX])]
        if not wishes:
            return
        try:
            for table in _tables(connection):
                self._scrub(connection, table)
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            _LOG.info("a table is in use; what was removed is scrubbed later")
        else:
            connection.execute(_DONE, [wishes])
            for name, since in connection.execute(_UNWIPED, [dialect.SCHEMA]).fetchall():
                _LOG.warning(
                    "free space of %s may hold text removed since %s: too large to be written anew", name, since
                )
        ended_s = self._clock_s()
        self._rests_until_s = ended_s + REST_SHARE * (ended_s - started_s)

    def _scrub(self, connection: Connection, table: _Table) -> None:
        name = sql.Identifier(dialect.SCHEMA, table.name)
        if table.byte_size is not None and table.byte_size <= self._rewrite_bytes_max:
            connection.execute(literal(f"SET lock_timeout TO '{self._lock_wait_s}s'"))
            try:
                connection.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(name))
            finally:
                connection.execute("SET lock_timeout TO 0")
            connection.execute(_WIPED, [table.name])
            return
        if table.name == WORD_TABLE:
            for (left,) in connection.execute(_LEFT_OVERS, [dialect.SCHEMA, f"{WORD_INDEX}\\_cc%"]).fetchall():
                index = sql.Identifier(dialect.SCHEMA, str(left))
                connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(index))
            index = sql.Identifier(dialect.SCHEMA, WORD_INDEX)
            connection.execute(sql.SQL("REINDEX INDEX CONCURRENTLY {}").format(index))
        connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(name))
        connection.execute(_NOTE, [dialect.SCHEMA, table.name])


def _tables(connection: Connection) -> Sequence[_Table]:
    found = connection.execute(_TABLES, [dialect.SCHEMA, list(UNTOUCHED)])
    return [_Table(str(name), None if size is None else int(size)) for name, size in found.fetchall()]
