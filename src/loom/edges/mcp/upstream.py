"""One request at a time to a Loom server's `/mcp`, in the protocol's sessionless form."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit

import httpx
from mcp.shared.exceptions import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, INTERNAL_ERROR, PROTOCOL_VERSION_META_KEY
from mcp_types.version import LATEST_MODERN_VERSION

from loom.errors import Internal, InvalidText, LoomError, Unauthenticated, Unavailable

CALL_TIMEOUT_S = 300.0
CONNECT_TIMEOUT_S = 5.0
RESERVED_META = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where the server is, and what is said to it about the agent.

    Attributes:
        url: the server's MCP endpoint, for example `http://127.0.0.1:7777/mcp`.
        token: the Loom token, or None.
        agent: the agent's name when it is known beforehand; else the client's own name is used.
        session: the conversation the coding agent is in, or None.
        project: the code namespace of the folder the coding agent works in, or None.
    """

    url: str
    token: str | None = None
    agent: str | None = None
    session: str | None = None
    project: str | None = None

    def headers(self) -> dict[bytes, bytes]:
        """The headers of every request, as UTF-8."""
        pairs = {
            "authorization": f"Bearer {self.token}" if self.token else None,
            "x-loom-session": self.session,
            "x-loom-project": self.project,
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": LATEST_MODERN_VERSION,
        }
        return {name.encode(): value.encode() for name, value in pairs.items() if value}

    @property
    def shown(self) -> str:
        """The server's address without what could be a secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}:{parts.port}" if parts.port else f"{parts.scheme}://{parts.hostname}"


class Refused(Exception):
    """The server answered a request with one of Loom's errors instead of the protocol's.

    Attributes:
        detail: the error's `detail`.
    """

    def __init__(self, detail: Mapping[str, Any]) -> None:
        super().__init__(str(detail.get("message", "the server refused the request")))
        self.detail = detail


class Link:
    """An open connection to the server; keeps nothing that a restart of the server would lose."""

    def __init__(self, upstream: Upstream, version: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._upstream = upstream
        self._version = version
        self._http = httpx.AsyncClient(
            headers=upstream.headers(),
            timeout=httpx.Timeout(CALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            transport=transport,
            trust_env=False,
        )
        self._sent = 0

    async def __aenter__(self) -> Self:
        """Open the connection."""
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self._http.__aexit__(kind, error, trace)

    async def ask(self, method: str, params: Mapping[str, Any], agent: str | None = None) -> dict[str, Any]:
        """The result of one request.

        Args:
            method: the protocol's method.
            params: its parameters, the caller's `_meta` among them.
            agent: the agent's name, unless the upstream fixes it.

        Raises:
            MCPError: the server's own, passed on.
            Refused: the server answered with one of Loom's errors.
            LoomError: it cannot be reached, or its answer is not the protocol's.
        """
        self._sent += 1
        headers = {b"mcp-method": method.encode()}
        if isinstance(params.get("name"), str):
            headers[b"mcp-name"] = str(params["name"]).encode()
        named = self._upstream.agent or agent
        if named:
            headers[b"x-loom-agent"] = named.encode()
        body = {
            "jsonrpc": "2.0",
            "id": self._sent,
            "method": method,
            "params": {**params, "_meta": self._meta(params.get("_meta"))},
        }
        try:
            response = await self._http.post(self._upstream.url, json=body, headers=headers)
        except httpx.HTTPError as error:
            raise Unavailable(
                f"the Loom server at {self._upstream.shown} does not answer ({type(error).__name__}); "
                "start it with: loom serve",
                retry_after_s=2,
            ) from None
        except ValueError:
            raise InvalidText("an argument holds NaN, Infinity or half of a surrogate pair; none is JSON") from None
        return _result_of(response)

    def _meta(self, meta: object) -> dict[str, Any]:
        given = cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}
        kept = {key: value for key, value in given.items() if not key.startswith(RESERVED_META)}
        kept.pop("progressToken", None)
        return kept | {
            PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
            CLIENT_CAPABILITIES_META_KEY: {},
            CLIENT_INFO_META_KEY: {"name": "loom-bridge", "version": self._version},
        }


def _result_of(response: httpx.Response) -> dict[str, Any]:
    try:
        body: object = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise _not_loom(response)
    message = cast("dict[str, Any]", body)
    if isinstance(message.get("detail"), dict):
        raise Refused(message["detail"])
    error = message.get("error")
    if isinstance(error, dict):
        known = cast("dict[str, Any]", error)
        raise MCPError(int(known.get("code", INTERNAL_ERROR)), str(known.get("message", "")), known.get("data"))
    result = message.get("result")
    if not isinstance(result, dict):
        raise _not_loom(response)
    return cast("dict[str, Any]", result)


def _not_loom(response: httpx.Response) -> LoomError:
    if response.status_code == Unauthenticated.status:
        return Unauthenticated("the server wants a token; set LOOM_TOKEN")
    return Internal(f"what answers there (status {response.status_code}) is not a Loom server")
