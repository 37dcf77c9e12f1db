"""A transaction on one org's rows, as the rest of Loom sees it."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from loom.storage.interface import Param, Row, Value, only
from loom.storage.postgres.connection import Session
from loom.storage.postgres.dialect import CLAIMED, translated
from loom.storage.postgres.stamps import Stamps
from loom.storage.postgres.text_index import PostgresTextIndex
from loom.storage.postgres.vector_index import PostgresVectorIndex

_LOCK = "SELECT pg_advisory_xact_lock(%(number)s)"
# An error where another transaction holds it, so that its answer takes no way of its own to the server.
_LOCK_AT_ONCE = "SELECT 1 / CAST(pg_try_advisory_xact_lock(%(number)s) AS INTEGER)"
_SHARE = "SELECT pg_advisory_xact_lock_shared(%(number)s)"


class PostgresTransaction:
    """Implements `storage.interface.Transaction`."""

    def __init__(
        self, org: str, session: Session, text: PostgresTextIndex, vectors: PostgresVectorIndex, stamps: Stamps
    ) -> None:
        self.org: Final = org
        self._session = session
        self.text: Final = text
        self.vectors: Final = vectors
        self._stamps = stamps
        self._coming: list[int] | None = None

    def rows(self, sql: str, /, **params: Param) -> Sequence[Row]:
        """Every row of a query."""
        return self._session.rows(self._told(sql, params), self._bound(params))

    def row(self, sql: str, /, **params: Param) -> Row | None:
        """The one row of a query, or None."""
        return only(self.rows(sql, **params))

    def run(self, sql: str, /, **params: Param) -> int:
        """Run a statement; the number of rows it changed."""
        return self._session.run(self._told(sql, params), self._bound(params))

    def send(self, sql: str, /, **params: Param) -> None:
        """Run a statement together with the next one that has an answer."""
        self._session.send(self._told(sql, params), self._bound(params))

    def send_last(self, sql: str, /, **params: Param) -> None:
        """Run a statement together with the next one that has an answer, or with the commit that is shared."""
        self._session.send_last(self._told(sql, params), self._bound(params))

    def run_many(self, sql: str, params: Iterable[Mapping[str, Value]], /) -> None:
        """Run one statement for each set of parameters."""
        self._session.run_many(translated(sql), (self._bound(one) for one in params))

    def claim(self, sql: str, /, **params: Param) -> Sequence[Row]:
        """The rows of a query on one table that no other transaction holds; they are held until this one ends."""
        self._session.need_write("a claim")
        return self._session.rows(self._told(sql, params) + CLAIMED, self._bound(params))

    def lock(self, *key: str) -> None:
        """Until this transaction ends, no other transaction gets past the same `key`.

        Two keys whose hashes meet (one in 2^64) wait for each other, which is harmless.
        """
        self._hold(_LOCK, key)

    def lock_own(self, *key: str) -> None:
        """Like `lock`; Crowded where that would wait and others have written in this transaction."""
        self._hold(_LOCK_AT_ONCE if self._session.joined else _LOCK, key)

    def share(self, *key: str) -> None:
        """Until this transaction ends, no other transaction locks the same `key`; others may share it as well."""
        self._hold(_SHARE, key)

    def _hold(self, statement: str, key: tuple[str, ...]) -> None:
        self._session.need_write(f"a lock of {len(key)} words")
        digest = hashlib.blake2b(json.dumps([self.org, *key]).encode(), digest_size=8).digest()
        self._session.send(statement, {"number": int.from_bytes(digest, "big", signed=True)})
        # A stamp from before this lock may be below one that its last holder used.
        self._coming = None

    def stamp_soon(self) -> None:
        """Ask for the next stamp together with the next statement that has an answer."""
        self._coming = coming = list[int]()
        self._stamps.soon(self._session, self.org, coming.append)

    def stamp(self) -> int:
        """A number above every stamp given before, about the clock in nanoseconds."""
        coming, self._coming = self._coming, None
        return coming[0] if coming else self._stamps.next(self._session, self.org)

    def outstrip(self, number: int) -> None:
        """Let no later stamp be at or below `number`."""
        self._stamps.outstrip(self._session, self.org, number)

    def clock_ns(self) -> int:
        """Now, in nanoseconds."""
        return self._stamps.clock_ns()

    def _told(self, sql: str, params: Mapping[str, Param]) -> str:
        return translated(sql, tuple(name for name, value in params.items() if isinstance(value, list | tuple)))

    def _bound(self, params: Mapping[str, Param]) -> Mapping[str, Param]:
        if params.get("org", self.org) != self.org:
            raise ValueError("the transaction binds :org itself")
        return {**params, "org": self.org}
