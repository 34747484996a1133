"""ReLU in the packer, on the bits of the intermediate format (DEVICE_NUMERICS 4.3)."""

from typing import Final, Literal

import numpy as np

from buda_emu.formats.bits import U32
from buda_emu.tensix.conversions.intermediate import Intermediate

ReluMode = Literal[0, 1, 2, 3]
"""0 off; 1 negative to 0; 2 also what is not above the threshold (Min); 3 negative to 0 and above it to it (Max)."""

RELU_MODES: Final[dict[str, ReluMode]] = {"none": 2, "min": 2, "max": 3}
"""By the netlist's word `relu_mode`."""

WORDS: Final = ("Float32", "Tf32")
INTEGERS: Final = ("Int32", "Int8", "UInt8", "UInt16")


def relu(datums: U32, held_as: Intermediate, mode: ReluMode, threshold: int) -> U32:
    """Datums of an intermediate format after the relu; `threshold` as `intermediate.relu_threshold` gives it.

    At x = threshold > 0 the Min mode gives 0.
    """
    if mode == 0:
        return datums
    if held_as in INTEGERS:
        return _integer_relu(datums, held_as, mode, threshold)
    wide = held_as in WORDS
    negative = datums >> np.uint32(31 if wide else 15) != 0
    if mode == 1:
        return np.where(negative, np.uint32(0), datums)
    limit = np.uint32(threshold << 16 if wide else threshold)
    if mode == 2:
        return np.where(negative | (datums <= limit), np.uint32(0), datums)
    # The upper limit is compared with 19 bits only.
    compared = datums & np.uint32(0xFFFFE000) if wide else datums
    return np.where(negative, np.uint32(0), np.where(compared > limit, limit, datums))


def _integer_relu(datums: U32, held_as: Intermediate, mode: ReluMode, threshold: int) -> U32:
    """Clearing negatives is known; a threshold is inferred, as a number beside the magnitude."""
    sign = np.uint32({"Int32": 0x80000000, "Int8": 0x80}.get(held_as, 0))
    limit = np.uint32(threshold)
    cleared = datums & sign != 0
    if mode == 2:
        cleared |= datums <= limit
    return np.where(cleared, np.uint32(0), np.minimum(datums, limit) if mode == 3 else datums)
