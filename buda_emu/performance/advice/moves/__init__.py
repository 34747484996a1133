"""The kinds of change that are tried. A kind is a `Move`: its declaration, with a function that yields proposals."""

from collections.abc import Sequence
from typing import Final

from buda_emu.performance.advice.moves import blocks, buffers, cores, precision
from buda_emu.performance.advice.moves.move import Move

MOVES: Final[Sequence[Move]] = (
    cores.MOVE,
    cores.MORE_ROWS,
    buffers.OTHER_CHANNELS,
    blocks.LARGER_UBLOCKS,
    buffers.MORE_BUFFERS,
    blocks.KEPT_OPERAND,
    precision.NARROWER_FORMAT,
    precision.LOWER_FIDELITY,
    precision.APPROXIMATION,
)
"""In the order in which they are told."""
