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

# A test's server need not survive a power cut, only its own processes' deaths.
SETTINGS = {"fsync": "off", "full_page_writes": "off", "max_connections": "300", "shared_buffers": "128MB"}


EMPTY = """
DO $$
DECLARE
    one RECORD;
    held BOOLEAN;
BEGIN
    SET LOCAL lock_timeout TO '3s';
    FOR one IN SELECT oid, relname FROM pg_class
        WHERE relnamespace = CAST('loom' AS regnamespace) AND relkind = 'r' AND relname <> 'store_migration'
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM loom.%I)', one.relname) INTO held;
        IF held THEN
            EXECUTE format('TRUNCATE loom.%I', one.relname);
        END IF;
    END LOOP;
    ALTER SEQUENCE loom.store_stamp_number RESTART;
END
$$
"""


class TestServer:
    """A running server that hands out databases: of each kind a few, emptied between tests."""

    __test__ = False

    def __init__(self, trial: TrialServer) -> None:
        self.trial = trial
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


@contextmanager
def test_server() -> Generator[TestServer]:
    """A server in a temporary folder. Not in pytest's own, which root's stand-in may not enter."""
    folder = Path(tempfile.mkdtemp(prefix="loom-pg-"))
    trial = TrialServer(folder / "server", SETTINGS)
    if os.geteuid() == 0:
        folder.chmod(0o711)
    try:
        trial.start()
        yield TestServer(trial)
    finally:
        trial.stop()
        shutil.rmtree(folder, ignore_errors=True)
