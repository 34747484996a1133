"""Handlers of tables and indices, which may be constants, inputs of the model, or computed; of writes to elements at
computed places; and of sorting and its relatives, running products, and one-hot rows."""

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.importers.from_torch.declared import as_float, aten
from buda_emu.compiler.importers.from_torch.operators.elementwise import to_copy
from buda_emu.compiler.importers.from_torch.operators.moves import expand, view
from buda_emu.compiler.importers.index_inputs import check_on_host, is_picked_by_host
from buda_emu.compiler.importers.operators import (
    NotSupportedError,
    Scatter,
    constant_places,
    one_hot_rows,
    picked_rows,
    scatter_elements,
    scatter_slices,
    table_rows,
)


@aten("embedding")
def embedding(b: Builder, table: Node, index: Node) -> Node:
    """`embedding` by indices that are an input, one-hot rows times a trained table; else `gather`"""
    if not is_picked_by_host(b, index):
        check_on_host(b, index, table.shape[0])
        return b.gather(table, index, dim=0)
    if table.op == "constant":
        return b.embedding(table, index)
    rows, width = table.shape
    picked = b.reshape(one_hot_rows(b, index, rows), shape=(prod(index.shape), rows))
    return b.reshape(b.matmul(picked, table), shape=(*index.shape, width))


@aten("index_select")
def index_select(b: Builder, x: Node, dim: int, index: Node) -> Node:
    """`take` by constants, else `gather`: a product with one-hot rows

    Returns x with the elements number `index` of dimension `dim`.
    """
    if index.op == "constant":
        return b.take(x, dim=dim, index=constant_places(index.value, x.shape[dim], from_end=False).reshape(-1))
    return b.gather(x, index, *picked_rows(b, index, x.shape[dim]), dim=dim)


@aten("gather")
def gather(b: Builder, x: Node, dim: int, index: Node) -> Node:
    """`gather_elements`: one-hot along a dimension

    Returns, for each element of the index, the element of x at that place of dimension `dim`. Raises NotSupportedError
    for a constant index that the dimension does not have."""
    size = x.shape[dim]
    if index.op == "constant":
        constant_places(index.value, size, from_end=False)
    return b.gather_elements(x, index, *picked_rows(b, index, size), dim=dim)


@aten("index")
def index(b: Builder, x: Node, indices: Any) -> Node:
    """`take` by constants, `embedding` by an input, `gather` by computed indices, and by several
    `matmul` with rows of zeros and a one"""
    indices = _places_of_constant_masks(b, indices)
    places = [place for place, node in enumerate(indices) if node is not None]
    index_nodes = [indices[place] for place in places]
    if any(node.dtype == "bool" for node in index_nodes):
        raise NotSupportedError("a mask as index: the size of its result depends on data; multiply by it, or use where")
    computed = any(node.op != "constant" for node in index_nodes)
    if len(index_nodes) == 1 and computed:
        return _gather_rows(b, x, index_nodes[0], places[0])
    other_dims = [place for place in range(len(x.shape)) if place not in places]
    sizes = [x.shape[place] for place in places]
    other_sizes = [x.shape[place] for place in other_dims]
    shape = np.broadcast_shapes(*(node.shape for node in index_nodes))
    front = view(b, b.transpose(x, perm=(*places, *other_dims)), (prod(sizes), *other_sizes))
    if computed:
        rows = _index_rows(b, index_nodes, sizes, shape)
        picked = b.matmul(rows, view(b, front, (prod(sizes), prod(other_sizes))))
    else:
        picked = b.take(front, dim=0, index=_flatten_indices(index_nodes, sizes))
    elements = view(b, picked, (*shape, *other_sizes))
    if elements.dtype != x.dtype:
        elements = b.retype(elements, x.dtype)
    if places != list(range(places[0], places[0] + len(places))):
        return elements  # as numpy has it, dimensions that stand apart give the first ones
    return _move_behind(b, elements, len(shape), places[0])


def _places_of_constant_masks(b: Builder, indices: Sequence[Node | None]) -> list[Node | None]:
    """Return indices with the places of the elements that it selects, one index for each dimension, instead of each
    constant mask. Raises NotSupportedError for a mask that selects nothing."""
    spread: list[Node | None] = []
    for node in indices:
        if node is None or node.op != "constant" or node.dtype != "bool":
            spread.append(node)
            continue
        places = np.nonzero(node.value)
        if not places[0].size:
            raise NotSupportedError("a mask as index that selects nothing: leave out what is computed of it")
        spread += [b.constant(place.astype(np.int64)) for place in places]
    return spread


def _move_behind(b: Builder, x: Node, count: int, ahead: int) -> Node:
    """Return a value with its first `count` dimensions behind the `ahead` ones that follow them."""
    first = range(count, count + ahead)
    return b.transpose(x, perm=(*first, *range(count), *range(count + ahead, len(x.shape))))


def _gather_rows(b: Builder, x: Node, index: Node, dim: int) -> Node:
    """Gather along one dimension by an index that is no constant; the host picks rows of a constant table."""
    if dim == 0 and x.op == "constant" and is_picked_by_host(b, index):
        table = b.constant(x.value.reshape(x.shape[0], -1).astype(np.float32))
        return view(b, table_rows(b, table, index, from_end=True), (*index.shape, *x.shape[1:]))
    return b.gather(x, index, *picked_rows(b, index, x.shape[dim], from_end=True), dim=dim)


def _flatten_indices(index_nodes: Sequence[Node], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return the places that constant indices of several dimensions name in these dimensions flattened, as one row.
    Raises NotSupportedError for an index that a dimension does not have."""
    values = np.broadcast_arrays(*(node.value for node in index_nodes))
    places = [constant_places(value, size) for value, size in zip(values, sizes, strict=True)]
    return np.ravel_multi_index(places, tuple(sizes)).ravel()


def _index_rows(b: Builder, index_nodes: Sequence[Node], sizes: Sequence[int], shape: Sequence[int]) -> Node:
    """Return [places, elements of the indexed dimensions]: a one-hot row for each place of the indices."""
    count = prod(shape)
    rows = None
    for node, size in zip(index_nodes, sizes, strict=True):
        wide = view(b, node, (*(1,) * (len(shape) - len(node.shape)), *node.shape))
        hots = view(b, one_hot_rows(b, expand(b, wide, shape), size, from_end=True), (count, 1, size))
        if rows is None:
            rows = view(b, hots, (count, size))
        else:
            products = b.multiply(view(b, rows, (*rows.shape, 1)), hots)
            rows = view(b, products, (count, rows.shape[1] * size))
    assert rows is not None
    return rows


@aten("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    b: Builder,
    table: Node,
    index: Node,
    offsets: Node,
    *,
    mode: int = 0,
    per_sample_weights: Node | None = None,
    include_last_offset: bool = False,
) -> Any:
    """`embedding`, then sums, means or the largest of its rows

    `offsets`: where each bag of indices begins; `mode`: 0 sum, 1 mean, 2 largest.
    """
    if offsets.op != "constant":
        raise NotSupportedError("bags whose sizes are an input")
    begin = np.asarray(offsets.value).ravel()
    if not include_last_offset:
        begin = np.append(begin, index.shape[0])
    counts = np.diff(begin)
    rows = embedding(b, table, index)
    if per_sample_weights is not None:
        rows = b.multiply(rows, b.reshape(per_sample_weights, shape=(index.shape[0], 1)))
    bag = np.repeat(np.arange(counts.size), counts)
    place = np.arange(begin[0], begin[-1])
    if mode < 2:
        if mode == 1:
            share = np.repeat(1 / np.maximum(counts, 1), counts)
        else:
            share = 1.0
        bags = b.linear(rows, dim=0, matrix=Sparse.of((counts.size, index.shape[0]), bag, place, share))
    elif not counts.all():
        raise NotSupportedError("the largest of an empty bag")
    else:
        steps = np.minimum(np.arange(counts.max()), counts[:, None] - 1) + begin[:-1, None]
        wide = b.take(rows, dim=0, index=steps.ravel())
        wide = b.reshape(wide, shape=(*steps.shape, rows.shape[-1]))
        bags = b.reduce_largest(wide, axes=(1,), keepdims=False)
    return [bags, None, None, None]


def _put_at_constants(
    b: Builder, base: Node, values: Node, places: NDArray[np.int64], dim: int, add: bool
) -> tuple[Node, Node]:
    """Return the values at their places along a dimension, 0 elsewhere, and `base` with 0 at these places, unless the
    values are added. Raises NotSupportedError for a place that is written twice."""
    size = base.shape[dim]
    if not add and np.unique(places).size != places.size:
        raise NotSupportedError("places that are written twice")
    put = b.linear(values, dim=dim, matrix=Sparse.of((size, places.size), places, np.arange(places.size)))
    if add:
        return put, base
    source = np.arange(size)
    source[places] = -1
    return put, b.take(base, dim=dim, index=source)


@aten("index_put", "_unsafe_index_put")
def index_put(b: Builder, x: Node, indices: Any, values: Node, add: bool = False) -> Node:
    """`linear` of the values to their places, added to the other elements; by computed indices a product with columns
    of zeros and a one, the last value for a place counts; `where` a mask is set, of one value for all its places; as
    `masked_scatter`, of one for each place that is set"""
    places = [place for place, node in enumerate(indices) if node is not None]
    index_nodes = [indices[place] for place in places]
    if any(node.dtype == "bool" for node in index_nodes):
        return _put_by_mask(b, x, indices, values, add)
    if places != list(range(places[0], places[0] + len(places))):
        raise NotSupportedError("places of dimensions apart")
    first = places[0]
    last = places[-1] + 1
    before = x.shape[:first]
    sizes = x.shape[first:last]
    trailing = x.shape[last:]
    shape = np.broadcast_shapes(*(node.shape for node in index_nodes))
    wide = view(b, expand(b, values, (*before, *shape, *trailing)), (*before, prod(shape), *trailing))
    base = view(b, x, (*before, prod(sizes), *trailing))
    if any(node.op != "constant" for node in index_nodes):
        put, base = _put_by_indices(b, base, wide, _index_rows(b, index_nodes, sizes, shape), first, add)
    else:
        put, base = _put_at_constants(b, base, wide, _flatten_indices(index_nodes, sizes), first, add)
    return view(b, b.add(base, put, dtype=x.dtype), x.shape)


@aten("masked_scatter")
def masked_scatter(b: Builder, x: Node, mask: Node, source: Node) -> Node:
    """`where` the mask is set the next value: `matmul` with rows of zeros and a one by how many were set before; of a
    mask that is expanded whole rows"""
    if mask.op == "expand":
        unexpanded = b.graph.nodes[mask.inputs[0]]
    else:
        unexpanded = mask
    unexpanded = view(b, unexpanded, (*(1,) * (len(x.shape) - len(unexpanded.shape)), *unexpanded.shape))
    if mask.shape != x.shape:
        unexpanded = mask = expand(b, mask, x.shape)
    mask_rank = len(x.shape)
    while mask_rank and unexpanded.shape[mask_rank - 1] == 1:
        mask_rank -= 1  # dimensions behind are set together
    width = prod(x.shape[mask_rank:])
    ahead = x.shape[:mask_rank]
    if unexpanded.shape[:mask_rank] != ahead:
        unexpanded = expand(b, unexpanded, (*ahead, *(1,) * (len(x.shape) - mask_rank)))
    rows = prod(source.shape) // width
    count = prod(ahead)
    if rows * width != prod(source.shape):
        raise NotSupportedError("rows of values of which the last is incomplete")
    flat = b.retype(view(b, unexpanded, (count,)), "float32")
    before = b.subtract(b.cumsum(flat, dim=0), 1.0)
    picked = b.matmul(b.one_hot(b.relu(before), depth=rows), view(b, source, (rows, width)))
    return b.where(mask, view(b, picked, x.shape), x, dtype=x.dtype)


def _put_by_mask(b: Builder, x: Node, indices: Any, values: Node, add: bool) -> Node:
    """Write values to the elements of x that a mask, the only index, selects: the same value for all, or the next of a
    list if the mask comes first. With `add` they are added instead. Raises NotSupportedError for other values, and for
    further indices."""
    mask, *others = [node for node in indices if node is not None]
    first = indices.index(mask)
    trailing = len(x.shape) - indices.index(mask) - len(mask.shape)
    values_dim = len(values.shape) - trailing - 1  # the dimension of the mask's places
    wide = view(b, mask, (*(1,) * first, *mask.shape, *(1,) * trailing))
    if not others and values_dim == first == 0 and values.shape[0] != 1 and not add:
        rows = expand(b, values, (values.shape[0], *x.shape[len(mask.shape) :]))
        return masked_scatter(b, x, expand(b, wide, x.shape), rows)
    if others or (values_dim >= 0 and values.shape[values_dim] != 1):
        raise NotSupportedError("a mask as index, with values that differ from place to place: use where")
    if values_dim >= 0:
        values = view(b, values, (*values.shape[:values_dim], *(1,) * len(mask.shape), *values.shape[values_dim + 1 :]))
    return b.where(wide, b.add(x, values, dtype=x.dtype) if add else values, x, dtype=x.dtype)


def _put_by_indices(b: Builder, base: Node, values: Node, rows: Node, dim: int, add: bool) -> tuple[Node, Node]:
    """Return the values at their places along a dimension with zeros elsewhere, and the base with zeros at the places
    that are overwritten, or with `add` unchanged. `rows`: a one-hot row of the dimension for each place of the
    values."""
    order = (dim, *[place for place in range(len(base.shape)) if place != dim])
    back = [order.index(place) for place in range(len(order))]
    if not add:
        once = b.equal(b.cumsum(rows, dim=0, reverse=True), 1.0, dtype="float32")  # no later one for that place
        stays = b.subtract(1.0, b.reduce_largest(rows, axes=(0,), keepdims=False))
        rows = b.multiply(rows, once)
        base = b.multiply(
            base, view(b, stays, (base.shape[dim], *(1,) * (len(base.shape) - dim - 1))), dtype=base.dtype
        )
    moved = b.transpose(values, perm=order)
    flat = view(b, moved, (moved.shape[0], prod(moved.shape[1:])))
    placed = b.matmul(b.transpose(rows, perm=(1, 0)), flat)
    return b.transpose(view(b, placed, (base.shape[dim], *moved.shape[1:])), perm=back), base


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
    """`cumprod`: by recursive halving

    The running product along dimension `dim`, after a cast to `dtype`."""
    return b.cumprod(to_copy(b, x, dtype=dtype), dim=dim)


@aten("one_hot", intact=True)
def one_hot(b: Builder, index: Node, count: int = -1) -> Node:
    """`one_hot`: comparison with 0, 1, 2, ...

    `count`: the number of classes. Raises NotSupportedError if torch is to take it from the values (-1)."""
    if count < 0:
        raise NotSupportedError("as many classes as the values tell")
    return b.retype(one_hot_rows(b, index, count), "int64")


@aten("bucketize")
def bucketize(b: Builder, x: Node, edges: Node, *, right: bool = False) -> Node:
    """`greater` than each of the edges, summed; with `right` `greater_equal`"""
    return searchsorted(b, edges, x, right=right)


@aten("searchsorted")
def searchsorted(
    b: Builder, edges: Node, x: Node, *, right: bool = False, side: str | None = None, sorter: Node | None = None
) -> Node:
    """`greater` than each of the edges, summed; with `right` `greater_equal`

    `edges`: ascending along the last dimension; one row for all of x, or one for each row of x; `side` "right" is
    `right`. Raises NotSupportedError for a `sorter`.
    """
    if sorter is not None:
        raise NotSupportedError("edges in the order of a sorter: sort them first")
    x = b.node(x)  # or a number
    wide = view(b, x, (*x.shape, 1))
    rows = edges if len(edges.shape) == 1 else view(b, edges, (*edges.shape[:-1], 1, edges.shape[-1]))
    compare = "greater_equal" if right or side == "right" else "greater"
    return b.reduce_sum(b.emit(compare, wide, rows, dtype="float32"), axes=(len(wide.shape) - 1,), keepdims=False)


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


_REDUCTIONS: Final = {
    None: "none", "add": "sum", "multiply": "prod",  # of `scatter`
    "sum": "sum", "prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin",
}  # fmt: skip


@aten("scatter")
def scatter(b: Builder, x: Node, dim: int, index: Node, source: Any, *, reduce: str | None = None) -> Node:
    """`scatter`: where one-hot rows of the index meet, the last value for a place, or with `reduce` all of them

    Returns x with the values of `source` at the places `index` of dimension `dim`.
    """
    return scatter_reduce(b, x, dim, index, source, reduce)


@aten("scatter_add")
def scatter_add(b: Builder, x: Node, dim: int, index: Node, source: Node) -> Node:
    """`scatter`: one-hot rows of the index times the values, summed, and added

    Returns x with the values of `source` added at the places `index` of dimension `dim`.
    """
    return scatter_reduce(b, x, dim, index, source, "sum")


@aten("scatter_reduce")
def scatter_reduce(
    b: Builder, x: Node, dim: int, index: Node, source: Any, reduce: str | None, *, include_self: bool = True
) -> Node:
    """`scatter`: the sum, product, mean, largest or smallest of the values for a place, and of the element itself

    Returns x with the values of `source` reduced at the places `index` of dimension `dim`; with `include_self` the
    element of x takes part.
    """
    if not x.shape:
        x, index = (b.reshape(operand, shape=(1,)) for operand in (x, index))
        if isinstance(source, Node):
            source = b.reshape(source, shape=(1,))
        result = scatter_reduce(b, x, 0, index, source, reduce, include_self=include_self)
        return b.reshape(result, shape=())
    if not isinstance(source, Node):
        source = b.constant(np.full(index.shape, as_float(source), np.float32))
    for place, size in enumerate(index.shape):
        if size != source.shape[place]:
            source = b.slice(source, dim=place, start=0, count=size)
    return scatter_elements(b, x, index, source, Scatter(dim, _reduction_name(reduce), include_self))


@aten("index_reduce")
def index_reduce(
    b: Builder, x: Node, dim: int, index: Node, source: Node, reduce: str, *, include_self: bool = True
) -> Node:
    """`scatter` of whole slices: their product, mean, largest or smallest, and that of the slice itself

    Returns x with the slices of `source` reduced at the places `index` of dimension `dim`; with `include_self` the
    slice of x takes part.
    """
    return scatter_slices(b, x, index, source, Scatter(dim, _reduction_name(reduce), include_self))


def _reduction_name(reduce: str | None) -> str:
    """Return the front-end name of torch's `reduce`. Raises NotSupportedError for any other."""
    if reduce not in _REDUCTIONS:
        raise NotSupportedError(f"reduce={reduce}")
    return _REDUCTIONS[reduce]
