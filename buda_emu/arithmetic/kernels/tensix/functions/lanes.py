"""Loads and stores of rows of lanes (DEVICE_NUMERICS 3.2); `buda_emu.arithmetic.tensix.lanes` is the definition."""

from typing import Any, Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper
from buda_emu.arithmetic.kernels.tensix.functions.fma import LANES
from buda_emu.spec.single import INFINITY, MAGNITUDE, SIGN

U = np.uint32

_ROW: Final = np.uint64(LANES)

BF16: Final = 0
FP16: Final = 1
FP32: Final = 2
INT32: Final = 3

_SIGN: Final = U(SIGN)
_MAGNITUDE: Final = U(MAGNITUDE)
_INFINITY: Final = U(INFINITY)


@helper
def load_row(dst: Any, mode: int, lanes: Any, place: Any) -> None:
    """Load Dst datums into lanes from `place` on; mode is BF16, FP16, FP32 or INT32."""
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
    """Store lanes from `place` on as Dst datums of the mode where `mask` is set; the others are those of `keep`."""
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
