"""What export and import share: files of JSON Lines, and a progress bar on standard error."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LINES_MAX = 500
"""Lines in one call of store.export or store.import."""

ORG_KIND = "org"
"""The kind of a line after which a file holds what a plane keeps in an org of its own."""


@contextmanager
def progress(*, of_bytes: bool = False) -> Generator[Progress]:
    """A progress bar on standard error, so that standard output stays for data; hidden where nobody looks.

    Args:
        of_bytes: whether bytes are counted, and not lines.
    """
    count = DownloadColumn() if of_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        yield bar
