"""Questions whose vectors are remembered."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fakes import FailingEmbedder
from loom.models.caching import CachingEmbedder
from loom.models.interface import Embedder, EmbedderFailed


def cached(queries_max: int = 3) -> tuple[CachingEmbedder, FailingEmbedder]:
    inner = FailingEmbedder(off=False)
    return CachingEmbedder(inner, queries_max), inner


def test_a_question_is_embedded_once() -> None:
    embedder, inner = cached()
    first = embedder.embed_query("green tea", 1.0)
    assert embedder.embed_query("green tea", 1.0) is first
    assert inner.texts == 1
    assert np.array_equal(first, inner.embed_query("green tea", 1.0))
    inner.off.set()
    assert embedder.embed_query("green tea", 1.0) is first
    with pytest.raises(EmbedderFailed):
        embedder.embed_query("black tea", 1.0)


def test_the_one_not_asked_for_longest_is_forgotten() -> None:
    embedder, inner = cached()
    for text in ("a", "b", "c", "a", "d"):
        embedder.embed_query(text, 1.0)
    assert inner.texts == 4
    embedder.embed_query("a", 1.0)
    assert inner.texts == 4
    embedder.embed_query("b", 1.0)
    assert inner.texts == 5
    assert len(embedder._kept) == 3


def test_a_remembered_vector_cannot_be_changed() -> None:
    embedder, _ = cached()
    vector = embedder.embed_query("a", 1.0)
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 5.0


def test_passages_are_made_each_time_and_no_text_is_kept() -> None:
    embedder, inner = cached()
    embedder.embed_passages(["a", "a"], 1.0)
    embedder.embed_passages(["a"], 1.0)
    embedder.embed_query("my \ud800 secret", 1.0)
    assert inner.texts == 4
    assert "secret" not in repr(embedder._kept)


def test_it_is_an_embedder_like_the_inner_one() -> None:
    made, inner = cached()
    embedder: Embedder = made
    assert (embedder.space, embedder.random_cosine) == (inner.space, inner.random_cosine)
    embedder.warm()
    embedder.close()


def test_threads_get_the_vectors_of_their_own_questions() -> None:
    embedder, inner = cached(50)
    texts = [f"word{number % 80}" for number in range(2_000)]
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(embedder.embed_query, text, 1.0) for text in texts]
        found = [one.result() for one in asked]
    expected = {text: inner.embed_query(text, 1.0) for text in set(texts)}
    assert all(np.array_equal(vector, expected[text]) for text, vector in zip(texts, found, strict=True))
    assert len(embedder._kept) == 50
