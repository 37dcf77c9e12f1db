"""`loom dashboard`: a link that opens the dashboard once, signed in."""

import argparse
import sys
import webbrowser

from loom.edges.cli.launch import answers, server_url
from loom.edges.cli.output import show_json
from loom.edges.cli.shell import LoadCompose, add_common, load_settings, opened


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--open", action="store_true", help="open it in the browser of this machine as well")
    add_common(parser)


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Print the link, and open it when that was asked for.

    Without `--url` the store is asked itself: who can read its files is its admin.
    """
    url = server_url(load_settings(url=args.url or None))
    with opened(compose, args.url, embeds=False) as shell:
        answer = shell.call("dashboard.link", {})
    link = url + str(answer["path"])
    if args.json:
        show_json({"url": link, "expires_at": answer["expires_at"]})
    else:
        print("It works once, within five minutes.", file=sys.stderr)
        print(link)
    if not answers(url):
        print(f"no server answers at {url} yet; `loom serve` starts one", file=sys.stderr)
    if args.open:
        webbrowser.open(link)
    return 0
