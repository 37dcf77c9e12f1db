"""Where a repository's files come from, as indexing sees it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

FILES_MAX: Final = 50_000
TOTAL_BYTES_MAX: Final = 512 * 1024 * 1024

FOLDER, GIT = "folder", "git"


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
    """What the install gives to those who fetch repositories.

    Attributes:
        folder: where fetched ones are kept.
        environment: the whole environment of `git`.
        fetch_timeout_s: how long one fetch may take.
        fetch_bytes_max: how large a fetched repository may get.
    """

    folder: Path
    environment: Mapping[str, str]
    fetch_timeout_s: float = 600.0
    fetch_bytes_max: int = 1024 * 1024 * 1024
