"""`loom version`: which versions run here."""

import argparse
import platform
from importlib import metadata

from loom import __version__
from loom.edges.cli.output import show_json, show_table
from loom.edges.cli.shell import LoadCompose

PARTS = ("apsw", "mcp", "numpy", "onnxruntime", "pydantic", "starlette", "tokenizers", "uvicorn")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Show the versions."""
    del compose
    found = versions()
    if args.json:
        show_json(found)
    else:
        show_table([{"part": part, "version": version} for part, version in found.items()], ("part", "version"))
    return 0


def versions() -> dict[str, str]:
    """Part to version: Loom, Python, and the libraries that matter when something is wrong."""
    found = {"loom": __version__, "python": platform.python_version()}
    return found | {part: metadata.version(part) for part in PARTS}
