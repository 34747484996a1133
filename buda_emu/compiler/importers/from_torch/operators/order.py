"""Handlers of sorting and its relatives, running products, and one-hot rows."""

from math import prod
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_torch.declared import aten
from buda_emu.compiler.importers.from_torch.operators.elementwise import to_copy
from buda_emu.compiler.importers.operators import NotSupportedError, one_hot_rows


@aten("topk")
def topk(b: Builder, x: Node, count: int, dim: int = -1, largest: bool = True) -> list[Node]:
    """`ordered` and `order`: every element against every other

    Returns the `count` largest or smallest elements of a dimension in order, and their places.
    """
    return [b.emit(op, x, dim=dim, count=count, descending=largest) for op in ("ordered", "order")]


@aten("sort")
def sort(b: Builder, x: Node, *, dim: int = -1, descending: bool = False) -> list[Node]:
    """`ordered` and `order` of all"""
    return topk(b, x, x.shape[dim], dim, descending)


@aten("median")
def median(b: Builder, x: Node, dim: int | None = None, keep: bool = False) -> Any:
    """`ordered`, and the lower one in the middle

    Returns values and places along a dimension; without one the median of all elements alone.
    """
    if dim is None:
        return kthvalue(b, b.reshape(x, shape=(prod(x.shape),)), (prod(x.shape) + 1) // 2, 0)[0]
    return kthvalue(b, x, (x.shape[dim] + 1) // 2, dim, keep)


@aten("kthvalue")
def kthvalue(b: Builder, x: Node, place: int, dim: int = -1, keep: bool = False) -> list[Node]:
    """`ordered` and `order` up to the k-th

    Returns the element number `place`, counted from 1 in ascending order, of each row of a dimension, and where it
    stood.
    """
    dim %= len(x.shape)
    results: list[Node] = []
    for node in topk(b, x, place, dim, False):
        last = b.slice(node, dim=dim, start=place - 1, count=1)
        shape = (*x.shape[:dim], *x.shape[dim + 1 :])
        results.append(last if keep else b.reshape(last, shape=shape))
    return results


@aten("cumprod")
def cumprod(b: Builder, x: Node, dim: int, *, dtype: Any = None) -> Node:
    """`cumprod`: by recursive halving"""
    return b.cumprod(to_copy(b, x, dtype=dtype), dim=dim)


@aten("one_hot", whole=True)
def one_hot(b: Builder, index: Node, count: int = -1) -> Node:
    """`one_hot`: comparison with 0, 1, 2, ..."""
    if count < 0:
        raise NotSupportedError("as many classes as the values tell")
    return b.retype(one_hot_rows(b, index, count), "int64")


@aten("histc")
def histc(b: Builder, x: Node, bins: int = 100, low: float = 0, high: float = 0) -> Node:
    """`greater_equal` with the edges of the bins, summed; differences of neighbours

    Returns how many elements lie in each of `bins` equal ranges from `low` to `high`. Raises NotSupportedError unless
    low is below high: torch then takes the values' own range.
    """
    if low >= high:
        raise NotSupportedError("bins between the least and the greatest value: give min and max")
    edges = low + np.arange(bins, dtype=np.float64) * (high - low) / bins
    if x.op == "identity" and np.dtype(b.graph[x.inputs[0]].dtype).kind in "iu":
        edges = np.ceil(edges)  # which tells the same of whole numbers, and is exact in more formats
    wide = b.reshape(x, shape=(1, int(np.prod(x.shape))))
    reached = b.greater_equal(wide, b.constant(edges.astype(np.float32).reshape(bins, 1)), dtype="float32")
    inside = b.less_equal(wide, float(high), dtype="float32")
    counts = b.reduce_sum(b.multiply(reached, inside), axes=(1,), keepdims=False)
    return b.subtract(counts, b.take(counts, dim=0, index=np.append(np.arange(1, bins), -1)))
