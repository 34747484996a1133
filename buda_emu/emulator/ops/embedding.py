"""embedding: rows of a table, picked by indices. It moves elements and computes nothing."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.tiles.tile_memory import embedding_tiles
from buda_emu.emulator.ops.base import Parallel, PlannedOp, Tiles, implements
from buda_emu.emulator.ops.common import items, kernel_operand, require_operands
from buda_emu.emulator.ops.operands import after_tms, all_entries, gather_operand
from buda_emu.spec.blocking import TILE_ELEMENTS, Shape
from buda_emu.support.errors import ProgramError

NO_ROW: Final = -1  # a row of zeros
ZERO_ROW_INDEX: Final = 0xFFFFFFFF
ROW_MAJOR_LABELS: Final = ("Float32", "Tf32", "Float16_b")


@implements("embedding")
class Embedding:
    """A lookup of table rows: in0 is the table, a flat queue, its elements in host row-major order, 1024 to a tile. in1
    holds the indices."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return (t, grid rows * ceil(num_indices / 32), grid columns * mblock columns * ublock columns). Raises
        ProgramError where table, indices and grid do not fit."""
        require_operands(call, 2)
        blocking = call.blocking
        num_indices = call.attributes.num_indices
        grid_rows = blocking.grid_size[0]
        table, indices = (operand.map.shape for operand in call.operands)
        if table[2] != blocking.cols:
            raise ProgramError(f"op {call.name}: embedding table is {table[2]} tiles wide, the op {blocking.cols}")
        if num_indices < 1:
            raise ProgramError(f"op {call.name}: embedding needs attribute num_indices")
        if indices[1] % grid_rows:
            raise ProgramError(
                f"op {call.name}: embedding cannot split {indices[1]} index rows over {grid_rows} grid rows"
            )
        have = indices[0] * indices[1] // grid_rows * indices[2] * TILE_ELEMENTS
        if have < num_indices:
            raise ProgramError(f"op {call.name}: embedding num_indices {num_indices}, a grid row has {have}")
        label = call.operands[1].label
        if label != "RawUInt32" and label not in ROW_MAJOR_LABELS:
            raise ProgramError(f"op {call.name}: embedding cannot read indices labelled {label}")
        return blocking.t, grid_rows * -(-num_indices // 32), blocking.cols

    def label(self, call: PlannedOp) -> str:
        """Return the declared out_df (OPS 3.1)."""
        return call.out_df

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the result by the definition: the picked table rows, zeros for NO_ROW, the same in each t slice."""
        table, indices = all_entries(inputs)
        w = table.shape[0]
        (t, rows, cols) = self.shape(call)
        elements = table.reshape(w, -1, cols * 32)  # consecutive tiles of 1024 are consecutive runs of the flat entry
        picked = picked_rows(call, indices)
        result = np.where((picked >= 0)[..., np.newaxis], elements[np.arange(w)[:, np.newaxis], picked], np.float32(0))
        tiles = result.reshape(w, 1, rows, 32, cols, 32).swapaxes(3, 4)
        return np.repeat(tiles, t, axis=1)

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Compute the result by the kernel that copies picked rows of the table."""
        table = gather_operand(kernel_operand(call, 0, inputs), parallel)
        picked = picked_rows(call, after_tms(call, 1, inputs))
        parallel(embedding_tiles, items(out), out, table, picked, call.blocking.cols)


def picked_rows(call: PlannedOp, indices: Tiles) -> NDArray[np.int64]:
    """Return the table row of each element row of one t slice, int64[w, R * 32]; NO_ROW for a row of zeros.

    `indices`: post-TM words float32[w, t, R, C, 32, 32]. Raises ProgramError for an index beyond the table."""
    blocking = call.blocking
    num_indices = call.attributes.num_indices
    t, rows, cols = call.operands[0].map.shape
    table_elements = t * rows * cols * TILE_ELEMENTS
    w = indices.shape[0]
    grid_rows = blocking.grid_size[0]
    groups = indices.reshape(w, indices.shape[1], grid_rows, -1, indices.shape[3], 32, 32)
    if call.operands[1].label in ROW_MAJOR_LABELS:
        groups = groups.swapaxes(4, 5)  # element rows over all columns of tiles; raw words stay tile by tile
    flat = groups.swapaxes(1, 2).reshape(w, grid_rows, -1)[:, :, :num_indices]
    words = np.ascontiguousarray(flat).view(np.uint32).astype(np.int64)
    used = np.where(words == ZERO_ROW_INDEX, NO_ROW, words)
    # The reference's check leaves the grid columns out; a row must be inside the table as well.
    width = blocking.mblock[1] * blocking.ublock[1] * 32
    highest = int(used.max())
    if highest * width >= table_elements or (highest + 1) * cols * 32 > table_elements:
        raise ProgramError(
            f"op {call.name}: embedding index {highest} is beyond a table of {table_elements // (cols * 32)} rows"
        )
    picked = np.full((w, grid_rows, -(-num_indices // 32) * 32), NO_ROW, np.int64)
    picked[:, :, :num_indices] = used
    return picked.reshape(w, -1)
