"""Models that fastembed runs, with a runner in its place: the library and its models come from outside."""

from collections.abc import Iterable
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray

from loom.models.hashing import HashingEmbedder
from loom.models.interface import EmbedderFailed
from loom.models.library import INSTALLED, LibraryModel, family_of, prefixes_of
from loom.models.sources import SourceUnusable

PATIENCE_S = 60.0
HOLD_TIMEOUT_S = 60.0
INNER = HashingEmbedder(16)


class Runner:
    """What fastembed's model would be; vectors are not of unit length, as some models' are not."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.hold: Event | None = None

    def embed(self, documents: list[str], batch_size: int) -> Iterable[NDArray[np.float32]]:
        self.batches.append(batch_size)
        if documents == ["bulk"] and self.hold is not None:
            self.hold.wait(HOLD_TIMEOUT_S)
        if documents == ["my secret"]:
            raise KeyError(documents[0])
        for vector in INNER.embed_passages(documents, 1.0):
            yield 3 * vector


def model_of(runner: Runner, folder: Path) -> LibraryModel:
    def load(model: str, its: Path) -> Runner:
        assert (model, its) == ("some/model", folder)
        return runner

    return LibraryModel("some/model", folder, load)


def test_texts_run_alone_and_become_unit_vectors(tmp_path: Path) -> None:
    runner = Runner()
    model = model_of(runner, tmp_path)
    model.warm()
    vectors = model.vectors(["green tea", "\ud800 x", ""], PATIENCE_S, urgent=False)
    expected = INNER.embed_passages(["green tea", "? x", ""], 1.0)
    assert all(np.allclose(one, other, atol=1e-6) for one, other in zip(vectors, expected, strict=True))
    assert runner.batches == [1, 1, 1]
    model.close()
    with pytest.raises(EmbedderFailed, match="closed"):
        model.vectors(["x"], PATIENCE_S, urgent=True)


def test_a_question_does_not_wait_behind_a_bulk_and_a_late_answer_is_a_failure(tmp_path: Path) -> None:
    runner = Runner()
    runner.hold = Event()
    model = model_of(runner, tmp_path)
    with pytest.raises(EmbedderFailed, match="in time"):
        model.vectors(["bulk", "bulk", "bulk"], 0.1, urgent=False)
    assert len(model.vectors(["a question"], HOLD_TIMEOUT_S / 2, urgent=True)) == 1
    runner.hold.set()
    model.close()


def test_a_failure_does_not_hold_the_text(tmp_path: Path) -> None:
    model = model_of(Runner(), tmp_path)
    with pytest.raises(EmbedderFailed, match="KeyError") as failure:
        model.vectors(["my secret"], PATIENCE_S, urgent=True)
    assert "secret" not in str(failure.value)
    model.close()


def test_a_model_that_cannot_be_loaded_is_tried_again(tmp_path: Path) -> None:
    tries: list[str] = []

    def load(model: str, folder: Path) -> Runner:
        del folder
        tries.append(model)
        if len(tries) == 1:
            raise ValueError("no such model")
        return Runner()

    model = LibraryModel("some/model", tmp_path, load)
    with pytest.raises(EmbedderFailed, match="knows no model some/model"):
        model.vectors(["x"], PATIENCE_S, urgent=True)
    assert len(model.vectors(["x"], PATIENCE_S, urgent=True)) == 1
    model.close()


def test_models_of_the_e5_family_have_their_prefixes() -> None:
    assert prefixes_of("intfloat/multilingual-e5-large") == ("query: ", "passage: ")
    assert prefixes_of("BAAI/bge-small-en-v1.5") == ("", "")
    family = family_of("intfloat/multilingual-e5-large", "", "text: ", 0)
    assert (family.query_prefix, family.passage_prefix, family.source) == ("query: ", "text: ", "fastembed")


@pytest.mark.skipif(INSTALLED, reason="fastembed is installed here")
def test_without_the_library_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(SourceUnusable, match=r"pip install '\.\[fastembed\]'"):
        LibraryModel("some/model", tmp_path)
