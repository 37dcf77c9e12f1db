"""What the tests of every engine share: two tables, an opener that can open again, small helpers."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from loom.storage.indexes import IndexedText, Shelf, TextQuery, Vector
from loom.storage.interface import Database, StoreError, Transaction
from loom.storage.migrate import Migration
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.settings import PostgresSettings
from loom.storage.sqlite import SqliteDatabase, SqliteSettings

ORG = "acme"
SHELF = Shelf("memory", "local")
OTHER_SHELF = Shelf("memory", "other")
POLLS_MAX = 60_000
POLL_S = 0.001
WAIT_S = 30.0
"""Long enough for a machine that has much else to do. Nothing waits for it to be over."""

ATTEMPTS_MAX = 100

MIGRATIONS: Sequence[Migration] = (
    Migration(
        1,
        "item",
        "CREATE TABLE item (org TEXT NOT NULL, id BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (org, id))",
    ),
    Migration(
        2,
        "counter",
        "CREATE TABLE counter (org TEXT NOT NULL, name TEXT NOT NULL, value BIGINT NOT NULL, PRIMARY KEY (org, name))",
    ),
)

INSERT = "INSERT INTO item (org, id, body) VALUES (:org, :id, :body)"
COUNT = "SELECT count(*) AS n FROM item WHERE org = :org"
IDS = "SELECT id FROM item WHERE org = :org ORDER BY id"


Given = TypeVar("Given")


class Engine(Protocol):
    """One kind of store, at one place."""

    def open(self, *, clock_ns: Callable[[], int] | None = None) -> Database:
        """Open the store; each call is like another process at the same rows."""
        ...


@dataclass(frozen=True)
class SqliteEngine:
    """The embedded engine in a folder."""

    folder: Path

    def open(self, *, clock_ns: Callable[[], int] | None = None) -> Database:
        settings = SqliteSettings() if clock_ns is None else SqliteSettings(clock_ns=clock_ns)
        return SqliteDatabase(self.folder, MIGRATIONS, settings)


@dataclass(frozen=True)
class PostgresEngine:
    """The server engine in a database."""

    url: str

    def open(self, *, clock_ns: Callable[[], int] | None = None) -> Database:
        settings = PostgresSettings() if clock_ns is None else PostgresSettings(clock_ns=clock_ns)
        return PostgresDatabase(self.url, MIGRATIONS, settings)


class Refused(Exception):
    """Raised by a test inside a transaction."""


def until(condition: Callable[[], bool]) -> None:
    """Wait until another thread has got somewhere."""
    never = threading.Event()
    for _ in range(POLLS_MAX):
        if condition():
            return
        never.wait(POLL_S)
    raise AssertionError("the other thread did not get there")


def until_answered(work: Callable[[], Given]) -> Given:
    """What the work gives, once the store has a connection for it."""
    pause = threading.Event()
    for _ in range(ATTEMPTS_MAX):
        with suppress(StoreError):
            return work()
        pause.wait(0.1)
    raise AssertionError("the store did not answer")


def together(works: Sequence[Callable[[], object]]) -> list[Exception]:
    """Run every work in its own thread at once; the errors, none when all is well."""
    errors: list[Exception] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        try:
            start.wait(WAIT_S)
            work()
        except Exception as error:  # noqa: BLE001 - carried to the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S * 3)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return errors


@contextmanager
def undone(database: Database) -> Generator[Transaction, None, None]:
    """A write transaction that fails at its end."""
    with suppress(Refused), database.transaction(ORG, write=True) as transaction:
        yield transaction
        raise Refused


def count(database: Database, org: str = ORG) -> int:
    with database.transaction(org, write=False) as transaction:
        row = transaction.row(COUNT)
    assert row is not None
    return int(str(row["n"]))


def add(database: Database, body: str, org: str = ORG) -> int:
    """Write one item and acknowledge its id."""
    with database.transaction(org, write=True) as transaction:
        item_id = transaction.stamp()
        transaction.run(INSERT, id=item_id, body=body)
    return item_id


def text(words: str) -> IndexedText:
    """The words as they are, each its own stem."""
    return IndexedText(words.split(), words.split())


def asking(words: str, *phrases: str, required: bool = False) -> TextQuery:
    return TextQuery(words.split(), words.split(), [phrase.split() for phrase in phrases], required=required)


def unit(*numbers: float) -> Vector:
    vector = np.asarray(numbers, dtype=np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def random_units(count: int, dimension: int, seed: int) -> list[Vector]:
    generator = np.random.default_rng(seed)
    return [unit(*row) for row in generator.standard_normal((count, dimension))]
