"""`POST /v1/<op>`: bytes to an argument map, and the answer back to bytes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Scope, Send

from loom.access.caller import Caller, Transport
from loom.edges.http.lifecycle import Lifecycle
from loom.edges.http.messages import (
    LABEL_KEY,
    authorization_of,
    body_of,
    check_media,
    header_of,
    is_short,
    json_of,
    object_of,
    request_id_of,
    send_json,
)
from loom.edges.workers import Workers
from loom.errors import MethodNotAllowed

STRANGER_BODY_LENGTH_MAX = 64 * 1024
"""Bytes of a body that are kept before it is known who sends it; asking first costs each call a thread more."""

Authenticate = Callable[[str | None], Caller]
"""From the Authorization header to the caller; raises Unauthenticated. May read the store."""

Call = Callable[[str, Caller, Transport, Mapping[str, Any]], dict[str, Any]]
"""`Dispatcher.call`."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The one route of every operation.

    Attributes:
        call: runs an operation.
        authenticate: finds the caller.
        names: the operations that exist; others are logged as `unknown`.
        workers: the threads that operations run in.
        lifecycle: refuses calls while starting and stopping.
        body_length_max: bytes.
    """

    call: Call
    authenticate: Authenticate
    names: frozenset[str]
    workers: Workers
    lifecycle: Lifecycle
    body_length_max: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request on `/v1/{op}`."""
        name: str = scope["path_params"]["op"]
        scope[LABEL_KEY] = name if name in self.names else "unknown"
        if scope["method"] != "POST":
            raise MethodNotAllowed("operations answer to POST, with the arguments as a JSON object", allow="POST")
        self.lifecycle.check()
        check_media(scope)
        authorization = authorization_of(scope)
        if not is_short(scope, STRANGER_BODY_LENGTH_MAX):
            await self.workers.run(lambda: self.authenticate(authorization))
        body = await body_of(scope, receive, self.body_length_max)
        transport = transport_of(scope)

        def work() -> bytes:
            caller = self.authenticate(authorization)
            return json_of(self.call(name, caller, transport, object_of(body)))

        await send_json(send, 200, await self.workers.run(work))


def transport_of(scope: Scope) -> Transport:
    """What the headers say about the caller."""
    return Transport(
        agent=header_of(scope, b"x-loom-agent"),
        session_id=header_of(scope, b"x-loom-session"),
        project=header_of(scope, b"x-loom-project"),
        idempotency_key=header_of(scope, b"idempotency-key"),
        request_id=request_id_of(scope),
    )
