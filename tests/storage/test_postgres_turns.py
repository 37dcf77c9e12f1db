"""Writers that take turns on one transaction: all of it is kept or none, and each one's failure is its own."""

import threading
from contextlib import suppress
from dataclasses import replace

import psycopg
import pytest
from store_kit import COUNT, IDS, MIGRATIONS, ORG, SHELF, WAIT_S, Refused, count, together, unit
from turns_kit import (
    PATIENT,
    TRANSACTION,
    Body,
    Line,
    ids,
    in_another_thread,
    inserting,
    opened,
    refusing,
    sending,
)

from loom.storage.interface import Crowded, Raced, StoreError, Transaction
from loom.storage.postgres.connection import LOST_AT_COMMIT
from loom.storage.postgres.engine import PostgresDatabase
from postgres_server import TestServer, cut_connections

DEFERRED_UNIQUE = "ALTER TABLE loom.item ADD CONSTRAINT one_body UNIQUE (org, body) DEFERRABLE INITIALLY DEFERRED"
DEFERRED_REFUSAL = """
CREATE FUNCTION loom.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.body = 'bad' THEN
        RAISE EXCEPTION 'refused';
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON loom.item DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION loom.refuse()
"""


def test_those_who_wait_share_a_commit_and_see_each_other_in_order(line: Line) -> None:
    seen: list[object] = []

    def body(number: int) -> Body:
        def work(tx: Transaction) -> None:
            seen.append([row["id"] for row in tx.rows(IDS)])
            sending(number)(tx)

        return work

    line.run(*(body(number) for number in range(10)))
    assert line.told() == [None] * 10
    assert len(set(line.transactions.values())) == 1
    assert seen == [list(range(number)) for number in range(10)]
    assert ids(line.database) == list(range(10))


def test_who_joins_others_waits_for_nobody(line: Line) -> None:
    """What they hold may be what the holder waits for. Who is alone waits, and who finds it free has it."""

    def wanting(number: int, key: str) -> Body:
        def work(tx: Transaction) -> None:
            tx.lock_own(key)
            sending(number)(tx)

        return work

    def outside(tx: Transaction) -> None:
        del tx
        with line.database.transaction(ORG, write=True, turn=("other",)) as other:
            other.lock_own("held")
            other.rows(COUNT)

    with line.database.transaction(ORG, write=True) as tx:
        tx.lock("held")
        tx.rows(COUNT)
        line.run(wanting(0, "free"), wanting(1, "held"), wanting(2, "free"), wanting(3, "also free"))
    assert line.told() == [None, Crowded, None, None]
    assert ids(line.database) == [0, 2, 3]
    with line.database.transaction(ORG, write=True) as tx:
        outside_errors: list[Exception] = []
        tx.lock("held")
        tx.rows(COUNT)
        waiting = threading.Thread(target=lambda: outside_errors.extend(together([lambda: outside(tx)])))
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
    waiting.join(WAIT_S)
    assert outside_errors == []


def test_who_waits_for_nobody_makes_no_error_in_the_servers_log_and_is_let_do_nothing_more(
    line: Line, postgres: TestServer
) -> None:
    """A client chooses the keys: were it an error, the log would be the client's to fill."""

    def wanting(tx: Transaction) -> None:
        sending(1)(tx)
        tx.lock_own("held")
        with pytest.raises(Crowded):
            tx.rows(IDS)
        with pytest.raises(RuntimeError, match="ended"):
            tx.rows(IDS)

    before = len(postgres.log.read_bytes())
    with line.database.transaction(ORG, write=True) as tx:
        tx.lock("held")
        tx.rows(COUNT)
        line.run(sending(0), wanting, sending(2))
    assert [outcome for outcome in line.told() if outcome] == [RuntimeError]
    assert ids(line.database) == [0, 2]
    assert b"ERROR" not in postgres.log.read_bytes()[before:]


def test_nobody_is_told_before_the_commit(line: Line) -> None:
    seen: list[int] = []

    def last(tx: Transaction) -> None:
        sending(2)(tx)
        in_another_thread(lambda: seen.append(count(line.database)))
        seen.append(len(line.outcomes))

    line.run(inserting(0), inserting(1), last)
    assert line.told() == [None] * 3
    assert seen == [0, 0]
    assert count(line.database) == 3


def test_one_that_fails_is_undone_alone(line: Line) -> None:
    def bad_sql(tx: Transaction) -> None:
        inserting(4)(tx)
        tx.rows("SELECT no_such_column FROM item WHERE org = :org")

    def interrupted(tx: Transaction) -> None:
        inserting(6)(tx)
        raise KeyboardInterrupt

    line.run(
        inserting(0),
        refusing(1),
        inserting(2),
        inserting(0),
        bad_sql,
        inserting(5),
        interrupted,
        sending(0),
        sending(8),
        refusing(9),
    )
    assert line.told() == [
        None,
        Refused,
        None,
        Raced,
        psycopg.errors.UndefinedColumn,
        None,
        KeyboardInterrupt,
        Raced,
        None,
        Refused,
    ]
    assert len(set(line.transactions.values())) == 1
    assert ids(line.database) == [0, 2, 5, 8]


def test_the_first_that_fails_leaves_the_line_to_the_next(line: Line) -> None:
    line.run(refusing(0), inserting(1), inserting(2))
    assert line.told() == [Refused, None, None]
    assert line.transactions[1] == line.transactions[2] != line.transactions[0]
    assert ids(line.database) == [1, 2]


def test_all_that_fail_leave_nothing(line: Line) -> None:
    line.run(refusing(0), refusing(1), sending(2), sending(2), refusing(4))
    assert line.told() == [Refused, Refused, None, Raced, Refused]
    assert ids(line.database) == [2]


@pytest.mark.parametrize("last", [sending(0), refusing(3)], ids=["refused by the server", "raised"])
def test_the_last_that_fails_still_commits_for_the_others(line: Line, last: Body) -> None:
    line.run(inserting(0), inserting(1), last)
    assert line.told()[:2] == [None, None]
    assert line.told()[2] in (Raced, Refused)
    assert ids(line.database) == [0, 1]


def test_a_swallowed_refusal_is_the_members_own(line: Line) -> None:
    def swallowing(tx: Transaction) -> None:
        with suppress(Raced):
            inserting(0)(tx)

    line.run(inserting(0), swallowing, inserting(2), swallowing)
    assert line.told() == [None, StoreError, None, StoreError]
    assert ids(line.database) == [0, 2]


def test_a_connection_that_is_lost_is_told_to_every_member(line: Line, postgres_url: str) -> None:
    def losing(tx: Transaction) -> None:
        inserting(2)(tx)
        cut_connections(postgres_url)

    def used(tx: Transaction) -> None:
        losing(tx)
        inserting(3)(tx)

    for middle in (losing, used):
        again = Line(line.database)
        again.run(inserting(0), inserting(1), middle, inserting(4), inserting(5))
        assert again.told()[:3] == [StoreError] * 3
        assert all("Nothing was kept" in again.messages[number] for number in range(3))
        # The server ended that transaction, so those who had not begun have one of their own.
        kept = [number for number in (3, 4) if again.outcomes[number] is None]
        assert ids(line.database) == [number + 1 for number in kept]
        with line.database.transaction(ORG, write=True) as tx:
            tx.run("DELETE FROM item WHERE org = :org")


def test_a_commit_that_gets_no_answer_is_told_to_every_member(line: Line, postgres_url: str) -> None:
    def losing(tx: Transaction) -> None:
        inserting(2)(tx)
        cut_connections(postgres_url)

    line.run(inserting(0), inserting(1), losing)
    assert line.told() == [StoreError] * 3
    assert set(line.messages.values()) == {LOST_AT_COMMIT}
    assert count(line.database) == 0
    line.run(inserting(7), inserting(8))
    assert ids(line.database) == [7, 8]


@pytest.mark.parametrize(
    ("constraint", "told"),
    [(DEFERRED_UNIQUE, Raced), (DEFERRED_REFUSAL, StoreError)],
    ids=["lost race", "refusal"],
)
def test_a_commit_that_is_refused_is_told_to_every_member(
    postgres: TestServer, constraint: str, told: type[Exception]
) -> None:
    with postgres.bare() as url, opened(url) as database:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(constraint.encode())
        line = Line(database)
        line.run(inserting(0, "bad"), inserting(1, "good"), refusing(2), inserting(3, "bad"))
        assert line.told() == [told] * 4, "what a member read of the others was never committed, its error included"
        assert told is Raced or set(line.messages.values()) == {LOST_AT_COMMIT}
        assert count(database) == 0
        again = Line(database)
        again.run(inserting(4, "fine"), inserting(5, "also fine"))
        assert again.told() == [None, None]
        assert ids(database) == [4, 5]


def test_a_refusal_rests_on_what_is_committed(line: Line) -> None:
    """A member that refuses because of what one before it wrote is answered when that is kept."""
    told_first: list[int] = []

    def refusing_what_it_sees(tx: Transaction) -> None:
        assert tx.row(COUNT) == {"n": 1}
        raise Refused

    def last(tx: Transaction) -> None:
        told_first.extend(line.outcomes)
        inserting(2)(tx)

    line.run(inserting(0), refusing_what_it_sees, last)
    assert told_first == []
    assert line.told() == [None, Refused, None]


def test_orgs_and_keys_never_share(line: Line) -> None:
    database = line.database
    met = threading.Barrier(3)
    used: list[str] = []

    def member(org: str, key: str) -> None:
        with database.transaction(org, write=True, turn=(key,)) as tx:
            tx.lock(key)
            row = tx.row(TRANSACTION)
            assert row is not None
            used.append(str(row["id"]))
            inserting(1)(tx)
            met.wait(WAIT_S)

    assert together([lambda: member(ORG, "k"), lambda: member("rival", "k"), lambda: member("third", "other")]) == []
    assert len(set(used)) == 3
    assert [count(database, org) for org in (ORG, "rival", "third")] == [1, 1, 1]


def test_stamps_rise_over_members_and_those_of_an_undone_one_are_gone(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url, MIGRATIONS, replace(PATIENT, clock_ns=lambda: 2**60))
    with database.transaction(ORG, write=True) as tx:
        tx.outstrip(2**61)
    given: list[int] = []

    def stamped(tx: Transaction) -> None:
        tx.stamp_soon()
        tx.rows(COUNT)
        given.append(tx.stamp())
        inserting(given[-1])(tx)

    def undone(tx: Transaction) -> None:
        stamped(tx)
        given.append(tx.stamp())
        raise Refused

    line = Line(database)
    line.run(stamped, undone, stamped, undone, stamped)
    assert line.told() == [None, Refused, None, Refused, None]
    assert given == sorted(set(given))
    with database.transaction(ORG, write=True) as tx:
        assert tx.stamp() > given[-1]
    database.close()


def test_what_is_not_committed_is_not_remembered(line: Line, postgres_url: str) -> None:
    def first(tx: Transaction) -> None:
        tx.vectors.put(SHELF, 1, "young", [unit(1, 2, 3)])

    def second(tx: Transaction) -> None:
        tx.vectors.put(SHELF, 2, "young", [unit(1, 2, 4)])
        cut_connections(postgres_url)

    line.run(first, second)
    assert line.told() == [StoreError] * 2
    with line.database.transaction(ORG, write=True) as tx:
        tx.vectors.put(SHELF, 1, "young", [unit(1, 2)])
