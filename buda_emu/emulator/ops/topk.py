"""topk: the k greatest values of each row, or their indices, by a bitonic network."""

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.tiles.reduce import topk_rows
from buda_emu.emulator.ops.base import Parallel, PlannedOp, Tiles, implements
from buda_emu.emulator.ops.common import blank, kernel_operand, require_operands, require_same_shape, unblanked_dims
from buda_emu.emulator.ops.operands import all_entries
from buda_emu.spec.blocking import Shape
from buda_emu.support.errors import ProgramError, UnsupportedError

INT32_LIMIT: Final = 1 << 31  # indices beyond it do not fit Int32
Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


class Row:
    """One row of (value, index) pairs and the steps of the network, in the words of OPS 6.11."""

    def __init__(self, values: Sequence[float], indices: Sequence[float]) -> None:
        self.values = list(values)
        self.indices = [index_number(index) for index in indices]

    def swap(self, i: int, j: int) -> None:
        """Exchange pairs i and j."""
        self.values[i], self.values[j] = self.values[j], self.values[i]
        self.indices[i], self.indices[j] = self.indices[j], self.indices[i]

    def compare_exchange(self, largest: bool, i: int, j: int) -> None:
        """Put pairs i and j in order: with `largest` the greater value first, else last (a CE of OPS 6.11). Equal
        values change places where they are negative with `largest`, and where they are not without it."""
        a = self.values[i]
        b = self.values[j]
        if (largest and (b > a or (a == b and a < 0))) or (not largest and (b < a or (a == b and a >= 0))):
            self.swap(i, j)

    def bitonic_pass(self, base: int, length: int, largest: bool, flip: bool = False) -> None:
        """Sort the bitonic run of `length` pairs from `base` on: with `largest` the greatest first, else last (a P of
        OPS 6.11). With `flip` every compare-exchange is followed by one more exchange."""
        d = length // 2
        while d >= 1:
            for block in range(length // (2 * d)):
                for j in range(d):
                    first = base + 2 * d * block + j
                    self.compare_exchange(largest, first, first + d)
                    if flip:
                        self.swap(first, first + d)
            d //= 2

    def sort_runs(self, length: int, flips: bool) -> None:
        """Sort each run of `length` pairs, by turns with the greatest first and last. With `flips`, runs in the upper
        half of each 128 pairs are sorted with the additional exchanges of `bitonic_pass`."""
        for run, base in enumerate(range(0, len(self.values) - length + 1, length)):
            self.bitonic_pass(base, length, run % 2 == 0, flips and base % 128 >= 64)

    def network(self, k: int, kreduce: bool) -> None:
        """Sort so that the k greatest pairs come first, best first. With `kreduce` runs of k pairs are taken as sorted
        already if k is at most 16."""
        phases = k.bit_length() - 1  # log2(k)
        if not kreduce:
            for phase in range(phases):
                self.sort_runs(1 << (phase + 1), k >= 64 and phase in (3, 4))
        elif k > 16:
            self.sort_runs(k, flips=False)
        remaining = len(self.values) // k
        for m in range(remaining.bit_length() - 1):
            d = k << m
            for pair in range(remaining // 2):
                for j in range(k):
                    self.compare_exchange(True, 2 * d * pair + j, 2 * d * pair + j + d)
            remaining //= 2
            for sequence in range(remaining):
                self.bitonic_pass(sequence * 2 * d, k, sequence % 2 == 0)


def network(elements: int, k: int, kreduce: bool) -> NDArray[np.int32]:
    """Return the steps of `Row.network` on a row of `elements`, as rows (i, j, largest, flip) of compare-exchanges for
    the kernel."""
    steps: list[NDArray[np.int32]] = []

    def exchanges(bases: Numbers, d: int, width: int, flip: Flags, largest: Flags) -> None:
        """Append the exchanges of `width` neighbours with those at distance `d`, from each base on. `flip` and
        `largest` are for each base, as in `Row`."""
        first = (bases[:, np.newaxis] + np.arange(width)).reshape(-1)
        rules = (np.repeat(rule, width) for rule in (largest, flip))
        steps.append(np.stack([first, first + d, *rules], axis=1).astype(np.int32))

    def sort_runs(bases: Numbers, length: int, flip: Flags) -> None:
        """Append the exchanges that sort the bitonic run of `length` at each base, by turns with the greatest first and
        last."""
        largest = np.arange(len(bases)) % 2 == 0
        d = length // 2
        while d:
            blocks = np.arange(0, length, 2 * d)
            starts = (bases[:, np.newaxis] + blocks).reshape(-1)
            exchanges(starts, d, d, np.repeat(flip, len(blocks)), np.repeat(largest, len(blocks)))
            d //= 2

    length = 2
    if kreduce:
        length = k if k > 16 else 2 * k
    while length <= k:
        bases = np.arange(elements // length) * length
        flips = not kreduce and k >= 64 and length in (16, 32)
        sort_runs(bases, length, (bases % 128 >= 64) & flips)
        length *= 2
    remaining = elements // k
    d = k
    while remaining > 1:
        remaining //= 2
        bases = np.arange(remaining) * 2 * d
        exchanges(bases, d, k, bases < 0, bases >= 0)
        sort_runs(bases, k, bases < 0)
        d *= 2
    if steps:
        return np.concatenate(steps)
    return np.empty((0, 4), np.int32)


def index_number(index: float) -> int:
    """Return an index truncated to int; -2^31 where that does not fit 32 bits or is NaN, as a conversion on x86
    gives."""
    if -INT32_LIMIT <= index < INT32_LIMIT:
        return int(index)
    return -INT32_LIMIT


@implements("topk")
class TopK:
    """The k best of each row: in0 holds values, in1 their indices; columns are split evenly over the grid columns, each
    core has its own k."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return (t, R, grid columns * ceil(k / 32)). Raises ProgramError where values, indices and grid do not fit,
        UnsupportedError for a k that is not a power of two."""
        require_operands(call, 2)
        t, rows, cols = require_same_shape(call)
        cores = call.blocking.grid_size[1]
        k = call.attributes.k
        if cols % cores:
            raise ProgramError(f"op {call.name}: topk cannot split {cols} columns over {cores} grid columns")
        elements = cols // cores * 32
        if not 1 <= k <= elements:
            raise ProgramError(f"op {call.name}: topk with k {k} of rows of {elements} elements")
        if k & (k - 1):
            raise UnsupportedError(f"op {call.name}: topk with k {k}, which is not a power of two")
        return t, rows, cores * -(-k // 32)

    def label(self, call: PlannedOp) -> str:
        """Return the label of the operand whose elements are the result: of the values, or of the indices (OPS 3.1)."""
        return call.operands[0 if call.attributes.sort == "max" else 1].label

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the result by the definition: each core sorts its columns of a row by the network; the result has the
        best values or their indices."""
        cores = call.blocking.grid_size[1]
        k = call.attributes.k
        values, indices = (_as_rows(tensor) for tensor in all_entries(inputs))
        w, t, rows, cols = values.shape
        elements = cols // cores
        out = np.zeros((w, t, rows, cores * -(-k // 32) * 32), np.float32)
        for place in np.ndindex(w, t, rows, cores):
            core = place[-1]
            part = (*place[:-1], slice(core * elements, (core + 1) * elements))
            row = Row(values[part].tolist(), indices[part].tolist())
            row.network(k, call.attributes.kreduce)
            first = core * -(-k // 32) * 32
            if call.attributes.sort == "max":
                best = row.values
            else:
                best = row.indices
            out[(*place[:-1], slice(first, first + k))] = best[:k]
        tiles = out.reshape(w, t, rows // 32, 32, out.shape[-1] // 32, 32).swapaxes(3, 4)
        return blank(tiles, unblanked_dims(call))

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Compute by the kernel, which applies the network's exchanges to each core's part of each row of tiles."""
        t, rows, cols = call.operands[0].map.shape
        cores = call.blocking.grid_size[1]
        attributes = call.attributes
        values = kernel_operand(call, 0, inputs)
        indices = kernel_operand(call, 1, inputs)
        argmax = attributes.sort != "max"
        count = out.shape[0] * t * rows * cores
        steps = network(cols // cores * 32, attributes.k, attributes.kreduce)
        options = cores, attributes.k, argmax
        parallel(topk_rows, count, out, values, indices, steps, options, unblanked_dims(call))


def _as_rows(tiles: Tiles) -> Tiles:
    """Return tiles float32[w, t, R, C, 32, 32] as rows of elements, [w, t, R * 32, C * 32]."""
    w, t, rows, cols = tiles.shape[:4]
    return tiles.swapaxes(3, 4).reshape(w, t, rows * 32, cols * 32)
