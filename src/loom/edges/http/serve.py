"""Runs the app under uvicorn until a signal, and lets running calls end."""

import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from loom.edges.http.lifecycle import Lifecycle
from loom.edges.http.protocol import BoundedProtocol

DRAIN_TIMEOUT_S = 10
BACKLOG = 512
KEEP_ALIVE_S = 30


class _Server(uvicorn.Server):
    """Uvicorn's server, which tells the lifecycle when it is up and when it was asked to stop."""

    def __init__(self, config: uvicorn.Config, lifecycle: Lifecycle, on_up: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._lifecycle = lifecycle
        self._on_up = on_up

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came: refuse new calls first, then stop."""
        self._lifecycle.stopping()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets=sockets)
        if self._on_up is not None and self.started:
            self._on_up()


def serve(
    app: ASGIApp,
    *,
    lifecycle: Lifecycle,
    listener: socket.socket,
    drain_timeout_s: int = DRAIN_TIMEOUT_S,
    on_up: Callable[[], None] | None = None,
) -> None:
    """Serve `app` until SIGINT or SIGTERM.

    Args:
        app: what `http_app` made.
        lifecycle: the one the app was made with.
        listener: a socket bound to the address to listen on.
        drain_timeout_s: how long running calls may take to end after the signal.
        on_up: called once the port is open.
    """
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        loop="auto",  # uvloop where it is installed
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=drain_timeout_s,
    )
    _Server(config, lifecycle, on_up).run(sockets=[listener])
