"""Block formats as the packer assembles them (DEVICE_NUMERICS 4.5); `buda_emu.tensix.blocks` is the definition.

In a kernel it is vector code (`intrinsics/blocks.py`). Called from Python it is the same in numpy.
"""

from typing import Any, Final

import numpy as np

from buda_emu.kernels.jit import helper

__all__ = [
    "FARTHEST",
    "FRACTION",
    "GROUP",
    "LEADING",
    "MOST",
    "assemble_groups",
    "assemble_row",
]

GROUP: Final = 16
FRACTION: Final = 127
LEADING: Final = 128
MOST: Final = 127
FARTHEST: Final = 8  # 255 + 256, shifted by 9: nothing is left


@helper
def assemble_row(row: Any, bits: Any, narrow: Any, codes: Any, exponents: Any) -> None:
    """A tile of 1024 words, bf16 or fp16 in the upper half, to codes of `bits` magnitude bits and shared exponents."""
    # What is looked at has 7 bits of fraction below the exponent.
    down, most = (19, 31) if narrow else (16, 255)
    assemble_groups(row.view(np.int32), down, most, 7 - bits, codes, exponents)


def assemble_groups(row: Any, down: int, most: int, cut: int, codes: Any, exponents: Any) -> None:
    """The exponents of int32[1024] begin 7 above bit `down` and are at most `most`; `cut` low bits of a magnitude of 7
    are left out. codes: uint8[1024]; exponents: uint8[64]."""
    x = row.reshape(-1, GROUP)
    exponent = x >> (down + 7) & most
    significand = np.where(exponent == 0, 0, LEADING) | x >> down & FRACTION
    shared = exponent.max(axis=1)
    distance = np.minimum(shared[:, None] - exponent, FARTHEST)
    size = np.minimum((significand + (1 << distance)) >> (distance + 1), MOST) >> cut
    codes[:] = np.where(size == 0, 0, size | (x < 0) << (7 - cut)).reshape(-1)
    exponents[:] = shared
