"""What every engine promises about words."""

from dataclasses import replace

import pytest
from store_kit import ORG, OTHER_SHELF, SHELF, asking, text

from loom.storage.indexes import IndexedText, TextQuery
from loom.storage.interface import Database

NASTY = [
    "hello) OR scope:tB OR (hello",
    'say "hi"',
    '"',
    '""" OR """',
    "NOT",
    "a AND b OR c NOT d",
    "NEAR(a b, 2)",
    "*",
    "he*",
    "stem:hello",
    "{stem word} : hello",
    "-hello",
    "^hello",
    "+",
    "word : (",
    "'; DROP TABLE item; --",
    "🙂",
    "東京 学習",
    "a\x00b",
    "\x00",
    "",
    " ",
    "\ud800",
    "x" * 10_000,
    "y " * 5_000,
    "%s %(a)s :org $1 ?",
    "\\",
    "tab\tnew\nline",
]


@pytest.fixture(autouse=True)
def _two_shelves(database: Database) -> None:
    with database.transaction(ORG, write=True) as transaction:
        transaction.text.put(SHELF, 1, text("hello brave new world"))
        transaction.text.put(SHELF, 2, text("hello hello cruel world of words"))
        transaction.text.put(SHELF, 3, text("nothing of the kind"))
        transaction.text.put(OTHER_SHELF, 99, text("hello scope tB world stem word item"))


def ids(database: Database, query: TextQuery, k: int = 10, allowed: set[int] | None = None) -> list[int]:
    with database.transaction(ORG, write=False) as transaction:
        return [one.item_id for one in transaction.text.best(SHELF, query, k, allowed)]


def test_any_word_may_match_and_rare_ones_count_more(database: Database) -> None:
    assert ids(database, asking("brave hello")) == [1, 2]
    assert ids(database, asking("cruel hello")) == [2, 1]
    assert ids(database, asking("absent")) == []
    assert ids(database, asking("")) == []


def test_higher_is_better_and_k_bounds(database: Database) -> None:
    with database.transaction(ORG, write=False) as transaction:
        found = transaction.text.best(SHELF, asking("hello world of"), 10)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert [one.item_id for one in transaction.text.best(SHELF, asking("hello world of"), 1)] == [found[0].item_id]
        assert list(transaction.text.best(SHELF, asking("hello"), 0)) == []


def test_stems_and_words_are_apart_and_weighted(database: Database) -> None:
    with database.transaction(ORG, write=True) as transaction:
        transaction.text.put(SHELF, 10, IndexedText(words=["running"], stems=["run"]))
    assert ids(database, TextQuery(words=["run"], stems=[])) == []
    assert ids(database, TextQuery(words=[], stems=["run"])) == [10]
    assert ids(database, TextQuery(words=["running"], stems=[])) == [10]
    with database.transaction(ORG, write=False) as transaction:
        low, high = (
            transaction.text.best(SHELF, TextQuery(["running"], [], word_weight=weight), 1)[0].score
            for weight in (0.1, 2.0)
        )
    assert low < high


def test_allowed_narrows(database: Database) -> None:
    assert ids(database, asking("hello"), allowed={2, 3, 99}) == [2]
    assert ids(database, asking("hello"), allowed=set()) == []


def test_a_phrase_must_stand_side_by_side(database: Database) -> None:
    assert ids(database, asking("hello world", "brave new", required=True)) == [1]
    assert ids(database, asking("hello world", "new brave", required=True)) == []
    assert ids(database, asking("", "cruel world", "brave new", required=True)) in ([1, 2], [2, 1])
    assert ids(database, asking("hello", required=True)) == []
    assert ids(database, asking("absent", "brave new")) == [1]
    assert ids(database, asking("hello", "brave new"))[0] == 1


def test_put_replaces_and_remove_forgets(database: Database) -> None:
    with database.transaction(ORG, write=True) as transaction:
        transaction.text.put(SHELF, 1, text("quite different"))
        transaction.text.remove(SHELF, 2)
        transaction.text.remove(SHELF, 12345)
        transaction.text.remove(OTHER_SHELF, 1)
        assert transaction.text.best(SHELF, asking("hello"), 5) == []
    assert ids(database, asking("hello brave cruel")) == []
    assert ids(database, asking("different")) == [1]
    with database.transaction(ORG, write=True) as transaction:
        transaction.text.put(SHELF, 2, text("hello back"))
    assert ids(database, asking("hello")) == [2]
    assert list(database.check()) == []


def test_drop_forgets_one_shelf(database: Database) -> None:
    with database.transaction(ORG, write=True) as transaction:
        transaction.text.drop(SHELF)
        transaction.text.drop(SHELF)
    assert ids(database, asking("hello")) == []
    with database.transaction(ORG, write=True) as transaction:
        assert [one.item_id for one in transaction.text.best(OTHER_SHELF, asking("hello"), 5)] == [99]
        transaction.text.put(SHELF, 5, text("hello anew"))
    assert ids(database, asking("hello")) == [5]
    assert list(database.check()) == []


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
def test_text_is_data_never_syntax(database: Database, nasty: str) -> None:
    forms = (nasty.split(" "), [nasty], list(nasty[:300]))
    for tokens in forms:
        for required in (True, False):
            query = TextQuery(tokens, tokens, [tokens], required=required)
            assert 99 not in ids(database, query)
            assert set(ids(database, query, allowed={1, 2})) <= {1, 2}


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
def test_a_token_of_any_kind_finds_itself(database: Database, nasty: str) -> None:
    with database.transaction(ORG, write=True) as transaction:
        transaction.text.put(SHELF, 50, IndexedText([nasty, "end"], [nasty]))
        transaction.text.put(OTHER_SHELF, 51, IndexedText([nasty], [nasty]))
    found = ids(database, TextQuery([nasty], [nasty]))
    kept = nasty.encode("utf-8", "ignore").decode().strip(" \x00")
    assert found == ([50] if kept else [])
    if kept:
        assert ids(database, TextQuery([], [], [[nasty, "end"]], required=True)) == [50]


def test_a_query_of_many_terms_is_bounded(database: Database) -> None:
    many = [f"t{number}" for number in range(20_000)]
    assert ids(database, TextQuery(["hello", *many], ["hello", *many], [many])) == [2, 1]


@pytest.mark.slow
def test_in_a_large_shelf_common_terms_are_left_out_when_rare_ones_remain(database: Database) -> None:
    with database.transaction(ORG, write=True) as transaction:
        for number in range(100, 6_100):
            transaction.text.put(SHELF, number, text(f"common filler w{number}"))
        transaction.text.put(SHELF, 7_000, text("filler gem"))
    assert ids(database, asking("common gem"), 10_000) == [7_000]
    assert len(ids(database, asking("common"), 10_000)) == 6_000
    assert len(ids(database, asking("common absent"), 10_000)) == 6_000
    assert ids(database, asking("common", "common filler w200", required=True)) == [200]
    assert len(ids(database, replace(asking("common gem"), common_share=1.0), 10_000)) == 6_001
