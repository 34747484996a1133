"""Functions of Python and numpy that are emitted in place (`intrinsics`: `plain.py`, `primitives.py`) mean the same."""

from typing import Any

import numpy as np
import pytest

from buda_emu.arithmetic.jit import kernel as jit
from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.jit.primitives import part_of


@kernel
def several(n: int, found: Any) -> None:
    block = np.zeros((n, 3), np.int32)
    for i in range(n):
        for j in range(3):
            found[0] += block[i, j]
            block[i, j] = 3 * i + j
    line = np.empty(n, np.uint8)
    for i in range(n):
        line[i] = i + 250
    found[1] = max(line[0], line[n - 1])
    found[2] = min(np.int64(found[0]), np.int64(-n))
    found[3] = max(np.int32(-3), np.int32(2)) - int(np.int32(n))
    found[4] = np.float32(1.0).view(np.int32) - np.int64(np.uint64(1).view(np.float64) > 0)
    bits = block.view(np.float32).view(np.uint32)
    part = part_of(line, 1, n - 1)
    found[5] = 100 * np.int64(bits[1, 2]) + 10 * np.int64(part[0]) + part.size


def test_they_are_those_of_plain_python() -> None:
    compiled, plain = np.zeros(6, np.int64), np.zeros(6, np.int64)
    several(4, compiled)
    if not jit.disabled:
        several.py_func(4, plain)  # pyright: ignore[reportFunctionMemberAccess]
        np.testing.assert_array_equal(compiled, plain)
    np.testing.assert_array_equal(compiled, [0, 253, -4, -2, 0x3F7FFFFF, 500 + 2510 + 3])


@kernel
def far_too_big(n: int) -> int:
    return np.empty((n, n), np.float32).size


@pytest.mark.skipif(jit.disabled, reason="of compiled kernels")
def test_an_array_that_no_memory_has_is_refused() -> None:
    for size in (1 << 32, -1):
        with pytest.raises(ValueError, match="array is too big, or a size of it is negative"):
            far_too_big(size)
    with pytest.raises(MemoryError):
        far_too_big(1 << 30)
