"""A database of each earlier version comes up to date, once, however many servers start."""

from collections.abc import Sequence

import psycopg
import pytest
from store_kit import MIGRATIONS, ORG, asking, text, together

from loom.storage.indexes import Shelf
from loom.storage.interface import StoreError
from loom.storage.migrate import Migration, from_package
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.settings import PostgresSettings
from postgres_server import TestServer

STEPS: Sequence[Migration] = (
    Migration(1, "note", "CREATE TABLE note (org TEXT NOT NULL, id BIGINT NOT NULL, PRIMARY KEY (org, id));"),
    Migration(2, "note_body", "ALTER TABLE note ADD COLUMN body TEXT; UPDATE note SET body = 'old ' || id;"),
    Migration(3, "tag", "CREATE TABLE tag (org TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (org, name));"),
    Migration(7, "tag_of_note", "INSERT INTO tag (org, name) SELECT org, 'n' || id FROM note WHERE id < 100;"),
)
SHELF = Shelf("note", "n")


@pytest.mark.parametrize("had", range(1, len(STEPS) + 1))
def test_a_database_of_each_earlier_version_comes_up_to_date(postgres: TestServer, had: int) -> None:
    with postgres.bare() as url:
        old = PostgresDatabase(url, STEPS[:had])
        for org in (ORG, "other"):
            with old.transaction(org, write=True) as tx:
                tx.run("INSERT INTO note (org, id) VALUES (:org, 5)")
                tx.text.put(SHELF, 5, text("five"))
        old.close()
        new = PostgresDatabase(url, STEPS)
        for org in (ORG, "other"):
            with new.transaction(org, write=False) as tx:
                assert tx.rows("SELECT id, body FROM note") == [{"id": 5, "body": None if had >= 2 else "old 5"}]
                assert [row["name"] for row in tx.rows("SELECT name FROM tag")] == (["n5"] if had < len(STEPS) else [])
                assert [one.item_id for one in tx.text.best(SHELF, asking("five"), 5)] == [5]
        assert list(new.check()) == []
        new.close()


def test_a_server_of_the_version_before_goes_on_beside_the_new_one(postgres: TestServer) -> None:
    with postgres.bare() as url:
        old = PostgresDatabase(url, STEPS[:1])
        new = PostgresDatabase(url, STEPS)
        with old.transaction(ORG, write=True) as tx:
            tx.run("INSERT INTO note (org, id) VALUES (:org, 8)")
        with new.transaction(ORG, write=False) as tx:
            assert tx.rows("SELECT id, body FROM note") == [{"id": 8, "body": None}]
        old.close()
        new.close()


def test_a_database_of_a_newer_version_is_left_alone(postgres: TestServer) -> None:
    with postgres.bare() as url:
        PostgresDatabase(url, STEPS).close()
        with pytest.raises(StoreError, match="newer Loom"):
            PostgresDatabase(url, STEPS[:2])
        PostgresDatabase(url, STEPS).close()


def test_a_step_that_fails_leaves_the_database_as_it_was(postgres: TestServer) -> None:
    with postgres.bare() as url:
        old = PostgresDatabase(url, STEPS[:1])
        with old.transaction(ORG, write=True) as tx:
            tx.run("INSERT INTO note (org, id) VALUES (:org, 5)")
        old.close()
        broken = Migration(2, "broken", "CREATE TABLE x (a TEXT); SELECT nonsense FROM x")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            PostgresDatabase(url, [STEPS[0], broken])
        again = PostgresDatabase(url, STEPS[:1])
        with again.transaction(ORG, write=False) as tx:
            assert tx.rows("SELECT * FROM note") == [{"org": ORG, "id": 5}]
        assert list(again.check()) == []
        again.close()


def test_servers_that_start_at_once_migrate_once(postgres: TestServer) -> None:
    with postgres.bare() as url:
        assert together([lambda: PostgresDatabase(url, STEPS).close()] * 4) == []
        with psycopg.connect(url) as connection:
            recorded = connection.execute(
                "SELECT number FROM loom.store_migration WHERE stream = 'shared' ORDER BY number"
            ).fetchall()
    assert [number for (number,) in recorded] == [step.number for step in STEPS]


def test_text_is_ordered_by_its_bytes(postgres: TestServer) -> None:
    with postgres.migrated(from_package("loom")) as url, psycopg.connect(url) as connection:
        other = connection.execute(
            "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " JOIN pg_collation o ON o.oid = a.attcollation WHERE c.relnamespace = CAST('loom' AS regnamespace)"
            " AND c.relkind = 'r' AND a.attnum > 0 AND o.collname <> 'C' AND c.relname <> 'store_migration'"
        ).fetchall()
    assert other == []


def test_a_server_that_cannot_be_reached_is_told_without_the_password() -> None:
    settings = PostgresSettings(connect_timeout_s=2)
    for url in ("postgresql://ann:hunter2@127.0.0.1:1/loom", "postgresql://ann:hunter2@nowhere.invalid/loom"):
        with pytest.raises(StoreError) as told:
            PostgresDatabase(url, MIGRATIONS, settings)
        assert "hunter2" not in str(told.value)
        assert "does not answer" in str(told.value)
    with pytest.raises(StoreError, match="LOOM_DATABASE_URL") as told:
        PostgresDatabase("postgres//ann:hunter2 @x", MIGRATIONS, settings)
    assert "hunter2" not in str(told.value)


def test_the_engines_own_steps_are_in_the_package() -> None:
    steps = from_package("loom.storage.postgres")
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
