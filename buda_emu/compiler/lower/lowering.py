"""The state of a lowering, and the few netlist ops from which all lowerings are built."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.arithmetic.tensor.tilemap import MAX_MAPPED, MAX_TILES
from buda_emu.compiler.graph.builder import host_name
from buda_emu.compiler.graph.graph import FORWARD, Array, ArrayKey, Graph, Node, OwnMemory
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.layout import TILE, Extent, Layout
from buda_emu.compiler.lower.picker import PickTable, WorkDivision, has_room, picker_rows
from buda_emu.compiler.lower.tiles import Constant, Shape, TileAttributes, TileGraph, TileOp, Tm, Use, after, over
from buda_emu.compiler.target import Target
from buda_emu.emulator.image.model_io import replace_infinities
from buda_emu.spec.precision import LARGEST
from buda_emu.support.errors import InternalError, UnsupportedError


@dataclass(frozen=True, slots=True)
class LoweredValue:
    """A value on the device: a tensor by name, the TMs on the way, and the layout of its elements behind them.

    `rows`: a pending matrix of tile rows, from those of the tensor to those of `layout`. `clean_rows`, `clean_columns`:
    whether padding there is 0. `same_rows`, `same_columns`: whether the one row (column) of the value fills all 32 of
    its tile.
    """

    source: str
    layout: Layout
    tms: tuple[Tm, ...] = ()
    rows: Sparse | None = None
    clean_rows: bool = True
    clean_columns: bool = True
    same_rows: bool = False
    same_columns: bool = False

    @property
    def shape_in_tiles(self) -> Shape:
        """The numbers of slices, tile rows and tile columns that an op reads, behind the TMs."""
        t, r, c = self.layout.extent
        return t, r // TILE, c // TILE

    @property
    def mixes_padding(self) -> bool:
        """Return whether sixteen columns of the tensor, before the TMs, may hold both elements and padding that is
        neither 0 nor a copy of an element."""
        turned = sum(tm[0] == "transpose" for tm in self.tms) % 2
        if turned:
            return not (self.clean_rows or self.same_rows) and self.layout.cuts_groups("r")
        return not (self.clean_columns or self.same_columns) and self.layout.cuts_groups("c")


Lower = Callable[["Lowering", Node], LoweredValue]
RULES: dict[str, Lower] = {}


def lowers(*names: str) -> Callable[[Lower], Lower]:
    """Return a decorator that registers a function as the lowering of core ops."""

    def declare(function: Lower) -> Lower:
        """Register a function as the rule by which the named ops are lowered."""
        RULES.update(dict.fromkeys(names, function))
        return function

    return declare


class Lowering:
    """Builds a `TileGraph` from a graph of core ops. `values` holds lowered values by the name of the node; constants
    stay in the graph."""

    def __init__(self, graph: Graph, target: Target, memory: OwnMemory) -> None:
        self.graph = graph
        self.target = target
        self._memory = memory
        self.out = TileGraph()
        self.values: dict[str, LoweredValue] = {}
        self.node: Node | None = None
        self.program = FORWARD
        self.undefined: set[str] = set()
        """Nodes whose elements may be NaN although no element of an input is."""
        self._known: dict[Any, str] = {}
        self._reserved = {host_name(output.label) for output in graph.outputs}  # queues that the host reads
        self._real: dict[Any, LoweredValue] = {}

    def begin(self, program: str) -> None:
        """Begin the program `program`: later ops belong to it, and no op of the previous one that moved a value is used
        again."""
        if program != self.program:
            self.program = program
            self._real.clear()

    # ------------------------------------------------------------------------------------------ names, constants
    def name(self, suffix: str = "") -> str:
        """Return an unused name derived from the node that is being lowered."""
        if self.node:
            base = self.node.name
        else:
            base = "value"
        return self.unique_name(f"{base}.{suffix}" if suffix else base)

    def unique_name(self, base: str) -> str:
        """Return `base`, with a number appended if a tensor or an output has that name. The name is not reserved."""
        name = base
        number = 1
        out = self.out
        while any(name in group for group in (self._reserved, out.ops, out.constants, out.inputs, out.states)):
            name = f"{base}.{number}"
            number = number + 1
        return name

    def constant(
        self,
        values: NDArray[Any],
        kind: str = "value",
        suffix: str = "constant",
        largest: float = LARGEST,
        copy: int = 0,
    ) -> str:
        """Add a constant with the elements [t, rows, columns], clipped to magnitude `largest`, and return its name,
        which ends in `suffix`. `kind` says what its elements are, and thus their format: "value", "picker", "words",
        "table" and so on (`Constant`). Equal constants with the same kind and the same number `copy` share a name.
        Raises UnsupportedError for NaN."""
        source_values: Any = values
        if isinstance(source_values, Referenced):
            values = self._bounded_reference(source_values, suffix, largest)
        else:
            values = self._bounded_copy(source_values, suffix, largest)
        key = (kind, copy, ArrayKey(values))
        if key not in self._known:
            name = self.name(suffix)
            self.out.constants[name] = Constant(name, values, kind)
            self._known[key] = name
        return self._known[key]

    def _bounded_copy(self, values: NDArray[Any], suffix: str, largest: float) -> NDArray[Any]:
        """Return a copy in memory, floats as float32 and clipped to magnitude `largest`. Raises UnsupportedError for
        NaN."""
        values = np.array(values, order="C")  # memory of its own: the model may change its parameters later
        if values.dtype.kind != "f":
            return values
        if not -largest <= values.min() <= values.max() <= largest:  # or not a number
            if np.isnan(values).any():
                raise self._nan_error(suffix)
            values = replace_infinities(values, largest)
        return values.astype(np.float32, copy=False)

    def _bounded_reference(self, values: Referenced, suffix: str, largest: float) -> Any:
        """Return the reference, clipped to magnitude `largest` if it has larger elements. Raises UnsupportedError for
        NaN."""
        if values.dtype.kind != "f" or values.is_within(largest):
            return values
        if values.has_nan():
            raise self._nan_error(suffix, f" ({values.origin})")
        return values.each(("within", largest), lambda block: replace_infinities(block, largest), largest)

    def _nan_error(self, suffix: str, origin: str = "") -> UnsupportedError:
        """Return the error for a constant with NaN. `suffix`: the name of the value within the present node; `origin`:
        where the constant comes from."""
        return UnsupportedError(
            f"{self.name(suffix)}{origin}: a constant with NaN: no value of the device stands for it: use a number"
        )

    # ----------------------------------------------------------------------------------------------- netlist ops
    def op(
        self,
        type: str,
        uses: list[Use],
        shape: Shape,
        /,
        *,
        suffix: str = "",
        inner: int = 0,
        grid: tuple[int, int] | None = None,
        ublock: tuple[int, int] | None = None,
        **attrs: Unpack[TileAttributes],
    ) -> str:
        """Add a netlist op for the present node and return its name, which ends in `suffix`. `inner`: tiles that a
        product or a maximum runs over; `grid` and `ublock`: what is fixed of its division, 0 for what is free. Raises
        UnsupportedError for an operand or result of too many tiles."""
        name = self.name(suffix)
        _check_size(name, shape, MAX_TILES)
        for use in uses:
            self._shape_behind_tms(self.out.shape_of(use.source), use.tms)
        source = self.node.name if self.node else ""
        self.out.ops[name] = TileOp(
            name=name,
            type=type,
            uses=uses,
            shape=shape,
            attrs=attrs,
            inner=inner,
            grid=grid,
            ublock=ublock,
            source=source,
            program=self.program,
        )
        return name

    def _shape_behind_tms(self, shape: Shape, tms: Sequence[Tm]) -> Shape:
        """Return the shape in tiles that a tensor of `shape` has behind TMs. Raises UnsupportedError if the tensor has
        too many tiles for an operand, at first or behind one of the TMs."""
        name = self.name()
        _check_size(name, shape, MAX_MAPPED)
        for tm in tms:
            shape = after(tm, shape)
            _check_size(name, shape, MAX_MAPPED)
        return shape

    def use(self, value: LoweredValue, *, transpose: bool = False) -> Use:
        """Return a value as an operand. Adds the op of its pending move of rows, and a nop if it is transposed by a TM
        and the reader does not allow that (`transpose`)."""
        value = self.real(value)
        self._mark_mixed_padding(value)
        if ("transpose",) in value.tms and not transpose:
            value = self.copy(value)
            self._mark_mixed_padding(value)
        return Use(value.source, value.tms)

    def _mark_mixed_padding(self, value: LoweredValue) -> None:
        """Note in the op that gives the value whether padding mixes with elements there. Only its readers know, because
        a value is described once it is computed."""
        op = self.out.ops.get(value.source)
        if op is not None and not op.mixes_padding:
            op.mixes_padding = value.mixes_padding

    def copy(self, value: LoweredValue, suffix: str = "nop") -> LoweredValue:
        """Return the value in a tensor of its own, by a nop that does its TMs, for a reader that can follow no TMs.
        Copies of the same value share the nop."""
        key = ("copy", value.source, value.tms)
        if key not in self._real:
            name = self.op("nop", [Use(value.source, value.tms)], value.shape_in_tiles, suffix=suffix)
            self._real[key] = replace(value, source=name, tms=())
        return replace(value, source=self._real[key].source, tms=())

    def through(self, value: LoweredValue, tm: Tm, layout: Layout) -> LoweredValue:
        """Return the value behind one more TM, in the layout that it then has. Raises InternalError if the TM gives
        another shape than that of `layout`, UnsupportedError for too many tiles."""
        value = self.real(value)
        shape = self._shape_behind_tms(value.shape_in_tiles, (tm,))
        if shape != replace(value, layout=layout).shape_in_tiles:
            raise InternalError(f"TM {tm} on {value.shape_in_tiles} for {layout}")
        return replace(value, tms=(*value.tms, tm), layout=layout)

    # ------------------------------------------------------------------------------------------------- row moves
    def move_rows(self, value: LoweredValue, matrix: Sparse, layout: Layout) -> LoweredValue:
        """Apply a matrix to the tile rows of a value, counted through t, and return the value in this layout. It
        becomes an op when the value is used; matrices in sequence are multiplied, unless the product has too many
        different tiles, as with the taps of a window in a scaled image."""
        if value.rows is None:
            self._mark_mixed_padding(value)
        else:
            together = matrix.after(value.rows)
            plain = bool((value.rows.weight == 1).all())
            if plain or has_room(self.target, PickTable.of(together, layout.extent[0], layout.extent[1] // TILE)):
                matrix = together
            else:
                value = self.real(value)
        return replace(value, rows=matrix, layout=layout, clean_rows=True, same_rows=False)

    def real(self, value: LoweredValue) -> LoweredValue:
        """Return the value with its pending move of rows as an op, which is added; unchanged if none is pending."""
        if value.rows is None:
            return value
        matrix = value.rows
        shape = value.shape_in_tiles
        parts = (ArrayKey(part) for part in (matrix.row, matrix.col, matrix.weight))
        key = ("rows", value.source, value.tms, matrix.shape, *parts, shape)
        if key not in self._real:
            self._real[key] = replace(value, source=self._add_row_move(value, matrix, shape), tms=(), rows=None)
        return replace(self._real[key], layout=value.layout)

    def _add_row_move(self, value: LoweredValue, matrix: Sparse, shape: Shape) -> str:
        """Add the op that moves tile rows by a matrix to a result of `shape` in tiles, and return its name: a product
        with one small matrix for each slice, or an identity matmul."""
        source = Use(value.source, value.tms)
        have = self._shape_behind_tms(self.out.shape_of(source.source), source.tms)
        block = _repeated_block(matrix, have, shape)
        if block is not None and block.size <= 64 * TILE * TILE:
            # FRONTEND 3.2: a constant left factor, the same for every slice of t.
            # In the model's format: a product has the label of its left factor (OPS 3.1).
            left = Use(self.constant(block[None], "value", "rows"), over((shape[0], 1, 1)))
            return self.op("matmul", [left, source], shape, suffix="move", inner=have[1])
        table = PickTable.of(matrix, shape[0], shape[1])
        grid = picker_rows(self.target, table)
        picker = table.picker(WorkDivision(grid))
        kind = "picker" if picker.plain else "value"
        tiles = Use(self.constant(picker.tiles, kind, "picker"))
        words = Use(self.constant(picker.words, "words", "encoding"))
        return self.op(
            "matmul",
            [tiles, source, words],
            shape,
            suffix="pick",
            inner=have[1],
            grid=(grid, 0),
            ublock=(1, 0),
            identity=True,
            num_sparse_tiles=picker.tiles.shape[2] // TILE,
            num_index_tiles=picker.words.shape[2] // TILE,
            sparse_tile_ptr_bits=picker.tile_bits,
            sparse_ublock_idx_bits=picker.ublock_bits,
            fracture_factor=1,
            act_t=have[0],
            strips=picker.strips,
            indices_len=picker.pairs,
            table=table,
            rows=grid,
        )

    # ---------------------------------------------------------------------------------------------- column moves
    def times(
        self,
        value: LoweredValue,
        matrix: NDArray[np.float32],
        layout: Layout,
        *,
        suffix: str = "columns",
        **flags: bool,
    ) -> LoweredValue:
        """Multiply columns by a constant [columns before, columns after], the same for every slice of t, and return the
        value in this layout; `flags` are fields of the result that the caller knows better."""
        if _has_only_zeros_and_ones(matrix):
            kind = "picker"
        else:
            kind = "value"
        extent = layout.extent
        floats = matrix[None].astype(np.float32, copy=False)
        constant_name = self.constant(floats, kind, "weights" if kind == "value" else "ones")
        right = Use(constant_name, over((extent[0], 1, 1)))
        shape = (extent[0], extent[1] // TILE, extent[2] // TILE)
        name = self.op("matmul", [self.use(value), right], shape, suffix=suffix, inner=matrix.shape[0] // TILE)
        result = LoweredValue(
            source=name,
            layout=layout,
            tms=(),
            rows=None,
            clean_rows=value.clean_rows,
            clean_columns=True,
            same_rows=value.same_rows,
        )
        return replace(result, **flags)

    def mask_padding(self, value: LoweredValue, *, rows: bool = False, columns: bool = False) -> LoweredValue:
        """Return the value with zeros in the padding of rows, of columns or of both, by a product with a mask;
        unchanged if the padding is zero already or there is none."""
        layout = value.layout
        rows = rows and not (value.clean_rows or layout.rows_full)
        columns = columns and not (value.clean_columns or layout.columns_full)
        if not (rows or columns):
            return value
        value = self.real(value)
        operand = self.use(value)
        mask = self._padding_mask(value.layout, rows=rows, columns=columns)
        name = self.op("multiply", [operand, mask], value.shape_in_tiles, suffix="mask")
        return replace(
            value,
            source=name,
            tms=(),
            clean_rows=rows or value.clean_rows,
            same_rows=value.same_rows and not rows,
            clean_columns=columns or value.clean_columns,
            same_columns=value.same_columns and not columns,
        )

    def _padding_mask(self, layout: Layout, *, rows: bool, columns: bool) -> Use:
        """Return a constant with 1 for the rows (columns) that hold elements and 0 for their padding, as an operand."""
        mask = np.ones((1, 1, 1), np.float32)
        tms: list[Tm] = list(over((layout.extent[0], 1, 1)))
        for masks_axis, axis, place in ((rows, "r", 1), (columns, "c", 2)):
            extent = layout.extent[place]
            keep = np.ones(TILE, np.float32)
            if masks_axis:
                keep = np.zeros(extent, np.float32)
                keep[layout.positions(axis)] = 1
            elif extent > TILE:
                tms.append(("broadcast", axis, extent // TILE))
            mask = mask * np.expand_dims(keep, (0, 3 - place))
        return Use(self.constant(mask, "value", "keep"), tuple(tms))

    def array(self, name: str) -> Array | None:
        """Return the value of a constant node, a large one by reference; None for another node."""
        node = self.graph[name]
        if node.op == "constant":
            return self._memory.of(node.value, name)
        return None


def _check_size(name: str, shape: Shape, limit: int) -> None:
    """Raise UnsupportedError for a tensor of more than `limit` tiles, which a run cannot hold: a layout may take many
    times as many elements as the model's tensor has."""
    if prod(shape) > limit:
        tiles = " x ".join(map(str, shape))
        raise UnsupportedError(f"{name}: its layout takes {tiles} tiles, the most is {limit:,}: use smaller inputs")


def _has_only_zeros_and_ones(matrix: NDArray[Any]) -> bool:
    """Return whether a matrix holds only 0 and 1; the first row nearly always decides."""
    parts = chain([matrix[:1]], matrix.blocks() if isinstance(matrix, Referenced) else [matrix])
    return all(bool(((part == 0) | (part == 1)).all()) for part in parts)


def swap_rows_and_columns(low: Lowering, value: LoweredValue) -> LoweredValue:
    """Return the value with rows and columns of its tensor exchanged by a TM."""
    value = low.real(value)
    t, rows, columns = value.layout.extent
    extent: Extent = (t, columns, rows)
    swap = {"r": "c", "c": "r"}
    dims = tuple(
        tuple(replace(piece, axis=swap.get(piece.axis, piece.axis)) for piece in dim) for dim in value.layout.dims
    )
    flags = {
        "clean_rows": value.clean_columns,
        "clean_columns": value.clean_rows,
        "same_rows": value.same_columns,
        "same_columns": value.same_rows,
    }
    return replace(low.through(value, ("transpose",), Layout(dims, extent)), **flags)


def _repeated_block(matrix: Sparse, have: Shape, want: Shape) -> NDArray[np.float32] | None:
    """Return the one matrix [rows after, rows before] that acts on each slice of t separately; None if there is
    none."""
    t = want[0]
    height = want[1] * TILE
    width = have[1] * TILE
    if have[0] != t or height * width > 64 * TILE * TILE:
        return None
    slices = matrix.row // height
    if (matrix.col // width != slices).any() or matrix.row.size % t:
        return None
    count = matrix.row.size // t
    local = [(part % size).reshape(t, count) for part, size in ((matrix.row, height), (matrix.col, width))]
    weight = matrix.weight.reshape(t, count)
    if any((part != part[:1]).any() for part in (*local, weight)) or (np.bincount(slices, minlength=t) != count).any():
        return None
    return Sparse.of((height, width), local[0][0], local[1][0], weight[0]).to_dense()
