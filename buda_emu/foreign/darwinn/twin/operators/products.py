"""Convolutions, matrix products and poolings of the twin in integers, with the kernels that run convolutions fast."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.foreign.darwinn.tflite import (
    PADDINGS,
    WEIGHTS_FORMATS,
    ConvOptions,
    DepthwiseOptions,
    FullyConnectedOptions,
    PoolOptions,
    SequenceLstmOptions,
)
from buda_emu.foreign.darwinn.twin.graph import Array, Tensor
from buda_emu.foreign.darwinn.twin.operators.base import Call, TensorValue, operator, windows
from buda_emu.foreign.darwinn.twin.rounding import (
    Ints,
    Multiplier,
    apply_multiplier,
    apply_multiplier_once,
    logistic,
    multiplier,
    multipliers,
    right,
    tanh,
)
from buda_emu.support.checker.text import plural


class Window(NamedTuple):
    """Strides, dilations, and the padding before the first row and column."""

    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    before_y: int
    before_x: int


class Scale(NamedTuple):
    """The step from sums to outputs: bias int32[out], the factors q and e int64[out] of each channel, and the zero
    point and limits of the output."""

    bias: NDArray[np.int32]
    q: NDArray[np.int64]
    e: NDArray[np.int64]
    zero: int
    low: int
    high: int


@helper
def rescale(total: Any, q: Any, e: Any, zero: Any, low: Any, high: Any) -> Any:
    """Multiply a sum by q * 2^(e - 31), rounding twice (DARWINN_TWIN 3), add the zero point and clamp to low..high."""
    product = (np.int64(total) << max(e, np.int64(0))) * q
    if product >= 0:
        value = (product + (np.int64(1) << 30)) >> 31
    else:
        value = -((-(product + np.int64(1) - (np.int64(1) << 30))) >> 31)
    if value > 2147483647:
        value = np.int64(2147483647)
    if e < 0:
        mask = (np.int64(1) << -e) - 1
        threshold = (mask >> 1) + (np.int64(1) if value < 0 else np.int64(0))
        value = (value >> -e) + (np.int64(1) if (value & mask) > threshold else np.int64(0))
    return min(max(value + zero, low), high)


@kernel
def convolve(x: Any, w: Any, window: Window, scale: Scale, out: Any) -> None:
    """Convolve x int32[n, h, w, in] with w int32[h, w, in, out] into out int16[n, y, x, out]."""
    stride_y, stride_x, dilation_y, dilation_x, before_y, before_x = window
    bias, q, e, zero, low, high = scale
    channels = w.shape[3]
    total = np.empty(channels, np.int32)
    for n in range(out.shape[0]):
        for row in range(out.shape[1]):
            for column in range(out.shape[2]):
                total[:] = bias
                for ky in range(w.shape[0]):
                    y = row * stride_y + ky * dilation_y - before_y
                    if y < 0 or y >= x.shape[1]:
                        continue
                    for kx in range(w.shape[1]):
                        z = column * stride_x + kx * dilation_x - before_x
                        if z < 0 or z >= x.shape[2]:
                            continue
                        for i in range(w.shape[2]):
                            value = x[n, y, z, i]
                            if value != 0:
                                for o in range(channels):
                                    total[o] += value * w[ky, kx, i, o]
                for o in range(channels):
                    out[n, row, column, o] = rescale(total[o], q[o], e[o], zero, low, high)


@kernel
def convolve_depthwise(x: Any, w: Any, window: Window, scale: Scale, out: Any) -> None:
    """Convolve x int32[n, h, w, in] with w int32[h, w, channel] into out int16[n, y, x, channel]; an input channel
    feeds channel / in outputs."""
    stride_y, stride_x, dilation_y, dilation_x, before_y, before_x = window
    bias, q, e, zero, low, high = scale
    channels = w.shape[2]
    times = channels // x.shape[3]
    total = np.empty(channels, np.int32)
    for n in range(out.shape[0]):
        for row in range(out.shape[1]):
            for column in range(out.shape[2]):
                total[:] = bias
                for ky in range(w.shape[0]):
                    y = row * stride_y + ky * dilation_y - before_y
                    if y < 0 or y >= x.shape[1]:
                        continue
                    for kx in range(w.shape[1]):
                        z = column * stride_x + kx * dilation_x - before_x
                        if z < 0 or z >= x.shape[2]:
                            continue
                        if times == 1:
                            for o in range(channels):
                                total[o] += x[n, y, z, o] * w[ky, kx, o]
                        else:
                            for o in range(channels):
                                total[o] += x[n, y, z, o // times] * w[ky, kx, o]
                for o in range(channels):
                    out[n, row, column, o] = rescale(total[o], q[o], e[o], zero, low, high)


_MOST_WINDOW = 1 << 16  # far above any window


class Geometry(NamedTuple):
    """The windows of a convolution: outputs, strides, dilations and padding before, each in y and x."""

    out: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]


class Rescale(NamedTuple):
    """The step from sums to outputs: a bias before, a multiplier per channel, the output's zero point and bounds."""

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
    """Return the placement of a window on an image of shape `[n, h, w, channels]`. Window, stride and dilation are
    in y and x; `padding` is TFLite's number. Raises UnsupportedError for impossible strides and windows."""
    if padding not in PADDINGS:
        raise call.refuse(f"padding {padding}")
    if min(*window, *stride, *dilation) < 1 or max(*window, *stride, *dilation) > _MOST_WINDOW:
        raise call.refuse(f"a window of {window} with stride {stride} and dilation {dilation}")
    same = PADDINGS[padding] == "SAME"
    rows, above = windows(image[1], window[0], stride[0], dilation[0], same)
    columns, before = windows(image[2], window[1], stride[1], dilation[1], same)
    return Geometry((rows, columns), stride, dilation, (above, before))


def read_rescale(call: Call, channels: int, weights: Tensor, bias: TensorValue | None, axis: int, act: int) -> Rescale:
    """Return the step from sums to outputs by the scales of input, weights and output (DARWINN_TWIN 4). `axis` is
    the dimension of the weights that may have a scale for each channel, `act` TFLite's number of the activation."""
    y = call.output()
    reals = _real_multipliers(call, channels, weights, axis)
    if not all(np.isfinite(real) and real > 0 for real in reals):
        raise call.refuse("a scale that is not a positive number")
    values = np.zeros(channels, np.int64)
    if bias is not None:
        values = bias.array.astype(np.int64).reshape(-1)
    if len(values) != channels:
        raise call.refuse(f"a bias of {len(values)} for {channels} channels")
    low, high = call.bounds(y, act)
    return Rescale(bias=values, by=multipliers(reals), zero=call.scale_and_zero(y)[1], low=low, high=high)


def _real_multipliers(call: Call, channels: int, weights: Tensor, axis: int) -> list[float]:
    """Return the real multiplier of each channel. The kernels of uint8 multiply the scales in float32."""
    x = call.input(0).tensor
    sx, _ = call.scale_and_zero(x)
    sy, _ = call.scale_and_zero(call.output())
    if x.type == "uint8":
        sw, _ = call.scale_and_zero(weights)
        return [float(np.float32(sx) * np.float32(sw)) / sy] * channels
    scales = weights.scale
    if len(scales) not in (1, channels) or (len(scales) > 1 and weights.axis != axis):
        raise call.refuse(f"weights with {plural(len(scales), 'scale')} along dimension {weights.axis}")
    if len(scales) == 1:
        scales = scales * channels
    return [sx * sw / sy for sw in scales]


def operands(call: Call) -> tuple[Array, Array, TensorValue, TensorValue | None]:
    """Return input and weights less their zero points, the weights as they are, and the bias. Raises UnsupportedError
    for other types."""
    x = call.input(0)
    w = call.input(1)
    bias = call.optional(2)
    call.types((x.tensor, call.output()), "uint8", "int8")
    if not x.tensor.type == w.tensor.type == call.output().type:
        raise call.refuse(f"{x.tensor.type} with weights of {w.tensor.type} to {call.output().type}")
    if bias is not None:
        call.types((bias.tensor,), "int32")
    if x.array.ndim != 4 or w.array.ndim != 4:
        raise call.refuse(f"input of shape {x.array.shape} with weights of shape {w.array.shape}")
    _, zx = call.scale_and_zero(x.tensor)
    if w.tensor.type == "uint8":
        zw = call.scale_and_zero(w.tensor)[1]
    else:
        zw = 0
    return x.array.astype(np.int32) - zx, w.array.astype(np.int32) - zw, w, bias


def _convolution_geometry(call: Call, x: Array, weights: Array, options: ConvOptions | DepthwiseOptions) -> Geometry:
    """Return the placement of a convolution's windows by its options; `weights` have the window's height and width
    as dimensions 1 and 2."""
    stride = (options.stride_h, options.stride_w)
    dilation = (options.dilation_h, options.dilation_w)
    return geometry(call, x.shape, weights.shape[1:3], stride, dilation, options.padding)


@operator(3, "uint8, int8")
def conv(call: Call) -> list[Array]:
    """Sums over windows of all channels, rescaled with a multiplier for each output channel."""
    options = call.option(ConvOptions)
    x, weights, w, bias = operands(call)
    if x.shape[3] != weights.shape[3]:
        raise call.refuse(f"weights for {weights.shape[3]} of {x.shape[3]} channels")
    placement = _convolution_geometry(call, x, weights, options)
    scale = read_rescale(call, weights.shape[0], w.tensor, bias, 0, options.act)
    kernel = np.ascontiguousarray(weights.transpose(1, 2, 3, 0))  # [h, w, in, out]
    return [call.check_shape(_compute_outputs(call, "conv", x, kernel, placement, scale))]


@operator(4, "uint8, int8")
def depthwise(call: Call) -> list[Array]:
    """Sums over windows of one channel each, rescaled with a multiplier for each output channel."""
    options = call.option(DepthwiseOptions)
    x, weights, w, bias = operands(call)
    if weights.shape[0] != 1 or not x.shape[3] or weights.shape[3] % x.shape[3]:
        raise call.refuse(f"weights of shape {weights.shape} for {x.shape[3]} channels")
    placement = _convolution_geometry(call, x, weights, options)
    scale = read_rescale(call, weights.shape[3], w.tensor, bias, 3, options.act)
    return [
        call.check_shape(_compute_outputs(call, "depthwise", x, np.ascontiguousarray(weights[0]), placement, scale))
    ]


def _compute_outputs(call: Call, name: str, x: Array, kernel: Array, placement: Geometry, scale: Rescale) -> Array:
    """Compute the outputs of the operator `name`, conv or depthwise, by the compiled kernel, or by the definition
    where 32 bits might not hold a sum. `kernel` holds the weights as the definitions take them."""
    y = call.output()
    per_output = kernel.shape[0] * kernel.shape[1]
    if name == "conv":
        per_output *= kernel.shape[2]
    largest = per_output * int(np.abs(x).max(initial=0)) * int(np.abs(kernel).max(initial=0))
    largest += int(np.abs(scale.bias).max(initial=0))
    if largest >= 1 << 31:
        reference = {"conv": conv_reference, "depthwise": depthwise_reference}[name]
        return finish_sums(reference(x, kernel, placement), scale).astype(y.dtype)

    run: Callable[..., Any] = {"conv": convolve, "depthwise": convolve_depthwise}[name]
    out = np.empty((x.shape[0], *placement.out, len(scale.bias)), np.int16)
    window = Window(*placement.stride, *placement.dilation, *placement.before)
    rescaling = Scale(
        bias=scale.bias.astype(np.int32),
        q=scale.by.q,
        e=scale.by.e,
        zero=scale.zero,
        low=scale.low,
        high=scale.high,
    )
    run(np.ascontiguousarray(x), kernel, window, rescaling, out)
    return out.astype(y.dtype)


def finish_sums(sums: Ints, scale: Rescale) -> Ints:
    """Return the outputs of sums: bias added, rescaled, clamped. This is the definition that kernels are tested
    against."""
    return np.clip(apply_multiplier(sums + scale.bias, scale.by) + scale.zero, scale.low, scale.high)


def conv_reference(x: Array, kernel: Array, placement: Geometry) -> Ints:
    """Return the int64 sums of a convolution, `[n, y, x, out]`, by definition, before bias and rescaling. It runs where
    32 bits might not hold a sum, and kernels are tested against it. x: `[n, h, w, in]`, kernel: `[h, w, in, out]`."""
    out = np.zeros((x.shape[0], *placement.out, kernel.shape[3]), np.int64)
    for patch, ky, kx, rows, columns in _patches(x, kernel.shape[:2], placement):
        out[:, rows, columns] += np.einsum("nyxi,io->nyxo", patch, kernel[ky, kx].astype(np.int64))
    return out


def depthwise_reference(x: Array, kernel: Array, placement: Geometry) -> Ints:
    """Return the int64 sums of a depthwise convolution, `[n, y, x, channel]`, by definition, before bias and rescaling.
    It runs where 32 bits might not hold a sum, and kernels are tested against it. kernel: `[h, w, channel]`."""
    times = kernel.shape[2] // x.shape[3]
    out = np.zeros((x.shape[0], *placement.out, kernel.shape[2]), np.int64)
    for patch, ky, kx, rows, columns in _patches(x, kernel.shape[:2], placement):
        out[:, rows, columns] += np.repeat(patch, times, axis=3) * kernel[ky, kx].astype(np.int64)
    return out


def _patches(x: Array, window: tuple[int, ...], placement: Geometry) -> Any:
    """Yield, for each cell of the window, the inputs under it as int64, the cell, and the outputs that use them."""
    for ky in range(window[0]):
        rows, ys = _slices_of_cell(ky, 0, x.shape[1], placement)
        for kx in range(window[1]):
            columns, xs = _slices_of_cell(kx, 1, x.shape[2], placement)
            yield x[:, ys, xs].astype(np.int64), ky, kx, rows, columns


def _slices_of_cell(cell: int, axis: int, size: int, placement: Geometry) -> tuple[slice, slice]:
    """Return, along one axis, the outputs for which a cell of the window is inside the input, and the inputs under the
    cell there."""
    first = cell * placement.dilation[axis] - placement.before[axis]
    stride = placement.stride[axis]
    low = max(-(first // stride), 0)
    high = max(min((size - 1 - first) // stride + 1, placement.out[axis]), low)
    start = low * stride + first
    return slice(low, high), slice(start, start + (high - low) * stride, stride)


@operator(1, "uint8, int8")
def average_pool(call: Call) -> list[Array]:
    """The mean of the cells of a window that lie in the input, halves away from zero."""
    options = call.option(PoolOptions)
    x = call.input(0)
    y = call.output()
    call.types((x.tensor, y), "uint8", "int8")
    if x.tensor.type != y.type or x.array.ndim != 4:
        raise call.refuse(f"{x.tensor.type} of shape {x.array.shape} to {y.type}")
    window = (options.filter_h, options.filter_w)
    placement = geometry(call, x.array.shape, window, (options.stride_h, options.stride_w), (1, 1), options.padding)
    total = np.zeros((x.array.shape[0], *placement.out, x.array.shape[3]), np.int64)
    count = np.zeros((1, *placement.out, 1), np.int64)
    for patch, _ky, _kx, rows, columns in _patches(x.array, window, placement):
        total[:, rows, columns] += patch
        count[:, rows, columns] += 1
    if not count.all():
        raise call.refuse("a window without a cell in the input")
    mean = np.where(total > 0, (total + count // 2) // count, -((count // 2 - total) // count))
    return [call.check_shape(call.clamp(mean, options.act))]


@operator(9, "uint8, int8; a scale for each channel: int8")
def fully_connected(call: Call) -> list[Array]:
    """Sums over rows of weights, rescaled with one multiplier or one for each output channel, and rounded once."""
    options = call.option(FullyConnectedOptions)
    x = call.input(0)
    w = call.input(1)
    bias = call.optional(2)
    y = call.output()
    call.types((x.tensor, y), "uint8", "int8")
    if not x.tensor.type == w.tensor.type == y.type:
        raise call.refuse(f"{x.tensor.type} with weights of {w.tensor.type} to {y.type}")
    _refuse_variants(call, options)
    per_channel = len(w.tensor.scale) > 1
    if per_channel:
        _check_channel_scales(call, w)
    zw = 0 if per_channel else call.scale_and_zero(w.tensor)[1]  # the kernel ignores zero points of channels
    _, zx = call.scale_and_zero(x.tensor)
    rows = x.array.reshape(-1, w.array.shape[1]).astype(np.int64) - zx
    sums = rows @ (w.array.astype(np.int64) - zw).T
    if bias is not None:
        sums += bias.array.astype(np.int64).reshape(-1)
    values = _rescale_sums(call, sums) + call.scale_and_zero(y)[1]
    if values.size != prod(y.shape):
        raise call.refuse(f"an output of shape {y.shape} from {values.shape}")
    return [call.clamp(values, options.act).reshape(y.shape)]


def _rescale_sums(call: Call, sums: Ints) -> Ints:
    """Return sums at the output's scale, by one multiplier or one for each output channel."""
    sx, _ = call.scale_and_zero(call.input(0).tensor)
    sy, _ = call.scale_and_zero(call.output())
    reals = [sx * sw / sy for sw in call.input(1).tensor.scale]
    if len(reals) > 1:
        by = multipliers(reals)
    else:
        by = multiplier(reals[0])
    return apply_multiplier_once(sums, by)


def _refuse_variants(call: Call, options: FullyConnectedOptions) -> None:
    """Raise UnsupportedError for a fully connected operator that the twin does not compute: another format of the
    weights, or shapes or a bias that do not fit."""
    x = call.input(0)
    w = call.input(1)
    bias = call.optional(2)
    if options.weights_format:
        name = WEIGHTS_FORMATS.get(options.weights_format, str(options.weights_format))
        raise call.refuse(f"weights format {name}")
    if w.array.ndim != 2 or not w.array.size or x.array.size % w.array.shape[1]:
        raise call.refuse(f"input of shape {x.array.shape} with weights of shape {w.array.shape}")
    if options.keep_num_dims and (not x.array.ndim or x.array.shape[-1] != w.array.shape[1]):
        raise call.refuse(f"keep_num_dims for an input of shape {x.array.shape} with weights of shape {w.array.shape}")
    if bias is not None:
        call.types((bias.tensor,), "int32")
        if bias.array.size != w.array.shape[0]:
            raise call.refuse(f"a bias of {bias.array.size} for {plural(w.array.shape[0], 'channel')}")


def _check_channel_scales(call: Call, weights: TensorValue) -> None:
    """Raise UnsupportedError for scales per channel that are not one positive number for each row of int8 weights."""
    call.types((weights.tensor,), "int8")
    scales = weights.tensor.scale
    axis = weights.tensor.axis
    if len(scales) != weights.array.shape[0] or axis != 0:
        raise call.refuse(f"weights with {plural(len(scales), 'scale')} along dimension {axis}")
    if not all(np.isfinite(scale) and scale > 0 for scale in scales):
        raise call.refuse("a scale that is not a positive number")


_X = 0  # input of an LSTM by number, as those below (DARWINN_TWIN 4)
_W = range(1, 5)
_V = range(5, 9)
_BIASES = range(12, 16)
_H = 18  # a variable tensor
_C = 19  # likewise
_NOT_COMPUTED = (9, 10, 11, 16, 17, 20, 21, 22, 23)  # peephole, projection, layer norm
_GATE_BITS = 3  # integer bits of the arguments of gates
_BITS = 16  # of gates
_TANH = 4  # TFLite's number of the activation
_GATE_SCALE = np.float32(4096)  # 2^12: 16 bits with a sign and 3 integer bits


class _Gate(NamedTuple):
    w: Ints
    v: Ints
    bias: Ints  # with the part of the zero point
    recurrent_bias: Ints
    by: Multiplier
    recurrent_by: Multiplier


@operator(44, "int8, state int8 and int16")
def sequence_lstm(call: Call) -> list[Array]:
    """A long short-term memory over time, in fixed point; its state stays from run to run."""
    options = call.option(SequenceLstmOptions)
    x = call.input(_X)
    y = call.output()
    h = call.input(_H)
    c = call.input(_C)
    _refuse_recurrent_variants(call, options)
    sequence = x.array.astype(np.int64)
    if not options.time_major:
        sequence = sequence.swapaxes(0, 1)
    gates = [_read_gate(call, number) for number in range(4)]
    power = _scale_exponent(call, c.tensor.scale)
    scale, zero = call.scale_and_zero(call.intermediates[4])
    by = multiplier(float(np.float32(2.0**-30 / scale)))
    clip = None
    if options.cell_clip > 0:
        clip = min(int(options.cell_clip / 2.0**power), 32767)
    hidden = h.array.astype(np.int64)
    cell = c.array.astype(np.int64)
    steps: list[Ints] = []
    for step in sequence:
        acts = [_clip_int16(apply_multiplier(step @ gate.w.T + gate.bias, gate.by)) for gate in gates]
        acts = [
            _clip_int16(a + apply_multiplier(hidden @ gate.v.T + gate.recurrent_bias, gate.recurrent_by))
            for a, gate in zip(acts, gates, strict=True)
        ]
        i, f, o = (logistic(acts[number], _GATE_BITS, _BITS) for number in (0, 1, 3))
        g = tanh(acts[2], _GATE_BITS, _BITS)
        cell = _clip_int16(right(f * cell, 15) + right(i * g, 30 + power))
        if clip is not None:
            cell = np.clip(cell, -clip, clip)
        hidden = np.clip(apply_multiplier(o * tanh(cell, 15 + power, _BITS), by) + zero, -128, 127)
        steps.append(hidden)
    call.state[h.tensor.name] = hidden.astype(h.tensor.dtype)
    call.state[c.tensor.name] = cell.astype(c.tensor.dtype)
    out: Any = np.stack(steps).astype(y.dtype)
    if not options.time_major:
        out = out.swapaxes(0, 1)
    return [call.check_shape(np.ascontiguousarray(out))]


def _refuse_recurrent_variants(call: Call, options: SequenceLstmOptions) -> None:
    """Raise UnsupportedError for an LSTM that the twin does not compute."""
    call.types((call.input(_X).tensor, call.input(_H).tensor, call.output()), "int8")
    call.types((call.input(_C).tensor,), "int16")
    extra = [number for number in _NOT_COMPUTED if call.optional(number) is not None]
    if extra:
        raise call.refuse(f"input {extra[0]} (peephole, projection or layer norm)")
    if any(call.optional(number) is None for number in (*_W, *_V, *_BIASES)):
        raise call.refuse("a gate without weights or bias (coupled gates)")
    if options.act != _TANH or options.proj_clip > 0:
        raise call.refuse(f"activation {options.act} or a projection clip of {options.proj_clip}")
    _refuse_recurrent_shapes(call, options)


def _refuse_recurrent_shapes(call: Call, options: SequenceLstmOptions) -> None:
    """Raise UnsupportedError where input, weights, biases or state of an LSTM do not fit together in type or shape."""
    x = call.input(_X).array
    h = call.input(_H).array
    c = call.input(_C).array
    units = call.input(_W[0]).array.shape[0]
    inputs = x.shape[-1]
    shapes = [(_W, (units, inputs)), (_V, (units, units)), (_BIASES, (units,))]
    if x.ndim != 3 or not x.size or len(call.intermediates) < 5:
        raise call.refuse(f"input of shape {x.shape} with {plural(len(call.intermediates), 'intermediate')}")
    for numbers, shape in shapes:
        for number in numbers:
            call.types((call.input(number).tensor,), "int32" if numbers is _BIASES else "int8")
            if call.input(number).array.shape != shape:
                raise call.refuse(f"input {number} of shape {call.input(number).array.shape}, not {shape},")
    batch = x.shape[1 if options.time_major else 0]
    if not h.shape == c.shape == (batch, units):
        raise call.refuse(f"state of shapes {h.shape} and {c.shape}")


def _read_gate(call: Call, number: int) -> _Gate:
    """Return gate `number` of an LSTM in the order of its inputs: input, forget, cell, output. Zero points are part
    of the biases."""
    x = call.input(_X).tensor
    h = call.input(_H).tensor
    w = call.input(_W[number])
    v = call.input(_V[number])
    bias = call.input(_BIASES[number])
    (sx, zx) = call.scale_and_zero(x)
    (sh, zh) = call.scale_and_zero(h)
    weights = w.array.astype(np.int64)
    recurrent = v.array.astype(np.int64)
    by = float(np.float32(np.float32(call.scale_and_zero(w.tensor)[0]) * np.float32(sx)) * _GATE_SCALE)
    recurrent_by = float(np.float32(np.float32(call.scale_and_zero(v.tensor)[0]) * np.float32(sh)) * _GATE_SCALE)
    return _Gate(
        w=weights,
        v=recurrent,
        bias=bias.array.astype(np.int64) - zx * weights.sum(axis=1),
        recurrent_bias=-zh * recurrent.sum(axis=1),
        by=multiplier(by),
        recurrent_by=multiplier(recurrent_by),
    )


def _scale_exponent(call: Call, scale: tuple[float, ...]) -> int:
    """Return s for a cell state of scale 2^s, -15 <= s <= 0. Raises UnsupportedError for any other scale."""
    fraction, exponent = np.frexp(scale[0] if len(scale) == 1 else 0.0)
    if fraction != 0.5 or not -15 <= exponent - 1 <= 0:
        raise call.refuse(f"a cell state of scale {scale}")
    return int(exponent) - 1


def _clip_int16(values: Any) -> Ints:
    """Clip to the range of int16."""
    return np.clip(values, -(1 << 15), (1 << 15) - 1)
