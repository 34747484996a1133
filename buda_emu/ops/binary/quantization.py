"""quantization, requantization, dequantization: data in input 0, an element-wise scale in input 1 (OPS 6.4).

Results are not rounded here: that is the conversion to Int8 of OPS 3 step 9, in a fused op of OPS 8.1 step 5.
"""

import numpy as np

from buda_emu.ops.base import OpCall, Tiles, implements
from buda_emu.ops.binary.op import Binary, multiply


@implements("quantization", "requantization", "dequantization")
class Quantization(Binary):
    """in0 * in1 + zero_point, or (in0 - zero_point) * in1 for dequantization; the product is that of `multiply`."""

    def compute(self, call: OpCall, a: Tiles, b: Tiles) -> Tiles:
        """The function itself, on arranged operands float32[w, t, R, C, 32, 32]."""
        zero_point = np.float32(call.attributes.zero_point)
        if call.type == "dequantization":
            return multiply(a + -zero_point, b)
        return multiply(a, b) + zero_point
