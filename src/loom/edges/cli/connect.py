"""`loom connect CLIENT`: the configuration that a coding agent needs, printed."""

import argparse
import shutil
import sys
from pathlib import Path

from loom.edges.cli.launch import server_url
from loom.edges.cli.shell import LoadCompose, load_settings
from loom.edges.snippets import SNIPPETS, Wanted


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("client", choices=tuple(SNIPPETS), help="the agent to connect")
    parser.add_argument("--url", help="the server (LOOM_URL, or the one of this machine)")
    parser.add_argument("--token", action="store_true", help="send the token that LOOM_TOKEN holds")
    parser.add_argument("--stdio", action="store_true", help="through `loom mcp`, which carries session and project")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Print where the configuration goes, and the configuration."""
    del compose
    url = server_url(load_settings(url=args.url)) + "/mcp"
    made = SNIPPETS[args.client](Wanted(url, args.token, bridge(args) if args.stdio else None))
    if made.place:
        print(f"in {made.place}:", file=sys.stderr)  # beside the output, which is the file
    print(made.text)
    return 0


def bridge(args: argparse.Namespace) -> list[str]:
    """The command of `loom mcp`, which the agent runs from its own folder and with its own PATH.

    A `loom` beside this Python is on the PATH only while its environment is active, so it is named in full.
    """
    beside = Path(sys.executable).with_name("loom")
    found = shutil.which("loom")
    anywhere = found is not None and Path(found).parent != beside.parent
    program = str(beside) if sys.prefix != sys.base_prefix and beside.exists() and not anywhere else "loom"
    return [program, "mcp", *(["--url", args.url] if args.url else [])]
