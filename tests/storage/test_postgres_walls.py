"""Row-level security: a statement that forgets the org, or names another, reaches nothing of another's."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from store_kit import INSERT, MIGRATIONS, ORG, SHELF, add, asking, text, unit

from loom.storage.interface import SYSTEM_ORG, StoreError
from loom.storage.migrate import from_package
from loom.storage.postgres.dialect import APP_ROLE
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.migrations import OUTSIDE_THE_WALL, WITHOUT_ORG
from postgres_server import TestServer

THEIRS = "rival"


@pytest.fixture
def database(postgres_url: str) -> Iterator[PostgresDatabase]:
    opened = PostgresDatabase(postgres_url, MIGRATIONS)
    add(opened, "ours", ORG)
    add(opened, "theirs", THEIRS)
    add(opened, "the system's", SYSTEM_ORG)
    yield opened
    opened.close()


@pytest.mark.parametrize(("org", "body"), [(ORG, "ours"), (THEIRS, "theirs"), (SYSTEM_ORG, "the system's")])
def test_a_statement_that_forgets_the_org_sees_its_own_rows_alone(
    database: PostgresDatabase, org: str, body: str
) -> None:
    with database.transaction(org, write=False) as tx:
        assert [row["body"] for row in tx.rows("SELECT body FROM item")] == [body]
        assert tx.row("SELECT count(*) AS n FROM item WHERE org <> :org") == {"n": 0}
    with database.transaction(org, write=True) as tx:
        assert tx.run("UPDATE item SET body = 'changed'") == 1
        assert tx.run("DELETE FROM item") == 1
    with database.transaction(THEIRS if org == ORG else ORG, write=False) as tx:
        assert tx.row("SELECT count(*) AS n FROM item WHERE body <> 'changed'") == {"n": 1}


def test_a_row_of_another_org_cannot_be_written(database: PostgresDatabase) -> None:
    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"),
        database.transaction(ORG, write=True) as tx,
    ):
        tx.run("INSERT INTO item (org, id, body) VALUES ('rival', 1, 'planted')")
    with database.transaction(THEIRS, write=False) as tx:
        assert [row["body"] for row in tx.rows("SELECT body FROM item")] == ["theirs"]


def test_a_connection_without_an_org_sees_nothing(database: PostgresDatabase, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET search_path TO loom")
        assert connection.execute("SELECT count(*) FROM item").fetchone() == (3,), "a superuser passes"
        connection.execute(f"SET ROLE {APP_ROLE}")
        assert connection.execute("SELECT count(*) FROM item").fetchone() == (0,)
    del database


def test_the_walls_org_does_not_outlive_the_transaction(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url, MIGRATIONS)
    with database.transaction(ORG, write=True) as tx:
        tx.run(INSERT, id=1, body="x")
    connection = database._pool.begun(lambda _: None)
    assert connection.execute("SELECT count(*) FROM item").fetchone() == (0,)
    assert connection.execute("SELECT current_user").fetchone() == (APP_ROLE,)
    database._pool.give_back(connection)
    database.close()


def test_every_table_is_behind_a_wall(postgres: TestServer) -> None:
    with postgres.migrated(from_package("loom")) as url, psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
            " WHERE relnamespace = CAST('loom' AS regnamespace) AND relkind = 'r' AND relname <> ALL(%s)",
            [list(WITHOUT_ORG)],
        ).fetchall()
        policies = connection.execute(
            "SELECT tablename FROM pg_policies WHERE schemaname = 'loom' AND policyname = 'own_org'"
        ).fetchall()
        not_first = connection.execute(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
            " WHERE c.relnamespace = CAST('loom' AS regnamespace) AND i.indisunique AND a.attname <> 'org'"
            " AND c.relname <> ALL(%s)",
            [[f"{table}_pkey" for table in WITHOUT_ORG]],
        ).fetchall()
    assert len(rows) > 10
    assert {name for name, walled in rows if not walled} == set(OUTSIDE_THE_WALL)
    assert {name for (name,) in policies} == {name for name, walled in rows if walled}
    assert not_first == [], "every unique key begins with org"


def test_an_ordinary_login_that_owns_its_database_is_walled_too(postgres: TestServer) -> None:
    with postgres.bare() as url:
        name = url.partition("@/")[2].partition("?")[0]
        postgres.run("CREATE ROLE {} LOGIN NOSUPERUSER", f"owner_{name}")
        try:
            postgres.run("ALTER DATABASE {} OWNER TO {}", name, f"owner_{name}")
            own_url = url.replace("postgres@", f"owner_{name}@")
            with pytest.raises(StoreError, match="CREATE EXTENSION vector"):
                PostgresDatabase(own_url, MIGRATIONS)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION vector")
            database = PostgresDatabase(own_url, MIGRATIONS)
            for org in (ORG, THEIRS):
                with database.transaction(org, write=True) as tx:
                    tx.run(INSERT, id=1, body=org)
                    tx.text.put(SHELF, 1, text("word"))
                    tx.vectors.put(SHELF, 1, "s", [unit(1, 0)])
            with database.transaction(ORG, write=False) as tx:
                assert [row["body"] for row in tx.rows("SELECT body FROM item")] == [ORG]
                assert [one.item_id for one in tx.text.best(SHELF, asking("word"), 5)] == [1]
                assert tx.row("SELECT current_user AS name") == {"name": f"owner_{name}"}
            with database.transaction(ORG, write=True) as tx:
                tx.text.scrub(SHELF)
            database.maintain()
            assert list(database.check()) == []
            assert list(database.orgs()) == [ORG, THEIRS]
            database.close()
            PostgresDatabase(own_url, MIGRATIONS).close()
        finally:
            postgres.run("ALTER DATABASE {} OWNER TO postgres", name)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA loom CASCADE")
                connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(f"owner_{name}")))
            postgres.run("DROP ROLE {}", f"owner_{name}")


def test_a_login_without_rights_is_told_what_to_grant(postgres: TestServer) -> None:
    with postgres.bare() as url:
        postgres.run("CREATE ROLE {} LOGIN", "stranger")
        try:
            with pytest.raises(StoreError, match="GRANT CREATE ON DATABASE"):
                PostgresDatabase(url.replace("postgres@", "stranger@"), MIGRATIONS)
        finally:
            postgres.run("DROP ROLE {}", "stranger")
