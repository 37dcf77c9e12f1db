"""One write connection, taken in turns by calls that share a commit.

A durable commit costs far more than the statements of a call. So calls that
wait at the same time run one after another inside one SQLite transaction, each
in its own savepoint, and the last one commits for all. A call that has done its
work waits until that commit is durable; only then has it succeeded.
"""

import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import apsw

from loom.storage.interface import StoreError
from loom.storage.sqlite.connection import FAILURES, execute, store_error

WAITING_MAX = 1000
"""Calls that may wait for a turn on one file."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long anything may wait here.

    Attributes:
        turn_max_s: a call, for its turn to write.
        commit_max_s: a call that did its work, for the shared commit.
        group_age_max_s: a transaction open for longer is committed although
            others wait, so that nobody's answer waits on a long queue.
    """

    turn_max_s: float = 30.0
    commit_max_s: float = 60.0
    group_age_max_s: float = 0.05


DEFAULT_WAITS = Waits()


class _Turn:
    """One waiting call."""

    __slots__ = ("granted", "ready")

    def __init__(self) -> None:
        self.granted = False
        self.ready = threading.Event()


class _Group:
    """The calls that share one transaction."""

    __slots__ = ("began", "begun", "committing", "done", "failure", "kept")

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.begun = 0
        self.kept = 0
        self.committing = False
        self.done = threading.Event()
        self.failure: StoreError | None = None


class Writer:
    """Hands one connection from call to call. Whoever has the turn is alone on it."""

    def __init__(
        self, connection: apsw.Connection, file_name: str, group_max: int, waits: Waits = DEFAULT_WAITS
    ) -> None:
        self._connection = connection
        self._file_name = file_name
        self._group_max = group_max
        self._waits = waits
        self._mutex = threading.Lock()
        self._taken = False
        self._waiting: deque[_Turn] = deque()
        self._group: _Group | None = None

    @contextmanager
    def call(self) -> Generator[apsw.Connection, None, None]:
        """The connection for one call's work; kept and durable once the block has ended.

        An error in the block undoes the block's work alone.

        Raises:
            StoreError: no turn in time, or the shared transaction failed; nothing was kept.
        """
        self._take_turn()
        group = self._join()
        try:
            yield self._connection
        except BaseException:
            self._undo(group)
            self._pass_turn()
            raise
        self._keep(group)
        self._pass_turn()
        self._await_commit(group)

    def waiting_count(self) -> int:
        """Calls that wait for a turn now."""
        with self._mutex:
            return len(self._waiting)

    def _take_turn(self) -> None:
        with self._mutex:
            if not self._taken:
                self._taken = True
                return
            if len(self._waiting) >= WAITING_MAX:
                raise StoreError("Too many calls wait to write to the store. Nothing was kept; try again.")
            turn = _Turn()
            self._waiting.append(turn)
        try:
            turn.ready.wait(self._waits.turn_max_s)
        except BaseException:
            if not self._withdraw(turn):
                self._pass_turn()
            raise
        if self._withdraw(turn):
            raise StoreError("The store is busy with other writes. Nothing was kept; try again.")

    def _withdraw(self, turn: _Turn) -> bool:
        """Whether the turn had not come and now never will."""
        with self._mutex:
            if not turn.granted:
                self._waiting.remove(turn)
            return not turn.granted

    def _join(self) -> _Group:
        """Open this call's savepoint, in the group's transaction or a new one."""
        group = self._group
        try:
            if group is None:
                execute(self._connection, "BEGIN IMMEDIATE")
                group = self._group = _Group()
            group.begun += 1
            execute(self._connection, "SAVEPOINT call")
        except BaseException as error:
            if group is not None:
                self._fail(group, error)
            self._pass_turn()
            if isinstance(error, FAILURES):
                raise store_error(error, self._file_name) from error
            raise
        return group

    def _keep(self, group: _Group) -> None:
        if not self._connection.in_transaction:
            self._fail(group, None)
            return
        try:
            execute(self._connection, "RELEASE call")
        except apsw.Error as error:
            self._fail(group, error)
        group.kept += 1

    def _undo(self, group: _Group) -> None:
        if not self._connection.in_transaction:
            # SQLite undid everything itself, the earlier calls of this group included.
            self._fail(group, None)
            return
        try:
            execute(self._connection, "ROLLBACK TO call")
            execute(self._connection, "RELEASE call")
        except apsw.Error as error:
            self._fail(group, error)

    def _fail(self, group: _Group, error: BaseException | None) -> None:
        if group.failure is None:
            if isinstance(error, FAILURES):
                group.failure = store_error(error, self._file_name)
            else:
                group.failure = StoreError(
                    f"The store file {self._file_name} could not take this write: the disk is full or failing."
                    " Nothing was kept; try again when there is space."
                )

    def _pass_turn(self) -> None:
        """Hand the open transaction on, or finish it and let the next group begin."""
        group = self._group
        if group is not None:
            if self._hand_on(group):
                return
            self._finish(group)
        with self._mutex:
            if self._waiting:
                self._grant_next()
            else:
                self._taken = False

    def _hand_on(self, group: _Group) -> bool:
        too_old = time.monotonic() - group.began > self._waits.group_age_max_s
        if group.failure is not None or group.begun >= self._group_max or too_old:
            return False
        with self._mutex:
            if not self._waiting:
                return False
            self._grant_next()
            return True

    def _grant_next(self) -> None:
        turn = self._waiting.popleft()
        turn.granted = True
        turn.ready.set()

    def _finish(self, group: _Group) -> None:
        """Commit, or undo all of it; then tell every call of the group."""
        with self._mutex:
            keep = group.failure is None and group.kept > 0
            group.committing = keep
        committed = False
        try:
            if keep:
                execute(self._connection, "COMMIT")
                committed = True
        except apsw.Error as error:
            self._fail(group, error)
        finally:
            if keep and not committed:
                self._fail(group, None)
            self._group = None
            if self._connection.in_transaction:
                self._roll_back()
            group.done.set()

    def _roll_back(self) -> None:
        try:
            execute(self._connection, "ROLLBACK")
        except apsw.Error:
            # The failure that led here is already told; a transaction still open makes the next BEGIN fail.
            return

    def _await_commit(self, group: _Group) -> None:
        if not group.done.wait(self._waits.commit_max_s):
            with self._mutex:
                if not group.committing and group.failure is None:
                    group.failure = StoreError("The store did not commit in time. Nothing was kept; try again.")
            if group.committing and not group.done.wait(self._waits.commit_max_s):
                raise StoreError("The disk did not confirm this write in time; read it back before trying again.")
        if group.failure is not None:
            raise StoreError(str(group.failure)) from group.failure
