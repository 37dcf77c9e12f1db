"""What calls leave for later, done before a command ends: on the local store there may be no server to do it."""

import argparse
import sys

from loom.edges.cli.shell import Shell
from loom.edges.cli.transfer import progress


def add_later(parser: argparse.ArgumentParser) -> None:
    """Declare the flag that leaves it to others."""
    parser.add_argument(
        "--later", action="store_true", help="leave what takes long (passages, vectors) to a server or a worker"
    )


def settle(shell: Shell, *, later: bool) -> int:
    """Do what is left, with a progress bar, unless it is to be left; how many jobs are left then.

    A server does its own, and is not waited for: 0.
    """
    if shell.settle is None:
        return 0
    if later:
        left = shell.settle(None)
    else:
        with progress() as bar:
            task = bar.add_task("indexing", total=None)
            most = 0

            def show(waiting: int) -> None:
                nonlocal most
                most = max(most, waiting)
                bar.update(task, total=most, completed=most - waiting)

            left = shell.settle(show)
    if left:
        print(f"{left} jobs of indexing are left; a running server or `loom worker` does them", file=sys.stderr)
    return left
