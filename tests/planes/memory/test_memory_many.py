from concurrent.futures import ThreadPoolExecutor
from typing import Any

from memory_kit import found, refused

from fakes import Core
from loom.errors import Rejected


def test_each_item_has_its_own_answer(core: Core) -> None:
    seen = core.call("memory.set", memory_key="there", value="same")
    core.call("memory.set", memory_key="locked", value="v")
    core.call("memory.lock", memory_key="locked")
    items: list[Any] = [
        {"memory_key": "one", "value": "walrus", "tags": ["t"]},
        {"memory_key": "", "value": 1},
        {"value": 1},
        "no object",
        {"memory_key": "no value"},
        {"memory_key": "there", "value": "same", "confidence": None},
        {"memory_key": "there", "value": "x", "if_match_sha256": "0" * 64},
        {"memory_key": "locked", "value": "w"},
        {"memory_key": "long", "value": "x" * 300_000},
        {"memory_key": "late", "value": 1, "valid_at": "2026-01-01"},
        {"memory_key": "null", "value": None, "colour": "x"},
        {"memory_key": "one", "value": "again"},
    ]
    answer = core.call("memory.set_many", items=items)
    codes = [one["error"] and one["error"]["code"] for one in answer["items"]]
    assert codes == [
        None,
        "VALIDATION",
        "VALIDATION",
        "VALIDATION",
        "VALIDATION",
        None,
        "SHA_MISMATCH",
        "LOCKED",
        "TOO_LONG",
        "VALIDATION",
        None,
        None,
    ]
    fields = [one["error"]["extras"].get("field") for one in answer["items"] if one["error"]]
    assert fields == ["memory_key", "memory_key", "item", "value", "if_match_sha256", None, "value", "valid_at"]
    assert answer["items"][6]["error"]["extras"]["current_sha256"] == seen["content_sha256"]
    assert (answer["written"], answer["unchanged"], answer["refused"]) == (3, 1, 8)
    assert [one["index"] for one in answer["items"]] == list(range(12))
    assert answer["items"][5]["version"] == seen["version"]
    assert (answer["items"][11]["created"], answer["items"][11]["changed"]) == (False, True)
    assert core.call("memory.get", memory_key="one")["value"] == "again"
    assert core.call("memory.get", memory_key="null")["found"]


def test_all_are_found_by_meaning_at_once(core: Core) -> None:
    items = [{"memory_key": f"k{number}", "value": f"walrus {number}"} for number in range(50)]
    answer = core.call("memory.set_many", items=items)
    assert answer["written"] == 50
    assert core.drain() == 0
    assert found(core, "walrus 7", top_k=1) == ["k7"]
    texts = core.embedder.texts
    assert core.call("memory.set_many", items=items)["unchanged"] == 50
    assert core.embedder.texts == texts


def test_a_failing_embedder_is_told(core: Core) -> None:
    core.embedder.off.set()
    items = [{"memory_key": "k", "value": "walrus"}]
    assert core.call("memory.set_many", items=items)["degraded"] == ["embedder"]
    assert "degraded" not in core.call("memory.set_many", items=items)
    core.embedder.off.clear()
    assert core.drain() == 1
    assert core.call("memory.search", query="walrus")["results"][0]["similarity"] is not None


def test_bounds(core: Core) -> None:
    wrong: list[Any] = [[], [{}] * 1001, "x", {"a": 1}, None]
    for bad in wrong:
        assert refused(Rejected, core.call, "memory.set_many", items=bad).extras["field"] == "items"
    one = [{"memory_key": "k", "value": 1}]
    assert refused(Rejected, core.call, "memory.set_many", items=one, agent="*").extras["field"] == "agent"
    full = [{"memory_key": f"k{number}", "value": number} for number in range(1000)]
    assert core.call("memory.set_many", items=full)["written"] == 1000


def test_two_calls_at_once_in_opposite_order_both_land(core: Core) -> None:
    items = [{"memory_key": f"k{number}", "value": number} for number in range(20)]

    def send(turn: int) -> int:
        mine = [{**one, "value": turn} for one in (items if turn % 2 else items[::-1])]
        return core.call("memory.set_many", items=mine)["written"]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(send, range(8))) == [20] * 8
    values = {core.call("memory.get", memory_key=f"k{number}")["value"] for number in range(20)}
    assert len(values) == 1
