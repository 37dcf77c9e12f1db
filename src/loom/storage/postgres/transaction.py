"""A transaction on one org's rows, as the rest of Loom sees it."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from loom.storage.interface import VALUES, Crowded, Param, Row, Value, only
from loom.storage.postgres.connection import Session
from loom.storage.postgres.dialect import CLAIMED, translated
from loom.storage.postgres.stamps import Stamps
from loom.storage.postgres.text_index import PostgresTextIndex
from loom.storage.postgres.vector_index import PostgresVectorIndex

_LOCK = "SELECT pg_advisory_xact_lock(%(number)s)"
_LOCK_AT_ONCE = "SELECT pg_try_advisory_xact_lock(%(number)s)"
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
        return self._session.rows(*self._whole(sql, params))

    def row(self, sql: str, /, **params: Param) -> Row | None:
        """The one row of a query, or None."""
        return only(self.rows(sql, **params))

    def run(self, sql: str, /, **params: Param) -> int:
        """Run a statement; the number of rows it changed."""
        return self._session.run(*self._whole(sql, params))

    def send(self, sql: str, /, **params: Param) -> None:
        """Run a statement together with the next one that has an answer."""
        self._session.send(*self._whole(sql, params))

    def send_last(self, sql: str, /, **params: Param) -> None:
        """Run a statement together with the next one that has an answer, or with the commit that is shared."""
        self._session.send_last(*self._whole(sql, params))

    def run_many(self, sql: str, params: Iterable[Mapping[str, Value]], /) -> None:
        """Run one statement for each set of parameters."""
        self._session.run_many(translated(sql), (self._bound(one) for one in params))

    def claim(self, sql: str, /, **params: Param) -> Sequence[Row]:
        """The rows of a query on one table that no other transaction holds; they are held until this one ends."""
        self._session.need_write("a claim")
        told, bound = self._whole(sql, params)
        return self._session.rows(told + CLAIMED, bound)

    def lock(self, *key: str) -> None:
        """Until this transaction ends, no other transaction gets past the same `key`.

        Two keys whose hashes meet (one in 2^64) wait for each other, which is harmless.
        """
        self._session.send(_LOCK, self._held(key))

    def lock_own(self, *key: str) -> None:
        """Like `lock`; Crowded where that would wait and others have written in this transaction."""
        if self._session.joined:
            self._session.insist(_LOCK_AT_ONCE, self._held(key), Crowded("another transaction holds it"))
        else:
            self.lock(*key)

    def share(self, *key: str) -> None:
        """Until this transaction ends, no other transaction locks the same `key`; others may share it as well."""
        self._session.send(_SHARE, self._held(key))

    def _held(self, key: tuple[str, ...]) -> Mapping[str, int]:
        """What a lock's statement takes."""
        self._session.need_write(f"a lock of {len(key)} words")
        digest = hashlib.blake2b(json.dumps([self.org, *key]).encode(), digest_size=8).digest()
        # A stamp from before this lock may be below one that its last holder used.
        self._coming = None
        return {"number": int.from_bytes(digest, "big", signed=True)}

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

    def _whole(self, sql: str, params: Mapping[str, Param]) -> tuple[str, Mapping[str, Param]]:
        """The statement and its values as psycopg takes them: only a list is an array to it, a tuple is a row."""
        bound, lists = dict(self._bound(params)), list[str]()
        for name, value in params.items():
            if not isinstance(value, VALUES):
                bound[name] = cast("Param", list(value))
                lists.append(name)
        return translated(sql, tuple(lists)), bound

    def _bound(self, params: Mapping[str, Param]) -> Mapping[str, Param]:
        if params.get("org", self.org) != self.org:
            raise ValueError("the transaction binds :org itself")
        return {**params, "org": self.org}
