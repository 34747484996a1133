"""The dense tile product of OPS 6.1, accumulator += a x b for tiles of 32 x 32: the definition, and the name by which
kernels call its vector code (`intrinsics/dense_product.py`).

D, the term added to the accumulator, is built from eight partial sums: lane l sums a[i][8q + l] * b[8q + l][j] over
q = 0..3 in fused multiply-adds, and D = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)).
"""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.fma import fma_f32
from buda_emu.arithmetic.kernels.tiles.tile_memory import EDGE, TILE

Tree: TypeAlias = "int | tuple[Tree, Tree]"
LANE_TREE: Final[Tree] = (((0, 4), (2, 6)), ((1, 5), (3, 7)))  # OPS 6.1
LANES: Final = 8


def dense_product(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return D of one tile product in numpy, the definition: float32[..., 32, 32] each, broadcasting (OPS 6.1)."""

    def total(node: Tree) -> NDArray[np.float32]:
        """Return the sum of a node of LANE_TREE: a lane, or its left half plus its right half."""
        if isinstance(node, tuple):
            return total(node[0]) + total(node[1])
        lane = np.float32(0)
        for k in range(node, EDGE, LANES):
            lane = fma_f32(a[..., :, k, None], b[..., None, k, :], lane)
        return np.asarray(lane)

    with np.errstate(all="ignore"):
        return total(LANE_TREE)


def add_dense_product(accumulator: Any, a: Any, b: Any, parking: Any, soon: Any, part: int, parts: int) -> None:
    """Add the tile product D(a, b) of OPS 6.1 (`dense_product`) to the accumulator; all four are tiles of 32 x 32 from
    `tile_at`, and `parking` is overwritten. `b`, `parking` and `accumulator` should begin at a cache line: vectors that
    straddle two cost a quarter of the speed. Meanwhile part number `part` of `parts` of the tile `soon` is fetched into
    the second level of cache."""
    del parking, soon, part, parts  # matters of speed
    square = (EDGE, EDGE)
    accumulator += dense_product(a.reshape(square), b.reshape(square)).reshape(TILE)
