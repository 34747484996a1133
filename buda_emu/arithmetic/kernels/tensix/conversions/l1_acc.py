"""Accumulation in L1 as kernels (DEVICE_NUMERICS 4.6); `buda_emu.arithmetic.tensix.conversions.pack` is the
definition.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.kernels.tensix.images import TILE, as_rows
from buda_emu.spec.single import INFINITY, MAGNITUDE, SIGN
from buda_emu.support.errors import UnsupportedError

U = np.uint32
L = np.int64

_TILE: Final = np.uint64(TILE)
_SIGN: Final = U(SIGN)
_INFINITY: Final = U(INFINITY)
_MAGNITUDE: Final = U(MAGNITUDE)
_LARGEST: Final = L(0x7FEFFFFFFFFFFFFF)
_INFINITE: Final = L(0x7FF0000000000000)


def accumulate(
    start: int, stop: int, out_df: str, old: NDArray[np.unsignedinteger[Any]], new: NDArray[np.unsignedinteger[Any]]
) -> None:
    """Add tiles start..stop of `new` to `old`, [n, 32, 32] datums of Float32, Float16_b or Float16, C-contiguous."""
    adders = {"Float32": add_fp32, "Float16_b": add_bf16, "Float16": add_fp16}
    if out_df not in adders:
        raise UnsupportedError(f"accumulation in L1 as {out_df}: Float32, Float16_b and Float16 are known")
    adders[out_df](start, stop, as_rows(old), as_rows(new))


@kernel
def add_fp32(start: int, stop: int, old: NDArray[np.uint32], new: NDArray[np.uint32]) -> None:
    """Add by IEEE without denormals; there is one NaN."""
    for tile in range(start, stop):
        a = old[tile]
        b = new[tile]
        for i in range(_TILE):
            total = np.float32(U(_flush(a[i])).view(np.float32) + U(_flush(b[i])).view(np.float32)).view(np.uint32)
            a[i] = U(0x7FC00000) if U(total & _MAGNITUDE) > _INFINITY else _flush(total)


@kernel
def add_bf16(start: int, stop: int, old: NDArray[np.uint16], new: NDArray[np.uint16]) -> None:
    """In double precision, rounded once; a NaN in L1 counts as the largest double, one from the packer as a number."""
    for tile in range(start, stop):
        add_bf16_tile(old[tile], new[tile])


@helper
def add_bf16_tile(a: Any, b: Any) -> None:
    """Add one tile of Float16_b to another."""
    for i in range(_TILE):
        total = L(_bf16_as_double(L(a[i]), _LARGEST)).view(np.float64) + L(_bf16_as_double(L(b[i]), L(0))).view(
            np.float64
        )
        bits = np.float64(total).view(np.int64)
        size = bits & L(0x7FFFFFFFFFFFFFFF)
        exponent = (size >> L(52)) - L(1023 - 127)
        code = ((size + ((L(1) << L(44)) - L(1)) + ((size >> L(45)) & L(1))) >> L(45)) - (L(1023 - 127) << L(7))
        code = L(0) if exponent <= L(0) else code
        code = L(0x7F80) if exponent >= L(255) else code
        signed = code | (L(0x8000) if bits < L(0) else L(0))
        a[i] = np.uint16(L(0x7FC0) if size > _INFINITE else signed)


@kernel
def add_fp16(start: int, stop: int, old: NDArray[np.uint16], new: NDArray[np.uint16]) -> None:
    """Add in single precision, where exponent 31 is an ordinary one."""
    for tile in range(start, stop):
        a = old[tile]
        b = new[tile]
        for i in range(_TILE):
            before = U(a[i])
            x = _fp16_as_single(before)
            y = _fp16_as_single(U(b[i]))
            total = np.float32(U(x).view(np.float32) + U(y).view(np.float32)).view(np.uint32)
            size = U(total & _MAGNITUDE)
            code = U(U(U(size + U(0xFFF)) + U(U(size >> U(13)) & U(1))) >> U(13))
            code = min(U(code - U(112 << 10)), U(0x7FFF))
            code = U(0) if U(size >> U(23)) == U(112) else code
            code = U(0x7FFF) if U(size >> U(23)) < U(112) else code
            cancelled = U(0x7FFF) if U(U(before >> U(10)) & U(31)) >= U(30) else U(0)
            code = cancelled if size == U(0) else code
            a[i] = np.uint16(U(U(U(total & _SIGN) >> U(16)) | code))


@helper
def _flush(x: Any) -> Any:
    """Replace denormals by signed zeros."""
    return U(x & _SIGN) if U(x & _INFINITY) == U(0) else U(x)


@helper
def _bf16_as_double(code: Any, nan: Any) -> Any:
    """Return the pattern of a double; exponent 0 is a zero, exponent 255 an infinity, `nan` or, without one, a
    number."""
    size = code & L(0x7FFF)
    number = (size << L(45)) + (L(1023 - 127) << L(52))
    number = L(0) if size < L(0x80) else number
    number = _INFINITE if size == L(0x7F80) else number
    number = nan if (size > L(0x7F80)) & (nan != L(0)) else number
    return number | (L(-0x8000000000000000) if code >= L(0x8000) else L(0))


@helper
def _fp16_as_single(code: Any) -> Any:
    """Return the pattern of a single; exponent 0 is a signed zero."""
    size = U(code & U(0x7FFF))
    wide = U(0) if size < U(0x400) else U(U(size << U(13)) + U(0x38000000))
    return U(U(U(code & U(0x8000)) << U(16)) | wide)
