"""`loom mcp`: MCP on standard input and output, for clients that start their servers.

It speaks to the server of this machine and starts one when none answers, so
that every client shares one.
"""

import argparse
from functools import partial

import anyio
import anyio.to_thread

from loom import __version__
from loom.config import Settings
from loom.edges.cli.code import namespace_of
from loom.edges.cli.launch import ensure_server, server_url
from loom.edges.cli.shell import LoadCompose, load_settings
from loom.edges.mcp import bridge
from loom.edges.mcp.upstream import Upstream


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--url", help="use this server (its token comes from LOOM_TOKEN) and start none")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Carry messages between the client and a server until the client goes."""
    del compose
    settings = load_settings(url=args.url)
    upstream = Upstream(
        server_url(settings) + "/mcp",
        token=settings.token.get_secret_value() or None,
        session=settings.session,
        project=namespace_of(settings.project_dir or "") or None,
    )
    start = None if settings.url else partial(_start, settings)
    return anyio.run(bridge.run, upstream, __version__, start)


async def _start(settings: Settings) -> None:
    await anyio.to_thread.run_sync(ensure_server, settings)
