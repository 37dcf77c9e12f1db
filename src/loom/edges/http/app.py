"""The HTTP app, put together from values."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from loom.edges.http.calls import Authenticate, Call, Calls
from loom.edges.http.guard import Guard, routing_error
from loom.edges.http.hosts import Hosts
from loom.edges.http.lifecycle import Lifecycle
from loom.edges.http.messages import BODY_LENGTH_MAX, error_headers, json_of
from loom.edges.http.metrics import Metrics
from loom.edges.http.page import page_routes
from loom.edges.http.probes import Check, Probes
from loom.edges.openapi import document
from loom.edges.workers import Workers
from loom.ops.registry import Registry

NOT_FOUND = 404


class Service(Protocol):
    """An ASGI app with something to run beside it, such as the MCP endpoint."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        ...

    def running(self) -> AbstractAsyncContextManager[None]:
        """What must run while requests are served."""
        ...


@dataclass(frozen=True)
class Http:
    """What the HTTP app is made of.

    Attributes:
        registry: the operations.
        call: `Dispatcher.call`.
        authenticate: from the Authorization header to a Caller; raises Unauthenticated.
        version: the server's version.
        hosts: the Host and Origin headers that are served.
        metrics: whose `observe` the dispatcher got.
        checks: what `/readyz` asks, by name.
        mcp: the MCP endpoint at `/mcp`, or None.
        workers: the threads that operations run in; shared with `mcp`.
        lifecycle: shared with `serve`.
        body_length_max: bytes.
        pages: routes of the dashboard; without any, `/` leads to the API's description.
        missing: a page that says that there is none, for browsers; None to answer them as programs.
    """

    registry: Registry
    call: Call
    authenticate: Authenticate
    version: str
    hosts: Hosts = field(default_factory=Hosts)
    metrics: Metrics = field(default_factory=Metrics)
    checks: Mapping[str, Check] = field(default_factory=dict[str, Check])
    mcp: Service | None = None
    workers: Workers = field(default_factory=Workers)
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    body_length_max: int = BODY_LENGTH_MAX
    pages: Sequence[BaseRoute] = ()
    missing: Callable[[Request], Response] | None = None


def http_app(parts: Http) -> Starlette:
    """The whole HTTP face as one ASGI app. Its lifespan runs the MCP endpoint, once."""
    names = frozenset(op.name for op in parts.registry)
    calls = Calls(parts.call, parts.authenticate, names, parts.workers, parts.lifecycle, parts.body_length_max)
    probes = Probes(parts.checks, parts.metrics, parts.authenticate, parts.workers, parts.lifecycle)
    parts.metrics.gauge("calls_inside", "Calls that run or wait for a thread.", lambda: parts.workers.inside)
    described = json_of(document(parts.registry, parts.version))

    async def openapi(_: Request) -> Response:
        return Response(described, media_type="application/json")

    routes: list[BaseRoute] = [
        Route("/v1/{op}", calls),
        *([Route("/mcp", parts.mcp)] if parts.mcp is not None else []),
        Route("/healthz", probes.healthz),
        Route("/readyz", probes.readyz),
        Route("/metrics", probes.numbers),
        Route("/openapi.json", openapi),
        *page_routes(),
        *(parts.pages or [Route("/", _to_docs)]),
    ]

    async def routing_failed(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        if parts.missing is not None and error.status_code == NOT_FOUND and wants_page(request):
            return parts.missing(request)
        known = routing_error(error)
        return Response(json_of(known.body()), known.status, error_headers(known), "application/json")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        try:
            if parts.mcp is None:
                yield
            else:
                async with parts.mcp.running():
                    yield
        finally:
            parts.lifecycle.stopping()

    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=parts.hosts)],
        exception_handlers={HTTPException: routing_failed},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


async def _to_docs(_: Request) -> Response:
    return RedirectResponse("/docs")


def wants_page(request: Request) -> bool:
    """Whether a browser asks for a page to show."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")
