"""`loom call OP --field value`: any operation from the terminal.

The flags are made from the operation's own fields, so that a new operation
needs nothing here.
"""

import argparse
import json

from loom.edges.cli.flags import add_flags, arguments, as_args
from loom.edges.cli.output import show_answer, show_json, show_table
from loom.edges.cli.problem import MISUSED, Problem
from loom.edges.cli.shell import LoadCompose, add_common, composed, opened
from loom.ops.registry import Registry

LISTED = ("operation", "role", "kind", "summary")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags; the operation's own follow its name."""
    add_common(parser)
    parser.add_argument("--args", metavar="JSON", help="every argument as one JSON object; flags win")
    parser.add_argument("op", nargs="?", metavar="OP", help="the operation; without one, they are listed")
    parser.add_argument(
        "flags",
        nargs=argparse.REMAINDER,
        metavar="--field value",
        help="the operation's fields; `loom call OP --help` lists them. A list's flag can be repeated; "
        "@FILE is a file's content, - standard input",
    )


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Call the operation and show its answer."""
    registry = composed(compose).registry()
    if args.op is None:
        _list(registry, as_json=args.json)
        return 0
    op = registry.named(args.op)
    parser = argparse.ArgumentParser(prog=f"loom call {op.name}", description=op.summary.replace("%", "%%"))
    add_common(parser)
    parser.add_argument("--args", metavar="JSON", help="every argument as one JSON object; flags win")
    add_flags(parser, op)
    given = parser.parse_args(args.flags)
    whole = given.args or args.args
    sent = (as_args(_parsed(whole)) if whole else {}) | arguments(op, given)
    with opened(compose, given.url or args.url) as shell:
        answer = shell.call(op.name, sent)
    if given.json or args.json:
        show_json(answer)
    else:
        show_answer(answer)
    return 0


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        raise Problem("--args: is not JSON", MISUSED) from None


def _list(registry: Registry, *, as_json: bool) -> None:
    rows = [
        {"operation": op.name, "role": op.role.word, "kind": op.kind.value, "summary": op.summary} for op in registry
    ]
    if as_json:
        show_json(rows)
    else:
        show_table(rows, LISTED)
