"""Helpers of the conversation plane's tests."""

from typing import Any

from fakes import Core
from loom.storage.indexes import Shelf

BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "The quagga might be extinct.", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "AAAA"},
    {"type": "text", "text": "I look into the zoo's ledger."},
    {"type": "tool_use", "id": "toolu_1", "name": "Grep", "input": {"pattern": "okapi", "path": "zoo/ledger.txt"}},
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "pangolin diet"}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR" * 1000}},
    {"type": "document", "title": "Feeding plan", "source": {"type": "text", "data": "short"}},
    {"type": "something_new", "payload": {"note": "axolotl"}},
]
"""Every kind of block an assistant sends, and one that nobody knows."""

RESULTS: list[dict[str, Any]] = [
    {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "zoo/ledger.txt:3: okapi, two of them",
        "is_error": False,
    },
    {
        "type": "tool_result",
        "tool_use_id": "srv_1",
        "content": [{"type": "text", "text": "They eat ants."}, {"type": "image", "source": {"type": "url"}}],
    },
]


def say(*lines: str, role: str = "user") -> list[dict[str, Any]]:
    """Messages of one role, with ids m0, m1 and so on."""
    return [{"id": f"m{number}", "role": role, "content": line} for number, line in enumerate(lines)]


def talk(core: Core, session: str, *lines: str, **args: Any) -> dict[str, Any]:
    """Append lines to a conversation."""
    return core.call("conversation.append", session=session, messages=say(*lines), **args)


def texts(core: Core, session: str, **args: Any) -> list[str]:
    """What was said in a conversation, in order."""
    return [turn["text"] for turn in core.call("conversation.get", session=session, **args)["turns"]]


def found(core: Core, query: str, **args: Any) -> list[str]:
    """The texts of the turns that a search finds."""
    return [hit["text"] for hit in core.call("conversation.search", query=query, **args)["results"]]


def turn_ids(core: Core, session: str, **args: Any) -> list[str]:
    """The ids of a conversation's turns, in order."""
    return [turn["turn_id"] for turn in core.call("conversation.get", session=session, limit=200, **args)["turns"]]


def indexed(core: Core, namespace: str = "local") -> int:
    """How many entries both word indexes and the vector index have for a word that every test turn can hold."""
    space = core.embedder.space.fingerprint
    vector = core.embedder.embed_query("probe", 1)
    with core.database.transaction("dev", write=False) as tx:
        near = tx.vectors.best(Shelf("conversation", namespace), space, vector, 100_000)
        return len(near)
