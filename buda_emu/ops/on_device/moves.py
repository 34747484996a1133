"""splice, embedding, tilizer: elements find new places and pass the units as in a datacopy (DEVICE_NUMERICS 6.2,
inferred)."""

from itertools import pairwise

import numpy as np

from buda_emu.errors import UnsupportedError
from buda_emu.formats.bits import U32
from buda_emu.formats.stored import TILE_ELEMENTS, Bits
from buda_emu.ops import embedding, splice
from buda_emu.ops.on_device.base import DeviceCall, Job, Made, Maker, on_device
from buda_emu.ops.on_device.operands import Source, Stored
from buda_emu.ops.on_device.units import Units, float_mode
from buda_emu.spec.formats import is_block, is_raw
from buda_emu.tensix.lanes import DstMode
from buda_emu.tensix.registers import REGISTERS, OpRegisters


def _copied(source: Source, mode: DstMode) -> DstMode:
    return float_mode(mode) if REGISTERS.get(source.register) is not None else mode


@on_device("splice")
class Splice:
    """Each tile of the result is one of an input (OPS 6.8)."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Of all inputs."""
        return call.registers()

    def maker(self, job: Job) -> Maker:
        """See `DeviceOp`."""
        job.no_gradient()
        call, sources, units = job.call, job.sources, job.units
        origin, position = splice.sources(call.op)
        sizes = np.array([operand.map.index.size for operand in call.op.operands])
        mode = _copied(sources[0], job.registers.dst)

        def tiles(start: int, stop: int) -> Made:
            entry, tile = np.divmod(np.arange(start, stop), len(origin))
            of, at = origin[tile], position[tile] + entry * sizes[origin[tile]]
            images = np.empty((stop - start, TILE_ELEMENTS), np.uint32)
            for number, source in enumerate(sources):
                # What takes turns in the result lies one behind the other in its operand.
                own = np.flatnonzero(of == number)
                if not len(own):
                    continue
                cuts = [0, *(np.flatnonzero(np.diff(at[own]) != 1) + 1).tolist(), len(own)]
                for first, last in pairwise(cuts):
                    begin, end = (int(at[own[n]]) for n in (first, last - 1))
                    images[own[first:last]] = source.image(units, begin, end + 1)
            return Made(images, mode)

        return tiles


def _elements(call: DeviceCall, source: Source) -> Stored:
    """An operand whose elements are taken one by one. Raises UnsupportedError for formats without such (LAYOUT 3.3)."""
    if not isinstance(source, Stored) or is_block(source.bits.df):
        raise UnsupportedError(f"op {call.op.name}: {call.op.type} of {call.dfs[0]}, which has no elements of its own")
    return source


def _copy_of(bits: Bits, register: str, mode: DstMode, units: Units) -> Maker:
    """A datacopy of tiles that have been put together."""
    rows = bits.rows()

    def tiles(start: int, stop: int) -> Made:
        words: U32 = units.unpack(rows[start:stop], register)
        return Made(units.copy(words, register, mode), mode)

    return tiles


@on_device("embedding")
class Embedding:
    """Rows of a table in row-major order (OPS 6.9)."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Of the table; the indices are read by no unit."""
        found = call.registers((0,))
        return OpRegisters((*found.inputs, ""), found.intermediate, found.dst)

    def maker(self, job: Job) -> Maker:
        """See `DeviceOp`."""
        job.no_gradient()
        call, sources, entries = job.call, job.sources, job.entries
        table, indices = _elements(call, sources[0]), sources[1]
        assert isinstance(indices, Stored)
        operand, (t, _, cols) = call.op.operands[1].map, call.op.blocking.shape
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
        mode = _copied(table, job.registers.dst)
        return _copy_of(Bits(table.bits.df, np.ascontiguousarray(every)), table.register, mode, job.units)


@on_device("tilizer")
class Tilizer:
    """The elements of a flat queue, which lie there row-major in its format (OPS 6.10, LAYOUT 3.3)."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Of the one input."""
        return call.registers()

    def maker(self, job: Job) -> Maker:
        """See `DeviceOp`."""
        job.no_gradient()
        call, entries = job.call, job.entries
        source = _elements(call, job.sources[0])
        (t, rows, cols), (height, width) = call.op.operands[0].map.source_shape, call.op.operands[0].tile_dim
        datums = source.bits.datums
        if not is_raw(source.bits.df):
            flat = datums[..., : height * width].reshape(len(datums), t, rows, height, cols, width).swapaxes(3, 4)
            tiles = np.zeros((*flat.shape[:4], 32, 32), datums.dtype)
            tiles[..., :height, :width] = flat
            datums = tiles.reshape(datums.shape)
        datums = np.ascontiguousarray(np.broadcast_to(datums, (entries, *datums.shape[1:])))
        mode = _copied(source, job.registers.dst)
        return _copy_of(Bits(source.bits.df, datums), source.register, mode, job.units)
