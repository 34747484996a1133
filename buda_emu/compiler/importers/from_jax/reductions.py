"""Sums, largest elements, places of the largest, order."""

from typing import Any, Final

import numpy as np

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_jax.declared import Call, hlo
from buda_emu.compiler.importers.operators import NotSupportedError

_REDUCTIONS: Final = {
    "add": ("reduce_sum", "0"), "multiply": ("reduce_product", "1"), "maximum": ("reduce_largest", "the least"),
    "minimum": ("reduce_smallest", "the largest"), "and": ("reduce_smallest", "1"), "or": ("reduce_largest", "0"),
}  # fmt: skip


def begins_with(call: Call, word: str) -> None:
    """Raises NotSupportedError where a reduction begins with something that counts."""
    first = call.operands[len(call.operands) // 2]
    kind = np.dtype(first.dtype)
    least, largest = (
        (-np.inf, np.inf)
        if kind.kind == "f"
        else (0, 1)
        if kind.kind == "b"
        else (np.iinfo(kind).min, np.iinfo(kind).max)
    )
    wanted = {"0": 0, "1": 1, "the least": least, "the largest": largest}[word]
    if first.op != "constant" or first.value.item() != wanted:
        raise NotSupportedError(f"that does not begin with {word}")


@hlo("stablehlo.reduce")
def reduce(call: Call) -> Any:
    """`reduce_sum` and so on; of values with their indices `argmax`"""
    body, dims = call.regions[0], tuple(call.attrs["dimensions"])
    if len(call.operands) == 4:
        return _with_places(call, body, dims)
    if len(body) != 1 or body[0] not in _REDUCTIONS:
        raise NotSupportedError(f"of {', '.join(body)}")
    op, word = _REDUCTIONS[body[0]]
    begins_with(call, word)
    return call.b.emit(op, call.operands[0], axes=dims, keepdims=False) if dims else call.operands[0]


_PLACES: Final = ("compare NE", "or", "compare EQ", "compare LT", "and", "or", "select", "select")
"""What jax's argmax and argmin do after they compared two values: the first of equal ones counts, and NaN most."""


def _with_places(call: Call, body: tuple[str, ...], dims: tuple[int, ...]) -> list[Node]:
    b, x, place = call.b, call.operands[0], call.operands[1]
    largest = {"compare GT": True, "compare LT": False}.get(body[0])
    if largest is None or body[1:] != _PLACES or len(dims) != 1:
        raise NotSupportedError(f"of {', '.join(body)}")
    size = x.shape[dims[0]]
    counted = np.arange(size).reshape([size if dim == dims[0] else 1 for dim in range(len(x.shape))])
    if place.op != "constant" or not (place.value == counted).all():
        raise NotSupportedError("of values beside others than their places")
    op = "reduce_largest" if largest else "reduce_smallest"
    found = b.argmax(x if largest else b.negative(x), dim=dims[0], keepdims=False)
    return [b.emit(op, x, axes=dims, keepdims=False), found]


@hlo("chlo.top_k")
def top_k(call: Call) -> list[Node]:
    """`ordered` and `order`"""
    x, options = call.operands[0], {"dim": len(call.shape) - 1, "count": int(call.attrs["k"])}
    return [call.b.ordered(x, **options), call.b.order(x, **options)]
