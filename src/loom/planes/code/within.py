"""Which folders of the server a token has read: those that an operator opened, however they are named or linked to."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from loom.planes.code.sources import SourceFailed, is_within

POINTER_BYTES_MAX: Final = 16 * 1024
"""A file of a repository that names another folder."""

HOPS_MAX: Final = 8
"""Folders that such files may lead through."""

NAMES_MAX: Final = 1_000_000
"""Names that a repository's own folder may hold."""

SETTING: Final = "code_folders (LOOM_CODE_FOLDERS)"
SHUT: Final = f"tokens have only those folders of the server read that the setting {SETTING} names, and it names none"
OUTSIDE: Final = f"it is outside of the folders that the setting {SETTING} opens to tokens"
LED_OUT: Final = "a link or a pointer in the repository leads " + OUTSIDE.removeprefix("it is ")

ANYWHERE: Final = Path("/")
"""Stands for what is not read any further: it may lead to any folder."""

_SUFFIXES: Final = ("/.git", "", ".git/.git", ".git")
"""Where git looks for the repository of a path, in its order."""


def refusal(folder: Path, opened: Sequence[Path]) -> str:
    """Why a token has this folder not read; empty when it has. Nothing is told of what lies outside."""
    if not opened:
        return SHUT
    return "" if _is_inside(folder, opened) else OUTSIDE


def check_repository(path: Path, opened: Sequence[Path]) -> None:
    """SourceFailed when reading the git repository of a path may lead out of the opened folders.

    What git follows is looked at: links anywhere in the repository's own folder, and the files by which worktrees,
    submodules and clones that share objects name the folder they are a part of.
    """
    waiting = [Path(f"{path}{suffix}") for suffix in _SUFFIXES]
    seen: set[Path] = set()
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        if len(seen) > HOPS_MAX + len(_SUFFIXES) or not _is_inside(place, opened):
            raise SourceFailed(LED_OUT)
        if place.is_file():
            waiting += _named_in(place, place.parent, "gitdir:")
        elif (place / "HEAD").exists() or (place / "objects").exists():
            _check_links(place, opened)
            objects = place / "objects"
            waiting += _named_in(place / "commondir", place)
            waiting += _named_in(objects / "info" / "alternates", objects)


def _check_links(folder: Path, opened: Sequence[Path]) -> None:
    seen = 0
    for at, folders, names in os.walk(folder):
        seen += len(folders) + len(names)
        if seen > NAMES_MAX:
            raise SourceFailed(f"the repository's own folder holds over {NAMES_MAX} names; pack it")
        for name in (*folders, *names):
            one = Path(at, name)
            if one.is_symlink() and not _is_inside(one, opened):
                raise SourceFailed(LED_OUT)


def _named_in(pointer: Path, base: Path, mark: str = "") -> Iterator[Path]:
    """The folders that a file names, one a line, as git reads them: from where the file stands."""
    content = b""
    with suppress(OSError), pointer.open("rb") as file:
        content = file.read(POINTER_BYTES_MAX + 1)
    if len(content) > POINTER_BYTES_MAX:
        yield ANYWHERE
    for line in content.decode("utf-8", "surrogateescape").split("\n"):
        name = line.removeprefix(mark).strip() if line.startswith(mark) else ""
        if name.startswith('"'):
            yield ANYWHERE  # git takes a quoted name apart in its own way
        elif name and not name.startswith("#"):
            yield base / name


def _is_inside(folder: Path, opened: Sequence[Path]) -> bool:
    try:
        return is_within(folder.resolve(), [one.resolve() for one in opened])
    except (OSError, RuntimeError, ValueError):
        return False  # what cannot be followed leads nowhere
