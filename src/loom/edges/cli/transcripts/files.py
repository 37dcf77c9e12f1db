"""Finding files, and reading lines of JSON of any length and state from them."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from loom.edges.cli.problem import Problem
from loom.edges.cli.transcripts.pieces import Advance, Broken, Place

FILES_MAX = 200_000
LINE_BYTES_MAX = 64 * 1024 * 1024
"""A longer line is passed over."""

PART_BYTES = 1024 * 1024


def found(path: Path, pattern: str) -> Sequence[Path]:
    """The file itself, or a folder's files of this pattern, however deep, the longest unchanged first.

    Raises:
        Problem: there is no such file, or no file in the folder.
    """
    if path.is_file():
        return [path]
    if not path.exists():
        raise Problem(f"cannot read {path}: there is no such file or folder")
    files = [one for one in path.rglob(pattern) if one.is_file()]
    if not files:
        raise Problem(f"there is no {pattern} in {path}")
    if len(files) > FILES_MAX:
        raise Problem(f"there are more than {FILES_MAX} files in {path}; import its folders one by one")
    return sorted(files, key=lambda one: (one.stat().st_mtime_ns, str(one)))


def size_of(path: Path) -> int:
    """The file's size, in bytes."""
    return path.stat().st_size


def anything(line: bytes) -> bool:
    """Whether a line is of interest: every one that is not empty."""
    return bool(line.strip())


def objects(
    path: Path, advance: Advance, wanted: Callable[[bytes], bool] = anything
) -> Iterator[tuple[int, dict[str, Any] | Broken]]:
    """The numbers of the lines that are wanted, each with the object on it, or with why there is none."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_BYTES_MAX):
            number += 1
            advance(len(line))
            if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
                while (part := file.readline(PART_BYTES)) and not part.endswith(b"\n"):
                    advance(len(part))
                yield number, Broken(Place(path.name, number), f"is over {LINE_BYTES_MAX} bytes long")
            elif wanted(line):
                yield number, parsed(line, Place(path.name, number))


def parsed(line: bytes, place: Place) -> dict[str, Any] | Broken:
    """The object on a line, or why there is none."""
    try:
        value: object = json.loads(line.decode("utf-8-sig"), parse_constant=lambda _: None)
    except UnicodeDecodeError:
        return Broken(place, "is not UTF-8 text")
    except (ValueError, RecursionError):
        return Broken(place, "is not JSON")
    if not isinstance(value, dict):
        return Broken(place, "is not a JSON object")
    return cast("dict[str, Any]", value)
