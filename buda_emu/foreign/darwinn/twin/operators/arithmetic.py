"""QUANTIZE, ARG_MAX."""

import numpy as np

from buda_emu.foreign.darwinn.twin.graph import Array
from buda_emu.foreign.darwinn.twin.operators.base import Call, constant, limits, operator
from buda_emu.foreign.darwinn.twin.rounding import multiplier, scaled


@operator(114, "uint8, int8 to uint8, int8")
def quantize(call: Call) -> list[Array]:
    """From one scale and zero point to another."""
    x, y = call.input(0), call.output()
    call.types((x.tensor, y), "uint8", "int8")
    (sx, zx), (sy, zy) = call.quantised(x.tensor), call.quantised(y)
    values = scaled(x.array.astype(np.int64) - zx, multiplier(sx / sy)) + zy
    return [call.shaped(np.clip(values, *limits(y)).astype(y.dtype))]


@operator(56, "uint8, int8 to int32, int64")
def arg_max(call: Call) -> list[Array]:
    """The place of the first greatest along a dimension."""
    x, y = call.input(0), call.output()
    call.types((x.tensor,), "uint8", "int8")
    call.types((y,), "int32", "int64")
    axes = constant(call, 1).reshape(-1)
    if len(axes) != 1 or not -x.array.ndim <= axes[0] < x.array.ndim or not x.array.size:
        raise call.refuse(f"dimension {axes.tolist()} of {x.array.ndim}")
    return [call.shaped(np.argmax(x.array, int(axes[0])).astype(y.dtype))]
