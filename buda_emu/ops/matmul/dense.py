"""The product of a dense matmul, accumulation over z included (OPS 6.1)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from buda_emu.errors import ProgramError
from buda_emu.kernels.products.matmul import (
    AS_IT_IS,
    Ending,
    Extent,
    Reading,
    matmul_blocks,
    matmul_reference,
    matmul_tiles,
)
from buda_emu.kernels.tiles import gather
from buda_emu.ops.base import OpCall, Parallel, Tiles
from buda_emu.ops.common import operand_map
from buda_emu.ops.operands import blanked, plain, run_add
from buda_emu.spec.blocking import FULL_TILE, Shape
from buda_emu.tensor.tilemap import Index


def product_shape(call: OpCall) -> Shape:
    """(T, R, C) of in0 (T, R, K) by in1 (T or more, K, C); T / z with accumulate."""
    attributes = call.attributes
    (t, rows, inner), right = (operand.map.shape for operand in call.operands[:2])
    dims = f"input 0 with dims {[t, rows, inner]} by input 1 with {list(right)} (t, r, c)"
    if inner != right[1] or t > right[0]:
        raise ProgramError(f"op {call.name}: matmul of {dims}")
    if attributes.m_k * attributes.u_kt != inner:
        raise ProgramError(f"op {call.name}: matmul with m_k {attributes.m_k} and u_kt {attributes.u_kt} of {dims}")
    if not attributes.accumulate:
        return t, rows, right[2]
    if t <= 1 or attributes.z < 1 or t % attributes.z:
        raise ProgramError(f"op {call.name}: matmul cannot accumulate t {t} in runs of z {attributes.z}")
    return t // attributes.z, rows, right[2]


def reference_product(call: OpCall, left: Tiles, right: Tiles) -> Tiles:
    """The definition, on operands arranged and blanked, float32[w, t, R, C, 32, 32] each."""
    product = matmul_reference(left, right[:, : left.shape[1]])
    if not call.attributes.accumulate:
        return product
    z = call.attributes.z
    total = product[:, ::z]
    with np.errstate(all="ignore"):
        for s in range(1, z):
            total = total + product[:, s::z]
    return total


def run_product(
    call: OpCall, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel, ending: Ending | None = None
) -> None:
    """The product into `out` float32[w, tiles, 1024], of inputs as `buda_emu.ops.base` describes them.

    `ending` cannot be together with attribute accumulate.
    """
    known: _Fixed | None = call.fixed.get("product")
    if known is None:
        known = call.fixed["product"] = _fixed(call)
    if known.as_they_are:
        _multiply(call, inputs[0], inputs[1], known.reading, out, parallel, ending)
        return
    left = blanked(call, 0, inputs, parallel)
    right = blanked(call, 1, inputs, parallel, known.arrange)
    if not call.attributes.accumulate:
        _multiply(call, left[0], right[0], _reading(left[1:], right[1:]), out, parallel, ending)
        return
    # out[b] = sum over s of product[b * z + s]: one product for each s, so that no more than one waits in memory.
    z, term = call.attributes.z, np.empty_like(out)
    for s in range(z):
        target = term if s else out
        reading = _reading(_every(call, 0, left, s, z)[1:], _every(call, 1, right, s, z)[1:])
        _multiply(call, left[0], right[0], reading, target, parallel)
        if s:
            run_add(out, plain(term), parallel)


class _Fixed(NamedTuple):
    """How both operands are read, the arrangement of the second, and whether one product of them as they are is the
    result."""

    reading: Reading
    arrange: int
    as_they_are: bool


def _fixed(call: OpCall) -> _Fixed:
    left, right = operand_map(call, 0)[:2], operand_map(call, 1)[:2]
    arrange = gather.TRANSPOSE if call.transpose else gather.AS_IS
    whole = all(operand.tile_dim == FULL_TILE for operand in call.operands[:2])
    reading = _reading((*left, gather.AS_IS), (*right, arrange))
    return _Fixed(reading, arrange, whole and not call.attributes.accumulate)


def _reading(left: tuple[Index, np.float32, int], right: tuple[Index, np.float32, int]) -> Reading:
    """Of both operands all but their sources, as the kernel takes it."""
    return Reading(*left[:2], *right[:2], right[2] == gather.TRANSPOSE)


def _every(call: OpCall, index: int, operand: gather.Operand, first: int, step: int) -> gather.Operand:
    """The operand with only the t slices first, first + step, ... of those that in0 has."""
    source, tiles, pad_value, arrange = operand
    slices = tiles.reshape(call.operands[index].map.shape[0], -1)[: call.operands[0].map.shape[0]]
    chosen = np.ascontiguousarray(slices[first::step]).reshape(-1)
    chosen.flags.writeable = False  # as those of a tile map: one compiled kernel serves both
    return source, chosen, pad_value, arrange


def _multiply(
    call: OpCall, a: Tiles, b: Tiles, reading: Reading, out: Tiles, parallel: Parallel, ending: Ending | None = None
) -> None:
    """out float32[w, t * R * C, 1024] = the product; t is that of `out`, which may be one of several slices."""
    known: tuple[int, int, Extent] | None = call.fixed.get("blocks")
    if known is None or known[0] != len(out):
        known = call.fixed["blocks"] = len(out), *_blocks(call, out)
    _, items, extent = known
    if ending is None:
        ending = Ending(AS_IT_IS, a, reading.a_index, reading.a_pad)
    parallel(matmul_tiles, items, out, a, b, reading, extent, ending)


def _blocks(call: OpCall, out: Tiles) -> tuple[int, Extent]:
    """Items of `matmul_tiles`, and its sizes."""
    (_, rows, inner), cols = call.operands[0].map.shape, call.operands[1].map.shape[2]
    t = out.shape[1] // (rows * cols)
    items, columns = matmul_blocks(len(out), t, rows, cols)
    return items, Extent(t, rows, inner, cols, columns)
