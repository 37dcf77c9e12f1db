"""A copy of the embedded store in a folder, taken while servers write to it, and a store made of one.

Each org's file is copied as it is at one moment: one read transaction is held while its pages are copied, so
that no writer makes the copy begin anew and none waits for it. Files of different orgs have moments of their own.
"""

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, cast

import apsw

from loom.storage.interface import StoreError
from loom.storage.migrate import Migration
from loom.storage.sqlite.connection import FAILURES, connect, execute, set_pragma, store_error
from loom.storage.sqlite.engine import SqliteDatabase
from loom.storage.sqlite.org_file import SUFFIX
from loom.storage.sqlite.settings import SqliteSettings

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
FILES_FOLDER: Final = "store"
UNFINISHED: Final = ".unfinished"
STEP_PAGES: Final = 1_000
READ_BYTES: Final = 1024 * 1024
MANIFEST_BYTES_MAX: Final = 64 * 1024 * 1024
FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
PROBLEMS_SHOWN_MAX: Final = 3

_NAME = re.compile(r"[a-z0-9-]{1,128}\.db")
_SHA256 = re.compile(r"[0-9a-f]{64}")

Show = Callable[[str, int, int], None]
"""Told the file that is worked on, how many bytes of all are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A file of a backup: its name, its size and its hash."""

    name: str
    byte_count: int
    sha256: str


def backup(store: Path, target: Path, show: Show) -> Sequence[Copied]:
    """Copy every file of the store to `target`, which appears whole or not at all.

    Raises:
        StoreError: there is no store, `target` is there and not empty, or a file cannot be read or written.
    """
    sources = sorted(store.glob(f"*{SUFFIX}"))
    if not sources:
        raise StoreError("There is nothing to back up: the home folder holds no store.")
    _check_free(target, "The backup's folder")
    unfinished = target.with_name(target.name + UNFINISHED)
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        files = unfinished / FILES_FOLDER
        files.mkdir(mode=FOLDER_MODE, parents=True)
        unfinished.chmod(FOLDER_MODE)
        total = sum(source.stat().st_size for source in sources)
        copied: list[Copied] = []
        for source in sources:
            done = sum(one.byte_count for one in copied)
            copied.append(_copied(source, files / source.name, lambda name, now, d=done: show(name, d + now, total)))
        manifest = {"format": FORMAT, "taken_at_s": int(time.time()), "files": [asdict(one) for one in copied]}
        _write(unfinished / MANIFEST, json.dumps(manifest, indent=1).encode())
        _flush(files)
        _flush(unfinished)
        if target.is_dir():
            target.rmdir()
        unfinished.replace(target)
        _flush(target.parent)
    except OSError as error:
        raise StoreError(f"The backup cannot be written: {error.strerror}. Nothing was left behind.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return copied


def restore(source: Path, store: Path, migrations: Sequence[Migration], show: Show) -> Sequence[Copied]:
    """Make the store `store` of a backup, whole and checked or not at all.

    Raises:
        StoreError: there is a store already, the backup is none or damaged, or was made by a newer Loom.
    """
    files = manifest_of(source)
    if any(store.glob("*")):
        raise StoreError("The home folder holds a store already. Restore into an empty one: name it with LOOM_HOME.")
    unfinished = store.with_name(store.name + UNFINISHED)
    total = sum(one.byte_count for one in files)
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=FOLDER_MODE, parents=True)
        done = 0
        for one in files:
            for count in _checked_copy(source / FILES_FOLDER / one.name, unfinished / one.name, one):
                done += count
                show(one.name, done, total)
        _check_store(unfinished, migrations)
        _flush(unfinished)
        if store.is_dir():
            store.rmdir()
        unfinished.replace(store)
        _flush(store.parent)
    except OSError as error:
        raise StoreError(f"The backup cannot be restored: {error.strerror}. Nothing was left behind.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return files


def manifest_of(source: Path) -> Sequence[Copied]:
    """The files of a backup, as it says itself.

    Raises:
        StoreError: it is none, or of a newer Loom.
    """
    refusal = StoreError("This is no backup of Loom: its manifest.json is missing or damaged.")
    try:
        with (source / MANIFEST).open("rb") as file:
            raw = json.loads(file.read(MANIFEST_BYTES_MAX))
    except (OSError, ValueError):
        raise refusal from None
    if not isinstance(raw, dict):
        raise refusal
    manifest = cast("Mapping[str, object]", raw)
    if manifest.get("format") != FORMAT:
        raise StoreError("The backup is of another format than this Loom reads; restore it with the one that made it.")
    listed = manifest.get("files")
    if not isinstance(listed, list):
        raise refusal
    found = [_listed(entry) for entry in cast("list[object]", listed)]
    files = [one for one in found if one is not None]
    if not files or len(files) < len(found) or len({one.name for one in files}) < len(files):
        raise refusal
    return files


def _listed(entry: object) -> Copied | None:
    match entry:
        case {"name": str(name), "byte_count": int(count), "sha256": str(sha256)} if (
            _NAME.fullmatch(name) and _SHA256.fullmatch(sha256) and count >= 0
        ):
            return Copied(name, count, sha256)
        case _:
            return None


def _copied(source: Path, target: Path, show: Callable[[str, int], None]) -> Copied:
    """One file as it is now, with nothing in its log."""
    settings = SqliteSettings()
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, FILE_MODE))
    try:
        with (
            closing(connect(source, settings, write=False, busy_timeout_s=settings.busy_timeout_s)) as reader,
            closing(apsw.Connection(str(target))) as writer,
        ):
            execute(reader, "BEGIN")
            execute(reader, "SELECT count(*) FROM sqlite_schema")  # from here on it sees one moment
            with writer.backup("main", reader, "main") as copying:
                while not copying.done:
                    copying.step(STEP_PAGES)
                    pages = copying.page_count - copying.remaining
                    show(source.name, pages * _page_bytes(reader))
            execute(reader, "COMMIT")
            set_pragma(writer, "journal_mode = DELETE")
    except FAILURES as error:
        raise store_error(error, source.name) from error
    digest, count = hashlib.sha256(), 0
    with target.open("rb+") as file:
        while block := file.read(READ_BYTES):
            digest.update(block)
            count += len(block)
        os.fsync(file.fileno())
    return Copied(source.name, count, digest.hexdigest())


def _page_bytes(connection: apsw.Connection) -> int:
    return int(str(execute(connection, "PRAGMA page_size")[0][0]))


def _checked_copy(source: Path, target: Path, wanted: Copied) -> Iterator[int]:
    """Copy a file of a backup; the bytes of each step.

    Raises:
        StoreError: it is missing, or not what the manifest says.
    """
    digest = hashlib.sha256()
    damaged = StoreError(f"{wanted.name} of the backup is missing or damaged: it is not what the manifest says.")
    if source.is_symlink() or not source.is_file():
        raise damaged
    handle = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
    with os.fdopen(handle, "wb") as copy, source.open("rb") as file:
        while block := file.read(READ_BYTES):
            digest.update(block)
            copy.write(block)
            yield len(block)
        copy.flush()
        os.fsync(copy.fileno())
    if digest.hexdigest() != wanted.sha256:
        raise damaged


def _check_store(folder: Path, migrations: Sequence[Migration]) -> None:
    """Open every file as a server would, and look for damage."""
    database = SqliteDatabase(folder, migrations)
    try:
        problems = database.check()
    finally:
        database.close()
    if problems:
        raise StoreError("The backup is damaged: " + " ".join(problems[:PROBLEMS_SHOWN_MAX]))


def _check_free(target: Path, what: str) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{what} is there already and not empty; name another one.")


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush(folder: Path) -> None:
    """Make the names in a folder last."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
