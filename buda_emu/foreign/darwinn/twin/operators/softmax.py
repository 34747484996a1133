"""SOFTMAX."""

import numpy as np

from buda_emu.foreign.darwinn.tflite import SoftmaxOptions
from buda_emu.foreign.darwinn.twin.graph import Array
from buda_emu.foreign.darwinn.twin.operators.base import Call, limits, operator
from buda_emu.foreign.darwinn.twin.rounding import exp, high, multiplier, recip, right, scaled

_BITS, _INTEGER_BITS, _SUM_BITS = 32, 5, 12


@operator(25, "uint8, int8")
def softmax(call: Call) -> list[Array]:
    """exp of each over their sum along the last dimension, in fixed point."""
    beta = call.option(SoftmaxOptions).beta
    x, y = call.input(0), call.output()
    call.types((x.tensor, y), "uint8", "int8")
    call.types((y,), x.tensor.type)
    sx, _ = call.quantised(x.tensor)
    call.quantised(y)
    if not (np.isfinite(beta) and beta > 0) or not x.array.size:
        raise call.refuse(f"beta {beta} of an input of shape {x.array.shape}")
    fraction = _BITS - 1 - _INTEGER_BITS
    by = multiplier(min(beta * sx * (1 << fraction), float((1 << 31) - 1)))
    least = -int(np.floor(((1 << _INTEGER_BITS) - 1) * 2.0**fraction / 2.0**by.e))
    rows = x.array.reshape(-1, x.array.shape[-1]).astype(np.int64)
    d = rows - rows.max(axis=1, keepdims=True)
    counts = d >= least
    e = np.where(counts, exp(scaled(np.where(counts, d, 0), by), _INTEGER_BITS, _BITS), 0)
    total = np.where(counts, right(e, _SUM_BITS), 0).sum(axis=1, keepdims=True)
    zeros = _BITS - np.ceil(np.log2(total + 1)).astype(np.int64)
    r = recip(((total << zeros) & ((1 << _BITS) - 1)) - (1 << (_BITS - 1)), _BITS)
    top = limits(y)[1] - limits(y)[0]
    values = np.where(counts, np.minimum(right(high(r, e), 35 - zeros), top), 0) + limits(y)[0]
    return [call.shaped(values.astype(y.dtype).reshape(x.array.shape))]
