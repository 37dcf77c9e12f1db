"""Which memories are turns of one talk: who speaks in them, and which stand beside each other.

A dialogue that is stored a turn a memory keeps its order: what was written next has the next
version. Two memories that were written next to each other are neighbours when both are told as a talk
is, episodes or texts that begin with who speaks, in one session. Notes and facts that happen
to be written one after the other are none.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final, cast

from loom.planes.memory import select
from loom.planes.memory.select import Filter, Seen
from loom.retrieval.lending import Beside
from loom.retrieval.speakers import ROLES
from loom.storage.interface import Row, Transaction

EPISODE: Final = "episodic"
NO_SESSION: Final = "-"
APART_US_MAX: Final = 86_400_000_000
"""Turns whose claims hold from moments further apart than a day are of two talks."""

MACHINES: Final = ROLES - {"user", "human"}

_SPEAKER: Final = re.compile(r'"([^\W\d_][\w.-]*(?: [^\W\d_][\w.-]*){0,2}): ')
"""How a turn's value begins, as JSON: a role as chats name them, or a name of up to three words."""

BESIDE = """
SELECT i.item_id,
    (SELECT n.item_id FROM ledger_item n WHERE n.org = i.org AND n.namespace = i.namespace
        AND n.version < i.version ORDER BY n.version DESC LIMIT 1) AS before_1,
    (SELECT n.item_id FROM ledger_item n WHERE n.org = i.org AND n.namespace = i.namespace
        AND n.version < i.version ORDER BY n.version DESC LIMIT 1 OFFSET 1) AS before_2,
    (SELECT n.item_id FROM ledger_item n WHERE n.org = i.org AND n.namespace = i.namespace
        AND n.version > i.version ORDER BY n.version LIMIT 1) AS after_1,
    (SELECT n.item_id FROM ledger_item n WHERE n.org = i.org AND n.namespace = i.namespace
        AND n.version > i.version ORDER BY n.version LIMIT 1 OFFSET 1) AS after_2
FROM ledger_item i WHERE i.org = :org AND i.item_id IN (:ids)
"""


def beside(
    tx: Transaction, where: Filter, items: Mapping[int, Seen], ids: Collection[int]
) -> tuple[Mapping[int, Seen], list[Beside]]:
    """The neighbours, among what the filter lets through, of those of `items` that `ids` names.

    Returns:
        the neighbours that `items` lacks; and the pairs.
    """
    turns = sorted(item_id for item_id in ids if is_turn(items[item_id]))
    rows = tx.rows(BESIDE, ids=turns) if turns else ()
    pairs = [pair for row in rows for pair in _pairs(row)]
    others = {other for _, other, _ in pairs if other not in items}
    seen = select.seen(tx, where, sorted(others))
    known = {**items, **seen}
    linked = [pair for pair in pairs if pair[1] in known and _of_one_talk(known[pair[0]], known[pair[1]])]
    return {other: seen[other] for _, other, _ in linked if other in seen}, linked


def is_turn(seen: Seen) -> bool:
    """Whether a memory is told as a turn of a talk."""
    return seen.memory_type == EPISODE or speaker_of(seen) != ""


def in_a_talk(seen: Seen) -> bool:
    """Whether a memory says that it is of a talk; in a note, what stands before a colon is rather a label."""
    return seen.memory_type == EPISODE or seen.session_id != NO_SESSION


def is_said_by_machine(seen: Seen) -> bool:
    """Whether a memory is a turn that an assistant or a tool has."""
    return speaker_of(seen) in MACHINES


def speaker_of(seen: Seen) -> str:
    """Who speaks in a memory: a role, or a name whose words begin with capitals; empty for nobody."""
    match = _SPEAKER.match(seen.head)
    if match is None:
        return ""
    name = match[1]
    if name.casefold() in ROLES:
        return name.casefold()
    return name if all(word[0].isupper() for word in name.split(" ")) else ""


def _pairs(row: Row) -> list[Beside]:
    one = cast("int", row["item_id"])
    found = [
        (cast("int | None", row[f"{side}_{distance}"]), distance) for side in ("before", "after") for distance in (1, 2)
    ]
    return [(one, other, distance) for other, distance in found if other is not None]


def _of_one_talk(first: Seen, second: Seen) -> bool:
    if not (is_turn(first) and is_turn(second)):
        return False
    if (first.user_id, first.session_id) != (second.user_id, second.session_id):
        return False
    if first.session_id == NO_SESSION and first.agent != second.agent:  # two that talk share a session
        return False
    if first.valid_at is None or second.valid_at is None:
        return first.valid_at is second.valid_at
    return abs(first.valid_at - second.valid_at) <= APART_US_MAX
