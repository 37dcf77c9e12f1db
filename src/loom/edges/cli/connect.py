"""`loom connect CLIENT`: the configuration that a coding agent needs, printed."""

import argparse
import json
import shlex
import shutil
import sys
from pathlib import Path

from loom.edges.cli.launch import server_url
from loom.edges.cli.shell import LoadCompose, load_settings

CLIENTS = ("claude", "codex", "cursor", "vscode")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("client", choices=CLIENTS, help="the agent to connect")
    parser.add_argument("--url", help="the server (LOOM_URL, or the one of this machine)")
    parser.add_argument("--token", action="store_true", help="send the token that LOOM_TOKEN holds")
    parser.add_argument("--stdio", action="store_true", help="through `loom mcp`, which carries session and project")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Print where the configuration goes, and the configuration."""
    del compose
    url = server_url(load_settings(url=args.url)) + "/mcp"
    print({"claude": claude, "codex": codex, "cursor": cursor, "vscode": vscode}[args.client](url, args))
    return 0


def claude(url: str, args: argparse.Namespace) -> str:
    """A command for Claude Code."""
    if args.stdio:
        token = ' -e LOOM_TOKEN="$LOOM_TOKEN"' if args.token else ""
        return f"claude mcp add --scope user loom{token} -- {shlex.join(bridge(args))}"
    header = ' --header "Authorization: Bearer $LOOM_TOKEN"' if args.token else ""
    return f"claude mcp add --transport http --scope user loom {url}{header}"


def codex(url: str, args: argparse.Namespace) -> str:
    """A command for Codex."""
    if args.stdio:
        token = ' --env LOOM_TOKEN="$LOOM_TOKEN"' if args.token else ""
        return f"codex mcp add loom{token} -- {shlex.join(bridge(args))}"
    return f"codex mcp add loom --url {url}" + (" --bearer-token-env-var LOOM_TOKEN" if args.token else "")


def cursor(url: str, args: argparse.Namespace) -> str:
    """A file for Cursor."""
    _place("~/.cursor/mcp.json")
    return _json({"mcpServers": {"loom": _entry(url, args)}})


def vscode(url: str, args: argparse.Namespace) -> str:
    """A file for VS Code, which wants the kind of the connection named."""
    kind = {"type": "stdio" if args.stdio else "http"}
    _place(".vscode/mcp.json")
    return _json({"servers": {"loom": kind | _entry(url, args)}})


def bridge(args: argparse.Namespace) -> list[str]:
    """The command of `loom mcp`, which the agent runs from its own folder and with its own PATH.

    A `loom` beside this Python is on the PATH only while its environment is active, so it is named in full.
    """
    beside = Path(sys.executable).with_name("loom")
    found = shutil.which("loom")
    anywhere = found is not None and Path(found).parent != beside.parent
    program = str(beside) if sys.prefix != sys.base_prefix and beside.exists() and not anywhere else "loom"
    return [program, "mcp", *(["--url", args.url] if args.url else [])]


def _place(name: str) -> None:
    """Where the file belongs; beside the output, which is the file."""
    print(f"in {name}:", file=sys.stderr)


def _entry(url: str, args: argparse.Namespace) -> dict[str, object]:
    variable = "${env:LOOM_TOKEN}"
    if args.stdio:
        command, *rest = bridge(args)
        entry: dict[str, object] = {"command": command, "args": rest}
        return entry | ({"env": {"LOOM_TOKEN": variable}} if args.token else {})
    entry = {"url": url}
    return entry | ({"headers": {"Authorization": f"Bearer {variable}"}} if args.token else {})


def _json(value: object) -> str:
    return json.dumps(value, indent=2)
