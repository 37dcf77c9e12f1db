"""The cross-encoder that comes with the package."""

import time
from dataclasses import replace

import pytest

from loom.models.reranker import OnnxReranker, installed_reranker
from loom.models.sources import SourceUnusable

QUESTION = "Which database does the project use?"
TEXTS = ["The project stores its data in Postgres.", "Ana likes green tea.", "Lunch is at noon."]
LOAD_TIMEOUT_S = 60.0


def loaded() -> OnnxReranker:
    reranker = OnnxReranker(installed_reranker())
    reranker.warm()
    assert reranker._loading is not None
    reranker._loading.result(LOAD_TIMEOUT_S)
    return reranker


@pytest.mark.slow
def test_what_answers_is_above_what_does_not_and_scores_do_not_depend_on_company() -> None:
    reranker = loaded()
    scores = reranker.scores(QUESTION, TEXTS, 30.0)
    assert scores[0] > max(scores[1:])
    assert reranker.scores(QUESTION, TEXTS[::-1], 30.0) == pytest.approx(scores[::-1])
    reranker.close()
    assert reranker.scores(QUESTION, TEXTS, 1.0) == []


@pytest.mark.slow
def test_it_gives_what_it_has_when_the_time_is_over() -> None:
    reranker = loaded()
    many = [f"{text} {number} " * 40 for number in range(16) for text in TEXTS]
    begun_s = time.process_time()
    scores = reranker.scores(QUESTION, many, 0.05)
    assert len(scores) < len(many)
    assert time.process_time() - begun_s < 5.0
    assert reranker.scores(QUESTION, TEXTS, 30.0)
    reranker.close()


def test_files_that_are_not_the_known_ones_are_refused() -> None:
    source = installed_reranker()
    source.verify()
    with pytest.raises(SourceUnusable):
        replace(source, weights_sha256="0" * 64).verify()
    with pytest.raises(SourceUnusable):
        installed_reranker("none-such")


def test_a_reranker_that_cannot_load_gives_no_scores() -> None:
    reranker = OnnxReranker(replace(installed_reranker(), weights_sha256="0" * 64))
    reranker.warm()
    assert reranker.scores(QUESTION, TEXTS, 0.2) == []
    reranker.close()
