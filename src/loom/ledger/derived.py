"""Rows that are built from a user's other rows: what makes them out of date, and what has to leave them at once.

The ledger knows that there is such a row, under one key of each user of a watched
namespace, and tells its builder's job of every change. What the row says is the
builder's. A version's `valid_at` is when its build read the rows it comes from, and
leads to what is kept of that build, whatever happens to the version after.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from loom.canonical import Json, encoded
from loom.errors import Rejected
from loom.ledger import store
from loom.ledger.rules import (
    DELETED_VERSION_TRACE,
    DERIVED,
    DERIVED_KEY,
    LIVE,
    NORMAL,
    PROFILE,
    REDACTED,
    Draft,
    Item,
    Place,
    Version,
    check_own_words,
    draft,
)
from loom.storage.interface import Transaction

QUIET_US: Final = 1_000_000
"""How long after a change a build waits for more of them."""

WAIT_MAX_US: Final = 10_000_000
"""How long after the first change a build begins, however many follow."""

BUILT_AHEAD_MAX_US: Final = 1_000_000
"""How far a build's moment may lie after the time of its version: two builds of one moment are told apart so."""

ALWAYS: Final = (1 << 63) - 1

NOTE = """
INSERT INTO derived_user (org, namespace, user_id, changes, waiting_since, read_at, building_until, wanted, failures,
    failed_at)
SELECT w.org, w.namespace, CAST(:user_id AS TEXT), 1, CAST(:now AS BIGINT), 0, 0, 0, 0, 0
FROM derived_watch w WHERE w.org = :org AND w.namespace = :namespace
ON CONFLICT (org, namespace, user_id) DO UPDATE
SET changes = derived_user.changes + 1, failures = 0,
    waiting_since = CASE WHEN derived_user.waiting_since = 0 THEN excluded.waiting_since
        ELSE derived_user.waiting_since END
WHERE derived_user.read_at < :since
"""

ASK = """
INSERT INTO job (org, kind, subject, generation, run_at, attempts, leased_until)
SELECT u.org, w.job_kind, CAST(:subject AS TEXT), CAST(:generation AS BIGINT),
    CASE WHEN u.waiting_since + :most < :quiet THEN u.waiting_since + :most ELSE CAST(:quiet AS BIGINT) END, 0, 0
FROM derived_user u JOIN derived_watch w ON w.org = u.org AND w.namespace = u.namespace
WHERE u.org = :org AND u.namespace = :namespace AND u.user_id = :user_id AND u.waiting_since > 0
ON CONFLICT (org, kind, subject) DO UPDATE
SET generation = excluded.generation, run_at = excluded.run_at, attempts = 0, leased_until = 0
"""

TOLD_BY = """
SELECT DISTINCT built_at, property FROM derived_source
WHERE org = :org AND item_id = :item_id AND source_id = :source_id
    AND (:any_version = 1 OR source_version = :version)
"""

FOLLOWED = """
SELECT min(version) AS version FROM ledger_version
WHERE org = :org AND item_id = :item_id AND version > :version
"""

BUILDS = "SELECT built_at, exact FROM derived_build WHERE org = :org AND item_id = :item_id"

VALUES_SINCE = """
SELECT version, valid_at FROM ledger_version
WHERE org = :org AND item_id = :item_id AND version > :since AND value IS NOT NULL
"""

ERASE = """
UPDATE ledger_version
SET status = :status, value = NULL, content_sha256 = '', value_length = 0, tags = '[]', source_trace = ''
WHERE org = :org AND item_id = :item_id AND version = :version
"""

ERASED_FROM = """
SELECT min(first) AS first FROM (
    SELECT min(i.item_id) AS first FROM ledger_item i
    WHERE i.org = :org AND i.namespace = :namespace AND i.user_id = :user_id AND i.user_id <> '-'
        AND i.status = 'redacted' AND i.memory_type <> 'structured_profile'
    UNION ALL
    SELECT min(v.version) AS first FROM ledger_item i
    JOIN ledger_version v ON v.org = i.org AND v.item_id = i.item_id
    WHERE i.org = :org AND i.namespace = :namespace AND i.user_id = :user_id AND i.user_id <> '-'
        AND i.memory_type <> 'structured_profile' AND v.value IS NULL
        AND replace(v.source_trace, CAST(:trace AS TEXT), '') <> v.source_trace
) AS erased
"""

UNTELL = """
DELETE FROM derived_source WHERE org = :org AND item_id = :item_id AND source_id = :source_id
    AND (:any_version = 1 OR source_version = :version)
"""
FORGET_SOURCES = "DELETE FROM derived_source WHERE org = :org AND item_id = :item_id"
FORGET_BUILDS = "DELETE FROM derived_build WHERE org = :org AND item_id = :item_id"


def subject_of(namespace: str, user_id: str) -> str:
    """A user as the builder's job names it."""
    return encoded([namespace, user_id])


def place_of(namespace: str, user_id: str) -> Place:
    """Where a user's derived row stands."""
    return Place(namespace, "-", user_id)


def is_fact(item: Item | None) -> bool:
    """Whether a derived row may be built from this one, its expiry aside."""
    return (
        item is not None
        and item.status == LIVE
        and item.head.attributes.sensitivity == NORMAL
        and item.head.attributes.memory_type not in (PROFILE, DERIVED)
    )


def hold(tx: Transaction, namespace: str, user_id: str) -> None:
    """Keep builds of the user's derived row from being written, and erasures out of it, until the transaction ends.

    Held after the key of a fact, and before the rows of the namespace and of the user, by everybody who holds them.
    """
    store.lock(tx, place_of(namespace, user_id), DERIVED_KEY)


def changed(tx: Transaction, before: Item | None, after: Item, stamp: int) -> None:
    """Note that a row changed, for the derived row of its user; nothing where the namespace is not watched.

    Neither statement waits for an answer. A row that expired and is ended by a
    sweep changed when it expired: a build that has read since then knows.

    Args:
        tx: the transaction of the change.
        before: the row as it was; None for a new one.
        after: as it is now.
        stamp: the moment of the change.
    """
    was, is_one = is_fact(before), is_fact(after)
    if not (was or is_one) or (was and is_one and before is not None and before.head.version == after.head.version):
        return
    since = ALWAYS
    if before is not None and not is_one and before.expires_at is not None and before.expires_at <= stamp // 1000:
        since = before.expires_at
    _note(tx, after.place, stamp, since)


def brought(tx: Transaction, item: Item, stamp: int) -> None:
    """Ask for a build where an import brought a derived row: nothing is known here of what it was made of."""
    if item.is_derived and item.status == LIVE:
        _note(tx, item.place, stamp, ALWAYS)


def _note(tx: Transaction, place: Place, stamp: int, since: int) -> None:
    tx.send(NOTE, namespace=place.namespace, user_id=place.user_id, now=stamp // 1000, since=since)
    tx.send(
        ASK,
        namespace=place.namespace,
        user_id=place.user_id,
        subject=subject_of(place.namespace, place.user_id),
        generation=stamp,
        quiet=stamp // 1000 + QUIET_US,
        most=WAIT_MAX_US,
    )


@dataclass(frozen=True, slots=True)
class Tainted:
    """A derived row that tells what is erased.

    Attributes:
        item: the row.
        rest: what is left of its live value; None where it has none that is told.
        versions: those to be erased.
    """

    item: Item
    rest: Draft | None
    versions: Sequence[int]


def tainted(tx: Transaction, fact: Item, number: int | None) -> Tainted | None:
    """The derived row of the fact's user, if versions of it may tell what the fact said. The user is held.

    A version whose build named its sources exactly is left alone where the fact is not among them. Of any other
    that was built while the fact could be read, nothing is trusted.

    Args:
        tx: the transaction that erases.
        fact: the row that is erased.
        number: the one version that is; None for every one.
    """
    item = store.exact(tx, place_of(fact.place.namespace, fact.place.user_id), DERIVED_KEY)
    if item is None or not item.is_derived:
        return None
    which = _which(fact, number)
    told = [
        (cast("int", row["built_at"]), cast("str", row["property"]))
        for row in tx.rows(TOLD_BY, item_id=item.item_id, **which)
    ]
    since, until_us = fact.item_id if number is None else number, _followed_us(tx, fact, number)
    named = {built_at for built_at, _ in told}
    exact = {cast("int", row["built_at"]): bool(row["exact"]) for row in tx.rows(BUILDS, item_id=item.item_id)}
    versions = [
        cast("int", row["version"])
        for row in tx.rows(VALUES_SINCE, item_id=item.item_id, since=since)
        if row["valid_at"] in named or _may_tell(cast("int | None", row["valid_at"]), exact, until_us)
    ]
    rest = None
    if item.head.version in versions and item.status == LIVE:
        built_at = item.head.attributes.valid_at
        known = built_at is not None and exact.get(built_at, False)
        gone = {name for at, name in told if at == built_at} if known else None
        rest = without(item, gone)
    return Tainted(item, rest, versions)


def _may_tell(built_at: int | None, exact: Mapping[int, bool], until_us: int) -> bool:
    """Whether a version may tell a fact that its build does not name as a source.

    One of no build that is kept here was brought by an import, and nothing is known of what it was made of.
    """
    if built_at is None or built_at not in exact:
        return True
    return not exact[built_at] and built_at <= until_us


def check_carried(memory_key: str, agent: str, versions: Sequence[Version]) -> None:
    """Rejected when an imported row has the key or the type of a derived row, and is not of a derived row's form."""
    if memory_key != DERIVED_KEY or any(one.attributes.memory_type != DERIVED for one in versions):
        for one in versions:
            check_own_words(memory_key, one.attributes.memory_type)
        return
    if agent != "-":
        raise Rejected(f"agent: {DERIVED_KEY} is nobody's, and so has the agent -", field="agent")
    for one in versions:
        built_at = one.attributes.valid_at
        if built_at is None or built_at > one.created_at + BUILT_AHEAD_MAX_US:
            raise Rejected("versions: a profile was built before it was written; valid_at says when", field="versions")
        if one.value_text is not None and not one.value_text.startswith("{"):
            raise Rejected("versions: a profile is an object", field="versions")


def carried(tx: Transaction, place: Place, item_id: int, versions: Sequence[Version]) -> list[Version]:
    """Those versions of an imported derived row that may be kept beside what is here. The user is held.

    Not kept is one that may tell what was erased here, nor one that would pass for the work of a build of
    this store: nothing that comes from a file does. What is kept is of no build that is known, so that it is shown as
    history alone, and whatever of the user's is erased takes it along.
    """
    row = tx.row(
        ERASED_FROM,
        namespace=place.namespace,
        user_id=place.user_id,
        trace=DELETED_VERSION_TRACE,
    )
    first = None if row is None else cast("int | None", row["first"])
    built = {row["built_at"] for row in tx.rows(BUILDS, item_id=item_id)}
    return [
        one
        for one in versions
        if one.value_text is None or ((first is None or one.version < first) and one.attributes.valid_at not in built)
    ]


def without(item: Item, gone: set[str] | None) -> Draft:
    """The live value with some properties emptied; None for all of them."""
    value = cast("dict[str, Json]", json.loads(item.head.value_text or "{}"))
    left: dict[str, Json] = {name: None if gone is None or name in gone else one for name, one in value.items()}
    return draft(left, replace(item.head.attributes, expires_at=item.expires_at))


def _which(fact: Item, number: int | None) -> Mapping[str, int]:
    """The parameters that say which sources are meant."""
    return {"source_id": fact.item_id, "any_version": int(number is None), "version": number or 0}


def _followed_us(tx: Transaction, fact: Item, number: int | None) -> int:
    """Until when builds could read a version of the fact, in microseconds."""
    if number is None:
        return ALWAYS
    row = tx.row(FOLLOWED, item_id=fact.item_id, version=number)
    after = None if row is None else cast("int | None", row["version"])
    return ALWAYS if after is None else after // 1000


def erase(tx: Transaction, found: Tainted, fact: Item, number: int | None) -> None:
    """Erase the versions that tell what the fact said, and that it was told."""
    for one in found.versions:
        tx.send(ERASE, item_id=found.item.item_id, version=one, status=REDACTED)
    tx.send(UNTELL, item_id=found.item.item_id, **_which(fact, number))


def forget(tx: Transaction, item: Item) -> None:
    """Remove what is kept of a derived row's builds, when the row goes."""
    if item.is_derived:
        tx.send(FORGET_SOURCES, item_id=item.item_id)
        tx.send(FORGET_BUILDS, item_id=item.item_id)
