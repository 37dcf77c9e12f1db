"""The code of every release before works on the tables as they are now, on both engines."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from schema_kit import (
    DEFAULTED,
    FOLDER,
    NULLABLE,
    REQUIRED,
    Promise,
    Table,
    broken,
    postgres_tables,
    read,
    sqlite_tables,
)

from loom.storage.interface import Database
from loom.storage.migrate import from_package
from postgres_server import TestServer
from test_shared_statements import unknown

PROMISES = sorted(FOLDER.glob("*.json"))


@pytest.fixture(params=PROMISES, ids=lambda path: path.stem)
def promise(request: pytest.FixtureRequest) -> Promise:
    return read(request.param)


def refused(database: Database, statements: Sequence[str]) -> Mapping[str, str]:
    """The statements that the engine does not take, and why."""
    found: dict[str, str] = {}
    for sql in statements:
        try:
            with database.transaction("dev", write=True) as tx:
                tx.rows(f"EXPLAIN {sql}", **unknown(sql))
        except Exception as error:  # noqa: BLE001  # every statement is to be tried
            found[sql] = str(error)
    return found


def test_there_is_a_promise_to_keep() -> None:
    assert len(PROMISES) >= 1


def test_sqlite_keeps_it(promise: Promise, tmp_path: Path, sqlite_database: Database) -> None:
    assert len(promise.sqlite) > 20
    assert broken(promise.sqlite, sqlite_tables(tmp_path / "new")) == []
    assert refused(sqlite_database, promise.statements) == {}


@pytest.mark.slow
def test_postgres_keeps_it(promise: Promise, postgres: TestServer, postgres_database: Database) -> None:
    assert len(promise.postgres) > 20
    with postgres.migrated(from_package("loom")) as url:
        assert broken(promise.postgres, postgres_tables(url)) == []
    assert refused(postgres_database, promise.statements) == {}


BEFORE = Table({"org": ("text", REQUIRED), "note": ("text", NULLABLE), "count": ("bigint", DEFAULTED)}, [["org"]])


def with_column(name: str, kind: str, asks: str) -> Table:
    return replace(BEFORE, columns={**BEFORE.columns, name: (kind, asks)})


BREAKING: Mapping[str, tuple[Table | None, str]] = {
    "a table goes": (None, "the table one is gone"),
    "a column goes": (replace(BEFORE, columns={"org": ("text", REQUIRED), "note": ("text", NULLABLE)}), "is gone"),
    "a type changes": (with_column("count", "text", DEFAULTED), "was bigint and is text"),
    "null is forbidden": (with_column("note", "text", DEFAULTED), "was nullable"),
    "null is allowed": (with_column("org", "text", NULLABLE), "was required and is nullable"),
    "a default goes": (with_column("count", "bigint", REQUIRED), "was defaulted"),
    "a new column must be given": (with_column("new", "text", REQUIRED), "may not be left out"),
    "a key is added": (replace(BEFORE, unique=[["org"], ["note"]]), "new unique key"),
    "a key goes": (replace(BEFORE, unique=[]), "lost the unique key"),
}


@pytest.mark.parametrize("change", BREAKING)
def test_a_change_that_old_code_stumbles_over_is_told(change: str) -> None:
    after, told = BREAKING[change]
    now = {"one": after} if after is not None else {}
    assert [sentence for sentence in broken({"one": BEFORE}, now) if told in sentence]


def test_what_is_only_added_is_fine() -> None:
    added = replace(
        BEFORE,
        columns={**BEFORE.columns, "org": ("text", DEFAULTED), "a": ("text", NULLABLE), "b": ("text", DEFAULTED)},
    )
    assert broken({"one": BEFORE}, {"one": added, "two": Table({"org": ("text", REQUIRED)}, [["org"]])}) == []


def test_a_statement_that_does_not_fit_is_told(promise: Promise, sqlite_database: Database) -> None:
    with sqlite_database.transaction("dev", write=True) as tx:
        tx.run("ALTER TABLE job DROP COLUMN attempts")
    told = refused(sqlite_database, promise.statements)
    assert len(told) >= 2
    assert all("attempts" in reason for reason in told.values())
