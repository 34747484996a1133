"""The packer's early conversion, from Dst to the intermediate format (DEVICE_NUMERICS 4.2): its definition is
`buda_emu.arithmetic.tensix.conversions.pack.early`, its constants are `EARLY` in `kernels/tensix/conversions/pack.py`.

In a kernel it is vector code (`intrinsics/early.py`). Called from Python it is the same in numpy.
"""

from typing import Any, NamedTuple

import numpy as np

from buda_emu.arithmetic.kernels.tensix.conversions.blocks import assemble_groups
from buda_emu.spec.single import MAGNITUDE


class Early(NamedTuple):
    """A conversion: `magnitude = min(magnitude & kept, most)`, 0 if below `first`; `+ half`, `& mask`, and 0 without a
    sign if below `least` then."""

    kept: int = MAGNITUDE
    most: int = MAGNITUDE
    first: int = 0
    half: int = 0
    mask: int = MAGNITUDE
    least: int = 0


def early_words(words: Any, up: int, by: Early, small: int, row: Any) -> None:
    """Convert words int32[1024] of Dst, which `up` brings to the top of a word, to words of the intermediate format;
    `small`: the bits that stay of words below `least`."""
    row[:] = _early(words, up, by, small)


def early_halves(words: Any, up: int, by: Early, halves: Any) -> None:
    """Write the upper halves of the converted words, int16[1024]; nothing stays of words below `least`."""
    halves[:] = _early(words, up, by, 0) >> 16


def early_groups(words: Any, up: int, by: Early, position: tuple[int, int, int], codes: Any, exponents: Any) -> None:
    """Assemble the converted words to blocks; `position` holds the first numbers of `assemble_groups`: down, greatest,
    cut."""
    assemble_groups(_early(words, up, by, 0), *position, codes, exponents)


def _early(words: Any, up: int, by: Early, small: int) -> Any:
    word = words << up
    size = np.minimum(word & MAGNITUDE & by.kept, by.most)
    size = np.where(size < by.first, 0, size) + by.half & by.mask
    return np.where(size < by.least, word & small, size | word & ~MAGNITUDE).astype(np.int32)
