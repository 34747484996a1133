"""The code of `jit/job_slot.py`: memory that several threads change."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from buda_emu.arithmetic.jit.intrinsics.code import SIZE, Builder, Value
from buda_emu.arithmetic.jit.intrinsics.declare import intrinsic
from buda_emu.arithmetic.jit.job_slot import ARGUMENTS, CODE, add, pause, read, work_on


def word_place(builder: Builder, address: Value, number: Value) -> Value:
    """Return the address of int64 number `number` after an address."""
    return builder.gep(builder.inttoptr(address, SIZE.as_pointer()), [number])


def emit_add(builder: Builder, address: Value, number: Value, value: Value) -> Value:
    """Emit `job_slot.add`: an atomic addition that returns the old value."""
    return builder.atomic_rmw("add", word_place(builder, address, number), value, "seq_cst")


def emit_read(builder: Builder, address: Value, number: Value) -> Value:
    """Emit `job_slot.read`: a read from memory that is never left out."""
    return builder.load_atomic(word_place(builder, address, number), "seq_cst", 8)


def emit_pause(context: Any, builder: Builder) -> None:
    """Emit `job_slot.pause`, where the processor has such an instruction."""
    if context.codegen().magic_tuple()[0].startswith("x86_64"):
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])


@intrinsic(add, types.int64, types.intp, types.intp, types.intp)
def _add(_context: Any, builder: Builder, *arguments: Value) -> Value:
    return emit_add(builder, *arguments)


@intrinsic(read, types.int64, types.intp, types.intp)
def _read(_context: Any, builder: Builder, *arguments: Value) -> Value:
    return emit_read(builder, *arguments)


@intrinsic(work_on, types.int64, types.intp)
def _work_on(_context: Any, builder: Builder, slot: Value) -> Value:
    code = builder.inttoptr(emit_read(builder, slot, SIZE(CODE)), ir.FunctionType(SIZE, [SIZE]).as_pointer())
    return builder.call(code, [builder.ptrtoint(word_place(builder, slot, SIZE(ARGUMENTS)), SIZE)])


intrinsic(pause, types.none)(emit_pause)
