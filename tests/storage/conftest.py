"""Every engine that the contract is tested on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_kit import Engine, SqliteEngine

from loom.storage.interface import Database


@pytest.fixture(params=["sqlite"])
def engine(tmp_path: Path) -> Engine:
    """A new, empty store of each kind."""
    return SqliteEngine(tmp_path / "store")


@pytest.fixture
def database(engine: Engine) -> Iterator[Database]:
    """An open, empty store of each kind."""
    opened = engine.open()
    yield opened
    opened.close()
