"""The top of the command line: which command, in which module, and how a failure looks.

Nothing heavy is imported here: `loom --help` must be quick, and a coding agent
starts `loom mcp` with every conversation.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

from loom import __version__
from loom.edges.cli.printable import printable
from loom.edges.cli.problem import FAILED, MISUSED, Problem
from loom.errors import LoomError

INTERRUPTED = 130
PIPE_CLOSED = 141


@dataclass(frozen=True, slots=True)
class Command:
    """A command as the top help shows it.

    Attributes:
        module: has `add(parser)`, which declares the flags, and `run(args, compose)`, which gives the exit code.
        summary: a few words for the list of commands.
    """

    module: str
    summary: str


COMMANDS = {
    "serve": Command("loom.edges.cli.serve", "run the server"),
    "worker": Command("loom.edges.cli.worker", "do later work for servers on the same PostgreSQL"),
    "mcp": Command("loom.edges.cli.mcp", "speak MCP on standard input and output; starts a server when none runs"),
    "connect": Command("loom.edges.cli.connect", "print the configuration that a coding agent needs"),
    "dashboard": Command("loom.edges.cli.dashboard", "print a link that opens the dashboard, signed in"),
    "call": Command("loom.edges.cli.call", "call any operation"),
    "token": Command("loom.edges.cli.token", "mint, list and revoke tokens"),
    "namespace": Command("loom.edges.cli.namespace", "create, list, update and delete namespaces"),
    "code": Command("loom.edges.cli.code", "index a repository, and see how far an index is"),
    "export": Command("loom.edges.cli.export", "write all that is kept, with its history, to a file"),
    "import": Command("loom.edges.cli.imports", "read what was exported, or other programs' conversations, from files"),
    "reindex": Command("loom.edges.cli.reindex", "make every vector anew with another embedder, while servers go on"),
    "backup": Command("loom.edges.cli.backup", "copy the embedded store while it is used"),
    "restore": Command("loom.edges.cli.restore", "make a store of a backup"),
    "knowledge": Command("loom.edges.cli.knowledge", "add files and folders as documents"),
    "tracker": Command("loom.edges.cli.tracker", "read issues of a bug tracker from a file"),
    "doctor": Command("loom.edges.cli.doctor", "check this machine, the store and the model"),
    "version": Command("loom.edges.cli.version", "say which versions run"),
}


def load(name: str) -> ModuleType:
    """Import a module when it is first needed.

    Everywhere else imports stand at the top of a file. Here they cannot: the
    commands' modules import pydantic, rich and the store, which would make
    `loom --help` and shell completion slow. This function is the one exception.
    """
    return importlib.import_module(name)


def main(argv: Sequence[str], compose: str) -> int:
    """Run one command.

    Args:
        argv: the arguments after `loom`.
        compose: the module that builds the whole server. It stands above this
            one, so it comes as a name and not as an import.

    Returns:
        The exit code: 0, 1 failed, 2 misused, 130 interrupted, 141 output closed.
    """
    try:
        exit_code = _run(argv, lambda: load(compose))
        sys.stdout.flush()
    except (LoomError, Problem) as error:
        print(f"loom: {printable(error.message)}", file=sys.stderr)
        return error.exit_code if isinstance(error, Problem) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes standard output once more when it exits, which would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else MISUSED
    return exit_code


def _run(argv: Sequence[str], compose: Callable[[], ModuleType]) -> int:
    if not argv or argv[0] not in COMMANDS:
        top_parser().parse_args(argv or ["--help"])
        return MISUSED
    parser, module = command_parser(argv[0])
    return int(module.run(parser.parse_args(argv[1:]), compose))


def command_parser(name: str) -> tuple[argparse.ArgumentParser, ModuleType]:
    """A command's own parser, and its module."""
    command = COMMANDS[name]
    module = load(command.module)
    description = command.summary[0].upper() + command.summary[1:] + "."
    parser = argparse.ArgumentParser(prog=f"loom {name}", description=description)
    module.add(parser)
    return parser, module


def top_parser() -> argparse.ArgumentParser:
    """The parser behind `loom --help`; it also refuses a command that does not exist."""
    parser = argparse.ArgumentParser(prog="loom", description="One shared memory for AI agents, over HTTP and MCP.")
    parser.add_argument("--version", action="version", version=f"loom {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.summary)
    return parser
