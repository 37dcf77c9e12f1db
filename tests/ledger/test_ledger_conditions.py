"""The conditions in SQL say what the rules say of one row."""

from dataclasses import replace
from itertools import product

import pytest

from loom.access.caller import ReadScope
from loom.ledger import conditions, rules, store, writes
from loom.ledger.rules import DELETED_VERSION_TRACE, Attributes, Item, Place, Reader
from loom.storage.interface import Database, Transaction, Value

ORG = "dev"
KEY = "k"
NOW_US = 5_000_000
WHERE = "WHERE i.org = :org AND i.memory_key = :memory_key AND "
USERS, SESSIONS = ("-", "ada", "ben"), ("-", "s1", "s2")


def put(tx: Transaction, user: str, session: str, **attributes: object) -> Item:
    made = rules.draft("v", replace(Attributes(), **attributes), session)
    at = Place("n", "a", user)
    return writes.write(tx, store.exact(tx, at, KEY), (at, KEY), made)


def ids(tx: Transaction, condition: str, **params: Value) -> set[int]:
    rows = tx.rows(store.COLUMNS + WHERE + condition, memory_key=KEY, **params)
    return {store.item_of(row).item_id for row in rows}


@pytest.mark.parametrize("condition", [conditions.REACHED, conditions.VERSION_REACHED])
def test_reach_is_one_rule(database: Database, condition: str) -> None:
    with database.transaction(ORG, write=True) as tx:
        for session in SESSIONS:
            items = [put(tx, user, session) for user in USERS]
            for scope, user, its in product(ReadScope, USERS, SESSIONS):
                reader = Reader(scope, user, its)
                seen = {item.item_id for item in items if rules.sees(reader, item)}
                assert ids(tx, condition, **conditions.reach_params(reader)) == seen, reader


@pytest.mark.parametrize("condition", [conditions.REACHED, conditions.VERSION_REACHED])
def test_a_row_that_tells_of_every_session_is_not_read_from_within_one(database: Database, condition: str) -> None:
    with database.transaction(ORG, write=True) as tx:
        items = {user: put(tx, user, "-", memory_type=rules.DERIVED) for user in USERS}
        for scope, user, its in product(ReadScope, USERS, SESSIONS):
            reader = Reader(scope, user, its)
            seen = ids(tx, condition, **conditions.reach_params(reader))
            assert seen == {item.item_id for item in items.values() if rules.sees(reader, item)}, reader
            alone = scope is ReadScope.OWN_SESSION
            assert (items["ada"].item_id in seen) == (scope is ReadScope.NAMESPACE or (user == "ada" and not alone))


def test_life_is_one_rule(database: Database) -> None:
    with database.transaction(ORG, write=True) as tx:
        ends = (None, NOW_US - 1, NOW_US, NOW_US + 1)
        items = [put(tx, f"user{number}", "-", expires_at=end) for number, end in enumerate(ends)]
        items.append(writes.tombstone(tx, put(tx, "ended", "-"), ""))
        items.append(writes.redact(tx, put(tx, "redacted", "-")))
        live = {item.item_id for item in items if item.is_live(NOW_US)}
        assert len(live) == 2
        assert ids(tx, conditions.IS_LIVE, now=NOW_US) == live
        high = put(tx, "high", "-", sensitivity=rules.HIGH)
        assert ids(tx, conditions.IS_LIVE, now=NOW_US) == live | {high.item_id}
        assert ids(tx, conditions.SEARCHED, now=NOW_US) == live


@pytest.mark.parametrize("trace", ["", "Memory.Delete_Version:1", "memoryXdelete_version:1", "memory.deleteXversion:1"])
def test_a_trace_that_is_merely_like_the_mark_is_a_version_of_its_moment(database: Database, trace: str) -> None:
    with database.transaction(ORG, write=True) as tx:
        item = put(tx, "-", "-", source_trace=trace)
        assert ids(tx, conditions.NOT_DELETED_VERSION, **conditions.DELETED_VERSION_PARAMS) == {item.item_id}
        assert store.as_of(tx, item.item_id, item.head.created_at) == item.head
        tx.run(
            "UPDATE ledger_version SET source_trace = :trace WHERE org = :org",
            trace=f"{DELETED_VERSION_TRACE}{item.head.version}",
        )
        assert ids(tx, conditions.NOT_DELETED_VERSION, **conditions.DELETED_VERSION_PARAMS) == set()
        assert store.as_of(tx, item.item_id, item.head.created_at) is None
