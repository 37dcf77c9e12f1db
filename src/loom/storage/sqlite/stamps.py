"""Strictly rising numbers for versions and item ids."""

import threading
from collections.abc import Callable

from loom.storage.sqlite.connection import Session

STAMP_MIN = 2**53 + 1
"""Below this a JSON reader that holds numbers as floats would seem to work."""

_NEXT = """
INSERT INTO store_stamp (org, last) VALUES (:org, :least)
ON CONFLICT (org) DO UPDATE SET last = max(last + 1, excluded.last)
RETURNING last
"""

_OUTSTRIP = """
INSERT INTO store_stamp (org, last) VALUES (:org, :number)
ON CONFLICT (org) DO UPDATE SET last = max(last, excluded.last)
"""


class Stamps:
    """Gives the stamps of one file; the file is the truth, over all processes."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self.clock_ns = clock_ns
        self._mutex = threading.Lock()
        self._given = 0

    def next(self, session: Session, org: str) -> int:
        """A number above every one given before, those of undone transactions of this process included."""
        session.need_write("a stamp")
        with self._mutex:
            least = max(self.clock_ns(), self._given + 1, STAMP_MIN)
            (last,) = session.cells(_NEXT, {"org": org, "least": least})[0]
            self._given = int(last)
            return self._given

    def outstrip(self, session: Session, org: str, number: int) -> None:
        """Let every later stamp be above `number`."""
        session.need_write("a stamp")
        session.run(_OUTSTRIP, {"org": org, "number": number})
