"""What only a real embedding model can show."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from memory_kit import found, keys

from fakes import Core, CoreOf
from loom.ledger import embedding
from loom.models.onnx import OnnxEmbedder
from loom.models.sources import installed
from loom.planes import memory

pytestmark = pytest.mark.slow

FACTS = {
    "user/pet": "Maria adopted a small kitten from the shelter last spring.",
    "user/car": "Maria's automobile is at the garage because the brakes failed.",
    "project/db": "We store everything in PostgreSQL and back it up nightly.",
    "user/food": "She cannot eat peanuts; they make her seriously ill.",
    "team/lead": "Ana took over as head of engineering.",
    "user/home": "She lives in a flat near the harbour in Lisbon.",
}
QUESTIONS = {
    "what animal does she own?": "user/pet",
    "is her vehicle broken?": "user/car",
    "which database do we use?": "project/db",
    "does she have any allergies?": "user/food",
    "who is the manager of the developers?": "team/lead",
}


@pytest.fixture(scope="module")
def onnx() -> Iterator[OnnxEmbedder]:
    embedder = OnnxEmbedder(installed())
    yield embedder
    embedder.close()


@pytest.fixture
def core(core_of: CoreOf, onnx: OnnxEmbedder) -> Core:
    made = core_of(memory.OPS, embedding.JOBS)
    return replace(made, dispatcher=replace(made.dispatcher, embedder=onnx))


def test_a_question_finds_what_answers_it_without_its_words(core: Core) -> None:
    core.call("memory.set_many", items=[{"memory_key": key, "value": value} for key, value in FACTS.items()])
    firsts = {question: found(core, question, top_k=1)[0] for question in QUESTIONS}
    assert sum(firsts[question] == key for question, key in QUESTIONS.items()) >= 4, firsts
    core.call("memory.delete", memory_key="user/pet")
    core.call("memory.redact", memory_key="user/food")
    for question in QUESTIONS:
        answer = core.call("memory.search", query=question, top_k=4, explain=True)
        assert not {"user/pet", "user/food"} & set(keys(answer))
        assert len(answer["results"]) == 4


def test_near_duplicates_of_the_real_space(core: Core) -> None:
    core.call("memory.set", memory_key="user/drink", value="Maria drinks green tea every morning before work.")
    again = core.call(
        "memory.set", memory_key="user/habits/tea", value="Maria drinks green tea every morning before work"
    )
    assert again["duplicate_of"]["memory_key"] == "user/drink"
    for key, value in (
        ("user/coffee", "Maria drinks black coffee every evening after work."),
        ("user/never", "Maria never drinks tea."),
        ("other", "The build takes four minutes on the new machine."),
    ):
        assert "duplicate_of" not in core.call("memory.set", memory_key=key, value=value)
