"""The code of `jit/shifts.py`."""

from typing import Any

from numba.core import types
from numba.extending import lower_builtin, type_callable

from buda_emu.jit.shifts import shift_left, shift_right


@type_callable(shift_right)
@type_callable(shift_left)
def _type_shift(_context: Any) -> Any:
    def typer(value: Any, distance: Any) -> Any:
        return types.int32 if value == distance == types.int32 else None

    return typer


@lower_builtin(shift_right, types.int32, types.int32)
def _lower_shift_right(_context: Any, builder: Any, _call: Any, arguments: Any) -> Any:
    return builder.ashr(*arguments)


@lower_builtin(shift_left, types.int32, types.int32)
def _lower_shift_left(_context: Any, builder: Any, _call: Any, arguments: Any) -> Any:
    return builder.shl(*arguments)
