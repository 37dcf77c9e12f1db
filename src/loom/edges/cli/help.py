"""The help of every command as text, for the reference page."""

import argparse
from collections.abc import Iterator

from loom.edges.cli.main import COMMANDS, command_parser, top_parser

WIDTH_COLUMNS = 100


class _Wide(argparse.HelpFormatter):
    """Help of one width, whatever the terminal's."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=WIDTH_COLUMNS)


def help_texts() -> dict[str, str]:
    """Command line to help text: `loom`, `loom serve`, `loom token mint` and so on."""
    texts: dict[str, str] = {}
    for parser in _parsers():
        parser.formatter_class = _Wide
        texts[parser.prog] = parser.format_help()
    return texts


def _parsers() -> Iterator[argparse.ArgumentParser]:
    yield top_parser()
    for name in COMMANDS:
        parser, module = command_parser(name)
        yield parser
        parts = getattr(module, "parts", None)
        yield from parts(argparse.ArgumentParser(prog=parser.prog)) if parts else ()
