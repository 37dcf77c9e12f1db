"""The library's own client against our server, and through the bridge."""

from typing import Any, Literal

import anyio
import httpx
import httpx2
import mcp_types as types
import pytest
from edge_kit import Kit, token_only
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from loom.access.caller import LOCAL
from loom.edges.mcp import Tools, mcp_server
from loom.edges.mcp.bridge import bridge_server, run
from loom.edges.mcp.upstream import Link, Upstream

HERE = "http://localhost:7777"
Mode = Literal["auto", "legacy"]
MODES: tuple[Mode, ...] = ("auto", "legacy")
CODEX = types.Implementation(name="codex-mcp-client", version="1")


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("mode", MODES)
def test_in_memory(kit: Kit, mode: Mode) -> None:
    async def talk() -> None:
        server = mcp_server(Tools(kit.registry, kit.dispatcher.call, caller=LOCAL), "1.2.3")
        async with Client(server, mode=mode, client_info=CODEX) as client:
            result = await client.call_tool("loom_note_set", {"key": "a", "value": "b"})
            assert result.structured_content is not None
            assert result.structured_content["who"]["agent"] == "codex"
            assert "NOT_FOUND" in text_of(await client.call_tool("loom_note_get", {"key": "none"}))

    anyio.run(talk)


def test_in_memory_without_a_caller_every_call_is_refused(kit: Kit) -> None:
    async def talk() -> None:
        async with Client(mcp_server(Tools(kit.registry, kit.dispatcher.call), "1")) as client:
            assert "UNAUTHENTICATED" in text_of(await client.call_tool("loom_note_get", {"key": "a"}))

    anyio.run(talk)


@pytest.mark.parametrize("mode", MODES)
def test_over_http(kit: Kit, mode: Mode) -> None:
    async def talk() -> None:
        app = kit.app()
        transport = httpx2.ASGITransport(app=app)
        async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=transport) as http:
            connection = streamable_http_client(f"{HERE}/mcp", http_client=http)
            async with Client(connection, mode=mode, client_info=CODEX) as client:
                assert [tool.name for tool in (await client.list_tools()).tools][-1] == "loom_op"
                result = await client.call_tool("loom_note_set", {"key": "a", "value": "b"})
                assert result.structured_content is not None
                assert result.structured_content["who"]["agent"] == "codex"
                with pytest.raises(MCPError):
                    await client.call_tool("nothing", {})

    anyio.run(talk)


async def through_bridge(kit: Kit, upstream: Upstream, mode: Mode, tool: str, arguments: dict[str, Any]) -> Any:
    app = kit.app(token_only)
    async with (
        app.router.lifespan_context(app),
        Link(upstream, "1.2.3", httpx.ASGITransport(app=app)) as link,
        Client(bridge_server(link, "1.2.3", "hello"), mode=mode, client_info=CODEX) as client,
    ):
        assert client.instructions == "hello"
        tools = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool(tool, arguments, meta={"loom/idempotency_key": "k"})
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("nothing", {})
        return tools, result


@pytest.mark.parametrize("mode", MODES)
def test_the_bridge_passes_calls_on_with_the_clients_name_and_session(kit: Kit, mode: Mode) -> None:
    upstream = Upstream(f"{HERE}/mcp?toolset=all", token="writer", session="talk-1", project="app")
    note = {"key": "a", "value": "b", "zebra": 1, "namespace": "team"}
    tools, result = anyio.run(through_bridge, kit, upstream, mode, "loom_note_set", note)
    assert tools == ["loom_note_get", "loom_note_set", "loom_op"]
    assert result.structured_content["who"] | {"user_id": "-", "run_id": "-"} == {
        "org": "acme",
        "namespace": "team",
        "agent": "codex",
        "user_id": "-",
        "session_id": "talk-1",
        "run_id": "-",
    }
    assert result.structured_content["ignored_args"] == ["zebra"]
    assert any(row.get("principal") == "writer" for row in kit.database.kept.values())


@pytest.mark.parametrize("mode", MODES)
def test_the_bridge_passes_errors_on(kit: Kit, mode: Mode) -> None:
    upstream = Upstream(f"{HERE}/mcp", token="viewer", agent="fixed")
    _, result = anyio.run(through_bridge, kit, upstream, mode, "loom_note_get", {"key": "none"})
    assert result.is_error is True
    assert "NOT_FOUND" in text_of(result)
    assert result.structured_content is None


def test_the_bridge_turns_what_is_not_json_into_an_error(kit: Kit) -> None:
    upstream = Upstream(f"{HERE}/mcp", token="viewer")
    _, result = anyio.run(through_bridge, kit, upstream, "auto", "loom_note_get", {"key": "\ud800"})
    assert "INVALID_TEXT" in text_of(result)


def test_the_bridge_says_so_when_the_token_is_wrong(kit: Kit) -> None:
    async def talk() -> None:
        app = kit.app(token_only)
        upstream = Upstream(f"{HERE}/mcp", token="wrong")
        async with (
            app.router.lifespan_context(app),
            Link(upstream, "1", httpx.ASGITransport(app=app)) as link,
            Client(bridge_server(link, "1", None), mode="legacy") as client,
        ):
            assert "UNAUTHENTICATED" in text_of(await client.call_tool("loom_note_get", {"key": "a"}))
            with pytest.raises(MCPError, match="token"):
                await client.list_tools()

    anyio.run(talk)


def test_the_bridge_says_so_when_no_server_answers(capsys: pytest.CaptureFixture[str]) -> None:
    # Port 1 is reserved and nothing listens there.
    assert anyio.run(run, Upstream("http://secret:word@127.0.0.1:1/mcp"), "1") == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "http://127.0.0.1:1 does not answer" in said.err
    assert "word" not in said.err
