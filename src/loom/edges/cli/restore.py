"""`loom restore FOLDER`: a store of a backup, in a home folder that has none."""

import argparse
from pathlib import Path

from loom.edges.cli import backup
from loom.edges.cli.shell import LoadCompose, composed


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("folder", type=Path, help="the folder that `loom backup` wrote")
    parser.add_argument("--home", type=Path, help="the home folder to fill (LOOM_HOME)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Check the backup, and put it where a server finds it."""
    settings = backup.embedded(args.home)
    with backup.shown("restoring") as show, backup.told():
        files = composed(compose).restore(settings, args.folder, show)
    backup.report(files, as_json=args.json, what="restored")
    return 0
