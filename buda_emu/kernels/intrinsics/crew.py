"""The code of `kernels/crew.py`: memory that several threads change."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from buda_emu.kernels.crew import ARGUMENTS, CODE, add, breathe, read, work_on
from buda_emu.kernels.intrinsics.code import SIZE, Builder, Value

__all__ = ["emit_add", "emit_breathe", "emit_read", "word_place"]


def word_place(builder: Builder, address: Value, number: Value) -> Value:
    """Where int64 number `number` behind an address is."""
    return builder.gep(builder.inttoptr(address, SIZE.as_pointer()), [number])


def emit_add(builder: Builder, address: Value, number: Value, value: Value) -> Value:
    """`crew.add`."""
    return builder.atomic_rmw("add", word_place(builder, address, number), value, "seq_cst")


def emit_read(builder: Builder, address: Value, number: Value) -> Value:
    """`crew.read`."""
    return builder.load_atomic(word_place(builder, address, number), "seq_cst", 8)


def emit_breathe(context: Any, builder: Builder) -> None:
    """`crew.breathe`."""
    if context.codegen().magic_tuple()[0].startswith("x86_64"):
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])


@type_callable(add)
def _type_add(_context: Any) -> Any:
    return lambda _address, _word, _value: signature(types.int64, types.int64, types.int64, types.int64)


@lower_builtin(add, types.int64, types.int64, types.int64)
def _lower_add(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    return emit_add(builder, *arguments)


@type_callable(read)
def _type_read(_context: Any) -> Any:
    return lambda _address, _word: signature(types.int64, types.int64, types.int64)


@lower_builtin(read, types.int64, types.int64)
def _lower_read(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    return emit_read(builder, *arguments)


@type_callable(work_on)
def _type_work_on(_context: Any) -> Any:
    return lambda _board: signature(types.int64, types.int64)


@lower_builtin(work_on, types.int64)
def _lower_work_on(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    (board,) = arguments
    code = builder.inttoptr(emit_read(builder, board, SIZE(CODE)), ir.FunctionType(SIZE, [SIZE]).as_pointer())
    return builder.call(code, [builder.ptrtoint(word_place(builder, board, SIZE(ARGUMENTS)), SIZE)])


@type_callable(breathe)
def _type_breathe(_context: Any) -> Any:
    return lambda: types.none


@lower_builtin(breathe)
def _lower_breathe(context: Any, builder: Builder, _call: Any, _arguments: Any) -> Value:
    emit_breathe(context, builder)
    return context.get_dummy_value()
