"""embedding on the device: rows of elements find new places (DEVICE_NUMERICS 6.2, inferred)."""

import numpy as np

from buda_emu.arithmetic.formats.stored import TILE_ELEMENTS, Bits
from buda_emu.arithmetic.tensix.registers import OpRegisters
from buda_emu.emulator.ops import embedding
from buda_emu.emulator.ops.on_device.base import DeviceCall, Job, Maker, copied_mode, copy_of, elements_of, on_device
from buda_emu.emulator.ops.on_device.operands import Stored


@on_device("embedding")
class Embedding:
    """Rows of a table in row-major order (OPS 6.9)."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Of the table; the indices are read by no unit."""
        found = call.registers((0,))
        return OpRegisters((*found.inputs, ""), found.intermediate, found.dst)

    def maker(self, job: Job) -> Maker:
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
        found = np.where((picked >= 0)[..., np.newaxis], lines[np.arange(entries)[:, np.newaxis], picked], 0)
        tiles = found.reshape(entries, 1, -1, 32, cols, 32).swapaxes(3, 4)
        every = np.repeat(tiles, t, axis=1).astype(datums.dtype, copy=False).reshape(entries, -1, TILE_ELEMENTS)
        mode = copied_mode(table, job.registers.dst)
        return copy_of(Bits(table.bits.df, np.ascontiguousarray(every)), table.register, mode, job.units)
