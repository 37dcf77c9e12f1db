"""Writes the few messages of ONNX that a model needs, in the wire format of protocol buffers.

The package onnx does the same, and all else that is in ONNX; these lines save installing it, and give the same bytes
each time. The field numbers are those of `onnx.proto`.
"""

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

FLOAT32: Final = 1
UINT8: Final = 2
INT64: Final = 7
INT4: Final = 22
"""Two numbers in a byte, the first in its low half."""

MICROSOFT: Final = "com.microsoft"
"""The domain of what onnxruntime adds."""

IR_VERSION: Final = 10
OPERATORS: Final = 17
"""Version of ONNX's own operators; of those that onnxruntime adds it is 1."""

_VARINT, _LENGTH, _FIXED32 = 0, 2, 5
_MORE: Final = 0x80
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2


def tensor(name: str, values: NDArray[np.generic], kind: int, shape: Sequence[int] = ()) -> bytes:
    """A named constant; `shape` where it is not that of the array."""
    dimensions = b"".join(_number(1, size) for size in shape or values.shape)
    return b"".join((dimensions, _number(2, kind), _bytes(8, name.encode()), _bytes(9, values.tobytes())))


def value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    """What goes in or comes out; a size that is a name is not known beforehand."""
    sizes = b"".join(
        _bytes(1, _number(1, size) if isinstance(size, int) else _bytes(2, size.encode())) for size in shape
    )
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, sizes)))


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **settings: float) -> bytes:
    """One step; an input of an empty name is left out."""
    return b"".join(
        (
            *(_bytes(1, name.encode()) for name in inputs),
            *(_bytes(2, name.encode()) for name in outputs),
            _bytes(4, operator.encode()),
            *(_bytes(5, _attribute(name, setting)) for name, setting in settings.items()),
            _bytes(7, domain.encode()),
        )
    )


def model(
    nodes: Sequence[bytes], constants: Sequence[bytes], inputs: Sequence[bytes], outputs: Sequence[bytes]
) -> bytes:
    """A whole model."""
    graph = b"".join(
        (
            *(_bytes(1, one) for one in nodes),
            _bytes(2, b"encoder"),
            *(_bytes(5, one) for one in constants),
            *(_bytes(11, one) for one in inputs),
            *(_bytes(12, one) for one in outputs),
        )
    )
    operators = (("", OPERATORS), (MICROSOFT, 1))
    used = (_bytes(8, _bytes(1, domain.encode()) + _number(2, version)) for domain, version in operators)
    return b"".join((_number(1, IR_VERSION), _bytes(7, graph), *used))


def _attribute(name: str, setting: float) -> bytes:
    named = _bytes(1, name.encode())
    if isinstance(setting, int):
        return named + _number(3, setting) + _number(20, _ATTRIBUTE_INT)
    return named + _varint(2 << 3 | _FIXED32) + struct.pack("<f", setting) + _number(20, _ATTRIBUTE_FLOAT)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(number & (1 << 64) - 1)


def _bytes(field: int, content: bytes) -> bytes:
    return b"".join((_varint(field << 3 | _LENGTH), _varint(len(content)), content))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= _MORE:
        out.append(number & _MORE - 1 | _MORE)
        number >>= 7
    out.append(number)
    return bytes(out)
