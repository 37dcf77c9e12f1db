"""How long and how many writers that take turns wait, what they hold meanwhile, and what goes with their commit."""

import threading
from dataclasses import replace

import pytest
from store_kit import COUNT, INSERT, MIGRATIONS, ORG, SHELF, WAIT_S, Refused, asking, count, text, together, until
from turns_kit import (
    KEY,
    PATIENT,
    Line,
    ids,
    in_another_thread,
    inserting,
    opened,
    refusing,
)

from loom.storage.interface import Raced, StoreError, Transaction
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.settings import PostgresSettings

BUMP = """
INSERT INTO counter (org, name, value) VALUES (:org, :name, 1)
ON CONFLICT (org, name) DO UPDATE SET value = counter.value + 1
"""


def test_members_are_bounded_in_number(postgres_url: str) -> None:
    with opened(postgres_url, replace(PATIENT, together_max=3)) as database:
        line = Line(database)
        line.run(*(inserting(number) for number in range(9)))
        assert line.told() == [None] * 9
        used = [line.transactions[number] for number in range(9)]
        assert [used[0:3].count(used[0]), used[3:6].count(used[3]), used[6:9].count(used[6])] == [3, 3, 3]
        assert len(set(used)) == 3


def test_members_are_bounded_in_time(postgres_url: str) -> None:
    with opened(postgres_url, PostgresSettings(together_s=0)) as database:
        line = Line(database)
        line.run(*(inserting(number) for number in range(6)))
        assert line.told() == [None] * 6
        assert len(set(line.transactions.values())) > 1
        assert count(database) == 6


def test_a_turn_is_waited_for_no_longer_than_its_bound(postgres_url: str) -> None:
    inside, refused = threading.Event(), threading.Event()
    with opened(postgres_url, replace(PATIENT, turn_wait_s=0.05)) as database:

        def first() -> None:
            with database.transaction(ORG, write=True, turn=KEY) as tx:
                inserting(1)(tx)
                inside.set()
                assert refused.wait(WAIT_S)

        def second() -> None:
            assert inside.wait(WAIT_S)
            with (
                pytest.raises(StoreError, match="busy"),
                database.transaction(ORG, write=True, turn=KEY) as tx,
            ):
                inserting(2)(tx)
            refused.set()

        assert together([first, second]) == []
        assert ids(database) == [1]


def test_a_line_has_room_for_so_many(postgres_url: str) -> None:
    with opened(postgres_url, replace(PATIENT, waiting_max=2)) as database:

        def first(tx: Transaction) -> None:
            inserting(0)(tx)

            def one_more() -> None:
                with (
                    pytest.raises(StoreError, match="Too many"),
                    database.transaction(ORG, write=True, turn=KEY) as other,
                ):
                    inserting(9)(other)

            in_another_thread(one_more)

        line = Line(database)
        line.run(first, inserting(1), inserting(2))
        assert line.told() == [None] * 3


def test_a_commit_is_waited_for_no_longer_than_its_bound(postgres_url: str) -> None:
    with opened(postgres_url, replace(PATIENT, commit_wait_s=0.05)) as database:
        line = Line(database)

        def slow(tx: Transaction) -> None:
            inserting(1)(tx)
            until(lambda: 0 in line.outcomes)

        line.run(inserting(0), slow)
        assert line.told() == [StoreError] * 2
        assert all("did not commit in time" in one for one in line.messages.values())
        assert count(database) == 0, "one that was told of failure must not be kept"
        again = Line(database)
        again.run(inserting(3))
        assert again.told() == [None]


def test_those_who_wait_hold_no_connection(postgres_url: str) -> None:
    with opened(
        postgres_url, replace(PATIENT, connections_max=2, waiting_max=64, connection_wait_s=WAIT_S)
    ) as database:
        seen: list[int] = []

        def first(tx: Transaction) -> None:
            inserting(0)(tx)
            in_another_thread(lambda: seen.append(count(database)))

        line = Line(database)
        line.run(first, *(inserting(number) for number in range(1, 12)))
        assert line.told() == [None] * 12
        assert seen == [0]


def test_a_lock_outlives_a_member_that_is_undone(line: Line, postgres_url: str) -> None:
    """The other process gets in when all is committed, not when one member was undone."""
    tried: list[str] = []

    def last(tx: Transaction) -> None:
        with opened(postgres_url, PostgresSettings(lock_timeout_s=1)) as other:

            def barge() -> None:
                try:
                    with other.transaction(ORG, write=True) as own:
                        own.lock(*KEY)
                        own.rows(COUNT)
                        tried.append("in")
                except StoreError:
                    tried.append("kept out")

            in_another_thread(barge)
        inserting(2)(tx)

    line.run(inserting(0), refusing(1), last)
    assert line.told() == [None, Refused, None]
    assert tried == ["kept out"]


def test_a_deadlock_undoes_one_member_alone(line: Line, postgres_url: str) -> None:
    """Another process holds what a later member wants, and waits for what the group holds."""
    holds, waits = threading.Event(), threading.Event()
    told: list[str] = []
    with opened(postgres_url) as other:

        def crosses() -> None:
            assert holds.wait(WAIT_S)
            try:
                with other.transaction(ORG, write=True) as tx:
                    tx.lock("cross")
                    tx.rows(COUNT)
                    waits.set()
                    tx.lock(*KEY)
                    tx.rows(COUNT)
                told.append("kept")
            except Raced:
                told.append("raced")

        thread = threading.Thread(target=crosses, daemon=True)
        thread.start()

        def first(tx: Transaction) -> None:
            inserting(0)(tx)
            holds.set()
            assert waits.wait(WAIT_S)

        def second(tx: Transaction) -> None:
            tx.lock("cross")
            inserting(1)(tx)

        line.run(first, second, inserting(2))
        thread.join(WAIT_S)
        told.append("kept" if line.outcomes[1] is None else "raced")
        assert line.told()[0] is line.told()[2] is None
        assert sorted(told) == ["kept", "raced"]
        assert ids(line.database) == ([0, 1, 2] if line.outcomes[1] is None else [0, 2])


def test_a_store_that_closes_lets_nobody_hang(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url, MIGRATIONS, PostgresSettings(together_s=0))
    line = Line(database)

    def first(tx: Transaction) -> None:
        inserting(0)(tx)
        in_another_thread(database.close)

    line.run(first, inserting(1), inserting(2))
    assert line.told()[0] is None
    with opened(postgres_url) as again:
        assert ids(again) == [number for number in range(3) if line.outcomes[number] is None]


def test_what_goes_last_holds_no_row_before_the_commit(line: Line, postgres_url: str) -> None:
    counted: list[int] = []

    def last(tx: Transaction) -> None:
        with opened(postgres_url, PostgresSettings(lock_timeout_s=1)) as other:
            in_another_thread(lambda: bump(other, counted))
        tx.send_last(BUMP, name="n")

    bump(line.database, counted)
    line.run(lambda tx: tx.send_last(BUMP, name="n"), inserting(1), last)
    assert line.told() == [None] * 3
    bump(line.database, counted)
    assert counted == [1, 2, 5]


def test_what_goes_last_goes_only_for_those_who_are_kept(line: Line) -> None:
    counted: list[int] = []

    def undone(tx: Transaction) -> None:
        tx.send_last(BUMP, name="n")
        raise Refused

    line.run(undone, lambda tx: tx.send_last(BUMP, name="n"), undone, lambda tx: tx.send_last(BUMP, name="n"), undone)
    assert line.told() == [Refused, None, Refused, None, Refused]
    bump(line.database, counted)
    assert counted == [3]


def test_of_an_items_words_the_last_ones_kept_are_found(line: Line) -> None:
    def found(word: str) -> list[int]:
        with line.database.transaction(ORG, write=False) as tx:
            return sorted(one.item_id for one in tx.text.best(SHELF, asking(word), 9))

    def undone(tx: Transaction) -> None:
        tx.text.put(SHELF, 1, text("taken back"))
        tx.text.remove(SHELF, 2)
        raise Refused

    line.run(
        lambda tx: (tx.text.put(SHELF, 1, text("first")), tx.text.put(SHELF, 2, text("stays"))),
        lambda tx: (tx.text.put(SHELF, 1, text("second")), tx.text.put(SHELF, 3, text("goes"))),
        undone,
        lambda tx: tx.text.remove(SHELF, 3),
        lambda tx: tx.text.put(SHELF, 4, text("late")),
    )
    assert line.told() == [None, None, Refused, None, None]
    assert {word: found(word) for word in ("first", "second", "stays", "goes", "late", "taken")} == {
        "first": [], "second": [1], "stays": [2], "goes": [], "late": [4], "taken": []
    }  # fmt: skip
    line.run(lambda tx: tx.text.remove(SHELF, 1), lambda tx: tx.text.put(SHELF, 1, text("again")))
    assert (found("second"), found("again")) == ([], [1])


def test_what_fails_with_the_commit_fails_for_all(line: Line) -> None:
    def failing(tx: Transaction) -> None:
        inserting(1)(tx)
        tx.send_last(INSERT, id=0, body="x")

    line.run(inserting(0), failing, inserting(2))
    assert line.told() == [Raced] * 3
    assert ids(line.database) == []
    again = Line(line.database)
    again.run(inserting(0), inserting(1), failing)
    assert again.told() == [None, None, Raced], "that of the last one is its own"
    assert ids(line.database) == [0, 1]


def bump(database: PostgresDatabase, counted: list[int]) -> None:
    """Count one more in a transaction that stands for itself."""
    with database.transaction(ORG, write=True) as tx:
        row = tx.row(f"{BUMP} RETURNING value", name="n")
    assert row is not None
    counted.append(int(str(row["value"])))
