"""The embedded database: a folder with one SQLite file for each org."""

import itertools
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from loom.storage.interface import SYSTEM_ORG, Param, Row, StoreError
from loom.storage.migrate import Migration
from loom.storage.sqlite.org_file import SUFFIX, EmptyStore, OrgFile, Schema, file_name_of, org_in
from loom.storage.sqlite.settings import SqliteSettings
from loom.storage.sqlite.transaction import SqliteTransaction
from loom.storage.sqlite.vector_cache import VectorCache

CLOSE_WAIT_MAX_S = 30.0
"""How long `close` waits for transactions to end."""

OPEN_WAIT_MAX_S = 60.0
"""How long a call waits while another opens the same file, which includes new tables and the wait for a process."""

IDLE_FILES_MAX = 32
"""Files that one upkeep looks at though nobody uses them: what was left to scrub when they were closed is done."""

MAINTAIN_S_MAX = 10.0
"""How long one upkeep may go on; the next one continues with the files it left out."""

_LOG = logging.getLogger(__name__)


class _Slot:
    """A file in the set of open files, opened by the first thread that needs it."""

    __slots__ = ("file", "opening", "users")

    def __init__(self) -> None:
        self.opening = threading.Lock()
        self.file: OrgFile | None = None
        self.users = 0


class SqliteDatabase:
    """Implements `storage.interface.Database`. Safe for threads; several processes may share the folder.

    A thread has one transaction at a time, whatever the org: a second one
    inside the first raises RuntimeError, for it could wait for itself.
    """

    def __init__(self, folder: Path, migrations: Sequence[Migration], settings: SqliteSettings | None = None) -> None:
        """Use `folder`, made if need be. No file is opened before it is asked for.

        Raises:
            StoreError: the folder cannot be made.
            ValueError: two migrations share a number.
        """
        self._folder = folder
        self._settings = settings if settings is not None else SqliteSettings()
        self._schema = Schema(migrations)
        self._vectors = VectorCache(self._settings.vector_cache_bytes_max)
        self._empty = EmptyStore(self._settings, self._schema)
        self._changed = threading.Condition()
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._empty_users = 0
        self._closed = False
        self._in_block = threading.local()
        self._org_of: dict[str, str] = {}
        self._rounds = itertools.count()
        self._idle_last = ""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"The store's folder {folder.name!r} cannot be made: {error.strerror}."
                " Name a folder that the server's user may write to."
            ) from error

    @contextmanager
    def transaction(
        self, org: str, *, write: bool, may_lag: bool = False, turn: Sequence[str] = ()
    ) -> Generator[SqliteTransaction, None, None]:
        """Begin a transaction on one org's rows; see `storage.interface.Database`.

        No read lags here, and every write of an org takes turns with all others.
        """
        del may_lag, turn
        self._check_alone()
        self._in_block.active = True
        try:
            with self._begun(org, write=write) as transaction:
                yield transaction
        finally:
            self._in_block.active = False

    def look(self, org: str, sql: str, /, **params: Param) -> Row | None:
        """The one row of one query, or None."""
        with self.transaction(org, write=False) as transaction:
            return transaction.row(sql, **params)

    def orgs(self) -> Sequence[str]:
        """Every org that has a file, the system's left out. A file that cannot be read is logged and left out."""
        found: list[str] = []
        for path in self._paths():
            try:
                org = self._org_in(path)
            except StoreError as error:
                _LOG.warning("a store file was left out: %s", error)
                continue
            if org is not None and org != SYSTEM_ORG:
                found.append(org)
        return sorted(found)

    def check(self) -> Sequence[str]:
        """What is wrong with any file, a sentence each."""
        self._check_alone()
        found: list[str] = []
        for path in self._paths():
            try:
                org = self._org_in(path)
                if org is None:
                    continue
                if file_name_of(org) != path.name:
                    found.append(f"{path.name}: the file is not named after its org, so nothing finds it.")
                    continue
                with self._used(org) as file:
                    found.extend(file.check())
            except StoreError as error:
                found.append(str(error))
        return found

    def maintain(self) -> None:
        """Upkeep of every file that is open or has a log left, and of some others in turn, as far as the time goes.

        Raises:
            StoreError: upkeep of at least one file failed; the others had theirs.
        """
        self._check_alone()
        until = time.monotonic() + MAINTAIN_S_MAX
        names = self._names_to_maintain()
        first = next(self._rounds) % len(names) if names else 0
        failure: StoreError | None = None
        for name in [*names[first:], *names[:first]]:
            if time.monotonic() > until:
                break
            try:
                org = self._org_in(self._folder / name)
                if org is not None and file_name_of(org) == name:
                    with self._used(org) as file:
                        file.maintain()
            except StoreError as error:
                failure = error
        if failure is not None:
            raise failure

    def shared_counts(self) -> None:
        """None: each process counts for itself, without a write for a call."""

    def share_wakes(self, wake: Callable[[str], None]) -> Callable[[str], None]:
        """`wake` itself: other processes look for jobs from time to time."""
        return wake

    def close(self) -> None:
        """Let transactions end, then close every file.

        Raises:
            StoreError: a transaction did not end in time; its file stays open.
        """
        self._check_alone()
        with self._changed:
            self._closed = True
            idle = self._changed.wait_for(
                lambda: self._empty_users == 0 and all(slot.users == 0 for slot in self._slots.values()),
                CLOSE_WAIT_MAX_S,
            )
            if not idle:
                raise StoreError("A transaction did not end in time, so the store is not wholly closed.")
            slots = list(self._slots.values())
            self._slots.clear()
        for slot in slots:
            if slot.file is not None:
                slot.file.close()
        self._empty.close()
        self._vectors.close()

    @contextmanager
    def _begun(self, org: str, *, write: bool) -> Generator[SqliteTransaction, None, None]:
        if write or org in self._slots or (self._folder / file_name_of(org)).exists():
            with self._used(org) as file, file.transaction(write=write) as transaction:
                yield transaction
            return
        with self._changed:
            self._check_open()
            self._empty_users += 1
        try:
            with self._empty.transaction(org) as transaction:
                yield transaction
        finally:
            with self._changed:
                self._empty_users -= 1
                self._changed.notify_all()

    @contextmanager
    def _used(self, org: str) -> Generator[OrgFile, None, None]:
        """An open file that is not closed before the block ends."""
        with self._changed:
            self._check_open()
            slot = self._slots.setdefault(org, _Slot())
            self._slots.move_to_end(org)
            slot.users += 1
        try:
            yield self._opened(slot, org)
        finally:
            for file in self._released(org, slot):
                file.close()

    def _opened(self, slot: _Slot, org: str) -> OrgFile:
        """The slot's file, opened unless another thread did it."""
        if not slot.opening.acquire(timeout=OPEN_WAIT_MAX_S):
            raise StoreError("Another call is opening the store for too long; try again.")
        try:
            if slot.file is None:
                path = self._folder / file_name_of(org)
                slot.file = OrgFile(path, org, self._settings, self._schema, self._vectors)
            return slot.file
        finally:
            slot.opening.release()

    def _released(self, org: str, slot: _Slot) -> Sequence[OrgFile]:
        """Note the end of a use; the files that are now to be closed."""
        too_many: list[OrgFile] = []
        with self._changed:
            slot.users -= 1
            if slot.users == 0 and slot.file is None:
                self._slots.pop(org, None)
            excess = len(self._slots) - self._settings.orgs_open_max
            for name in [name for name, other in self._slots.items() if other.users == 0][: max(0, excess)]:
                file = self._slots.pop(name).file
                if file is not None:
                    too_many.append(file)
            self._changed.notify_all()
        return too_many

    def _check_alone(self) -> None:
        if getattr(self._in_block, "active", False):
            raise RuntimeError("this thread already has a transaction open; end it first")

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("The store is closed.")

    def _paths(self) -> Sequence[Path]:
        with self._changed:
            self._check_open()
        return sorted(self._folder.glob(f"*{SUFFIX}"))

    def _names_to_maintain(self) -> Sequence[str]:
        with self._changed:
            self._check_open()
            names = {file_name_of(org) for org in self._slots}
        names.update(path.name.removesuffix("-wal") for path in self._folder.glob(f"*{SUFFIX}-wal"))
        there = sorted(path.name for path in self._folder.glob(f"*{SUFFIX}"))
        idle = [name for name in there if name not in names]
        first = next((place for place, name in enumerate(idle) if name > self._idle_last), 0)
        turn = [*idle[first:], *idle[:first]][:IDLE_FILES_MAX]
        self._idle_last = turn[-1] if turn else ""
        return [name for name in there if name in names or name in turn]

    def _org_in(self, path: Path) -> str | None:
        """The org of a file, read once: a file never changes hands."""
        org = self._org_of.get(path.name)
        if org is None:
            org = org_in(path, self._settings)
            if org is not None:
                self._org_of[path.name] = org
        return org
