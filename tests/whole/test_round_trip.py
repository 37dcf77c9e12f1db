"""A store is moved to the other engine and back by `loom export` and `loom import`, and nothing of it differs."""

import json
import os
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

from fakes import ORG, Clock, Core, core_of
from loom.ledger import embedding
from loom.planes import memory, profile
from loom.storage.interface import Database, Row
from loom.storage.migrate import from_package
from loom.storage.postgres.engine import PostgresDatabase
from loom.storage.sqlite import SqliteDatabase, SqliteSettings
from postgres_server import TestServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

SEVERAL = 1100
"""Memories beside the particular ones: more than two calls of memory.import take."""

BATCH = 500
DEADLINE_S = 60.0
UNICODE = "Grüße, 日本語, 👩‍👩‍👧, e\u0301 ≠ \u00e9, \u202eright to left, null \\u0000 in words, tab\tand\nline"

TABLES = {
    "namespace": "SELECT * FROM namespace WHERE org = :org ORDER BY name",
    "ledger_item": "SELECT * FROM ledger_item WHERE org = :org ORDER BY item_id",
    "ledger_version": "SELECT * FROM ledger_version WHERE org = :org ORDER BY item_id, version",
}

Tables = Mapping[str, Sequence[Row]]


def fill(core: Core) -> None:
    """Every kind of row there is."""
    for number in range(130):
        core.call(
            "memory.set", memory_key="long", value={"ü": number, "deep": [None, 1.5, {"a": True}]}, tags=["a", "ß"]
        )
    for user in ("ann", "日本", "-"):
        for agent in ("claude", "codex"):
            core.call("memory.set", memory_key=UNICODE[:40], value=UNICODE, user_id=user, agent=agent, session_id="s1")
    core.call("memory.set", memory_key="locked", value="kept", run_id="r", source_trace="trace ü")
    core.call("memory.lock", memory_key="locked", mode="read_only", reason="because of ü")
    core.call("memory.set", memory_key="guarded", value=1, confidence=0.1)
    core.call("memory.lock", memory_key="guarded", mode="no_delete", reason="why")
    core.call("memory.set", memory_key="pinned", value=2**62, namespace="second")
    core.call("memory.pin", memory_key="pinned", namespace="second")
    core.call("memory.set", memory_key="gone", value="deleted text", namespace="second")
    core.call("memory.delete", memory_key="gone", namespace="second", source_trace="cleaning")
    core.call("memory.set", memory_key="back", value="was away")
    core.call("memory.delete", memory_key="back")
    core.call("memory.restore", memory_key="back")
    core.call("memory.set", memory_key="black", value="plumbago", tags=["plumbago"])
    core.call("memory.set", memory_key="black", value="plumbago again")
    core.call("memory.redact", memory_key="black")
    one = core.call("memory.set", memory_key="holed", value="first")
    core.call("memory.set", memory_key="holed", value=None)
    core.call("memory.delete_version", memory_key="holed", version_text=one["version_text"])
    core.call("memory.set", memory_key="late", value="expires", ttl_seconds=60, user_id="ann")
    core.call("memory.set", memory_key="valid", value="", sensitivity="high", valid_at="2026-01-01T00:00:00.000001Z")
    core.call("profile.set", label="persona", value="brief", char_limit=50, user_id="ann")
    for number in range(3):
        core.call("profile.append", label="style", addition=f"line {number} é", user_id="ann", namespace="dritte Welt")
    for start in range(0, SEVERAL, 100):
        items = [{"memory_key": f"many/{number}", "value": f"text {number}"} for number in range(start, start + 100)]
        core.call("memory.set_many", items=items, namespace="many")
    core.clock.step(hours=1)


def tables(database: Database) -> Tables:
    """The rows of a store, closed afterwards."""
    with database.transaction(ORG, write=False) as tx:
        found = {name: [dict(row) for row in tx.rows(sql)] for name, sql in TABLES.items()}
    database.close()
    return found


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
    core = core_of([*memory.OPS, *profile.OPS], embedding.JOBS, {}, in_home(first, clock), clock, pool)
    fill(core)
    core.database.close()
    before = tables(in_home(first))
    assert {row["status"] for row in before["ledger_item"]} == {"live", "tombstoned", "redacted"}
    assert {row["status"] for row in before["ledger_version"]} == {"live", "superseded", "tombstoned", "redacted"}
    there, back = tmp_path / "there.jsonl", tmp_path / "back.jsonl"
    exported = answer(loom(first, "", "export", str(there), "--json"))
    lines = there.read_text("utf-8").splitlines()
    assert exported == {"exported": len(lines)}
    assert len(lines) > 2 * BATCH
    with postgres.bare() as url:
        broken_off(last, url, lines)
        done = answer(loom(last, url, "import", str(there), "--json"))
        assert (done["unchanged"], done["refused"]) == (BATCH, [])
        assert done["imported"] == len(lines) - BATCH
        again = answer(loom(last, url, "import", str(there), "--json"))
        assert again == {"imported": 0, "unchanged": len(lines), "refused": []}
        assert tables(PostgresDatabase(url, from_package("loom"))) == before
        assert answer(loom(last, url, "export", str(back), "--json")) == exported
    assert back.read_bytes() == there.read_bytes()
    assert not (last / "store").exists(), "the store was PostgreSQL's"
    assert answer(loom(last, "", "import", str(back), "--json"))["imported"] == len(lines)
    assert tables(in_home(last)) == before
