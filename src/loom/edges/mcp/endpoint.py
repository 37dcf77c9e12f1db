"""`/mcp`: the protocol over HTTP, for clients with sessions and without, and no state on our side."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic_core import from_json
from starlette.types import Message, Receive, Scope, Send

from loom.edges.http.calls import Authenticate
from loom.edges.http.lifecycle import Lifecycle
from loom.edges.http.messages import (
    BODY_LENGTH_MAX,
    LABEL_KEY,
    authorization_of,
    body_of,
    check_media,
    header_of,
    replayed,
    send_json,
)
from loom.edges.mcp.identity import agent_of, minted_session
from loom.edges.mcp.server import CALLER_KEY, error_result
from loom.edges.workers import Workers
from loom.errors import InvalidText, MethodNotAllowed

HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escape that may be one; nearly every body has none, and is not looked at again."""


class McpEndpoint:
    """An ASGI app for one path; its `running()` must be entered while requests are served, once.

    Host and Origin are not checked here but in the guard before every path.

    Args:
        server: what `mcp_server` made.
        authenticate: from the Authorization header to a Caller.
        workers: the threads that authentication runs in.
        lifecycle: refuses calls while starting and stopping.
        body_length_max: bytes.
    """

    def __init__(
        self,
        server: Server[dict[str, Any]],
        authenticate: Authenticate,
        workers: Workers,
        lifecycle: Lifecycle,
        body_length_max: int = BODY_LENGTH_MAX,
    ) -> None:
        self._authenticate = authenticate
        self._workers = workers
        self._lifecycle = lifecycle
        self._body_length_max = body_length_max
        self._manager = StreamableHTTPSessionManager(
            server,
            stateless=True,
            json_response=True,
            max_request_body_size=body_length_max,
            # The guard has checked them, with the same settings for every path and one shape of refusal.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run what serves requests; entered by the host's lifespan."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        There is no stream to open (GET) and no session to end (DELETE).
        """
        scope[LABEL_KEY] = "mcp"
        if scope["method"] != "POST":
            raise MethodNotAllowed("the MCP endpoint answers to POST", allow="POST")
        self._lifecycle.check()
        authorization = authorization_of(scope)
        scope[CALLER_KEY] = await self._workers.run(lambda: self._authenticate(authorization))
        check_media(scope)
        body = await body_of(scope, receive, self._body_length_max)
        refusal = _refused_text(scope, body)
        if refusal is not None:
            await send_json(send, 200, refusal)
            return
        session = _session_to_mint(scope, body)

        async def marked(message: Message) -> None:
            if session is not None and message["type"] == "http.response.start" and message["status"] == 200:  # noqa: PLR2004  # the status is the name
                message["headers"] = [*message["headers"], (b"mcp-session-id", session.encode())]
            await send(message)

        await self._manager.asgi_app(scope, replayed(body, receive), marked)


def _has_sessions(scope: Scope) -> bool:
    version = header_of(scope, b"mcp-protocol-version")
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS


def _refused_text(scope: Scope, body: bytes) -> bytes | None:
    """The answer to a tool call whose text holds half of a surrogate pair, for clients with sessions.

    Their transport in the library calls such a body no JSON and answers
    without the call's id, which leaves a client waiting. Sessionless calls
    reach the dispatcher, which says the same.
    """
    if not _has_sessions(scope) or not HALF_PAIR.search(body):
        return None
    try:
        message: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    call_id = _part(message, "id")
    if _part(message, "method") != "tools/call" or not isinstance(call_id, (str, int)):
        return None
    try:
        from_json(body)
    except ValueError:
        error = InvalidText("an argument holds half of a surrogate pair, which is not valid Unicode")
        result = error_result(error.body()["detail"]).model_dump(mode="json", by_alias=True, exclude_none=True)
        result.pop("resultType", None)
        return json.dumps({"jsonrpc": "2.0", "id": call_id, "result": result}).encode()
    return None


def _session_to_mint(scope: Scope, body: bytes) -> str | None:
    """The session id to give a client that begins with `initialize`; None for every other request."""
    if not _has_sessions(scope):
        return None
    if header_of(scope, b"mcp-session-id") is not None or b'"initialize"' not in body:
        return None
    try:
        message: object = from_json(body)
    except ValueError:
        return None
    if _part(message, "method") != "initialize":
        return None
    name = _part(_part(_part(message, "params"), "clientInfo"), "name")
    return minted_session(agent_of(name) if isinstance(name, str) else None)


def _part(value: object, key: str) -> object:
    return cast("dict[str, object]", value).get(key) if isinstance(value, dict) else None
