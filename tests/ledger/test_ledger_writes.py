import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

from fakes import Clock, FailingEmbedder, bench_of
from loom.access.caller import ReadScope
from loom.canonical import Json
from loom.errors import AmbiguousKey, NotFound
from loom.jobs import outbox
from loom.ledger import embedding, indexing, rules, store, writes
from loom.ledger.rules import Attributes, Item, Place, Reader
from loom.models.interface import EmbedderFailed
from loom.retrieval import tokens
from loom.storage.interface import Database, Transaction
from loom.storage.migrate import from_package
from loom.storage.postgres.engine import PostgresDatabase
from postgres_server import TestServer

ORG = "dev"
HERE = Place("n", "a", "u")
WIDE = Reader(ReadScope.NAMESPACE, "-", "-")
EMBEDDER = FailingEmbedder(off=False)
SPACE = EMBEDDER.space.fingerprint
WAIT_S = 60.0
POLL_S = 0.005
POLLS_MAX = 12_000
WAITING = """
SELECT 1 FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted
"""


def live(item: Item) -> bool:
    return item.status == rules.LIVE


def put(tx: Transaction, value: Json, key: str = "k", at: Place = HERE, **attributes: object) -> Item:
    made = rules.draft(value, replace(Attributes(), **attributes))
    current = store.exact(tx, at, key)
    text = indexing.text_of(writes.write(tx, current, (at, key), made))
    vectors = embedding.embedded(EMBEDDER, [text])[0]
    return writes.write(tx, store.exact(tx, at, key), (at, key), made, vectors)


def found(tx: Transaction, word: str, collection: str = indexing.MEMORY_SHELF) -> tuple[list[int], list[int]]:
    """What the word index and the vector index find, of what is near enough."""
    shelf = rules_shelf(collection)
    by_word = [one.item_id for one in tx.text.best(shelf, tokens.query(word), 10)]
    near = tx.vectors.best(shelf, SPACE, EMBEDDER.embed_query(word, 1), 10)
    return by_word, [one.item_id for one in near if one.score > 0.3]


def rules_shelf(collection: str) -> indexing.Shelf:
    return indexing.Shelf(collection, HERE.namespace)


def kinds(tx: Transaction, item: Item) -> Sequence[str]:
    return [version.status for version in store.history(tx, item.item_id, 10)]


def test_a_write_moves_the_row_and_both_indexes(database: Database) -> None:
    with database.transaction(ORG, write=True) as tx:
        first = put(tx, "walrus")
        assert found(tx, "walrus") == ([first.item_id], [first.item_id])
        second = put(tx, "plumbago")
        assert second.item_id == first.item_id
        assert second.head.version > first.head.version > first.item_id
        assert found(tx, "walrus") == ([], [])
        assert found(tx, "plumbago") == ([first.item_id], [first.item_id])
    with database.transaction(ORG, write=False) as tx:
        assert store.exact(tx, HERE, "k") == second
        assert kinds(tx, first) == ["live", "superseded", "superseded", "superseded"]


def test_without_vectors_the_old_ones_go_and_a_job_makes_new_ones(database: Database, clock: Clock) -> None:
    with database.transaction(ORG, write=True) as tx:
        first = put(tx, "walrus")
        outbox.done(tx, outbox.take(tx, clock(), 10))
        item = writes.write(tx, first, (HERE, "k"), rules.draft("plumbago", Attributes()))
        assert found(tx, "walrus") == ([], [])
        assert found(tx, "plumbago") == ([item.item_id], [])
        [job] = outbox.take(tx, clock(), 10)
    assert (job.kind, job.subject) == (indexing.EMBED, str(item.item_id))
    embedding.embed_items(bench_of(database, EMBEDDER, clock), ORG, [job.subject, "17"])
    with database.transaction(ORG, write=False) as tx:
        assert found(tx, "plumbago") == ([item.item_id], [item.item_id])


class Meddler(FailingEmbedder):
    """Changes the row while its text is being embedded."""

    def __init__(self, database: Database, change: str) -> None:
        super().__init__(off=False)
        self._database, self._change = database, change

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[indexing.Vector]:
        with self._database.transaction(ORG, write=True) as tx:
            item = store.exact(tx, HERE, "k")
            assert item is not None
            if self._change == "redact":
                writes.redact(tx, item)
            elif self._change == "purge":
                writes.purge(tx, item)
            else:
                writes.write(tx, item, (HERE, "k"), rules.draft("other", Attributes()))
        return super().embed_passages(texts, timeout_s)


@pytest.mark.parametrize("change", ["redact", "purge", "overwrite"])
def test_a_text_that_went_while_it_was_embedded_leaves_no_vector(database: Database, clock: Clock, change: str) -> None:
    with database.transaction(ORG, write=True) as tx:
        item = writes.write(tx, None, (HERE, "k"), rules.draft("walrus", Attributes()))
    embedding.embed_items(bench_of(database, Meddler(database, change), clock), ORG, [str(item.item_id)])
    with database.transaction(ORG, write=False) as tx:
        assert found(tx, "walrus")[1] == []


@pytest.mark.slow
@pytest.mark.parametrize("change", ["redact", "overwrite"])
def test_vectors_wait_for_a_write_that_is_not_committed_yet(postgres: TestServer, clock: Clock, change: str) -> None:
    migrations = from_package("loom")
    with postgres.migrated(migrations) as url, ThreadPoolExecutor(1) as threads:
        database = PostgresDatabase(url, migrations)
        with database.transaction(ORG, write=True) as tx:
            item = writes.write(tx, None, (HERE, "k"), rules.draft("walrus", Attributes()))
        with database.transaction(ORG, write=True) as tx:
            store.lock(tx, HERE, "k")
            seen = store.exact(tx, HERE, "k")
            assert seen is not None
            if change == "redact":
                writes.redact(tx, seen)
            else:
                writes.write(tx, seen, (HERE, "k"), rules.draft("other", Attributes()))
            assert found(tx, "walrus") == ([], [])
            job = threads.submit(embedding.embed_items, bench_of(database, EMBEDDER, clock), ORG, [str(item.item_id)])
            until_waiting(url, job)
        job.result(WAIT_S)
        with database.transaction(ORG, write=False) as tx:
            assert found(tx, "walrus")[1] == []
        database.close()


def until_waiting(url: str, job: Future[None]) -> None:
    """Wait until the job waits for a lock, or is done without."""
    never = threading.Event()
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(POLLS_MAX):
            if job.done() or connection.execute(WAITING).fetchone() is not None:
                return
            never.wait(POLL_S)
    raise AssertionError("the job neither waits nor ends")


def test_a_failing_embedder_fails_the_job(database: Database, clock: Clock) -> None:
    with database.transaction(ORG, write=True) as tx:
        item = writes.write(tx, None, (HERE, "k"), rules.draft("walrus", Attributes()))
    with pytest.raises(EmbedderFailed):
        embedding.embed_items(bench_of(database, FailingEmbedder(), clock), ORG, [str(item.item_id)])


def test_a_tombstone_takes_the_text_out_of_the_indexes(database: Database, clock: Clock) -> None:
    with database.transaction(ORG, write=True) as tx:
        ended = writes.tombstone(tx, put(tx, "walrus"), "why", "run")
        assert (ended.status, ended.ended_at, ended.head.value_text) == ("tombstoned", clock(), None)
        assert found(tx, "walrus") == ([], [])
        assert kinds(tx, ended) == ["tombstoned", "superseded", "superseded"]
        assert store.for_read(tx, HERE, "k", WIDE, clock()) is None
        again = put(tx, "walrus")
        assert (again.status, again.ended_at) == ("live", None)
        assert found(tx, "walrus")[0] == [again.item_id]


def test_high_sensitivity_is_not_indexed(database: Database) -> None:
    with database.transaction(ORG, write=True) as tx:
        put(tx, "walrus")
        put(tx, "walrus", sensitivity="high")
        assert found(tx, "walrus") == ([], [])
        item = put(tx, "walrus", sensitivity="normal")
        assert found(tx, "walrus") == ([item.item_id], [item.item_id])


def test_a_section_stands_on_its_own_shelf(database: Database) -> None:
    with database.transaction(ORG, write=True) as tx:
        section = put(tx, "walrus", memory_type="profile")
        assert found(tx, "walrus") == ([], [])
        assert found(tx, "walrus", indexing.PROFILE_SHELF) == ([section.item_id], [section.item_id])
        writes.tombstone(tx, section, "")
        memory = put(tx, "walrus")
        assert found(tx, "walrus", indexing.PROFILE_SHELF) == ([], [])
        assert found(tx, "walrus") == ([memory.item_id], [memory.item_id])


def test_redaction_leaves_no_text(database: Database) -> None:
    with database.transaction(ORG, write=True) as tx:
        item = writes.redact(tx, put(tx, "walrus", tags=("walrus",), source_trace="walrus"))
        assert found(tx, "walrus") == ([], [])
        rows = tx.rows("SELECT * FROM ledger_version WHERE org = :org")
        assert "walrus" not in str(rows)
        assert {row["status"] for row in rows} == {"redacted"}
        assert store.older_with_value(tx, item.item_id, store.BEFORE_ALL) is None


def test_purging_leaves_nothing(database: Database) -> None:
    with database.transaction(ORG, write=True) as tx:
        item = put(tx, "walrus")
        writes.purge(tx, item)
        assert store.exact(tx, HERE, "k") is None
        assert tx.rows("SELECT * FROM ledger_version WHERE org = :org") == []
        assert found(tx, "walrus") == ([], [])


def test_as_of_passes_over_versions_that_were_taken_away(database: Database, clock: Clock) -> None:
    with database.transaction(ORG, write=True) as tx:
        one = put(tx, "one")
    clock.step(hours=1)
    with database.transaction(ORG, write=True) as tx:
        two = writes.write(tx, one, (HERE, "k"), rules.draft("two", Attributes()))
        after = writes.delete_version(tx, two, two.head.version)
        assert after.head.version == one.head.version
        then = store.as_of(tx, one.item_id, clock())
        assert then is not None
        assert then.value_text == '"one"'
        assert store.as_of(tx, one.item_id, clock() - 2 * 3600 * 1_000_000) is None


def test_what_a_writer_means(database: Database, clock: Clock) -> None:
    with database.transaction(ORG, write=True) as tx:
        with pytest.raises(NotFound):
            store.for_write(tx, HERE, "k", live, WIDE)
        other = put(tx, "b", at=replace(HERE, agent="b"))
        put(tx, "elsewhere", at=replace(HERE, agent="c", user_id="w"))
        put(tx, "elsewhere", at=replace(HERE, agent="c", namespace="m"))
        assert store.for_write(tx, HERE, "k", live, WIDE) == other
        third = put(tx, "c", at=replace(HERE, agent="c"))
        with pytest.raises(AmbiguousKey) as caught:
            store.for_write(tx, HERE, "k", live, WIDE)
        assert caught.value.extras["writers"] == ["b", "c"]
        own = put(tx, "a")
        assert store.for_write(tx, HERE, "k", live, WIDE) == own
        writes.tombstone(tx, own, "")
        writes.tombstone(tx, third, "")
        assert store.for_write(tx, HERE, "k", live, WIDE) == other
        assert store.for_write(tx, HERE, "k", lambda item: not live(item), WIDE).place == HERE
        writes.tombstone(tx, other, "")
        assert store.for_write(tx, HERE, "k", live, WIDE).place == HERE
        assert store.for_read(tx, HERE, "k", WIDE, clock()) is None


def test_a_note_of_the_last_write_never_goes_back(database: Database) -> None:
    with database.transaction(ORG, write=True) as tx:
        new = put(tx, "v")
        old = replace(new, item_id=7, memory_key="old", head=replace(new.head, version=8))
        writes.insert_version(tx, 7, old.head)
        writes.insert_item(tx, None, old)
        row = tx.row("SELECT last_version FROM namespace WHERE org = :org AND name = :name", name="n")
        assert row == {"last_version": new.head.version}
