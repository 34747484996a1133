"""The code of a few functions of Python's and numpy's that many kernels call: numba, which has them as functions in
Python, would compile each of them, for every kind of arguments, as it compiles kernels.

They mean the same. Any other call of them is left to numba.
"""

from itertools import product
from typing import Any, Final

import numpy as np
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
from numba.extending import lower_builtin
from numba.np.arrayobj import populate_array

from buda_emu.arithmetic.jit.intrinsics.code import SIZE, Builder, Value

_FIRST: Final = {"target": "cpu"}
"""Asked before what numba has for every target."""
_ALIGNMENT: Final = 32  # of numba's arrays, in bytes
_MOST_AXES: Final = 3
_WORDS: Final = (types.int32, types.uint32, types.float32)


def _width(kind: Any) -> int:
    return kind.bitwidth


def _first_for(function: Any, rule: Any) -> None:
    infer: Any = infer_global
    infer(function)(rule)


# ------------------------------------------------------------------------------------------------- np.empty, np.zeros
class _NewArray(AbstractTemplate):
    """The typing of a new array from a size or a tuple of sizes, and a dtype."""

    metadata = _FIRST

    def generic(self, args: Any, kws: Any) -> Any:
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
    _first_for(_function, _NewArray)


@lower_builtin(np.empty, types.Any, types.Any)
def _lower_empty(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    return _new(context, builder, call, arguments)._getvalue()


@lower_builtin(np.zeros, types.Any, types.Any)
def _lower_zeros(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    array = _new(context, builder, call, arguments)
    cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)
    return array._getvalue()


def _new(context: Any, builder: Builder, call: Any, arguments: Any) -> Any:
    kind = call.return_type
    shape = [arguments[0]] if kind.ndim == 1 else cgutils.unpack_tuple(builder, arguments[0])
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
class _Extreme(AbstractTemplate):
    """The typing of the smaller or larger of two integers of one kind, or of two signed ones, where the result is of
    the wider kind."""

    metadata = _FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        if kws or len(args) != 2 or not all(isinstance(kind, types.Integer) for kind in args):
            return None
        if args[0] != args[1] and not all(kind.signed for kind in args):
            return None
        kind = types.unliteral(max(args, key=_width))
        return signature(kind, kind, kind)


for _function in (min, max):
    _first_for(_function, _Extreme)


def _lower_extreme(function: Any, kind: Any, comparison: str) -> None:
    @lower_builtin(function, kind, kind)
    def lower(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:  # pyright: ignore[reportUnusedFunction]
        first, other = arguments
        compare = builder.icmp_signed if kind.signed else builder.icmp_unsigned
        return builder.select(compare(comparison, other, first), other, first)


for _kind in sorted(types.integer_domain, key=str):
    _lower_extreme(min, _kind, "<")
    _lower_extreme(max, _kind, ">")


# ---------------------------------------------------------------------------------------------------- int of an integer
class _Same(AbstractTemplate):
    """The typing of a function that returns an integer as it is."""

    metadata = _FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        if kws or len(args) != 1 or args[0] not in types.integer_domain:
            return None
        return signature(args[0], args[0])


_first_for(int, _Same)


@lower_builtin(int, types.Integer)
def _lower_int(_context: Any, _builder: Builder, _call: Any, arguments: Any) -> Value:
    return arguments[0]


# ------------------------------------------------------------------------------ .view of a number, and of a plain array
class _View(AttributeTemplate):
    metadata = _FIRST

    @bound_function("number.view")
    def resolve_view(self, number: Any, args: Any, kws: Any) -> Any:
        dtype: Any = parse_dtype(args[0]) if len(args) == 1 and not kws else None
        same_size = isinstance(dtype, types.Integer | types.Float) and _width(dtype) == _width(number)
        return signature(dtype, *args) if same_size else None


@infer_getattr
class _IntegerView(_View):
    key = types.Integer


@infer_getattr
class _FloatView(_View):
    key = types.Float


@lower_builtin("number.view", types.Integer, types.DTypeSpec)
@lower_builtin("number.view", types.Float, types.DTypeSpec)
def _lower_number_view(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    return builder.bitcast(arguments[0], context.get_value_type(call.return_type))


def _lower_array_view(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit a view of an array with items of the same size: all fields but the type of the data stay."""
    array = context.make_array(call.args[0])(context, builder, arguments[0])
    view = context.make_array(call.return_type)(context, builder)
    for field in view._datamodel._fields:
        setattr(view, field, getattr(array, field) if field != "data" else builder.bitcast(array.data, view.data.type))
    context.nrt.incref(builder, call.return_type, view._getvalue())
    return view._getvalue()


for _of, _as, _axes, _readonly in product(_WORDS, _WORDS, range(1, _MOST_AXES + 1), (False, True)):
    lower_builtin("array.view", types.Array(_of, _axes, "C", readonly=_readonly), types.NumberClass(_as))(
        _lower_array_view
    )
