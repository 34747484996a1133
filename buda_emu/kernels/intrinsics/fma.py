"""The code of `kernels/fma.py`."""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import lower_builtin, type_callable

from buda_emu.jit.intrinsics.code import llvm_fma
from buda_emu.kernels.fma import fma


@type_callable(fma)
def _type_fma(_context: Any) -> Any:
    def typer(a: Any, b: Any, c: Any) -> Any:
        return a if a == b == c and a in (types.float32, types.float64) else None

    return typer


@lower_builtin(fma, types.float32, types.float32, types.float32)
@lower_builtin(fma, types.float64, types.float64, types.float64)
def _lower_fma(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
    return llvm_fma(builder, context.get_value_type(signature.return_type), *arguments)
