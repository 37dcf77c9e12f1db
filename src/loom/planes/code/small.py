"""Reads small files of a folder that may have been made to trap its reader."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def content_of(path: Path, most: int) -> bytes | None:
    """A regular file's bytes; None when it is a link, a pipe or a device, cannot be read or has more than `most`."""
    return read_from(lambda: os.open(path, _FLAGS), most)


def read_from(opened: Callable[[], int], most: int) -> bytes | None:
    """The bytes of a regular file that `opened` opens; None when it is none, cannot be read or has more than `most`."""
    try:
        number = opened()
    except (OSError, ValueError):
        return None
    with os.fdopen(number, "rb") as file:
        try:
            content = file.read(most + 1) if stat.S_ISREG(os.fstat(number).st_mode) else None
        except OSError:
            return None
    return content if content is not None and len(content) <= most else None
