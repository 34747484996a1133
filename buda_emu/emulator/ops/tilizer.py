"""tilizer: row-major data of a flat queue into tiles. It reads the values that were pushed, before the queue rounds
them to its format."""

from collections.abc import Sequence
from math import prod

from buda_emu.arithmetic.tensor.layout import tilize
from buda_emu.emulator.ops.base import Implementation, Parallel, PlannedOp, Tiles, implements
from buda_emu.emulator.ops.common import blank, require_operands
from buda_emu.spec.blocking import FULL_TILE, Shape
from buda_emu.spec.formats import is_raw
from buda_emu.support.errors import ProgramError, UnsupportedError


@implements("tilizer")
class Tilizer(Implementation):
    """The conversion of row-major data to tiles.

    Its input is float32[w, runs, 1024]: an entry holds the elements of t * rows * cols tiles of the queue's own tile
    dim as the host pushed them, row-major and unquantised, and is padded at the end to whole runs of 1024."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return the queue's shape in tiles. Raises ProgramError for TMs, pad or unpad, UnsupportedError for raw words
        in small tiles."""
        require_operands(call, 1)
        operand = call.operands[0]
        if not operand.map.is_identity:
            raise ProgramError(f"op {call.name}: tilizer reads its queue as it is, without TMs, pad or unpad")
        if is_raw(operand.label) and call.blocking.tile_dim != FULL_TILE:
            raise UnsupportedError(f"op {call.name}: tilizer of {operand.label} into tiles of {call.blocking.tile_dim}")
        return operand.map.shape

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the tiles by the definition; see `buda_emu.emulator.ops.base`. `inputs`: the flat elements, of any
        shape with w first."""
        (source,) = inputs
        t, rows, cols = call.operands[0].map.source_shape
        height, width = call.operands[0].tile_dim
        element_shape = (t, rows * height, cols * width)
        flat = source.reshape(source.shape[0], -1)[:, : prod(element_shape)]
        # Raw words stay in the order of the host's buffer.
        tiles = tilize(flat.reshape(-1, *element_shape), (height, width), megarow=is_raw(call.operands[0].label))
        return blank(tiles, call.blocking.tile_dim)

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:  # noqa: ARG002
        """Compute the tiles of each entry into `out`; moving elements needs no kernel."""
        for w in range(out.shape[0]):
            entry = w if len(inputs[0]) > 1 else 0
            out[w] = self.reference(call, [inputs[0][entry : entry + 1]]).reshape(out.shape[1:])
