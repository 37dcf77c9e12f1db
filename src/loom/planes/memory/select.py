"""Which memories a read may show: one condition in SQL that every list and search goes through."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from loom.canonical import Json
from loom.ledger import store
from loom.ledger.conditions import REACHED, SEARCHED, reach_params
from loom.ledger.rules import Item, Reader, Version
from loom.planes import candidates
from loom.storage.interface import Param, Row, Transaction

_SHOWN = (
    " AND i.memory_type <> 'profile' AND i.memory_type <> 'structured_profile' AND "
    + SEARCHED
    + " AND "
    + REACHED
    + """
    AND (:any_type = 1 OR i.memory_type IN (:memory_types))
    AND (:any_agent = 1 OR i.agent IN (:agents))
"""
)

HEAD_LENGTH = 64
"""Characters of a value, as JSON, that ranking reads: enough for who speaks."""

VISIBLE = "i.org = :org AND i.namespace IN (:namespaces)" + _SHOWN

BY_IDS = store.COLUMNS + "WHERE " + VISIBLE + " AND i.item_id IN (:ids)"

_ROWS = (
    """
i.item_id, i.version, v.tags, COALESCE(v.valid_at, v.created_at) AS at
"""
    + store.JOINED
    + "WHERE "
)

SEEN = (
    """
SELECT i.item_id, i.agent, i.user_id, i.session_id, i.memory_type, v.tags, v.valid_at, v.created_at,
    substr(v.value, 1, :head_length) AS head
"""
    + store.JOINED
    + "WHERE "
    + VISIBLE
    + " AND i.item_id IN (:ids)"
)

# Of one namespace, in the order of an index, so that no page sorts what is on the others.
VISIBLE_PAGE = (
    "SELECT "
    + _ROWS
    + "i.org = :org AND i.namespace = :namespace AND i.version > :after"
    + _SHOWN
    + "ORDER BY i.version LIMIT :most"
)

IN_TIME = (
    "SELECT "
    + _ROWS
    + VISIBLE
    + """
    AND COALESCE(v.valid_at, v.created_at) >= :start AND COALESCE(v.valid_at, v.created_at) < :end
ORDER BY COALESCE(v.valid_at, v.created_at) DESC, i.item_id LIMIT :most
"""
)


@dataclass(frozen=True, slots=True)
class Filter:
    """What a search may find: what its reader may see, and what it asks for.

    Attributes:
        namespaces: the ones to read.
        reader: how far the read reaches across users.
        now_us: what is expired by then is out.
        tags: a memory must have all of them.
        memory_types: one of these; empty for any but sections.
        agents: written by one of these; None for anybody.
    """

    namespaces: tuple[str, ...]
    reader: Reader
    now_us: int
    tags: tuple[str, ...] = ()
    memory_types: tuple[str, ...] = ()
    agents: tuple[str, ...] | None = None

    def params(self) -> Mapping[str, Param]:
        """The parameters of `VISIBLE`; tags are checked on the rows."""
        return {
            "namespaces": list(self.namespaces),
            "now": self.now_us,
            **reach_params(self.reader),
            "any_type": int(not self.memory_types),
            "memory_types": list(self.memory_types) or [""],
            "any_agent": int(self.agents is None),
            "agents": list(self.agents or ("",)),
        }

    def has_tags(self, tags: Sequence[str]) -> bool:
        """Whether a memory with these tags has every tag that is asked for."""
        return set(self.tags) <= set(tags)


@dataclass(frozen=True, slots=True)
class Seen:
    """What ranking needs of a memory.

    Attributes:
        agent: who wrote it.
        user_id: whom it is about.
        session_id: of its latest version.
        memory_type: its type.
        valid_at: from when its claim holds, microseconds UTC; None if not known.
        created_at: when its latest version was written.
        head: how its value begins, as JSON.
    """

    agent: str
    user_id: str
    session_id: str
    memory_type: str
    valid_at: int | None
    created_at: int
    head: str

    @property
    def at(self) -> int:
        """From when the claim holds, else when it was written."""
        return self.created_at if self.valid_at is None else self.valid_at


def by_ids(tx: Transaction, where: Filter, ids: Sequence[int]) -> list[Item]:
    """Those of the items that the filter lets through, in no order."""
    if not ids:
        return []
    items = map(store.item_of, tx.rows(BY_IDS, ids=list(ids), **where.params()))
    return [item for item in items if where.has_tags(item.head.attributes.tags)]


def seen(tx: Transaction, where: Filter, ids: Sequence[int]) -> Mapping[int, Seen]:
    """Those of the items that the filter lets through. Reads no whole values, which can be large."""
    rows = tx.rows(SEEN, ids=list(ids), head_length=HEAD_LENGTH, **where.params()) if ids else ()
    return {
        cast("int", row["item_id"]): _seen_of(row)
        for row in rows
        if not where.tags or where.has_tags(tags_in(row["tags"]))
    }


def visible(tx: Transaction, where: Filter, page: int = candidates.PAGE_IDS) -> Iterator[Collection[int]]:
    """The ids of everything that the filter lets through in its only namespace, in pages."""
    params = {name: value for name, value in where.params().items() if name != "namespaces"}

    def read(after: int, most: int) -> list[tuple[int, int | None]]:
        rows = tx.rows(VISIBLE_PAGE, namespace=where.namespaces[0], after=after, most=most, **params)
        return [
            (
                cast("int", row["version"]),
                cast("int", row["item_id"]) if not where.tags or where.has_tags(tags_in(row["tags"])) else None,
            )
            for row in rows
        ]

    return candidates.pages(read, 0, page)


def in_time(tx: Transaction, where: Filter, start_us: int, end_us: int, most: int) -> list[int]:
    """Ids of what the filter lets through that is of a time, the latest first; `end_us` is not in it."""
    rows = tx.rows(IN_TIME, start=start_us, end=end_us, most=most, **where.params())
    return [cast("int", row["item_id"]) for row in rows if where.has_tags(tags_in(row["tags"]))]


def _seen_of(row: Row) -> Seen:
    return Seen(
        agent=cast("str", row["agent"]),
        user_id=cast("str", row["user_id"]),
        session_id=cast("str", row["session_id"]),
        memory_type=cast("str", row["memory_type"]),
        valid_at=cast("int | None", row["valid_at"]),
        created_at=cast("int", row["created_at"]),
        head=cast("str", row["head"]),
    )


def tags_in(stored: object) -> Sequence[str]:
    """Tags as a row keeps them."""
    return cast("list[str]", json.loads(cast("str", stored)))


def value_of(version: Version) -> Json:
    """A version's value; null where it has none."""
    return None if version.value_text is None else cast("Json", json.loads(version.value_text))
