"""Kernels that move elements: conversion, order, repetition, choice."""

from typing import Final

import numpy as np

from buda_emu.foreign.vpux.kernels.declare import Array, Call, Kernel, fail_op, family


def _convert(call: Call) -> Array:
    """Return the elements as they are: the conversion happens when the result is rounded to the output's type."""
    return call.inputs[0].raw  # as stored: the widest unsigned numbers do not fit int64


def _reorder(call: Call) -> Array:
    """Return the elements with the dimensions in memory permuted by the attribute r, which counts them from the
    innermost. Raises ProgramError (X046) where r is no permutation, or the result does not fit the output."""
    tensor = call.inputs[0]
    rank = tensor.order.rank
    reversed_order: tuple[int, ...] = call.attributes["r"]
    order = [rank - 1 - reversed_order[rank - 1 - n] for n in range(rank)]
    if sorted(order) != list(range(rank)):
        fail_op(f"{list(reversed_order)} is not a permutation of {rank} dimensions")
    moved = tensor.in_memory().transpose(order)
    out = call.orders[0]
    if out.rank == len(call.shapes[0]):
        expected = out.to_memory(call.shapes[0])
    else:
        expected = ()
    if moved.shape != expected:
        fail_op(f"memory shape {list(moved.shape)} does not fit the output's {list(expected)}")
    return moved.transpose([out.perm.index(dim) for dim in range(rank)])


def _tile(call: Call) -> Array:
    """Return the input repeated along each logical dimension. Raises ProgramError (X046) where that does not give the
    output's shape."""
    x = call.inputs[0].raw
    repeats = call.attributes["repeats"]
    if len(repeats) != x.ndim or any(count < 0 for count in repeats):
        fail_op(f"repeats {list(repeats)} of {x.ndim} dimensions")
    if tuple(size * count for size, count in zip(x.shape, repeats, strict=True)) != call.shapes[0]:
        fail_op(f"{list(x.shape)} times {list(repeats)} is not the output's {list(call.shapes[0])}")
    return np.tile(x, repeats)


def _gather(call: Call) -> Array:
    """Return slices of the first input along an axis by the indices of the second, which count from the end where
    negative. Raises ProgramError (X046) for an index outside and for shapes that do not fit."""
    data, indices = call.inputs
    dim = data.dim_of_axis(call.integer("axis"))
    batch = call.integer("batch")
    rank = call.integer("index_rank")
    if batch not in (0, 1) or not 0 <= rank <= indices.raw.ndim or batch > min(rank, dim):
        fail_op(f"{batch} batch dimensions and indices of rank {rank}")
    at = _positive_indices(indices.values.astype(np.int64), rank, data.shape[dim])
    if batch == 0:
        result = np.take(data.raw, at, axis=dim)
    elif at.shape[0] != data.shape[0]:
        fail_op(f"{at.shape[0]} batches of indices for {data.shape[0]} of data")
    elif not data.shape[0]:
        result = np.zeros(call.shapes[0], data.raw.dtype)
    else:
        result = np.stack([np.take(data.raw[n], at[n], axis=dim - 1) for n in range(data.shape[0])])
    if result.size != int(np.prod(call.shapes[0])):
        fail_op(f"{list(result.shape)} gathered elements do not fit {list(call.shapes[0])}")
    return result.reshape(call.shapes[0])


def _positive_indices(at: Array, rank: int, size: int) -> Array:
    """Return indices into `size` elements, the negative ones counted from the beginning, with their last `rank`
    dimensions alone. Raises ProgramError (X046) if another dimension is not 1, or for an index outside."""
    lead = at.ndim - rank
    if any(extent != 1 for extent in at.shape[:lead]):
        fail_op(f"indices of shape {list(at.shape)} are not of rank {rank}")
    at = at.reshape(at.shape[lead:])
    at = np.where(at < 0, at + size, at)
    if at.size and (at.min() < 0 or at.max() >= size):
        fail_op(f"an index is outside of {size} elements")
    return at


def _topk(call: Call) -> tuple[Array, Array]:
    """Return the k largest (mode 0) or smallest (mode 1) elements along an axis and their indices, sorted by value,
    or by index for sort 2. Raises ProgramError (X046) for other modes."""
    tensor = call.inputs[0]
    dim = tensor.dim_of_axis(call.integer("axis"))
    mode = call.integer("mode")
    sort = call.integer("sort")
    count = call.integer("k")
    x = np.moveaxis(tensor.values, dim, -1)
    if mode not in (0, 1) or sort not in (0, 1, 2) or not 0 <= count <= x.shape[-1]:
        fail_op(f"topk of mode {mode}, sort {sort}, {count} of {x.shape[-1]}")
    order = np.argsort(-x if mode == 0 else x, axis=-1, kind="stable")[..., :count]
    if sort == 2:
        order = np.sort(order, axis=-1)
    values = np.take_along_axis(x, order, axis=-1)
    return np.moveaxis(values, -1, dim), np.moveaxis(order, -1, dim)


def _block_and_mode(call: Call) -> tuple[int, int]:
    """Return block size and mode of a kernel that moves between depth and space. Raises ProgramError (X046) for
    impossible ones."""
    block = call.integer("block")
    mode = call.integer("mode")
    if block < 1 or mode not in (0, 1) or call.inputs[0].raw.ndim != 4:
        fail_op(f"blocks of {block}, mode {mode}, of {call.inputs[0].raw.ndim} dimensions")
    return block, mode


def _depth_to_space(call: Call) -> Array:
    """Return the elements with channels moved into blocks of rows and columns; the channel counts blocks first for mode
    0, depth first for mode 1. Raises ProgramError (X046) for channels that do not divide."""
    block, mode = _block_and_mode(call)
    x = call.inputs[0].raw
    n, c, h, w = x.shape
    if c % (block * block):
        fail_op(f"{c} channels are not a multiple of {block}·{block}")
    depth = c // (block * block)
    if mode == 0:
        x = x.reshape(n, block, block, depth, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        x = x.reshape(n, depth, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return x.reshape(n, depth, h * block, w * block)


def _space_to_depth(call: Call) -> Array:
    """Return the elements with blocks of rows and columns moved into channels; the channel counts blocks first for mode
    0, depth first for mode 1. Raises ProgramError (X046) for rows or columns that do not divide."""
    block, mode = _block_and_mode(call)
    x = call.inputs[0].raw
    n, c, h, w = x.shape
    if h % block or w % block:
        fail_op(f"{h} x {w} are not multiples of {block}")
    x = x.reshape(n, c, h // block, block, w // block, block)
    if mode == 0:
        x = x.transpose(0, 3, 5, 1, 2, 4)
    else:
        x = x.transpose(0, 1, 3, 5, 2, 4)
    return x.reshape(n, c * block * block, h // block, w // block)


KERNELS: Final = family(
    "moving",
    (
        *(
            Kernel(name, 1, _convert, "the same values in the output's type", keeps_shape=True)
            for name in ("convert", "single_shave_convert")
        ),
        Kernel(
            name="reorder",
            inputs=1,
            compute=_reorder,
            summary="memory dimension i of the result is p[i] of the input, p[i] = n-1-r[n-1-i]",
            attributes=("r[rank]",),
            moves_raw=True,
        ),
        Kernel(
            name="tile",
            inputs=1,
            compute=_tile,
            summary="repeats along each logical dimension",
            attributes=("n", "repeats[n]"),
            moves_raw=True,
        ),
        *(
            Kernel(
                name=name,
                inputs=2,
                compute=_gather,
                summary="slices of the first input by the indices of the second; negative from the end",
                attributes=("axis", "batch", "index_rank"),
                moves_raw=True,
            )
            for name in ("gather", "single_shave_gather")
        ),
        Kernel(
            name="topk",
            inputs=1,
            compute=_topk,
            summary="k largest (mode 0) or smallest (1), sorted by value (sort 0, 1) or index (2), stable",
            attributes=("axis", "mode", "sort", "k"),
            outputs=2,
        ),
        Kernel(
            name="depth_to_space",
            inputs=1,
            compute=_depth_to_space,
            summary="channels to blocks; mode 0 blocks first, 1 depth first",
            attributes=("block", "mode"),
            moves_raw=True,
        ),
        Kernel(
            name="space_to_depth",
            inputs=1,
            compute=_space_to_depth,
            summary="blocks to channels; mode 0 blocks first, 1 depth first",
            attributes=("block", "mode"),
            moves_raw=True,
        ),
    ),
)
