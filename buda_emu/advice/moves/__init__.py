"""The kinds of change that are tried: one file for each, with a declaration and a function that yields proposals."""

from collections.abc import Sequence
from typing import Final

from buda_emu.advice.moves import approximate, blocks, buffers, channels, cores, fidelity, formats, kernels, rows
from buda_emu.advice.moves.move import Move

MOVES: Final[Sequence[Move]] = (
    cores.MOVE, rows.MOVE, channels.MOVE, blocks.MOVE, buffers.MOVE, kernels.MOVE, formats.MOVE, fidelity.MOVE,
    approximate.MOVE,
)  # fmt: skip
"""In the order in which they are told."""
