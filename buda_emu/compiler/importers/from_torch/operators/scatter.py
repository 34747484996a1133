"""Handlers that write values to, or combine them with, elements at computed places of one dimension."""

from typing import Any, Final

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_torch.declared import as_float, aten
from buda_emu.compiler.importers.operators import NotSupportedError, Scatter, scatter_elements, scatter_slices

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
    return scatter_elements(b, x, index, source, Scatter(dim, _reduction(reduce), include_self))


@aten("index_reduce")
def index_reduce(
    b: Builder, x: Node, dim: int, index: Node, source: Node, reduce: str, *, include_self: bool = True
) -> Node:
    """`scatter` of whole slices: their product, mean, largest or smallest, and that of the slice itself

    Returns x with the slices of `source` reduced at the places `index` of dimension `dim`; with `include_self` the
    slice of x takes part.
    """
    return scatter_slices(b, x, index, source, Scatter(dim, _reduction(reduce), include_self))


def _reduction(reduce: str | None) -> str:
    """Return the front-end name of torch's `reduce`. Raises NotSupportedError for any other."""
    if reduce not in _REDUCTIONS:
        raise NotSupportedError(f"reduce={reduce}")
    return _REDUCTIONS[reduce]
