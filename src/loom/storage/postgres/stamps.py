"""Strictly rising numbers for versions and item ids, over every server of one database."""

import threading
from collections.abc import Callable

from loom.storage.postgres.connection import Session

STAMP_MIN = 2**53 + 1
"""Below this a JSON reader that holds numbers as floats would seem to work."""

_NEXT = "SELECT store_next_stamp(%(org)s, CAST(%(least)s AS BIGINT), CAST(%(after)s AS BIGINT))"

_OUTSTRIP = """
INSERT INTO store_stamp (org, last) VALUES (%(org)s, %(number)s)
ON CONFLICT (org) DO UPDATE SET last = greatest(store_stamp.last, excluded.last)
"""


class Stamps:
    """Asks the database for numbers; schema/0001_engine.sql says why they never repeat."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self.clock_ns = clock_ns
        self._mutex = threading.Lock()
        self._ahead: dict[str, int] = {}

    def next(self, session: Session, org: str) -> int:
        """A number above every one given before."""
        session.need_write("a stamp")
        return self._given(org, int(session.cells(_NEXT, self._asked(org))[0][0]))

    def soon(self, session: Session, org: str, take: Callable[[int], object]) -> None:
        """The same together with the session's next statement that has an answer; `take` is given the number."""
        session.need_write("a stamp")
        session.ask(_NEXT, self._asked(org), lambda row: take(self._given(org, int(row[0]))))

    def _asked(self, org: str) -> dict[str, str | int]:
        with self._mutex:
            after = self._ahead.get(org, 0)
        return {"org": org, "least": max(self.clock_ns(), STAMP_MIN), "after": after}

    def _given(self, org: str, given: int) -> int:
        if org in self._ahead:
            # An undone transaction takes the org's own row back, but not what it was given from it.
            with self._mutex:
                self._ahead[org] = max(self._ahead[org], given)
        return given

    def outstrip(self, session: Session, org: str, number: int) -> None:
        """Let every later stamp be above `number`."""
        session.need_write("a stamp")
        session.send(_OUTSTRIP, {"org": org, "number": number})
        with self._mutex:
            self._ahead.setdefault(org, 0)
