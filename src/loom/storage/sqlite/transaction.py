"""A transaction on one org's file, as the rest of Loom sees it."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from loom.storage.interface import VALUES, Param, Row, Value, only
from loom.storage.sqlite.connection import Session
from loom.storage.sqlite.stamps import Stamps
from loom.storage.sqlite.text_index import SqliteTextIndex
from loom.storage.sqlite.vector_index import SqliteVectorIndex

STATEMENTS_KEPT_MAX = 1000


class SqliteTransaction:
    """Implements `storage.interface.Transaction`."""

    def __init__(
        self, org: str, session: Session, text: SqliteTextIndex, vectors: SqliteVectorIndex, stamps: Stamps
    ) -> None:
        self.org: Final = org
        self._session = session
        self.text: Final = text
        self.vectors: Final = vectors
        self._stamps = stamps

    def rows(self, sql: str, /, **params: Param) -> Sequence[Row]:
        """Every row of a query."""
        return self._session.rows(*self._whole(sql, params))

    def row(self, sql: str, /, **params: Param) -> Row | None:
        """The one row of a query, or None."""
        return only(self.rows(sql, **params))

    def run(self, sql: str, /, **params: Param) -> int:
        """Run a statement; the number of rows it changed."""
        return self._session.run(*self._whole(sql, params))

    def send(self, sql: str, /, **params: Param) -> None:
        """Run a statement, at once: the file is near."""
        self.run(sql, **params)

    def send_last(self, sql: str, /, **params: Param) -> None:
        """Run a statement, at once: a write transaction owns the org's file, and holds up nobody by a row."""
        self.run(sql, **params)

    def run_many(self, sql: str, params: Iterable[Mapping[str, Value]], /) -> None:
        """Run one statement for each set of parameters."""
        self._session.run_many(sql, (self._bound(one) for one in params))

    def claim(self, sql: str, /, **params: Param) -> Sequence[Row]:
        """The rows of a query: nobody else can hold any, for a write transaction owns the org's file."""
        self._session.need_write("a claim")
        return self.rows(sql, **params)

    def lock(self, *key: str) -> None:
        """Nothing is left to lock: a write transaction owns the org's file."""
        self._session.need_write(f"a lock of {len(key)} words")

    def lock_own(self, *key: str) -> None:
        """Nothing is left to lock: a write transaction owns the org's file."""
        self._session.need_write(f"a lock of {len(key)} words")

    def share(self, *key: str) -> None:
        """Nothing is left to share: a write transaction owns the org's file."""
        self._session.need_write(f"a lock of {len(key)} words")

    def stamp_soon(self) -> None:
        """Nothing is far: a stamp is made when it is asked for."""
        self._session.need_write("a stamp")

    def stamp(self) -> int:
        """A number above every stamp given before, about the clock in nanoseconds."""
        return self._stamps.next(self._session, self.org)

    def outstrip(self, number: int) -> None:
        """Let no later stamp be at or below `number`."""
        self._stamps.outstrip(self._session, self.org, number)

    def clock_ns(self) -> int:
        """Now, in nanoseconds."""
        return self._stamps.clock_ns()

    def _whole(self, sql: str, params: Mapping[str, Param]) -> tuple[str, Mapping[str, Value]]:
        """The statement and its values as SQLite takes them: a list is one JSON text."""
        single: dict[str, Value] = {}
        lists: list[str] = []
        for name, value in params.items():
            if isinstance(value, VALUES):
                single[name] = value
            else:
                single[name] = json.dumps(list(value))
                lists.append(name)
        return (with_lists(sql, tuple(lists)) if lists else sql), self._bound(single)

    def _bound(self, params: Mapping[str, Value]) -> Mapping[str, Value]:
        if params.get("org", self.org) != self.org:
            raise ValueError("the transaction binds :org itself")
        return {**params, "org": self.org}


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def with_lists(sql: str, names: tuple[str, ...]) -> str:
    """The statement with each list parameter's `IN (:name)` read out of one JSON text.

    Raises:
        ValueError: a list parameter stands elsewhere than in `IN (:name)`.
    """
    for name in names:
        sql, found = re.subn(rf"IN \(:{name}\)", f"IN (SELECT value FROM json_each(:{name}))", sql)  # noqa: S608  # a name, no value
        if not found:
            raise ValueError(f"the list :{name} must stand in IN (:{name})")
    return sql
