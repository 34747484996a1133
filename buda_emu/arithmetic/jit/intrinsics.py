"""LLVM code that any kernel may call as a function: memory that threads share, parts of arrays, shifts of 32 bits, a
few of Python's and numpy's functions. The functions themselves stand in `buda_emu.arithmetic.jit`, in Python or numpy,
which defines them. Importing this module makes them known to numba; only a process that compiles does so.
"""

from itertools import product
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.npydecl import parse_dtype
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    bound_function,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import populate_array

from buda_emu.arithmetic.jit.job_slot import ARGUMENTS, CODE, add, pause, read, work_on
from buda_emu.arithmetic.jit.llvm_code import SIZE, Builder, Value, intrinsic
from buda_emu.arithmetic.jit.primitives import part_of, shift_left, shift_right


@type_callable(part_of)
def _make_typer_of_part_of(_context: Any) -> Any:
    """Return the function by which numba types a call of `part_of`: a part of a contiguous vector has the vector's
    type."""

    def typer(array: Any, _first: Any, _size: Any) -> Any:
        """Return the signature for these arguments; None where the array is no contiguous vector."""
        plain = isinstance(array, types.Array) and (array.ndim, array.layout) == (1, "C")
        if plain:
            return signature(array, array, types.intp, types.intp)
        return None

    return typer


@lower_builtin(part_of, types.Array, types.intp, types.intp)
def _lower_part_of(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit `part_of`: a view of the array's memory, whose count of references goes up by one."""
    make: Any = context.make_array(call.return_type)
    array = make(context, builder, arguments[0])
    part = make(context, builder)
    populate_array(
        part,
        data=builder.gep(array.data, [arguments[1]]),
        shape=cgutils.pack_array(builder, [arguments[2]]),
        strides=array.strides,
        itemsize=array.itemsize,
        meminfo=array.meminfo,
        parent=array.parent,
    )
    context.nrt.incref(builder, call.return_type, part._getvalue())
    return part._getvalue()


@intrinsic(shift_right, types.int32, types.int32, types.int32)
def _shift_right(_context: Any, builder: Builder, value: Value, distance: Value) -> Value:
    """Emit `shift_right` as one instruction, without tests of the distance."""
    return builder.ashr(value, distance)


@intrinsic(shift_left, types.int32, types.int32, types.int32)
def _shift_left(_context: Any, builder: Builder, value: Value, distance: Value) -> Value:
    """Emit `shift_left` as one instruction, without tests of the distance."""
    return builder.shl(value, distance)


_FIRST: Final = {"target": "cpu"}
"""Asked before what numba has for every target."""
_ALIGNMENT: Final = 32  # of numba's arrays, in bytes
_MOST_AXES: Final = 3  # of the arrays that kernels view as words of another type
_WORDS: Final = (types.int32, types.uint32, types.float32)


def _bit_width(kind: Any) -> int:
    """Return the number of bits of a numba type."""
    return kind.bitwidth


def _set_typing_before_numba(function: Any, rule: Any) -> None:
    """Register a typing rule for a function such as `min`, which numba tries before its own."""
    infer: Any = infer_global
    infer(function)(rule)


# ------------------------------------------------------------------------------------------------- np.empty, np.zeros
class _NewArray(AbstractTemplate):
    """The typing rule of a new array in C order, from a size or a tuple of sizes, and an element type."""

    metadata = _FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        """Return the signature of a new array for these arguments; None for other arguments than sizes and an element
        type."""
        if kws or len(args) != 2:
            return None
        shape = args[0]
        dtype = parse_dtype(args[1])
        axes = 1
        sizes = shape
        if isinstance(shape, types.UniTuple):
            axes = len(shape)
            sizes = shape.dtype
        if dtype is None or not axes or sizes != types.intp:
            return None
        return signature(types.Array(dtype, axes, "C"), *args)


for _function in (np.empty, np.zeros):
    _set_typing_before_numba(_function, _NewArray)


@lower_builtin(np.empty, types.Any, types.Any)
def _lower_empty(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit `np.empty`: a new array with undefined contents."""
    return _new_array(context, builder, call, arguments)._getvalue()


@lower_builtin(np.zeros, types.Any, types.Any)
def _lower_zeros(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit `np.zeros`: a new array of zeros."""
    array = _new_array(context, builder, call, arguments)
    cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)
    return array._getvalue()


def _new_array(context: Any, builder: Builder, call: Any, arguments: Any) -> Any:
    """Emit a new contiguous array with undefined contents, and return it. The emitted code raises ValueError for a
    negative size or one that overflows."""
    kind = call.return_type
    shape = [arguments[0]]
    if kind.ndim > 1:
        shape = cgutils.unpack_tuple(builder, arguments[0])
    data_type = context.get_data_type(kind.dtype)
    item_bytes = SIZE(context.get_abi_sizeof(data_type))
    strides = [item_bytes]
    refused = cgutils.false_bit
    for size in reversed(shape):
        checked = builder.smul_with_overflow(strides[0], size)
        strides.insert(0, builder.extract_value(checked, 0))
        negative = builder.icmp_signed("<", size, SIZE(0))
        refused = builder.or_(refused, builder.or_(negative, builder.extract_value(checked, 1)))
    with builder.if_then(refused, likely=False):
        context.call_conv.return_user_exc(builder, ValueError, ("array is too big, or a size of it is negative",))
    memory = context.nrt.meminfo_alloc_aligned(builder, strides[0], _ALIGNMENT)
    array = context.make_array(kind)(context, builder)
    populate_array(
        array,
        data=builder.bitcast(context.nrt.meminfo_data(builder, memory), data_type.as_pointer()),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides[1:]),
        itemsize=item_bytes,
        meminfo=memory,
    )
    return array


# ------------------------------------------------------------------------------------------------ min, max of integers
class _MinOrMax(AbstractTemplate):
    """The typing rule of `min` and `max` of two integers of one type, or of two signed ones, where the result has the
    wider type."""

    metadata = _FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        """Return the signature of min or max of two integers; None for other arguments."""
        if kws or len(args) != 2 or not all(isinstance(kind, types.Integer) for kind in args):
            return None
        if args[0] != args[1] and not all(kind.signed for kind in args):
            return None
        kind = types.unliteral(max(args, key=_bit_width))
        return signature(kind, kind, kind)


for _function in (min, max):
    _set_typing_before_numba(_function, _MinOrMax)


def _register_min_or_max(function: Any, kind: Any, comparison: str) -> None:
    """Register the code of `function`, min or max, for two integers of numba type `kind`: the second is the result
    where `second comparison first` holds, else the first."""

    @lower_builtin(function, kind, kind)
    def lower(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:  # pyright: ignore[reportUnusedFunction]
        """Emit the comparison of the arguments and the choice between them."""
        first, other = arguments
        if kind.signed:
            second_wins = builder.icmp_signed(comparison, other, first)
        else:
            second_wins = builder.icmp_unsigned(comparison, other, first)
        return builder.select(second_wins, other, first)


for _kind in sorted(types.integer_domain, key=str):
    _register_min_or_max(min, _kind, "<")
    _register_min_or_max(max, _kind, ">")


# ---------------------------------------------------------------------------------------------------- int of an integer
class _IntegerAsItIs(AbstractTemplate):
    """The typing rule of `int` of an integer, whose type stays."""

    metadata = _FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        """Return the signature for one integer; None for other arguments."""
        if kws or len(args) != 1 or args[0] not in types.integer_domain:
            return None
        return signature(args[0], args[0])


_set_typing_before_numba(int, _IntegerAsItIs)


@lower_builtin(int, types.Integer)
def _lower_int(_context: Any, _builder: Builder, _call: Any, arguments: Any) -> Value:
    """Emit nothing: an integer is its own int."""
    return arguments[0]


# ------------------------------------------------------------------------------ .view of a number, and of a plain array
class _View(AttributeTemplate):
    """The typing rule of `number.view(dtype)`: the same bits as a number of another type."""

    metadata = _FIRST

    @bound_function("number.view")
    def resolve_view(self, number: Any, args: Any, kws: Any) -> Any:
        """Return the signature of number.view(dtype); None for other arguments than one type of the number's size."""
        if kws or len(args) != 1:
            return None
        dtype: Any = parse_dtype(args[0])
        same_size = isinstance(dtype, types.Integer | types.Float) and _bit_width(dtype) == _bit_width(number)
        if same_size:
            return signature(dtype, *args)
        return None


@infer_getattr
class _IntegerView(_View):
    key = types.Integer


@infer_getattr
class _FloatView(_View):
    key = types.Float


@lower_builtin("number.view", types.Integer, types.DTypeSpec)
@lower_builtin("number.view", types.Float, types.DTypeSpec)
def _lower_number_view(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit `number.view(dtype)`: the bits of a number as a number of another type."""
    return builder.bitcast(arguments[0], context.get_value_type(call.return_type))


def _lower_array_view(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit `array.view(dtype)` for elements of the same size: all fields but the type of the data stay, and the memory
    has one more reference."""
    array = context.make_array(call.args[0])(context, builder, arguments[0])
    view = context.make_array(call.return_type)(context, builder)
    for field in view._datamodel._fields:
        if field == "data":
            view.data = builder.bitcast(array.data, view.data.type)
        else:
            setattr(view, field, getattr(array, field))
    context.nrt.incref(builder, call.return_type, view._getvalue())
    return view._getvalue()


for _of, _as, _axes, _readonly in product(_WORDS, _WORDS, range(1, _MOST_AXES + 1), (False, True)):
    lower_builtin("array.view", types.Array(_of, _axes, "C", readonly=_readonly), types.NumberClass(_as))(
        _lower_array_view
    )


def word_place(builder: Builder, address: Value, number: Value) -> Value:
    """Return a pointer to the int64 number `number` after an address, counted from 0."""
    return builder.gep(builder.inttoptr(address, SIZE.as_pointer()), [number])


def emit_add(builder: Builder, address: Value, number: Value, value: Value) -> Value:
    """Emit `job_slot.add`: an atomic addition to int64 number `number` after an address. The value is the old
    content."""
    return builder.atomic_rmw("add", word_place(builder, address, number), value, "seq_cst")


def emit_read(builder: Builder, address: Value, number: Value) -> Value:
    """Emit `job_slot.read`: a read of int64 number `number` after an address from memory, which is never left out."""
    return builder.load_atomic(word_place(builder, address, number), "seq_cst", 8)


def emit_pause(context: Any, builder: Builder) -> None:
    """Emit `job_slot.pause`: the spin hint of an x86-64 processor, nothing on others."""
    if context.codegen().magic_tuple()[0].startswith("x86_64"):
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])


@intrinsic(add, types.int64, types.intp, types.intp, types.intp)
def _add(_context: Any, builder: Builder, *arguments: Value) -> Value:
    """Emit `job_slot.add` for kernels."""
    return emit_add(builder, *arguments)


@intrinsic(read, types.int64, types.intp, types.intp)
def _read(_context: Any, builder: Builder, *arguments: Value) -> Value:
    """Emit `job_slot.read` for kernels."""
    return emit_read(builder, *arguments)


@intrinsic(work_on, types.int64, types.intp)
def _work_on(_context: Any, builder: Builder, slot: Value) -> Value:
    """Emit `job_slot.work_on`: a call of the code whose address the slot holds, with the address of the slot's
    arguments."""
    code = builder.inttoptr(emit_read(builder, slot, SIZE(CODE)), ir.FunctionType(SIZE, [SIZE]).as_pointer())
    return builder.call(code, [builder.ptrtoint(word_place(builder, slot, SIZE(ARGUMENTS)), SIZE)])


intrinsic(pause, types.none)(emit_pause)
