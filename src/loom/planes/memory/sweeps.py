"""Upkeep: what expired is ended, what ended long ago is purged. Each run is bounded."""

from typing import cast

from loom.jobs.handlers import Bench, Sweep
from loom.ledger import store, writes
from loom.ledger.rules import LIVE, Item
from loom.ops.fields import DAY_US
from loom.planes.memory.ops_remove import recoverable_until
from loom.planes.memory.rules import EXPIRED_TRACE
from loom.storage.interface import Transaction

ROWS_MAX = 200
"""Rows that one run ends, and that it purges."""

EXPIRED = """
SELECT item_id FROM ledger_item
WHERE org = :org AND expires_at IS NOT NULL AND expires_at <= :now AND status = 'live'
ORDER BY expires_at LIMIT :most
"""

ENDED = """
SELECT item_id FROM ledger_item
WHERE org = :org AND ended_at IS NOT NULL AND ended_at <= :before
ORDER BY ended_at LIMIT :most
"""


def end_expired(bench: Bench, org: str) -> None:
    """Turn expired rows into tombstones, so that they can be restored for a while and then go."""
    now_us = bench.clock_us()
    with bench.database.transaction(org, write=False) as tx:
        ids = [cast("int", row["item_id"]) for row in tx.rows(EXPIRED, now=now_us, most=ROWS_MAX)]
    if not ids:
        return
    with bench.database.transaction(org, write=True) as tx:
        for item in _locked(tx, ids):
            if item.status == LIVE and not item.is_live(now_us):
                writes.tombstone(tx, item, EXPIRED_TRACE)


def purge_ended(bench: Bench, org: str) -> None:
    """Remove rows that can be restored no more, with every version."""
    now_us, days = bench.clock_us(), bench.tombstone_days
    with bench.database.transaction(org, write=False) as tx:
        rows = tx.rows(ENDED, before=now_us - days * DAY_US, most=ROWS_MAX)
        ids = [cast("int", row["item_id"]) for row in rows]
    if not ids:
        return
    with bench.database.transaction(org, write=True) as tx:
        for item in _locked(tx, ids):
            until = recoverable_until(item, days)
            if until is not None and until <= now_us:
                writes.purge(tx, item)


def _locked(tx: Transaction, ids: list[int]) -> list[Item]:
    """The items as they are once nobody else can change them, locked in one order."""
    for item in sorted(store.by_ids(tx, ids).values(), key=lambda item: (item.place.namespace, item.memory_key)):
        store.lock(tx, item.place, item.memory_key)
    return list(store.by_ids(tx, ids).values())


SWEEPS: tuple[Sweep, ...] = (end_expired, purge_ended)
