"""Helpers that several op types share: arrangement of elements in a tile, blanking, checks of shapes, kernel
operands."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from buda_emu.arithmetic.kernels.tiles import tile_memory
from buda_emu.arithmetic.kernels.tiles.tile_memory import NO_RELU, RELU_FROM, RELU_WITHIN
from buda_emu.arithmetic.tensor.tilemap import Index, tile_broadcast
from buda_emu.emulator.ops.base import PlannedOp, Relu, Tiles
from buda_emu.spec.blocking import FULL_TILE, TILE_ELEMENTS, Shape
from buda_emu.support.errors import ProgramError

TILE_BROADCASTS: Final = {
    "": tile_memory.AS_IS,
    "r": tile_memory.FIRST_ROW,
    "c": tile_memory.FIRST_COLUMN,
    "rc": tile_memory.FIRST_ELEMENT,
}


def require_operands(call: PlannedOp, count: int) -> None:
    """Raise ProgramError unless the op has exactly `count` inputs (OPS 9.8)."""
    if len(call.operands) != count:
        raise ProgramError(f"op {call.name}: {call.type} takes {count} input(s), not {len(call.operands)}")


def require_same_shape(call: PlannedOp) -> Shape:
    """Return the shape (t, R, C) in tiles that all operands have. Raises ProgramError naming the op and the dims where
    they differ."""
    shapes = [operand.map.shape for operand in call.operands]
    if any(shape != shapes[0] for shape in shapes):
        listed = " and ".join(str(list(shape)) for shape in shapes)
        raise ProgramError(f"op {call.name}: {call.type} of inputs with different dims (t, r, c) in tiles: {listed}")
    return shapes[0]


def unblanked_dims(call: PlannedOp) -> tuple[int, int]:
    """Return rows and columns of a result tile that are not blanked: the least of input 0's and the op's tile dim (OPS
    6)."""
    height, width = call.operands[0].tile_dim
    return min(height, call.blocking.tile_dim[0]), min(width, call.blocking.tile_dim[1])


def passes_on(call: PlannedOp) -> bool:
    """Return whether the op's result is the very tensor that it reads, so that a plan can leave the op out: a copy that
    moves no tile, transposes and blanks nothing."""
    if call.transpose or not call.has("copies"):
        return False
    return call.operands[0].map.is_identity and unblanked_dims(call) == FULL_TILE


def blank(tiles: Tiles, dims: tuple[int, int]) -> Tiles:
    """Multiply the elements outside `dims` (rows, columns) of float32[..., 32, 32] by 0, as the reference does: NaN
    stays, -x becomes -0 (OPS 6)."""
    if dims == FULL_TILE:
        return tiles
    inside = np.zeros((32, 32), np.bool_)
    inside[: dims[0], : dims[1]] = True
    with np.errstate(invalid="ignore"):
        return np.where(inside, tiles, tiles * np.float32(0))


def arrangement(call: PlannedOp, index: int) -> int:
    """Return the kernel's code for the move inside the tiles of operand `index`: a transpose where the op's flag asks
    for it, which is for operand 0 only (OPS 7.4), else the tile broadcast, or none."""
    if call.transpose and index == 0:
        return tile_memory.TRANSPOSE
    return TILE_BROADCASTS[call.operands[index].tile_broadcast]


def arrange_tiles(call: PlannedOp, index: int, tiles: Tiles) -> Tiles:
    """Return the tiles of operand `index`, float32[..., 32, 32], with their elements moved: transposed or broadcast;
    the reference of `arrangement`."""
    if call.transpose and index == 0:
        return np.swapaxes(tiles, -1, -2)
    mode = call.operands[index].tile_broadcast
    return tile_broadcast(tiles, mode) if mode else tiles


def relu(tiles: Tiles, mode: str, threshold: float) -> Tiles:
    """Apply relu by its definition (OPS 5, 6.13): mode max clamps to [0, threshold], any other zeroes values below the
    threshold."""
    bound = np.float32(threshold)
    zero = np.float32(0)
    if mode == "max":
        return np.where(tiles >= bound, bound, np.where(tiles >= zero, tiles, zero))
    return np.where(tiles >= bound, tiles, zero)


_WITHOUT_RELU: Final = NO_RELU, np.float32(0)


def relu_arguments(relu: Relu | None) -> tuple[int, np.float32]:
    """Return relu in the form of the kernels, a code and the threshold; for None the code that changes nothing."""
    if relu is None:
        return _WITHOUT_RELU
    mode, threshold = relu
    return RELU_WITHIN if mode == "max" else RELU_FROM, np.float32(threshold)


def kernel_operand(call: PlannedOp, index: int, inputs: Sequence[Tiles]) -> tile_memory.Operand:
    """Return operand `index` in the form of the kernels: source, tile map, pad value, arrangement."""
    return inputs[index], *operand_map(call, index)


def operand_map(call: PlannedOp, index: int) -> tuple[Index, np.float32, int]:
    """Return the part of `kernel_operand` that does not depend on data: tile map, pad value, arrangement."""
    fixed: tuple[Index, np.float32, int] | None = call.fixed.get(index)
    if fixed is None:
        tiles = call.operands[index].map
        fixed = call.fixed[index] = tiles.index, np.float32(tiles.pad_value), arrangement(call, index)
    return fixed


def items(out: Tiles) -> int:
    """Return the number of work items of a kernel that goes tile by tile over `out` float32[w, n, 1024]."""
    return out.size // TILE_ELEMENTS
