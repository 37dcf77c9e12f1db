"""`loom namespace`: the named parts of an org."""

import argparse
from collections.abc import Sequence

from loom.access.namespaces import KINDS
from loom.edges.cli.output import show_answer, show_json, show_table
from loom.edges.cli.problem import MISUSED, Problem
from loom.edges.cli.shell import LoadCompose, add_common, opened

COLUMNS = ("name", "kind", "description", "repository", "tracker", "created_at")
SENT = ("name", "kind", "description", "repository", "tracker", "org")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parts(parser)


def parts(parser: argparse.ArgumentParser) -> Sequence[argparse.ArgumentParser]:
    """Declare the flags; the parsers of what can be done."""
    what = parser.add_subparsers(dest="what", metavar="create|list|update|delete", required=True)
    create = what.add_parser("create", help="make a namespace")
    create.add_argument("--kind", choices=KINDS, help="what it holds (memory)")
    listing = what.add_parser("list", help="show the namespaces")
    update = what.add_parser("update", help="describe or bind a namespace anew")
    delete = what.add_parser("delete", help="delete a namespace and all that is in it")
    delete.add_argument("--yes", action="store_true", help="do it; without this, nothing happens")
    for each in (create, update):
        each.add_argument("--description", help="what it is for")
        each.add_argument("--repository", help="what a code or tracker namespace stands for; '' for nothing")
        each.add_argument("--tracker", help="the tracker namespace that a code namespace asks; '' for the repository's")
    for each in (create, update, delete):
        each.add_argument("name", help="1 to 256 characters")
    every = (create, listing, update, delete)
    for each in every:
        each.add_argument("--org", help="the org it belongs to")
        add_common(each)
    return every


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Create, list, update or delete."""
    if args.what == "delete" and not args.yes:
        raise Problem(f"this deletes namespace {args.name} with all its memories; add --yes to do it", MISUSED)
    given = vars(args)
    sent = {name: given[name] for name in SENT if given.get(name) is not None}
    if args.what == "delete":
        sent["confirm"] = args.name
    with opened(compose, args.url, embeds=False) as shell:
        answer = shell.call(f"namespace.{args.what}", sent)
    if args.json:
        show_json(answer)
    elif args.what == "list":
        show_table(answer["namespaces"], COLUMNS)
    else:
        show_answer(answer)
    return 0
