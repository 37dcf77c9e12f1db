"""Races, locks, lost connections and bounds of the server engine."""

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import LiteralString, cast

import pytest
from psycopg.pq import TransactionStatus
from store_kit import COUNT, INSERT, MIGRATIONS, ORG, WAIT_S, add, count, together, undone, until_answered

from loom.storage.interface import Database, Raced, StoreError, Transaction
from loom.storage.postgres import pools
from loom.storage.postgres.connection import Connection
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.pools import Pool
from loom.storage.postgres.settings import PostgresSettings
from loom.storage.postgres.trial import TrialServer
from postgres_server import cut_connections


@pytest.fixture
def database(postgres_url: str) -> Iterator[PostgresDatabase]:
    opened = PostgresDatabase(postgres_url, MIGRATIONS)
    yield opened
    opened.close()


Step = Callable[[Transaction], object]


def insertion(item_id: int) -> Step:
    return lambda tx: tx.run(INSERT, id=item_id, body="x")


def sending(item_id: int) -> Step:
    return lambda tx: tx.send(INSERT, id=item_id, body="sent")


def attempt(database: Database, *steps: Step) -> None:
    with database.transaction(ORG, write=True) as tx:
        for step in steps:
            step(tx)


def locked(tx: Transaction, *key: str) -> None:
    """Take a lock now; alone it waits for the next statement that has an answer."""
    tx.lock(*key)
    tx.rows(COUNT)


def test_connections_lost_between_transactions_are_replaced_unnoticed(
    database: PostgresDatabase, postgres_url: str
) -> None:
    add(database, "before")
    for _ in range(3):
        cut_connections(postgres_url)
        assert count(database) >= 1
        cut_connections(postgres_url)
        add(database, "after")
    assert count(database) == 4


LOST_MAX = 8


@pytest.fixture
def pool(postgres_url: str) -> Iterator[Pool]:
    opened = Pool(postgres_url, PostgresSettings(), lambda _: None, "loom", wait_s=WAIT_S, lost_max=LOST_MAX)
    yield opened
    opened.close()


class Failing:
    """Begins a transaction; the first times it runs `statement` instead, which fails."""

    def __init__(self, statement: LiteralString, times: int) -> None:
        self.calls = 0
        self._statement: LiteralString = statement
        self._times = times

    def __call__(self, connection: Connection) -> None:
        self.calls += 1
        if self.calls <= self._times:
            connection.execute(self._statement)
        connection.execute("BEGIN")


def test_one_connection_after_another_may_be_lost_before_anything_ran(pool: Pool) -> None:
    begin = Failing("SELECT pg_terminate_backend(pg_backend_pid())", times=5)
    connection = pool.begun(begin)
    assert connection.info.transaction_status == TransactionStatus.INTRANS
    pool.give_back(connection)
    assert begin.calls == 6


def test_a_server_that_ends_every_connection_is_not_asked_for_ever(pool: Pool) -> None:
    begin = Failing("SELECT pg_terminate_backend(pg_backend_pid())", times=1000)
    with pytest.raises(StoreError, match="try again"):
        pool.begun(begin)
    assert begin.calls == LOST_MAX + 1


def test_tries_pause_from_the_second_on_and_not_for_long(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses_s: list[float] = []
    monkeypatch.setattr(pools.time, "sleep", pauses_s.append)
    once = Failing("SELECT pg_terminate_backend(pg_backend_pid())", times=1)
    pool.give_back(pool.begun(once))
    assert (once.calls, pauses_s) == (2, [])
    with pytest.raises(StoreError, match="try again"):
        pool.begun(Failing("SELECT pg_terminate_backend(pg_backend_pid())", times=1000))
    assert len(set(pauses_s)) == LOST_MAX - 1
    assert all(pause_s > 0 for pause_s in pauses_s)
    assert sum(pauses_s) <= pools.LOST_PAUSES_S


def test_a_statement_that_took_too_long_is_not_run_again(pool: Pool) -> None:
    begin = Failing("SET statement_timeout = 20; SELECT pg_sleep(60)", times=1000)
    with pytest.raises(StoreError):
        pool.begun(begin)
    assert begin.calls == 1


def test_a_connection_lost_in_a_write_keeps_nothing_and_says_so(database: PostgresDatabase, postgres_url: str) -> None:
    insert = insertion(1)

    def lose(tx: Transaction) -> None:
        cut_connections(postgres_url)
        assert tx.org == ORG

    with pytest.raises(StoreError, match="try again"):
        attempt(database, insert, lose, insertion(2))
    with pytest.raises(StoreError, match="read it back"):
        attempt(database, insert, lose)
    assert count(database) == 0
    add(database, "works again")


def test_a_caught_error_inside_does_not_pass_for_success(database: PostgresDatabase) -> None:
    def twice(tx: Transaction) -> None:
        with pytest.raises(Raced):
            insertion(1)(tx)

    with pytest.raises(StoreError, match="Nothing was kept"):
        attempt(database, insertion(1), twice)
    assert count(database) == 0


def test_two_that_lock_in_opposite_order_are_a_race(database: PostgresDatabase) -> None:
    met = threading.Barrier(2)
    outcomes: list[str] = []

    def lock(first: str, second: str) -> None:
        try:
            with database.transaction(ORG, write=True) as tx:
                locked(tx, first)
                met.wait(WAIT_S)
                locked(tx, second)
            outcomes.append("kept")
        except Raced:
            outcomes.append("raced")

    assert together([lambda: lock("a", "b"), lambda: lock("b", "a")]) == []
    assert sorted(outcomes) == ["kept", "raced"]


def test_the_same_key_waits_and_another_does_not(database: PostgresDatabase) -> None:
    order: list[str] = []
    held, go_on = threading.Event(), threading.Event()

    def holder() -> None:
        with database.transaction(ORG, write=True) as tx:
            locked(tx, "k", "1")
            held.set()
            assert go_on.wait(WAIT_S)
            order.append("holder")

    def same() -> None:
        assert held.wait(WAIT_S)
        with database.transaction(ORG, write=True) as tx:
            locked(tx, "k", "1")
            order.append("same")

    def others() -> None:
        assert held.wait(WAIT_S)
        for org, key in ((ORG, ("k", "2")), (ORG, ("k1",)), ("rival", ("k", "1"))):
            with database.transaction(org, write=True) as tx:
                locked(tx, *key)
        order.append("others")
        go_on.set()

    assert together([holder, same, others]) == []
    assert order == ["others", "holder", "same"]


def test_a_wait_for_a_lock_is_bounded(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url, MIGRATIONS, PostgresSettings(lock_timeout_s=1))
    held, go_on = threading.Event(), threading.Event()

    def holder() -> None:
        with database.transaction(ORG, write=True) as tx:
            locked(tx, "k")
            held.set()
            go_on.wait(WAIT_S)

    def waiter() -> None:
        assert held.wait(WAIT_S)
        try:
            with pytest.raises(StoreError, match="busy"), database.transaction(ORG, write=True) as tx:
                locked(tx, "k")
        finally:
            go_on.set()

    assert together([holder, waiter]) == []
    database.close()


def test_a_statement_that_takes_too_long_is_stopped(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url, MIGRATIONS, PostgresSettings(statement_timeout_s=1))
    with pytest.raises(StoreError, match="too long"), database.transaction(ORG, write=False) as tx:
        tx.rows("SELECT pg_sleep(20)")
    assert count(database) == 0
    database.close()


def test_a_transaction_that_stands_still_holds_no_lock_for_ever(postgres_url: str) -> None:
    hanging = PostgresDatabase(postgres_url, MIGRATIONS, PostgresSettings(idle_timeout_s=1))
    other = PostgresDatabase(postgres_url, MIGRATIONS)
    held, done = threading.Event(), threading.Event()

    def stands(_: Transaction) -> None:
        held.set()
        done.wait(WAIT_S)

    def hangs() -> None:
        try:
            with pytest.raises(StoreError):
                attempt(hanging, lambda tx: tx.lock("k"), insertion(1), stands)
        finally:
            held.set()  # where the machine itself stood still so long that the transaction got no further

    def works() -> None:
        assert held.wait(WAIT_S)
        with other.transaction(ORG, write=True) as tx:
            tx.lock("k")
            assert tx.row(COUNT) == {"n": 0}
        done.set()

    assert together([hangs, works]) == []
    hanging.close()
    other.close()


def test_waiting_for_a_connection_is_bounded(postgres_url: str) -> None:
    settings = PostgresSettings(connections_min=1, connections_max=1, connection_wait_s=0.3, waiting_max=1)
    database = PostgresDatabase(postgres_url, MIGRATIONS, settings)
    assert until_answered(lambda: count(database)) == 0, "the connection is there"
    held, go_on = threading.Event(), threading.Event()

    def holder() -> None:
        with database.transaction(ORG, write=True):
            held.set()
            go_on.wait(WAIT_S)

    def waiter() -> None:
        assert held.wait(WAIT_S)
        with pytest.raises(StoreError, match=r"no connection in time|Too many calls"):
            count(database)

    def waiters() -> None:
        try:
            assert together([waiter] * 4) == []
        finally:
            go_on.set()

    assert together([holder, waiters]) == []
    assert count(database) == 0
    database.close()


def test_a_claim_passes_by_what_another_holds(database: PostgresDatabase) -> None:
    with database.transaction(ORG, write=True) as tx:
        tx.run_many(INSERT, [{"id": number, "body": "job"} for number in range(6)])
    two_held, first_done = threading.Event(), threading.Event()
    taken: dict[str, list[object]] = {}
    sql = "SELECT id FROM item WHERE org = :org ORDER BY id LIMIT :most"

    def first() -> None:
        with database.transaction(ORG, write=True) as tx:
            taken["first"] = [row["id"] for row in tx.claim(sql, most=2)]
            two_held.set()
            assert first_done.wait(WAIT_S)

    def second() -> None:
        assert two_held.wait(WAIT_S)
        with database.transaction(ORG, write=True) as tx:
            taken["second"] = [row["id"] for row in tx.claim(sql, most=3)]
        first_done.set()

    assert together([first, second]) == []
    assert taken == {"first": [0, 1], "second": [2, 3, 4]}


def test_another_process_is_woken(postgres_url: str) -> None:
    one, two = PostgresDatabase(postgres_url, MIGRATIONS), PostgresDatabase(postgres_url, MIGRATIONS)
    heard: list[str] = []
    rang = threading.Event()

    def hear(org: str) -> None:
        heard.append(org)
        rang.set()

    here: list[str] = []
    announce = one.share_wakes(here.append)
    two.share_wakes(hear)
    # A word said before the other listens is lost, so say it until it is heard.
    for _ in range(100):
        announce("weft")
        if rang.wait(0.2):
            break
    assert heard[0] == "weft"
    assert here[0] == "weft"
    one.close()
    two.close()


def test_stamps_ahead_of_the_clock_are_not_repeated_when_undone(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url, MIGRATIONS, PostgresSettings(clock_ns=lambda: 2**60))
    with database.transaction(ORG, write=True) as tx:
        tx.outstrip(2**61)
    given: list[int] = []
    for _ in range(3):
        with undone(database) as tx:
            given += [tx.stamp(), tx.stamp()]
    assert given == sorted(set(given))
    assert given[0] > 2**61
    assert add(database, "x") > given[-1]
    assert add(database, "x", "other") < 2**61, "another org keeps to the clock"
    database.close()


def test_stamps_of_many_servers_at_once_rise_in_the_order_they_are_given(postgres_url: str) -> None:
    databases = [PostgresDatabase(postgres_url, MIGRATIONS) for _ in range(3)]
    given: list[int] = []
    asking = threading.Lock()

    def ask(database: PostgresDatabase) -> None:
        for _ in range(60):
            with database.transaction(ORG, write=True) as tx, asking:
                given.append(tx.stamp())

    assert together([lambda database=database: ask(database) for database in databases * 2]) == []
    assert given == sorted(set(given))
    for database in databases:
        database.close()


@pytest.mark.slow
def test_a_server_that_is_started_anew_is_found_again() -> None:
    folder = Path(tempfile.mkdtemp(prefix="loom-pg-"))
    folder.chmod(0o711)
    server = TrialServer(folder / "server", {"fsync": "off"})
    server.start()
    try:
        database = PostgresDatabase(server.url(), MIGRATIONS, PostgresSettings(connection_wait_s=1))
        kept = [until_answered(lambda: add(database, "before"))]
        server.stop()
        with pytest.raises(StoreError):
            count(database)
        assert any("does not answer" in problem for problem in database.check())
        server.start()
        kept.append(until_answered(lambda: add(database, "after")))
        assert count(database) == len(kept) == 2
        database.close()
    finally:
        server.stop()


def test_what_was_sent_fails_where_its_answer_is_due(database: PostgresDatabase) -> None:
    add(database, "there")
    with database.transaction(ORG, write=False) as tx:
        [row] = tx.rows("SELECT id FROM item WHERE org = :org")
    there = cast("int", row["id"])
    cases: Sequence[Sequence[Step]] = (
        (sending(1), sending(there)),
        (sending(there), lambda tx: tx.rows(COUNT)),
        (sending(there), insertion(3)),
    )
    for steps in cases:
        with pytest.raises(Raced):
            attempt(database, *steps)
    assert count(database) == 1
    with database.transaction(ORG, write=True) as tx:
        for number in range(200):
            sending(number)(tx)
        assert tx.run("UPDATE item SET body = 'seen' WHERE org = :org AND body = 'sent'") == 200
        tx.send("DELETE FROM item WHERE org = :org AND id = :id", id=7)
    assert count(database) == 200
