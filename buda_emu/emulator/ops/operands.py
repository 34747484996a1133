"""Operands that an op cannot read directly: blanked to their tile dims, or needed as one tensor after their TMs."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.tiles import binary, tile_memory
from buda_emu.arithmetic.kernels.tiles.quantise import quantisers
from buda_emu.arithmetic.kernels.tiles.tile_memory import accumulate_tiles, relu_tiles
from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator.ops.base import Implementation, Parallel, PlannedOp, Relu, Tiles
from buda_emu.emulator.ops.common import items, operand_map, relu_arguments
from buda_emu.spec.blocking import FULL_TILE, TILE_ELEMENTS


def all_entries(inputs: Sequence[Tiles]) -> list[Tiles]:
    """Return the tensors with as many entries w as the largest has; a tensor with a single entry is broadcast, not
    copied."""
    w = max(tensor.shape[0] for tensor in inputs)
    return [np.broadcast_to(tensor, (w, *tensor.shape[1:])) for tensor in inputs]


def plain(tiles: Tiles) -> tile_memory.Operand:
    """Return a tensor float32[w, n, 1024] as a kernel operand whose tiles are read in order, unchanged."""
    return tiles, _identity_index(tiles.shape[1]), _NO_PAD, tile_memory.AS_IS


_NO_PAD: Final = np.float32(0)  # no tile is a pad, so that the value is not read


@lru_cache(maxsize=128)
def _identity_index(tiles: int) -> NDArray[np.int32]:
    """Return the index that reads `tiles` tiles in their order: the same array for the same number."""
    return TileMap.identity((1, 1, tiles)).index


def blank_operand(
    call: PlannedOp, index: int, inputs: Sequence[Tiles], parallel: Parallel, arrange: int = tile_memory.AS_IS
) -> tile_memory.Operand:
    """Return operand `index` as a kernel operand, arranged by `arrange` and with zeros outside its static tile dim (OPS
    6): a copy only where that is not 32x32."""
    source = inputs[index]
    (tiles, pad_value, _) = operand_map(call, index)
    operand = call.operands[index]
    if operand.tile_dim == FULL_TILE:
        return source, tiles, pad_value, arrange
    copy = np.empty((source.shape[0], tiles.size, TILE_ELEMENTS), np.float32)
    parallel(tile_memory.gather_tiles, items(copy), copy, source, tiles, pad_value, arrange, operand.tile_dim)
    return plain(copy)


def gather_operand(operand: tile_memory.Operand, parallel: Parallel) -> Tiles:
    """Return the tiles of an operand, float32[w or 1, n, 1024]: its source where that is read in its order, else a
    copy."""
    source, tiles, pad_value, arrange = operand
    if arrange == tile_memory.AS_IS and np.array_equal(tiles, _identity_index(source.shape[1])):
        return source
    copy = np.empty((source.shape[0], tiles.size, TILE_ELEMENTS), np.float32)
    parallel(tile_memory.gather_tiles, items(copy), copy, source, tiles, pad_value, arrange, FULL_TILE)
    return copy


def after_tms(call: PlannedOp, index: int, inputs: Sequence[Tiles]) -> Tiles:
    """Return operand `index` after its TMs as float32[w or 1, t, R, C, 32, 32], with every bit unchanged."""
    tiles = call.operands[index].map
    source = inputs[index]
    return tiles.apply(source.reshape(source.shape[0], *tiles.source_shape, 32, 32))


def run_add(out: Tiles, operand: tile_memory.Operand, parallel: Parallel, arrange: int = tile_memory.AS_IS) -> None:
    """Compute out += the operand's tiles, moved inside each tile by the code `arrange`, in place."""
    source, tiles, pad_value, _ = operand
    run_binary(out, binary.ADD, (source, tiles, pad_value, arrange), parallel)


def run_binary(
    out: Tiles, code: int, operand: tile_memory.Operand, parallel: Parallel, zero_point: float = 0.0
) -> None:
    """Compute out = out OP operand in place, for a code of the binary kernel; `zero_point` is for quantisation codes
    only."""
    operation = code, np.float32(zero_point)
    parallel(binary.binary_tiles, items(out), out, plain(out), operand, operation, FULL_TILE, relu_arguments(None))


def run_onto(
    implementation: Implementation,
    call: PlannedOp,
    inputs: Sequence[Tiles],
    previous: Tiles,
    out: Tiles,
    parallel: Parallel,
) -> None:
    """Compute out = previous + the op's result (OPS 6.12). `inputs` and `out` are as for `Implementation.run`,
    `previous` is like `out`.

    An implementation with a method `run_onto` may do both in one kernel; the method returns False where it did not.
    """
    if not _run_combined(implementation, "run_onto", call, inputs, previous, out, parallel):
        implementation.run(call, inputs, out, parallel)
        parallel(accumulate_tiles, items(out), out, previous)


def run_relu(
    implementation: Implementation,
    call: PlannedOp,
    inputs: Sequence[Tiles],
    relu: Relu | None,
    out: Tiles,
    parallel: Parallel,
) -> None:
    """Compute out = relu of the op's result (OPS 5, 6.13), without relu where that is None. `inputs` and `out` are as
    for `Implementation.run`.

    An implementation with a method `run_relu` may do both in one kernel; the method returns False where it did not.
    """
    if relu is None:
        implementation.run(call, inputs, out, parallel)
    elif not _run_combined(implementation, "run_relu", call, inputs, relu, out, parallel):
        implementation.run(call, inputs, out, parallel)
        relu_in_place(out, relu, parallel)


def _run_combined(implementation: Implementation, method: str, *arguments: Any) -> bool:
    """Call a method that the implementation may have, and return its result: whether it did the work. False without
    such a method."""
    run = getattr(implementation, method, None)
    return run is not None and run(*arguments)


def relu_in_place(out: Tiles, relu: Relu | None, parallel: Parallel) -> None:
    """Apply relu to `out` float32[w, n, 1024]; nothing where `relu` is None."""
    if relu is not None:
        parallel(relu_tiles, items(out), out, *relu_arguments(relu))


def convert(tiles: Tiles, format_name: str, parallel: Parallel, *, truncate: bool) -> None:
    """Quantise float32[w, n, 1024] in place to the values of a format, by truncation or rounding (FORMATS 4: in-graph
    conversions truncate, pushes round)."""
    flat = tiles.reshape(-1, tiles.shape[2])
    for kernel, arguments in quantisers(format_name, truncate):
        parallel(kernel, flat.shape[0], flat, *arguments)


def blank_in_place(out: Tiles, dims: tuple[int, int], parallel: Parallel) -> None:
    """Blank `out` float32[w, n, 1024] outside `dims` (OPS 6)."""
    if dims != FULL_TILE:
        parallel(tile_memory.blank_tiles, items(out), out, *dims)
