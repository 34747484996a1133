"""nop, datacopy, ethernet_datacopy: the result is the operand, bit by bit. Copies over Ethernet go to another chip, on
the device without passing through the units of a core."""

from collections.abc import Sequence

from buda_emu.arithmetic.kernels.tiles.tile_memory import gather_tiles
from buda_emu.emulator.ops.base import Implementation, Parallel, PlannedOp, Tiles, implements
from buda_emu.emulator.ops.common import arrange_tiles, blank, items, kernel_operand, require_operands, unblanked_dims
from buda_emu.spec.blocking import Shape


@implements("nop", "datacopy", "ethernet_datacopy")
class Copy(Implementation):
    """A copy of in0, transposed inside its tiles where the flag says so."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return the shape of the one input. Raises ProgramError for another number of inputs."""
        require_operands(call, 1)
        return call.operands[0].map.shape

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the copy by the definition: in0, its elements arranged, blanked outside the tile dims."""
        return blank(arrange_tiles(call, 0, inputs[0]), unblanked_dims(call))

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Copy the operand's tiles, arranged and blanked, by the kernel that gathers tiles."""
        source, index, pad_value, arrange = kernel_operand(call, 0, inputs)
        parallel(gather_tiles, items(out), out, source, index, pad_value, arrange, unblanked_dims(call))
