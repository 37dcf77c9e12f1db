"""The MCP endpoint over HTTP, in both eras of the protocol, one raw request at a time."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from edge_kit import Kit
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from loom.ops.spec import Kind

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
ERAS = ("legacy", "modern")
VERSION = "2026-07-28"


def ask(
    http: TestClient,
    era: str,
    method: str,
    params: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    path: str = "/mcp",
) -> Any:
    sent: dict[str, Any] = dict(params)
    lines = {**ACCEPT, **(headers or {})}
    if era == "modern":
        given: dict[str, Any] = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "Cursor-vscode", "version": "1"},
        }
        sent["_meta"] = given | sent.get("_meta", {})
        lines |= {"mcp-protocol-version": VERSION, "mcp-method": method}
        if "name" in sent:
            lines["mcp-name"] = sent["name"]
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": sent})
    answer = http.post(path, content=body, headers=lines)
    assert answer.status_code in {200, 400}, answer.text
    message = answer.json()
    assert message["id"] == 7
    return message


def call(http: TestClient, era: str, tool: str, arguments: Mapping[str, Any], **more: Any) -> Any:
    meta = more.pop("meta", None)
    params: dict[str, Any] = {"name": tool, "arguments": dict(arguments)} | ({"_meta": meta} if meta else {})
    return ask(http, era, "tools/call", params, **more)["result"]


def who(result: Any) -> Any:
    return result["structuredContent"]["who"]


def begin(http: TestClient, client_name: str) -> str:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": client_name, "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    answer = http.post("/mcp", json=body, headers=ACCEPT)
    assert answer.json()["result"]["instructions"].startswith("Loom is a memory")
    return answer.headers["mcp-session-id"]


@pytest.mark.parametrize("era", ERAS)
def test_an_answer_is_structured_and_the_same_as_text(http: TestClient, era: str) -> None:
    result = call(http, era, "loom_note_set", {"key": "a", "value": "b", "zebra": 1})
    assert result.get("isError", False) is False
    assert result["structuredContent"]["ignored_args"] == ["zebra"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result["structuredContent"]["version"] == 2**53 + 7


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("loom_note_get", {"key": "none"}, "NOT_FOUND"),
        ("loom_note_get", {}, "VALIDATION"),
        ("loom_note_get", {"key": "\ud800"}, "INVALID_TEXT"),
        ("loom_note_get", {"\udfff": 1}, "INVALID_TEXT"),
        ("loom_note_get", {"key": float("nan")}, "INVALID_TEXT"),
        ("loom_note_set", {"key": "a", "value": "b", "if_match_sha256": "1"}, "SHA_MISMATCH"),
        ("loom_note_trap", {"key": "break"}, "INTERNAL"),
        ("loom_op", {"op": "note.fly"}, "UNKNOWN_OP"),
        ("loom_op", {}, "VALIDATION"),
        ("loom_op", {"op": "note.get", "args": "key"}, "VALIDATION"),
    ],
)
def test_an_error_is_a_result_with_one_text_and_no_structure(
    http: TestClient, era: str, tool: str, arguments: Mapping[str, Any], code: str
) -> None:
    result = call(http, era, tool, arguments)
    assert result["isError"] is True
    assert "structuredContent" not in result
    (block,) = result["content"]
    detail = json.loads(block["text"])
    assert detail["code"] == code
    assert {"code", "message", "category", "retryable"} <= set(detail)
    assert "4711" not in block["text"]


@pytest.mark.parametrize("era", ERAS)
def test_an_unknown_tool_is_an_invalid_parameter(http: TestClient, era: str) -> None:
    message = ask(http, era, "tools/call", {"name": "loom_note_fly", "arguments": {}})
    assert message["error"]["code"] == -32602


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_is_callable_though_no_toolset_lists_it(http: TestClient, era: str) -> None:
    assert call(http, era, "loom_note_clear", {})["structuredContent"] == {"count": 0}


def names(http: TestClient, era: str = "modern", **more: Any) -> list[str]:
    return [tool["name"] for tool in ask(http, era, "tools/list", {}, **more)["result"]["tools"]]


@pytest.mark.parametrize("era", ERAS)
def test_the_toolset_is_chosen_by_the_address_or_a_header(http: TestClient, era: str) -> None:
    short = ["loom_note_get", "loom_note_set", "loom_op"]
    every = ["loom_note_clear", "loom_note_get", "loom_note_set", "loom_op"]
    assert names(http, era) == short
    assert names(http, era, path="/mcp?toolset=default") == short
    assert names(http, era, path="/mcp?toolset=all") == every
    assert names(http, era, headers={"x-loom-toolset": "all"}) == every
    assert ask(http, era, "tools/list", {}, path="/mcp?toolset=most")["error"]["code"] == -32602


def test_a_caller_sees_the_tools_of_its_role(guarded: TestClient) -> None:
    def listed(role: str) -> list[str]:
        return names(guarded, path="/mcp?toolset=all", headers={"authorization": f"Bearer {role}"})

    assert listed("viewer") == ["loom_note_get", "loom_op"]
    assert listed("writer") == ["loom_note_get", "loom_note_set", "loom_op"]
    assert listed("admin") == ["loom_note_clear", "loom_note_get", "loom_note_set", "loom_op"]
    denied = call(guarded, "modern", "loom_note_set", {}, headers={"authorization": "Bearer viewer"})
    assert json.loads(denied["content"][0]["text"])["code"] == "DENIED"


def test_a_listed_tool_is_described_from_its_operation(http: TestClient, kit: Kit) -> None:
    result = ask(http, "modern", "tools/list", {}, path="/mcp?toolset=all")["result"]
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "private"
    tools = {tool["name"]: tool for tool in result["tools"]}
    for op in kit.registry:
        if not op.toolsets:
            continue
        tool = tools["loom_" + op.name.replace(".", "_")]
        hints = tool["annotations"]
        assert hints["readOnlyHint"] is (op.kind is Kind.READ)
        assert hints["idempotentHint"] is (op.kind is not Kind.WRITE)
        assert hints["destructiveHint"] is op.destructive
        assert hints["openWorldHint"] is False
        assert tool["title"]
        assert op.summary in tool["description"]
        assert tool["_meta"]["loom/op"] == op.name
        Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["outputSchema"]["type"] == "object"
        assert not {"org", "agent", "user_id", "session_id"} & set(tool["inputSchema"]["properties"])


def test_loom_op_reaches_every_operation_and_explains_them(http: TestClient, guarded: TestClient) -> None:
    result = call(http, "modern", "loom_op", {"op": "note.set", "args": {"key": "a", "value": "b", "x": 1}, "y": 2})
    assert result["structuredContent"]["ignored_args"] == ["x", "y"]
    answer = call(http, "modern", "loom_op", {"op": "help", "z": 1})["structuredContent"]
    assert answer["ignored_args"] == ["z"]
    listed = answer["ops"]
    assert [op["name"] for op in listed] == ["note.clear", "note.get", "note.set", "note.trap"]
    assert listed[2]["required"] == ["key", "value"]
    one = call(http, "modern", "loom_op", {"op": "help", "args": {"op": "note.set"}})["structuredContent"]
    assert one["input_schema"]["properties"]["value"]["type"] == "string"
    viewer = {"authorization": "Bearer viewer"}
    few = call(guarded, "modern", "loom_op", {"op": "help"}, headers=viewer)["structuredContent"]["ops"]
    assert [op["name"] for op in few] == ["note.get", "note.trap"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"op": "note.set", "key": "a", "value": "b"}, "args: put key, value inside args"),
        ({"op": "note.set", "args": '{"key": "a"}'}, "args: should be an object"),
        ({"op": "loom_note_set", "args": {"key": "a"}}, "value: is required"),
    ],
)
def test_loom_op_tells_where_fields_belong(http: TestClient, arguments: Mapping[str, Any], said: str) -> None:
    result = call(http, "modern", "loom_op", arguments)
    assert result["isError"]
    assert json.loads(result["content"][0]["text"])["message"].startswith(said)


@pytest.mark.parametrize(
    ("client", "agent"),
    [
        ("claude-code", "claude-code"),
        ("codex-mcp-client", "codex"),
        ("cursor-vscode", "cursor"),
        ("Visual Studio Code", "visual-studio-code"),
        ("ünïcode/1", "ünïcode-1"),
        ("codexical", "codexical"),
    ],
)
def test_a_session_keeps_the_clients_name_without_any_state(http: TestClient, client: str, agent: str) -> None:
    session = begin(http, client)
    assert session.isascii()
    result = call(http, "legacy", "loom_note_set", {"key": "a", "value": "b"}, headers={"mcp-session-id": session})
    assert who(result)["agent"] == agent


@pytest.mark.parametrize(
    ("client", "keeps_one"),
    [("claude-code", True), ("codex-mcp-client", True), ("cursor-vscode", True), ("mcp", False), ("my-client", False)],
)
def test_the_protocols_session_is_the_conversation_where_the_client_keeps_one(
    http: TestClient, client: str, keeps_one: bool
) -> None:
    session = begin(http, client)
    note = {"key": "a", "value": "b"}
    headers = {"mcp-session-id": session}
    result = call(http, "legacy", "loom_note_set", note, headers=headers)
    assert who(result)["session_id"] == (session if keeps_one else "-")
    named = call(http, "legacy", "loom_note_set", note, headers=headers | {"x-loom-session": "told"})
    assert who(named)["session_id"] == "told"


def test_two_clients_of_one_name_get_two_sessions(http: TestClient) -> None:
    assert begin(http, "codex") != begin(http, "codex")


@pytest.mark.parametrize("made_up", ["0123abcd", ".", "Zm9v!.x", "_w.x", "Rm9v.x", "x" * 2000 + ".y"])
def test_a_session_id_of_another_make_is_served_and_names_nobody(http: TestClient, made_up: str) -> None:
    result = call(http, "legacy", "loom_note_set", {"key": "a", "value": "b"}, headers={"mcp-session-id": made_up})
    assert who(result)["agent"] == "-"


def test_the_agent_is_the_header_then_the_clients_name_then_a_known_user_agent(http: TestClient) -> None:
    note = {"key": "a", "value": "b"}
    assert who(call(http, "modern", "loom_note_set", note))["agent"] == "cursor"
    assert who(call(http, "modern", "loom_note_set", note, headers={"x-loom-agent": "Mine"}))["agent"] == "Mine"
    assert (
        who(call(http, "legacy", "loom_note_set", note, headers={"user-agent": "claude-code/2.1"}))["agent"]
        == "claude-code"
    )
    assert who(call(http, "legacy", "loom_note_set", note, headers={"user-agent": "node"}))["agent"] == "-"


@pytest.mark.parametrize(
    ("meta", "session"),
    [
        ({"loom/session_id": "a", "sessionId": "b", "threadId": "c"}, "a"),
        ({"sessionId": "b", "threadId": "c"}, "b"),
        ({"threadId": "c"}, "c"),
        ({"x-codex-turn-metadata": {"session_id": "d"}}, "d"),
        ({"loom/session_id": "", "sessionId": 3}, "from-header"),
        ({}, "from-header"),
    ],
)
@pytest.mark.parametrize("era", ERAS)
def test_the_conversation_is_the_calls_own_then_the_headers(
    http: TestClient, era: str, meta: Mapping[str, Any], session: str
) -> None:
    headers = {"x-loom-session": "from-header"}
    result = call(http, era, "loom_note_set", {"key": "a", "value": "b"}, meta=dict(meta), headers=headers)
    assert who(result)["session_id"] == session


@pytest.mark.parametrize("era", ERAS)
def test_a_write_under_a_key_happens_once(http: TestClient, era: str) -> None:
    meta = {"loom/idempotency_key": "k"}
    first = call(http, era, "loom_note_set", {"key": "a", "value": "b"}, meta=meta)
    assert call(http, era, "loom_note_set", {"key": "a", "value": "b"}, meta=meta) == first
    other = call(http, era, "loom_note_set", {"key": "a", "value": "c"}, meta=meta)
    assert json.loads(other["content"][0]["text"])["code"] == "KEY_REUSED"


def test_calls_are_logged_by_operation(http: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "loom.http")
    call(http, "modern", "loom_note_get", {"key": "a"})
    call(http, "modern", "loom_op", {"op": "secret"})
    assert [getattr(r, "op", None) for r in caplog.records if r.name == "loom.http"] == ["mcp note.get", "mcp unknown"]


def test_a_body_that_is_not_json_is_the_protocols_parse_error(http: TestClient) -> None:
    for body in (b"{", b'{"a":' * 9000 + b"1" + b"}" * 9000):
        answer = http.post("/mcp", content=body, headers=ACCEPT)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == -32700
