"""The random words of dropout (DEVICE_NUMERICS 3.3); `buda_emu.arithmetic.tensix.functions.dropout` is the
definition.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import kernel

U = np.uint32

_TAPS: Final = U(0xB400)
_LANES: Final = 32


@kernel
def random_words(state: NDArray[np.uint32], words: NDArray[np.uint32], mask: NDArray[np.bool_]) -> None:
    """Fill `words` uint32[n, 32, 32] in the order of passes and step `state` uint32[32].

    `mask` bool[32, 32] marks the datums that the vector mode reaches; all others are 0 and their passes do not happen.
    """
    for tile in range(words.shape[0]):
        for face in range(4):
            top = 16 * (face >> 1)
            left = 16 * (face & 1)
            for step in range(8):
                row = top + 4 * (step >> 1)
                column = left + (step & 1)
                reached = mask[row, column]
                for lane in range(_LANES):
                    i = row + (lane >> 3)
                    j = column + 2 * (lane & 7)
                    word = state[lane]
                    words[tile, i, j] = word if reached else U(0)
                    if reached:
                        state[lane] = U(U(word >> U(1)) ^ (_TAPS if U(word & U(1)) != U(0) else U(0)))
