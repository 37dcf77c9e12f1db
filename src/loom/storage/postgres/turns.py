"""Writers of one process that want the same thing share one transaction and its commit.

Each would otherwise wait for the same lock with a connection of its own, and the lock would pass from one
connection to the next with a commit between any two. Here they stand in line without one. The first begins a
transaction. When its work is done and others wait, its statements are run, a savepoint is set, and the
connection goes to the next in line; the last one commits for all, and only then has anybody succeeded.

What holds of every member, as if it had been alone:

- What it wrote is kept if and only if the shared COMMIT succeeded; until then it is told nothing.
- What fails before that COMMIT is sent is its own: it is undone to the savepoint before it, and the others go on.
- An error it raises may rest on rows of members before it, which are not committed yet. So that, too, is told only
  once they are. If they are not kept, it is told so instead.
- Whoever holds the line passes it on, whatever happens, after a COMMIT or ROLLBACK where there was one.

The line decides nothing about who may write: other processes are kept out by the locks that members take, as
ever. A member that locks something else than its turn says is safe, and merely slow; but what another process may
hold while it waits for what the members hold is to be had at once or not at all (`lock_own`). Who does not get it
leaves, and waits as a write of its own.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager

import psycopg
from psycopg.pq import TransactionStatus

from loom.storage.interface import Raced, StoreError
from loom.storage.postgres.connection import BUSY, LOST, LOST_AT_COMMIT, Connection, Session, store_error, undo
from loom.storage.postgres.settings import PostgresSettings

Key = tuple[str, ...]
Last = tuple[str, Mapping[str, object]]
"""A statement and its parameters."""

TOO_MANY = "Too many calls wait for the database. Nothing was kept; try again."
LATE = "The database did not commit in time. Nothing was kept; try again."

_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)

# Savepoints of one name hide each other, so that the way back always leads to the last one set.
_MARK = "SAVEPOINT turn"
_BACK = "ROLLBACK TO SAVEPOINT turn; SELECT pg_advisory_unlock_all()"


class _Turn:
    """One who holds the line, or waits for it until `ready`."""

    __slots__ = ("ready",)

    def __init__(self) -> None:
        self.ready = threading.Event()


class _Group:
    """A transaction and those who share it.

    Attributes:
        connection: it is open on; whoever holds the line is alone on it.
        kept: members whose work is in the transaction.
        last: statements of theirs that go with the commit.
        settled: the same, the latest about each thing.
        waits_since_s: when the first of them began to wait for the commit.
        committing: whether a COMMIT may have been sent. Under the mutex.
        failure: why nothing is kept, or may not be. Under the mutex until `done`.
        over: whether the transaction has ended.
        done: set when it has, and `failure` is final.
    """

    __slots__ = ("committing", "connection", "done", "failure", "kept", "last", "over", "settled", "waits_since_s")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.kept = 0
        self.last: list[Last] = []
        self.settled: dict[Hashable, Sequence[Last]] = {}
        self.waits_since_s = 0.0
        self.committing = False
        self.failure: StoreError | Raced | None = None
        self.over = False
        self.done = threading.Event()

    def is_open(self) -> bool:
        """Whether the server has said last that the transaction goes on: it was not committed, and may be undone."""
        return self.connection.info.transaction_status in _OPEN


class _Member(Session):
    """A session of one member, or of nobody, to commit what the others did."""

    def __init__(self, group: _Group) -> None:
        super().__init__(group.connection, write=True)
        self.joined = group.kept > 0
        self._group = group
        self._last: list[Last] = []
        self._settled: dict[Hashable, Sequence[Last]] = {}

    def send_last(self, sql: str, params: Mapping[str, object]) -> None:
        """Run a statement together with the shared commit, should the member's work be kept."""
        self.need_write("a change")
        self._last.append((sql, params))

    def send_settled(self, about: Hashable, statements: Sequence[Last]) -> None:
        """Run statements together with the shared commit, should the member's work be kept and none settle it later."""
        self.need_write("a change")
        self._settled[about] = statements

    def leave(self, mark: str) -> None:
        """Run what waits and set the mark; the member's work is kept."""
        super().leave(mark)
        self._group.last.extend(self._last)
        self._group.settled |= self._settled
        self._group.kept += 1

    def commit(self) -> None:
        """Run what waits, here and with those before, and commit."""
        settled = self._group.settled | self._settled
        for sql, params in (*self._group.last, *self._last, *(one for each in settled.values() for one in each)):
            self.send(sql, params)
        super().commit()


class _Line:
    """Those of one key. It is there for as long as somebody holds it.

    Attributes:
        key: the org and what it is for.
        holder: whose turn it is. Under the mutex.
        waiting: the others. Under the mutex.
        group: the open transaction, if there is one; the holder's alone.
    """

    __slots__ = ("group", "holder", "key", "waiting")

    def __init__(self, key: Key, holder: _Turn) -> None:
        self.key = key
        self.holder = holder
        self.waiting: deque[_Turn] = deque()
        self.group: _Group | None = None


class Turns:
    """The lines of one database. Safe for threads.

    Args:
        begin: gives a connection with a write transaction begun on the org.
        give_back: takes the connection, its transaction ended.
        settings: the bounds.
    """

    def __init__(
        self, begin: Callable[[str], Connection], give_back: Callable[[Connection], None], settings: PostgresSettings
    ) -> None:
        self._begin = begin
        self._give_back = give_back
        self._settings = settings
        self._mutex = threading.Lock()
        self._lines: dict[Key, _Line] = {}

    @contextmanager
    def taken(self, org: str, turn: Key) -> Generator[Session, None, None]:
        """A session for one member's work, which is kept and durable once the block has ended.

        Raises:
            StoreError: no turn or no connection in time, or the shared commit failed.
            Raced: another transaction won.
        """
        own = _Turn()
        line = self._held((org, *turn), own)
        group, session = self._joined(line, org)
        try:
            yield session
            self._end(line, group, session)
        except BaseException as error:
            rests_on_others = group.kept > 0
            session.end()
            if not group.over and self._holds(line, own):
                self._undo(line, group)
            if rests_on_others and isinstance(error, Exception):
                self._await(group)
            raise
        self._await(group)

    def waiting_count(self, org: str, turn: Key) -> int:
        """Those who wait for a turn now."""
        with self._mutex:
            line = self._lines.get((org, *turn))
            return 0 if line is None else len(line.waiting)

    def _held(self, key: Key, own: _Turn) -> _Line:
        """The line, held by the caller alone."""
        with self._mutex:
            line = self._lines.get(key)
            if line is None:
                line = self._lines[key] = _Line(key, own)
                return line
            if len(line.waiting) >= self._settings.waiting_max:
                raise StoreError(TOO_MANY)
            line.waiting.append(own)
        try:
            own.ready.wait(self._settings.turn_wait_s)
        except BaseException:
            if not self._withdrawn(line, own):
                self._go_on(line)
            raise
        if self._withdrawn(line, own):
            raise StoreError(BUSY)
        return line

    def _holds(self, line: _Line, own: _Turn) -> bool:
        with self._mutex:
            return line.holder is own

    def _withdrawn(self, line: _Line, own: _Turn) -> bool:
        """Whether the turn had not come, and now never will."""
        with self._mutex:
            if line.holder is own:
                return False
            line.waiting.remove(own)
            return True

    def _joined(self, line: _Line, org: str) -> tuple[_Group, _Member]:
        """The open transaction, or a new one."""
        group = line.group
        if group is None:
            try:
                group = line.group = _Group(self._begin(org))
            except BaseException:
                self._pass_on(line)
                raise
        return group, _Member(group)

    def _end(self, line: _Line, group: _Group, session: _Member) -> None:
        """The member's work is done: hand on, or commit.

        An error that leaves the group open is the member's own.
        """
        if not self._takes_more(line, group):
            self._commit(line, group, session)
            return
        session.leave(_MARK)
        if group.kept == 1:
            group.waits_since_s = time.monotonic()
        self._go_on(line)

    def _undo(self, line: _Line, group: _Group) -> None:
        """Take back what the holder did, and nothing else."""
        if group.kept == 0:
            self._close(line, group, None)
            return
        try:
            group.connection.execute(_BACK, prepare=False)
        except psycopg.Error as error:
            self._close(line, group, store_error(error))
        except BaseException:
            self._close(line, group, StoreError(LOST))
            raise
        else:
            self._go_on(line)

    def _go_on(self, line: _Line) -> None:
        """Pass the line on, with the transaction if there is one and it takes more members; else commit it first."""
        group = line.group
        if group is None:
            self._pass_on(line)
            return
        if self._takes_more(line, group, grant=True):
            return
        try:
            self._commit(line, group, _Member(group))
        except BaseException as error:
            self._close(line, group, _told(error))
            raise

    def _takes_more(self, line: _Line, group: _Group, *, grant: bool = False) -> bool:
        """Whether the transaction may go to the next in line; with `grant` it does."""
        age_s = time.monotonic() - group.waits_since_s if group.kept else 0.0
        with self._mutex:
            room = group.kept + (0 if grant else 1) < self._settings.together_max
            more = bool(line.waiting) and group.failure is None and room and age_s < self._settings.together_s
            if more and grant:
                self._grant(line)
            return more

    def _commit(self, line: _Line, group: _Group, session: _Member) -> None:
        """Run what the session has left and commit, then pass the line on; all members are told.

        Raises:
            BaseException: and the group is open: nothing was committed, and it is the session's own error.
        """
        with self._mutex:
            group.committing = group.failure is None
        if not group.committing:
            self._close(line, group, None)
            return
        try:
            session.commit()
        except BaseException as error:
            if group.is_open():
                with self._mutex:
                    group.committing = False
            else:
                self._close(line, group, _told(error))
            raise
        self._close(line, group, None)

    def _close(self, line: _Line, group: _Group, failure: StoreError | Raced | None) -> None:
        """End the group: undo what is still open, tell everybody, pass the line on. Once."""
        if group.over:
            return
        group.over = True
        with self._mutex:
            group.failure = group.failure or failure
        try:
            try:
                if group.connection.info.transaction_status != TransactionStatus.IDLE:
                    undo(group.connection)
            finally:
                self._give_back(group.connection)
        finally:
            line.group = None
            group.done.set()
            self._pass_on(line)

    def _pass_on(self, line: _Line) -> None:
        """Give the line to the next one, who begins a transaction, or take it away."""
        with self._mutex:
            if line.waiting:
                self._grant(line)
            else:
                del self._lines[line.key]

    def _grant(self, line: _Line) -> None:
        line.holder = line.waiting.popleft()
        line.holder.ready.set()

    def _await(self, group: _Group) -> None:
        """Wait for the end of the group.

        Raises:
            StoreError: nothing was kept, or, where it says so, that is not known.
            Raced: another transaction won.
        """
        if not group.done.wait(self._settings.commit_wait_s):
            with self._mutex:
                if group.committing:
                    raise StoreError(LOST_AT_COMMIT)
                # From here on nobody sends a COMMIT any more.
                group.failure = group.failure or StoreError(LATE)
        if group.failure is not None:
            raise type(group.failure)(str(group.failure)) from group.failure


def _told(error: BaseException) -> StoreError | Raced:
    """What members are told of a commit that failed."""
    return error if isinstance(error, StoreError | Raced) else StoreError(LOST_AT_COMMIT)
