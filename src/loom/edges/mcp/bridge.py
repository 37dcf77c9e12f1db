"""`loom mcp`: the protocol on standard input and output, passed on to a running Loom server.

A coding agent starts it and tells it, through the environment, what no HTTP
client is told: the conversation and the project it works in.
"""

import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from loom.edges.mcp.identity import agent_of
from loom.edges.mcp.server import LIST_FRESH_MS, error_result
from loom.edges.mcp.upstream import RESERVED_META, Link, Refused, Upstream
from loom.errors import LoomError, Unavailable

START_TIMEOUT_S = 60.0
POLL_S = 0.2

Start = Callable[[], Awaitable[None]]
"""Starts a server, or does nothing when that is not wanted."""

RequestContext = ServerRequestContext[dict[str, Any], Any]


@dataclass(frozen=True, slots=True)
class Bridge:
    """Passes the two requests that matter on, errors, `_meta` and all."""

    link: Link

    async def list_tools(self, ctx: RequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        """The server's tools."""
        asked = {"cursor": params.cursor} if params is not None and params.cursor else {}
        try:
            result = await self.link.ask("tools/list", {**asked, "_meta": _meta(ctx)}, _agent(ctx))
        except (LoomError, Refused) as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from None
        return ListToolsResult.model_validate(_passed_on(result))

    async def call_tool(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        """The server's answer, or an error result that says why there is none."""
        asked = {"name": params.name, "arguments": params.arguments or {}, "_meta": _meta(ctx)}
        try:
            result = await self.link.ask("tools/call", asked, _agent(ctx))
        except Refused as error:
            return error_result(error.detail)
        except LoomError as error:
            return error_result(error.body()["detail"])
        return CallToolResult.model_validate(_passed_on(result))


async def run(upstream: Upstream, version: str, start: Start | None = None) -> int:
    """Serve standard input and output until the client closes them.

    Args:
        upstream: the server, and what to tell it.
        version: Loom's version.
        start: called once when no server answers; then the server has 60 s to come up.

    Returns:
        The process's exit code: 1 when the server cannot be reached or refuses the token, with the reason on
        standard error.
    """
    async with Link(upstream, version) as link:
        try:
            about = await _about(link, start)
        except (LoomError, Refused, MCPError) as error:
            sys.stderr.write(f"loom mcp: {error}\n")
            return 1
        server = bridge_server(link, version, about.get("instructions"))
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    return 0


def bridge_server(link: Link, version: str, instructions: object) -> Server[dict[str, Any]]:
    """The protocol's server on this side of the bridge."""
    bridge = Bridge(link)
    return Server(
        "loom",
        version=version,
        title="Loom",
        instructions=instructions if isinstance(instructions, str) else None,
        on_list_tools=bridge.list_tools,
        on_call_tool=bridge.call_tool,
        get_tool_input_schema=lambda _: None,
        cache_hints={"tools/list": CacheHint(ttl_ms=LIST_FRESH_MS, scope="private")},
    )


async def _about(link: Link, start: Start | None) -> dict[str, Any]:
    """What the server says of itself; starts it where there is a way, and waits for it."""
    try:
        return await link.ask("server/discover", {})
    except Unavailable:
        if start is None:
            raise
    await start()
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return await link.ask("server/discover", {})
        except (Unavailable, Refused) as error:
            starting = not isinstance(error, Refused) or error.detail.get("code") == Unavailable.code
            if not starting or time.monotonic() > deadline_s:
                raise
        await anyio.sleep(POLL_S)


def _meta(ctx: RequestContext) -> object:
    return (ctx.params or {}).get("_meta")


def _agent(ctx: RequestContext) -> str | None:
    params = ctx.session.client_params
    return agent_of(params.client_info.name) if params is not None else None


def _passed_on(result: dict[str, Any]) -> dict[str, Any]:
    """The result without what the protocol says about the connection it came over."""
    kept = {key: value for key, value in result.items() if key not in ("resultType", "_meta")}
    meta = result.get("_meta")
    if isinstance(meta, dict):
        given: dict[str, Any] = {key: value for key, value in meta.items() if not str(key).startswith(RESERVED_META)}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # any JSON
        if given:
            kept["_meta"] = given
    return kept
