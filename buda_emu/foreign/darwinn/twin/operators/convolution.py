"""CONV_2D, DEPTHWISE_CONV_2D, AVERAGE_POOL_2D."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from buda_emu.foreign.darwinn.tflite import PADDINGS, ConvOptions, DepthwiseOptions, PoolOptions
from buda_emu.foreign.darwinn.twin.graph import Array, Tensor
from buda_emu.foreign.darwinn.twin.operators.base import Call, Value, operator, windows
from buda_emu.foreign.darwinn.twin.rounding import Ints, Multiplier, multipliers, scaled
from buda_emu.support.checker.text import plural

_MOST_WINDOW = 1 << 16


class Geometry(NamedTuple):
    """Outputs, strides, dilations and padding before, each in y and x."""

    out: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]


class Rescale(NamedTuple):
    """What follows a sum: bias before, then a multiplier for each channel, the output's zero point, and its bounds."""

    bias: Ints
    by: Multiplier
    zero: int
    low: int
    high: int


def geometry(
    call: Call,
    image: tuple[int, ...],
    window: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: int,
) -> Geometry:
    """Where windows lie. Refuses impossible strides and windows."""
    if padding not in PADDINGS:
        raise call.refuse(f"padding {padding}")
    if min(*window, *stride, *dilation) < 1 or max(*window, *stride, *dilation) > _MOST_WINDOW:
        raise call.refuse(f"a window of {window} with stride {stride} and dilation {dilation}")
    same = PADDINGS[padding] == "SAME"
    ends = [windows(*item, same) for item in zip(image[1:3], window, stride, dilation, strict=True)]
    return Geometry((ends[0][0], ends[1][0]), stride, dilation, (ends[0][1], ends[1][1]))


def rescale(call: Call, channels: int, weights: Tensor, bias: Value | None, axis: int, act: int) -> Rescale:
    """From the scales of input, weights and output (DARWINN_TWIN 4)."""
    x, y = call.input(0).tensor, call.output()
    sx, _ = call.quantised(x)
    sy, zy = call.quantised(y)
    if x.type == "uint8":
        sw, _ = call.quantised(weights)
        real = [float(np.float32(sx) * np.float32(sw)) / sy] * channels
    else:
        if len(weights.scale) not in (1, channels) or (len(weights.scale) > 1 and weights.axis != axis):
            raise call.refuse(f"weights with {plural(len(weights.scale), 'scale')} along dimension {weights.axis}")
        real = [sx * sw / sy for sw in (weights.scale if len(weights.scale) > 1 else weights.scale * channels)]
    if not all(np.isfinite(item) and item > 0 for item in real):
        raise call.refuse("a scale that is not a positive number")
    values = np.zeros(channels, np.int64) if bias is None else bias.array.astype(np.int64).reshape(-1)
    if len(values) != channels:
        raise call.refuse(f"a bias of {len(values)} for {channels} channels")
    low, high = call.bounds(y, act)
    return Rescale(values, multipliers(real), zy, low, high)


def operands(call: Call) -> tuple[Array, Array, Value, Value | None]:
    """Input and weights less their zero points, the weights as they are, and the bias. Refuses other types."""
    x, w, bias = call.input(0), call.input(1), call.optional(2)
    call.types((x.tensor, call.output()), "uint8", "int8")
    if not x.tensor.type == w.tensor.type == call.output().type:
        raise call.refuse(f"{x.tensor.type} with weights of {w.tensor.type} to {call.output().type}")
    if bias is not None:
        call.types((bias.tensor,), "int32")
    if x.array.ndim != 4 or w.array.ndim != 4:
        raise call.refuse(f"input of shape {x.array.shape} with weights of shape {w.array.shape}")
    _, zx = call.quantised(x.tensor)
    zw = call.quantised(w.tensor)[1] if w.tensor.type == "uint8" else 0
    return x.array.astype(np.int32) - zx, w.array.astype(np.int32) - zw, w, bias


def _geometry(call: Call, x: Array, weights: Array, options: ConvOptions | DepthwiseOptions) -> Geometry:
    stride, dilation = (options.stride_h, options.stride_w), (options.dilation_h, options.dilation_w)
    return geometry(call, x.shape, weights.shape[1:3], stride, dilation, options.padding)


@operator(3, "uint8, int8")
def conv(call: Call) -> list[Array]:
    """Sums over windows of all channels, rescaled with a multiplier for each output channel."""
    options = call.option(ConvOptions)
    x, weights, w, bias = operands(call)
    if x.shape[3] != weights.shape[3]:
        raise call.refuse(f"weights for {weights.shape[3]} of {x.shape[3]} channels")
    where = _geometry(call, x, weights, options)
    scale = rescale(call, weights.shape[0], w.tensor, bias, 0, options.act)
    kernel = np.ascontiguousarray(weights.transpose(1, 2, 3, 0))  # [h, w, in, out]
    return [call.shaped(_computed(call, "conv", x, kernel, where, scale))]


@operator(4, "uint8, int8")
def depthwise(call: Call) -> list[Array]:
    """Sums over windows of one channel each, rescaled with a multiplier for each output channel."""
    options = call.option(DepthwiseOptions)
    x, weights, w, bias = operands(call)
    if weights.shape[0] != 1 or not x.shape[3] or weights.shape[3] % x.shape[3]:
        raise call.refuse(f"weights of shape {weights.shape} for {x.shape[3]} channels")
    where = _geometry(call, x, weights, options)
    scale = rescale(call, weights.shape[3], w.tensor, bias, 3, options.act)
    return [call.shaped(_computed(call, "depthwise", x, np.ascontiguousarray(weights[0]), where, scale))]


def _computed(call: Call, name: str, x: Array, kernel: Array, where: Geometry, scale: Rescale) -> Array:
    """By the compiled kernel, or by the definition where 32 bits might not hold a sum."""
    y = call.output()
    per_output = kernel.shape[0] * kernel.shape[1] * (kernel.shape[2] if name == "conv" else 1)
    largest = per_output * int(np.abs(x).max(initial=0)) * int(np.abs(kernel).max(initial=0))
    largest += int(np.abs(scale.bias).max(initial=0))
    if largest >= 1 << 31:
        reference = {"conv": conv_reference, "depthwise": depthwise_reference}[name]
        return finished(reference(x, kernel, where), scale).astype(y.dtype)
    from buda_emu.foreign.darwinn.kernels import convolution as kernels  # and LLVM with it

    run: Callable[..., Any] = {"conv": kernels.conv, "depthwise": kernels.depthwise}[name]
    out = np.empty((x.shape[0], *where.out, len(scale.bias)), np.int16)
    window = kernels.Window(*where.stride, *where.dilation, *where.before)
    by = kernels.Scale(scale.bias.astype(np.int32), scale.by.q, scale.by.e, scale.zero, scale.low, scale.high)
    run(np.ascontiguousarray(x), kernel, window, by, out)
    return out.astype(y.dtype)


def finished(sums: Ints, scale: Rescale) -> Ints:
    """Sums to outputs: the definition."""
    return np.clip(scaled(sums + scale.bias, scale.by) + scale.zero, scale.low, scale.high)


def conv_reference(x: Array, kernel: Array, where: Geometry) -> Ints:
    """Sums of a convolution, `[n, y, x, out]`: the definition. x `[n, h, w, in]`, kernel `[h, w, in, out]`."""
    out = np.zeros((x.shape[0], *where.out, kernel.shape[3]), np.int64)
    for patch, ky, kx, rows, columns in _patches(x, kernel.shape[:2], where):
        out[:, rows, columns] += np.einsum("nyxi,io->nyxo", patch, kernel[ky, kx].astype(np.int64))
    return out


def depthwise_reference(x: Array, kernel: Array, where: Geometry) -> Ints:
    """Sums of a depthwise convolution, `[n, y, x, channel]`: the definition. kernel `[h, w, channel]`."""
    times = kernel.shape[2] // x.shape[3]
    out = np.zeros((x.shape[0], *where.out, kernel.shape[2]), np.int64)
    for patch, ky, kx, rows, columns in _patches(x, kernel.shape[:2], where):
        out[:, rows, columns] += np.repeat(patch, times, axis=3) * kernel[ky, kx].astype(np.int64)
    return out


def _patches(x: Array, window: tuple[int, ...], where: Geometry) -> Any:
    """For each cell of the window: the inputs under it as int64, and the outputs that they belong to."""
    for ky in range(window[0]):
        rows, ys = _under(ky, 0, x.shape[1], where)
        for kx in range(window[1]):
            columns, xs = _under(kx, 1, x.shape[2], where)
            yield x[:, ys, xs].astype(np.int64), ky, kx, rows, columns


def _under(cell: int, axis: int, size: int, where: Geometry) -> tuple[slice, slice]:
    """Outputs for which a cell lies in the input, and the inputs under it."""
    first = cell * where.dilation[axis] - where.before[axis]
    stride = where.stride[axis]
    low = max(-(first // stride), 0)
    high = max(min((size - 1 - first) // stride + 1, where.out[axis]), low)
    start = low * stride + first
    return slice(low, high), slice(start, start + (high - low) * stride, stride)


@operator(1, "uint8, int8")
def average_pool(call: Call) -> list[Array]:
    """The mean of the cells of a window that lie in the input, halves away from zero."""
    options = call.option(PoolOptions)
    x, y = call.input(0), call.output()
    call.types((x.tensor, y), "uint8", "int8")
    if x.tensor.type != y.type or x.array.ndim != 4:
        raise call.refuse(f"{x.tensor.type} of shape {x.array.shape} to {y.type}")
    window = (options.filter_h, options.filter_w)
    where = geometry(call, x.array.shape, window, (options.stride_h, options.stride_w), (1, 1), options.padding)
    total = np.zeros((x.array.shape[0], *where.out, x.array.shape[3]), np.int64)
    count = np.zeros((1, *where.out, 1), np.int64)
    for patch, _ky, _kx, rows, columns in _patches(x.array, window, where):
        total[:, rows, columns] += patch
        count[:, rows, columns] += 1
    if not count.all():
        raise call.refuse("a window without a cell in the input")
    mean = np.where(total > 0, (total + count // 2) // count, -((count // 2 - total) // count))
    return [call.shaped(call.clamped(mean, options.act))]
