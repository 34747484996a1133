"""Intrinsics that a test declares: which arguments they take, and what their code gets of them."""

from typing import Any

import numpy as np
import pytest

from buda_emu.arithmetic.jit.kernel import disabled, kernel

compiled_only = pytest.mark.skipif(disabled, reason="plain Python calls the definition")


def picked(values: Any, by: tuple[int, int], also: int) -> Any:
    """The definition: the item number by[0], plus by[1], plus `also`."""
    return values[by[0]] + by[1] + also


@kernel
def pick(values: Any, by: tuple[int, int], also: int) -> Any:
    return picked(values, by, also)


def declare() -> None:
    from numba.core import types

    from buda_emu.arithmetic.jit.llvm_code import intrinsic

    @intrinsic(picked, types.int64, types.Array, types.BaseTuple, types.intp)
    def code(_context: Any, builder: Any, data: Any, place: Any, more: Any, also: Any) -> Any:  # pyright: ignore
        return builder.add(builder.add(builder.load(builder.gep(data, [place])), more), also)


@compiled_only
def test_arrays_are_addresses_and_tuples_their_items() -> None:
    declare()
    values = np.array([3, 4], np.int64)
    assert pick(values, (1, 10), 100) == picked(values, (1, 10), 100) == 114
    assert pick(values, (0, 10), True) == 14  # a flag is an integer
    with pytest.raises(Exception, match="picked"):
        pick(values, 1, 100)  # no tuple
