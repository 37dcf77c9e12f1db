"""The outermost layer of every HTTP request: id, host, last errors, log line."""

import logging
import time

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loom.edges.http.hosts import Hosts
from loom.edges.http.messages import LABEL_KEY, headers_of, request_id_of, send_error
from loom.edges.last import guarded
from loom.errors import BadRequest, Internal, LoomError, MethodNotAllowed, NotFound, Unavailable

logger = logging.getLogger("loom.http")

CLIENT_LEFT = 499
"""The status logged, never sent, when the client closed the connection first."""


class Guard:
    """Checks Host and Origin on every path, gives every answer an id, and turns every error into its answer.

    The log line of a request names the operation, never what was sent or answered.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and answer it whatever happens below."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        start_s = time.perf_counter()
        request_id = request_id_of(scope)
        status = 0

        async def numbered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        async def served() -> None:
            self._hosts.check(headers_of(scope, b"host"), headers_of(scope, b"origin"))
            await self._app(scope, receive, numbered)

        try:
            await guarded(served, request_id)
        except LoomError as error:
            if not status:
                await send_error(numbered, error)
        except ClientDisconnect:
            status = status or CLIENT_LEFT
        except anyio.get_cancelled_exc_class():
            # The time to drain is over. The call's thread goes on until the process ends.
            if not status:
                with anyio.CancelScope(shield=True):
                    await send_error(numbered, Unavailable("the server stopped first; look whether the call was done"))
            raise
        _log(scope, request_id, status, time.perf_counter() - start_s)


def _log(scope: Scope, request_id: str, status: int, duration_s: float) -> None:
    label = scope.get(LABEL_KEY)
    level = logging.INFO if label is not None else logging.DEBUG
    if logger.isEnabledFor(level):
        extra = {
            "request_id": request_id,
            "op": label or "-",
            "status": status,
            "duration_ms": round(duration_s * 1000, 3),
        }
        logger.log(level, "request", extra=extra)


def routing_error(error: HTTPException) -> LoomError:
    """What the router refuses, in our own words."""
    if error.status_code == 404:  # noqa: PLR2004  # the status is the name
        return NotFound("nothing is at this path; operations are at POST /v1/<op>, and described at /docs")
    if error.status_code == 405:  # noqa: PLR2004  # the same
        allow = (error.headers or {}).get("Allow", "POST")
        return MethodNotAllowed(f"this path answers to {allow}", allow=allow)
    if error.status_code < 500:  # noqa: PLR2004  # the same
        return BadRequest("the request cannot be read")
    return Internal("the server failed")
