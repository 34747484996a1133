"""The packer's early conversion, from Dst to the intermediate format (DEVICE_NUMERICS 4.2): its definition is
`buda_emu.tensix.conversions.pack.early`, its constants are `EARLY` in `kernels/tensix/conversions/pack.py`.

In a kernel it is vector code (`intrinsics/early.py`). Called from Python it is the same in numpy.
"""

from typing import Any, Final

import numpy as np

from buda_emu.kernels.tensix.conversions.blocks import assemble_groups

__all__ = ["MAGNITUDE", "early_groups", "early_halves", "early_words"]

MAGNITUDE: Final = 0x7FFFFFFF


def early_words(
    words: Any, up: int, kept: int, most: int, first: int, half: int, mask: int, least: int, small: int, row: Any
) -> None:
    """Words int32[1024] of Dst, brought to the top of a word, to words of the intermediate format; `small`: the bits
    that stay of what is below `least`."""
    row[:] = _early(words, up, kept, most, first, half, mask, least, small)


def early_halves(
    words: Any, up: int, kept: int, most: int, first: int, half: int, mask: int, least: int, halves: Any
) -> None:
    """The upper halves of them, int16[1024]; nothing stays of what is below `least`."""
    halves[:] = _early(words, up, kept, most, first, half, mask, least, 0) >> 16


def early_groups(
    words: Any, up: int, kept: int, most: int, first: int, half: int, mask: int, least: int,
    down: int, greatest: int, cut: int, codes: Any, exponents: Any,
) -> None:  # fmt: skip
    """`assemble_groups` of them."""
    assemble_groups(_early(words, up, kept, most, first, half, mask, least, 0), down, greatest, cut, codes, exponents)


def _early(
    words: Any, up: int, kept: int, most: int, first: int, half: int, mask: int, least: int, small: int
) -> Any:  # fmt: skip
    word = words << up
    size = np.minimum(word & MAGNITUDE & kept, most)
    size = np.where(size < first, 0, size) + half & mask
    return np.where(size < least, word & small, size | word & ~MAGNITUDE).astype(np.int32)
