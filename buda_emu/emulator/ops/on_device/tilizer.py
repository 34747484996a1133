"""tilizer on the device: elements move to new places (DEVICE_NUMERICS 6.2, inferred)."""

import numpy as np

from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.emulator.ops.on_device.base import (
    DeviceOp,
    Job,
    Maker,
    assembled_copy_maker,
    copied_mode,
    elements_of,
    on_device,
)
from buda_emu.spec.formats import is_raw


@on_device("tilizer")
class Tilizer(DeviceOp):
    """The conversion of a flat queue's elements, stored row-major in its format, to tiles (OPS 6.10, LAYOUT 3.3)."""

    def maker(self, job: Job) -> Maker:
        """Rearrange the elements of the whole queue, and return the maker of a copy of the tiles. Raises
        UnsupportedError for a gradient op or a block format."""
        job.no_gradient()
        call = job.call
        entries = job.entries
        source = elements_of(call, job.sources[0])
        (t, rows, cols) = call.op.operands[0].map.source_shape
        (height, width) = call.op.operands[0].tile_dim
        datums = source.bits.datums
        if not is_raw(source.bits.df):
            flat = datums[..., : height * width].reshape(len(datums), t, rows, height, cols, width).swapaxes(3, 4)
            tiles = np.zeros((*flat.shape[:4], 32, 32), datums.dtype)
            tiles[..., :height, :width] = flat
            datums = tiles.reshape(datums.shape)
        datums = np.ascontiguousarray(np.broadcast_to(datums, (entries, *datums.shape[1:])))
        mode = copied_mode(source, job.registers.dst)
        return assembled_copy_maker(Bits(source.bits.df, datums), source.register, mode, job.units)
