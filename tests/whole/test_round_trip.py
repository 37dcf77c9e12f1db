"""A store is moved to the other engine and back by `loom export` and `loom import`, and nothing of it differs."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from fakes import ORG, Clock, Core
from filled import ORGS, TABLES, Tables, differences, fill, searched, tables, whole_core
from loom.storage.interface import Database
from loom.storage.migrate import from_package
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.sqlite import SqliteDatabase, SqliteSettings
from postgres_server import TestServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

SEVERAL = 1100
"""Memories beside the particular ones: more than two calls of store.import take."""

BATCH = 500
DEADLINE_S = 60.0


def rows(database: Database) -> Mapping[str, Tables]:
    """The rows of every org of a store, closed afterwards."""
    found = {org: tables(database, org) for org in ORGS}
    database.close()
    return found


def unlike(before: Mapping[str, Tables], after: Mapping[str, Tables]) -> list[str]:
    """What differs between two stores."""
    return [one for org in ORGS for one in differences(before[org], after[org])]


def in_home(home: Path, clock: Clock | None = None) -> SqliteDatabase:
    settings = SqliteSettings() if clock is None else SqliteSettings(clock_ns=clock.nanoseconds)
    return SqliteDatabase(home / "store", from_package("loom"), settings)


def loom(home: Path, database_url: str, *words: str) -> subprocess.Popen[str]:
    """Start a command of the command line."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOM_")}
    settings = {"LOOM_HOME": str(home), "LOOM_DATABASE_URL": database_url, "LOOM_EMBEDDER": "hashing"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", "loom", *words], env=kept | settings, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def answer(process: subprocess.Popen[str]) -> dict[str, object]:
    """What the command printed; a failure fails the test."""
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    return json.loads(out)


def versions_in(url: str) -> int:
    with psycopg.connect(url) as connection:
        there = connection.execute("SELECT to_regclass('loom.ledger_version') IS NOT NULL").fetchone()
        if not there or not there[0]:
            return 0
        found = connection.execute("SELECT count(*) FROM loom.ledger_version").fetchone()
    return int(found[0]) if found else 0


def broken_off(home: Path, url: str, lines: Sequence[str]) -> None:
    """An import that is killed after its first call was answered and before its file is at its end."""
    process = loom(home, url, "import", "-")
    assert process.stdin is not None
    process.stdin.write("\n".join(lines[: BATCH + 1]) + "\n")
    # What fills the pipe's buffers, so that the reader sees the lines above.
    process.stdin.write("\n" * 100_000)
    process.stdin.flush()
    until_s = time.monotonic() + DEADLINE_S
    while versions_in(url) == 0:
        assert process.poll() is None, "the import goes on while its file has no end"
        assert time.monotonic() < until_s
        threading.Event().wait(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=DEADLINE_S)


def test_a_store_moves_to_the_other_engine_and_back(
    postgres: TestServer, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    first, last = tmp_path / "first", tmp_path / "last"
    clock = Clock()
    core = whole_core(first, in_home(first, clock), clock, pool)
    fill(core, tmp_path / "shop")
    for start in range(0, SEVERAL, 100):
        items = [{"memory_key": f"many/{number}", "value": f"text {number}"} for number in range(start, start + 100)]
        core.call("memory.set_many", items=items, namespace="many")
    core.drain()
    found = searched(core, {org: org for org in ORGS})
    core.database.close()
    before = rows(in_home(first))
    assert all(any(before[org][name] for org in ORGS) for name in TABLES), "every table has rows"
    assert {row["status"] for row in before[ORG]["ledger_item"]} == {"live", "tombstoned", "redacted"}
    statuses = {row["status"] for row in before[ORG]["ledger_version"]}
    assert statuses == {"live", "superseded", "tombstoned", "redacted"}
    there, back = tmp_path / "there.jsonl", tmp_path / "back.jsonl"
    exported = answer(loom(first, "", "export", str(there), "--json"))
    lines = there.read_text("utf-8").splitlines()
    assert exported == {"exported": len(lines)}
    heads = sum(line.startswith('{"kind":"org"') for line in lines)
    assert heads == len(ORGS) - 1
    assert "plumbago" not in there.read_text("utf-8")
    with postgres.bare() as url:
        broken_off(last, url, lines)
        done = answer(loom(last, url, "import", str(there), "--json"))
        assert (done["unchanged"], done["refused"]) == (BATCH, [])
        assert done["imported"] == len(lines) - heads - BATCH
        again = answer(loom(last, url, "import", str(there), "--json"))
        assert again == {"imported": 0, "unchanged": len(lines) - heads, "refused": []}
        assert unlike(before, rows(PostgresDatabase(url, from_package("loom")))) == []
        moved = whole_core(last, PostgresDatabase(url, from_package("loom")), clock, pool)
        assert_found(moved, found)
        assert answer(loom(last, url, "export", str(back), "--json")) == exported
    assert back.read_bytes() == there.read_bytes()
    assert not (last / "store").exists(), "the store was PostgreSQL's"
    assert answer(loom(last, "", "import", str(back), "--json"))["imported"] == len(lines) - heads
    assert unlike(before, rows(in_home(last))) == []
    home_again = whole_core(last, in_home(last, clock), clock, pool)
    assert searched(home_again, {org: org for org in ORGS}) == found
    home_again.database.close()


def assert_found(core: Core, found: str) -> None:
    """The other engine finds the same things, though it does not rank them with the same numbers, nor ties alike."""
    other = searched(core, {org: org for org in ORGS})
    core.database.close()
    for name in ("memory_key", "document_id", "turn_id", "symbol_id", "issue_id", "label"):
        mark = re.compile(f'"{name}": "(?!many/)([^"]*)"')
        assert set(mark.findall(other)) == set(mark.findall(found)), name
