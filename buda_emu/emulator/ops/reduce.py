"""reduce: maximum over rows, columns, tiles or z. On the device it is max pool along r and c, a chain of maxima along
z."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.tiles import reduce
from buda_emu.arithmetic.kernels.tiles.tile_memory import TRANSPOSE
from buda_emu.emulator.ops.base import Implementation, Parallel, PlannedOp, Tiles, implements
from buda_emu.emulator.ops.common import items, kernel_operand, require_operands
from buda_emu.spec.blocking import Shape
from buda_emu.support.errors import ProgramError

_KERNEL_DIMS: Final = {"r": reduce.ROWS, "c": reduce.COLUMNS, "rc": reduce.BOTH, "z": reduce.Z}


def _maximum_of_last_axis(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the maximum along the last axis; NaN is ignored (all NaN: -inf), and of equal values the first one is
    kept."""
    best = np.full(rows.shape[:-1], -np.inf, np.float32)
    for position in range(rows.shape[-1]):
        best = np.where(rows[..., position] > best, rows[..., position], best)
    return best


@implements("reduce")
class Reduce(Implementation):
    """The maximum (`type: max` only). Result: r in row 0 of (t, 1, C), c in column 0 of (t, R, 1), rc in (t, 1, 1); z
    (t/z, R, C)."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return the input's shape with the reduced dimension 1, along z t / z. Raises ProgramError for attributes that
        the reference refuses."""
        require_operands(call, 1)
        t, rows, cols = call.operands[0].map.shape
        if call.attributes.type != "max":
            raise ProgramError(f"op {call.name}: reduce needs attribute type: max")
        match call.attributes.dim:
            case "r":
                return t, 1, cols
            case "c":
                return t, rows, 1
            case "rc":
                return t, 1, 1
            case "z":
                z = call.attributes.z
                if z <= 0 or t % z != 0:
                    raise ProgramError(f"op {call.name}: reduce cannot split t {t} into runs of z {z}")
                return t // z, rows, cols
            case dim:
                raise ProgramError(f"op {call.name}: reduce needs attribute dim r, c, z or rc, not {dim!r}")

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the maxima by the definition, in numpy. Along z a later value replaces the one before it unless it is
        less, so also where either is NaN."""
        (tiles,) = inputs
        w, t, rows, cols = tiles.shape[:4]
        if call.attributes.dim == "z":
            runs = tiles.reshape(w, t // call.attributes.z, call.attributes.z, rows, cols, 32, 32)
            best = runs[:, :, 0]
            for step in range(1, call.attributes.z):
                new = runs[:, :, step]
                best = np.where(new < best, best, new)
            return best
        out = np.zeros((w, *self.shape(call), 32, 32), np.float32)
        match call.attributes.dim:
            case "r":  # the elements of a column in order: tile rows, then rows
                out[:, :, 0, :, 0, :] = _maximum_of_last_axis(
                    tiles.transpose(0, 1, 3, 5, 2, 4).reshape(w, t, cols, 32, rows * 32)
                )
            case "c":
                out[:, :, :, 0, :, 0] = _maximum_of_last_axis(
                    tiles.transpose(0, 1, 2, 4, 3, 5).reshape(w, t, rows, 32, cols * 32)
                )
            case _:
                columns = _maximum_of_last_axis(tiles.transpose(0, 1, 5, 2, 3, 4).reshape(w, t, 32, rows * cols * 32))
                out[:, :, 0, 0, 0, 0] = _maximum_of_last_axis(columns)
        return out

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Compute the maxima by one kernel, which visits the source tiles of each result tile with a fixed stride."""
        t, rows, cols = call.operands[0].map.shape
        source, index, pad_value, arrange = kernel_operand(call, 0, inputs)
        positions = np.arange(t * rows * cols, dtype=np.int64).reshape(t, rows, cols)
        match call.attributes.dim:
            case "r":
                bases = positions[:, 0, :]
                stride = cols
                count = rows
            case "c":
                bases = positions[:, :, 0]
                stride = 1
                count = cols
                arrange = TRANSPOSE
            case "rc":
                bases = positions[:, 0, 0]
                stride = 1
                count = rows * cols
            case _:
                bases = positions[:: call.attributes.z]
                stride = rows * cols
                count = call.attributes.z
        operand = source, index, pad_value, arrange
        starts = np.ascontiguousarray(bases).reshape(-1)
        dim = _KERNEL_DIMS[call.attributes.dim]
        parallel(reduce.reduce_tiles, items(out), out, operand, starts, stride, count, dim)
