"""reduce: max pool along r and c, a chain of maxima along z (DEVICE_NUMERICS 2.6, 2.8, 3.5)."""

import numpy as np

from buda_emu.arithmetic.tensix.functions.table import bind
from buda_emu.arithmetic.tensix.lanes import DstMode
from buda_emu.arithmetic.tensix.registers import OpRegisters
from buda_emu.emulator.ops.base import Parallel, PlannedOp
from buda_emu.emulator.ops.on_device.base import (
    DeviceCall,
    DeviceOp,
    DstTiles,
    Job,
    Maker,
    Packing,
    on_device,
    pack_tiles,
    require_float,
    require_reloadable,
    result_shape,
)
from buda_emu.emulator.ops.on_device.operands import InDest, OperandSource, Stored
from buda_emu.emulator.ops.on_device.units import Index, Units, Words
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.support.errors import UnsupportedError


@on_device("reduce")
class Reduce(DeviceOp):
    """A reduction: along r and c one Dst runs over all tiles; along z every step but the last goes through
    intermed_df."""

    def maker(self, job: Job) -> Maker:
        """Return the function that makes tiles of the maxima along the op's dim. Raises UnsupportedError, also for a
        gradient op."""
        job.no_gradient()
        call = job.call
        (source,) = job.sources
        if call.op.attributes.dim == "z":
            return _z_maximum_maker(call, source, job.registers, job.units)
        return pool_maker(call, source, job.registers.dst, result_shape(call), job.entries, job.units, job.parallel)


def pool_maker(
    call: DeviceCall,
    source: OperandSource,
    mode: DstMode,
    shape: tuple[int, int, int],
    entries: int,
    units: Units,
    parallel: Parallel,
) -> Maker:
    """Return the function that makes tiles of the maxima of `source` along r or c. `shape`: that of an entry of the
    result; `entries`: how many there are. Raises UnsupportedError for another dim, for integers and for dest."""
    op = call.op
    dim = op.attributes.dim
    if dim not in ("r", "c"):
        raise UnsupportedError(f"op {op.name}: reduce along {dim} does not run on the device (OPS 2)")
    require_float(call, source.register)
    if isinstance(source, InDest):
        raise UnsupportedError(f"op {op.name}: reduce of dest")
    assert isinstance(source, Stored)
    words = source.all_words(units, parallel)
    words = Words(words.register, words.tiles, _index_by_lines(op, words.index), words.pad)
    t, rows, cols = shape
    dst = units.room(entries, t * rows * cols)
    flat = dst.reshape(-1, TILE_ELEMENTS)

    def tiles(start: int, stop: int) -> DstTiles:
        """Compute the maxima of tiles start..stop in Dst."""
        units.pool(words, dst, start, stop, dim, mode)
        return DstTiles(flat[start:stop], mode)

    return tiles


def _index_by_lines(op: PlannedOp, index: Index) -> Index:
    """Return the index of source tiles, ordered so that the tiles which become one result tile follow each other: those
    of a row, for dim r those of a column."""
    grid = index.reshape(op.operands[0].map.shape)
    lines = np.ascontiguousarray(grid.transpose(0, 2, 1) if op.attributes.dim == "r" else grid).reshape(-1)
    lines.flags.writeable = False
    return lines


def _z_maximum_maker(call: DeviceCall, source: OperandSource, registers: OpRegisters, units: Units) -> Maker:
    """Return the function that makes tiles of the maxima along z. The running maximum goes through intermed_df between
    slices. Raises UnsupportedError where it cannot be read back."""
    z = call.op.attributes.z
    mode = registers.dst
    if z > 1:
        require_reloadable(call, registers)
    _, rows, cols = call.op.operands[0].map.shape
    per_slice = rows * cols
    bound = bind("integer_maximum" if registers.integer else "maximum", call.core)

    def tiles(start: int, stop: int) -> DstTiles:
        """Compute tiles start..stop: one step for each slice, packed and unpacked between steps."""
        run, tile = np.divmod(np.arange(start, stop), per_slice)  # runs of z slices, counted over all entries
        image = source.image_at(units, run * z * per_slice + tile)
        for step in range(1, z):
            stored = pack_tiles(units, DstTiles(image, mode), call.op.intermed_df, Packing(registers.integer))
            running = units.copy(units.unpack(stored, registers.intermediate), registers.intermediate, mode)
            new = source.image_at(units, (run * z + step) * per_slice + tile)
            image = units.function(bound, mode, new, running)
        return DstTiles(image, mode)

    return tiles
