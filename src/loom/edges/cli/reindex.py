"""`loom reindex`: every vector made anew with another embedder, while servers go on with the old ones."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from loom.edges.cli.problem import Problem
from loom.edges.cli.shell import LoadCompose, Show, composed, load_settings, place_of
from loom.edges.cli.transfer import progress
from loom.storage.interface import StoreError
from loom.system.reindexing import ReindexFailed

LINE_EVERY_S = 10.0
"""How often progress is told where no terminal shows a bar."""

GOES_ON = "What was done is kept: the same command goes on from there."


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "--embedder",
        help="the new embedder, as LOOM_EMBEDDER names it; without it what is missing is made with the store's own",
    )
    parser.add_argument(
        "--anew",
        action="store_true",
        help="forget first what was made with it: the model behind its name changed; stopped, the same command goes on",
    )
    parser.add_argument("--home", type=Path, help="the home folder (LOOM_HOME)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Embed everything beside the old vectors, switch over, and drop those."""
    settings = load_settings(home=args.home, embedder=args.embedder or None)
    print(f"Making vectors with {settings.embedder} in {place_of(settings)}", file=sys.stderr, flush=True)
    try:
        with told() as show:
            done = composed(compose).reindex(settings, show, anew=args.anew, may_switch=bool(args.embedder))
    except ReindexFailed as failure:
        raise Problem(f"{failure}. {GOES_ON}") from None
    except StoreError as error:
        raise Problem(str(error)) from None
    except KeyboardInterrupt:
        print(f"\nStopped. {GOES_ON}", file=sys.stderr)
        raise
    if args.json:
        print(json.dumps({"items": done.items, "refused": done.refused, "dropped": done.dropped}))
    else:
        print(f"{done.items:,} texts have new vectors; {done.dropped:,} old vectors are gone", file=sys.stderr)
    if done.refused:
        print(f"{done.refused:,} texts got none from the model, and are found by their words", file=sys.stderr)
    print(f"Start servers and workers with LOOM_EMBEDDER={settings.embedder} from now on", file=sys.stderr)
    return 0


@contextmanager
def told() -> Generator[Show]:
    """A progress bar on a terminal, and elsewhere a line from time to time."""
    if not sys.stderr.isatty():
        yield _lines(time.monotonic)
        return
    with progress() as bar:
        task = bar.add_task("starting", total=None)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total or None)

        yield show


def _lines(clock_s: Callable[[], float]) -> Show:
    """Tells how each step begins, how far it is every ten seconds, and how far it came."""
    last, held, last_s = "", "", clock_s()

    def show(what: str, done: int, total: int) -> None:
        nonlocal last, held, last_s
        line = f"{what}: {done:,}" + (f" of {total:,}" if total else "")
        if what != last and held:
            print(held, file=sys.stderr)
        if what != last or clock_s() - last_s >= LINE_EVERY_S:
            last, held, last_s = what, "", clock_s()
            print(line, file=sys.stderr, flush=True)
        else:
            held = line

    return show
