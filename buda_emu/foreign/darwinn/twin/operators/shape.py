"""CONCATENATION, SPLIT, RESHAPE, PAD, RESIZE_BILINEAR."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.darwinn.tflite import ConcatenationOptions, ResizeBilinearOptions, SplitOptions
from buda_emu.foreign.darwinn.twin.graph import Array, blank
from buda_emu.foreign.darwinn.twin.operators.base import Call, Value, constant, limits, operator
from buda_emu.foreign.darwinn.twin.rounding import half_away
from buda_emu.support.errors import PackageError

Floats = NDArray[np.float32]


@operator(2, "any; another scale than the output's: uint8")
def concatenation(call: Call) -> list[Array]:
    """Inputs one after the other; those of another scale or zero point are rescaled in float32."""
    options = call.option(ConcatenationOptions)
    y = call.output()
    if options.act:
        raise call.refuse(f"activation {options.act}")
    values = [call.input(number) for number in range(len(call.inputs))]
    call.types([value.tensor for value in values], y.type)
    axis = options.axis
    if not values or not -len(y.shape) <= axis < len(y.shape):
        raise call.refuse(f"dimension {axis} of {len(y.shape)}")
    try:
        return [call.shaped(np.concatenate([_rescaled(call, value) for value in values], axis))]
    except ValueError as error:
        raise PackageError(f"{call.name}: {error}") from None


def _rescaled(call: Call, value: Value) -> Array:
    x, y = value.tensor, call.output()
    if x.scale == y.scale and x.zero_point == y.zero_point:
        return value.array
    if y.type != "uint8":
        raise call.refuse(f"{x.type} {x.name!r} of another scale than the output's")
    (sx, zx), (sy, zy) = call.quantised(x), call.quantised(y)
    k = np.float32(sx) * (np.float32(1) / np.float32(sy))
    b = np.float32(-zx) * k
    return np.clip(half_away(value.array.astype(np.float32) * k + b) + zy, *limits(y)).astype(y.dtype)


@operator(49, "any")
def split(call: Call) -> list[Array]:
    """Equal parts along a dimension."""
    number = call.option(SplitOptions).number
    x = call.input(1).array
    axes = constant(call, 0).reshape(-1)
    if len(axes) != 1 or not -x.ndim <= axes[0] < x.ndim or number != len(call.outputs) or number < 1:
        raise call.refuse(f"dimension {axes.tolist()} of {x.ndim} into {number} for {len(call.outputs)} outputs")
    if x.shape[axes[0]] % number:
        raise call.refuse(f"{x.shape[axes[0]]} into {number} equal parts")
    parts = np.split(x, number, int(axes[0]))
    call.types(call.outputs, call.input(1).tensor.type)
    return [call.shaped(np.ascontiguousarray(part), place) for place, part in enumerate(parts)]


@operator(22, "any")
def reshape(call: Call) -> list[Array]:
    """The same elements in the output's shape."""
    x, y = call.input(0), call.output()
    call.types((y,), x.tensor.type)
    if x.array.size != int(np.prod(y.shape)):
        raise PackageError(f"{call.name}: {x.array.shape} cannot take the shape {y.shape}")
    return [x.array.reshape(y.shape)]


@operator(34, "uint8, int8")
def pad(call: Call) -> list[Array]:
    """The output's zero point around the input."""
    x, y = call.input(0), call.output()
    call.types((x.tensor, y), "uint8", "int8")
    call.types((y,), x.tensor.type)
    ends = constant(call, 1)
    if ends.shape != (x.array.ndim, 2) or ends.min(initial=0) < 0:
        raise call.refuse(f"padding {ends.tolist()} of {x.array.ndim} dimensions")
    _, zero = call.quantised(y)
    if y.shape != tuple(n + int(a) + int(b) for n, (a, b) in zip(x.array.shape, ends, strict=True)):
        raise PackageError(f"{call.name}: {x.array.shape} padded by {ends.tolist()} is not {y.shape}")
    out = blank(y.shape, y.dtype, f"{call.name} {y.name!r}")
    out[...] = zero
    out[tuple(slice(int(a), int(a) + n) for n, (a, _) in zip(x.array.shape, ends, strict=True))] = x.array
    return [out]


@operator(23, "uint8")
def resize_bilinear(call: Call) -> list[Array]:
    """Between the four nearest elements, in float32."""
    options = call.option(ResizeBilinearOptions)
    x, y = call.input(0), call.output()
    call.types((x.tensor, y), "uint8")
    size = constant(call, 1).reshape(-1)
    if x.array.ndim != 4 or len(size) != 2 or min(*size, *x.array.shape) < 1:
        raise call.refuse(f"input of shape {x.array.shape} to {size.tolist()}")
    if options.align_corners and options.half_pixel:
        raise call.refuse("align_corners with half_pixel")
    if y.shape != (x.array.shape[0], int(size[0]), int(size[1]), x.array.shape[3]):
        raise PackageError(f"{call.name}: {x.array.shape} resized to {size.tolist()} is not {y.shape}")
    out = blank(y.shape, y.dtype, f"{call.name} {y.name!r}")
    p0, p1, dp = _places(x.array.shape[1], int(size[0]), options)
    r0, r1, dr = _places(x.array.shape[2], int(size[1]), options)
    dr = dr[:, None]
    one, half = np.float32(1), np.float32(0.5)
    values = x.array.astype(np.float32)
    for row in range(len(p0)):  # a row at a time: what lies between is small
        low, high, d = values[:, p0[row]], values[:, p1[row]], dp[row]
        total = low[:, r0] * (one - d) * (one - dr)
        total += high[:, r0] * d * (one - dr)
        total += low[:, r1] * (one - d) * dr
        total += high[:, r1] * d * dr
        out[:, row] = (total + half).astype(np.int32)
    return [out]


def _places(size: int, out: int, options: ResizeBilinearOptions) -> tuple[Any, Any, Floats]:
    """For each output: the elements below and above, and how far it lies between."""
    step = np.float32(size) / np.float32(out)
    if options.align_corners and out > 1:
        step = np.float32(size - 1) / np.float32(out - 1)
    number = np.arange(out, dtype=np.float32)
    half = np.float32(0.5)
    v = (number + half) * step - half if options.half_pixel else number * step
    low = np.maximum(np.floor(v).astype(np.int64), 0)
    high = np.minimum(np.ceil(v).astype(np.int64), size - 1)
    return np.minimum(low, size - 1), np.maximum(high, 0), v - low.astype(np.float32)
