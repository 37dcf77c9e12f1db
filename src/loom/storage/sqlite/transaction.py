"""A transaction on one org's file, as the rest of Loom sees it."""

from collections.abc import Iterable, Mapping, Sequence

from loom.storage.interface import Row, Value
from loom.storage.sqlite.connection import Session
from loom.storage.sqlite.stamps import Stamps
from loom.storage.sqlite.text_index import SqliteTextIndex
from loom.storage.sqlite.vector_index import SqliteVectorIndex


class SqliteTransaction:
    """Implements `storage.interface.Transaction`."""

    def __init__(
        self, org: str, session: Session, text: SqliteTextIndex, vectors: SqliteVectorIndex, stamps: Stamps
    ) -> None:
        self._org = org
        self._session = session
        self._text = text
        self._vectors = vectors
        self._stamps = stamps

    @property
    def org(self) -> str:
        """The org whose rows this transaction may touch."""
        return self._org

    @property
    def text(self) -> SqliteTextIndex:
        """The word index."""
        return self._text

    @property
    def vectors(self) -> SqliteVectorIndex:
        """The vector index."""
        return self._vectors

    def rows(self, sql: str, /, **params: Value) -> Sequence[Row]:
        """Every row of a query."""
        return self._session.rows(sql, self._bound(params))

    def row(self, sql: str, /, **params: Value) -> Row | None:
        """The one row of a query, or None."""
        found = self._session.rows(sql, self._bound(params))
        if len(found) > 1:
            raise AssertionError(f"one row was expected, {len(found)} were found")
        return found[0] if found else None

    def run(self, sql: str, /, **params: Value) -> int:
        """Run a statement; the number of rows it changed."""
        return self._session.run(sql, self._bound(params))

    def run_many(self, sql: str, params: Iterable[Mapping[str, Value]], /) -> None:
        """Run one statement for each set of parameters."""
        self._session.run_many(sql, (self._bound(one) for one in params))

    def lock(self, *key: str) -> None:
        """Nothing is left to lock: a write transaction owns the org's file."""
        self._session.need_write(f"the lock {key}")

    def stamp(self) -> int:
        """A number above every stamp given before, about the clock in nanoseconds."""
        return self._stamps.next(self._session, self._org)

    def _bound(self, params: Mapping[str, Value]) -> Mapping[str, Value]:
        if params.get("org", self._org) != self._org:
            raise ValueError("the transaction binds :org itself")
        return {**params, "org": self._org}
