"""Indices of a model: those that the host can pick before a run, and what is read and written by them."""

from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node, dim_of

_TABLE: Final = 4096
"""Rows of zeros and a one are read from a table up to that many, and compared beyond."""
_MOVES: Final = ("reshape", "identity", "transpose", "linear", "expand", "take", "slice")


def host_picks(b: Builder, node: Node) -> bool:
    """Whether the host can pick the elements of a value: it is an input, or moved from one."""
    while node.op in _MOVES:
        node = b.graph[node.inputs[0]]
    return node.op == "input"


def hot(b: Builder, index: Node, depth: int, *, from_end: bool = False, zero: int | None = None) -> Node:
    """Return [..., depth]: 1 where the last dimension counts the index. Negative indices may count `from_end`; index
    `zero`, outside of the dimension, is nowhere. Of an input by a table, exact in every format."""
    if depth <= _TABLE and host_picks(b, index):
        return table_rows(b, b.constant(np.eye(depth, dtype=np.float32)), index, from_end=from_end, zero=zero)
    return b.one_hot(index, depth=depth, from_end=from_end)


def table_rows(b: Builder, table: Node, index: Node, *, from_end: bool = False, zero: int | None = None) -> Node:
    """Return rows of a constant table by indices that the host picks."""
    attrs: dict[str, Any] = {"from_end": True} if from_end else {}
    if zero is not None:
        attrs["zero"] = zero
    return b.embedding(table, index, **attrs)


class Scatter(NamedTuple):
    """How values come to the places of a dimension: several for a place are reduced (`frontend_ops.scatter`), with the
    element that is there or without it; whether indices may be counted from the end."""

    dim: int
    reduction: str = "none"
    include_self: bool = True
    from_end: bool = False


def scattered(b: Builder, x: Node, index: Node, values: Node, how: Scatter) -> Node:
    """Return x with values at places of one dimension, one for each index. Along other dimensions the indices may be
    fewer: elements behind stay as they are."""
    dim = dim_of(how.dim, len(x.shape))
    for place, (size, count) in enumerate(zip(x.shape, index.shape, strict=True)):
        if place != dim and count < size:
            part = b.slice(x, dim=place, start=0, count=count)
            part = scattered(b, part, index, values, how)
            behind = b.slice(x, dim=place, start=count, count=size - count)
            return b.concat(part, behind, dim=place)
    return _combined(b, x, hot(b, index, x.shape[dim], from_end=how.from_end), values, how)


def scattered_slices(b: Builder, x: Node, index: Node, values: Node, how: Scatter) -> Node:
    """Return x with whole slices at places of one dimension, one for each of a row of indices."""
    dim = dim_of(how.dim, len(x.shape))
    size = x.shape[dim]
    if index.op == "constant" and how.reduction == "none":
        places = np.asarray(index.value).astype(np.int64).reshape(-1) % size
        own, theirs = np.arange(size), np.full(size, -1)
        theirs[places] = np.arange(places.size)
        own[places] = -1
        put = b.take(values, dim=dim, index=theirs)
        return put if (own < 0).all() else b.add(b.take(x, dim=dim, index=own), put, dtype=x.dtype)
    rows = hot(b, index, size, from_end=how.from_end)
    rows = b.reshape(rows, shape=(*(1,) * dim, prod(index.shape), *(1,) * (len(x.shape) - dim - 1), size))
    rows = b.expand(rows, shape=(*values.shape, size))
    return _combined(b, x, rows, values, how)


def _combined(b: Builder, x: Node, rows: Node, values: Node, how: Scatter) -> Node:
    return b.scatter(
        x, rows, values, dim=how.dim, reduction=how.reduction, include_self=how.include_self, dtype=x.dtype
    )
