"""`loom backup FOLDER`: a copy of the embedded store, taken while servers use it."""

import argparse
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from loom.config import Settings
from loom.edges.cli.problem import Problem
from loom.edges.cli.shell import LoadCompose, Show, composed, load_settings
from loom.edges.cli.transfer import progress
from loom.storage.interface import StoreError

IN_POSTGRES = (
    "the store is in PostgreSQL, which has tools of its own: `pg_dump`, or a base backup with the log for any moment; "
    "the guide `docs/guides/postgres.md` has the commands under Backup"
)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("folder", type=Path, help="the folder to write, which is not there yet or empty")
    parser.add_argument("--home", type=Path, help="the home folder (LOOM_HOME)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Copy every org's file, tokens included."""
    settings = embedded(args.home)
    with shown("copying") as show, told():
        files = composed(compose).backup(settings, args.folder, show)
    report(files, as_json=args.json, what="backed up")
    return 0


def embedded(home: Path | None) -> Settings:
    """The settings; Problem when the store is not in the home folder."""
    settings = load_settings(home=home)
    if settings.database_url.get_secret_value() or settings.try_postgres:
        raise Problem(IN_POSTGRES)
    return settings


@contextmanager
def shown(what: str) -> Generator[Show]:
    """A progress bar of bytes."""
    with progress(of_bytes=True) as bar:
        task = bar.add_task(what, total=None)

        def show(name: str, done: int, total: int) -> None:
            bar.update(task, description=f"{what} {name}", completed=done, total=max(done, total))

        yield show


@contextmanager
def told() -> Generator[None]:
    """Trouble with the store as a Problem."""
    try:
        yield
    except StoreError as error:
        raise Problem(str(error)) from None


def report(sizes: dict[str, int], *, as_json: bool, what: str) -> None:
    """Say how much there was."""
    if as_json:
        print(json.dumps({"files": len(sizes), "bytes": sum(sizes.values())}))
    else:
        print(f"{len(sizes)} files {what}, {sum(sizes.values()):,} bytes", file=sys.stderr)
