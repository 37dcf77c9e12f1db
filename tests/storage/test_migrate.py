"""Stores of every earlier version come up to date with their rows."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from store_kit import ORG, asking, text

from loom.storage.indexes import Shelf
from loom.storage.interface import StoreError
from loom.storage.migrate import Migration, from_package, ordered, pending
from loom.storage.sqlite import SqliteDatabase

STEPS: Sequence[Migration] = (
    Migration(1, "note", "CREATE TABLE note (org TEXT NOT NULL, id BIGINT NOT NULL, PRIMARY KEY (org, id));"),
    Migration(2, "note_body", "ALTER TABLE note ADD COLUMN body TEXT; UPDATE note SET body = 'old ' || id;"),
    Migration(3, "tag", "CREATE TABLE tag (org TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (org, name));"),
    Migration(7, "tag_of_note", "INSERT INTO tag (org, name) SELECT org, 'n' || id FROM note WHERE id < 100;"),
)
SHELF = Shelf("note", "n")


@pytest.mark.parametrize("had", range(len(STEPS) + 1))
def test_a_store_of_each_earlier_version_comes_up_to_date(tmp_path: Path, had: int) -> None:
    old = SqliteDatabase(tmp_path, STEPS[:had])
    with old.transaction(ORG, write=True) as transaction:
        if had:
            transaction.run("INSERT INTO note (org, id) VALUES (:org, 5)")
        transaction.text.put(SHELF, 5, text("five"))
    old.close()
    new = SqliteDatabase(tmp_path, STEPS)
    with new.transaction(ORG, write=True) as transaction:
        rows = transaction.rows("SELECT id, body FROM note WHERE org = :org")
        tags = transaction.rows("SELECT name FROM tag WHERE org = :org")
        found = transaction.text.best(SHELF, asking("five"), 5)
    assert [row["id"] for row in rows] == ([5] if had else [])
    assert [row["body"] for row in rows] == ([None] if had >= 2 else ["old 5"] if had else [])
    assert [row["name"] for row in tags] == (["n5"] if 0 < had < len(STEPS) else [])
    assert [one.item_id for one in found] == [5]
    assert list(new.check()) == []
    new.close()


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    new = SqliteDatabase(tmp_path, STEPS)
    with new.transaction(ORG, write=True):
        pass
    new.close()
    old = SqliteDatabase(tmp_path, STEPS[:2])
    for write in (True, False):
        with pytest.raises(StoreError, match="newer Loom"), old.transaction(ORG, write=write):
            pass
    assert any("newer Loom" in problem for problem in old.check())
    old.close()
    again = SqliteDatabase(tmp_path, STEPS)
    assert list(again.check()) == []
    again.close()


def test_a_step_that_fails_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    old = SqliteDatabase(tmp_path, STEPS[:1])
    with old.transaction(ORG, write=True) as transaction:
        transaction.run("INSERT INTO note (org, id) VALUES (:org, 5)")
    old.close()
    broken = SqliteDatabase(
        tmp_path, [*STEPS[:3], Migration(4, "broken", "CREATE TABLE x (a); SELECT nonsense FROM x")]
    )
    with pytest.raises(Exception, match="nonsense"), broken.transaction(ORG, write=True):
        pass
    broken.close()
    again = SqliteDatabase(tmp_path, STEPS[:1])
    with again.transaction(ORG, write=False) as transaction:
        assert transaction.rows("SELECT * FROM note WHERE org = :org") == [{"org": ORG, "id": 5}]
    again.close()


def test_the_rules_of_the_sequence() -> None:
    assert [step.number for step in ordered(reversed(STEPS))] == [1, 2, 3, 7]
    with pytest.raises(ValueError, match="differ"):
        ordered([*STEPS, Migration(7, "again", "")])
    with pytest.raises(ValueError, match="positive"):
        ordered([Migration(0, "zero", "")])
    assert pending("shared", STEPS, {1: "note", 3: "tag"}, "it") == (STEPS[1], STEPS[3])
    with pytest.raises(StoreError, match="newer"):
        pending("shared", STEPS, {9: "later"}, "it")
    with pytest.raises(StoreError, match="another build"):
        pending("shared", STEPS, {1: "other"}, "it")


def test_the_engines_own_steps_are_in_the_package() -> None:
    steps = from_package("loom.storage.sqlite")
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
