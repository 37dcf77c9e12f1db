"""Calls that share one commit: all or none of it is kept, and nobody waits for ever."""

import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from store_kit import WAIT_S, together, until

from loom.storage.interface import StoreError
from loom.storage.sqlite.connection import connect, execute, set_pragma
from loom.storage.sqlite.settings import SqliteSettings
from loom.storage.sqlite.writer import Waits, Writer


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    opened = connect(tmp_path / "a.db", SqliteSettings(), write=True, busy_timeout_s=1)
    set_pragma(opened, "journal_mode = WAL")
    execute(opened, "CREATE TABLE t (a)")
    yield opened
    opened.close()


def kept(connection: apsw.Connection) -> list[int]:
    return [row[0] for row in execute(connection, "SELECT a FROM t ORDER BY a")]


def write(writer: Writer, number: int) -> None:
    with writer.call() as connection:
        execute(connection, "INSERT INTO t VALUES (?)", (number,))


def group_of(writer: Writer, count: int) -> list[Exception]:
    """Run `count` calls that are sure to wait for each other, and so to share transactions."""

    inside = threading.Event()

    def first() -> None:
        with writer.call() as connection:
            inside.set()
            until(lambda: writer.waiting_count() == count - 1)
            execute(connection, "INSERT INTO t VALUES (0)")

    def later(number: int) -> None:
        assert inside.wait(WAIT_S)
        write(writer, number)

    return together([first, *(lambda number=number: later(number) for number in range(1, count))])


def test_waiting_calls_share_commits(connection: apsw.Connection) -> None:
    commits: list[int] = []

    def committed(*_: object) -> int:
        commits.append(1)
        return 0

    connection.set_wal_hook(committed)
    assert group_of(Writer(connection, "a.db", 64, Waits(group_age_max_s=WAIT_S)), 10) == []
    assert kept(connection) == list(range(10))
    assert len(commits) == 1


def test_a_group_is_bounded(connection: apsw.Connection) -> None:
    commits: list[int] = []

    def committed(*_: object) -> int:
        commits.append(1)
        return 0

    connection.set_wal_hook(committed)
    assert group_of(Writer(connection, "a.db", 3, Waits(group_age_max_s=WAIT_S)), 9) == []
    assert kept(connection) == list(range(9))
    assert len(commits) == 3


def test_a_commit_that_fails_fails_for_the_whole_group(connection: apsw.Connection) -> None:
    connection.set_commit_hook(lambda: True)
    errors = group_of(Writer(connection, "a.db", 64, Waits(group_age_max_s=WAIT_S)), 6)
    connection.set_commit_hook(None)
    assert [type(error) for error in errors] == [StoreError] * 6
    assert kept(connection) == []
    writer = Writer(connection, "a.db", 64)
    write(writer, 1)
    assert kept(connection) == [1]


def test_what_sqlite_undid_by_itself_fails_for_the_whole_group(connection: apsw.Connection) -> None:
    writer = Writer(connection, "a.db", 64, Waits(group_age_max_s=WAIT_S))
    inside, go_on = threading.Event(), threading.Event()

    def first() -> None:
        with writer.call() as own:
            inside.set()
            assert go_on.wait(WAIT_S)
            execute(own, "INSERT INTO t VALUES (1)")

    def second() -> None:
        assert inside.wait(WAIT_S)
        with writer.call() as own:
            execute(own, "ROLLBACK")

    def release() -> None:
        until(lambda: writer.waiting_count() == 1)
        go_on.set()

    errors = together([first, second, release])
    assert [type(error) for error in errors] == [StoreError] * 2
    assert kept(connection) == []
    write(writer, 2)
    assert kept(connection) == [2]


def test_a_call_waits_for_its_turn_no_longer_than_its_bound(connection: apsw.Connection) -> None:
    writer = Writer(connection, "a.db", 64, Waits(turn_max_s=0.05))
    inside, refused = threading.Event(), threading.Event()

    def first() -> None:
        with writer.call() as own:
            execute(own, "INSERT INTO t VALUES (1)")
            inside.set()
            assert refused.wait(WAIT_S)

    def second() -> None:
        assert inside.wait(WAIT_S)
        with pytest.raises(StoreError, match="busy"):
            write(writer, 2)
        refused.set()

    assert together([first, second]) == []
    write(writer, 3)
    assert kept(connection) == [1, 3]


def test_a_call_waits_for_the_commit_no_longer_than_its_bound(connection: apsw.Connection) -> None:
    writer = Writer(connection, "a.db", 64, Waits(commit_max_s=0.05, group_age_max_s=WAIT_S))
    inside, told = threading.Event(), threading.Event()

    def first() -> None:
        with writer.call() as own:
            inside.set()
            until(lambda: writer.waiting_count() == 1)
            execute(own, "INSERT INTO t VALUES (1)")

    def slow() -> None:
        assert inside.wait(WAIT_S)
        with writer.call() as own:
            execute(own, "INSERT INTO t VALUES (2)")
            assert told.wait(WAIT_S)

    def refused_first() -> None:
        with pytest.raises(StoreError, match="did not commit in time"):
            first()
        told.set()

    def refused_slow() -> None:
        with pytest.raises(StoreError, match="did not commit in time"):
            slow()

    assert together([refused_first, refused_slow]) == []
    assert kept(connection) == [], "a call that was told of failure must not be kept"
    write(writer, 3)
    assert kept(connection) == [3]
