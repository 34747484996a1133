"""topk (DEVICE_NUMERICS 6.2, inferred): values are compared as the units hold them, by the network of OPS 6.11."""

from dataclasses import replace

import numpy as np

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix.lanes import load, store
from buda_emu.arithmetic.tensix.registers import OpRegisters
from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator import ops
from buda_emu.emulator.ops.base import Parallel, PlannedOp, Tiles
from buda_emu.emulator.ops.on_device.base import DeviceCall, DstTiles, Job, Maker, on_device, require_float
from buda_emu.emulator.ops.on_device.operands import Stored
from buda_emu.emulator.ops.on_device.reference_units import ReferenceUnits
from buda_emu.emulator.ops.on_device.units import Units
from buda_emu.spec.blocking import TILE_ELEMENTS


@on_device("topk")
class TopK:
    """The k best of each row: values are copied to Dst, sorted and packed; indices keep their values."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Return the register formats of the values; that of the indices, which no unit converts, is "". Raises
        UnsupportedError."""
        registers = call.registers((0,))
        return OpRegisters((*registers.inputs, ""), registers.intermediate, registers.dst)

    def maker(self, job: Job) -> Maker:
        """Sort the values of all rows at once as Dst holds them, and return the function that hands out tiles of the
        best values or of their indices. Raises UnsupportedError for a gradient op or integers."""
        job.no_gradient()
        call = job.call
        entries = job.entries
        units = job.units
        source, indices = job.sources
        mode = job.registers.dst
        require_float(call, source.register)
        assert isinstance(indices, Stored)
        count = call.op.operands[0].map.index.size
        values = np.empty((entries, count, TILE_ELEMENTS), np.float32)
        flat = values.reshape(-1, TILE_ELEMENTS)
        for start in range(0, len(flat), count):
            flat[start : start + count] = load(source.image(units, start, start + count), mode).view(np.float32)
        numbers = indices.stored_tiles(0, entries * count).values().reshape(values.shape)
        result = _sort_rows(_with_identity_maps(call.op), values, numbers, units, job.parallel)
        if call.op.attributes.sort == "max":
            images: U32 = store(result.view(np.uint32), mode).reshape(-1, TILE_ELEMENTS)
            return lambda start, stop: DstTiles(images[start:stop], mode)
        rows = Bits.encode(call.op.out_df, result.reshape(-1, TILE_ELEMENTS))
        return lambda start, stop: rows[start:stop]


def _with_identity_maps(op: PlannedOp) -> PlannedOp:
    """Return the call for operands whose tiles are already in post-TM order."""
    operands = tuple(replace(operand, map=TileMap.identity(operand.map.shape)) for operand in op.operands)
    return replace(op, operands=operands)


def _sort_rows(op: PlannedOp, values: Tiles, numbers: Tiles, units: Units, parallel: Parallel) -> Tiles:
    """Return the result of topk, best values or indices, on values and index numbers float32[w, tiles, 1024]: by the
    network's reference for `ReferenceUnits`, else by its kernel."""
    implementation = ops.implementation("topk")
    t, rows, cols = implementation.shape(op)
    if isinstance(units, ReferenceUnits):
        shape = (len(values), *op.operands[0].map.shape, 32, 32)
        return implementation.reference(op, [values.reshape(shape), numbers.reshape(shape)])
    out = np.empty((len(values), t * rows * cols, TILE_ELEMENTS), np.float32)
    implementation.run(op, [values, numbers], out, parallel)
    return out
