"""Tables and indices: known to the compiler, inputs of the model, or computed."""

from math import prod
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.importers.from_torch.declared import aten
from buda_emu.compiler.importers.from_torch.moves import expand, view
from buda_emu.compiler.importers.indices import host_picks
from buda_emu.compiler.importers.refusal import NotSupportedError


@aten("embedding")
def embedding(b: Builder, table: Node, index: Node, *_: Any) -> Node:
    """`embedding` by indices that are an input, one-hot rows times a table that is trained; else `gather`"""
    if not host_picks(b, index):
        return b.gather(table, index, dim=0)
    if table.op == "constant":
        return b.embedding(table, index)
    rows, width = table.shape
    picked = b.reshape(hot(b, index, rows), shape=(prod(index.shape), rows))
    return b.reshape(b.matmul(picked, table), shape=(*index.shape, width))


_TABLE = 4096
"""Rows of zeros and a one are read from a table up to that many, and compared beyond."""


def hot(b: Builder, index: Node, depth: int) -> Node:
    """[..., depth]: 1 where the last dimension counts the index. Of an input by a table, exact in every format."""
    if depth <= _TABLE and host_picks(b, index):
        return b.embedding(b.constant(np.eye(depth, dtype=np.float32)), index)
    return b.one_hot(index, depth=depth)


@aten("index_select")
def index_select(b: Builder, x: Node, dim: int, index: Node) -> Node:
    """`take` by constants, else `gather`: a product with one-hot rows"""
    if index.op == "constant":
        return b.take(x, dim=dim, index=np.asarray(index.value).reshape(-1) % x.shape[dim])
    return b.gather(x, index, dim=dim)


@aten("gather")
def gather(b: Builder, x: Node, dim: int, index: Node, **_: Any) -> Node:
    """`gather_elements`: one-hot along a dimension"""
    return b.gather_elements(x, index, dim=dim)


@aten("index")
def index(b: Builder, x: Node, indices: Any) -> Node:
    """`take` by constants of neighbouring dimensions, `embedding` by an input, else `gather`"""
    places = [place for place, item in enumerate(indices) if item is not None]
    given = [indices[place] for place in places]
    if len(given) == 1 and given[0].op != "constant":
        if places[0] == 0 and x.op == "constant" and host_picks(b, given[0]):
            table = b.constant(x.value.reshape(x.shape[0], -1).astype(np.float32))
            return view(b, b.embedding(table, given[0]), (*given[0].shape, *x.shape[1:]))
        return b.gather(x, given[0], dim=places[0])
    if any(item.op != "constant" or item.dtype == "bool" for item in given):
        raise NotSupportedError("indices that are computed")
    if places != list(range(places[0], places[0] + len(places))):
        raise NotSupportedError("indices of dimensions apart")
    first, last = places[0], places[-1] + 1
    sizes = x.shape[first:last]
    values = np.broadcast_arrays(*(item.value for item in given))
    flat = np.ravel_multi_index([value % size for value, size in zip(values, sizes, strict=True)], sizes)
    merged = view(b, x, [*x.shape[:first], prod(sizes), *x.shape[last:]])
    found = b.take(merged, dim=first, index=flat.reshape(-1))
    return view(b, found, [*x.shape[:first], *flat.shape, *x.shape[last:]])


@aten("_embedding_bag")
def embedding_bag(b: Builder, table: Node, index: Node, offsets: Node, *given: Any) -> Any:
    """`embedding`, then sums, means or the largest of its rows"""
    left_out: tuple[Any, ...] = (False, 0, False, None, False, -1)
    _, mode, _, weights, ends, padding = (*given, *left_out[len(given) :])
    if offsets.op != "constant":
        raise NotSupportedError("bags whose sizes are an input")
    if padding not in (None, -1):
        raise NotSupportedError("an index of padding")
    begin = np.asarray(offsets.value).ravel()
    begin = begin if ends else np.append(begin, index.shape[0])
    counts = np.diff(begin)
    rows = embedding(b, table, index)
    if weights is not None:
        rows = b.multiply(rows, b.reshape(weights, shape=(index.shape[0], 1)))
    bag, place = np.repeat(np.arange(counts.size), counts), np.arange(begin[0], begin[-1])
    if mode < 2:
        share = np.repeat(1 / np.maximum(counts, 1), counts) if mode == 1 else 1.0
        found = b.linear(rows, dim=0, matrix=Sparse.of((counts.size, index.shape[0]), bag, place, share))
    elif not counts.all():
        raise NotSupportedError("the largest of an empty bag")
    else:
        steps = np.minimum(np.arange(counts.max()), counts[:, None] - 1) + begin[:-1, None]
        wide = b.take(rows, dim=0, index=steps.ravel())
        wide = b.reshape(wide, shape=(*steps.shape, rows.shape[-1]))
        found = b.reduce_largest(wide, axes=(1,), keepdims=False)
    return [found, None, None, None]


@aten("index_put", "_unsafe_index_put")
def index_put(b: Builder, x: Node, indices: Any, values: Node, add: bool = False) -> Node:
    """`linear` of the values to their places, added to what stays; places that are computed: sums into zeros along
    the first dimension, hot' values"""
    places = [place for place, item in enumerate(indices) if item is not None]
    if any(indices[place].op != "constant" or indices[place].dtype == "bool" for place in places):
        if places != [0] or indices[0].dtype == "bool" or not add or x.op != "constant" or x.value.any():
            raise NotSupportedError("places that are computed, but for sums into zeros along the first dimension")
        count, rest = prod(indices[0].shape), prod(x.shape[1:])
        picked = b.reshape(hot(b, indices[0], x.shape[0]), shape=(count, x.shape[0]))
        found = b.matmul(b.transpose(picked, perm=(1, 0)), b.reshape(values, shape=(count, rest)))
        return b.reshape(found, shape=x.shape)
    if places != list(range(places[0], places[0] + len(places))):
        raise NotSupportedError("places of dimensions apart")
    first, last = places[0], places[-1] + 1
    before, sizes, behind = x.shape[:first], x.shape[first:last], x.shape[last:]
    given = np.broadcast_arrays(*(indices[place].value for place in places))
    flat = np.ravel_multi_index([item % size for item, size in zip(given, sizes, strict=True)], sizes).ravel()
    if not add and np.unique(flat).size != flat.size:
        raise NotSupportedError("places that are written twice")
    full = (*before, *given[0].shape, *behind)
    wide = expand(b, values, full)
    put = b.linear(view(b, wide, (*before, flat.size, *behind)), dim=first,
                   matrix=Sparse.of((prod(sizes), flat.size), flat, np.arange(flat.size)))  # fmt: skip
    own = view(b, x, (*before, prod(sizes), *behind))
    if not add:
        kept = np.arange(prod(sizes))
        kept[flat] = -1
        own = b.take(own, dim=first, index=kept)
    return view(b, b.add(own, put, dtype=x.dtype), x.shape)
