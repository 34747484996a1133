"""Products of small integers with an exact sum: what a convolution of int8 comes down to."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import kernel

MOST_SUM = (1 << 31) - 1
"""Largest magnitude of a sum; the caller sees to it that no sum is larger."""


@kernel
def integer_product(rows: NDArray[np.int16], columns: NDArray[np.int16], sums: NDArray[np.int32]) -> None:
    """`sums[p, k]` = sum over j of `rows[p, j]` * `columns[k, j]`; shapes [P, J], [K, J], [P, K].

    Every step is cut to 32 bits, which changes nothing within `MOST_SUM` and lets the machine multiply 16-bit pairs.
    """
    for p in range(rows.shape[0]):
        for k in range(columns.shape[0]):
            total = np.int32(0)
            for j in range(rows.shape[1]):
                total = np.int32(total + np.int32(np.int32(rows[p, j]) * np.int32(columns[k, j])))
            sums[p, k] = total
