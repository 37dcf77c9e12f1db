"""Makes of packed weights what onnxruntime runs: the encoder of BERT, its weights in 4 bits as they are in the file.

See Devlin et al. 2018 for the encoder. The weights stay in 4 bits in memory, too: onnxruntime multiplies by them as
they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loom.models.onnx_message import FLOAT32, INT4, INT64, MICROSOFT, UINT8, model, node, tensor, value
from loom.models.packed import BLOCK, Bytes, Floats, Packed

INPUT: Final = "input_ids"
OUTPUT: Final = "last_hidden_state"
BITS: Final = 4
ACCURACY: Final = 4
"""How onnxruntime multiplies by 4-bit weights: 4 in int8. Of a question that takes a third of the time off what float32
needs, and the vectors are the same to a cosine of 0.9998."""

_HALF: Final = np.uint8(4)
_SIGNED: Final = np.uint8(0x88)
"""Turns the two numbers of a byte from 0..15 into -8..7, the other way of writing the same."""


def graph(packed: Packed) -> bytes:
    """The model: tokens of one text in, a vector for each out."""
    made = _Graph(packed)
    state = made.embedded()
    for layer in range(packed.measures.layers):
        state = made.layer(f"l{layer}", state)
    made.nodes.append(node("Identity", [state], [OUTPUT]))
    return model(
        made.nodes,
        made.constants,
        [value(INPUT, INT64, (1, "tokens"))],
        [value(OUTPUT, FLOAT32, (1, "tokens", packed.measures.width))],
    )


@dataclass
class _Graph:
    """What was put together so far; each step names what comes out of it."""

    packed: Packed
    nodes: list[bytes] = field(default_factory=list[bytes])
    constants: list[bytes] = field(default_factory=list[bytes])

    def embedded(self) -> str:
        """The vectors of the tokens and of their places, added."""
        sizes = self.packed.measures
        numbers, scales = self.packed.blocks("emb.word")
        self._constant("word", _pairs(numbers) ^ _SIGNED, INT4, (sizes.tokens, sizes.width))
        self._constant("word.scale", scales.reshape(sizes.tokens, -1), FLOAT32)
        places = self.packed.floats("emb.pos").reshape(sizes.places, sizes.width)
        self._constant("places", places + self.packed.floats("emb.type")[: sizes.width], FLOAT32)
        self._constant("zero", np.zeros(1, np.int64), INT64)
        gathered = {"gather_axis": 0, "quantize_axis": 1, "block_size": BLOCK}
        self._step("GatherBlockQuantized", ["word", INPUT, "word.scale"], "words", MICROSOFT, **gathered)
        self._step("Shape", [INPUT], "count", start=1, end=2)
        self._step("Slice", ["places", "zero", "count", "zero"], "placed")
        self._step("Add", ["words", "placed"], "added")
        scale, bias = self._normal("emb.ln")
        return self._step("LayerNormalization", ["added", scale, bias], "embedded", axis=-1, epsilon=sizes.epsilon)

    def layer(self, name: str, state: str) -> str:
        """Attention and feed-forward, each added to what went in."""
        sizes = self.packed.measures
        asked = self._times(f"{name}.qkv", state, [f"{name}.q", f"{name}.k", f"{name}.v"], sizes.width)
        three = [f"{asked}.{part}" for part in "qkv"]
        self._constant(f"{name}.thirds", np.full(3, sizes.width, np.int64), INT64)
        self.nodes.append(node("Split", [asked, f"{name}.thirds"], three, axis=-1))
        seen = self._step("MultiHeadAttention", three, f"{name}.seen", MICROSOFT, num_heads=sizes.heads)
        state = self._added(f"{name}.aln", state, self._times(f"{name}.out", seen, [f"{name}.ao"], sizes.width))
        inner = self._times(f"{name}.inner", state, [f"{name}.fi"], sizes.width)
        bent = self._step("Gelu", [inner], f"{name}.bent", MICROSOFT)
        return self._added(f"{name}.oln", state, self._times(f"{name}.outer", bent, [f"{name}.fo"], sizes.inner))

    def _times(self, name: str, state: str, weights: Sequence[str], width: int) -> str:
        """`state`, whose vectors have `width` numbers, times the weights, which are joined, and their bias added."""
        parts = [self.packed.blocks(f"{one}.w") for one in weights]
        numbers = _pairs(np.concatenate([part for part, _ in parts]))
        scales = np.concatenate([part for _, part in parts])
        rows = len(scales) * BLOCK // width
        self._constant(f"{name}.w", numbers, UINT8, (rows, width // BLOCK, BLOCK // 2))
        self._constant(f"{name}.s", scales, FLOAT32)
        self._constant(f"{name}.b", np.concatenate([self.packed.floats(f"{one}.b") for one in weights]), FLOAT32)
        settings = {"K": width, "N": rows, "bits": BITS, "block_size": BLOCK, "accuracy_level": ACCURACY}
        given = [state, f"{name}.w", f"{name}.s", "", "", f"{name}.b"]
        return self._step("MatMulNBits", given, name, MICROSOFT, **settings)

    def _added(self, name: str, state: str, change: str) -> str:
        scale, bias = self._normal(name)
        epsilon = self.packed.measures.epsilon
        given = [state, change, scale, bias]
        return self._step("SkipLayerNormalization", given, f"{name}.state", MICROSOFT, epsilon=epsilon)

    def _normal(self, name: str) -> tuple[str, str]:
        for part in "wb":
            self._constant(f"{name}.{part}", self.packed.floats(f"{name}.{part}"), FLOAT32)
        return f"{name}.w", f"{name}.b"

    def _constant(
        self, name: str, values: Bytes | Floats | NDArray[np.int64], kind: int, shape: Sequence[int] = ()
    ) -> None:
        self.constants.append(tensor(name, values, kind, shape))

    def _step(self, operator: str, inputs: Sequence[str], output: str, domain: str = "", **settings: float) -> str:
        self.nodes.append(node(operator, inputs, [output], domain, **settings))
        return output


def _pairs(numbers: Bytes) -> Bytes:
    """Two numbers in a byte, the first in its low half."""
    return numbers[:, 0::2] | numbers[:, 1::2] << _HALF
