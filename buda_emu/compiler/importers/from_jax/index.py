"""Elements by indices: known to the compiler, inputs of the function, or computed."""

from math import prod
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_jax.declared import Call, hlo
from buda_emu.compiler.importers.operators import NotSupportedError, host_picks, table_rows


@hlo("stablehlo.gather")
def gather(call: Call) -> Node:
    """rows of one dimension: `take` by constants, `embedding` by an input, else `gather`; one element for each of the
    other dimensions: `gather_elements`"""
    b, (x, index) = call.b, call.operands
    numbers: dict[str, Any] = call.attrs["dimension_numbers"]
    dims, sizes = list(numbers.get("start_index_map", ())), list(call.attrs["slice_sizes"])
    if len(dims) != 1 or list(numbers.get("collapsed_slice_dims", ())) != dims:
        raise NotSupportedError("of other than whole rows of one dimension")
    dim, last = dims[0], numbers.get("index_vector_dim", len(index.shape))
    apart = (*index.shape[:last], *index.shape[last + 1 :])
    given = _as_given(b, index, x.shape[dim])
    is_from_end = given is not index
    index = b.reshape(given, shape=apart)
    if numbers.get("operand_batching_dims"):
        return _elements(call, x, index, dim, numbers)
    whole = [1 if place == dim else size for place, size in enumerate(x.shape)]
    if sizes != whole:
        raise NotSupportedError("of parts of rows")
    found = _rows(b, x, index, dim, is_from_end)  # [before dim.., index.., behind dim..]
    offsets = list(numbers.get("offset_dims", ()))
    places = [*range(dim), *range(dim + len(apart), len(found.shape))]
    indexed = iter(range(dim, dim + len(apart)))
    moved = dict(zip(offsets, places, strict=True))
    order = [moved[place] if place in moved else next(indexed) for place in range(len(found.shape))]
    return b.transpose(found, perm=tuple(order)) if order != sorted(order) else found


def _rows(b: Builder, x: Node, index: Node, dim: int, is_from_end: bool) -> Node:
    shape = (*x.shape[:dim], *index.shape, *x.shape[dim + 1 :])
    if index.op == "constant":
        inside = np.clip(index.value.astype(np.int64), 0, x.shape[dim] - 1)
        return b.reshape(b.take(x, dim=dim, index=inside.ravel()), shape=shape)
    if dim == 0 and x.op == "constant" and host_picks(b, index):
        table = b.constant(x.value.reshape(x.shape[0], -1).astype(np.float32))
        return b.reshape(table_rows(b, table, index, from_end=is_from_end), shape=shape)
    return b.gather(x, index, dim=dim)


def _elements(call: Call, x: Node, index: Node, dim: int, numbers: dict[str, Any]) -> Node:
    own, others = list(numbers["operand_batching_dims"]), list(numbers["start_indices_batching_dims"])
    rank = len(x.shape)
    if own != others or sorted([*own, dim]) != list(range(rank)) or len(index.shape) != rank:
        raise NotSupportedError("of batches in another order")
    if numbers.get("offset_dims"):
        raise NotSupportedError("of parts of rows")
    return call.b.gather_elements(x, index, dim=dim)


def _as_given(b: Builder, index: Node, size: int) -> Node:
    """Indices before jax counted negative ones from the end, as tables here do themselves: `where(i < 0, i + n, i)`,
    perhaps moved."""
    if index.op in ("reshape", "expand"):
        inner = b.graph[index.inputs[0]]
        found = _as_given(b, inner, size)
        return index if found is inner else b.emit(index.op, found, **index.attrs)
    if index.op != "where":
        return index
    chosen, added, plain = (b.graph[name] for name in index.inputs)
    below, more = ([b.graph[name] for name in node.inputs] for node in (chosen, added))
    fits = chosen.op == "less" and added.op == "add" and below[0] is plain and more[0] is plain
    if fits and _all(below[1], 0) and _all(more[1], size):
        return plain
    return index


def _all(node: Node, number: int) -> bool:
    return node.op == "constant" and bool((node.value == number).all())


@hlo("stablehlo.dynamic_slice")
def dynamic_slice(call: Call) -> Node:
    """`slice` from places that are constants"""
    x, *starts = call.operands
    for dim, first in enumerate(_known(call, starts, x)):
        if call.shape[dim] != x.shape[dim]:
            x = call.b.slice(x, dim=dim, start=first, count=call.shape[dim])
    return x


@hlo("stablehlo.dynamic_update_slice")
def dynamic_update_slice(call: Call) -> Node:
    """`pad` of the part, chosen by a constant mask; its place is a constant"""
    b, (x, part, *starts) = call.b, call.operands
    if prod(part.shape) == prod(x.shape):
        return part
    first = _known(call, starts, part, x)
    pads = tuple((at, size - at - own) for at, size, own in zip(first, x.shape, part.shape, strict=True))
    mask = np.zeros(x.shape, bool)
    mask[tuple(slice(at, at + own) for at, own in zip(first, part.shape, strict=True))] = True
    return b.where(b.constant(mask), b.pad(part, pads=pads), x)


def _known(call: Call, starts: list[Node], part: Node, x: Node | None = None) -> list[int]:
    """Where a part begins, moved inside as StableHLO has it."""
    if any(start.op != "constant" for start in starts):
        raise NotSupportedError("a place that is computed")
    whole, size = (part.shape, call.shape) if x is None else (x.shape, part.shape)
    return [int(np.clip(start.value, 0, all_ - own)) for start, all_, own in zip(starts, whole, size, strict=True)]
