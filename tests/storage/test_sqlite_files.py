"""What can happen to the embedded engine's files."""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw
import pytest
from store_kit import INSERT, MIGRATIONS, ORG, SHELF, add, asking, count, random_units, text, together, unit

from loom.storage.indexes import PARTS_MAX, Scored
from loom.storage.interface import Database, StoreError
from loom.storage.sqlite import SqliteDatabase, SqliteSettings
from loom.storage.sqlite.connection import connect, execute
from loom.storage.sqlite.org_file import file_name_of

NAME = file_name_of(ORG)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def database(folder: Path) -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase(folder, MIGRATIONS)
    yield opened
    opened.close()


def refuse(database: Database, said: str, *, write: bool) -> None:
    with pytest.raises(StoreError, match=said) as caught, database.transaction(ORG, write=write):
        pass
    assert "/" not in str(caught.value), "a message names the file, not its folder"


def bytes_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def secret(number: int) -> str:
    """A word that shares few letters with any other."""
    return hashlib.sha256(f"{number}".encode()).hexdigest()[:24]


def test_file_names_are_readable_and_distinct() -> None:
    names = [file_name_of(org) for org in ("acme", "Acme", "a/b", "a-b", "..", "", "ü", "x" * 500, "\x01system")]
    assert len({name.lower() for name in names}) == len(names)
    assert all(name.isascii() and len(name) < 80 and "/" not in name and not name.startswith(".") for name in names)
    assert names[0].startswith("acme-")


def test_the_owner_alone_reads_the_files_even_in_a_folder_that_was_there(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    opened = SqliteDatabase(folder, MIGRATIONS)
    add(opened, "x")
    modes = {path.name.removeprefix(NAME): path.stat().st_mode & 0o777 for path in folder.iterdir()}
    opened.close()
    assert modes == {"": 0o600, "-wal": 0o600, "-shm": 0o600}


def test_the_files_settings_are_what_was_measured(database: SqliteDatabase, folder: Path) -> None:
    add(database, "x")
    with database.transaction(ORG, write=True) as transaction:
        told = {
            name: str(next(iter(transaction.rows(f"PRAGMA {name}")[0].values())))
            for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys", "temp_store")
        }
    wanted = {"journal_mode": "wal", "synchronous": "2", "secure_delete": "1", "foreign_keys": "0", "temp_store": "2"}
    assert told == wanted
    normal = SqliteDatabase(folder, MIGRATIONS, SqliteSettings(synchronous="NORMAL"))
    with normal.transaction(ORG, write=True) as transaction:
        assert transaction.row("PRAGMA synchronous") == {"synchronous": 1}
    normal.close()


def test_a_read_of_an_unknown_org_makes_no_file(database: SqliteDatabase, folder: Path) -> None:
    assert count(database) == 0
    assert list(folder.iterdir()) == []


def test_a_file_of_other_bytes_is_refused_and_left_as_it_is(database: SqliteDatabase, folder: Path) -> None:
    (folder / NAME).write_bytes(b"this is no database " * 500)
    add(database, "fine", org="other")
    for write in (True, False):
        refuse(database, f"{NAME} is damaged.*backup", write=write)
    assert (folder / NAME).read_bytes() == b"this is no database " * 500
    assert [NAME in problem for problem in database.check()] == [True]
    assert list(database.orgs()) == ["other"]
    assert count(database, "other") == 1


def test_another_programs_database_is_refused(database: SqliteDatabase, folder: Path) -> None:
    connection = apsw.Connection(str(folder / NAME))
    execute(connection, "CREATE TABLE theirs (a)")
    connection.close()
    refuse(database, "not a Loom store", write=True)


def test_a_file_under_another_orgs_name_is_refused(database: SqliteDatabase, folder: Path) -> None:
    add(database, "x", org="other")
    database.close()
    (folder / file_name_of("other")).rename(folder / NAME)
    again = SqliteDatabase(folder, MIGRATIONS)
    refuse(again, "another org", write=False)
    assert any("not named after its org" in problem for problem in again.check())
    again.close()


def test_damage_inside_a_file_is_found(database: SqliteDatabase, folder: Path) -> None:
    for number in range(300):
        add(database, f"{number} " * 50)
    database.close()
    whole = bytearray((folder / NAME).read_bytes())
    for place in range(4096 * 22 + 8, len(whole), 4096):
        whole[place : place + 200] = b"\xaa" * 200
    (folder / NAME).write_bytes(bytes(whole))
    again = SqliteDatabase(folder, MIGRATIONS)
    assert any(NAME in problem for problem in again.check())
    again.close()


def test_words_that_do_not_agree_with_the_index_are_found(database: SqliteDatabase, folder: Path) -> None:
    with database.transaction(ORG, write=True) as transaction:
        for number in range(20):
            transaction.text.put(SHELF, number, text(f"word{number} shared"))
    assert list(database.check()) == []
    database.close()
    connection = apsw.Connection(str(folder / NAME))
    execute(connection, "DELETE FROM text_1_data WHERE id > 10")
    connection.close()
    again = SqliteDatabase(folder, MIGRATIONS)
    assert any(NAME in problem for problem in again.check())
    again.close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="folder") as caught:
        SqliteDatabase(tmp_path / "file" / "store", MIGRATIONS)
    assert str(tmp_path) not in str(caught.value)


def test_a_place_that_cannot_be_opened_is_told(database: SqliteDatabase, folder: Path) -> None:
    (folder / NAME).mkdir()
    for write in (True, False):
        refuse(database, f"{NAME} cannot be opened", write=write)


def test_a_full_disk_keeps_what_was_acknowledged_and_nothing_else(folder: Path) -> None:
    small = SqliteDatabase(folder, MIGRATIONS, SqliteSettings(file_bytes_max=600_000))
    acknowledged: list[int] = []
    refused: list[str] = []

    def fill() -> None:
        for _ in range(60):
            try:
                acknowledged.append(add(small, "x" * 3000))
            except StoreError as error:
                refused.append(str(error))

    assert together([fill] * 8) == []
    assert acknowledged
    assert refused
    assert all("full" in said or "failed" in said or "fail" in said for said in refused)
    with small.transaction(ORG, write=False) as transaction:
        kept = [row["id"] for row in transaction.rows("SELECT id FROM item WHERE org = :org ORDER BY id")]
    assert kept == sorted(acknowledged)
    small.close()
    large = SqliteDatabase(folder, MIGRATIONS)
    add(large, "there is room again")
    assert count(large) == len(acknowledged) + 1
    assert list(large.check()) == []
    large.close()


def test_an_error_that_a_caller_hides_is_told_all_the_same(folder: Path) -> None:
    small = SqliteDatabase(folder, MIGRATIONS, SqliteSettings(file_bytes_max=300_000))

    def hide() -> None:
        with small.transaction(ORG, write=True) as transaction:
            for number in range(1000):
                try:
                    transaction.run(INSERT, id=number, body="x" * 3000)
                except StoreError:
                    continue

    with pytest.raises(StoreError, match="full"):
        hide()
    assert count(small) == 0
    small.close()


def test_a_file_busy_in_another_process_is_told(database: SqliteDatabase, folder: Path) -> None:
    add(database, "x")
    hasty = SqliteDatabase(folder, MIGRATIONS, SqliteSettings(busy_timeout_s=0.05))
    assert count(hasty) == 1
    other = connect(folder / NAME, SqliteSettings(), write=False, busy_timeout_s=1)
    execute(other, "BEGIN IMMEDIATE")
    refuse(hasty, "busy.*try again", write=True)
    assert count(hasty) == 1
    execute(other, "COMMIT")
    other.close()
    add(hasty, "y")
    hasty.close()


def test_open_files_are_bounded_and_none_in_use_is_closed(folder: Path) -> None:
    database = SqliteDatabase(folder, MIGRATIONS, SqliteSettings(orgs_open_max=2))
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with database.transaction("held", write=True) as transaction:
            held.set()
            assert go_on.wait(60)
            transaction.run(INSERT, id=1, body="x")

    def others() -> None:
        assert held.wait(60)
        for number in range(10):
            add(database, "x", org=f"org{number}")
        go_on.set()

    assert together([hold, others]) == []
    assert len(database._slots) == 2
    assert all(count(database, org) == 1 for org in database.orgs())
    assert len(database.orgs()) == 11
    database.close()


def test_readers_are_bounded_and_wait_for_each_other(folder: Path) -> None:
    database = SqliteDatabase(folder, MIGRATIONS, SqliteSettings(readers_max=2))
    add(database, "x")

    def read() -> None:
        for _ in range(20):
            assert count(database) == 1

    assert together([read] * 8) == []
    database.close()


def test_after_scrub_and_upkeep_no_byte_of_a_removed_word_is_left(database: SqliteDatabase, folder: Path) -> None:
    secrets = {number: secret(number) for number in range(400)}
    with database.transaction(ORG, write=True) as transaction:
        for number, word in secrets.items():
            transaction.text.put(SHELF, number, text(f"common {word}"))
            transaction.run(INSERT, id=number, body=f"say {word}")
    gone = [number for number in secrets if number % 3 == 0]
    for number in gone:
        with database.transaction(ORG, write=True) as transaction:
            transaction.text.remove(SHELF, number)
            transaction.run("DELETE FROM item WHERE org = :org AND id = :id", id=number)
    with database.transaction(ORG, write=True) as transaction:
        transaction.text.scrub(SHELF)
    database.maintain()
    left = bytes_in(folder)
    # A term may be kept without the letters it shares with the one before it, so look for its later part.
    assert [number for number in gone if secrets[number][6:].encode() in left] == []
    assert all(secrets[number][6:].encode() in left for number in secrets if number not in gone)
    assert list(database.check()) == []
    with database.transaction(ORG, write=False) as transaction:
        found = transaction.text.best(SHELF, asking(secrets[1]), 5)
    assert [one.item_id for one in found] == [1]


@pytest.mark.slow
def test_a_large_shelf_is_scrubbed_by_upkeep(database: SqliteDatabase, folder: Path) -> None:
    secrets = {number: secret(number) for number in range(20_500)}
    for start in range(0, len(secrets), 500):
        with database.transaction(ORG, write=True) as transaction:
            for number in range(start, start + 500):
                transaction.text.put(SHELF, number, text(f"common {secrets[number]} filler w{number}"))
    gone = range(0, 900, 3)
    with database.transaction(ORG, write=True) as transaction:
        for number in gone:
            transaction.text.remove(SHELF, number)
            transaction.run(INSERT, id=number, body="x")
    with database.transaction(ORG, write=True) as transaction:
        transaction.text.scrub(SHELF)
    database.maintain()
    left = bytes_in(folder)
    assert [number for number in gone if secrets[number][8:].encode() in left] == []
    assert secrets[1][8:].encode() in left
    assert list(database.check()) == []


def test_upkeep_empties_the_log_and_keeps_no_sampled_values(database: SqliteDatabase, folder: Path) -> None:
    for number in range(200):
        add(database, f"body {number}")
    assert (folder / f"{NAME}-wal").stat().st_size > 0
    database.maintain()
    assert (folder / f"{NAME}-wal").stat().st_size == 0
    with database.transaction(ORG, write=False) as transaction:
        assert transaction.rows("SELECT tbl FROM sqlite_stat1 WHERE tbl = 'item'")
        assert transaction.rows("SELECT count(*) AS n FROM sqlite_stat4") == [{"n": 0}]


def test_upkeep_goes_on_when_a_reader_is_in_the_way(database: SqliteDatabase) -> None:
    add(database, "x")
    with database.transaction(ORG, write=False):
        assert together([lambda: add(database, "y")]) == []
        assert together([database.maintain]) == []
    database.maintain()
    assert count(database) == 2


@pytest.mark.slow
def test_removed_vectors_are_purged_and_caches_that_missed_it_load_anew(folder: Path) -> None:
    first, second = SqliteDatabase(folder, MIGRATIONS), SqliteDatabase(folder, MIGRATIONS)
    vectors = random_units(10_050, 4, seed=1)
    with first.transaction(ORG, write=True) as transaction:
        for number, vector in enumerate(vectors):
            transaction.vectors.put(SHELF, number, "s", [vector])
    for database in (first, second):
        with database.transaction(ORG, write=False) as transaction:
            assert len(transaction.vectors.best(SHELF, "s", vectors[0], 20_000)) == 10_050
    with first.transaction(ORG, write=True) as transaction:
        for number in range(10_020):
            transaction.vectors.remove(SHELF, number)
    first.maintain()
    for database in (first, second):
        with database.transaction(ORG, write=True) as transaction:
            assert len(transaction.vectors.best(SHELF, "s", vectors[0], 20_000)) == 30
        with database.transaction(ORG, write=False) as transaction:
            assert len(transaction.vectors.best(SHELF, "s", vectors[0], 20_000)) == 30
            assert int(str(transaction.rows("SELECT count(*) AS n FROM vector_row")[0]["n"])) <= 50
    first.close()
    second.close()


def test_a_change_read_in_two_pieces_is_not_taken_for_whole_after_the_first(database: SqliteDatabase) -> None:
    parts = [unit(1, number % 7) for number in range(PARTS_MAX)]
    with database.transaction(ORG, write=True) as transaction:
        transaction.vectors.put(SHELF, 1, "s", parts[:-1])
        transaction.vectors.put(SHELF, 2, "s", parts)
        transaction.vectors.put(SHELF, 3, "s", parts)
    with database.transaction(ORG, write=False) as transaction:
        found = transaction.vectors._find(SHELF, "s")
        assert found is not None
        rows: set[int] = set()
        seq = 0
        while (piece := next(transaction.vectors._changes(found, seq), None)) is not None:
            rows.update(piece.row_ids)
            seq = piece.seq
        complete = [one.item_id for one in transaction.vectors.best(SHELF, "s", unit(1, 6), 5)]
    assert len(rows) == 3 * PARTS_MAX - 1, "whoever begins anew at a piece's seq misses nothing"
    assert sorted(complete) == [1, 2, 3]


def test_the_memory_for_vectors_is_bounded_and_answers_are_the_same(folder: Path) -> None:
    roomy = SqliteDatabase(folder, MIGRATIONS)
    tight = SqliteDatabase(folder, MIGRATIONS, SqliteSettings(vector_cache_bytes_max=20_000))
    vectors = random_units(300, 8, seed=2)
    for org in ("a", "b", "c"):
        with roomy.transaction(org, write=True) as transaction:
            for number, vector in enumerate(vectors[: 90 if org == "a" else 300]):
                transaction.vectors.put(SHELF, number, "s", [vector, unit(1, 1, 1, 1, 1, 1, 1, number)])
    for org in ("a", "b", "c", "a"):
        answers: list[Sequence[Scored]] = []
        for database in (roomy, tight):
            with database.transaction(org, write=False) as transaction:
                answers.append(transaction.vectors.best(SHELF, "s", vectors[3], 25))
        assert answers[0] == answers[1]
        assert tight._vectors.bytes_used() <= 20_000
    roomy.close()
    tight.close()
