"""The code of `jit/parts.py`."""

from typing import Any

from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import populate_array

from buda_emu.arithmetic.jit.intrinsics.code import Builder, Value
from buda_emu.arithmetic.jit.parts import part_of


@type_callable(part_of)
def _type_part_of(_context: Any) -> Any:
    def typer(array: Any, _first: Any, _size: Any) -> Any:
        plain = isinstance(array, types.Array) and (array.ndim, array.layout) == (1, "C")
        return signature(array, array, types.intp, types.intp) if plain else None

    return typer


@lower_builtin(part_of, types.Array, types.intp, types.intp)
def _lower_part_of(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
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
