"""embedding on the device: rows of elements move to new places (DEVICE_NUMERICS 6.2, inferred)."""

import numpy as np

from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix.registers import OpRegisters
from buda_emu.emulator.ops import embedding
from buda_emu.emulator.ops.on_device.base import (
    DeviceCall,
    Job,
    Maker,
    assembled_copy_maker,
    copied_mode,
    elements_of,
    on_device,
)
from buda_emu.emulator.ops.on_device.operands import Stored
from buda_emu.spec.blocking import TILE_ELEMENTS


@on_device("embedding")
class Embedding:
    """A lookup of rows of a table in row-major order (OPS 6.9)."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Return the register formats of the table; no unit reads the indices."""
        registers = call.registers((0,))
        return OpRegisters((*registers.inputs, ""), registers.intermediate, registers.dst)

    def maker(self, job: Job) -> Maker:
        """Return the maker of a copy of the picked rows, which are put together at once. Raises UnsupportedError for a
        gradient op or a table of a block format, ProgramError for an index beyond the table."""
        job.no_gradient()
        call = job.call
        sources = job.sources
        entries = job.entries
        table = elements_of(call, sources[0])
        indices = sources[1]
        assert isinstance(indices, Stored)
        operand = call.op.operands[1].map
        (t, _, cols) = call.op.blocking.shape
        values = indices.bits.values().reshape(len(indices.bits), *operand.source_shape, 32, 32)
        picked = embedding.picked_rows(call.op, operand.apply(values))
        picked = np.broadcast_to(picked, (entries, picked.shape[1]))
        count = call.op.operands[0].map.index.size
        datums = table.stored_tiles(0, len(table.bits) * count).datums
        lines = datums.reshape(len(table.bits), -1, cols * 32)
        lines = np.broadcast_to(lines, (entries, *lines.shape[1:]))
        rows = np.where((picked >= 0)[..., np.newaxis], lines[np.arange(entries)[:, np.newaxis], picked], 0)
        tiles = rows.reshape(entries, 1, -1, 32, cols, 32).swapaxes(3, 4)
        every = np.repeat(tiles, t, axis=1).astype(datums.dtype, copy=False).reshape(entries, -1, TILE_ELEMENTS)
        mode = copied_mode(table, job.registers.dst)
        return assembled_copy_maker(Bits(table.bits.df, np.ascontiguousarray(every)), table.register, mode, job.units)
