"""Max pool: the largest datum of each column of SrcA, and the reductions made of it (DEVICE_NUMERICS 2.6, 2.8)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import UnsupportedError
from buda_emu.formats.bits import U32
from buda_emu.tensix.elementwise.moves import copy_to_dst, move_to_src
from buda_emu.tensix.lanes import FAMILY_SHIFT, DstMode
from buda_emu.tensix.registers import REGISTERS
from buda_emu.tensix.words import SIGN, SRC_BITS, Core, exponent_of, to_image, to_word

Dim = Literal["r", "c"]
"""What a reduction leaves one of: row 0 of the tile, or column 0."""

KEPT: Final[Mapping[str, np.uint32]] = MappingProxyType(
    {
        **dict.fromkeys(("Float16_b", "Bfp8_b"), np.uint32(0xFFFF0000)),
        **dict.fromkeys(("Tf32", "Float16", "Bfp8", "Lf8"), SRC_BITS),
    }
)
"""What the comparison sees of a SrcA word."""

LOWEST: Final = np.uint32(0xFFFFFFFF)
"""What a cleared Dst counts as."""


def max_pool(dst: U32 | None, srca: U32, register: str, mode: DstMode) -> U32:
    """Row 0 of the Dst image [..., cols] after pooling the rows of srca [..., rows, cols].

    dst: row 0 before, None when it was cleared. Only what is strictly greater in the order of sign and magnitude
    replaces. Raises UnsupportedError for integers, of which nothing is known.
    """
    if register not in KEPT:
        raise UnsupportedError(f"max pool of {register} is not known")
    data = np.where(exponent_of(srca) == 0, np.uint32(0), srca & KEPT[register])
    if mode == "fp32" and REGISTERS[register] == "a":
        # Nothing is known of this; with the exponent of a single, as the adder has it, the values are kept.
        data = np.where(data == 0, data, data + np.uint32(FAMILY_SHIFT << 23))
    if dst is None:
        running = np.full_like(data[..., 0, :], LOWEST)
    else:
        running = to_word(dst, mode) & (SRC_BITS if mode == "fp32" else LOWEST)
    for row in range(srca.shape[-2]):
        running = np.where(_ordered(data[..., row, :]) > _ordered(running), data[..., row, :], running)
    return to_image(running, mode)


def reduce_max(tiles: U32, dim: Dim, register: str, mode: DstMode, core: Core) -> U32:
    """The Dst image [..., 32, 32] of the maximum over tiles [..., n, 32, 32] and over one dimension of a tile.

    `r` pools down the columns into row 0. `c` pools transposed faces and carries the row, which runs through all
    tiles, back as column 0: through SrcB and the adder. Zeros elsewhere, which is what the packer writes there.
    """
    rows = tiles.swapaxes(-1, -2) if dim == "c" else tiles
    flat = rows.reshape(*rows.shape[:-3], -1, rows.shape[-1])
    pooled = max_pool(None, flat, register, mode)
    out = np.zeros((*flat.shape[:-2], *tiles.shape[-2:]), np.uint32)
    if dim == "r":
        out[..., 0, :] = pooled
    else:
        out[..., :, 0] = _carried_over(pooled, register, mode, core)
    return out


def _carried_over(pooled: U32, register: str, mode: DstMode, core: Core) -> U32:
    """What the way through SrcB and ELWADD with a SrcA of zeros leaves of a Dst image."""
    family = REGISTERS[register] or "b"
    if (family, mode) == ("a", "fp32"):  # rounded to 10 bits of fraction on the way, which is all there are
        return pooled
    return copy_to_dst(move_to_src(pooled, mode, register), family, mode, core)


def _ordered(words: U32) -> NDArray[np.int32]:
    """The word as an integer in the order of sign and magnitude."""
    return np.where(words & SIGN != 0, words ^ ~SIGN, words).astype(np.uint32).view(np.int32)
