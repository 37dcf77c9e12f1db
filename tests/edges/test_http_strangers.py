"""What a caller can have the server keep before it has shown who it is."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from edge_kit import Kit, token_only

from loom.edges.http.calls import STRANGER_BODY_LENGTH_MAX

TOO_LONG = str(STRANGER_BODY_LENGTH_MAX + 1).encode()


@pytest.mark.parametrize("path", ["/v1/note.set", "/mcp"])
@pytest.mark.parametrize("length", [[(b"content-length", TOO_LONG)], [(b"transfer-encoding", b"chunked")]])
def test_a_long_body_is_not_read_from_a_stranger(kit: Kit, path: str, length: list[tuple[bytes, bytes]]) -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        raise AssertionError("the body is read")

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), *length],
    }
    asyncio.run(kit.app(token_only)(scope, receive, send))
    assert sent[0]["status"] == 401
