"""A repository in a folder of this machine. Nothing outside of it is read, and no link is followed.

But for what the repository around it leaves out: that is read where it may be, which the caller says.
"""

import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from pathspec import GitIgnoreSpec

from loom.planes.code import files, git, within
from loom.planes.code.small import read_from
from loom.planes.code.sources import Entry, Listing, SourceFailed, Yard

DEPTH_MAX: Final = 64
SCAN_TIMEOUT_S: Final = 45.0
IGNORE_BYTES_MAX: Final = 256 * 1024

_STEPS: Final = frozenset({"", ".", ".."})
"""Parts of a path that would lead elsewhere."""

_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_NON_BLOCK: Final = getattr(os, "O_NONBLOCK", 0)
_PATH_ONLY: Final = getattr(os, "O_PATH", 0)
"""Opens a folder to go on from it, where it need not be readable."""

_BENEATH: Final = os.open in os.supports_dir_fd and bool(_NO_FOLLOW)


class _Spec(NamedTuple):
    """The patterns of one .gitignore, and the folder they are about, as a path from the root; may lead above it."""

    at: str
    spec: GitIgnoreSpec


class Folder:
    """A folder, read as it is now.

    Args:
        root: the folder, resolved.
        yard: how `git` is run, to learn which commit is checked out.
        opened: folders outside of which nothing of the repository around the root is read; None for no bound.
    """

    def __init__(self, root: Path, yard: Yard, opened: Sequence[Path] | None = None) -> None:
        self._root = root
        self._yard = yard
        self._opened = opened

    def listed(self) -> Listing:
        """Every file that is not ignored. Counts, depth, bytes and time are bounded."""
        if not self._root.is_dir() or self._root.resolve() != self._root:
            raise SourceFailed("the folder is not there any more, cannot be read, or has become a link")
        until_s = time.monotonic() + SCAN_TIMEOUT_S
        skipped: Counter[str] = Counter()
        entries: list[Entry] = []
        total = 0
        for path, size in self._walked(skipped):
            reason = files.left_out(path, size)
            content = None if reason else self._content(path)
            if reason or content is None:
                skipped[reason or files.UNREADABLE] += 1
                continue
            total += len(content)
            entries.append(Entry(path, len(content), hashlib.sha256(content).hexdigest()))
            self._yard.check(len(entries), total)
            if time.monotonic() > until_s:
                raise SourceFailed(f"it takes over {SCAN_TIMEOUT_S:.0f} s to look through it; index a part of it")
        entries.sort(key=lambda entry: entry.path)
        top = None if self._is_foreign() else within.around(self._root, self._opened)[1]
        commit = "" if top is None else git.head_of(top, self._yard)
        return Listing(entries, dict(skipped), commit)

    def read(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, bytes | None]]:
        """The files as they are now."""
        for entry in entries:
            content = self._content(entry.path)
            if content is None:
                yield entry, None
            else:
                yield Entry(entry.path, len(content), hashlib.sha256(content).hexdigest()), content

    def _walked(self, skipped: Counter[str]) -> Iterator[tuple[str, int]]:
        """Path and size of every regular file that no .gitignore leaves out."""
        waiting: list[tuple[str, tuple[_Spec, ...]]] = [("", () if self._is_foreign() else self._above())]
        seen = 0
        while waiting:
            at, specs = waiting.pop()
            own = self._spec_in(at)
            specs = (*specs, own) if own else specs
            for child in self._children(at):
                seen += 1
                if seen > self._yard.names_max:
                    raise SourceFailed(f"it is too large: over {self._yard.names_max} names; index a part of it")
                path = f"{at}/{child.name}" if at else child.name
                if child.is_symlink():
                    skipped[files.LINK] += 1
                elif child.is_dir(follow_symlinks=False):
                    if self._is_entered(path, specs):
                        waiting.append((path, specs))
                elif child.is_file(follow_symlinks=False):
                    if _ignored(path, specs):
                        skipped[files.IGNORED] += 1
                    else:
                        with suppress(OSError):
                            yield path, child.stat(follow_symlinks=False).st_size

    def _is_entered(self, path: str, specs: Sequence[_Spec]) -> bool:
        """Whether a folder may hold text of the repository's own."""
        if path.rpartition("/")[2] in files.HEAVY_FOLDERS or path.count("/") >= DEPTH_MAX:
            return False
        return not self._yard.is_closed(self._root / path) and not _ignored(path + "/", specs)

    def _children(self, at: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._root / at) as found:
                return sorted(found, key=lambda entry: entry.name)
        except OSError:
            return []

    def _spec_in(self, at: str) -> _Spec | None:
        lines = self._content(f"{at}/.gitignore" if at else ".gitignore", IGNORE_BYTES_MAX)
        return None if lines is None else _spec(at, lines)

    def _is_foreign(self) -> bool:
        """Whether the repository around the root leaves all of it out: then the root is no part of it."""
        for at, spec in self._above():
            steps = at[1:].rstrip("/").split("/")
            folders = ["/".join(steps[: count + 1]) + "/" for count in range(len(steps))] if at != "^" else []
            if any(spec.check_file(folder).include for folder in folders):
                return True
        return False

    def _above(self) -> tuple[_Spec, ...]:
        """The patterns of the folders between the repository's top and the root, where the root is a part of one."""
        folders, top = within.around(self._root, self._opened)
        specs: list[_Spec] = []
        up, below = "", self._root.name
        for folder in folders:
            up = f"{below}/{up}"
            below = folder.name
            lines = self._content_around(folder, ".gitignore")
            if lines is not None:
                specs.append(_spec(f"^{up}", lines))
        if top is not None:
            lines = self._content_around(top / ".git" / "info", "exclude")
            if lines is not None:
                specs.append(_spec(f"^{up}", lines))
        return tuple(reversed(specs))

    def _content_around(self, folder: Path, name: str) -> bytes | None:
        """A file of the repository around the root; None when there is none, or it lies where nothing is read."""
        try:
            place = folder.resolve()
        except (OSError, RuntimeError):
            return None
        if not within.is_open(place, self._opened):
            return None
        return read_from(lambda: _opened(place, name), IGNORE_BYTES_MAX)

    def _content(self, path: str, most: int = files.FILE_BYTES_MAX) -> bytes | None:
        """A regular file's bytes; None when it is none, is too large, or a part of its path is a link."""
        return read_from(lambda: _opened(self._root, path), most)


def _opened(root: Path, path: str) -> int:
    """A file of a folder, opened step by step so that no link can lead elsewhere meanwhile."""
    if not _STEPS.isdisjoint(path.split("/")):
        raise OSError(path)
    if not _BENEATH:
        whole = root / path
        if whole.is_symlink() or not whole.resolve().is_relative_to(root):
            raise OSError(path)
        return os.open(whole, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    *folders, name = path.split("/")
    at = _entered(root)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(name, os.O_RDONLY | _NO_FOLLOW | _NON_BLOCK, dir_fd=at)
    finally:
        os.close(at)


def _entered(root: Path) -> int:
    """A folder, opened without following a link that may have taken a folder's place since it was resolved."""
    if not _PATH_ONLY:
        return os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    at = os.open(root.anchor, _PATH_ONLY | os.O_DIRECTORY)
    for folder in root.parts[1:]:
        try:
            inner = os.open(folder, _PATH_ONLY | os.O_DIRECTORY | _NO_FOLLOW, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    return at


def _spec(at: str, content: bytes) -> _Spec:
    lines = content.decode("utf-8", "replace").splitlines()
    try:
        return _Spec(at, GitIgnoreSpec.from_lines(lines))
    except ValueError:  # a pattern that git would not take either
        return _Spec(at, GitIgnoreSpec.from_lines(()))


def _relative(path: str, at: str) -> str:
    """A path as the patterns of the folder `at` see it; `^` stands for a folder above the root."""
    if at.startswith("^"):
        return at[1:] + path
    return path[len(at) + 1 :] if at else path


def _ignored(path: str, specs: Sequence[_Spec]) -> bool:
    """Whether the innermost .gitignore that speaks of the path leaves it out."""
    for at, spec in reversed(specs):
        said = spec.check_file(_relative(path, at)).include
        if said is not None:
            return said
    return False
