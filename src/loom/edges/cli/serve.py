"""`loom serve`: the server, in the foreground."""

import argparse
import errno
import os
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

from loom.access.caller import LOCAL, Transport
from loom.config import Settings, is_loopback
from loom.edges.cli.launch import local_url
from loom.edges.cli.problem import Problem
from loom.edges.cli.shell import App, LoadCompose, build, load_settings, place_of
from loom.edges.http import log_to_stderr, serve
from loom.edges.process import settle

PORT_MAX = 65_535
PORT_DIGITS_MAX = 5

WELCOME = """\
Loom listens on {url}
  store   {store}
  MCP     {url}/mcp
  process {process_id}
  try     curl {url}/v1/memory.set -H 'content-type: application/json' \\
            -d '{{"memory_key": "team/tea", "value": "We drink green tea at four."}}'
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=port_number, help="port to listen on (7777); 0 lets the system choose")
    parser.add_argument("--home", type=Path, help="the home folder (LOOM_HOME)")
    parser.add_argument(
        "--try-postgres", action="store_true", help="keep the store in a PostgreSQL that Loom starts in the home folder"
    )
    parser.add_argument("--toolset", choices=("default", "all"), help="the MCP tools to list (default)")


def port_number(text: str) -> int:
    """A TCP port; argparse shows the error with the flag's name."""
    if (
        not text.isascii()
        or not text.isdigit()
        or int(text[:PORT_DIGITS_MAX]) > PORT_MAX
        or len(text) > PORT_DIGITS_MAX
    ):
        raise argparse.ArgumentTypeError(f"wants a port, 0 to {PORT_MAX}")
    return int(text)


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Serve until interrupted."""
    settings = load_settings(
        home=args.home, host=args.host, port=args.port, mcp_toolset=args.toolset, try_postgres=args.try_postgres or None
    )
    listener = bound(settings.host, settings.port)
    with listener:
        app = build(compose, settings)
        try:
            if not is_loopback(settings.host) and not has_tokens(app):
                raise Problem(
                    f"{settings.host} is reachable from other machines, and there is no token yet; "
                    "mint one with `loom token mint`, or listen on 127.0.0.1"
                )
            _serve(app, settings, listener)
        finally:
            app.close()
    return 0


def bound(host: str, port: int) -> socket.socket:
    """A socket bound to the address, so that a taken port is known before anything is built."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror:
        raise Problem(f"{host!r} is not an address of this machine") from None
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Problem(f"port {port} on {host} is taken; stop what listens there, or choose with --port") from None
        raise Problem(f"cannot listen on {host} port {port}: {error.strerror}") from None
    return listener


def has_tokens(app: App) -> bool:
    """Whether a token that is still good exists."""
    answer = app.dispatcher.call("token.list", LOCAL, Transport(), {})
    return bool(answer["tokens"])


def shown_url(listener: socket.socket) -> str:
    """The address as a person can open it."""
    host, port = listener.getsockname()[:2]
    return local_url(host, port)


def _serve(app: App, settings: Settings, listener: socket.socket) -> None:
    # uvicorn stops on a signal and then sends it on, which must not kill us before the store is closed.
    signal.signal(signal.SIGTERM, _stop)
    log_to_stderr(settings.log_level.upper())
    settle()
    app.start()
    welcome = WELCOME.format(url=shown_url(listener), store=place_of(settings), process_id=os.getpid())
    serve(
        app.asgi,
        lifecycle=app.lifecycle,
        listener=listener,
        drain_timeout_s=settings.shutdown_timeout_s,
        on_up=lambda: print(welcome, end="", file=sys.stderr, flush=True),
    )


def _stop(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    raise SystemExit(0)
