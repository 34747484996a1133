"""Rows of 256 lanes of the vector unit in kernels: loads, stores (DEVICE_NUMERICS 3.2) and single instructions.

`buda_emu.arithmetic.tensix.lanes` defines loads and stores. In a kernel an instruction (`execute_row`) is vector code
(`intrinsics/loads_and_stores.py`); called from Python it computes the same in numpy, and so defines that code.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper
from buda_emu.arithmetic.kernels.tensix.functions.fma import LANES, fma_any
from buda_emu.arithmetic.kernels.tensix.words import flush
from buda_emu.spec.single import FRACTION, HIDDEN, INFINITY, MAGNITUDE, SIGN

U = np.uint32

_ROW: Final = np.uint64(LANES)

# What Dst holds; only that the codes differ counts.
BF16: Final = 0
FP16: Final = 1
FP32: Final = 2
INT32: Final = 3

_SIGN: Final = U(SIGN)
_MAGNITUDE: Final = U(MAGNITUDE)
_INFINITY: Final = U(INFINITY)


@helper
def load_row(dst: Any, mode: int, lanes: Any, place: Any) -> None:
    """Load LANES Dst datums into the lanes from `place` on; mode is BF16, FP16, FP32 or INT32. Values do not change,
    but of fp16's denormals, whose bits of fraction get exponent 0, and of its exponent 31, which is an ordinary one
    (3.2)."""
    if mode == BF16:
        for i in range(_ROW):
            lanes[place + i] = U(dst[i] << U(16))
    elif mode == FP16:
        for i in range(_ROW):
            d = dst[i]
            wide = U(U(U(d & U(0x7FFF)) << U(13)) + U(0x38000000))  # exponents are 112 more in a single
            small = U(U(d & U(0x3FF)) << U(13))
            if U(d & U(0x7C00)) == U(0):
                wide = small
            lanes[place + i] = U(U(U(d & U(0x8000)) << U(16)) | wide)
    else:
        for i in range(_ROW):
            lanes[place + i] = dst[i]


@helper
def store_row(lanes: Any, place: Any, mode: int, keep: Any, mask: Any, dst: Any) -> None:
    """Store the lanes from `place` on in `dst` as Dst datums of the mode, truncated (3.2), where `mask` is set; the
    other datums are taken from `keep`. Exponents too small give signed zeros, those too large for fp16 its last
    code."""
    if mode == BF16:
        for i in range(_ROW):
            d = flush(lanes[place + i])
            dst[i] = U(d >> U(16)) if mask[i] else keep[i]
    elif mode == FP16:
        for i in range(_ROW):
            x = lanes[place + i]
            size = U(x & _MAGNITUDE)
            code = U(U(size - U(0x38000000)) >> U(13))
            if size < U(0x38800000):  # exponent 113, fp16's 1; and 144, above its 31 (3.2)
                code = U(0)
            if size >= U(0x48000000):
                code = U(0x7FFF)
            dst[i] = U(U(U(x & _SIGN) >> U(16)) | code) if mask[i] else keep[i]
    elif mode == FP32:
        for i in range(_ROW):
            d = flush(lanes[place + i])
            dst[i] = d if mask[i] else keep[i]
    else:
        for i in range(_ROW):
            dst[i] = lanes[place + i] if mask[i] else keep[i]


# An instruction is: operation, register of the result, three registers of operands, and a number: the places of a
# shift, the bound of TO_INTEGER, the table of LOOKUP; with UNLESS the third operand of MULTIPLY is the condition where
# nobody reads the result. A condition is a word whose sign bit tells.
FMA: Final = 0
MULTIPLY: Final = 1
ADD_FLOATS: Final = 2
SUBTRACT_FLOATS: Final = 3
MERGE: Final = 4
AND: Final = 5
OR: Final = 6
SHIFT_LEFT: Final = 7
SHIFT_RIGHT: Final = 8
EXPONENT: Final = 9
ADD: Final = 10
SUBTRACT: Final = 11
EQUAL: Final = 12
LESS: Final = 13
SELECT: Final = 14
LOOKUP: Final = 15
TO_INTEGER: Final = 16
TO_FLOAT: Final = 17
GREATER: Final = 18

UNLESS: Final = 1  # in the place of the number of a MULTIPLY

TABLE_BREAKS: Final = 5
"""A row of `tables` has this many ascending breaks, unused ones 2^32 - 1, and then one value more."""

_Row = NDArray[np.uint32]
_ONE: Final = np.uint32(0x3F800000)  # the bits of the single 1.0


def execute_row(code: Any, step: int, lanes: Any, tables: Any, special: Any, blackhole: bool) -> None:
    """Execute instruction `step` of `code`, int32[n, 6], on all lanes; registers of LANES lanes lie one after the other
    in `lanes`, uint32. The number in a LOOKUP is a row of `tables`. The result's register is not one of the operands'.

    special: int32[1], set to a negative number where a multiply-add, product or sum may be wrong in some lanes, which
    `fma.may_be_special` finds, else to 0. Called from Python, nothing is wrong, and it is 0.
    """
    operation, out, *operands, number = code[step].tolist()
    a, b, c = (lanes[n * LANES : (n + 1) * LANES] for n in operands)
    special[0] = 0
    if operation <= SUBTRACT_FLOATS:
        result = _arithmetic(operation, a, b, c, blackhole)
    elif operation == LOOKUP:
        result = _lookup(a, tables[number])
    elif operation == TO_INTEGER:
        result = _to_integer(a, number)
    else:
        result = _SIMPLE[operation](a, b, c, np.uint32(number))
    lanes[out * LANES : (out + 1) * LANES] = result


def _arithmetic(operation: int, a: _Row, b: _Row, c: _Row, blackhole: bool) -> _Row:
    """Return the result of a multiply-add, product or sum of floats, as the chip rounds it: computed lane by lane, so
    that no lane is special."""
    if operation == MULTIPLY:
        c = np.zeros_like(a)
    elif operation != FMA:
        c = a
        a = np.full_like(a, _ONE | _SIGN * (operation == SUBTRACT_FLOATS))
    return np.array([fma_any(x, y, z, blackhole) for x, y, z in zip(a, b, c, strict=True)], np.uint32)


def _lookup(a: _Row, table: _Row) -> _Row:
    """Return for each lane the value of the range in which it lies: `table` has ascending breaks, then the value below
    each and one for the rest."""
    return table[TABLE_BREAKS + np.searchsorted(table[:TABLE_BREAKS], a, side="right")]


def _to_integer(a: _Row, limit: int) -> _Row:
    """Return fp32 patterns converted to the nearest integers in sign and magnitude: ties away from zero, magnitude at
    most `limit`, which NaN and exponents from 16 on get, and +0 for zero (3.2)."""
    e = (a >> 23 & 255).astype(np.int64) - 127
    drop = np.clip(23 - e, 1, 25)
    size = ((a & FRACTION | HIDDEN).astype(np.int64) + (1 << (drop - 1))) >> drop
    size = np.where((e >= 16) | (size > limit), limit, size)
    size = np.where(e < -1, 0, size).astype(np.uint32)
    return np.where(size == 0, np.uint32(0), a & _SIGN | size)


def _order_key(a: _Row) -> NDArray[np.int32]:
    """Return words of sign and magnitude as integers of the same order."""
    return np.where(a >= _SIGN, a ^ _MAGNITUDE, a).view(np.int32)


_SIMPLE: Final[Mapping[int, Callable[[_Row, _Row, _Row, np.uint32], Any]]] = MappingProxyType(
    {
        MERGE: lambda a, b, c, _: a & b | c,
        AND: lambda a, b, _c, _: a & b,
        OR: lambda a, b, _c, _: a | b,
        SHIFT_LEFT: lambda a, _b, _c, number: a << number,
        SHIFT_RIGHT: lambda a, _b, _c, number: a >> number,
        EXPONENT: lambda a, _b, _c, _: a >> 23 & 255,
        ADD: lambda a, b, _c, _: a + b,
        SUBTRACT: lambda a, b, _c, _: a - b,
        EQUAL: lambda a, b, _c, _: np.where(a == b, np.uint32(0xFFFFFFFF), np.uint32(0)),
        LESS: lambda a, b, _c, _: np.where(a.view(np.int32) < b.view(np.int32), np.uint32(0xFFFFFFFF), np.uint32(0)),
        SELECT: lambda a, b, c, _: np.where(a >= _SIGN, b, c),
        TO_FLOAT: lambda a, _b, _c, _: a & _SIGN | (a & _MAGNITUDE).astype(np.float32).view(np.uint32),
        GREATER: lambda a, b, _c, _: np.where(_order_key(a) >= _order_key(b), a, b),
    }
)
