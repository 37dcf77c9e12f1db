"""The server engine's indexes against the embedded one's and against exact search."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from store_kit import MIGRATIONS, ORG, OTHER_SHELF, SHELF, PostgresEngine, SqliteEngine, random_units, text

from loom.storage.indexes import IndexedText, Scored, TextQuery
from loom.storage.interface import Database
from loom.storage.postgres import lexemes, upkeep, vector_index
from loom.storage.postgres.connection import literal
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.lexemes import OVERLAP_TOKENS, PART_TOKENS_MAX
from loom.storage.postgres.text_index import PostgresTextIndex, TextCounts

ROWS = 400
WORDS = 300
SPACE = "s"


@pytest.fixture
def postgres_only(postgres_url: str) -> Iterator[PostgresDatabase]:
    opened = PostgresDatabase(postgres_url, MIGRATIONS)
    yield opened
    opened.close()


def texts(rows: int, seed: int) -> list[IndexedText]:
    generator = np.random.default_rng(seed)
    chances = 1 / np.arange(1, WORDS + 1)
    drawn = [generator.choice(WORDS, size=generator.integers(3, 60), p=chances / chances.sum()) for _ in range(rows)]
    return [IndexedText([f"w{n}ing" for n in row], [f"w{n}" for n in row]) for row in drawn]


def asked(database: Database, query: TextQuery, allowed: set[int] | None = None) -> list[Scored]:
    with database.transaction(ORG, write=False) as tx:
        return list(tx.text.best(SHELF, query, 30, allowed))


def test_both_engines_score_by_the_same_bm25(tmp_path: Path, postgres_url: str) -> None:
    databases = [SqliteEngine(tmp_path / "store").open(), PostgresEngine(postgres_url).open()]
    for database in databases:
        with database.transaction(ORG, write=True) as tx:
            for number, one in enumerate(texts(ROWS, seed=1)):
                tx.text.put(SHELF, number, one)
                tx.text.put(OTHER_SHELF, number, one)
    for number, query in enumerate(texts(25, seed=2)):
        asking = TextQuery(query.words[:6], query.stems[:6])
        allowed = set(range(0, ROWS, 3)) if number % 2 else None
        embedded, server = (asked(database, asking, allowed) for database in databases)
        assert [one.item_id for one in server] == [one.item_id for one in embedded]
        assert np.allclose([one.score for one in server], [one.score for one in embedded], rtol=1e-3, atol=1e-5)
    for database in databases:
        database.close()


@pytest.mark.slow
def test_in_a_large_shelf_common_terms_are_counted_in_some_rows(postgres_only: PostgresDatabase) -> None:
    rows = 8_000
    with postgres_only.transaction(ORG, write=True) as tx:
        for number in range(rows):
            words = [f"w{number}", *(f"every'{step}\\" for step in (10, 40, 2_000) if number % step == 0)]
            tx.text.put(SHELF, number, IndexedText(words, words))
            tx.text.put(OTHER_SHELF, number, IndexedText(["other"], ["other"]))
    shelf = lexemes.shelf_id(ORG, SHELF)
    sign = lexemes.sign_of(shelf)
    query = TextQuery(["every'10\\", "every'40\\", "every'2000\\", "w7"], [])
    counts = TextCounts()
    with postgres_only.transaction(ORG, write=False) as tx:
        index = PostgresTextIndex(tx.text._session, ORG, counts)
        assert {one.item_id for one in index.best(SHELF, query, 5)} >= {0, 2_000, 4_000, 6_000}
    common = counts.common(shelf)
    assert common is not None
    assert set(common) == {lexemes.lexeme(sign, lexemes.WORD, f"every'{step}\\") for step in (10, 40)} | {
        lexemes.lexeme(sign, lexemes.STEM, f"every'{step}\\") for step in (10, 40)
    }
    for step in (10, 40):
        held = counts.get(shelf, lexemes.lexeme(sign, lexemes.WORD, f"every'{step}\\"), 60)
        assert held == pytest.approx(rows / step, rel=0.8)
    assert counts.get(shelf, lexemes.lexeme(sign, lexemes.WORD, "every'2000\\"), 60) == rows // 2_000


def test_a_long_text_is_found_by_words_and_phrases_anywhere(postgres_only: PostgresDatabase) -> None:
    words = [f"t{number}" for number in range(3 * PART_TOKENS_MAX)]
    with postgres_only.transaction(ORG, write=True) as tx:
        tx.text.put(SHELF, 1, IndexedText(words, words))
        tx.text.put(SHELF, 2, text("t5 alone"))
    for place in (0, PART_TOKENS_MAX - 2, PART_TOKENS_MAX, 2 * PART_TOKENS_MAX + 3, len(words) - 3):
        phrase = words[place : place + 3]
        assert [one.item_id for one in asked(postgres_only, TextQuery([], [], [phrase], required=True))] == [1]
        assert 1 in [one.item_id for one in asked(postgres_only, TextQuery(phrase, phrase))]
    across = words[PART_TOKENS_MAX - OVERLAP_TOKENS + 4 : PART_TOKENS_MAX + 4]
    assert [one.item_id for one in asked(postgres_only, TextQuery([], [], [across], required=True))] == [1]
    with postgres_only.transaction(ORG, write=True) as tx:
        tx.text.put(SHELF, 1, text("short now"))
    assert asked(postgres_only, TextQuery([words[-1]], [])) == []
    assert [one.item_id for one in asked(postgres_only, TextQuery(["short"], []))] == [1]


def test_a_text_of_long_tokens_fits(postgres_only: PostgresDatabase) -> None:
    words = [f"{number}{'ü' * 60}" for number in range(20_000)]
    with postgres_only.transaction(ORG, write=True) as tx:
        tx.text.put(SHELF, 1, IndexedText(words, words))
    assert [one.item_id for one in asked(postgres_only, TextQuery([words[-1]], [words[-1]]))] == [1]


@pytest.mark.slow
def test_a_large_shelfs_own_index_finds_what_exact_search_finds(
    postgres_only: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, dimension = 12_000, 48
    generator = np.random.default_rng(3)
    centres = generator.standard_normal((40, dimension))
    matrix = centres[generator.integers(0, 40, rows)] + 0.7 * generator.standard_normal((rows, dimension))
    matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    with postgres_only.transaction(ORG, write=True) as tx:
        for number in range(rows):
            # Every tenth item has two parts.
            parts = [matrix[number], matrix[number - 1]] if number % 10 == 9 else [matrix[number]]
            tx.vectors.put(SHELF, number, SPACE, parts)
            if number < 50:
                tx.vectors.put(OTHER_SHELF, number, SPACE, [matrix[number]])
    queries = [matrix[number] for number in generator.integers(0, rows, 30)]
    for allowed in (None, set(range(0, rows, 2)), set(range(0, rows, 9))):
        monkeypatch.setattr(vector_index, "EXACT_ALLOWED_MAX", 10**9 if allowed else 0)
        exact = [found(postgres_only, query, allowed) for query in queries]
        monkeypatch.setattr(vector_index, "EXACT_ALLOWED_MAX", 500)
        postgres_only.maintain()
        near = [found(postgres_only, query, allowed) for query in queries]
        recalls = [len(set(one) & set(other)) / 10 for one, other in zip(exact, near, strict=True)]
        assert np.mean(recalls) >= 0.98
    with postgres_only.transaction(ORG, write=False) as tx:
        plan = tx.rows(
            "SELECT indexname FROM pg_indexes WHERE schemaname = 'loom' AND indexname LIKE 'vector~_near%' ESCAPE '~'"
        )
        assert len(plan) == 1
    assert len(random_units(1, dimension, 1)) == 1
    with postgres_only.transaction(ORG, write=True) as tx:
        tx.vectors.drop(SHELF)
    postgres_only.maintain()
    with postgres_only.transaction(ORG, write=False) as tx:
        assert tx.rows("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'vector~_near%' ESCAPE '~'") == []
        assert [one.item_id for one in tx.vectors.best(OTHER_SHELF, SPACE, matrix[7], 1)] == [7]


def test_rows_that_the_servers_own_statistics_do_not_know_get_their_index(
    postgres_only: PostgresDatabase, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "INDEXED_FROM_ROWS", 50)
    with postgres_only.transaction(ORG, write=True) as tx:
        for number, vector in enumerate(random_units(60, 16, 1)):
            tx.vectors.put(SHELF, number, SPACE, [vector])
    counting = "SELECT count(*) FROM pg_indexes WHERE schemaname = 'loom' AND indexname LIKE 'vector~_near%' ESCAPE '~'"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        # So a coordinator's table looks whose rows are on other servers.
        connection.execute("UPDATE pg_class SET reltuples = 0, relpages = 0 WHERE oid = 'loom.vector_row'::regclass")
        postgres_only.maintain()
        assert connection.execute(counting).fetchone() == (1,)
        with postgres_only.transaction(ORG, write=True) as tx:
            tx.vectors.drop(SHELF)
        postgres_only.maintain()
        assert connection.execute(counting).fetchone() == (0,)


def found(database: PostgresDatabase, query: object, allowed: set[int] | None) -> list[int]:
    with database.transaction(ORG, write=False) as tx:
        return [one.item_id for one in tx.vectors.best(SHELF, SPACE, query, 10, allowed)]  # pyright: ignore[reportArgumentType]


def test_vectors_of_an_item_are_removed_by_its_key_without_a_walk_over_the_shelf(
    postgres_only: PostgresDatabase,
) -> None:
    with postgres_only.transaction(ORG, write=True) as tx:
        for number, vector in enumerate(random_units(300, 8, seed=3)):
            tx.vectors.put(SHELF, number, SPACE, [vector])
            tx.vectors.add(SHELF, number, "other", [vector])
    on = {"org": ORG, "shelf": lexemes.shelf_id(ORG, SHELF), "space": lexemes.hashed("space", ORG, SPACE), "item": 7}
    with psycopg.connect(postgres_only._url) as connection:
        connection.execute("SET search_path TO loom, public")
        connection.execute("SELECT set_config('loom.org', %s, false)", [ORG])
        told = connection.execute(
            literal(f"EXPLAIN (ANALYZE, FORMAT JSON) {vector_index._REMOVE_ELSEWHERE}"), on
        ).fetchone()
    assert told is not None
    (scan,) = told[0][0]["Plan"]["Plans"][-1:]
    assert "space_id = ANY" in json.dumps(scan)
    assert "item_id = " in scan.get("Index Cond", "") or "item_id = " in json.dumps(scan["Plans"])
    assert scan["Actual Rows"] == 1
