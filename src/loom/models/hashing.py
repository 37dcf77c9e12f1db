"""An embedder without a model: tokens hashed into a small vector.

It knows shared words and nothing of meaning. It is instant, the same
everywhere, and needs no files, so it serves tests and installs that want no model.
Method: the hashing trick with signs (Weinberger et al. 2009).
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from loom.models.interface import Space, unit
from loom.storage.indexes import Vector

DIMENSION: Final = 64
_CHARACTERS_MAX: Final = 20_000
_WORD: Final = re.compile(r"\w+")
_EVERY_TEXT: Final = "\x00every text"
"""A feature that every text has, so that an empty one has a direction too."""
_EVERY_TEXT_WEIGHT: Final = 0.25


class HashingEmbedder:
    """Feature hashing of case-folded words; deterministic across machines and processes."""

    random_cosine: float = 0.1
    question_cosine: float = 0.1

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.space = Space(
            source="loom",
            model="hashing",
            weights_sha256="",
            tokenizer_sha256="",
            dimension=dimension,
            pooling="sum",
            normalised=True,
            query_prefix="",
            passage_prefix="",
            tokens_max=_CHARACTERS_MAX,
            quantisation="none",
        )

    def warm(self) -> None:
        """Nothing to load."""

    def embed_query(self, text: str, timeout_s: float) -> Vector:
        """The vector of `text`, at once."""
        return self.embed_passages([text], timeout_s)[0]

    def embed_passages(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """One vector for each text, at once."""
        del timeout_s
        return [self._embed(text) for text in texts]

    def close(self) -> None:
        """Nothing to stop."""

    def _embed(self, text: str) -> Vector:
        vector = np.zeros(self.space.dimension, dtype=np.float32)
        self._add(vector, _EVERY_TEXT, _EVERY_TEXT_WEIGHT)
        for word in _WORD.findall(text[:_CHARACTERS_MAX].casefold()):
            self._add(vector, word, 1.0)
        return unit(vector) if vector.any() else self._embed("")

    def _add(self, vector: Vector, feature: str, weight: float) -> None:
        digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest()
        sign = 1.0 if digest[0] & 1 else -1.0
        vector[int.from_bytes(digest[1:]) % len(vector)] += sign * weight
