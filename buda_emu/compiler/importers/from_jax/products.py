"""Products of matrices, convolutions."""

from math import prod
from typing import Any

import numpy as np

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_jax.declared import Call, hlo
from buda_emu.compiler.importers.operators import NotSupportedError


@hlo("stablehlo.dot_general")
def dot_general(call: Call) -> Node:
    """`matmul` of [batch.., kept, summed] and [batch.., summed, kept]"""
    b, (x, y) = call.b, call.operands
    numbers = call.attrs["dot_dimension_numbers"]
    batch = [list(numbers.get(f"{side}_batching_dimensions", ())) for side in ("lhs", "rhs")]
    summed = [list(numbers.get(f"{side}_contracting_dimensions", ())) for side in ("lhs", "rhs")]
    kept = [
        [dim for dim in range(len(node.shape)) if dim not in (*batch[side], *summed[side])]
        for side, node in enumerate((x, y))
    ]
    leading = tuple(x.shape[dim] for dim in batch[0])
    count = prod(x.shape[dim] for dim in summed[0])
    rows, columns = (prod(node.shape[dim] for dim in kept[side]) for side, node in enumerate((x, y)))
    left = b.reshape(b.transpose(x, perm=(*batch[0], *kept[0], *summed[0])), shape=(*leading, rows, count))
    right = b.reshape(b.transpose(y, perm=(*batch[1], *summed[1], *kept[1])), shape=(*leading, count, columns))
    return b.reshape(b.matmul(left, right), shape=call.shape)


@hlo("stablehlo.convolution")
def convolution(call: Call) -> Node:
    """`convolution` between transpositions; an input that is dilated gets zeros between its elements"""
    b, (x, w) = call.b, call.operands
    numbers: dict[str, Any] = call.attrs["dimension_numbers"]
    if call.attrs.get("batch_group_count", 1) != 1:
        raise NotSupportedError("groups of the batch")
    rank = len(w.shape) - 2
    space = [2 + place for place in range(rank)]
    x = b.transpose(
        x,
        perm=(
            numbers["input_batch_dimension"],
            numbers["input_feature_dimension"],
            *numbers["input_spatial_dimensions"],
        ),
    )
    w = b.transpose(
        w,
        perm=(
            numbers["kernel_output_feature_dimension"],
            numbers["kernel_input_feature_dimension"],
            *numbers["kernel_spatial_dimensions"],
        ),
    )
    for dim, step in zip(space, call.listed("lhs_dilation", 1, rank), strict=True):
        x = spread(call, x, dim, step)
    for dim, backward in zip(space, call.listed("window_reversal", 0, rank), strict=True):
        w = b.take(w, dim=dim, index=np.arange(w.shape[dim])[::-1]) if backward else w
    pads = tuple(map(tuple, call.attrs.get("padding") or ((0, 0),) * rank))
    if any(pad < 0 for around in pads for pad in around):
        x = b.pad(x, pads=((0, 0), (0, 0), *((min(low, 0), min(high, 0)) for low, high in pads)))
        pads = tuple((max(low, 0), max(high, 0)) for low, high in pads)
    y = b.convolution(
        x,
        w,
        strides=call.listed("window_strides", 1, rank),
        pads=pads,
        dilations=call.listed("rhs_dilation", 1, rank),
        groups=call.attrs.get("feature_group_count", 1),
    )
    order = [numbers["output_batch_dimension"], numbers["output_feature_dimension"]]
    order += numbers["output_spatial_dimensions"]
    return b.transpose(y, perm=tuple(order.index(dim) for dim in range(rank + 2)))


def spread(call: Call, x: Node, dim: int, step: int) -> Node:
    """Zeros between the elements of one dimension, so that they are `step` apart."""
    if step == 1:
        return x
    index = np.full((x.shape[dim] - 1) * step + 1, -1)
    index[::step] = np.arange(x.shape[dim])
    return call.b.take(x, dim=dim, index=index)
