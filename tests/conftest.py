"""Fixtures that tests of several rooms share."""

import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fakes import Clock, Core, CoreOf, core_of
from loom.jobs.handlers import Handler, LateHandler
from loom.ops.spec import AnyOp
from loom.storage.interface import Database
from loom.storage.migrate import from_package
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.settings import PostgresSettings
from loom.storage.sqlite import SqliteDatabase, SqliteSettings
from postgres_server import TestServer, test_server

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A run in the background ignores interrupts, and every server that it starts would do so too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# An example has as long as the machine takes for it. The same ones are tried each time: what fails fails
# everywhere. `make explore`, EXAMPLES=random, tries others each time, and says how to run again what fails.
UNHURRIED = settings(database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", UNHURRIED, derandomize=True)
settings.register_profile("random", UNHURRIED, print_blob=True)
settings.load_profile(os.environ.get("EXAMPLES", "same"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that are given more time than others begin first: begun last, one would keep a single process at work."""
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestServer]:
    """A PostgreSQL server, started when the first test asks."""
    with test_server() as server:
        yield server


@pytest.fixture
def sqlite_database(tmp_path: Path, clock: Clock) -> Iterator[Database]:
    """An empty embedded store whose stamps follow the test's clock."""
    settings = SqliteSettings(synchronous="OFF", clock_ns=clock.nanoseconds)
    made = SqliteDatabase(tmp_path / "store", from_package("loom"), settings)
    yield made
    made.close()


@pytest.fixture
def postgres_database(postgres: TestServer, clock: Clock) -> Iterator[Database]:
    """An empty store in PostgreSQL whose stamps follow the test's clock."""
    migrations = from_package("loom")
    with postgres.migrated(migrations) as url:
        made = PostgresDatabase(url, migrations, PostgresSettings(clock_ns=clock.nanoseconds))
        yield made
        made.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest) -> Database:
    """An empty store of each kind; PostgreSQL's is left out of the quick tests, where tests/storage stands for it."""
    return request.getfixturevalue(f"{request.param}_database")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


@pytest.fixture(name="core_of")
def _core_of(database: Database, clock: Clock, pool: ThreadPoolExecutor) -> CoreOf:
    """Makes a core: `core_of(OPS, JOBS, LATE)`."""

    def make(
        ops: Iterable[AnyOp], jobs: Mapping[str, Handler] | None = None, late: Mapping[str, LateHandler] | None = None
    ) -> Core:
        return core_of(ops, jobs or {}, late or {}, database, clock, pool)

    return make
