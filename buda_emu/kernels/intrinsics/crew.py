"""The code of `kernels/crew.py`: memory that several threads change."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from buda_emu.kernels.crew import add, breathe, read
from buda_emu.kernels.intrinsics.code import SIZE, Builder, Value


def _word(builder: Builder, address: Value, number: Value) -> Value:
    return builder.gep(builder.inttoptr(address, SIZE.as_pointer()), [number])


@type_callable(add)
def _type_add(_context: Any) -> Any:
    return lambda _address, _word, _value: signature(types.int64, types.int64, types.int64, types.int64)


@lower_builtin(add, types.int64, types.int64, types.int64)
def _lower_add(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    address, number, value = arguments
    return builder.atomic_rmw("add", _word(builder, address, number), value, "seq_cst")


@type_callable(read)
def _type_read(_context: Any) -> Any:
    return lambda _address, _word: signature(types.int64, types.int64, types.int64)


@lower_builtin(read, types.int64, types.int64)
def _lower_read(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    return builder.load_atomic(_word(builder, *arguments), "seq_cst", 8)


@type_callable(breathe)
def _type_breathe(_context: Any) -> Any:
    return lambda: types.none


@lower_builtin(breathe)
def _lower_breathe(context: Any, builder: Builder, _call: Any, _arguments: Any) -> Value:
    if context.codegen().magic_tuple()[0].startswith("x86_64"):
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
    return context.get_dummy_value()
