"""What softsign computes: shape, format label, definition, and what runs. It is imported when a netlist uses the op."""

from collections.abc import Sequence

import numpy as np

from buda_emu.arithmetic.kernels.tiles.tile_memory import gather_tiles
from buda_emu.emulator.ops.base import Parallel, PlannedOp, Tiles, implements
from buda_emu.emulator.ops.common import arrange_tiles, blank, items, kernel_operand, require_operands, unblanked_dims
from buda_emu.spec.blocking import Shape


@implements("softsign")
class Softsign:
    """out = in0 / (1 + |in0|)."""

    def shape(self, call: PlannedOp) -> Shape:
        """The shape of the input."""
        require_operands(call, 1)
        return call.operands[0].map.shape

    def label(self, call: PlannedOp) -> str:
        """Label of the input."""
        return call.operands[0].label

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """The definition; see `buda_emu.emulator.ops.base`."""
        x = arrange_tiles(call, 0, inputs[0])
        with np.errstate(all="ignore"):  # infinities and NaNs are data like any other
            result = x / (np.float32(1) + np.abs(x))
        return blank(result, unblanked_dims(call))

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Tiles are gathered by a kernel that stands, and computed where they then lie."""
        source, index, pad_value, arrange = kernel_operand(call, 0, inputs)
        parallel(gather_tiles, items(out), out, source, index, pad_value, arrange, unblanked_dims(call))
        with np.errstate(all="ignore"):
            out /= np.float32(1) + np.abs(out)
