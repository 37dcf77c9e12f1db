"""Upkeep of files that nobody uses."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_kit import MIGRATIONS, ORG, SHELF, add, text
from test_sqlite_files import NAME, bytes_in, secret

from loom.storage.sqlite import SqliteDatabase, SqliteSettings, text_index
from loom.storage.sqlite import engine as sqlite_engine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def database(folder: Path) -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase(folder, MIGRATIONS)
    yield opened
    opened.close()


@pytest.mark.parametrize("closed", [True, False])
def test_what_was_left_to_scrub_is_done_by_a_process_that_never_used_the_file(
    database: SqliteDatabase, folder: Path, monkeypatch: pytest.MonkeyPatch, *, closed: bool
) -> None:
    monkeypatch.setattr(text_index, "SCRUB_AT_ONCE_ROWS_MAX", 0)
    secrets = {number: secret(number) for number in range(30)}
    with database.transaction(ORG, write=True) as transaction:
        for number, word in secrets.items():
            transaction.text.put(SHELF, number, text(f"common {word}"))
    with database.transaction(ORG, write=True) as transaction:
        transaction.text.remove(SHELF, 3)
        transaction.text.scrub(SHELF)
    if closed:
        database.close()
        assert not (folder / f"{NAME}-wal").exists()
    assert secrets[3][6:].encode() in bytes_in(folder)
    other = SqliteDatabase(folder, MIGRATIONS)
    other.maintain()
    left = bytes_in(folder)
    assert secrets[3][6:].encode() not in left
    assert secrets[4][6:].encode() in left
    other.close()


def test_files_that_nobody_uses_have_their_upkeep_in_turn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_engine, "IDLE_FILES_MAX", 2)
    first = SqliteDatabase(folder, MIGRATIONS)
    for number in range(5):
        add(first, "x", org=f"org{number}")
    first.close()
    other = SqliteDatabase(folder, MIGRATIONS, SqliteSettings(orgs_open_max=1))
    looked_at = [other._names_to_maintain() for _ in range(3)]
    assert [len(names) for names in looked_at] == [2, 2, 2]
    assert len({name for names in looked_at for name in names}) == 5
    other.close()
