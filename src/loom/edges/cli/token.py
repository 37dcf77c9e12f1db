"""`loom token`: the tokens of a team's server."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from loom.edges.cli.output import show_json, show_table
from loom.edges.cli.shell import LoadCompose, Shell, add_common, opened

ALWAYS = ("token_id", "name", "role")
DAY_LENGTH = len("2026-01-31")
COLUMNS = ("token_id", "name", "role", "org", "namespaces", "minted_by", "expires_at", "last_used_at", "revoked_at")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parts(parser)


def parts(parser: argparse.ArgumentParser) -> Sequence[argparse.ArgumentParser]:
    """Declare the flags; the parsers of what can be done."""
    what = parser.add_subparsers(dest="what", metavar="mint|list|revoke", required=True)
    mint = what.add_parser("mint", help="make a token and print it, once")
    mint.add_argument("name", help="what the token is for, for example a person's name")
    mint.add_argument("--role", choices=("viewer", "writer", "admin"), default="writer", help="(writer)")
    mint.add_argument("--org", help="the org it is fixed to")
    mint.add_argument("--namespace", action="append", metavar="NAME", help="a namespace it reaches; repeat for more")
    mint.add_argument("--agent", help="the agent it is fixed to")
    mint.add_argument("--user-id", help="the end user it is fixed to")
    mint.add_argument("--read-scope", choices=("namespace", "own_user", "own_session"), help="how far it reads")
    mint.add_argument("--ttl-days", type=int, help="days until it ends; without it, it does not")
    listing = what.add_parser("list", help="show every token, without its secret")
    revoke = what.add_parser("revoke", help="end a token, and those that it minted")
    revoke.add_argument("token_id", help="as `loom token list` shows it")
    revoke.add_argument("--keep-minted", action="store_true", help="let the tokens that it minted stay good")
    every = (mint, listing, revoke)
    for each in every:
        add_common(each)
    return every


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Mint, list or revoke."""
    with opened(compose, args.url, embeds=False) as shell:
        {"mint": _mint, "list": _list, "revoke": _revoke}[args.what](args, shell)
    return 0


def _mint(args: argparse.Namespace, shell: Shell) -> None:
    wanted: dict[str, Any] = {"name": args.name, "role": args.role}
    pins = {"org": args.org, "agent": args.agent, "user_id": args.user_id}
    wanted["pins"] = {field: value for field, value in pins.items() if value}
    for field in ("read_scope", "ttl_days"):
        if getattr(args, field) is not None:
            wanted[field] = getattr(args, field)
    if args.namespace:
        wanted["namespaces"] = args.namespace
    answer = shell.call("token.mint", wanted)
    if args.json:
        show_json(answer)
        return
    print("This is the only time it is shown. Once there is a token, calls need one.", file=sys.stderr)
    print(answer["token"])


def _list(args: argparse.Namespace, shell: Shell) -> None:
    answer = shell.call("token.list", {})
    if args.json:
        show_json(answer)
        return
    rows = [{column: _short(column, row.get(column)) for column in COLUMNS} for row in answer["tokens"]]
    if not rows:
        print("no tokens: calls from this machine need none", file=sys.stderr)
        return
    several = len({row["org"] for row in rows}) > 1
    filled = [column for column in COLUMNS if column in ALWAYS or any(row[column] for row in rows)]
    show_table(rows, [column for column in filled if column != "org" or several])


def _short(column: str, value: Any) -> Any:
    """A time as its day: the columns have to fit a terminal."""
    return value[:DAY_LENGTH] if value and column.endswith("_at") else value


def _revoke(args: argparse.Namespace, shell: Shell) -> None:
    answer = shell.call("token.revoke", {"token_id": args.token_id, "keep_minted": args.keep_minted})
    if args.json:
        show_json(answer)
        return
    print("revoked")
    # A server of an older release knows neither.
    ended, kept = answer.get("minted_revoked", 0), answer.get("minted_kept", 0)
    if ended:
        print(f"revoked with it: {ended} that it minted, itself or through others")
    if kept:
        print(f"still good: {kept} that it minted, itself or through others")
