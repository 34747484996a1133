"""Building blocks of the code of intrinsics: LLVM types, vectors, functions that several calls share."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.cgutils import get_or_insert_function

# llvmlite says nothing of its types.
Builder: TypeAlias = Any
Value: TypeAlias = Any

FLOAT: Final = ir.FloatType()
SIZE: Final = ir.IntType(64)


def call_shared(builder: Builder, name: str, arguments: Sequence[Value], emit: Callable[..., None]) -> None:
    """Call the LLVM function `name` of this module, whose body emit(builder, *arguments) makes at its first use.

    Code that is used in several places is compiled once, and LLVM cannot unroll it into each of them.
    """
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(
            builder.module, ir.FunctionType(ir.VoidType(), [value.type for value in arguments]), name
        )
        function.linkage = "internal"
        function.attributes.add("noinline")
        inside: Builder = ir.IRBuilder(function.append_basic_block())
        emit(inside, *function.args)
        inside.ret_void()
    builder.call(function, arguments)


def on_data(context: Any, builder: Builder, call: Any, arguments: Sequence[Value]) -> list[Value]:
    """Return the arguments of a call in the form that intrinsics take: of tuples their items, of arrays the addresses
    of their first elements. There may be fewer arguments than the call has."""
    values: list[Value] = []
    for kind, value in zip(call.args, arguments, strict=False):
        values += _data(context, builder, kind, value)
    return values


def _data(context: Any, builder: Builder, kind: Any, value: Value) -> list[Value]:
    if isinstance(kind, types.BaseTuple):
        kinds: Any = kind
        items = zip(kinds, cgutils.unpack_tuple(builder, value), strict=True)
        values: list[Value] = []
        for item_kind, item_value in items:
            values += _data(context, builder, item_kind, item_value)
        return values
    if isinstance(kind, types.Array):
        return [context.make_array(kind)(context, builder, value).data]
    return [value]


def splat(builder: Builder, value: Value, vector: ir.VectorType) -> Value:
    """Return a vector of that type with the value in every element."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(builder.insert_element(undefined, value, ir.IntType(32)(0)), undefined, first)


def tile_pointer(builder: Builder, address: Value, kind: ir.Type = FLOAT) -> Value:
    """Return the address of a tile as pointer to its first float, or to another type."""
    return builder.inttoptr(address, kind.as_pointer())


def llvm_fma(builder: ir.IRBuilder, kind: ir.Type, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """Emit the multiply-add instruction for a scalar or vector of float or double."""
    element, prefix = (kind.element, f"v{kind.count}") if isinstance(kind, ir.VectorType) else (kind, "")
    name = f"llvm.fma.{prefix}{'f32' if isinstance(element, ir.FloatType) else 'f64'}"
    return builder.call(get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name), [a, b, c])


def prefetch(builder: Builder, address: Value) -> None:
    """Fetch the cache line at an address into the second level of cache."""
    byte_pointer = ir.IntType(8).as_pointer()
    flag = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte_pointer, flag, flag, flag])
    function = get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    read = flag(0)
    second_level = flag(2)
    data = flag(1)
    builder.call(function, [builder.inttoptr(address, byte_pointer), read, second_level, data])
