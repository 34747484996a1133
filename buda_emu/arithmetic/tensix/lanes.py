"""What vector lanes do besides arithmetic: loads, stores, conversions, orders, and which datums a pass reaches.

DEVICE_NUMERICS 3.2. A lane holds 32 bits. A Dst image has one uint32 per datum: the fp32 pattern, the integer in sign
and magnitude, or the 16 bits of bf16 or fp16 in the lower half.
"""

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.spec.single import FRACTION, HIDDEN, MAGNITUDE, SIGN
from buda_emu.support.errors import UnsupportedError

DstMode = Literal["bf16", "fp16", "fp32", "int32"]
"""What the datums of Dst are: 16 bits of family B or A, or 32 bits."""

VectorMode = Literal["r", "c", "rc"]

_SIGN: Final = np.uint32(SIGN)
_MAGNITUDE: Final = np.uint32(MAGNITUDE)
_FRACTION: Final = np.uint32(FRACTION)
FAMILY_SHIFT: Final = 112
"""How much larger the exponent field of a single is than that of the 5-bit family."""


def load(dst: U32, mode: DstMode) -> U32:
    """Return Dst datums of a mode as lanes of the vector unit: floats as singles, integers as they are (DEVICE_NUMERICS
    3.2). fp16's exponent 31 is an ordinary one, and its exponent 0 stays 0, with the same fraction."""
    if mode == "bf16":
        return dst << np.uint32(16)
    if mode != "fp16":
        return dst.copy()
    exponent = dst >> np.uint32(10) & np.uint32(31)
    wide = np.where(exponent == 0, np.uint32(0), exponent + np.uint32(FAMILY_SHIFT))
    return (
        (dst & np.uint32(0x8000)) << np.uint32(16) | wide << np.uint32(23) | (dst & np.uint32(0x3FF)) << np.uint32(13)
    )


def store(lanes: U32, mode: DstMode) -> U32:
    """Return lanes of the vector unit as Dst datums of a mode (DEVICE_NUMERICS 3.2). Floats are truncated; exponent 0
    becomes a signed zero, and of fp16 also what is too small; what is too large for fp16 becomes its last code."""
    if mode == "int32":
        return lanes.copy()
    sign = lanes & _SIGN
    exponent = (lanes >> np.uint32(23) & np.uint32(255)).astype(np.int32)
    if mode != "fp16":
        flushed = np.where(exponent == 0, sign, lanes)
        if mode == "bf16":
            return flushed >> np.uint32(16)
        return flushed
    narrow = exponent - FAMILY_SHIFT
    code = narrow.astype(np.uint32) << np.uint32(10) | (lanes & _FRACTION) >> np.uint32(13)
    code = np.where(narrow <= 0, np.uint32(0), np.where(narrow > 31, np.uint32(0x7FFF), code))
    return sign >> np.uint32(16) | code


def to_integer(x: U32, limit: int) -> U32:
    """Return fp32 patterns as integers in sign and magnitude, rounded to nearest, ties away from zero, with a magnitude
    of at most `limit`, which infinities and NaNs get; zero is +0."""
    exponent = (x >> np.uint32(23) & np.uint32(255)).astype(np.int64) - 127
    significand = (x & _FRACTION | np.uint32(HIDDEN)).astype(np.int64)
    drop = np.clip(23 - exponent, 1, 25)
    rounded = (significand + (np.int64(1) << (drop - 1))) >> drop
    magnitude = np.where(exponent >= 16, limit, np.minimum(rounded, limit))
    magnitude = np.where(exponent < -1, 0, magnitude).astype(np.uint32)
    return np.where(magnitude == 0, np.uint32(0), x & _SIGN | magnitude)


def to_float(x: U32) -> U32:
    """Return integers in sign and magnitude as fp32 patterns, rounded to nearest even; the sign stays on a zero,
    too."""
    magnitude = (x & _MAGNITUDE).astype(np.float32).view(np.uint32)
    return x & _SIGN | magnitude


def greater(a: U32, b: U32) -> U32:
    """Return in each lane the larger of two patterns in the order of sign and magnitude, where -0 lies below +0 and
    NaNs outermost."""
    return np.where(_sort_key(a) >= _sort_key(b), a, b)


def touched_mask(vector: VectorMode, whole_faces: bool = False) -> NDArray[np.bool_]:
    """Return bool[32, 32]: the datums of a tile, rows and columns as usual, that a vector mode computes
    (DEVICE_NUMERICS 3.2).

    `rc` all, `c` faces 0 and 2 (columns 0 to 15), `r` two passes over faces 0 and 1 (rows 0 to 3). The others keep what
    the input's copy left in Dst. `whole_faces`: the function always runs through the faces that it touches, so that `r`
    reaches rows 0 to 15. Raises UnsupportedError for another vector mode.
    """
    mask = np.zeros((32, 32), dtype=np.bool_)
    regions = {"rc": (32, 32), "c": (32, 16), "r": (4, 32)}
    if whole_faces:
        regions["r"] = 16, 32
    if vector not in regions:
        raise UnsupportedError(f"vector mode {vector!r}: r, c and rc are known (DEVICE_NUMERICS 3.2)")
    rows, columns = regions[vector]
    mask[:rows, :columns] = True
    return mask


def lane_positions(step: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return row and column inside a face of the 32 lanes in pass `step`, 0 to 7, of the vector unit over it."""
    lane = np.arange(32)
    return 4 * (step >> 1) + (lane >> 3), 2 * (lane & 7) + (step & 1)


def _sort_key(x: U32) -> NDArray[np.int32]:
    """Return fp32 patterns as integers that sort as the patterns do by sign and magnitude."""
    return np.where(x & _SIGN != 0, x ^ _MAGNITUDE, x).astype(np.uint32).view(np.int32)
