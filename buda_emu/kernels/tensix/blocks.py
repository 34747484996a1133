"""Block formats as the packer assembles them (DEVICE_NUMERICS 4.5); `buda_emu.tensix.blocks` is the definition."""

from typing import Any, Final

import numpy as np

from buda_emu.kernels.jit import helper

U = np.uint32

_GROUPS: Final = np.uint64(64)
_GROUP: Final = np.uint64(16)


@helper
def assemble_row(row: Any, bits: Any, narrow: Any, codes: Any, exponents: Any) -> None:
    """A tile of 1024 words, bf16 or fp16 in the upper half, to codes of `bits` magnitude bits and shared exponents."""
    # What is looked at has 7 bits of fraction below the exponent.
    down = U(19) if narrow else U(16)
    exponent_mask = U(31) if narrow else U(255)
    cut, sign_place = U(7 - bits), U(bits)
    for group in range(_GROUPS):
        at = group * _GROUP
        shared = U(0)
        for i in range(_GROUP):
            shared = max(shared, U(U(row[at + i] >> U(down + U(7))) & exponent_mask))
        exponents[group] = np.uint8(shared)
        for i in range(_GROUP):
            x = row[at + i]
            e = U(U(x >> U(down + U(7))) & exponent_mask)
            significand = U(U(U(x >> down) & U(127)) | (U(0) if e == U(0) else U(128)))
            distance = U(min(U(shared - e), U(8)) & U(15))
            size = min(U(U(significand + U(U(1) << distance)) >> U(distance + U(1))), U(127))
            size = U(size >> cut)
            # At a distance of 8 less than half a unit is left: 255 + 256 shifted by 9 is nothing.
            sign = U(U(x >> U(31)) << sign_place)
            codes[at + i] = np.uint8(U(0) if size == U(0) else U(sign | size))
