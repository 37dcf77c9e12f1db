"""One server for the tests that do not hurt it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from running import Server, running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the real model on a new store, shared by a session."""
    home: Path = tmp_path_factory.mktemp("whole") / "home"
    with running(home) as ready:
        yield ready
