"""Where a repository's files come from, as indexing sees it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from loom.planes.code.names import looked_up

FOLDER, GIT = "folder", "git"

SYSTEM_FOLDERS = (Path("/proc"), Path("/sys"), Path("/dev"))
"""What the machine shows of itself, other processes' secrets among it."""

SSH = "ssh -oBatchMode=yes -oConnectTimeout=20"
"""How `git` calls ssh: nobody answers its questions."""

CLOSED = "the folder is of Loom's own store or of the system itself, and is never read"


class SourceFailed(Exception):
    """A repository cannot be read; the message says why and is safe to show."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file that may be kept: its path, its size, and a digest that tells whether it changed."""

    path: str
    byte_size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What a repository holds now.

    Attributes:
        entries: the files that may be kept, by path.
        skipped: how many were left out, by reason.
        commit_id: what is checked out or was fetched; empty when that is not known.
    """

    entries: Sequence[Entry]
    skipped: Mapping[str, int]
    commit_id: str


class Source(Protocol):
    """A repository that can be read. Every call raises SourceFailed when it cannot."""

    def listed(self) -> Listing:
        """Every file."""
        ...

    def read(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, bytes | None]]:
        """The content of files, each with the digest it has now; None for one that is gone or must not be read."""
        ...


@dataclass(frozen=True, slots=True)
class Yard:
    """What the install gives to those who read repositories.

    Attributes:
        folder: where fetched ones are kept.
        environment: the whole environment of `git`.
        fetch_timeout_s: how long one fetch may take.
        fetch_bytes_max: how large a fetched repository may get.
        files_max: how many files a repository may have in the index.
        bytes_max: how many bytes they may have.
        names_max: how many names a folder may hold, ignored ones and folders included.
        closed: folders that are never read, nor is anything in them: the store of every org, and what is no file.
        folders: of what a token asked for, the folders that are read, and nothing outside of them.
        private_hosts: hosts and networks inside the server's own network that a token may have something fetched from.
        resolve: the addresses of a name, for a port; OSError when there are none.
    """

    folder: Path
    environment: Mapping[str, str]
    fetch_timeout_s: float = 600.0
    fetch_bytes_max: int = 1024 * 1024 * 1024
    files_max: int = 50_000
    bytes_max: int = 512 * 1024 * 1024
    names_max: int = 500_000
    closed: tuple[Path, ...] = SYSTEM_FOLDERS
    folders: tuple[Path, ...] = ()
    private_hosts: tuple[str, ...] = ()
    resolve: Callable[[str, int], Sequence[str]] = looked_up

    def is_closed(self, folder: Path) -> bool:
        """Whether a folder, named without links, is one that is never read."""
        return is_within(folder, self.closed)

    def check(self, files: int, total_bytes: int) -> None:
        """SourceFailed when a repository has more than it may."""
        if files > self.files_max or total_bytes > self.bytes_max:
            most = f"at most {self.files_max} files and {self.bytes_max >> 20} MiB"
            raise SourceFailed(f"it is too large: {most}; ignore more in .gitignore, or index a part of it")


def is_within(folder: Path, others: Iterable[Path]) -> bool:
    """Whether a folder, named without links, is one of the others or inside of one."""
    return any(folder.is_relative_to(one) for one in others)
