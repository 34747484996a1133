"""`new`: writes a first netlist from a few words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from buda_emu.netlist.load import check_text
from buda_emu.netlist.sizes import align_up
from buda_emu.spec.archs import ARCHS, DRAM_RESERVED
from buda_emu.spec.blocking import TILE_EDGE
from buda_emu.spec.formats import tile_bytes
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.render import render
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError

TILE: Final = TILE_EDGE
PER_CORE: Final = 32
"""Tiles of a result that one core holds at most."""
_SHAPE: Final = re.compile(r"(?:([0-9]+)x)?([0-9]+)x([0-9]+)")
_STEP = 0x10000
_FORMATS: Final = {"Float16": "Float16", "Float16_b": "Float16_b", "Bfp8": "Float16", "Bfp8_b": "Float16_b"}
FORMATS: Final = tuple(_FORMATS)
"""That a first netlist may have throughout."""


@dataclass(frozen=True)
class _Tensor:
    """Sizes in tiles, and how they are cut: `grid` cells, each of `mblock` ublocks of `ublock` tiles."""

    t: int
    rows: int
    cols: int
    grid: tuple[int, int] = (1, 1)

    @property
    def ublock(self) -> tuple[int, int]:
        return (_half(self.rows // self.grid[0]), _half(self.cols // self.grid[1]))

    @property
    def mblock(self) -> tuple[int, int]:
        return self.rows // self.grid[0] // self.ublock[0], self.cols // self.grid[1] // self.ublock[1]

    @property
    def sizes(self) -> str:
        return f"t: {self.t}, mblock: {list(self.mblock)}, ublock: {list(self.ublock)}"


def _half(count: int) -> int:
    return 2 if count % 2 == 0 else 1


def new(words: Sequence[str], *, arch: str = "wormhole_b0", inputs: int = 2, df: str = "Float16_b") -> str:
    """The text of a netlist that computes one op after the other on one chip, and runs as it is.

    `words`: the shape of an input in elements (`64x128`, or `4x64x128` with four slices), then op types in order. A
    `matmul:256` has weights of as many columns as are given (none: as the input has), an op with two operands a second
    one of its own. `inputs`: how many inputs one run takes; `df`: the format of all tensors.
    Raises HostError for words that say no netlist, or one that the chip does not hold.
    """
    if not words or not (match := _SHAPE.fullmatch(words[0])):
        raise HostError("new: the first word is the shape of the input, such as 64x128 or 4x64x128")
    if len(words) < 2:
        raise HostError("new: after the shape come op types, such as matmul:256 gelu")
    if arch not in ARCHS or df not in _FORMATS or inputs < 1:
        raise HostError(f"new: arch is one of {', '.join(ARCHS)}, df of {', '.join(_FORMATS)}, inputs 1 or more")
    shape = _Tensor(int(match[1] or 1), _tiles(match[2]), _tiles(match[3]))
    if not shape.t:
        raise HostError("new: a tensor has at least one slice")
    text = "\n".join(_Writer(arch, inputs, df).lines(words, shape)) + "\n"
    found = [item for item in check_text(text, "the new netlist", arch).diagnostics if item.severity == "error"]
    if found:
        raise HostError(f"new: this cannot be laid out on {arch}: {render(found)}")
    return text


def _tiles(text: str) -> int:
    size = int(text)
    if size < 1 or size % TILE:
        raise HostError(f"new: rows and columns are multiples of {TILE} elements, not {text}")
    return size // TILE


class _Writer:
    """Queues, ops and program of one netlist."""

    def __init__(self, arch: str, inputs: int, df: str) -> None:
        self._arch = ARCHS[arch]
        self._inputs = inputs
        self._df = df
        self._queues: list[str] = []
        self._settings: list[str] = []
        self._next = [DRAM_RESERVED] * self._arch.dram_channels
        self._channel = 0
        self._at = (0, 0)
        self._shelf = 0  # rows of cores of the shelf that is being filled

    def lines(self, words: Sequence[str], shape: _Tensor) -> Iterator[str]:
        yield f"# {' '.join(words)}: written by `buda-emu new`. Sizes are in tiles of {TILE} x {TILE} elements:"
        yield "# a tensor has t slices of grid x mblock x ublock tiles."
        self._queue("x", "HOST", "queue", shape)
        ops: list[str] = []
        before = "x"
        for number, word in enumerate(words[1:], 1):
            name, line, shape = self._op(word, number, before, shape)
            ops.append(f"    {name}: {line}")
            before = name
        self._queue("out", before, "queue", shape)
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
            "    uniform_lower_bound: -1.0",
            "    uniform_upper_bound: 1.0",
        )

    def _op(self, word: str, number: int, before: str, shape: _Tensor) -> tuple[str, str, _Tensor]:
        """Name and line of an op, and the shape of its result."""
        kind, _, size = word.partition(":")
        known = OP_TYPES.get(kind)
        if known is None:
            raise HostError(f"new: there is no op type {kind} {near(kind, OP_TYPES)}".rstrip())
        product = kind == "matmul"
        if not product and not (known.has("tile by tile") and known.has("keeps shape") and known.inputs[0] < 3):
            raise HostError(
                f"new: {kind} is written by hand: here are matmul and the ops that keep their input's shape"
            )
        if size and not product:
            raise HostError(f"new: only a matmul has a number of columns, not {word}")
        name = f"{kind}{number}"
        inputs = [before]
        more = ""
        result = self._cut(shape.t, shape.rows, _tiles(size) if size else shape.cols, word)
        if product:
            weights = _Tensor(shape.t, shape.cols, result.cols)
            self._queue(f"w{number}", "HOST", "ram", weights)
            inputs.append(f"w{number}")
            u_kt = next(count for count in (4, 2, 1) if shape.cols % count == 0)
            more = f", attributes: {{m_k: {shape.cols // u_kt}, u_kt: {u_kt}}}"
        elif known.inputs[0] == 2:
            self._queue(f"b{number}", "HOST", "ram", _Tensor(shape.t, shape.rows, shape.cols))
            inputs.append(f"b{number}")
        wide = _FORMATS[self._df]
        formats = (
            f"in_df: [{', '.join([self._df] * len(inputs))}], out_df: {self._df}, intermed_df: {wide}, acc_df: {wide}"
        )
        line = (
            f"{{type: {kind}, grid_loc: {self._place(result, word)}, grid_size: {list(result.grid)}, "
            f"inputs: [{', '.join(inputs)}],\n"
            f"      {result.sizes}, ublock_order: r, buf_size_mb: 2,\n"
            f"      {formats}, math_fidelity: HiFi3{more}}}"
        )
        return name, line, result

    def _cut(self, t: int, rows: int, cols: int, word: str) -> _Tensor:
        """A result on as few cores as hold it."""
        grids = [
            (down, across)
            for down in range(1, self._arch.grid[0] + 1)
            for across in range(1, self._arch.grid[1] + 1)
            if rows % down == 0 and cols % across == 0 and rows * cols <= PER_CORE * down * across
        ]
        if not grids:
            raise HostError(f"new: {word} gives {rows} x {cols} tiles, more than the chip's cores hold at once")
        return _Tensor(t, rows, cols, min(grids, key=lambda grid: (grid[0] * grid[1], grid)))

    def _place(self, result: _Tensor, word: str) -> list[int]:
        """The next free cores, row of ops by row of ops."""
        row, column = self._at
        if column + result.grid[1] > self._arch.grid[1]:
            row = row + self._shelf
            column = 0
            self._shelf = 0
        if row + result.grid[0] > self._arch.grid[0]:
            raise HostError(f"new: from {word} on there are no cores left: take fewer ops or a smaller shape")
        self._at = (row, column + result.grid[1])
        self._shelf = max(self._shelf, result.grid[0])
        return [row, column]

    def _queue(self, name: str, source: str, kind: str, shape: _Tensor) -> None:
        entries = self._inputs if kind == "queue" else 1
        cells = shape.grid[0] * shape.grid[1]
        tiles = shape.t * shape.rows * shape.cols // cells
        size = entries * tiles * tile_bytes(self._df, TILE, TILE, self._arch.alignment, True) + self._arch.alignment
        buffers: list[str] = []
        for _ in range(cells):
            buffers.append(f"[{self._channel}, {self._next[self._channel]:#x}]")
            self._next[self._channel] = align_up(self._next[self._channel] + size, _STEP)
            self._channel = (self._channel + 1) % self._arch.dram_channels
        self._queues.append(
            f"  {name}: {{input: {source}, type: {kind}, entries: {entries}, grid_size: {list(shape.grid)}, "
            f"{shape.sizes}, ublock_order: r, df: {self._df}, target_device: 0, loc: dram, "
            f"dram: [{', '.join(buffers)}]}}"
        )
        if source == "HOST":
            pointers = "rd_ptr_local: $read, rd_ptr_global: $read"
            pointers = pointers if kind == "queue" else "rd_ptr_global: 0, wr_ptr_global: 0"
            self._settings.append(f"          {name}: {{prologue: false, epilogue: false, zero: false, {pointers}}}")
