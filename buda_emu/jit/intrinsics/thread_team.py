"""The code of `jit/job_slot.py`: memory that several threads change."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from buda_emu.jit.intrinsics.code import SIZE, Builder, Value
from buda_emu.jit.job_slot import ARGUMENTS, CODE, add, pause, read, work_on

__all__ = ["emit_add", "emit_pause", "emit_read", "word_place"]


def word_place(builder: Builder, address: Value, number: Value) -> Value:
    """Where int64 number `number` after an address is."""
    return builder.gep(builder.inttoptr(address, SIZE.as_pointer()), [number])


def emit_add(builder: Builder, address: Value, number: Value, value: Value) -> Value:
    """`job_slot.add`."""
    return builder.atomic_rmw("add", word_place(builder, address, number), value, "seq_cst")


def emit_read(builder: Builder, address: Value, number: Value) -> Value:
    """`job_slot.read`."""
    return builder.load_atomic(word_place(builder, address, number), "seq_cst", 8)


def emit_pause(context: Any, builder: Builder) -> None:
    """`job_slot.pause`."""
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
    return lambda _slot: signature(types.int64, types.int64)


@lower_builtin(work_on, types.int64)
def _lower_work_on(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    (slot,) = arguments
    code = builder.inttoptr(emit_read(builder, slot, SIZE(CODE)), ir.FunctionType(SIZE, [SIZE]).as_pointer())
    return builder.call(code, [builder.ptrtoint(word_place(builder, slot, SIZE(ARGUMENTS)), SIZE)])


@type_callable(pause)
def _type_pause(_context: Any) -> Any:
    return lambda: types.none


@lower_builtin(pause)
def _lower_pause(context: Any, builder: Builder, _call: Any, _arguments: Any) -> Value:
    emit_pause(context, builder)
    return context.get_dummy_value()
