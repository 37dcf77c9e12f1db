"""Which folders of the server a token has read: those that an operator opened, however they are named or linked to."""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from loom.planes.code.small import content_of
from loom.planes.code.sources import SourceFailed, is_within

POINTER_BYTES_MAX: Final = 16 * 1024
"""A file of a repository that names another folder."""

HOPS_MAX: Final = 8
"""Folders that such files may lead through."""

NAMES_MAX: Final = 1_000_000
"""Names that a repository's own folder may hold."""

ABOVE_MAX: Final = 32
"""Folders above one that are looked at for a repository that it is a part of."""

SETTING: Final = "code_folders (LOOM_CODE_FOLDERS)"
SHUT: Final = f"tokens have only those folders of the server read that the setting {SETTING} names, and it names none"
OUTSIDE: Final = f"it is outside of the folders that the setting {SETTING} opens to tokens"
LED_OUT: Final = "a link or a pointer in the repository leads " + OUTSIDE.removeprefix("it is ")

ANYWHERE: Final = Path("/")
"""Stands for what is not read any further: it may lead to any folder."""

SUFFIXES: Final = ("/.git", "", ".git/.git", ".git")
"""Where git looks for the repository of a path, in its order."""

OF_FOLDER: Final = ("/.git",)
"""Where the repository of a working folder is."""


def refusal(folder: Path, opened: Sequence[Path]) -> str:
    """Why a token has this folder not read; empty when it has. Nothing is told of what lies outside."""
    if not opened:
        return SHUT
    return "" if _is_inside(folder, opened) else OUTSIDE


def is_open(folder: Path, opened: Sequence[Path] | None) -> bool:
    """Whether what is in a folder may be read for who may have these read; None for everything."""
    return opened is None or _is_inside(folder, opened)


def around(folder: Path, opened: Sequence[Path] | None) -> tuple[Sequence[Path], Path | None]:
    """The folders above one whose `.gitignore` speaks of it, the nearest first, and the top of its repository.

    They end at the repository's top, or before it where what is open ends: then there is no top, and nothing above
    is looked at. Where all is open and no repository is found, the folder is a part of none, and nothing speaks of it.
    """
    above: list[Path] = []
    for one in (folder, *list(folder.parents)[:ABOVE_MAX]):
        if not is_open(one, opened):
            return above, None
        if one != folder:
            above.append(one)
        if os.path.lexists(one / ".git"):
            return above, one
    return (), None


def check_repository(path: Path, opened: Sequence[Path], suffixes: Sequence[str] = SUFFIXES) -> None:
    """SourceFailed when reading the git repository of a path may lead out of the opened folders, or to no file at all.

    What git follows is looked at: links anywhere in the repository's own folder, and the files by which worktrees,
    submodules and clones that share objects name the folder they are a part of.
    """
    waiting = [(Path(f"{path}{suffix}"), False) for suffix in suffixes]
    seen: set[tuple[Path, bool]] = set()
    while waiting:
        place, has_objects = one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if len(seen) > HOPS_MAX + len(suffixes) or not _is_inside(place, opened):
            raise SourceFailed(LED_OUT)
        if place == ANYWHERE:
            continue  # that is inside, so all is open
        if has_objects:
            # It may share the objects of further folders, and those of others again.
            _check_links(place, opened)
            waiting += [(other, True) for other in _named_in(place / "info" / "alternates", place)]
        elif place.is_file():
            waiting += [(other, False) for other in _named_in(place, place.parent, "gitdir:")]
        elif (place / "HEAD").exists() or (place / "objects").exists():
            _check_links(place, opened)
            waiting += [(other, False) for other in _named_in(place / "commondir", place)]
            waiting.append((place / "objects", True))


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
        if not all(_is_plain(Path(at, name)) for name in names):
            raise SourceFailed("the repository's own folder holds a pipe or a device")


def _named_in(pointer: Path, base: Path, mark: str = "") -> Iterator[Path]:
    """The folders that a file names, one a line, as git reads them: from where the file stands."""
    content = content_of(pointer, POINTER_BYTES_MAX)
    if content is None:
        if os.path.lexists(pointer):
            yield ANYWHERE  # what is not read here may be read by git
        return
    for line in content.decode("utf-8", "surrogateescape").split("\n"):
        name = line.removeprefix(mark).removesuffix("\r") if line.startswith(mark) else ""
        if name.strip().startswith('"'):
            yield ANYWHERE  # git takes a quoted name apart in its own way
        elif name.strip() and not name.startswith("#"):
            # Git keeps a space at the end, and passes over one behind the mark.
            yield base / name.removeprefix(" ")
            yield base / name.strip()


def _is_plain(path: Path) -> bool:
    """Whether it is a file or a link, which is judged by where it leads."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return True  # it is gone
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _is_inside(folder: Path, opened: Sequence[Path]) -> bool:
    try:
        return is_within(folder.resolve(), [one.resolve() for one in opened])
    except (OSError, RuntimeError, ValueError):
        return False  # what cannot be followed leads nowhere
