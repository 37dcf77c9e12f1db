"""Stores that many tests begin with: filled once for each engine, and put into the empty stores of tests."""

import shutil
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from fakes import START, Clock, Core
from filled import whole_core
from loom.storage.interface import Database
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.sqlite import SqliteDatabase
from loom.storage.sqlite.backup import FILES_FOLDER, backup
from loom.system.spaces import Spaces

TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = CAST('loom' AS regnamespace) AND relkind = 'r' AND relname <> 'store_migration' ORDER BY relname
"""

OUT = sql.SQL("COPY {} TO STDOUT (FORMAT BINARY)")
IN = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)")

Filling = Callable[[Core, Path], None]
"""Fills an empty store; the folder is for files that it is to name."""

Fill = Callable[[Core, Filling], None]
"""Has an empty store hold what a filling puts there, and the core's clock say what it said afterwards."""


@dataclass
class Kept:
    """What a full store holds.

    Attributes:
        folder: where the copied files of an embedded store are, and those that every store names.
        rows: PostgreSQL's tables.
        numbers: the last of PostgreSQL's numbers of stamps.
        now: the clock afterwards.
    """

    folder: Path
    rows: dict[str, bytes] = field(default_factory=dict[str, bytes])
    numbers: int = 0
    now: datetime = START

    def keep(self, core: Core) -> None:
        """Take down what the core's store holds."""
        self.now = core.clock.now
        if isinstance(core.database, SqliteDatabase):
            backup(core.database._folder, self.folder / "copy", _quiet)
            return
        assert isinstance(core.database, PostgresDatabase)
        with psycopg.connect(core.database._url) as connection:
            for (name,) in connection.execute(TABLES).fetchall():
                with connection.cursor().copy(OUT.format(sql.Identifier("loom", name))) as copy:
                    self.rows[name] = b"".join(bytes(part) for part in copy)
            last = connection.execute("SELECT last_value FROM loom.store_stamp_number").fetchone()
            assert last is not None
            self.numbers = int(last[0])

    def put(self, core: Core) -> None:
        """Have an empty store hold the same."""
        core.clock.now = self.now
        if isinstance(core.database, SqliteDatabase):
            for path in (self.folder / "copy" / FILES_FOLDER).iterdir():
                shutil.copyfile(path, core.database._folder / path.name)
            return
        assert isinstance(core.database, PostgresDatabase)
        with psycopg.connect(core.database._url) as connection:
            for name, rows in self.rows.items():
                with connection.cursor().copy(IN.format(sql.Identifier("loom", name))) as copy:
                    copy.write(rows)
            connection.execute("SELECT setval('loom.store_stamp_number', %s)", [self.numbers])


def _quiet(name: str, done: int, total: int) -> None:
    del name, done, total


@pytest.fixture(scope="session")
def filled_stores() -> dict[tuple[str, str], Kept]:
    """What is kept, by the kind of store and by what fills it."""
    return {}


@pytest.fixture(name="fill_again")
def _fill_again(filled_stores: dict[tuple[str, str], Kept], tmp_path_factory: pytest.TempPathFactory) -> Fill:
    def fill(core: Core, filling: Filling) -> None:
        kind = type(core.database).__name__, f"{filling.__module__}.{filling.__qualname__}"
        kept = filled_stores.get(kind)
        if kept is not None:
            kept.put(core)
            return
        kept = Kept(tmp_path_factory.mktemp("filled"))
        filling(core, kept.folder / "files")
        kept.keep(core)
        filled_stores[kind] = kept

    return fill


@pytest.fixture
def small(database: Database, clock: Clock, pool: Executor, tmp_path: Path) -> Core:
    """A store with a few memories."""
    made = whole_core(tmp_path / "home", database, clock, pool)
    for number in range(200):
        made.call("memory.set", memory_key=f"k{number}", value=f"the word{number} stays")
    return made


@pytest.fixture
def spaces(database: Database, clock: Clock) -> Spaces:
    return Spaces(database, clock)
