"""Text that is not Unicode, wherever a sessionless call can hold some; the library lets it through to us."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

HALF = "\ud800"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": f"x{HALF}", "version": "1"},
}


def result_of(http: TestClient, tool: str, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, "_meta": META | meta}
    answer = http.post(
        "/mcp",
        content=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}),
        headers={
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": tool,
        },
    )
    return answer.json()["result"]


@pytest.mark.parametrize("key", ["loom/session_id", "sessionId", "threadId"])
def test_a_conversation_that_is_no_text_is_no_conversation(http: TestClient, key: str) -> None:
    result = result_of(http, "loom_note_set", {"key": "a", "value": "b"}, {key: f"s{HALF}"})
    assert result["structuredContent"]["who"]["session_id"] == "-"


@pytest.mark.parametrize(
    ("tool", "arguments", "meta"),
    [
        ("loom_note_set", {"key": "a", "value": "b"}, {"loom/idempotency_key": HALF}),
        ("loom_note_set", {"key": "a", "value": "b", HALF: 1}, {}),
        ("loom_op", {"op": "note.get", "args": {"key": "a"}, HALF: 1}, {}),
        ("loom_op", {"op": "help", HALF: 1}, {}),
        ("loom_op", {"op": HALF}, {}),
        ("loom_op", {"op": "help", "args": {"op": HALF}}, {}),
    ],
)
def test_half_a_pair_is_refused_in_words(
    http: TestClient, tool: str, arguments: dict[str, Any], meta: dict[str, Any]
) -> None:
    result = result_of(http, tool, arguments, meta)
    assert result["isError"] is True
    assert json.loads(result["content"][0]["text"])["category"] in {"request", "not_found"}
