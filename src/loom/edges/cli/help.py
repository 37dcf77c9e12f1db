"""The help of every command as text, for the reference page."""

import argparse

from loom.edges.cli.main import COMMANDS, command_parser, top_parser

WIDTH_COLUMNS = 100


class _Wide(argparse.HelpFormatter):
    """Help of one width, whatever the terminal's."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=WIDTH_COLUMNS)


def help_texts() -> dict[str, str]:
    """Command to help text; the empty name is `loom` itself."""
    parsers = {"": top_parser()} | {name: command_parser(name)[0] for name in COMMANDS}
    for parser in parsers.values():
        parser.formatter_class = _Wide
    return {name: parser.format_help() for name, parser in parsers.items()}
