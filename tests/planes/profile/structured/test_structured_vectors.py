"""Builds by rules use the vectors that the store has, and make those that it has not."""

from collections.abc import Sequence
from typing import Any

import pytest
from structured_kit import LATE, OPS, USER, settle, structured

from fakes import Core, CoreOf
from loom.ledger import derived, embedding, indexing
from loom.models.hashing import HashingEmbedder
from loom.planes import profile
from loom.planes.profile.structured.building import BUILD
from loom.planes.profile.structured.rules_builder import RulesBuilder
from loom.storage.indexes import Shelf, Vector

FACTS = 1_000
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tea": {"enum": ["green", "black"], "description": "Tea the user drinks."},
        "boats": {"type": "integer", "description": "Number of boats the user owns."},
    },
}


class Counting(HashingEmbedder):
    """Keeps the texts it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        self.texts.extend(texts)
        return super().embed_passages(texts, timeout_s)


@pytest.fixture
def embedder() -> Counting:
    """The builder's own; the writes of facts have another one of the same space."""
    return Counting()


@pytest.fixture
def core(core_of: CoreOf, embedder: Counting) -> Core:
    core = core_of(OPS, {**embedding.JOBS, **profile.jobs(RulesBuilder(embedder))}, LATE)
    core.embedder.off.clear()
    return core


def remember(core: Core, count: int) -> None:
    facts = [{"memory_key": f"note/{number}", "value": f"Note {number}: the sky was blue."} for number in range(count)]
    for start in range(0, count, 50):
        core.call("memory.set_many", user_id=USER, items=facts[start : start + 50])
    core.call("memory.set", user_id=USER, memory_key="tea", value="Drinks green tea.")


@pytest.mark.slow
def test_a_build_over_a_thousand_facts_embeds_nothing_but_the_texts_of_properties(
    core: Core, embedder: Counting
) -> None:
    remember(core, FACTS)
    core.call("profile.schema_set", json_schema=SCHEMA)
    settle(core)
    assert structured(core)["status"] == "ready"
    assert structured(core)["profile"] == {"tea": "green", "boats": None}
    assert sorted(embedder.texts) == sorted(["tea", "boats", "Tea the user drinks.", "Number of boats the user owns."])
    embedder.texts.clear()
    core.call("memory.set", user_id=USER, memory_key="boats", value="Owns four boats.")
    settle(core)
    assert structured(core)["profile"] == {"tea": "green", "boats": 4}
    assert embedder.texts == []
    wider = {**SCHEMA, "properties": {**SCHEMA["properties"], "hat": {"type": "string", "description": "Hat worn."}}}
    core.call("profile.schema_set", json_schema=wider)
    settle(core)
    assert structured(core)["status"] == "ready"
    assert sorted(embedder.texts) == ["Hat worn.", "hat"]


def test_a_fact_whose_vector_is_not_there_yet_is_embedded_once(core: Core, embedder: Counting) -> None:
    core.call("profile.schema_set", json_schema=SCHEMA)
    core.embedder.off.set()
    core.call("memory.set", user_id=USER, memory_key="tea", value="Drinks green tea.", tags=["drink"])
    core.clock.step(seconds=2)
    handler = core.jobs[BUILD]
    subject = derived.subject_of("local", USER)
    handler(core.bench, "dev", [subject])
    assert structured(core)["profile"]["tea"] == "green"
    assert "tea\ndrink\nDrinks green tea." in embedder.texts
    embedder.texts.clear()
    core.call("profile.rebuild", user_id=USER)
    handler(core.bench, "dev", [subject])
    assert embedder.texts == []


def test_the_vectors_of_another_space_are_not_used(core: Core, embedder: Counting) -> None:
    core.call("profile.schema_set", json_schema=SCHEMA)
    item = core.call("memory.set", user_id=USER, memory_key="tea", value="Drinks green tea.")
    number = int(item["memory_id"].removeprefix("mem_"), 16)
    with core.database.transaction("dev", write=True) as tx:
        shelf = Shelf(indexing.MEMORY_SHELF, "local")
        tx.vectors.remove(shelf, number)
        tx.vectors.put(shelf, number, "elsewhere", HashingEmbedder().embed_passages(["x"], 1.0))
    core.clock.step(seconds=2)
    core.jobs[BUILD](core.bench, "dev", [derived.subject_of("local", USER)])
    assert "tea\nDrinks green tea." in embedder.texts
    assert structured(core)["profile"]["tea"] == "green"
