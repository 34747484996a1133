"""ADD, QUANTIZE, ARG_MAX."""

import numpy as np

from buda_emu.darwinn.tflite import AddOptions
from buda_emu.darwinn.twin.graph import Array
from buda_emu.darwinn.twin.operators.base import Call, constant, limits, operator
from buda_emu.darwinn.twin.rounding import multiplier, scaled

_HEADROOM = 20


@operator(0, "uint8, int8")
def add(call: Call) -> list[Array]:
    """Both operands to one finer scale, their sum to the output's."""
    options = call.option(AddOptions)
    first, second, y = call.input(0), call.input(1), call.output()
    call.types((first.tensor, second.tensor, y), "uint8", "int8")
    if not first.tensor.type == second.tensor.type == y.type:
        raise call.refuse(f"{first.tensor.type} and {second.tensor.type} to {y.type}")
    (s1, z1), (s2, z2), (sy, zy) = (call.quantised(item) for item in (first.tensor, second.tensor, y))
    twice = 2 * max(s1, s2)
    total = np.int64(0)
    for value, scale, zero in ((first.array, s1, z1), (second.array, s2, z2)):
        total = total + scaled((value.astype(np.int64) - zero) << _HEADROOM, multiplier(scale / twice))
    values = scaled(total, multiplier(twice / ((1 << _HEADROOM) * sy))) + zy
    return [call.shaped(call.clamped(values, options.act))]


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
