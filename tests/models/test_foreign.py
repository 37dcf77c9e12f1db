"""Models that Loom does not know beforehand: measured once, and known again each time."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from loom.models.facts import CANARIES, QUESTIONS, UNRELATED, Facts, facts_in, measured
from loom.models.foreign import CHECKED_AGAIN_S, TRIED_AGAIN_S, Family, ForeignEmbedder, Memory, opened
from loom.models.hashing import HashingEmbedder
from loom.models.interface import Embedder, EmbedderFailed, Space, checked
from loom.models.onnx import OnnxEmbedder
from loom.models.sources import installed
from loom.storage.indexes import Vector

PATIENCE_S = 60.0
FAMILY = Family("openai", "scripted", query_prefix="ask: ", passage_prefix="keep: ")


class Scripted:
    """A model that a test can change, and that tells what it was given."""

    def __init__(self, dimension: int = 24) -> None:
        self.inner = HashingEmbedder(dimension)
        self.calls: list[tuple[list[str], bool]] = []
        self.failing = False
        self.closed = False

    def warm(self) -> None:
        pass

    def vectors(self, texts: Sequence[str], timeout_s: float, *, urgent: bool) -> list[Vector]:
        self.calls.append((list(texts), urgent))
        if self.failing:
            raise EmbedderFailed("the endpoint answers HTTP 503")
        return self.inner.embed_passages(texts, timeout_s)

    def probe(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        return self.vectors(texts, timeout_s, urgent=True)

    def close(self) -> None:
        self.closed = True


@dataclass
class Shelfful:
    """Facts in memory."""

    kept: list[tuple[Space, Facts]] = field(default_factory=list[tuple[Space, Facts]])

    def memory(self) -> Memory:
        return Memory(self.find, self.keep)

    def find(self, family: Family) -> tuple[Space, Facts] | None:
        return next((one for one in self.kept if family.covers(one[0])), None)

    def keep(self, space: Space, facts: Facts) -> None:
        self.kept.append((space, facts))


class Moment:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_new_model_is_asked_once_and_known_from_then_on() -> None:
    shelf, model = Shelfful(), Scripted()
    first = opened(model, FAMILY, shelf.memory())
    assert [len(texts) for texts, _ in model.calls] == [len(UNRELATED) + len(QUESTIONS)]
    assert [text[:5] for text in model.calls[0][0]] == ["keep:"] * len(UNRELATED) + ["ask: "] * len(QUESTIONS)
    assert (first.space.dimension, first.space.source, first.space.model) == (24, "openai", "scripted")
    assert first.random_cosine == shelf.kept[0][1].random_cosine
    quiet = Scripted()
    quiet.failing = True
    second = opened(quiet, FAMILY, shelf.memory())
    assert quiet.calls == []
    assert (second.space, second.random_cosine) == (first.space, first.random_cosine)


def test_it_is_an_embedder_whose_prefixes_stand_before_the_texts() -> None:
    model = Scripted()
    embedder: Embedder = opened(model, FAMILY, Shelfful().memory())
    model.calls.clear()
    query = embedder.embed_query("where", PATIENCE_S)
    passages = embedder.embed_passages(["here", "there"], PATIENCE_S)
    assert embedder.embed_passages([], PATIENCE_S) == []
    assert checked(query, 24) is query
    assert len(passages) == 2
    # The first call was preceded by the check that the model is the one that was measured.
    assert [(len(texts), urgent) for texts, urgent in model.calls] == [(CANARIES, True), (1, True), (2, False)]
    assert model.calls[1][0] == ["ask: where"]
    assert model.calls[2][0] == ["keep: here", "keep: there"]
    embedder.close()
    assert model.closed


def test_a_model_that_does_not_answer_when_it_must_is_a_failure() -> None:
    model = Scripted()
    model.failing = True
    with pytest.raises(EmbedderFailed, match="503"):
        opened(model, FAMILY, Shelfful().memory())


def test_a_dimension_that_was_set_and_is_not_given_is_told() -> None:
    family = Family("openai", "scripted", dimension=32)
    shelf = Shelfful()
    with pytest.raises(EmbedderFailed, match=r"24 numbers, and LOOM_EMBEDDER_DIMENSION says 32"):
        opened(Scripted(), family, shelf.memory())
    assert shelf.kept == []
    assert opened(Scripted(32), family, shelf.memory()).space.dimension == 32


def known(model: Scripted, moment: Moment) -> ForeignEmbedder:
    space = FAMILY.space(24)
    inner = HashingEmbedder(24)
    facts = measured(inner.embed_passages([f"keep: {text}" for text in UNRELATED], 1.0), [inner.embed_query("q", 1.0)])
    return ForeignEmbedder(model, space, facts, clock_s=moment)


def test_a_model_that_was_changed_behind_its_name_is_noticed_and_tried_again_later() -> None:
    moment, model = Moment(), Scripted()
    embedder = known(model, moment)
    model.inner = Turned()
    for _ in range(3):
        with pytest.raises(EmbedderFailed, match="another model answers under its name now") as failure:
            embedder.embed_query("my secret", PATIENCE_S)
        assert "secret" not in str(failure.value)
    assert len(model.calls) == 1
    model.inner = HashingEmbedder(24)
    moment.now_s += TRIED_AGAIN_S
    assert embedder.embed_query("x", PATIENCE_S).shape == (24,)


class Turned(HashingEmbedder):
    """Another model of the same dimension."""

    def __init__(self) -> None:
        super().__init__(24)

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        return [np.roll(vector, 1) for vector in super().embed_passages(texts, timeout_s)]


def test_it_is_looked_at_again_from_time_to_time() -> None:
    moment, model = Moment(), Scripted()
    embedder = known(model, moment)
    embedder.embed_query("x", PATIENCE_S)
    embedder.embed_query("y", PATIENCE_S)
    assert len(model.calls) == 3
    moment.now_s += CHECKED_AGAIN_S
    model.inner = Turned()
    with pytest.raises(EmbedderFailed, match="another model"):
        embedder.embed_query("z", PATIENCE_S)


def test_a_failure_to_look_is_that_calls_failure_alone() -> None:
    model = Scripted()
    embedder = known(model, Moment())
    model.failing = True
    with pytest.raises(EmbedderFailed, match="503"):
        embedder.embed_query("x", PATIENCE_S)
    model.failing = False
    assert embedder.embed_query("x", PATIENCE_S).shape == (24,)


def test_a_vector_of_another_length_is_never_given_out() -> None:
    model = Scripted()
    embedder = known(model, Moment())
    embedder.embed_query("x", PATIENCE_S)
    model.inner = HashingEmbedder(25)
    with pytest.raises(EmbedderFailed, match="shape"):
        embedder.embed_query("x", PATIENCE_S)


def test_a_space_is_named_by_model_prefixes_and_dimension() -> None:
    spaces = {
        FAMILY.space(24).fingerprint,
        FAMILY.space(25).fingerprint,
        Family("openai", "other", "ask: ", "keep: ").space(24).fingerprint,
        Family("openai", "scripted", "", "keep: ").space(24).fingerprint,
        Family("fastembed", "scripted", "ask: ", "keep: ").space(24).fingerprint,
    }
    assert len(spaces) == 5
    assert FAMILY.covers(FAMILY.space(7))
    assert not FAMILY.covers(installed().space)


def test_facts_are_told_and_read_again() -> None:
    facts = Facts(0.123, 0.1, {"a ü": "AAAA"})
    assert facts_in(facts.told()) == facts
    assert facts_in("") is None


def test_what_is_measured_of_the_built_in_model_is_near_what_is_known_of_it() -> None:
    embedder = OnnxEmbedder(installed())
    questions = [embedder.embed_query(question, PATIENCE_S) for question in QUESTIONS]
    facts = measured(embedder.embed_passages(UNRELATED, PATIENCE_S), questions)
    embedder.close()
    assert facts.question_cosine < facts.random_cosine
    assert facts.random_cosine == pytest.approx(embedder.random_cosine, abs=0.08)
    assert len(facts.canaries) == CANARIES
