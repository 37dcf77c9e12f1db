"""What the server engine stands on: the same rows read and written with psycopg alone, without Loom's code around.

The SQL is the ledger's own. Left out are dispatch, validation, our tokeniser
(PostgreSQL makes the tokens) and HTTP.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from loom.access import namespaces
from loom.jobs import outbox
from loom.ledger import store, writes
from loom.storage.postgres.connection import literal
from loom.storage.postgres.dialect import SCHEMA, translated

ORG = "dev"
SPACE = "bare"
WARM_UP_EACH = 8
"""Appends of each client before it counts; psycopg prepares what was run five times."""

BEGIN = "BEGIN; SELECT set_config('loom.org', '{org}', true), pg_advisory_xact_lock({key})"
STAMP = "SELECT loom.store_next_stamp(%(org)s, CAST(%(now)s AS BIGINT), 0)"
PUT_TEXT = """
INSERT INTO text_entry (org, shelf_id, item_id, part, token_count, tokens)
VALUES (%(org)s, 1, %(item_id)s, 0, 1, to_tsvector('simple', %(value)s))
ON CONFLICT (org, shelf_id, item_id, part) DO UPDATE SET tokens = excluded.tokens
"""
REMOVE_VECTORS = "DELETE FROM vector_row WHERE org = %(org)s AND shelf_id = 1 AND item_id = %(item_id)s"

Connection = psycopg.Connection[DictRow]


def connected(url: str) -> Connection:
    """A connection that sees Loom's tables."""
    connection = psycopg.connect(url, autocommit=True, row_factory=dict_row)
    connection.execute(literal(f"SET search_path TO {SCHEMA}, public; SELECT set_config('loom.org', '{ORG}', false)"))
    return connection


def settle(url: str) -> None:
    """Vacuum and analyse, as PostgreSQL's own service does some time after a load."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


def selector(url: str, namespace: str) -> Callable[[str], Mapping[str, Any]]:
    """A memory by its key: one prepared select on the unique index."""
    connection = connected(url)
    sql = literal(translated(store.EXACT))
    where = {"org": ORG, "namespace": namespace, "agent": "bench", "user_id": "-"}

    def select(key: str) -> Mapping[str, Any]:
        row = connection.execute(sql, {**where, "memory_key": key}, prepare=True).fetchone()
        if row is None:
            raise SystemExit(f"there is no {key}")
        return row

    return select


def app(url: str, namespace: str) -> Starlette:
    """A Starlette app whose one POST route answers with a bare select."""
    select = selector(url, namespace)

    async def get(request: Request) -> JSONResponse:
        body = await request.json()
        return JSONResponse({"value": json.loads(select(body["memory_key"])["value"])})

    return Starlette(routes=[Route("/v1/{op}", get, methods=["POST"])])


def _version(item_id: int, number: int, value: str) -> dict[str, str | int | float | None]:
    """Every column of a version and of its item."""
    return {
        "org": ORG,
        "item_id": item_id,
        "version": number,
        "status": "live",
        "session_id": "-",
        "run_id": "-",
        "memory_type": "profile",
        "value": value,
        "content_sha256": hashlib.sha256(value.encode()).hexdigest(),
        "value_length": len(value),
        "char_limit": None,
        "tags": "[]",
        "confidence": 1.0,
        "source_trace": "",
        "sensitivity": "normal",
        "valid_at": None,
        "valid_to": None,
        "expires_at": None,
        "ended_at": None,
        "pinned": 0,
        "lock_mode": "",
        "lock_reason": "",
        "created_at": number // 1000,
    }


class Appender:
    """One client that appends lines to one section, each in the transaction of profile.append."""

    def __init__(self, url: str, label: str) -> None:
        self._connection = connected(url)
        self._place = {"org": ORG, "namespace": SPACE, "agent": "bare", "user_id": "-", "memory_key": label}
        digest = hashlib.blake2b(label.encode(), digest_size=8).digest()
        self._begin = literal(BEGIN.format(org=ORG, key=int.from_bytes(digest, "big", signed=True)))

    def append(self, line: str, label: str = "") -> None:
        """Read the section under its lock, write it with one line more, commit."""
        run = self._connection.execute
        place = {**self._place, "memory_key": label} if label else self._place
        run(self._begin)
        before = run(literal(translated(store.EXACT)), place).fetchone()
        number = self._stamp()
        text = line if before is None else json.loads(before["value"]) + "\n" + line
        version = _version(before["item_id"] if before else number, number, json.dumps(text))
        with self._connection.pipeline():
            if before is not None:
                run(
                    literal(translated(writes.SET_STATUS)),
                    {**version, "version": before["version"], "status": "superseded"},
                )
            run(literal(translated(writes.PUT_VERSION)), version)
            run(literal(translated(writes.PUT_ITEM)), {**place, **version})
            touched = {"name": SPACE, "kind": "memory", "created_at": number // 1000}
            run(literal(translated(namespaces.TOUCH)), {**version, **touched})
            run(PUT_TEXT, version)
            run(REMOVE_VECTORS, version)
            queued = {"kind": "bare", "subject": "x", "generation": time.time_ns(), "run_at": (1 << 62)}
            run(literal(translated(outbox.ENQUEUE)), {"org": ORG, **queued})
        run("COMMIT")

    def _stamp(self) -> int:
        row = self._connection.execute(STAMP, {"org": ORG, "now": time.time_ns()}).fetchone()
        return int(row["store_next_stamp"]) if row else 0


def appends_per_s(url: str, clients: int, each: int) -> float:
    """Appends a second of so many clients to one section, each with a connection of its own."""
    label = f"bare {time.time_ns()}"
    appenders = [Appender(url, label) for _ in range(clients)]
    begin = threading.Barrier(clients + 1)

    def work(number: int) -> None:
        for turn in range(WARM_UP_EACH):
            appenders[number].append(f"c{number}n{turn}", label="before")
        begin.wait()
        for turn in range(each):
            appenders[number].append(f"c{number}n{turn}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    begin.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return clients * each / (time.perf_counter() - start)
