"""One server of each engine for the tests that do not hurt it."""

from collections.abc import Iterator, Mapping

import pytest

from postgres_server import TestServer
from running import Server, running


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    """Which engine a test's servers keep their store in."""
    return str(request.param)


@pytest.fixture(scope="session")
def server(engine: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the real model on a new store, shared by a session."""
    home = tmp_path_factory.mktemp("whole") / "home"
    if engine == "sqlite":
        with running(home) as ready:
            yield ready
        return
    postgres: TestServer = request.getfixturevalue("postgres")
    with postgres.bare() as url, running(home, database_url=url) as ready:
        yield ready


@pytest.fixture(scope="module")
def module_store(engine: str, request: pytest.FixtureRequest) -> Iterator[Mapping[str, str]]:
    """The settings of a store for the tests of one file."""
    yield from _settings(engine, request)


@pytest.fixture
def store(engine: str, request: pytest.FixtureRequest) -> Iterator[Mapping[str, str]]:
    """The settings of a store for one test's own servers."""
    yield from _settings(engine, request)


def _settings(engine: str, request: pytest.FixtureRequest) -> Iterator[Mapping[str, str]]:
    if engine == "sqlite":
        yield {}
        return
    postgres: TestServer = request.getfixturevalue("postgres")
    with postgres.bare() as url:
        yield {"database_url": url}
