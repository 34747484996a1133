"""LLVM code of `kernels/fma.py`."""

from typing import Any

from numba.core import types

from buda_emu.arithmetic.jit.llvm_code import Builder, Value, intrinsic, llvm_fma
from buda_emu.arithmetic.kernels.fma import fma


@intrinsic(fma, types.float64, *[types.float64] * 3)
@intrinsic(fma, types.float32, *[types.float32] * 3)
def _fma(_context: Any, builder: Builder, a: Value, b: Value, c: Value) -> Value:
    """Emit `fma`, the multiply-add with one rounding, as the processor's instruction, and return its value."""
    return llvm_fma(builder, a.type, a, b, c)
