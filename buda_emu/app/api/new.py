"""`new`: writes a first netlist from the shape of its input and a few op types."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Final

from buda_emu.netlist.load import check_text
from buda_emu.netlist.sizes import align_up
from buda_emu.spec.archs import ARCHS, DRAM_RESERVED
from buda_emu.spec.blocking import TILE_EDGE
from buda_emu.spec.formats import tile_bytes
from buda_emu.spec.ops import OP_TYPES, OpType
from buda_emu.support.checker.render import render
from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.errors import HostError

TILE: Final = TILE_EDGE
PER_CORE: Final = 32
"""The largest number of tiles of a result on one core."""
_SHAPE: Final = re.compile(r"(?:([0-9]+)x)?([0-9]+)x([0-9]+)")
_RECIPES: Final = "several ops, see docs/recipes.md and `buda-emu example`"
_WRITTEN_OTHERWISE: Final = MappingProxyType(
    {
        "softmax": _RECIPES,
        "layernorm": _RECIPES,
        "layer_norm": _RECIPES,
        "attention": _RECIPES,
        "linear": "a matmul; a bias is its third input with the attribute bias: true, see `buda-emu example matmul`",
        "bias": "a third input of a matmul with the attribute bias: true, see `buda-emu example matmul`",
        "transpose": "a TM of an input, input_0_tms: [transpose]",
        "relu": "an attribute of other ops, relu_en: true",
    }
)
"""Words that a user looks for among the op types, and how a netlist says them."""
_ATTRIBUTES: Final = MappingProxyType({"power": "exp: 2", "dropout": "p: 0.0", "lrelu": "slope: 0.1"})
"""Attributes without which an op would compute next to nothing: powers of 0, zeros, a relu. A dropout drops nothing,
since the elements that the chip drops are others than those of the reference, so that no test would pass."""
_ANY_SIGN: Final = (-1.0, 1.0)  # bounds of all input data otherwise: larger ones would overflow exponentials
_POSITIVE: Final = (0.1, 1.0)
"""The bounds of all input data if an op takes positive numbers only."""
_QUEUE_ALIGNMENT = 0x10000  # bytes, a multiple of what every device asks for
_WIDE_FORMATS: Final = {"Float16": "Float16", "Float16_b": "Float16_b", "Bfp8": "Float16", "Bfp8_b": "Float16_b"}
"""The formats of tensors, and the format of accumulators and intermediates for each."""
FORMATS: Final = tuple(_WIDE_FORMATS)
"""The formats that all tensors of a first netlist may have."""


@dataclass(frozen=True)
class _Tensor:
    """The sizes of a tensor in tiles, and its blocks: `grid` cells, each of `mblock` ublocks of `ublock` tiles."""

    t: int
    rows: int
    cols: int
    grid: tuple[int, int] = (1, 1)

    @property
    def ublock(self) -> tuple[int, int]:
        """Rows and columns of a micro-block in tiles."""
        return _ublock_size(self.rows // self.grid[0]), _ublock_size(self.cols // self.grid[1])

    @property
    def mblock(self) -> tuple[int, int]:
        """Rows and columns of a macro-block in micro-blocks."""
        return self.rows // self.grid[0] // self.ublock[0], self.cols // self.grid[1] // self.ublock[1]

    @property
    def sizes(self) -> str:
        """The size fields of the tensor, as the netlist writes them."""
        return f"t: {self.t}, mblock: {list(self.mblock)}, ublock: {list(self.ublock)}"


def _ublock_size(tiles: int) -> int:
    """Return the tiles of a ublock along a dimension of a cell: 2 if that divides them, else 1."""
    if tiles % 2 == 0:
        return 2
    return 1


def new(words: Sequence[str], *, arch: str = "wormhole_b0", inputs: int = 2, df: str = "Float16_b") -> str:
    """Return the text of a netlist that computes ops one after the other on one chip, and runs as it is.

    `words` are the shape of an input in elements (`64x128`, or `4x64x128` with four slices), then op types in order.
    The weights of `matmul:256` have 256 columns, those of `matmul` as many as its input; the second operand of an op
    with two is a ram of the op's own. `inputs` is the number of inputs of a run, `df` the format of all tensors.
    Raises HostError for words that describe no netlist, or one that the chip does not hold.
    """
    match = _SHAPE.fullmatch(words[0]) if words else None
    if match is None:
        raise HostError("new: the first word is the shape of the input, such as 64x128 or 4x64x128")
    if len(words) < 2:
        raise HostError("new: after the shape come op types, such as matmul:256 gelu")
    if arch not in ARCHS or df not in FORMATS or inputs < 1:
        raise HostError(f"new: arch is one of {', '.join(ARCHS)}, df of {', '.join(FORMATS)}, inputs 1 or more")
    shape = _Tensor(int(match[1] or 1), _tiles(match[2]), _tiles(match[3]))
    if not shape.t:
        raise HostError("new: a tensor has at least one slice")
    text = "\n".join(_Writer(arch, inputs, df).lines(words, shape)) + "\n"
    diagnostics = check_text(text, "the new netlist", arch).diagnostics
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"]
    if errors:
        raise HostError(f"new: this cannot be laid out on {arch}: {render(errors)}")
    return text


def _tiles(text: str) -> int:
    """Return the number of tiles along a dimension of `text` elements. Raises HostError for a size that is no positive
    multiple of a tile's edge."""
    size = int(text)
    if size < 1 or size % TILE:
        raise HostError(f"new: rows and columns are multiples of {TILE} elements, not {text}")
    return size // TILE


class _Writer:
    """A writer of one netlist, which places queues in DRAM and ops on cores as they come."""

    def __init__(self, arch: str, inputs: int, df: str) -> None:
        self._arch = ARCHS[arch]
        self._inputs = inputs
        self._df = df
        self._queues: list[str] = []
        self._settings: list[str] = []
        self._next_address = [DRAM_RESERVED] * self._arch.dram_channels
        self._channel = 0
        self._next_core = (0, 0)
        self._shelf = 0  # rows of cores that the highest op of the current row of ops takes
        self._data_bounds = _ANY_SIGN

    def lines(self, words: Sequence[str], shape: _Tensor) -> Iterator[str]:
        """Yield the lines of the netlist of `words`, whose input has the given shape."""
        yield f"# {' '.join(words)}: written by `buda-emu new`. Sizes are in tiles of {TILE} x {TILE} elements:"
        yield "# a tensor has t slices of grid x mblock x ublock tiles."
        self._add_queue("x", "HOST", "queue", shape)
        ops: list[str] = []
        before = "x"
        self._choose_data(words[1:])
        for number, word in enumerate(words[1:], 1):
            name, line, shape = self._lay_out_op(word, number, before, shape)
            ops.append(f"    {name}: {line}")
            before = name
        self._add_queue("out", before, "queue", shape)
        yield from ("devices:", f"  arch: {self._arch.name}", "", "queues:", *self._queues, "", "graphs:", "  fwd:")
        yield from ("    target_device: 0", f"    input_count: {self._inputs}", *ops, "", "programs:", "  - run_fwd:")
        yield "      # Where x is read; pointers run modulo twice the entries."
        yield from ("      - staticvar: {$read: 0}", "      - execute: {graph_name: fwd, queue_settings: {")
        yield f"{f',{chr(10)}'.join(self._settings)}}}}}"
        yield f"      - varinst: [$read, incwrap, {self._inputs}, {2 * self._inputs}]"
        yield from ("", "# Data that the host pushes if the netlist is run or tested without data.", "test-config:")
        yield from (
            "  stimulus-config:",
            "    type: Uniform",
            f"    uniform_lower_bound: {self._data_bounds[0]}",
            f"    uniform_upper_bound: {self._data_bounds[1]}",
        )

    def _choose_data(self, words: Sequence[str]) -> None:
        """Choose the bounds of the random input data, so that no op gets numbers for which it is not defined. Raises
        HostError for an op that takes positive numbers after one that may give others."""
        op_types = [_op_type(word.partition(":")[0]) for word in words]
        if any(op_type.has("takes positive numbers") for op_type in op_types):
            self._data_bounds = _POSITIVE
        is_positive = True
        for word, op_type, word_before in zip(words, op_types, ("", *words), strict=False):
            if op_type.has("takes positive numbers") and not is_positive:
                raise HostError(
                    f"new: {word} takes positive numbers, and what {word_before} gives may be negative: put abs "
                    f"between them, {word_before} abs {word}"
                )
            is_positive = op_type.has("gives positive") or (is_positive and op_type.has("keeps positive"))

    def _lay_out_op(self, word: str, number: int, before: str, shape: _Tensor) -> tuple[str, str, _Tensor]:
        """Describe an op and place it, with a ram for its second operand if it has one. Returns name and line of the
        op, and the shape of its result. `before` is the name of its first operand, `shape` that operand's shape. Raises
        HostError for a word that names no op that `new` can write."""
        kind, _, size = word.partition(":")
        op_type = _op_type(kind)
        is_matmul = kind == "matmul"
        if size and not is_matmul:
            raise HostError(f"new: only a matmul has a number of columns, not {word}")
        name = f"{kind}{number}"
        inputs = [before]
        attributes = ""
        if kind in _ATTRIBUTES:
            attributes = f", attributes: {{{_ATTRIBUTES[kind]}}}"
        columns = _tiles(size) if size else shape.cols
        result = self._on_smallest_grid(shape.t, shape.rows, columns, word)
        if is_matmul:
            weights = _Tensor(shape.t, shape.cols, result.cols)
            self._add_queue(f"w{number}", "HOST", "ram", weights)
            inputs.append(f"w{number}")
            u_kt = next(count for count in (4, 2, 1) if shape.cols % count == 0)
            attributes = f", attributes: {{m_k: {shape.cols // u_kt}, u_kt: {u_kt}}}"
        elif op_type.inputs[0] == 2:
            self._add_queue(f"b{number}", "HOST", "ram", _Tensor(shape.t, shape.rows, shape.cols))
            inputs.append(f"b{number}")
        wide = _WIDE_FORMATS[self._df]
        formats = (
            f"in_df: [{', '.join([self._df] * len(inputs))}], out_df: {self._df}, intermed_df: {wide}, acc_df: {wide}"
        )
        line = (
            f"{{type: {kind}, grid_loc: {self._take_cores(result, word)}, grid_size: {list(result.grid)}, "
            f"inputs: [{', '.join(inputs)}],\n"
            f"      {result.sizes}, ublock_order: r, buf_size_mb: 2,\n"
            f"      {formats}, math_fidelity: HiFi3{attributes}}}"
        )
        return name, line, result

    def _on_smallest_grid(self, t: int, rows: int, cols: int, word: str) -> _Tensor:
        """Return a tensor of t slices of rows x cols tiles with the smallest grid of cores that divides it and holds
        it. Raises HostError, which names `word`, where no grid does."""
        grids = [
            grid
            for grid in product(range(1, self._arch.grid[0] + 1), range(1, self._arch.grid[1] + 1))
            if rows % grid[0] == 0 and cols % grid[1] == 0 and rows * cols <= PER_CORE * grid[0] * grid[1]
        ]
        if not grids:
            raise HostError(f"new: {word} gives {rows} x {cols} tiles, more than the chip's cores hold at once")
        return _Tensor(t, rows, cols, min(grids, key=lambda grid: (grid[0] * grid[1], grid)))

    def _take_cores(self, result: _Tensor, word: str) -> list[int]:
        """Take the next free cores for a result, right of the last op or in a new row of ops, and return the place of
        the first. Raises HostError if no cores are left."""
        row, column = self._next_core
        if column + result.grid[1] > self._arch.grid[1]:
            row = row + self._shelf
            column = 0
            self._shelf = 0
        if row + result.grid[0] > self._arch.grid[0]:
            raise HostError(f"new: from {word} on there are no cores left: take fewer ops or a smaller shape")
        self._next_core = (row, column + result.grid[1])
        self._shelf = max(self._shelf, result.grid[0])
        return [row, column]

    def _add_queue(self, name: str, source: str, kind: str, shape: _Tensor) -> None:
        """Add the line of a queue or ram (`kind`), which `source` (an op, or HOST) fills, at the next free DRAM
        addresses; if `source` is HOST, also its settings in the program."""
        entries = self._inputs if kind == "queue" else 1
        cells = shape.grid[0] * shape.grid[1]
        tiles = shape.t * shape.rows * shape.cols // cells
        size = entries * tiles * tile_bytes(self._df, TILE, TILE, self._arch.alignment, True) + self._arch.alignment
        buffers: list[str] = []
        for _ in range(cells):
            address = self._next_address[self._channel]
            buffers.append(f"[{self._channel}, {address:#x}]")
            self._next_address[self._channel] = align_up(address + size, _QUEUE_ALIGNMENT)
            self._channel = (self._channel + 1) % self._arch.dram_channels
        self._queues.append(
            f"  {name}: {{input: {source}, type: {kind}, entries: {entries}, grid_size: {list(shape.grid)}, "
            f"{shape.sizes}, ublock_order: r, df: {self._df}, target_device: 0, loc: dram, "
            f"dram: [{', '.join(buffers)}]}}"
        )
        if source == "HOST":
            if kind == "queue":
                pointers = "rd_ptr_local: $read, rd_ptr_global: $read"
            else:
                pointers = "rd_ptr_global: 0, wr_ptr_global: 0"
            self._settings.append(f"          {name}: {{prologue: false, epilogue: false, zero: false, {pointers}}}")


def _op_type(name: str) -> OpType:
    """Return the declaration of an op type that `new` can write: matmul, or an op that keeps its input's shape. Raises
    HostError, with a hint, for other names."""
    op_type = OP_TYPES.get(name)
    if op_type is None:
        written = _WRITTEN_OTHERWISE.get(name.lower(), "")
        if written:
            raise HostError(f"new: there is no op type {name}: {written}")
        hint = hint_in_parentheses(name.partition("+")[0], OP_TYPES)
        if "+" in name:
            hint = " (op types are words of their own: gelu add)"
        raise HostError(f"new: there is no op type {name}{hint}")
    if op_type.has("Ethernet"):
        raise HostError(
            f"new: {name} sends to another chip, and a netlist of `new` has one: see `buda-emu example two_chips`"
        )
    if op_type.family == "quantization":
        raise HostError(
            f"new: {name} changes the format, and a netlist of `new` has one for all tensors: write it by hand, see "
            "`buda-emu explain V103`"
        )
    keeps_shape = op_type.has("tile by tile") and op_type.has("keeps shape") and op_type.inputs[0] < 3
    if name != "matmul" and not keeps_shape:
        raise HostError(f"new: {name} is written by hand: here are matmul and the ops that keep their input's shape")
    return op_type
