"""What export and import share: files of JSON Lines, and a progress bar on standard error."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LINES_MAX = 500
"""Lines in one call of memory.export or memory.import."""


@contextmanager
def progress() -> Generator[Progress]:
    """A progress bar on standard error, so that standard output stays for data; hidden where nobody looks."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        yield bar
