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
        """Return the maker of the maxima along z, or of the pool along r or c. Raises UnsupportedError."""
        job.no_gradient()
        call = job.call
        (source,) = job.sources
        if call.op.attributes.dim == "z":
            return _maximum_over_z(call, source, job.registers, job.units)
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
    """Return the maker of a reduction of `source` along r or c. `shape` is that of an entry of the result, `entries`
    how many there are. Raises UnsupportedError."""
    op = call.op
    dim = op.attributes.dim
    if dim not in ("r", "c"):
        raise UnsupportedError(f"op {op.name}: reduce along {dim} does not run on the device (OPS 2)")
    require_float(call, source.register)
    if isinstance(source, InDest):
        raise UnsupportedError(f"op {op.name}: reduce of dest")
    assert isinstance(source, Stored)
    words = source.all_words(units, parallel)
    words = Words(words.register, words.tiles, _lines(op, words.index), words.pad)
    t, rows, cols = shape
    dst = units.room(entries, t * rows * cols)
    flat = dst.reshape(-1, TILE_ELEMENTS)

    def tiles(start: int, stop: int) -> DstTiles:
        """Compute the maxima of tiles start..stop in Dst."""
        units.pool(words, dst, start, stop, dim, mode)
        return DstTiles(flat[start:stop], mode)

    return tiles


def _lines(op: PlannedOp, index: Index) -> Index:
    """Return the index of source tiles, line after line: the tiles of a row, or along r of a column, that become one
    tile."""
    grid = index.reshape(op.operands[0].map.shape)
    lines = np.ascontiguousarray(grid.transpose(0, 2, 1) if op.attributes.dim == "r" else grid).reshape(-1)
    lines.flags.writeable = False
    return lines


def _maximum_over_z(call: DeviceCall, source: OperandSource, registers: OpRegisters, units: Units) -> Maker:
    """Return the maker of max(input z, running value), which goes through intermed_df from each step to the next."""
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
