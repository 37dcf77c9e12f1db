"""How much work waits, for whoever watches the server: looked up now and then, however often it is asked."""

import threading
import time
from collections.abc import Callable
from typing import cast

from loom.storage.interface import Database, Raced, StoreError

REFRESH_S = 15.0
"""How old the numbers may be."""

ORGS_MAX = 64
"""Orgs looked at by one refresh; the next one goes on with the others, whose numbers stay as they were."""

COUNTED_MAX = 10_000
"""Jobs of one org that are looked at; of more, this many are told."""

WAITING = """
SELECT count(*) AS waiting, min(generation) AS oldest FROM (
    SELECT generation FROM job WHERE org = :org ORDER BY run_at LIMIT :most
) AS looked_at
"""


class Backlog:
    """The jobs of every org that are not done. Safe for threads.

    Args:
        database: the store.
        clock_us: now, in microseconds UTC.
        clock_s: seconds that never go back.
    """

    def __init__(
        self, database: Database, clock_us: Callable[[], int], clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._clock_us = clock_us
        self._clock_s = clock_s
        self._refreshing = threading.Lock()
        self._due_s = clock_s()
        self._orgs_left: list[str] = []
        self._known: dict[str, tuple[int, int]] = {}

    def waiting(self) -> float:
        """How many jobs wait or are being done."""
        return float(sum(count for count, _ in self._current().values()))

    def oldest_s(self) -> float:
        """How many seconds ago the oldest of them was asked for; 0 when there is none."""
        asked_ns = [oldest for count, oldest in self._current().values() if count]
        return max(0.0, self._clock_us() / 1e6 - min(asked_ns) / 1e9) if asked_ns else 0.0

    def _current(self) -> dict[str, tuple[int, int]]:
        """The numbers by org, refreshed when they are due; those from before where the store cannot say."""
        if self._clock_s() >= self._due_s and self._refreshing.acquire(blocking=False):
            try:
                self._due_s = self._clock_s() + REFRESH_S
                self._refresh()
            except (StoreError, Raced):
                pass
            finally:
                self._refreshing.release()
        return self._known

    def _refresh(self) -> None:
        if not self._orgs_left:
            every = list(self._database.orgs())
            self._known = {org: self._known[org] for org in every if org in self._known}
            self._orgs_left = every
        now, self._orgs_left = self._orgs_left[:ORGS_MAX], self._orgs_left[ORGS_MAX:]
        for org in now:
            with self._database.transaction(org, write=False, may_lag=True) as tx:
                row = tx.row(WAITING, most=COUNTED_MAX)
            if row is not None:
                self._known = {
                    **self._known,
                    org: (cast("int", row["waiting"]), cast("int | None", row["oldest"]) or 0),
                }
