"""What of a derived row may be told: not what comes from a row that is served no more.

A fact that is deleted, expires or is made sensitive stays in the derived row, and in its history, until the next
build. Every read of the row, live or past, goes through here, so that what one of them hides no other one shows.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from loom.canonical import Json, measured
from loom.ledger.rules import Item, Version
from loom.storage.interface import Transaction

IS_FACT: Final = """(i.status = 'live' AND i.sensitivity = 'normal' AND i.memory_type <> 'profile'
        AND i.memory_type <> 'structured_profile')"""
"""What the index of facts holds, `derived.is_fact`."""

STILL: Final = "(i.expires_at IS NULL OR i.expires_at > :now)"

LOST: Final = (
    """
SELECT DISTINCT s.built_at, s.property FROM derived_source s
LEFT JOIN ledger_item i ON i.org = s.org AND i.item_id = s.source_id
WHERE s.org = :org AND s.item_id = :item_id AND s.built_at IN (:moments)
    AND (i.item_id IS NULL OR NOT """
    + IS_FACT
    + " OR NOT "
    + STILL
    + ")"
)

KNOWN: Final = """
SELECT built_at FROM derived_build WHERE org = :org AND item_id = :item_id AND built_at IN (:moments)
"""

ENDED_SINCE: Final = (
    """
SELECT 1 AS one FROM ledger_item i
WHERE i.org = :org AND i.namespace = :namespace AND i.user_id = :user_id AND i.item_id <= :last
    AND i.memory_type <> 'profile' AND i.memory_type <> 'structured_profile'
    AND ((i.status = 'live' AND i.sensitivity <> 'normal' AND i.version >= :first)
        OR (i.status = 'tombstoned' AND (i.ended_at IS NULL OR i.ended_at >= :built_at))
        OR i.status = 'redacted'
        OR (i.status = 'live' AND i.sensitivity = 'normal' AND i.expires_at >= :built_at AND NOT """
    + STILL
    + ")) LIMIT 1"
)


def told(tx: Transaction, item: Item, versions: Sequence[Version], now_us: int) -> list[Version]:
    """Versions of an item as readers are shown them; those of any row but a derived one as they are."""
    if not item.is_derived:
        return list(versions)
    moments = {one.attributes.valid_at for one in versions if one.value_text is not None} - {None}
    built = sorted(cast("set[int]", moments))
    if not built:
        return list(versions)
    known = {cast("int", row["built_at"]) for row in tx.rows(KNOWN, item_id=item.item_id, moments=built)}
    gone = lost(tx, item, built, now_us)
    clouded = {moment for moment in built if moment not in known and _ended_since(tx, item, moment, now_us)}
    return [_shown(one, gone, clouded) for one in versions]


def told_item(tx: Transaction, item: Item, now_us: int) -> Item:
    """An item whose latest version is as readers are shown it."""
    (head,) = told(tx, item, [item.head], now_us)
    return item if head is item.head else replace(item, head=head)


def lost(tx: Transaction, item: Item, moments: Collection[int], now_us: int) -> Mapping[int, set[str]]:
    """By the moment of a build, its properties that come from a row which is served no more."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for row in tx.rows(LOST, item_id=item.item_id, moments=sorted(moments), now=now_us):
        found[cast("int", row["built_at"])].add(cast("str", row["property"]))
    return found


def _ended_since(tx: Transaction, item: Item, built_at: int, now_us: int) -> bool:
    """Whether a fact that a build could read is served no more: what a build that is not kept here made of it is open.

    One of no build that is known here was brought by an import. What happened in the build's own microsecond counts.
    """
    return (
        tx.row(
            ENDED_SINCE,
            namespace=item.place.namespace,
            user_id=item.place.user_id,
            first=built_at * 1000,
            last=built_at * 1000 + 999,
            built_at=built_at,
            now=now_us,
        )
        is not None
    )


def _shown(version: Version, gone: Mapping[int, set[str]], clouded: Collection[int]) -> Version:
    built_at = version.attributes.valid_at
    if built_at is None or version.value_text is None:
        return version
    hidden = gone.get(built_at, set())
    if not hidden and built_at not in clouded:
        return version
    value = cast("dict[str, Json]", json.loads(version.value_text))
    every = built_at in clouded
    left: dict[str, Json] = {name: None if every or name in hidden else one for name, one in value.items()}
    made = measured(left)
    return replace(version, value_text=made.text, content_sha256=made.sha256, value_length=made.length)
