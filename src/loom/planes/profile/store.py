"""Where sections are read: by their place, all that a reader may see, and by id."""

from collections.abc import Sequence
from typing import cast

from loom.ledger import store
from loom.ledger.conditions import REACHED, SEARCHED, reach_params
from loom.ledger.rules import HIGH, Item, Place, Reader
from loom.storage.interface import Transaction

SECTIONS_MAX = 1000
"""Sections that one render reads; what is beyond is left out and named as degraded."""

SERVED = (
    """
i.org = :org AND i.namespace = :namespace AND i.memory_type = 'profile'
    AND """
    + SEARCHED
    + " AND "
    + REACHED
)

# Ordered by an expression, so that no engine walks every key of the namespace in order, but takes the few sections.
SECTIONS = (
    store.COLUMNS
    + "WHERE "
    + SERVED
    + """
    AND (:any_agent = 1 OR i.agent = :agent)
    AND (:any_label = 1 OR i.memory_key IN (:labels))
ORDER BY COALESCE(i.memory_key, ''), i.agent, i.user_id LIMIT :most
"""
)

VISIBLE_MAX = 10_000
"""Sections among which a narrow reader's search looks."""

VISIBLE_IDS = (
    "SELECT i.item_id FROM ledger_item i WHERE " + SERVED + " ORDER BY +i.item_id LIMIT :most"  # noqa: S608  # constants
)


def held(tx: Transaction, place: Place, label: str) -> Item | None:
    """The row of exactly this place and label, locked for this write; whatever its kind and status."""
    store.lock(tx, place, label)
    return store.exact(tx, place, label)


def sections(
    tx: Transaction, namespace: str, agent: str | None, reader: Reader, labels: Sequence[str] | None, now_us: int
) -> list[Item]:
    """The sections that may be rendered for `reader`, in order of label, agent and user.

    Args:
        tx: a transaction.
        namespace: the one that is read.
        agent: this agent's alone; None for every agent's.
        reader: how far the read reaches across users.
        labels: these alone; None for all.
        now_us: what is expired by then is left out.

    Returns:
        at most one more than `SECTIONS_MAX`, so that a caller sees that there are more.
    """
    rows = tx.rows(
        SECTIONS,
        namespace=namespace,
        now=now_us,
        any_agent=int(agent is None),
        agent=agent or "",
        any_label=int(labels is None),
        labels=list(labels or ()),
        most=SECTIONS_MAX + 1,
        **reach_params(reader),
    )
    # Engines order text by rules of their own; the order of code points is the same everywhere.
    return sorted(map(store.item_of, rows), key=place_in_order)


def visible_ids(tx: Transaction, namespace: str, reader: Reader, now_us: int) -> list[int]:
    """The sections that a reader of one user or session may see."""
    rows = tx.rows(VISIBLE_IDS, namespace=namespace, now=now_us, most=VISIBLE_MAX, **reach_params(reader))
    return [cast("int", row["item_id"]) for row in rows]


def place_in_order(section: Item) -> tuple[str, str, str]:
    """Label, agent, user: the order of an unlabelled render."""
    return section.memory_key, section.place.agent, section.place.user_id


def is_served(section: Item, now_us: int) -> bool:
    """Whether a read may show the section at all, its reader aside."""
    return section.is_section and section.is_live(now_us) and section.head.attributes.sensitivity != HIGH
