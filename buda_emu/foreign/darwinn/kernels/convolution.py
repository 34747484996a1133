"""Convolutions of 8-bit integers with sums of 32 bits, rescaled to 8 bits (DARWINN_TWIN 3, 4).

Operands come as int32 with their zero points taken off, weights with the output channel last, so that the inner loops
run along it. The caller ensures that 32 bits hold every sum.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel


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
def conv(x: Any, w: Any, window: Window, scale: Scale, out: Any) -> None:
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
def depthwise(x: Any, w: Any, window: Window, scale: Scale, out: Any) -> None:
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
