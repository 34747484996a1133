"""The code of `jit/shifts.py`."""

from typing import Any

from numba.core import types

from buda_emu.arithmetic.jit.intrinsics.code import Builder, Value
from buda_emu.arithmetic.jit.intrinsics.declare import intrinsic
from buda_emu.arithmetic.jit.shifts import shift_left, shift_right


@intrinsic(shift_right, types.int32, types.int32, types.int32)
def _shift_right(_context: Any, builder: Builder, value: Value, distance: Value) -> Value:
    return builder.ashr(value, distance)


@intrinsic(shift_left, types.int32, types.int32, types.int32)
def _shift_left(_context: Any, builder: Builder, value: Value, distance: Value) -> Value:
    return builder.shl(value, distance)
