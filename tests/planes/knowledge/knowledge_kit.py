"""Helpers of the knowledge plane's tests."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from fakes import ORG, Core
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import LoomError
from loom.planes import knowledge
from loom.planes.knowledge.uploads import PART_BYTES_MAX

GUIDE = """# Guide

How the office works.

## Kitchen

The kettle is in the second cupboard.

## Door

The code is 4711.
"""

COUNTS = {
    "document": "SELECT count(*) AS count FROM knowledge_document WHERE org = :org",
    "revision": "SELECT count(*) AS count FROM knowledge_revision WHERE org = :org",
    "text": "SELECT count(*) AS count FROM knowledge_text WHERE org = :org",
    "chunk": "SELECT count(*) AS count FROM knowledge_chunk WHERE org = :org",
    "upload": "SELECT count(*) AS count FROM knowledge_upload WHERE org = :org",
}


def of_user(user_id: str) -> Caller:
    """A token of one user, which reads no other user's rows."""
    return Caller(f"user-{user_id}", Role.WRITER, {"org": ORG, "user_id": user_id}, read_scope=ReadScope.OWN_USER)


def of_session(user_id: str, session_id: str) -> Caller:
    """A token of one conversation."""
    pins = {"org": ORG, "user_id": user_id, "session_id": session_id}
    return Caller(f"session-{session_id}", Role.WRITER, pins, read_scope=ReadScope.OWN_SESSION)


def refused(error: type[LoomError], call: Callable[..., object], *args: Any, **named: Any) -> LoomError:
    """The error that a call ends with, which must be exactly of this kind."""
    with pytest.raises(error) as caught:
        call(*args, **named)
    assert type(caught.value) is error
    return caught.value


def in_base64(content: bytes) -> str:
    """Bytes as requests carry them."""
    return base64.b64encode(content).decode("ascii")


def add(core: Core, text: str = GUIDE, **args: Any) -> dict[str, Any]:
    """Add a text."""
    return core.call("knowledge.add", text=text, **args)


def add_file(core: Core, content: bytes, **args: Any) -> dict[str, Any]:
    """Add a file, in parts when it is large."""
    if len(content) <= PART_BYTES_MAX:
        return core.call("knowledge.add", content_base64=in_base64(content), **args)
    upload_id = ""
    for part, start in enumerate(range(0, len(content), PART_BYTES_MAX)):
        piece = in_base64(content[start : start + PART_BYTES_MAX])
        answer = core.call("knowledge.upload", upload_id=upload_id, part=part, content_base64=piece)
        upload_id = answer["upload_id"]
    return core.call("knowledge.add", upload_id=upload_id, **args)


def found(core: Core, query: str, **args: Any) -> list[dict[str, Any]]:
    """The passages that a search finds."""
    return core.call("knowledge.search", query=query, **args)["results"]


def uris(core: Core, query: str, **args: Any) -> set[str]:
    """The uris of the documents that a search finds."""
    return {hit["uri"] for hit in found(core, query, **args)}


def read_all(core: Core, **args: Any) -> str:
    """A document's whole text, read on and on."""
    written, line, character, last = "", 1, 0, 1
    for _ in range(10_000):
        got = core.call(
            "knowledge.get", **args, first_line=line, first_character=character, line_count=5000, characters_max=200_000
        )
        written += "\n" * (got["first_line"] - last) + got["text"]
        line, character, last = got["next_line"], got["next_character"], got["last_line"]
        if not line:
            return written
    raise AssertionError("the document has no end")


def sweep(core: Core) -> None:
    """Run the plane's upkeep once."""
    for one in knowledge.SWEEPS:
        one(core.bench, ORG)


def row_counts(core: Core) -> dict[str, int]:
    """How many rows each table of the plane has."""
    with core.database.transaction(ORG, write=False) as tx:
        return {table: int(str((tx.row(sql) or {})["count"])) for table, sql in COUNTS.items()}
