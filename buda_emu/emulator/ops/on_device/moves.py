"""Ops that move elements, on the device: copies (DEVICE_NUMERICS 2.7, 6.2); tilizer, embedding and splice, which put
elements, rows and whole tiles in new places (DEVICE_NUMERICS 6.2, inferred)."""

from itertools import pairwise

import numpy as np

from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.kernels.tiles.tile_memory import AS_IS
from buda_emu.arithmetic.tensix.lanes import DstMode
from buda_emu.arithmetic.tensix.registers import IN_DST, REGISTERS, OpRegisters
from buda_emu.emulator.ops import moves
from buda_emu.emulator.ops.on_device.base import (
    DeviceCall,
    DeviceOp,
    DstTiles,
    Filler,
    Job,
    Maker,
    assembled_copy_maker,
    copied_mode,
    elements_of,
    on_device,
    result_dims,
)
from buda_emu.emulator.ops.on_device.operands import InDest, OperandSource, Stored
from buda_emu.emulator.ops.on_device.units import Units, float_mode
from buda_emu.spec.blocking import FULL_TILE, TILE_ELEMENTS
from buda_emu.spec.formats import is_raw
from buda_emu.support.errors import UnsupportedError


@on_device("nop", "datacopy")
class Copy(DeviceOp):
    """A copy: unpacked, copied to Dst, packed. A gradient nop adds the input to the running value (2.8)."""

    def maker(self, job: Job) -> Maker | Filler:
        """Return the function that makes tiles of a copy; where 16-bit datums go through unchanged, one that copies
        them directly. Raises UnsupportedError."""
        call = job.call
        source = job.sources[0]
        units = job.units
        if isinstance(source, Stored) and _keeps_halves(job, source):
            return Filler(lambda start, stop, out: units.recode(source.stored_tiles(start, stop), out))
        return copy_maker(call, source, job.previous, job.registers.dst, units)


def _keeps_halves(job: Job, source: Stored) -> bool:
    """Return whether 16-bit datums pass from the source through Dst to the result in the same format, changed only
    where they are zeros, denormals or NaNs: then no unit needs to be emulated."""
    call = job.call
    df = source.bits.df
    mode = {"Float16": "fp16", "Float16_b": "bf16"}.get(df)
    same = df == source.register == call.op.out_df and mode == job.registers.dst and source.arrange == AS_IS
    plain = job.previous is None and not call.op.attributes.relu_en and result_dims(call) == FULL_TILE
    return same and plain


def copy_maker(
    call: DeviceCall, source: OperandSource, previous: OperandSource | None, mode: DstMode, units: Units
) -> Maker:
    """Return the function that makes tiles of a copy of `source`, stand-alone or in a fused op. `previous`: the running
    value of a gradient op, which is added; `mode`: that of Dst. Raises UnsupportedError."""
    if isinstance(source, InDest):
        mode = source.mode
    elif mode == "int32" and REGISTERS[source.register] is not None:
        mode = float_mode(mode)
    if previous is None:
        return lambda start, stop: DstTiles(source.image(units, start, stop), mode)
    if source.register in IN_DST:
        raise UnsupportedError(f"op {call.op.name}: gradient nop of {call.dfs[0]}, which is not in a Src register")

    def sum_of(start: int, stop: int) -> DstTiles:
        """Compute tiles start..stop of input plus running value."""
        a = source.words(units, start, stop)
        b = previous.words(units, start, stop)
        return DstTiles(units.add(a, b, source.register, mode), mode)

    return sum_of


@on_device("ethernet_datacopy")
class EthernetCopy:
    """A copy of the unchanged bytes: they do not pass through a core's units (6.2)."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Return empty register formats: none are used. Raises UnsupportedError for a conversion of formats."""
        if call.dfs[0] != call.op.out_df:
            raise UnsupportedError(f"op {call.op.name}: ethernet_datacopy of {call.dfs[0]} to {call.op.out_df}")
        return OpRegisters(("",), "", "fp32")

    def maker(self, job: Job) -> Maker:
        """Return the function that passes on the stored tiles. Raises UnsupportedError for a gradient op."""
        job.no_gradient()
        (source,) = job.sources
        assert isinstance(source, Stored)
        return source.stored_tiles


@on_device("tilizer")
class Tilizer(DeviceOp):
    """The conversion of a flat queue's elements, stored row-major in its format, to tiles (OPS 6.10, LAYOUT 3.3)."""

    def maker(self, job: Job) -> Maker:
        """Rearrange the elements of all entries into tiles, and return the function that copies these. Raises
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


@on_device("embedding")
class Embedding:
    """A lookup of rows of a table in row-major order (OPS 6.9)."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Return the register formats of the table; no unit reads the indices."""
        registers = call.registers((0,))
        return OpRegisters((*registers.inputs, ""), registers.intermediate, registers.dst)

    def maker(self, job: Job) -> Maker:
        """Look up the rows of all entries, and return the function that copies their tiles. Raises UnsupportedError for
        a gradient op or a table of a block format, ProgramError for an index beyond the table."""
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
        picked = moves.picked_rows(call.op, operand.apply(values))
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


@on_device("splice")
class Splice(DeviceOp):
    """A splice: each tile of the result is one of an input (OPS 6.8)."""

    def maker(self, job: Job) -> Maker:
        """Return the function that copies tiles from the inputs. Raises UnsupportedError for a gradient op."""
        job.no_gradient()
        call = job.call
        sources = job.sources
        units = job.units
        origin, position = moves.sources(call.op)
        sizes = np.array([operand.map.index.size for operand in call.op.operands])
        mode = copied_mode(sources[0], job.registers.dst)

        def tiles(start: int, stop: int) -> DstTiles:
            """Copy tiles start..stop, as runs of neighbours of one input."""
            entry, tile = np.divmod(np.arange(start, stop), len(origin))
            of = origin[tile]
            at = position[tile] + entry * sizes[origin[tile]]
            images = np.empty((stop - start, TILE_ELEMENTS), np.uint32)
            for number, source in enumerate(sources):
                # What takes turns in the result lies one after the other in its operand.
                places = np.flatnonzero(of == number)
                if not len(places):
                    continue
                cuts = [0, *(np.flatnonzero(np.diff(at[places]) != 1) + 1).tolist(), len(places)]
                for first, last in pairwise(cuts):
                    begin, end = (int(at[places[n]]) for n in (first, last - 1))
                    images[places[first:last]] = source.image(units, begin, end + 1)
            return DstTiles(images, mode)

        return tiles
