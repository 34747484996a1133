"""splice: pieces of its inputs, one after the other. It moves tiles and computes nothing."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.tiles.tile_memory import place_tiles
from buda_emu.emulator.ops.base import Parallel, PlannedOp, Tiles, implements
from buda_emu.emulator.ops.common import kernel_operand
from buda_emu.emulator.ops.operands import all_entries
from buda_emu.spec.blocking import Shape
from buda_emu.support.errors import ProgramError


class Piece(NamedTuple):
    """A piece of the result: `length` units of input `source` from unit `first` on become the result's units from `to`
    on."""

    source: int
    first: int
    to: int
    length: int


def pieces(call: PlannedOp, unit_counts: Sequence[int], out_units: int) -> list[Piece]:
    """Return the pieces of one slice of the result, in order; `unit_counts` are the units that each input has there.

    Raises ProgramError where a triple does not fit its input, or the inputs do not fill the result exactly."""
    triples = _triples(call, unit_counts)
    positions = [0] * len(unit_counts)
    result: list[Piece] = []
    to = 0
    while to < out_units:
        for number, (index, length, stride) in enumerate(triples):
            positions[number] += index
            if positions[number] + length > unit_counts[number] or to + length > out_units:
                raise ProgramError(
                    f"op {call.name}: splice of unit counts {list(unit_counts)} with {[list(t) for t in triples]} "
                    f"overruns input {number} or the {out_units} units of the result"
                )
            result.append(Piece(number, positions[number], to, length))
            positions[number] += stride
            to += length
    if positions != list(unit_counts):
        raise ProgramError(
            f"op {call.name}: splice into {out_units} units uses {positions} of the inputs' {list(unit_counts)} units"
        )
    return result


def _triples(call: PlannedOp, unit_counts: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return [index, length, stride] of each input, checked against the units that it has (Q of OPS 6.8)."""
    written = dict(call.attributes.inputs)
    if sorted(written) != list(range(len(unit_counts))):
        raise ProgramError(
            f"op {call.name}: splice of {len(unit_counts)} input(s) with attributes {[f'input{n}' for n in written]}"
        )
    triples: list[tuple[int, int, int]] = []
    for number, limit in enumerate(unit_counts):
        index, length, stride = written[number]
        step = index + stride
        inside = 0 <= index < limit and index + length <= limit and step <= limit
        if not (inside and 0 < length <= stride and limit % step == 0):
            raise ProgramError(
                f"op {call.name}: splice input{number} [{index}, {length}, {stride}] does not fit {limit} units"
            )
        triples.append((index, length, stride))
    return triples


def ublock_tiles(rows: int, cols: int, ublock: tuple[int, int], order: str) -> NDArray[np.int64]:
    """Return positions [ublock, tile] in a row-major block of rows x cols tiles, ublocks numbered in `order` (OPS
    2)."""
    ur, uc = ublock
    grid = np.arange(rows * cols, dtype=np.int64).reshape(rows // ur, ur, cols // uc, uc)
    axes = (2, 0, 1, 3) if order == "c" else (0, 2, 1, 3)
    return grid.transpose(axes).reshape(-1, ur * uc)


def core_blocks(shape: Shape, grid_size: tuple[int, int]) -> NDArray[np.int64]:
    """Return positions [core, t, row, column] of the tiles of a tensor that is split evenly over a grid, cores
    row-major."""
    t, rows, cols = shape
    grid_rows, grid_cols = grid_size
    height = rows // grid_rows
    width = cols // grid_cols
    grid = np.arange(t * rows * cols, dtype=np.int64).reshape(t, grid_rows, height, grid_cols, width)
    return grid.transpose(1, 3, 0, 2, 4).reshape(-1, t, height, width)


def sources(call: PlannedOp) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each tile of the result in tile order, the input it comes from and its post-TM position there."""
    if call.attributes.granularity == "t":
        units = _units_of_t
    else:
        units = _units_of_ublocks
    inputs = [units(call, operand.map.shape, f"input {n}") for n, operand in enumerate(call.operands)]
    result = units(call, call.blocking.shape, "the result")
    origin = np.empty(result.size, np.int64)
    position = np.empty(result.size, np.int64)
    for source, first, to, length in pieces(call, [tiles.shape[1] for tiles in inputs], result.shape[1]):
        places = result[:, to : to + length]
        origin[places] = source
        position[places] = inputs[source][:, first : first + length]
    return origin, position


def _units_of_t(call: PlannedOp, shape: Shape, role: str) -> NDArray[np.int64]:
    """Return tile positions [1, unit, tile] of a tensor where a unit is one t slice. `role` names the tensor in the
    message. Raises ProgramError where a slice has not the op's dims."""
    t, rows, cols = shape
    if (rows, cols) != call.blocking.shape[1:]:
        raise ProgramError(
            f"op {call.name}: splice along t, {role} has {rows} x {cols} tiles, the op {list(call.blocking.shape[1:])}"
        )
    return np.arange(t * rows * cols, dtype=np.int64).reshape(1, t, rows * cols)


def _units_of_ublocks(call: PlannedOp, shape: Shape, role: str) -> NDArray[np.int64]:
    """Return tile positions [core and t, unit, tile] of a tensor where a unit is an ublock of the op's size, numbered
    in its order. `role` names the tensor in the message. Raises ProgramError where the tensor does not split."""
    blocking = call.blocking
    t, rows, cols = shape
    height = blocking.grid_size[0] * blocking.ublock[0]
    width = blocking.grid_size[1] * blocking.ublock[1]
    if t != blocking.t or rows % height or cols % width:
        raise ProgramError(
            f"op {call.name}: splice of ublocks, {role} with dims {list(shape)} does not split into t {blocking.t}, "
            f"grid {list(blocking.grid_size)}, ublocks {list(blocking.ublock)}"
        )
    blocks = core_blocks(shape, blocking.grid_size)
    in_block = ublock_tiles(blocks.shape[2], blocks.shape[3], blocking.ublock, blocking.ublock_order)
    return blocks.reshape(blocks.shape[0] * t, -1)[:, in_block]


@implements("splice")
class Splice:
    """A concatenation of units: t slices of whole tensors, or output ublocks core by core and t by t."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return the declared shape, after checking that the pieces fill it. Raises ProgramError where they do not."""
        sources(call)
        return call.blocking.shape

    def label(self, call: PlannedOp) -> str:
        """Return the declared out_df (OPS 3.1)."""
        return call.out_df

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the result by the definition: each tile is that of the input and position that `sources` tells."""
        origin, position = sources(call)
        flat = [tensor.reshape(tensor.shape[0], -1, 32, 32) for tensor in all_entries(inputs)]
        tiles: list[Tiles] = [flat[source][:, tile] for source, tile in zip(origin, position, strict=True)]
        return np.stack(tiles, axis=1).reshape(-1, *call.blocking.shape, 32, 32)

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Copy the tiles of each input to their places in the result by a kernel."""
        origin, position = sources(call)
        for number in range(len(inputs)):
            places = np.flatnonzero(origin == number).astype(np.int32)
            positions = position[places].astype(np.int32)
            parallel(
                place_tiles, out.shape[0] * len(places), out, kernel_operand(call, number, inputs), positions, places
            )
