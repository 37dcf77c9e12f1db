"""`loom mcp`: MCP on standard input and output, for clients that start their servers."""

import argparse

from loom.edges.cli.launch import ensure_server
from loom.edges.cli.shell import LoadCompose, load_settings
from loom.edges.mcp import bridge


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--url", help="use this server (its token comes from LOOM_TOKEN) and start none")
    parser.add_argument("--toolset", choices=("default", "all"), help="the MCP tools to list (default)")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Carry messages between the client and a server until the client goes."""
    del compose
    settings = load_settings(url=args.url, mcp_toolset=args.toolset)
    bridge.run(ensure_server(settings))
    return 0
