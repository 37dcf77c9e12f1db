"""A copy of the embedded store that is taken while it is written to, and the store that is made of it."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from loom.storage.interface import SYSTEM_ORG, Database, StoreError
from loom.storage.migrate import Migration, from_package
from loom.storage.sqlite import SqliteDatabase
from loom.storage.sqlite.backup import FILES_FOLDER, MANIFEST, backup, restore

WRITERS = 4
WAIT_S = 60.0
ROW = """
INSERT INTO namespace (org, name, kind, description, created_at, last_version)
VALUES (:org, :name, 'memory', :description, 0, :number)
"""
NUMBERS = "SELECT name, last_version FROM namespace WHERE org = :org ORDER BY name"


def opened(folder: Path) -> SqliteDatabase:
    return SqliteDatabase(folder, from_package("loom"))


def nobody(name: str, done: int, total: int) -> None:
    """Look at no progress."""
    assert done >= 0
    assert total > 0
    assert name.endswith(".db")


def put(database: Database, org: str, name: str, number: int = 0) -> None:
    with database.transaction(org, write=True) as tx:
        tx.run(ROW, name=name, number=number, description="x" * 2_000)


def names(database: Database, org: str) -> list[str]:
    with database.transaction(org, write=False) as tx:
        return [str(row["name"]) for row in tx.rows(NUMBERS)]


def test_a_backup_taken_during_writes_holds_all_that_was_acknowledged_before_it(tmp_path: Path) -> None:
    database = opened(tmp_path / "store")
    acknowledged = dict.fromkeys(range(WRITERS), 0)
    stop, begun = threading.Event(), threading.Event()

    def write(writer: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            put(database, "dev", f"{writer}-{number:06}", number)
            acknowledged[writer] = number
            if number > 50:
                begun.set()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        assert begun.wait(WAIT_S)
        put(database, SYSTEM_ORG, "tokens")
        before = dict(acknowledged)
        copied = backup(tmp_path / "store", tmp_path / "copy", nobody)
        after = dict(acknowledged)
    finally:
        stop.set()
        for thread in threads:
            thread.join(WAIT_S)
    database.close()
    assert len(copied) == 2
    restore(tmp_path / "copy", tmp_path / "again" / "store", from_package("loom"), nobody)
    again = opened(tmp_path / "again" / "store")
    assert again.check() == []
    assert names(again, SYSTEM_ORG) == ["tokens"]
    held = names(again, "dev")
    for writer in range(WRITERS):
        mine = [int(name.partition("-")[2]) for name in held if name.startswith(f"{writer}-")]
        assert mine == list(range(1, len(mine) + 1)), "no gap: it is one moment"
        assert before[writer] <= len(mine)
    assert sum(after.values()) > 0
    put(again, "dev", "later")
    again.close()


def test_a_backup_is_private_and_alone(tmp_path: Path) -> None:
    database = opened(tmp_path / "store")
    put(database, "dev", "one")
    backup(tmp_path / "store", tmp_path / "copy", nobody)
    database.close()
    there = sorted(path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*"))
    assert [name.rpartition("/")[0] for name in there] == ["", "", FILES_FOLDER]
    assert (tmp_path / "copy").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "copy").rglob("*.db"))
    assert not (tmp_path / "copy.unfinished").exists()


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    database = opened(tmp_path / "store")
    put(database, "dev", "one")
    (tmp_path / "copy").mkdir()
    backup(tmp_path / "store", tmp_path / "copy", nobody)
    with pytest.raises(StoreError, match="not empty"):
        backup(tmp_path / "store", tmp_path / "copy", nobody)
    with pytest.raises(StoreError, match="holds a store already"):
        restore(tmp_path / "copy", tmp_path / "store", from_package("loom"), nobody)
    assert names(database, "dev") == ["one"]
    database.close()
    with pytest.raises(StoreError, match="nothing to back up"):
        backup(tmp_path / "none", tmp_path / "other", nobody)


def shorter(copy: Path) -> None:
    path = next(copy.rglob("*.db"))
    path.write_bytes(path.read_bytes()[:-1])


def changed(copy: Path) -> None:
    path = next(copy.rglob("*.db"))
    content = bytearray(path.read_bytes())
    content[5_000] ^= 1
    path.write_bytes(content)


def missing(copy: Path) -> None:
    next(copy.rglob("*.db")).unlink()


def unlisted(copy: Path) -> None:
    (copy / MANIFEST).unlink()


def outside(copy: Path) -> None:
    relisted(copy, name="../../out.db")


def empty(copy: Path) -> None:
    (copy / MANIFEST).write_text(json.dumps({"format": 1, "files": []}))


def newer(copy: Path) -> None:
    (copy / MANIFEST).write_text(json.dumps({"format": 2, "files": []}))


def renamed(copy: Path) -> None:
    """The org's file under a name that nothing finds."""
    path = next(copy.rglob("*.db"))
    path.rename(path.with_name("other-0000000000000000.db"))
    relisted(copy, name="other-0000000000000000.db")


def relisted(copy: Path, **change: str) -> None:
    manifest = json.loads((copy / MANIFEST).read_text())
    manifest["files"][0] |= change
    (copy / MANIFEST).write_text(json.dumps(manifest))


@pytest.mark.parametrize("spoil", [shorter, changed, missing, unlisted, outside, empty, newer, renamed])
def test_a_spoiled_backup_leaves_nothing_behind(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    database = opened(tmp_path / "store")
    put(database, "dev", "one")
    backup(tmp_path / "store", tmp_path / "copy", nobody)
    database.close()
    spoil(tmp_path / "copy")
    (tmp_path / "home").mkdir()
    with pytest.raises(StoreError):
        restore(tmp_path / "copy", tmp_path / "home" / "store", from_package("loom"), nobody)
    assert list((tmp_path / "home").iterdir()) == []


def test_a_backup_of_a_newer_program_is_not_restored(tmp_path: Path) -> None:
    known = from_package("loom")
    database = SqliteDatabase(tmp_path / "store", [*known, Migration(9_000, "later", "CREATE TABLE later (a TEXT)")])
    put(database, "dev", "one")
    backup(tmp_path / "store", tmp_path / "copy", nobody)
    database.close()
    with pytest.raises(StoreError, match="newer Loom"):
        restore(tmp_path / "copy", tmp_path / "home" / "store", known, nobody)
    assert not (tmp_path / "home" / "store").exists()
