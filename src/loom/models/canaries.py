"""Texts whose vectors are known, so that a model that computes something else is noticed at start.

A vector is kept as its numbers times 127 over the largest, in base64 of int8:
its cosine with the original is above 0.999.
"""

import base64
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Final

import numpy as np

from loom.models.interface import EmbedderFailed, Space, unit
from loom.storage.indexes import Vector

COSINE_MIN: Final = 0.98
_INT8_MAX: Final = 127


def pack(vector: Vector) -> str:
    """A vector's direction as text."""
    return base64.b64encode(np.rint(vector * (_INT8_MAX / np.abs(vector).max())).astype(np.int8).tobytes()).decode()


def unpack(packed: str) -> Vector:
    """The unit vector that `pack` wrote."""
    vector = np.frombuffer(base64.b64decode(packed), dtype=np.int8).astype(np.float32)
    return unit(vector)


def known(model: str) -> Mapping[str, str]:
    """The model's canary texts with their packed vectors; empty for a model without any."""
    text = resources.files("loom.models").joinpath("canaries.toml").read_text(encoding="utf-8")
    return {row["text"]: row["vector"] for row in tomllib.loads(text).get(model, [])}


def agree(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether canaries of two measurements are of one model, as far as they can tell."""
    if one.keys() != other.keys():
        return False
    pairs = [(unpack(packed), unpack(other[text])) for text, packed in one.items()]
    return all(left.shape == right.shape and float(left @ right) >= COSINE_MIN for left, right in pairs)


def check(space: Space, embed: Callable[[str], Vector], canaries: Mapping[str, str]) -> None:
    """Embed each canary as a passage and compare.

    Raises:
        EmbedderFailed: a vector is too far from the one on record.
    """
    for number, (text, packed) in enumerate(canaries.items(), start=1):
        expected = unpack(packed)
        found = embed(space.passage_prefix + text)
        cosine = float(found @ expected) if found.shape == expected.shape else -1.0
        if cosine < COSINE_MIN:
            raise EmbedderFailed(
                f"model {space.model} gives another vector than recorded for canary {number} "
                f"(cosine {cosine:.3f}, at least {COSINE_MIN} is expected)"
            )
