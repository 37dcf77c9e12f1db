"""Invented transcripts with every kind of line, item and block, and broken ones between them."""

from collections.abc import Sequence
from typing import Any

S1 = "11111111-aaaa-4bbb-8ccc-000000000001"


def event(uuid: str, kind: str, content: object, **more: object) -> dict[str, Any]:
    """A line of Claude Code's that holds a message."""
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": None,
        "sessionId": S1,
        "timestamp": "2026-01-05T09:00:00.000Z",
        "cwd": "somewhere",
        "isSidechain": False,
        "message": {"role": kind, "content": content, "model": "m"},
        **more,
    }


CLAUDE: Sequence[object] = [
    {"type": "summary", "summary": "Counting okapis", "leafUuid": "u5"},
    {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
    event("u1", "user", "How many okapis live in the zoo?"),
    event("u2", "assistant", [{"type": "thinking", "thinking": "A ledger might say.", "signature": "xyz"}]),
    event("u3", "assistant", [{"type": "text", "text": "I look it up."}]),
    event("u4", "assistant", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file": "ledger.txt"}}]),
    event("u5", "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "okapi: 2"}], toolUseResult={"x": 1}),
    "{broken",
    "\xff\xfe",
    "[1, 2]",
    "",
    event("u6", "user", [{"type": "image", "source": {"type": "base64", "data": "A" * 5000}}]),
    event("u7", "user", "<command-name>/clear</command-name>"),
    event("u8", "user", "Caveat", isMeta=True),
    {"type": "system", "uuid": "u9", "sessionId": S1, "content": "Compacted", "timestamp": "2026-01-05T09:01:00Z"},
    {"type": "system", "uuid": "u10", "sessionId": S1, "subtype": "turn_duration"},
    event(
        "u11", "assistant", [{"type": "text", "text": "Half \ud83d done, nul \u0000."}, {"type": "novelty", "x": [1]}]
    ),
    event("u12", "user", "Find the zebra", isSidechain=True, agentId="a1"),
    event("u13", "user", None),
    event("empty", "assistant", []),
    event("blank", "user", " "),
    event("u14", "user", "And the quagga?", timestamp="yesterday"),
]


def node(key: str, parent: str | None, role: str, content: object, **more: object) -> tuple[str, dict[str, Any]]:
    message = {
        "id": key,
        "author": {"role": role},
        "content": content,
        "create_time": 1.7e9,
        "recipient": "all",
        **more,
    }
    return key, {"id": key, "parent": parent, "children": [], "message": message}


def text(*parts: object) -> dict[str, Any]:
    return {"content_type": "text", "parts": list(parts)}


CHATGPT: list[dict[str, Any]] = [
    {
        "id": "c1",
        "conversation_id": "c1",
        "title": "Teas of the world",
        "create_time": 1.7e9,
        "current_node": "n12",
        "mapping": dict(
            [
                ("root", {"id": "root", "parent": None, "children": ["n0"], "message": None}),
                node("n0", "root", "system", text(""), metadata={"is_visually_hidden_from_conversation": True}),
                node("n1", "n0", "user", {"content_type": "user_editable_context", "user_profile": "likes oolong"}),
                node("n2", "n1", "user", text("Which tea is smoked?")),
                node("old", "n2", "assistant", text("Earl Grey.")),
                node(
                    "n3",
                    "n2",
                    "assistant",
                    {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "pine"}]},
                ),
                node("n4", "n3", "assistant", {"content_type": "code", "language": "python", "text": "print(1)"}),
                node("n5", "n4", "tool", {"content_type": "execution_output", "text": "1"}),
                node("n6", "n5", "assistant", text("search query"), recipient="web"),
                node(
                    "n7", "n6", "tool", {"content_type": "tether_browsing_display", "result": "smoke", "summary": None}
                ),
                node("n8", "n7", "tool", {"content_type": "tether_quote", "url": "u", "text": "lapsang"}),
                node("n9", "n8", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 3s"}),
                node("n10", "n9", "assistant", text("Lapsang souchong.", "It is smoked over pine.")),
                node(
                    "n11",
                    "n10",
                    "user",
                    {
                        "content_type": "multimodal_text",
                        "parts": [
                            {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x", "width": 3},
                            {"content_type": "audio_transcription", "text": "And this cup?"},
                            "See the picture.",
                        ],
                    },
                ),
                node("n12", "n11", "assistant", {"content_type": "unheard_of", "gizmo": "g"}, create_time=None),
            ]
        ),
    },
    {"id": "c2", "title": None, "mapping": dict([node("m1", None, "user", text("No current node"))])},
    {"id": "c3", "title": "no messages"},
]


def rollout(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2026-02-01T08:00:00.000Z", "type": kind, "payload": payload}


def item(kind: str, **fields: object) -> dict[str, Any]:
    return rollout("response_item", {"type": kind, **fields})


CODEX: Sequence[object] = [
    rollout("session_meta", {"id": "codex-1", "cwd": "x", "cli_version": "1"}),
    rollout("session_meta", {"id": "forked-from"}),
    rollout("turn_context", {"model": "m"}),
    item("message", role="developer", content=[{"type": "input_text", "text": "Be short."}]),
    item(
        "message", role="user", content=[{"type": "input_text", "text": "<environment_context>x</environment_context>"}]
    ),
    item("message", role="user", content=[{"type": "input_text", "text": "List the files"}, {"type": "input_image"}]),
    rollout("event_msg", {"type": "user_message", "message": "List the files"}),
    item("reasoning", summary=[{"type": "summary_text", "text": "Use ls."}], encrypted_content="zzz"),
    item("reasoning", summary=[], encrypted_content="zzz"),
    item("function_call", name="shell", call_id="k1", arguments='{"command": ["ls"]}'),
    item("function_call_output", call_id="k1", output='{"output": "a.txt", "metadata": {"exit_code": 0}}'),
    item("custom_tool_call", name="apply_patch", call_id="k2", input="*** Begin Patch"),
    item("custom_tool_call_output", call_id="k2", output="Done"),
    item("local_shell_call", call_id="k3", action={"type": "exec", "command": ["pwd"]}),
    item("web_search_call", action={"type": "search", "query": "ls"}),
    item("ghost_snapshot", ghost_commit={}),
    item("unheard_of", x=1),
    "{",
    item("message", role="assistant", content=[{"type": "output_text", "text": "There is a.txt."}]),
    rollout("compacted", {"message": "They listed files."}),
]
