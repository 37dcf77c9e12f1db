"""Fixtures of the code plane."""

import os
from pathlib import Path

import pytest
from code_kit import SHOP, Shelf, ShelfOf, written

from fakes import CoreOf
from loom import config
from loom.planes import code
from loom.planes.code.documents import NO_LIBRARY, Library
from loom.planes.code.sources import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path / "yard", config.git_environment())


@pytest.fixture(name="shelf_of")
def _shelf_of(core_of: CoreOf, yard: Yard) -> ShelfOf:
    def make(namespace: str = "shop", library: Library = NO_LIBRARY) -> Shelf:
        return Shelf(core_of(code.ops(library), code.jobs(yard, library), code.LATE), namespace)

    return make


@pytest.fixture
def shelf(shelf_of: ShelfOf) -> Shelf:
    return shelf_of()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return written(tmp_path / "shop", SHOP)


@pytest.fixture
def indexed(shelf: Shelf, shop: Path) -> Shelf:
    status = shelf.index(shop)
    assert status["state"] == "ready", status
    return shelf


@pytest.fixture
def no_links() -> None:
    if not hasattr(os, "symlink"):
        pytest.skip("no links here")
