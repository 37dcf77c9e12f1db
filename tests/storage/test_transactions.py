"""What every engine promises about transactions."""

import threading

import pytest
from store_kit import COUNT, IDS, INSERT, ORG, SHELF, WAIT_S, Engine, add, asking, count, text, together, undone

from loom.storage.interface import SYSTEM_ORG, Database, StoreError

INCREMENT = """
INSERT INTO counter (org, name, value) VALUES (:org, :name, 1)
ON CONFLICT (org, name) DO UPDATE SET value = counter.value + 1 RETURNING value
"""


def test_a_write_is_there_after_opening_again(engine: Engine) -> None:
    first = engine.open()
    item_id = add(first, "kept")
    first.close()
    second = engine.open()
    with second.transaction(ORG, write=False) as transaction:
        rows = transaction.rows("SELECT id, body FROM item WHERE org = :org")
    second.close()
    assert [dict(row) for row in rows] == [{"id": item_id, "body": "kept"}]


def test_rows_row_run_and_run_many_say_what_they_did(database: Database) -> None:
    with database.transaction(ORG, write=True) as transaction:
        transaction.run_many(INSERT, ({"id": number, "body": "a"} for number in range(5)))
        assert transaction.run("UPDATE item SET body = :body WHERE org = :org AND id < :id", body="b", id=2) == 2
        assert transaction.run("UPDATE item SET body = :body WHERE org = :org AND id > :id", body="b", id=99) == 0
        assert transaction.row("SELECT body FROM item WHERE org = :org AND id = :id", id=1) == {"body": "b"}
        assert transaction.row("SELECT body FROM item WHERE org = :org AND id = :id", id=77) is None
        assert transaction.rows("SELECT body FROM item WHERE org = :org AND id = :id", id=77) == []
        with pytest.raises(AssertionError):
            transaction.row("SELECT id FROM item WHERE org = :org")


def test_returning_gives_rows(database: Database) -> None:
    for expected in (1, 2, 3):
        with database.transaction(ORG, write=True) as transaction:
            assert transaction.row(INCREMENT, name="n") == {"value": expected}


def test_a_list_is_bound_whole_however_long(database: Database) -> None:
    with database.transaction(ORG, write=True) as transaction:
        transaction.run_many(INSERT, ({"id": number, "body": f"b'{number}"} for number in range(10)))
        by_id = "SELECT id FROM item WHERE org = :org AND id IN (:ids) ORDER BY id"
        assert [row["id"] for row in transaction.rows(by_id, ids=[3, 5, *range(100, 70_000)])] == [3, 5]
        assert transaction.rows(by_id, ids=[]) == []
        by_body = "SELECT id FROM item WHERE org = :org AND body IN (:bodies)"
        assert transaction.row(by_body, bodies=["b'7", 'b"8', "') OR 1=1 --"]) == {"id": 7}
        assert transaction.run("DELETE FROM item WHERE org = :org AND id IN (:ids)", ids=[1, 2, 77]) == 2


def test_any_sequence_is_a_list(database: Database) -> None:
    with database.transaction(ORG, write=True) as transaction:
        transaction.run_many(INSERT, ({"id": number, "body": f"b{number}"} for number in range(10)))
        by_id = "SELECT id FROM item WHERE org = :org AND id IN (:ids) ORDER BY id"
        for ids in ([3, 5, 77], (3, 5, 77), range(3, 6, 2)):
            assert [row["id"] for row in transaction.rows(by_id, ids=ids)] == [3, 5]
            assert [row["id"] for row in transaction.claim(by_id, ids=ids)] == [3, 5]
        assert transaction.rows(by_id, ids=()) == []
        by_body = "SELECT id FROM item WHERE org = :org AND body IN (:bodies)"
        assert transaction.row(by_body, bodies=("b7", "b77")) == {"id": 7}
        change = "UPDATE item SET body = :body WHERE org = :org AND id IN (:ids)"
        assert transaction.run(change, body="changed", ids=(1, 2)) == 2
        transaction.send(change, body="changed", ids=(3, 4))
        transaction.send_last(change, body="changed", ids=(5,))
    with database.transaction(ORG, write=False) as transaction:
        changed = transaction.rows("SELECT id FROM item WHERE org = :org AND body = 'changed' ORDER BY id")
    assert [row["id"] for row in changed] == [1, 2, 3, 4, 5]


def test_stamps_outstrip_a_number_brought_in(database: Database) -> None:
    far = 2**62
    with database.transaction(ORG, write=True) as transaction:
        transaction.outstrip(far)
        transaction.outstrip(5)
        assert transaction.stamp() == far + 1
    assert add(database, "x") == far + 2


def test_the_org_cannot_be_bound_by_a_caller(database: Database) -> None:
    with database.transaction(ORG, write=True) as transaction:
        with pytest.raises(ValueError, match="org"):
            transaction.run(INSERT, org="evil", id=1, body="x")
        assert transaction.org == ORG


def test_an_error_undoes_the_whole_transaction(database: Database) -> None:
    add(database, "before")
    with undone(database) as transaction:
        transaction.run(INSERT, id=1, body="undone")
        transaction.text.put(SHELF, 1, text("undone"))
    assert count(database) == 1
    with database.transaction(ORG, write=False) as transaction:
        assert transaction.text.best(SHELF, asking("undone"), 5) == ()


def test_one_call_of_a_group_is_undone_alone(database: Database) -> None:
    entered, others_wait = threading.Event(), threading.Event()

    def first() -> None:
        with database.transaction(ORG, write=True) as transaction:
            entered.set()
            assert others_wait.wait(WAIT_S)
            transaction.run(INSERT, id=1000, body="first")

    def fails(number: int) -> None:
        entered.wait(WAIT_S)
        others_wait.set()
        with undone(database) as transaction:
            transaction.run(INSERT, id=number, body="undone")
            transaction.text.put(SHELF, number, text("undone"))

    def works(number: int) -> None:
        entered.wait(WAIT_S)
        with database.transaction(ORG, write=True) as transaction:
            transaction.run(INSERT, id=number, body="kept")
            transaction.text.put(SHELF, number, text("kept"))

    errors = together(
        [first, *(lambda n=n: fails(n) for n in range(4)), *(lambda n=n: works(n) for n in range(100, 108))]
    )
    assert errors == []
    with database.transaction(ORG, write=False) as transaction:
        assert [row["id"] for row in transaction.rows(IDS)] == [*range(100, 108), 1000]
        found = transaction.text.best(SHELF, asking("kept undone"), 50)
    assert sorted(one.item_id for one in found) == list(range(100, 108))


def test_sixteen_threads_lose_nothing(engine: Engine) -> None:
    database = engine.open()
    acknowledged: list[int] = []

    def write() -> None:
        for number in range(25):
            acknowledged.append(add(database, f"{number}"))
            with database.transaction(ORG, write=True) as transaction:
                transaction.lock("counter", "n")
                transaction.row(INCREMENT, name="n")

    assert together([write] * 16) == []
    database.close()
    again = engine.open()
    with again.transaction(ORG, write=False) as transaction:
        assert [row["id"] for row in transaction.rows(IDS)] == sorted(acknowledged)
        assert transaction.row("SELECT value FROM counter WHERE org = :org") == {"value": 400}
    again.close()
    assert len(set(acknowledged)) == 400


def test_nobody_sees_success_before_a_reader_sees_the_row(database: Database) -> None:
    def write_and_read() -> None:
        for _ in range(10):
            item_id = add(database, "x")
            with database.transaction(ORG, write=False) as transaction:
                row = transaction.row("SELECT id FROM item WHERE org = :org AND id = :id", id=item_id)
            assert row is not None

    assert together([write_and_read] * 8) == []


def test_a_read_sees_one_moment(database: Database) -> None:
    add(database, "one")
    with database.transaction(ORG, write=False) as transaction:
        assert transaction.row(COUNT) == {"n": 1}
        assert together([lambda: add(database, "two")]) == []
        assert transaction.row(COUNT) == {"n": 1}
    assert count(database) == 2


def test_a_read_moment_is_the_begin(database: Database) -> None:
    add(database, "one")
    with database.transaction(ORG, write=False) as transaction:
        assert together([lambda: add(database, "two")]) == []
        assert transaction.row(COUNT) == {"n": 1}


def test_a_second_transaction_inside_the_first_is_refused_at_once(database: Database) -> None:
    for outer in (True, False):
        for inner in (True, False):
            with (
                database.transaction(ORG, write=outer),
                pytest.raises(RuntimeError, match="already"),
                database.transaction("other", write=inner),
            ):
                pass
    add(database, "works again")


def test_upkeep_and_closing_inside_a_transaction_are_refused_at_once(database: Database) -> None:
    with database.transaction(ORG, write=True):
        for work in (database.maintain, database.check, database.close):
            with pytest.raises(RuntimeError, match="already"):
                work()


def test_a_read_transaction_cannot_write(database: Database) -> None:
    add(database, "one")
    with database.transaction(ORG, write=False) as transaction:
        for write in (
            lambda: transaction.run(INSERT, id=1, body="x"),
            lambda: transaction.run_many(INSERT, [{"id": 1, "body": "x"}]),
            lambda: transaction.rows(f"{INSERT} RETURNING id", id=1, body="x"),
            transaction.stamp,
            lambda: transaction.lock("a"),
            lambda: transaction.text.put(SHELF, 1, text("a")),
            lambda: transaction.vectors.remove(SHELF, 1),
        ):
            with pytest.raises(RuntimeError, match="write"):
                write()
    assert count(database) == 1


def test_a_transaction_is_of_no_use_after_its_end(database: Database) -> None:
    with database.transaction(ORG, write=True) as transaction:
        pass
    with pytest.raises(RuntimeError, match="ended"):
        transaction.rows(IDS)


def test_orgs_do_not_see_each_other(database: Database) -> None:
    orgs = ["acme", "Acme", "acme/../x", "a" * 300, "ünï", "..", SYSTEM_ORG]
    for number, org in enumerate(orgs):
        with database.transaction(org, write=True) as transaction:
            transaction.run(INSERT, id=number, body=org)
            transaction.text.put(SHELF, number, text("shared"))
    for number, org in enumerate(orgs):
        with database.transaction(org, write=False) as transaction:
            assert transaction.rows("SELECT id, body FROM item") == [{"id": number, "body": org}]
            assert [one.item_id for one in transaction.text.best(SHELF, asking("shared"), 9)] == [number]
    assert list(database.orgs()) == sorted(orgs[:-1])


def test_a_read_of_an_unknown_org_finds_nothing_and_makes_nothing(database: Database) -> None:
    assert count(database, "nobody") == 0
    with database.transaction("nobody", write=False) as transaction:
        assert transaction.text.best(SHELF, asking("x"), 5) == ()
    assert list(database.orgs()) == []


def test_stamps_rise_over_two_openers_and_a_clock_that_goes_back(engine: Engine) -> None:
    ticks = iter([5_000, 4_000, 3_000_000_000_000_000_000, 1, 2, 3_000_000_000_000_000_000, 0])
    clock = lambda: next(ticks)  # noqa: E731 - one clock for both
    first, second = engine.open(clock_ns=clock), engine.open(clock_ns=clock)
    given = [add(database, "x") for database in (first, second, first, second, first, second, first)]
    assert given == sorted(set(given))
    assert given[0] > 2**53
    assert given[2] == 3_000_000_000_000_000_000
    first.close()
    second.close()


def test_an_undone_stamp_is_not_given_again(engine: Engine) -> None:
    database = engine.open(clock_ns=lambda: 2**60)
    given: list[int] = []
    for _ in range(3):
        with undone(database) as transaction:
            given.extend((transaction.stamp(), transaction.stamp()))
    assert given == list(range(2**60, 2**60 + 6))
    assert add(database, "x") > given[-1]
    database.close()


def test_two_openers_see_each_other(engine: Engine) -> None:
    first, second = engine.open(), engine.open()
    add(first, "one")
    assert count(second) == 1
    add(second, "two")
    assert count(first) == 2
    first.close()
    second.close()


def test_a_sound_store_has_nothing_to_report(database: Database) -> None:
    add(database, "x")
    database.maintain()
    assert list(database.check()) == []
    assert count(database) == 1


def test_after_close_nothing_is_served(engine: Engine) -> None:
    database = engine.open()
    add(database, "x")
    database.close()
    for write in (True, False):
        with pytest.raises(StoreError, match="closed"), database.transaction(ORG, write=write):
            pass
    with pytest.raises(StoreError, match="closed"):
        database.orgs()


def test_a_look_is_one_row_of_ones_own_org(database: Database) -> None:
    add(database, "mine")
    add(database, "theirs", org="rival")
    sql = "SELECT body FROM item WHERE org = :org AND body = :body"
    assert database.look(ORG, sql, body="mine") == {"body": "mine"}
    assert database.look(ORG, sql, body="theirs") is None
    assert database.look("rival", sql, body="theirs") == {"body": "theirs"}
    add(database, "mine")
    with pytest.raises(AssertionError):
        database.look(ORG, sql, body="mine")
    with database.transaction(ORG, write=False), pytest.raises(RuntimeError):
        database.look(ORG, sql, body="mine")


def test_a_closed_store_gives_no_look(database: Database, engine: Engine) -> None:
    del database
    other = engine.open()
    other.close()
    with pytest.raises(StoreError):
        other.look(ORG, COUNT)
