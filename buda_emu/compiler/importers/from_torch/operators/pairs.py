"""Handlers of distances of all pairs, and of products of three."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_torch.declared import aten


@aten("_cdist_forward")
def cdist(b: Builder, x: Node, y: Node, p: float) -> Node:
    """`subtract` of all pairs, and a norm of the differences"""
    left = b.reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))
    right = b.reshape(y, shape=(*y.shape[:-2], 1, *y.shape[-2:]))
    return _norm(b, b.subtract(left, right), p)


@aten("_pdist_forward")
def pdist(b: Builder, x: Node, p: float = 2.0) -> Node:
    """`take` of the rows of all pairs, `subtract`, and a norm"""
    first, second = np.triu_indices(x.shape[0], 1)
    return _norm(b, b.subtract(b.take(x, dim=0, index=first), b.take(x, dim=0, index=second)), p)


def _norm(b: Builder, x: Node, p: float) -> Node:
    """Return the norm of the last dimension."""
    return b.reduce_lp(x, p=float(p), axes=(len(x.shape) - 1,), keepdims=False)


@aten("_trilinear")
def trilinear(
    b: Builder,
    x: Node,
    y: Node,
    z: Node,
    of_x: Sequence[int],
    of_y: Sequence[int],
    of_z: Sequence[int],
    summed_dims: Any,
) -> Node:
    """`multiply` of three with inserted dimensions, and a sum

    `of_x`, `of_y` and `of_z` are the dimensions of the product that each factor lacks, `summed_dims` those to sum over.
    """
    factors = [_insert_dims(b, node, tuple(dims)) for node, dims in ((x, of_x), (y, of_y), (z, of_z))]
    rank = len(factors[0].shape)
    # What the third factor does not have is summed before it comes.
    early = tuple(dim for dim in summed_dims if factors[2].shape[dim] == 1)
    first = b.multiply(factors[0], factors[1])
    if early:
        first = b.reduce_sum(first, axes=early)
    late = tuple(dim for dim in summed_dims if dim not in early)
    total = b.multiply(first, factors[2])
    if late:
        total = b.reduce_sum(total, axes=late)
    return b.reshape(
        total, shape=[size for dim, size in enumerate(total.shape) if dim not in summed_dims or dim >= rank]
    )


def _insert_dims(b: Builder, x: Node, dims: tuple[int, ...]) -> Node:
    """Insert dimensions of size 1 at the places `dims` of the new shape."""
    shape = list(x.shape)
    for dim in sorted(dims):
        shape.insert(dim, 1)
    return b.reshape(x, shape=tuple(shape))
