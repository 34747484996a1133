"""The part of numba's runtime that kernels need, on the C library: numba need not be there when they run."""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils

from buda_emu.arithmetic.jit.intrinsics.code import Builder, Value

_POINTER: Final = ir.IntType(8).as_pointer()
_WORD: Final = ir.IntType(32)
_SIZE: Final = ir.IntType(64)
_SIZES: Final = _SIZE.as_pointer()
_RESHAPE: Final = [_SIZE, _SIZES, _SIZES, _SIZE, _SIZES, _SIZES, _SIZE, _WORD]
_INFO_BYTES: Final = 48  # no less than numba's MemInfo has
_ALIGNMENT: Final = 16


def emit_runtime(module: Any) -> None:
    """Emit the functions of numba's runtime; unused ones are left out in the end."""
    _emit_memory(module)
    _define(module, "numba_attempt_nocopy_reshape", ir.FunctionType(_WORD, _RESHAPE), _reshape)


def _emit_memory(module: Any) -> None:
    """Emit the memory functions of numba's runtime (nrt.cpp) on the C library.

    A block begins with numba's MemInfo, whose count of references the code of numba keeps: that of one owner when it is
    made. When the count drops to none the block is freed.
    """
    void = ir.VoidType()
    info = ir.LiteralStructType([_SIZE, _POINTER, _POINTER, _POINTER, _SIZE])
    malloc = cgutils.get_or_insert_function(module, ir.FunctionType(_POINTER, [_SIZE]), "malloc")
    free = cgutils.get_or_insert_function(module, ir.FunctionType(void, [_POINTER]), "free")

    def allocate(builder: Builder, size: Value, alignment: Value) -> Value:
        before = builder.add(_SIZE(_INFO_BYTES), alignment)
        total = builder.add(size, before)
        with builder.if_then(builder.icmp_unsigned("<", total, size), likely=False):
            builder.ret(_POINTER(None))
        block = builder.call(malloc, [total])
        with builder.if_then(builder.icmp_unsigned("==", block, _POINTER(None)), likely=False):
            builder.ret(_POINTER(None))
        first = builder.ptrtoint(builder.gep(block, [before]), _SIZE)
        data = builder.inttoptr(builder.sub(first, builder.urem(first, alignment)), _POINTER)
        held = builder.bitcast(block, info.as_pointer())
        for number, value in enumerate((_SIZE(1), _POINTER(None), _POINTER(None), data, size)):
            builder.store(value, builder.gep(held, [_WORD(0), _WORD(number)]))
        return block

    def allocate_aligned(builder: Builder, size: Value, alignment: Value) -> Value:
        return allocate(builder, size, builder.zext(alignment, _SIZE))

    def allocate_block(builder: Builder, size: Value) -> Value:
        return allocate(builder, size, _SIZE(_ALIGNMENT))

    _define(module, "NRT_MemInfo_alloc", ir.FunctionType(_POINTER, [_SIZE]), allocate_block)
    _define(module, "NRT_MemInfo_alloc_safe", ir.FunctionType(_POINTER, [_SIZE]), allocate_block)
    _define(module, "NRT_MemInfo_alloc_aligned", ir.FunctionType(_POINTER, [_SIZE, _WORD]), allocate_aligned)
    _define(module, "NRT_MemInfo_alloc_safe_aligned", ir.FunctionType(_POINTER, [_SIZE, _WORD]), allocate_aligned)

    def allocate_bytes(builder: Builder, size: Value) -> Value:
        return builder.call(malloc, [size])

    def release(builder: Builder, block: Value) -> None:
        builder.call(free, [block])

    _define(module, "NRT_Allocate", ir.FunctionType(_POINTER, [_SIZE]), allocate_bytes)
    _define(module, "NRT_Free", ir.FunctionType(void, [_POINTER]), release)
    _define(module, "NRT_MemInfo_call_dtor", ir.FunctionType(void, [_POINTER]), release)


def _reshape(builder: Builder, *arguments: Value) -> Value:
    """Emit the strides of the new shape, in bytes. The old array is contiguous: numba refuses any other."""
    count, shape, strides, item_bytes = *arguments[3:6], arguments[6]
    stride = cgutils.alloca_once_value(builder, item_bytes)
    with cgutils.for_range(builder, count) as loop:
        axis = builder.sub(builder.sub(count, loop.index), _SIZE(1))
        step = builder.load(stride)
        builder.store(step, builder.gep(strides, [axis]))
        builder.store(builder.mul(step, builder.load(builder.gep(shape, [axis]))), stride)
    return _WORD(1)


def _define(module: Any, name: str, kind: Any, emit: Callable[..., Value | None]) -> None:
    function = ir.Function(module, kind, name)
    builder: Builder = ir.IRBuilder(function.append_basic_block())
    result = emit(builder, *function.args)
    if result is None:
        builder.ret_void()
    else:
        builder.ret(result)
