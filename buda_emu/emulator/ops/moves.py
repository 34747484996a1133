"""Ops that move elements and compute nothing: copies (nop, datacopy, ethernet_datacopy), tilizer (row-major data of a
flat queue into tiles), embedding (rows of a table, picked by indices), splice (pieces of its inputs, one after the
other)."""

from collections.abc import Sequence
from math import prod
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.tiles.tile_memory import embedding_tiles, gather_tiles, place_tiles
from buda_emu.arithmetic.tensor.layout import tilize
from buda_emu.emulator.ops.base import Implementation, Parallel, PlannedOp, Tiles, implements
from buda_emu.emulator.ops.common import arrange_tiles, blank, items, kernel_operand, require_operands, unblanked_dims
from buda_emu.emulator.ops.operands import after_tms, all_entries, gather_operand
from buda_emu.spec.blocking import FULL_TILE, TILE_ELEMENTS, Shape
from buda_emu.spec.formats import is_raw
from buda_emu.support.errors import ProgramError, UnsupportedError


@implements("nop", "datacopy", "ethernet_datacopy")
class Copy(Implementation):
    """A copy of in0, transposed inside its tiles where the flag says so."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return the shape of the one input. Raises ProgramError for another number of inputs."""
        require_operands(call, 1)
        return call.operands[0].map.shape

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the copy by the definition: in0, its elements arranged, blanked outside the tile dims."""
        return blank(arrange_tiles(call, 0, inputs[0]), unblanked_dims(call))

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Copy the operand's tiles, arranged and blanked, by the kernel that gathers tiles."""
        source, index, pad_value, arrange = kernel_operand(call, 0, inputs)
        parallel(gather_tiles, items(out), out, source, index, pad_value, arrange, unblanked_dims(call))


@implements("tilizer")
class Tilizer(Implementation):
    """The conversion of row-major data to tiles.

    Its input is float32[w, runs, 1024]: an entry holds the elements of t * rows * cols tiles of the queue's own tile
    dim as the host pushed them, row-major and unquantised, and is padded at the end to whole runs of 1024."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return the queue's shape in tiles. Raises ProgramError for TMs, pad or unpad, which a tilizer cannot have,
        UnsupportedError for raw words in small tiles."""
        require_operands(call, 1)
        operand = call.operands[0]
        if not operand.map.is_identity:
            raise ProgramError(f"op {call.name}: tilizer reads its queue as it is, without TMs, pad or unpad")
        if is_raw(operand.label) and call.blocking.tile_dim != FULL_TILE:
            raise UnsupportedError(f"op {call.name}: tilizer of {operand.label} into tiles of {call.blocking.tile_dim}")
        return operand.map.shape

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the tiles by the definition. `inputs` is one tensor of the flat elements, of any shape with w
        first."""
        (source,) = inputs
        t, rows, cols = call.operands[0].map.source_shape
        height, width = call.operands[0].tile_dim
        element_shape = (t, rows * height, cols * width)
        flat = source.reshape(source.shape[0], -1)[:, : prod(element_shape)]
        # Raw words stay in the order of the host's buffer.
        tiles = tilize(flat.reshape(-1, *element_shape), (height, width), megarow=is_raw(call.operands[0].label))
        return blank(tiles, call.blocking.tile_dim)

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:  # noqa: ARG002
        """Compute the tiles of each entry into `out`; moving elements needs no kernel."""
        for w in range(out.shape[0]):
            entry = w if len(inputs[0]) > 1 else 0
            out[w] = self.reference(call, [inputs[0][entry : entry + 1]]).reshape(out.shape[1:])


NO_ROW: Final = -1  # a row of zeros
ZERO_ROW_INDEX: Final = 0xFFFFFFFF  # all bits set stands for a row of zeros
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
    """Return for each row of elements in one t slice of an embedding's result the number of the table row that it
    copies, int64[w, R * 32]; NO_ROW for a row of zeros. `indices`: post-TM words float32[w, t, R, C, 32, 32]. Raises
    ProgramError for an index beyond the table."""
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


class Piece(NamedTuple):
    """A piece of the result: `length` units of input `source` from unit `first` on become the result's units from `to`
    on."""

    source: int
    first: int
    to: int
    length: int


def pieces(call: PlannedOp, unit_counts: Sequence[int], out_units: int) -> list[Piece]:
    """Return the pieces that make up one slice of the result, in order; `unit_counts` are the units that each input has
    in a slice, `out_units` those of the result. Raises ProgramError where the op's triples do not fit the inputs, or
    the inputs do not fill the result exactly."""
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
    """Return [index, length, stride] of each input (OPS 6.8). Raises ProgramError where an input has none, or it does
    not fit the units that the input has."""
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
    """Return, for each tile of a splice's result in tile order, the number of the input it comes from and its post-TM
    position there. Raises ProgramError where the inputs do not fill the result."""
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
        """Compute the result by the definition: each tile is the one of the input and position that `sources`
        returns."""
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
