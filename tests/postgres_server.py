"""One PostgreSQL for a test session, and a database of its own for each test."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString, cast

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from loom.storage.migrate import Migration
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.trial import TrialServer

# A test's server need not survive a power cut, only its own processes' deaths; and nothing locks a table by chance.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "300",
    "shared_buffers": "128MB",
}

CUT = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE %s
"""
"""Returns when they are gone, or after 10 seconds each. Without a time it returns while they may still answer."""

EMPTY = """
DO $$
DECLARE
    one RECORD;
BEGIN
    SET LOCAL lock_timeout TO '3s';
    FOR one IN SELECT relname, pg_relation_size(oid) AS byte_size FROM pg_class
        WHERE relnamespace = CAST('loom' AS regnamespace) AND relkind = 'r' AND relname <> 'store_migration'
    LOOP
        CONTINUE WHEN one.byte_size = 0;
        IF one.byte_size > 65536 THEN
            EXECUTE format('TRUNCATE loom.%I', one.relname);
        ELSE
            EXECUTE format('DELETE FROM loom.%I', one.relname);
        END IF;
    END LOOP;
    FOR one IN SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = to_regclass('loom.vector_row') AND starts_with(c.relname, 'vector_near_')
    LOOP
        EXECUTE format('DROP INDEX loom.%I', one.relname);
    END LOOP;
    PERFORM setval('loom.store_stamp_number', 1, false);
END
$$
"""
"""To delete a few rows takes half as long as to make a table's files anew, which is done once dead rows add up."""


class TestServer:
    """A running server that hands out databases: of each kind a few, emptied between tests. `log` is its own."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self.trial = TrialServer(folder, SETTINGS)
        self.log = folder / "server.log"
        self._numbers = itertools.count(1)
        self._free: dict[tuple[str, ...], list[str]] = {}

    @contextmanager
    def migrated(self, migrations: Sequence[Migration]) -> Generator[str]:
        """The URL of a database that has had the migrations and holds no rows."""
        free = self._free.setdefault(tuple(step.name for step in migrations), [])
        if free:
            name = free.pop()
        else:
            name = self._made()
            PostgresDatabase(self.trial.url(name), migrations).close()
        yield self.trial.url(name)
        with psycopg.connect(self.trial.url(name), autocommit=True) as connection:
            connection.execute(EMPTY)
        free.append(name)

    @contextmanager
    def bare(self) -> Generator[str]:
        """The URL of a new database without anything, removed in the end."""
        name = self._made()
        try:
            yield self.trial.url(name)
        finally:
            self.run("DROP DATABASE {} WITH (FORCE)", name)

    def keep_deadlocks(self, url: str) -> None:
        """Let the server end no deadlock of this database, so that it is seen for what it is: a wait without an end."""
        name = str(conninfo_to_dict(url)["dbname"])
        self.run("ALTER DATABASE {} SET deadlock_timeout = '120s'", name)

    def run(self, statement: str, *names: str) -> None:
        """Run a statement as the server's superuser; the names are put in quoted."""
        with psycopg.connect(self.trial.url(), autocommit=True) as connection:
            text = sql.SQL(cast("LiteralString", statement))
            connection.execute(text.format(*map(sql.Identifier, names)))

    def _made(self) -> str:
        name = f"test_{next(self._numbers)}"
        self.run("CREATE DATABASE {}", name)
        return name


def cut_connections(url: str, name: str = "loom") -> None:
    """End every connection to the database of programs with such a name; `%` stands for any letters."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(CUT, [name])


@contextmanager
def test_server() -> Generator[TestServer]:
    """A server in a temporary folder. Not in pytest's own, which root's stand-in may not enter."""
    folder = Path(tempfile.mkdtemp(prefix="loom-pg-"))
    server = TestServer(folder / "server")
    if os.geteuid() == 0:
        folder.chmod(0o711)
    try:
        server.trial.start()
        yield server
    finally:
        server.trial.stop()
        shutil.rmtree(folder, ignore_errors=True)
