"""Several processes at one folder, and processes that are killed."""

import subprocess
import sys
from pathlib import Path

import pytest
from store_kit import IDS, MIGRATIONS, ORG, SHELF, asking, unit

from loom.storage.sqlite import SqliteDatabase

WRITER = Path(__file__).with_name("writing_process.py")
WAIT_S = 60.0

pytestmark = pytest.mark.slow


def start(folder: Path, threads: int, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(folder), str(threads), str(count)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(WRITER.parent)},
    )


def ids_in(printed: str) -> list[int]:
    """Every wholly printed id; the last line of a killed process may be cut."""
    return [int(line) for line in printed.splitlines(keepends=True) if line.endswith("\n")]


def agree(database: SqliteDatabase) -> set[int]:
    """The ids of the rows, after seeing that both indexes hold the same."""
    with database.transaction(ORG, write=False) as transaction:
        kept = {int(str(row["id"])) for row in transaction.rows(IDS)}
        words = {one.item_id for one in transaction.text.best(SHELF, asking("shared"), 100_000)}
        vectors = {one.item_id for one in transaction.vectors.best(SHELF, "s", unit(1, 1), 100_000)}
        own = transaction.text.best(SHELF, asking(f"w{max(kept, default=0)}"), 5)
    assert words == kept
    assert vectors == kept
    assert [one.item_id for one in own] == ([max(kept)] if kept else [])
    assert list(database.check()) == []
    return kept


def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    acknowledged: set[int] = set()
    for wanted in (1, 40, 150):
        process = start(tmp_path / "store", 4, 100_000)
        assert process.stdout is not None
        printed = "".join(process.stdout.readline() for _ in range(wanted))
        process.kill()
        printed += process.stdout.read()
        process.wait(WAIT_S)
        process.stdout.close()
        assert process.returncode == -9
        acknowledged.update(ids_in(printed))
        database = SqliteDatabase(tmp_path / "store", MIGRATIONS)
        kept = agree(database)
        database.close()
        assert acknowledged <= kept
        # At most the call each thread was in may be there without its answer.
        assert len(kept - acknowledged) <= 4 * 3


def test_processes_that_begin_at_once_share_one_new_store(tmp_path: Path) -> None:
    processes = [start(tmp_path / "store", 2, 40) for _ in range(3)]
    given = [ids_in(process.communicate(timeout=WAIT_S)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    together = [item_id for one in given for item_id in one]
    assert len(set(together)) == len(together) == 3 * 80
    database = SqliteDatabase(tmp_path / "store", MIGRATIONS)
    assert agree(database) == set(together)
    database.close()


def test_a_process_is_not_starved_by_another(tmp_path: Path) -> None:
    busy = start(tmp_path / "store", 8, 100_000)
    assert busy.stdout is not None
    busy.stdout.readline()
    modest = start(tmp_path / "store", 1, 30)
    # A pipe nobody reads would stop the busy one.
    drain = subprocess.Popen(["cat"], stdin=busy.stdout, stdout=subprocess.DEVNULL)
    try:
        printed, _ = modest.communicate(timeout=WAIT_S)
    finally:
        busy.kill()
        busy.wait(WAIT_S)
        busy.stdout.close()
        drain.wait(WAIT_S)
    assert modest.returncode == 0
    assert len(ids_in(printed)) == 30
