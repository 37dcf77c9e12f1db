"""What every engine promises about vectors."""

import numpy as np
import pytest
from store_kit import ORG, OTHER_SHELF, SHELF, Engine, random_units, together, undone, unit

from loom.storage.indexes import Scored, Vector
from loom.storage.interface import Database, Transaction
from loom.storage.sqlite.vector_cache import GROWN_ROWS_MAX, Changed, VectorMatrix, bytes_of_row

SPACE = "model-a"
CLOSE = 2e-3
"""Engines keep half-precision numbers."""


def put(database: Database, item_id: int, *vectors: Vector, space: str = SPACE) -> None:
    with database.transaction(ORG, write=True) as transaction:
        transaction.vectors.put(SHELF, item_id, space, vectors)


def best(database: Database, vector: Vector, k: int = 10, allowed: set[int] | None = None) -> list[Scored]:
    with database.transaction(ORG, write=False) as transaction:
        return list(transaction.vectors.best(SHELF, SPACE, vector, k, allowed))


def ids(database: Database, vector: Vector, k: int = 10) -> list[int]:
    return [one.item_id for one in best(database, vector, k)]


def test_it_agrees_with_brute_force_with_parts_and_allowed(database: Database) -> None:
    vectors = random_units(600, 24, seed=1)
    parts = {item_id: vectors[3 * item_id : 3 * item_id + 1 + item_id % 3] for item_id in range(200)}
    with database.transaction(ORG, write=True) as transaction:
        for item_id, own in parts.items():
            transaction.vectors.put(SHELF, item_id, SPACE, own)
    for seed, allowed in ((2, None), (3, set(range(0, 200, 2))), (4, {1, 5, 9, 500})):
        query = random_units(1, 24, seed)[0]
        truth = {
            item_id: max(float(part @ query) for part in own)
            for item_id, own in parts.items()
            if allowed is None or item_id in allowed
        }
        found = best(database, query, 20, allowed)
        assert len(found) == min(20, len(truth))
        assert len({one.item_id for one in found}) == len(found)
        expected = sorted(truth.values(), reverse=True)[: len(found)]
        assert np.allclose([one.score for one in found], expected, atol=CLOSE)
        assert np.allclose([one.score for one in found], [truth[one.item_id] for one in found], atol=CLOSE)


def test_put_replaces_all_parts(database: Database) -> None:
    put(database, 1, unit(1, 0, 0), unit(0, 1, 0))
    put(database, 2, unit(0, 0.9, 0.1))
    assert ids(database, unit(0, 1, 0)) == [1, 2]
    put(database, 1, unit(0, 0, 1))
    assert ids(database, unit(0, 1, 0)) == [2, 1]
    assert best(database, unit(1, 0, 0))[0].score < 0.5


def test_remove_and_drop(database: Database) -> None:
    for item_id in (1, 2, 3):
        put(database, item_id, unit(1, item_id))
    assert set(ids(database, unit(1, 1))) == {1, 2, 3}
    with database.transaction(ORG, write=True) as transaction:
        transaction.vectors.remove(SHELF, 2)
        transaction.vectors.remove(SHELF, 77)
        transaction.vectors.remove(OTHER_SHELF, 1)
        assert transaction.vectors.missing(SHELF, SPACE, [3, 2, 1]) == [2]
    assert ids(database, unit(1, 1)) == [1, 3]
    put(database, 2, unit(1, 1))
    assert ids(database, unit(1, 1))[0] == 2
    with database.transaction(ORG, write=True) as transaction:
        transaction.vectors.drop(SHELF)
    assert ids(database, unit(1, 1)) == []
    put(database, 9, unit(1, 1))
    assert ids(database, unit(1, 1)) == [9]


def test_shelves_and_spaces_are_apart(database: Database) -> None:
    put(database, 1, unit(1, 0))
    put(database, 2, unit(1, 0, 0), space="model-b")
    with database.transaction(ORG, write=True) as transaction:
        transaction.vectors.put(OTHER_SHELF, 3, SPACE, [unit(1, 0)])
    assert ids(database, unit(1, 0)) == [1]
    with database.transaction(ORG, write=False) as transaction:
        assert transaction.vectors.best(SHELF, "unknown", unit(1, 0), 5) == ()
        assert transaction.vectors.missing(SHELF, "model-b", [1, 2, 3]) == [1, 3]
        assert transaction.vectors.missing(SHELF, "unknown", [1, 2]) == [1, 2]


def test_scores_of_named_items(database: Database) -> None:
    put(database, 1, unit(1, 0), unit(0, 1))
    put(database, 2, unit(1, 1))
    with database.transaction(ORG, write=False) as transaction:
        found = transaction.vectors.scores(SHELF, SPACE, unit(0, 1), [1, 2, 3])
    assert set(found) == {1, 2}
    assert found[1] == pytest.approx(1.0, abs=CLOSE)
    assert found[2] == pytest.approx(0.7071, abs=CLOSE)


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(3, dtype=np.float32),
        np.asarray([np.nan, 0, 0], dtype=np.float32),
        np.asarray([np.inf, 0, 0], dtype=np.float32),
        np.asarray([2, 0, 0], dtype=np.float32),
        np.asarray([], dtype=np.float32),
        np.asarray([[1, 0, 0]], dtype=np.float32),
    ],
)
def test_a_vector_that_is_none_is_refused(database: Database, wrong: Vector) -> None:
    with pytest.raises(ValueError, match="vector"):
        put(database, 1, wrong)
    with pytest.raises(ValueError, match="vector"):
        put(database, 1)
    assert ids(database, unit(1, 0, 0)) == []


def test_a_vector_of_another_dimension_is_refused(database: Database) -> None:
    put(database, 1, unit(1, 0, 0))
    with pytest.raises(ValueError, match="dimension"):
        put(database, 2, unit(1, 0))
    with pytest.raises(ValueError, match="dimension"):
        best(database, unit(1, 0))


def test_another_openers_writes_are_seen(engine: Engine) -> None:
    first, second = engine.open(), engine.open()
    put(first, 1, unit(1, 0))
    put(first, 2, unit(0.9, 0.1))
    assert ids(second, unit(1, 0)) == [1, 2]
    put(first, 3, unit(1, 0.01))
    with first.transaction(ORG, write=True) as transaction:
        transaction.vectors.remove(SHELF, 1)
    assert ids(second, unit(1, 0)) == [3, 2]
    with second.transaction(ORG, write=True) as transaction:
        transaction.vectors.drop(SHELF)
        transaction.vectors.put(SHELF, 8, SPACE, [unit(1, 1)])
    assert ids(first, unit(1, 0)) == [8]
    first.close()
    second.close()


def test_a_writer_finds_its_own_changes_and_an_undone_one_leaves_no_trace(database: Database) -> None:
    put(database, 1, unit(1, 0))
    put(database, 2, unit(0, 1))
    assert ids(database, unit(1, 0)) == [1, 2]
    with undone(database) as transaction:
        transaction.vectors.put(SHELF, 3, SPACE, [unit(1, 0.001)])
        transaction.vectors.remove(SHELF, 1)
        transaction.vectors.put(SHELF, 2, SPACE, [unit(0.5, 0.5)])
        found = transaction.vectors.best(SHELF, SPACE, unit(1, 0), 10)
        assert [one.item_id for one in found] == [3, 2]
        assert found[1].score == pytest.approx(0.7071, abs=CLOSE)
        only_two = transaction.vectors.best(SHELF, SPACE, unit(1, 0), 10, {2})
        assert [one.item_id for one in only_two] == [2]
    found = best(database, unit(1, 0))
    assert [one.item_id for one in found] == [1, 2]
    assert found[1].score == pytest.approx(0.0, abs=CLOSE)


def test_a_search_that_was_begun_finds_the_same(database: Database) -> None:
    for item_id in range(5):
        put(database, item_id, unit(1, item_id))
    with database.transaction(ORG, write=False) as transaction:
        later = transaction.vectors.begin(SHELF, SPACE, unit(1, 2), 3)
        assert list(later()) == best_of(transaction, unit(1, 2), 3)
        assert list(transaction.vectors.begin(SHELF, "unknown", unit(1, 2), 3)()) == []
        assert list(transaction.vectors.begin(SHELF, SPACE, unit(1, 2), 0)()) == []
    with undone(database) as transaction:
        transaction.vectors.remove(SHELF, 2)
        later = transaction.vectors.begin(SHELF, SPACE, unit(1, 2), 3)
        assert list(later()) == best_of(transaction, unit(1, 2), 3)
        assert 2 not in [one.item_id for one in later()]


def best_of(transaction: Transaction, vector: Vector, k: int) -> list[Scored]:
    return list(transaction.vectors.best(SHELF, SPACE, vector, k))


def test_threads_that_write_and_search_agree_in_the_end(database: Database) -> None:
    vectors = random_units(8 * 40, 16, seed=5)

    def work(worker: int) -> None:
        for number in range(40):
            item_id = worker * 40 + number
            put(database, item_id, vectors[item_id])
            assert ids(database, vectors[item_id], 1) == [item_id]
            if number % 4 == 3:
                with database.transaction(ORG, write=True) as transaction:
                    transaction.vectors.remove(SHELF, item_id)
                assert item_id not in ids(database, vectors[item_id], 3)

    assert together([lambda worker=worker: work(worker) for worker in range(8)]) == []
    kept = {item_id for item_id in range(8 * 40) if item_id % 4 != 3}
    assert set(ids(database, vectors[0], 1000)) == kept


def test_the_first_vector_of_each_item_is_given_back_at_half_precision(database: Database) -> None:
    vectors = random_units(3, 24, seed=9)
    put(database, 1, vectors[0], vectors[1])
    put(database, 2, vectors[2])
    put(database, 3, vectors[1], space="model-b")
    put(database, 4, vectors[1])
    with database.transaction(ORG, write=True) as transaction:
        transaction.vectors.remove(SHELF, 4)
    with database.transaction(ORG, write=False) as transaction:
        found = transaction.vectors.first(SHELF, SPACE, [1, 2, 3, 4, 9])
        assert set(found) == {1, 2}
        for item_id, vector in ((1, vectors[0]), (2, vectors[2])):
            assert found[item_id].dtype == np.float32
            assert np.array_equal(found[item_id], vector.astype(np.float16).astype(np.float32))
        assert transaction.vectors.first(SHELF, SPACE, []) == {}
        assert transaction.vectors.first(OTHER_SHELF, SPACE, [1]) == {}
        assert transaction.vectors.first(SHELF, "no-model", [1]) == {}


def add(database: Database, item_id: int, vector: Vector, space: str) -> None:
    with database.transaction(ORG, write=True) as transaction:
        transaction.vectors.add(SHELF, item_id, space, [vector])


def held(database: Database, space: str, item_ids: list[int]) -> list[int]:
    with database.transaction(ORG, write=False) as transaction:
        missing = transaction.vectors.missing(SHELF, space, item_ids)
    return [item_id for item_id in item_ids if item_id not in missing]


def test_vectors_that_are_added_stand_beside_those_of_other_spaces_until_the_item_is_put(database: Database) -> None:
    for item_id in (1, 2, 3):
        put(database, item_id, unit(1, item_id))
        add(database, item_id, unit(1, 0, item_id), "model-b")
    assert held(database, SPACE, [1, 2, 3]) == held(database, "model-b", [1, 2, 3]) == [1, 2, 3]
    put(database, 2, unit(0, 1))
    with database.transaction(ORG, write=True) as transaction:
        transaction.vectors.remove(SHELF, 3)
    assert held(database, SPACE, [1, 2, 3]) == [1, 2]
    assert held(database, "model-b", [1, 2, 3]) == [1]
    with database.transaction(ORG, write=False) as transaction:
        found = transaction.vectors.best(SHELF, "model-b", unit(1, 0, 1), 10)
    assert [one.item_id for one in found] == [1]


def test_an_item_is_put_among_others_shelves_without_a_loss_there(database: Database) -> None:
    put(database, 1, unit(1, 0), space="model-b")
    with database.transaction(ORG, write=True) as transaction:
        transaction.vectors.put(OTHER_SHELF, 1, SPACE, [unit(1, 0)])
    assert held(database, "model-b", [1]) == [1]


def test_spaces_are_told_and_dropped_in_slices_but_for_those_that_are_kept(database: Database) -> None:
    assert spaces(database) == {}
    for item_id in range(1, 8):
        put(database, item_id, unit(1, item_id))
        add(database, item_id, unit(1, 0, item_id), "model-b")
        add(database, item_id, unit(1, 0, 0, item_id), "model-c")
    with database.transaction("another", write=True) as transaction:
        transaction.vectors.put(SHELF, 1, "model-b", [unit(1, 0, 1)])
        transaction.vectors.put(OTHER_SHELF, 1, "model-d", [unit(1, 1)])
    assert spaces(database) == {SPACE: 2, "model-b": 3, "model-c": 4}
    assert len(best_in(database, "model-b", unit(1, 0, 1))) == 7
    dropped: list[int] = []
    while not dropped or dropped[-1]:
        with database.transaction(ORG, write=True) as transaction:
            dropped.append(transaction.vectors.drop_others({SPACE, "model-c"}, 3))
    assert dropped == [3, 3, 1, 0]
    assert spaces(database) == {SPACE: 2, "model-c": 4}
    assert best_in(database, "model-b", unit(1, 0, 1)) == []
    assert len(ids(database, unit(1, 0))) == 7
    add(database, 5, unit(1, 0, 5), "model-b")
    assert best_in(database, "model-b", unit(1, 0, 1)) == [5]
    with database.transaction("another", write=False) as transaction:
        assert transaction.vectors.spaces() == {"model-b": 3, "model-d": 2}


def spaces(database: Database) -> dict[str, int]:
    with database.transaction(ORG, write=False) as transaction:
        return dict(transaction.vectors.spaces())


def best_in(database: Database, space: str, vector: Vector) -> list[int]:
    with database.transaction(ORG, write=False) as transaction:
        return [one.item_id for one in transaction.vectors.best(SHELF, space, vector, 100)]


def test_a_large_matrix_grows_by_a_bounded_room() -> None:
    rows = 4 * GROWN_ROWS_MAX
    matrix = VectorMatrix(2, 0)
    for start, count in ((0, rows), (rows, 2 * GROWN_ROWS_MAX)):
        rows_of = range(start + 1, start + count + 1)
        matrix.apply(Changed(rows_of, rows_of, np.ones((count, 2), dtype=np.float32), (), start + count))
    assert len(matrix.view().items) == rows + 2 * GROWN_ROWS_MAX
    assert matrix.bytes_used() <= (rows + 3 * GROWN_ROWS_MAX) * bytes_of_row(2)
