"""`loom worker`: what servers leave for later, in a process of its own."""

import argparse
import signal
import sys
from pathlib import Path
from threading import Event
from types import FrameType

from loom.edges.cli.shell import LoadCompose, build, load_settings, place_of
from loom.edges.http import log_to_stderr
from loom.edges.process import settle


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--home", type=Path, help="the home folder (LOOM_HOME)")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Work until interrupted. Servers may leave it all to workers: LOOM_LATER_WORK=elsewhere."""
    settings = load_settings(home=args.home)
    stop = Event()

    def ask(signum: int, frame: FrameType | None) -> None:
        del signum, frame
        stop.set()

    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, ask)
    log_to_stderr(settings.log_level.upper())
    app = build(compose, settings)
    try:
        settle()
        print(f"Loom works for {place_of(settings)}", file=sys.stderr, flush=True)
        app.work(stop)
    finally:
        app.close()
    return 0
