"""The MCP server: lists the tools of a toolset, and calls any operation by its tool name."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from starlette.requests import Request

from loom.access.caller import Caller, Role
from loom.edges.http.calls import Call
from loom.edges.http.messages import LABEL_KEY, header_of, json_of, request_id_of
from loom.edges.last import guarded
from loom.edges.mcp.identity import transport_of
from loom.edges.mcp.listing import ANY_TOOL, HELP, INSTRUCTIONS, help_for, tools_of, unknown
from loom.edges.workers import Workers
from loom.errors import LoomError, Rejected, Unauthenticated
from loom.ops import text_checks
from loom.ops.registry import Registry
from loom.ops.spec import Toolset

CALLER_KEY = "loom.caller"
LIST_FRESH_MS = 300_000
TOOLSETS = {toolset.value: toolset for toolset in Toolset}
READ_HEADERS = (
    "x-loom-agent",
    "x-loom-session",
    "x-loom-project",
    "idempotency-key",
    "mcp-session-id",
    "user-agent",
    "x-loom-toolset",
)

RequestContext = ServerRequestContext[dict[str, Any], Any]


@dataclass
class Tools:
    """The two requests that matter, tools/list and tools/call, over one registry.

    Attributes:
        registry: the operations.
        call: `Dispatcher.call`.
        workers: the threads that operations run in.
        toolset: what is listed when the client asks for no other.
        caller: who calls when there is no HTTP request around it; None refuses.
    """

    registry: Registry
    call: Call
    workers: Workers = field(default_factory=Workers)
    toolset: Toolset = Toolset.DEFAULT
    caller: Caller | None = None
    _listed: dict[tuple[Toolset, Role], list[Tool]] = field(default_factory=dict[tuple[Toolset, Role], list[Tool]])

    async def list_tools(self, ctx: RequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        """The tools of the toolset asked for that the caller's role may call."""
        del params  # one page holds them all
        asked = self._asked_toolset(ctx)
        toolset = TOOLSETS.get(asked, self.toolset) if asked is not None else self.toolset
        if asked is not None and asked not in TOOLSETS:
            raise MCPError(INVALID_PARAMS, f"toolset: should be one of {', '.join(sorted(TOOLSETS))}")
        role = self._caller(ctx).role
        key = (toolset, role)
        if key not in self._listed:
            self._listed[key] = tools_of(self.registry, toolset, role)
        return ListToolsResult(tools=self._listed[key])

    async def call_tool(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        """Run the operation behind a tool, listed or not; every failure of it is an error result."""
        if params.name != ANY_TOOL and self.registry.by_tool(params.name) is None:
            raise MCPError(INVALID_PARAMS, "Unknown tool; loom_op with op=help lists the operations")
        request = _http_request(ctx)
        request_id = request_id_of(request.scope) if request is not None else secrets.token_hex(8)

        async def answered() -> dict[str, Any]:
            return await self._answer(ctx, params, request_id)

        try:
            answer = await guarded(answered, request_id)
        except LoomError as error:
            return error_result(error.body()["detail"])
        return CallToolResult(
            content=[TextContent(type="text", text=json_of(answer).decode())], structured_content=answer
        )

    async def _answer(self, ctx: RequestContext, params: CallToolRequestParams, request_id: str) -> dict[str, Any]:
        caller = self._caller(ctx)
        request = _http_request(ctx)
        if request is not None:
            request.scope[LABEL_KEY] = "mcp unknown"
        name, args, ignored = self._target(params)
        if request is not None:
            request.scope[LABEL_KEY] = f"mcp {name}"
        if params.name == ANY_TOOL and name == HELP:
            answer = help_for(self.registry, caller.role, args)
        else:
            transport = transport_of(_headers(ctx), _meta(ctx), _client_name(ctx), request_id)
            answer = await self.workers.run(lambda: self.call(name, caller, transport, args))
        if ignored:
            return answer | {"ignored_args": sorted({*ignored, *answer.get("ignored_args", ())})}
        return answer

    def _target(self, params: CallToolRequestParams) -> tuple[str, Mapping[str, Any], list[str]]:
        """The operation's name, its arguments, and what `loom_op` was sent besides."""
        arguments = params.arguments or {}
        op = self.registry.by_tool(params.name)
        if op is not None:
            return op.name, arguments, []
        name, args = arguments.get("op"), arguments.get("args")
        if not isinstance(name, str) or not name:
            raise Rejected('op: name an operation; "help" lists them', field="op")
        if args is not None and not isinstance(args, dict):
            raise Rejected(
                'args: should be an object with the operation\'s fields, like {"memory_key": "team/tea"}, and no text',
                field="args",
            )
        op = self.registry.by_tool(name) or self.registry.by_name(name)
        if op is None and name != HELP:
            raise unknown(self.registry, name)
        name = op.name if op is not None else name
        ignored = [key for key in arguments if key not in ("op", "args")]
        text_checks.check(dict.fromkeys(ignored))  # these names come back in the answer, and reach no other check
        outside = sorted(field for field in ignored if op is not None and not args and field in op.takes.model_fields)
        if outside:
            raise Rejected(f"args: put {', '.join(outside)} inside args; beside op they are not read", field="args")
        return name, cast("dict[str, Any]", args or {}), ignored

    def _caller(self, ctx: RequestContext) -> Caller:
        request = _http_request(ctx)
        found = request.scope.get(CALLER_KEY) if request is not None else self.caller
        if not isinstance(found, Caller):
            raise Unauthenticated("send a valid token as Authorization: Bearer <token>")
        return found

    def _asked_toolset(self, ctx: RequestContext) -> str | None:
        request = _http_request(ctx)
        if request is None:
            return None
        return request.query_params.get("toolset") or header_of(request.scope, b"x-loom-toolset")


def mcp_server(tools: Tools, version: str) -> Server[dict[str, Any]]:
    """The protocol's server around `tools`; serves both eras."""
    return Server(
        "loom",
        version=version,
        title="Loom",
        instructions=INSTRUCTIONS,
        on_list_tools=tools.list_tools,
        on_call_tool=tools.call_tool,
        # Unset, each call would list the tools again to look for headers that mirror arguments. No tool has any.
        get_tool_input_schema=lambda _: None,
        cache_hints={
            "tools/list": CacheHint(ttl_ms=LIST_FRESH_MS, scope="private"),
            "server/discover": CacheHint(ttl_ms=LIST_FRESH_MS, scope="private"),
        },
    )


def error_result(detail: object) -> CallToolResult:
    """An error as a tool's result: text alone, since clients check structured content against the answer's schema."""
    return CallToolResult(content=[TextContent(type="text", text=json_of(detail).decode())], is_error=True)


def _http_request(ctx: RequestContext) -> Request[Any] | None:
    found: object = ctx.request
    return cast("Request[Any]", found) if isinstance(found, Request) else None


def _headers(ctx: RequestContext) -> dict[str, str | None]:
    request = _http_request(ctx)
    if request is None:
        return {}
    return {name: header_of(request.scope, name.encode()) for name in READ_HEADERS}


def _meta(ctx: RequestContext) -> Mapping[str, Any]:
    meta = (ctx.params or {}).get("_meta")
    return cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}


def _client_name(ctx: RequestContext) -> str | None:
    params = ctx.session.client_params
    return params.client_info.name if params is not None else None
