"""Reads that may lag go to a replica, and to the primary while that fails.

The replica here is the same server under a role that may only read: enough to see who is asked.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from store_kit import COUNT, INSERT, MIGRATIONS, ORG, WAIT_S, add

from loom.storage.interface import Raced
from loom.storage.postgres.connection import Connection
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.migrations import Prepared
from loom.storage.postgres.pools import Replica
from loom.storage.postgres.settings import PostgresSettings

READER = "loom_test_reader"
GRANTS = f"""
DO $$ BEGIN CREATE ROLE {READER} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT USAGE ON SCHEMA loom TO {READER};
GRANT SELECT ON ALL TABLES IN SCHEMA loom TO {READER};
"""
REVOKE = "REVOKE SELECT ON loom.item FROM loom_test_reader"
WHO = "SELECT CAST(session_user AS TEXT) AS name FROM item WHERE org = :org LIMIT 1"
END_READERS = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = %s"


@pytest.fixture
def replica_url(postgres_url: str) -> str:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(GRANTS)
    return postgres_url.replace("postgres@", f"{READER}@", 1)


def opened(url: str, replica_url: str, rest_s: float) -> Iterator[PostgresDatabase]:
    # The wait is long: the tests run on busy machines, and only the one of a missing replica waits for it.
    settings = PostgresSettings(replica_url=replica_url, replica_wait_s=WAIT_S, replica_rest_s=rest_s)
    database = PostgresDatabase(url, MIGRATIONS, settings)
    add(database, "a row")
    yield database
    database.close()


@pytest.fixture
def database(postgres_url: str, replica_url: str) -> Iterator[PostgresDatabase]:
    yield from opened(postgres_url, replica_url, 3600.0)


@pytest.fixture
def hasty(postgres_url: str, replica_url: str) -> Iterator[PostgresDatabase]:
    """A store whose replica does not rest."""
    yield from opened(postgres_url, replica_url, 0.0)


def reader(database: PostgresDatabase, *, may_lag: bool, write: bool = False) -> object:
    """Who reads."""
    with database.transaction(ORG, write=write, may_lag=may_lag) as tx:
        row = tx.row(WHO)
    assert row is not None
    return row["name"]


def end_readers(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(END_READERS, [READER])


def test_only_reads_that_may_lag_are_the_replicas(database: PostgresDatabase) -> None:
    assert reader(database, may_lag=True) == READER
    assert reader(database, may_lag=False) == "postgres"
    assert reader(database, may_lag=True, write=True) == "postgres"


def test_a_connection_to_the_replica_that_was_lost_is_replaced(database: PostgresDatabase, postgres_url: str) -> None:
    assert reader(database, may_lag=True) == READER
    end_readers(postgres_url)
    assert reader(database, may_lag=True) == READER


def test_a_replica_that_ends_every_connection_is_asked_twice_and_then_rests(replica_url: str) -> None:
    settings = PostgresSettings(replica_url=replica_url, replica_wait_s=WAIT_S, replica_rest_s=3600.0)
    replica = Replica(settings, Prepared(path="loom", role=None))
    begun: list[Connection] = []

    def begin(connection: Connection) -> None:
        begun.append(connection)
        connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    assert replica.begun(begin) is None
    assert replica.begun(begin) is None
    assert len(begun) == 2
    replica.close()


def fail_in_the_middle(database: PostgresDatabase, url: str) -> None:
    def read() -> None:
        with database.transaction(ORG, write=False, may_lag=True) as tx:
            tx.rows(COUNT)
            end_readers(url)
            tx.rows(COUNT)

    with pytest.raises(Raced):
        read()


def test_a_replica_that_fails_in_the_middle_rests(database: PostgresDatabase, postgres_url: str) -> None:
    fail_in_the_middle(database, postgres_url)
    assert reader(database, may_lag=True) == "postgres", "the same work run again comes through"


def test_a_replica_is_tried_again_after_its_rest(hasty: PostgresDatabase, postgres_url: str) -> None:
    fail_in_the_middle(hasty, postgres_url)
    assert reader(hasty, may_lag=True) == READER


def test_a_table_that_the_replica_does_not_show_is_read_from_the_primary(
    database: PostgresDatabase, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(REVOKE)
    with pytest.raises(Raced):
        reader(database, may_lag=True)
    assert reader(database, may_lag=True) == "postgres"


def test_a_mistake_of_ours_is_not_taken_for_a_lost_race_for_ever(database: PostgresDatabase) -> None:
    for kind in (Raced, psycopg.errors.UndefinedTable):
        with pytest.raises(kind), database.transaction(ORG, write=False, may_lag=True) as tx:
            tx.rows("SELECT 1 AS one FROM nowhere WHERE org = :org")


def test_a_replica_that_is_not_there_costs_one_wait(postgres_url: str, tmp_path: Path) -> None:
    missing = f"postgresql://{READER}@/none?host={tmp_path}"
    settings = PostgresSettings(replica_url=missing, replica_wait_s=0.2, replica_rest_s=3600.0)
    database = PostgresDatabase(postgres_url, MIGRATIONS, settings)
    try:
        add(database, "a row")
        assert [reader(database, may_lag=True) for _ in range(3)] == ["postgres"] * 3
        with database.transaction(ORG, write=True) as tx:
            tx.run(INSERT, id=9, body="the primary writes all the while")
    finally:
        database.close()
    assert missing not in repr(settings), "it may hold a password"
