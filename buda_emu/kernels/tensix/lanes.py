"""Loads, stores and conversions of rows of lanes (DEVICE_NUMERICS 3.2); `buda_emu.tensix.lanes` is the definition."""

from typing import Any, Final

import numpy as np

from buda_emu.kernels.jit import helper
from buda_emu.kernels.tensix.fma import LANES

U = np.uint32
I = np.int32  # noqa: E741 # with U it keeps the arithmetic in 32 bits, where numba would widen it

_ROW: Final = np.uint64(LANES)

BF16: Final = 0
FP16: Final = 1
FP32: Final = 2
INT32: Final = 3

_SIGN: Final = U(0x80000000)
_MAGNITUDE: Final = U(0x7FFFFFFF)
_INFINITY: Final = U(0x7F800000)
_FRACTION: Final = U(0x007FFFFF)
_HIDDEN: Final = U(0x00800000)


@helper
def load_row(dst: Any, mode: int, lanes: Any, place: Any) -> None:
    """Dst datums to lanes; mode is BF16, FP16, FP32 or INT32."""
    if mode == BF16:
        for i in range(_ROW):
            lanes[place + i] = U(dst[i] << U(16))
    elif mode == FP16:
        for i in range(_ROW):
            d = dst[i]
            wide = U(U(U(d & U(0x7FFF)) << U(13)) + U(0x38000000))
            small = U(U(d & U(0x3FF)) << U(13))
            magnitude = small if U(d & U(0x7C00)) == U(0) else wide
            lanes[place + i] = U(U(U(d & U(0x8000)) << U(16)) | magnitude)
    else:
        for i in range(_ROW):
            lanes[place + i] = dst[i]


@helper
def store_row(lanes: Any, place: Any, mode: int, keep: Any, mask: Any, dst: Any) -> None:
    """Lanes to Dst datums where `mask` is set; the others are those of `keep`."""
    if mode == BF16:
        for i in range(_ROW):
            x = lanes[place + i]
            d = U(x & _SIGN) if U(x & _INFINITY) == U(0) else x
            dst[i] = U(d >> U(16)) if mask[i] else keep[i]
    elif mode == FP16:
        for i in range(_ROW):
            x = lanes[place + i]
            size = U(x & _MAGNITUDE)
            code = U(U(size - U(0x38000000)) >> U(13))
            code = U(0) if size < U(0x38800000) else code
            code = U(0x7FFF) if size >= U(0x48000000) else code
            dst[i] = U(U(U(x & _SIGN) >> U(16)) | code) if mask[i] else keep[i]
    elif mode == FP32:
        for i in range(_ROW):
            x = lanes[place + i]
            d = U(x & _SIGN) if U(x & _INFINITY) == U(0) else x
            dst[i] = d if mask[i] else keep[i]
    else:
        for i in range(_ROW):
            dst[i] = lanes[place + i] if mask[i] else keep[i]


@helper
def to_integer_row(lanes: Any, x: Any, limit: int, out: Any) -> None:
    """fp32 to the nearest integer, ties away from zero, magnitude at most `limit`."""
    most = U(limit)
    for i in range(_ROW):
        a = lanes[x + i]
        e = I(I(U(U(a >> U(23)) & U(255))) - I(127))
        drop = U(U(min(max(I(I(23) - e), I(1)), I(25))) & U(31))
        size = U(U(U(U(U(a & _FRACTION) | _HIDDEN) + U(U(1) << U(drop - U(1))))) >> drop)
        size = most if (e >= I(16)) | (size > most) else size
        size = U(0) if e < I(-1) else size
        lanes[out + i] = U(0) if size == U(0) else U(U(a & _SIGN) | size)


@helper
def to_float_row(lanes: Any, x: Any, out: Any) -> None:
    """An integer in sign and magnitude to fp32."""
    for i in range(_ROW):
        lanes[out + i] = U(U(lanes[x + i] & _SIGN) | np.float32(I(lanes[x + i] & _MAGNITUDE)).view(np.uint32))


@helper
def greater_row(lanes: Any, x: Any, y: Any, out: Any) -> None:
    """The larger in the order of sign and magnitude."""
    for i in range(_ROW):
        a, b = lanes[x + i], lanes[y + i]
        a_key = I(a ^ _MAGNITUDE) if a >= _SIGN else I(a)
        b_key = I(b ^ _MAGNITUDE) if b >= _SIGN else I(b)
        lanes[out + i] = a if a_key >= b_key else b
