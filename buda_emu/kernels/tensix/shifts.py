"""Shifts of 32-bit integers by a distance that varies.

numba computes with integers of 64 bits, which LLVM narrows again where it can see that nothing is lost; of a shift by a
variable distance it cannot. These stay 32 bits wide, so that a vector holds twice as many.
"""

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import lower_builtin, type_callable

__all__ = ["shift_left", "shift_right"]


def shift_right(value: Any, distance: Any) -> Any:
    """Floor of value / 2^distance, both np.int32; distance 0 to 31."""
    return np.int32(int(value) >> int(distance))


def shift_left(value: Any, distance: Any) -> Any:
    """value * 2^distance, both np.int32, which must fit; distance 0 to 31."""
    return np.int32(int(value) << int(distance))


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
