"""The matrix product of tiles: which operand goes where, and in what order Dst accumulates (DEVICE_NUMERICS 2.8).

Input 0 is SrcB, the side of 7 bits; input 1 is SrcA, the side of 5 bits. For one element of the output there are
K * phases * 2 accumulations, each rounded to what Dst holds.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from buda_emu.formats.bits import U32
from buda_emu.spec.formats import Family
from buda_emu.tensix.lanes import DstMode
from buda_emu.tensix.products.fidelity import PHASES
from buda_emu.tensix.products.integer import int_mvmul
from buda_emu.tensix.products.mvmul import mvmul
from buda_emu.tensix.words import Core

FACE: Final = 16
"""Edge of a face: what one MVMUL takes of the inner dimension."""


def tile_matmul(dst: U32, in0: U32, in1: U32, phases: Sequence[int], family: Family, mode: DstMode, core: Core) -> U32:
    """The Dst image [..., rows, cols] after K tiles in0 [..., K, rows, k] x in1 [..., K, k, cols] are added.

    k is 16 or 32: an inner face that does not exist is skipped. Leading axes broadcast with those of `dst`.
    """
    for kt in range(in0.shape[-3]):
        for phase, k in _steps(phases, in0.shape[-1], core):
            dst = mvmul(dst, in0[..., kt, :, k], in1[..., kt, k, :], phase, family, mode, core)
    return dst


def int_tile_matmul(dst: U32, in0: U32, in1: U32, core: Core) -> U32:
    """The same with 8-bit integers, in the four phases that are mandatory for them."""
    for kt in range(in0.shape[-3]):
        for phase, k in _steps(PHASES["HiFi4"], in0.shape[-1], core):
            dst = int_mvmul(dst, in0[..., kt, :, k], in1[..., kt, k, :], phase)
    return dst


def _steps(phases: Sequence[int], inner: int, core: Core) -> Iterator[tuple[int, slice]]:
    """Phase and inner face of each MVMUL of one tile; on Grayskull the phases run inside the face."""
    faces = [slice(first, first + FACE) for first in range(0, inner, FACE)]
    if core == "grayskull":
        yield from ((phase, k) for k in faces for phase in phases)
    else:
        yield from ((phase, k) for phase in phases for k in faces)
