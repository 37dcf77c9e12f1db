"""What memory.list reads: rows in order, a page at a time, filtered where SQL filters alike on every engine."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal, cast

from loom.ledger import store, telling
from loom.ledger.conditions import DELETED_VERSION_PARAMS, NOT_DELETED_VERSION, VERSION_REACHED, reach_params
from loom.ledger.rules import Item, Reader
from loom.storage.interface import Param, Row, Transaction

SCAN_ROWS = 500
SCAN_ROWS_MAX = 50_000
"""Rows looked at by one call whose filter SQL cannot apply (tags, contains); beyond, the count is a floor."""

FILTER = (
    """
WHERE i.org = :org AND i.namespace = :namespace
    AND """
    + VERSION_REACHED
    + """
    AND ((:any_type = 1 AND v.memory_type <> 'profile' AND v.memory_type <> 'structured_profile')
        OR v.memory_type IN (:memory_types))
    AND (:any_agent = 1 OR i.agent IN (:agents))
    AND substr(i.memory_key, 1, :prefix_length) = :prefix
"""
)

NOW = (
    store.JOINED
    + FILTER
    + """
    AND CASE WHEN i.status = 'live' AND i.expires_at IS NOT NULL AND i.expires_at <= :now
        THEN 'expired' ELSE i.status END IN (:statuses)
"""
)

AS_OF = (
    """
FROM ledger_item i
JOIN ledger_version v ON v.org = i.org AND v.item_id = i.item_id AND v.version = (
    SELECT max(w.version) FROM ledger_version w
    WHERE w.org = i.org AND w.item_id = i.item_id AND w.created_at <= :now
        AND """  # noqa: S608  # the parts are constants
    + NOT_DELETED_VERSION
    + ")"
    + FILTER
    + """
    AND v.value IS NOT NULL AND (v.expires_at IS NULL OR v.expires_at > :now) AND 'live' IN (:statuses)
"""
)

# Each begins where an index can seek, so that a page costs the same wherever it lies.
AFTER_KEY = """
    AND i.memory_key >= :after_key AND (i.memory_key > :after_key OR i.item_id > :after_number)
ORDER BY i.memory_key, i.item_id LIMIT :most
"""

AFTER_VERSION = """
    AND i.version < :after_number
ORDER BY i.version DESC LIMIT :most
"""

AFTER_PAST_VERSION = """
    AND v.version < :after_number
ORDER BY v.version DESC LIMIT :most
"""

PAGES: Mapping[tuple[bool, str], str] = {
    (False, "memory_key"): store.SELECTED + NOW + AFTER_KEY,
    (True, "memory_key"): store.SELECTED + AS_OF + AFTER_KEY,
    (False, "newest"): store.SELECTED + NOW + AFTER_VERSION,
    (True, "newest"): store.SELECTED + AS_OF + AFTER_PAST_VERSION,
}

COUNTS = {False: "SELECT count(*) AS total " + NOW, True: "SELECT count(*) AS total " + AS_OF}

Order = Literal["memory_key", "newest"]


@dataclass(frozen=True, slots=True)
class After:
    """The last row of the page before: its key and id, or its version."""

    key: str = ""
    number: int = 0


BEFORE_ALL: Mapping[Order, After] = {"memory_key": After(), "newest": After(number=store.BEFORE_ALL)}
"""Where each order begins."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What is listed.

    Attributes:
        namespace: the one that is read.
        reader: how far the read reaches across users.
        moment_us: as of when.
        past: whether that moment was asked for, so that old versions count.
        prefix: what keys begin with.
        memory_types: these alone; empty for all but sections.
        agents: rows of these; None for anybody's.
        statuses: rows that are live, tombstoned, redacted or expired.
        order: by key, or the newest first.
        test: what SQL does not decide; None for nothing more.
        now_us: now, whatever moment is asked for: what is served no more by now is not shown of the past either.
    """

    namespace: str
    reader: Reader
    moment_us: int
    past: bool
    prefix: str
    memory_types: tuple[str, ...]
    agents: tuple[str, ...] | None
    statuses: tuple[str, ...]
    order: Order
    test: Callable[[Item], bool] | None
    now_us: int

    def params(self) -> Mapping[str, Param]:
        """The parameters of `NOW` and `AS_OF`."""
        return {
            "namespace": self.namespace,
            "now": self.moment_us,
            **reach_params(self.reader),
            **DELETED_VERSION_PARAMS,
            "any_type": int(not self.memory_types),
            "memory_types": list(self.memory_types) or [""],
            "any_agent": int(self.agents is None),
            "agents": list(self.agents or ("",)),
            "prefix": self.prefix,
            "prefix_length": len(self.prefix),
            "statuses": list(self.statuses),
        }


def page(tx: Transaction, listing: Listing, after: After | None, most: int) -> list[Item]:
    """The next rows, at most `most`, without the listing's `test`."""
    after = after or BEFORE_ALL[listing.order]
    place: dict[str, Param] = {"after_number": after.number}
    if listing.order == "memory_key":
        place["after_key"] = after.key
    rows = tx.rows(PAGES[listing.past, listing.order], most=most, **place, **listing.params())
    return [telling.told_item(tx, item, listing.now_us) for item in map(store.item_of, rows)]


def passing(tx: Transaction, listing: Listing, after: After | None) -> Iterator[Item]:
    """Every row that passes the listing's `test`, in order, read in pages; at most 50,000 rows are looked at."""
    for _ in range(SCAN_ROWS_MAX // SCAN_ROWS):
        found = page(tx, listing, after, SCAN_ROWS)
        for item in found:
            if listing.test is None or listing.test(item):
                yield item
        if len(found) < SCAN_ROWS:
            return
        after = place_after(listing.order, found[-1])


def read(tx: Transaction, listing: Listing, after: After | None, most: int) -> tuple[list[Item], int, bool]:
    """The next rows that pass, at most `most`; how many pass in all, and whether that is exact."""
    row = cast("Row", tx.row(COUNTS[listing.past], **listing.params()))
    total = cast("int", row["total"])
    if listing.test is None:
        return page(tx, listing, after, most), total, True
    found: list[Item] = [] if after is None else list(islice(passing(tx, listing, after), most))
    count = 0
    for item in passing(tx, listing, None):
        count += 1
        if after is None and count <= most:
            found.append(item)
    return found, count, total <= SCAN_ROWS_MAX


def some(tx: Transaction, listing: Listing, after: After | None, most: int) -> list[Item]:
    """The next rows that pass, at most `most`, without counting the others."""
    if listing.test is None:
        return page(tx, listing, after, most)
    return list(islice(passing(tx, listing, after), most))


def place_after(order: Order, item: Item) -> After:
    """Where to go on after an item."""
    if order == "memory_key":
        return After(item.memory_key, item.item_id)
    return After("", item.head.version)
