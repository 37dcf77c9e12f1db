"""Every engine that the contract is tested on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_kit import MIGRATIONS, Engine, PostgresEngine, SqliteEngine
from turns_kit import Line, opened

from loom.storage.interface import Database
from postgres_server import TestServer


@pytest.fixture
def postgres_url(postgres: TestServer) -> Iterator[str]:
    """A database with the tables of `store_kit`."""
    with postgres.migrated(MIGRATIONS) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """A new, empty store of each kind."""
    if request.param == "sqlite":
        return SqliteEngine(tmp_path / "store")
    return PostgresEngine(request.getfixturevalue("postgres_url"))


@pytest.fixture
def database(engine: Engine) -> Iterator[Database]:
    """An open, empty store of each kind."""
    opened = engine.open()
    yield opened
    opened.close()


@pytest.fixture
def line(postgres_url: str) -> Iterator[Line]:
    """Members that stand in line, on a store whose groups have time."""
    with opened(postgres_url) as made:
        yield Line(made)
