"""Work that goes on beside a transaction."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from store_kit import MIGRATIONS, ORG, SHELF, WAIT_S, random_units

from loom.storage.indexes import Scored
from loom.storage.sqlite.beside import THREADS_MAX, Beside
from loom.storage.sqlite.engine import SqliteDatabase
from loom.storage.sqlite.vector_index import BESIDE_FROM_ROWS

FOUND = [Scored(1, 0.5)]


@pytest.fixture
def beside() -> Iterator[Beside]:
    threads = Beside()
    yield threads
    threads.close()


class Held:
    """Work that lasts until it is let go; notes who did it."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.by: list[int] = []

    def __call__(self) -> Sequence[Scored]:
        self.by.append(threading.get_ident())
        assert self.go.wait(WAIT_S)
        return FOUND


def test_it_goes_on_while_the_caller_does_something_else(beside: Beside) -> None:
    work = Held()
    later = beside.begin(work)
    work.go.set()
    assert later() == FOUND
    assert work.by != [threading.get_ident()]


def test_nothing_waits_in_a_queue_when_every_thread_is_busy(beside: Beside) -> None:
    held = [Held() for _ in range(THREADS_MAX)]
    begun = [beside.begin(work) for work in held]
    here: list[int] = []

    def work() -> Sequence[Scored]:
        here.append(threading.get_ident())
        return FOUND

    assert beside.begin(work)() == FOUND
    assert here == [threading.get_ident()]
    for one in held:
        one.go.set()
    assert [later() for later in begun] == [FOUND] * THREADS_MAX
    again = Held()
    again.go.set()
    assert beside.begin(again)() == FOUND
    assert again.by != [threading.get_ident()], "a thread whose work is done is free again"


def test_what_goes_wrong_is_told_where_the_answer_is_wanted(beside: Beside) -> None:
    def work() -> Sequence[Scored]:
        raise ValueError("no")

    for _ in range(2 * THREADS_MAX):
        later = beside.begin(work)
        with pytest.raises(ValueError, match="no"):
            later()


def test_it_answers_after_the_end_too(beside: Beside) -> None:
    beside.close()
    assert beside.begin(lambda: FOUND)() == FOUND


def test_a_large_shelf_gives_the_same_beside_as_at_once(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path, MIGRATIONS)
    vectors = random_units(BESIDE_FROM_ROWS + 500, 8, seed=3)
    with database.transaction(ORG, write=True) as transaction:
        for item_id in range(0, len(vectors), 500):
            transaction.vectors.put(SHELF, item_id, "s", vectors[item_id : item_id + 500])
    with database.transaction(ORG, write=False) as transaction:
        laters = [transaction.vectors.begin(SHELF, "s", vector, 7) for vector in vectors[:20]]
        assert [later() for later in laters] == [transaction.vectors.best(SHELF, "s", one, 7) for one in vectors[:20]]
    database.close()
