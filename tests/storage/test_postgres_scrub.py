"""What was redacted is in no file of the database any more, whoever redacted and whoever does the upkeep."""

import secrets
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from store_kit import WAIT_S, undone

from loom.ledger import store, writes
from loom.ledger.indexing import Embedded
from loom.ledger.rules import Attributes, Place, draft
from loom.storage.interface import Database
from loom.storage.migrate import from_package
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.postgres.scrub import Scrubber
from loom.storage.postgres.settings import PostgresSettings
from postgres_server import TestServer

pytestmark = pytest.mark.slow

ORG = "acme"
PLACE = Place("local", "weaver", "-")
WINDOW = 8
"""Letters of a word that are looked for together: compressed pages cut words into pieces."""

UNIT = [1.0, *[0.0] * 15]


@pytest.fixture
def url(postgres: TestServer) -> Iterator[str]:
    with postgres.bare() as made:
        PostgresDatabase(made, from_package("loom")).close()
        yield made


def opened(url: str, rewrite_bytes_max: int = 1 << 30) -> PostgresDatabase:
    return PostgresDatabase(url, from_package("loom"), PostgresSettings(rewrite_bytes_max=rewrite_bytes_max))


def word() -> str:
    return "z" + secrets.token_hex(15)


def remember(database: Database, key: str, text: str) -> None:
    vector = np.array(UNIT, np.float32)
    with database.transaction(ORG, write=True) as tx:
        writes.write(tx, store.exact(tx, PLACE, key), (PLACE, key), draft(text, Attributes()), Embedded("s", [vector]))


def redact(database: Database, key: str) -> None:
    with database.transaction(ORG, write=True) as tx:
        item = store.exact(tx, PLACE, key)
        assert item is not None
        writes.redact(tx, item)


def remains(url: str, words: list[str]) -> list[str]:
    """Those of the words of which the database's files hold a part."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        found = connection.execute(
            "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
        ).fetchone()
    assert found is not None
    held = b"\n".join(path.read_bytes() for path in (Path(found[0]) / "base" / str(found[1])).iterdir())
    return [one for one in words if any(one[at : at + WINDOW].encode() in held for at in range(len(one) - WINDOW))]


def wishes(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT count(*) FROM loom.store_scrub").fetchone()
    assert row is not None
    return int(row[0])


def texts_with(words: list[str]) -> dict[str, str]:
    """A short text, one of some pages' length that TOAST holds, and one whose every version has a word."""
    filler = " ".join(secrets.token_hex(4) for _ in range(3000))
    return {"short": f"say {words[0]} softly", "long": f"{words[1]} {filler} {words[2]}", "other": f"{words[3]} end"}


def filled(database: Database) -> tuple[list[str], list[str]]:
    """Words that were redacted, and words that are kept; both are in the store's files."""
    gone, kept = [word() for _ in range(5)], [word() for _ in range(4)]
    for number in range(40):
        remember(database, f"filler/{number}", " ".join(secrets.token_hex(4) for _ in range(30)))
    for prefix, words in (("gone", gone), ("kept", kept)):
        for name, text in texts_with(words).items():
            remember(database, f"{prefix}/{name}", text)
    remember(database, "gone/other", f"and {gone[4]} now")
    return gone, kept


def analyzed(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")


def test_no_file_holds_a_redacted_word_after_an_upkeep_of_another_process(url: str) -> None:
    servers, worker = opened(url), opened(url)
    gone, kept = filled(servers)
    analyzed(url)
    assert remains(url, gone + kept) == gone + kept
    for name in ("short", "long", "other"):
        redact(servers, f"gone/{name}")
    servers.close()
    assert wishes(url) == 3
    assert remains(url, gone) == gone
    worker.maintain()
    assert wishes(url) == 0
    assert remains(url, gone) == []
    assert remains(url, kept) == kept
    with worker.transaction(ORG, write=False) as tx:
        item = store.exact(tx, PLACE, "kept/long")
        assert item is not None
        assert kept[2] in str(item.head.value_text)
    assert list(worker.check()) == []
    worker.close()


def test_a_dropped_shelf_leaves_nothing_either(url: str) -> None:
    database = opened(url)
    gone, _ = filled(database)
    with database.transaction(ORG, write=True) as tx:
        writes.purge_namespace(tx, PLACE.namespace)
    database.maintain()
    assert wishes(url) == 0
    assert remains(url, gone) == []
    database.close()


def test_a_removal_that_is_undone_wishes_nothing(url: str) -> None:
    database = opened(url)
    remember(database, "k", "text")
    with undone(database) as tx:
        item = store.exact(tx, PLACE, "k")
        assert item is not None
        writes.redact(tx, item)
    assert wishes(url) == 0
    database.close()


def test_a_wish_waits_for_whoever_still_sees_the_text(url: str) -> None:
    database = opened(url)
    gone, _ = filled(database)
    with psycopg.connect(url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1")
        for name in ("short", "long", "other"):
            redact(database, f"gone/{name}")
        database.maintain()
        assert wishes(url) == 3
    database.maintain()
    assert wishes(url) == 0
    assert remains(url, gone) == []
    database.close()


def test_a_table_in_use_is_left_to_the_next_round_and_nobody_waits_for_long(url: str) -> None:
    database, next_one = opened(url), opened(url)
    gone, _ = filled(database)
    for name in ("short", "long", "other"):
        redact(database, f"gone/{name}")
    with psycopg.connect(url) as reader:
        reader.execute("LOCK TABLE loom.ledger_version IN ACCESS SHARE MODE")
        database.maintain()
        assert wishes(url) == 3
    next_one.maintain()
    assert wishes(url) == 0
    assert remains(url, gone) == []
    database.close()
    next_one.close()


def test_a_round_that_was_killed_is_done_again(url: str) -> None:
    database, other = opened(url), opened(url)
    database._scrubber = Scrubber(1 << 30, lock_wait_s=int(WAIT_S))  # so that it does not give up by itself
    gone, _ = filled(database)
    for name in ("short", "long", "other"):
        redact(database, f"gone/{name}")
    with psycopg.connect(url) as reader, psycopg.connect(url, autocommit=True) as killer:
        reader.execute("LOCK TABLE loom.ledger_version IN ACCESS SHARE MODE")
        errors: list[BaseException] = []

        def upkeep() -> None:
            try:
                database.maintain()
            except Exception as error:  # noqa: BLE001 - whatever a killed connection raises
                errors.append(error)

        thread = threading.Thread(target=upkeep)
        thread.start()
        killed = 0
        while not killed and thread.is_alive():
            killed = killer.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'loom upkeep' AND query LIKE 'VACUUM%'"
                " AND wait_event_type = 'Lock'"
            ).rowcount
        thread.join(WAIT_S)
        assert len(errors) == 1
    assert wishes(url) == 3
    other.maintain()
    assert wishes(url) == 0
    assert remains(url, gone) == []
    database.close()
    other.close()


def test_tables_on_other_servers_are_never_locked(url: str) -> None:
    database = opened(url)
    remember(database, "k", "text")
    redact(database, "k")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE public.pg_dist_partition ()")
        before = connection.execute("SELECT pg_relation_filenode('loom.ledger_version')").fetchone()
        database.maintain()
        assert connection.execute("SELECT pg_relation_filenode('loom.ledger_version')").fetchone() == before
    assert wishes(url) == 0
    database.close()


def test_a_large_tables_word_index_is_rebuilt_and_what_may_be_left_is_told(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = opened(url, rewrite_bytes_max=0)
    gone, kept = filled(database)
    for name in ("short", "long", "other"):
        redact(database, f"gone/{name}")
    database.maintain()
    assert wishes(url) == 0
    with psycopg.connect(url, autocommit=True) as connection:
        index = connection.execute(
            "SELECT pg_relation_filepath('loom.text_entry_tokens'), current_setting('data_directory')"
        )
        path, folder = index.fetchone() or ("", "")
        connection.execute("CHECKPOINT")
        held = (Path(folder) / path).read_bytes()
    assert all(one.encode() not in held for one in gone)
    assert all(one.encode() in held for one in kept)
    assert "ledger_version may hold text removed since" in caplog.text
    caplog.clear()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (FULL)")
    assert remains(url, gone) == []
    assert list(database.check()) == []
    database.close()
    remember(other := opened(url), "more", "text")
    redact(other, "more")
    other.maintain()
    assert wishes(url) == 0
    assert "may hold" not in caplog.text
    other.close()
