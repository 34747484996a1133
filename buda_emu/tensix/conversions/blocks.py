"""Block formats as the packer assembles them: 16 datums of one face row share an exponent (DEVICE_NUMERICS 4.5)."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.formats.bits import U32
from buda_emu.spec.formats import BLOCK_DATUMS, FORMATS

_TOP: Final = 127


def assemble(datums: U32, out_df: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Datums to (codes, shared exponents).

    `datums` uint32[..., n], n a multiple of 16: bf16 patterns for family B, fp16 patterns for family A, of which 7 bits
    of fraction count. An exponent of 0 leaves the fraction as it is, without a leading one: only a relu's threshold has
    that (10: 4). Codes uint8[..., n] in the low bits (sign above the magnitude), exponents uint8[..., n / 16].
    """
    spec = FORMATS[out_df]
    wide = (datums >> np.uint32(3) if spec.family == "a" else datums).astype(np.int32)
    groups = wide.reshape(*datums.shape[:-1], datums.shape[-1] // BLOCK_DATUMS, BLOCK_DATUMS)
    exponent = groups >> 7 & (31 if spec.family == "a" else 255)
    significand = np.where(exponent == 0, 0, 128) | groups & 127
    shared = exponent.max(axis=-1)
    # From a distance of 8 on nothing is left: the significand is less than half a unit.
    distance = np.minimum(shared[..., np.newaxis] - exponent, 8)
    magnitude = np.minimum((significand + (1 << distance)) >> (distance + 1), _TOP)
    magnitude = np.where(distance >= 8, 0, magnitude) >> (7 - spec.mantissa_bits)
    sign = groups >> (12 if spec.family == "a" else 15) & 1
    codes = np.where(magnitude == 0, 0, sign << spec.mantissa_bits | magnitude)
    return codes.astype(np.uint8).reshape(datums.shape), shared.astype(np.uint8)
