"""Words of the register files: data of SrcA and SrcB, and what the matrix unit makes of a Dst image.

A Src datum is a uint32 with sign, exponent and 10 bits of fraction on top (DEVICE_NUMERICS, "Register files"). The
5-bit exponent of family A stands in the lower bits of the 8-bit field, not re-biased. A Dst image is a uint32 for each
datum: the fp32 pattern or the integer in sign and magnitude, or the 16 bits of bf16 or fp16 in the lower half.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import UnsupportedError
from buda_emu.formats.bits import U32
from buda_emu.kernels.tensix.words import MODES, Setting
from buda_emu.spec.formats import Family
from buda_emu.tensix.lanes import DstMode

I64 = NDArray[np.int64]

Core = Literal["grayskull", "wormhole_b0", "blackhole"]
"""Whose arithmetic it is. Grayskull's matrix unit is taken to be Wormhole's (DEVICE_NUMERICS 6.3)."""

CORES: Final[tuple[Core, ...]] = ("wormhole_b0", "blackhole", "grayskull")
"""In the order of what is known of them."""

_CORES: Final[Mapping[str, Core]] = MappingProxyType(
    {"grayskull": "grayskull", "wormhole": "wormhole_b0", "wormhole_b0": "wormhole_b0", "blackhole": "blackhole"}
)

SIGN: Final = np.uint32(0x80000000)
SRC_BITS: Final = np.uint32(0xFFFFE000)
"""The 19 bits of a Src datum."""


def core_of(arch: str) -> Core:
    """The core of an architecture by its netlist word.

    Raises UnsupportedError where nothing is known of its arithmetic.
    """
    if arch not in _CORES:
        raise UnsupportedError(f"the arithmetic of a core of {arch!r} is not known; known are {', '.join(_CORES)}")
    return _CORES[arch]


def sign_of(words: U32) -> I64:
    """0 or 1."""
    return (words >> np.uint32(31)).astype(np.int64)


def exponent_of(words: U32) -> I64:
    """The exponent field; 0 marks a zero (DEVICE_NUMERICS 1.4)."""
    return (words >> np.uint32(23) & np.uint32(255)).astype(np.int64)


def significand_of(words: U32) -> I64:
    """Leading one and fraction of Src data, 11 bits; that of a zero too."""
    return (words >> np.uint32(13) & np.uint32(0x3FF) | np.uint32(0x400)).astype(np.int64)


def to_word(dst: U32, mode: DstMode) -> U32:
    """The word that the matrix unit works on, of a Dst image."""
    if mode == "bf16":
        return dst << np.uint32(16)
    if mode == "fp16":
        return (dst & np.uint32(0x8000)) << np.uint32(16) | (dst & np.uint32(0x7FFF)) << np.uint32(13)
    return dst.copy()


def to_image(words: U32, mode: DstMode) -> U32:
    """The Dst image of words of the matrix unit: takes the same bits back."""
    if mode == "bf16":
        return words >> np.uint32(16)
    if mode == "fp16":
        return words >> np.uint32(16) & np.uint32(0x8000) | words >> np.uint32(13) & np.uint32(0x7FFF)
    return words.copy()


def require_pairing(family: Family, mode: DstMode) -> None:
    """Raises UnsupportedError for a 16-bit Dst of the other family: no op is set up so (DEVICE_NUMERICS 1.1)."""
    if (family, mode) not in {("b", "bf16"), ("b", "fp32"), ("a", "fp16"), ("a", "fp32")}:
        raise UnsupportedError(f"operands of family {family} do not accumulate in a Dst of {mode}")


def kernel_setting(family: Family, mode: DstMode, core: Core) -> Setting:
    """What the float kernels take instead."""
    require_pairing(family, mode)
    return Setting(MODES[mode], 5 if family == "a" else 8, core == "blackhole")
