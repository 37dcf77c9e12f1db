"""Counts that all servers of one database add to."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from loom.storage.interface import Counted, Transaction

# What a crash loses is counted anew; waiting for the disk would cost more than the count is worth.
_HASTE = "SET LOCAL synchronous_commit TO off"
_TAKE_BACK = """
UPDATE shared_count SET counted = counted - :unused WHERE org = :org AND name = :name AND period = :period
"""
_HOLD = """
INSERT INTO shared_count (org, name, period, counted) VALUES (:org, :name, :period, 0)
ON CONFLICT (org, name, period) DO UPDATE SET counted = shared_count.counted RETURNING counted
"""
_PAST = "SELECT counted FROM shared_count WHERE org = :org AND name = :name AND period = :period"
_ADD = """
UPDATE shared_count SET counted = counted + :added WHERE org = :org AND name = :name AND period = :period
"""
_FORGET = "DELETE FROM shared_count WHERE org = :org AND name = :name AND period < :period"


class PostgresCounts:
    """Implements `storage.interface.SharedCounts`.

    Args:
        begin: begins a write transaction on the system's rows.
    """

    def __init__(self, begin: Callable[[], AbstractContextManager[Transaction]]) -> None:
        self._begin = begin

    def add(self, name: str, period: int, amount: Callable[[int, int], int], unused: tuple[int, int]) -> Counted:
        """Add to a count what `amount` makes of the past and the present count."""
        then, left = unused
        with self._begin() as tx:
            tx.send(_HASTE)
            # Two servers ask for the same rows, so one lock comes before them all.
            tx.lock("shared_count", name)
            if left:
                tx.send(_TAKE_BACK, name=name, period=then, unused=left)
            held = tx.row(_HOLD, name=name, period=period)
            before = tx.row(_PAST, name=name, period=period - 1)
            past, present = (int(str(row["counted"])) if row else 0 for row in (before, held))
            added = amount(past, present)
            tx.send(_ADD, name=name, period=period, added=added)
            tx.send(_FORGET, name=name, period=period - 1)
        return Counted(past, present, added)
