"""What tests of memory.set_from_messages share."""

from typing import Any

from fakes import ORG, Core
from writer_kit import Reply, says

ASKED: dict[str, Any] = {
    "session": "monday",
    "messages": [
        {"id": "m1", "role": "user", "time": "2026-02-10T09:00:00Z", "content": "I moved to Berlin yesterday."},
        {"id": "m2", "role": "assistant", "time": "2026-02-10T09:01:00Z", "content": "Noted."},
    ],
}


def claim(key: str, text: str, *turns: str, valid_at: str | None = None, kind: str = "semantic") -> dict[str, Any]:
    return {"key": key, "claim": text, "type": kind, "valid_at": valid_at, "turns": list(turns) or ["t1"]}


def claims(*said: dict[str, Any]) -> Reply:
    return says({"claims": list(said)})


BERLIN = claim("user/home", "The user lives in Berlin.", valid_at="2026-02-09")


def set_from(core: Core, **changes: Any) -> dict[str, Any]:
    return core.call("memory.set_from_messages", **ASKED | changes)


def actions(answer: dict[str, Any]) -> dict[str, str]:
    return {one["memory_key"]: one["action"] for one in answer["items"]}


def waiting_rows(core: Core) -> int:
    with core.database.transaction(ORG, write=False) as tx:
        return len(tx.rows("SELECT extraction_id FROM memory_extraction WHERE org = :org"))
