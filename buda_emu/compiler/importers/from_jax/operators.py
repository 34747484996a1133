"""Handlers of StableHLO operators: element-wise, indexing, moves, products, reductions, windows."""

from collections.abc import Mapping
from math import prod
from typing import Any, Final

import numpy as np

from buda_emu.compiler.graph.builder import Builder, check_constant_size
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_jax.declared import Call, declare_plain, hlo
from buda_emu.compiler.importers.index_inputs import is_picked_by_host
from buda_emu.compiler.importers.operators import NotSupportedError, table_rows

declare_plain(
    {
        "stablehlo.abs": "abs", "stablehlo.add": "add", "stablehlo.ceil": "ceil", "stablehlo.cosine": "cosine",
        "stablehlo.exponential": "exp", "stablehlo.floor": "floor", "stablehlo.log": "log",
        "stablehlo.logistic": "sigmoid", "stablehlo.maximum": "maximum", "stablehlo.minimum": "minimum",
        "stablehlo.multiply": "multiply", "stablehlo.negate": "negative", "stablehlo.power": "pow",
        "stablehlo.round_nearest_even": "round", "stablehlo.rsqrt": "rsqrt", "stablehlo.sign": "sign",
        "stablehlo.sine": "sine", "stablehlo.sqrt": "sqrt", "stablehlo.subtract": "subtract", "stablehlo.tan": "tan",
        "stablehlo.tanh": "tanh", "chlo.acos": "acos", "chlo.acosh": "acosh", "chlo.asin": "asin",
        "chlo.asinh": "asinh", "chlo.atan": "atan", "chlo.atanh": "atanh", "chlo.cosh": "cosh", "chlo.erf": "erf",
        "chlo.sinh": "sinh", "chlo.square": "square", "chlo.tan": "tan",
    }
)  # fmt: skip
_COMPARISONS: Final = {
    "EQ": "equal", "NE": "not_equal", "GE": "greater_equal", "GT": "greater", "LE": "less_equal", "LT": "less",
}  # fmt: skip


@hlo("chlo.erfc")
def erfc(call: Call) -> Node:
    """1 - `erf`"""
    return call.b.subtract(1.0, call.b.erf(*call.operands))


@hlo("stablehlo.log_plus_one")
def log_plus_one(call: Call) -> Node:
    """log(1 + x)"""
    return call.b.log(call.b.add(call.operands[0], 1.0))


@hlo("stablehlo.exponential_minus_one")
def exponential_minus_one(call: Call) -> Node:
    """exp(x) - 1"""
    return call.b.subtract(call.b.exp(*call.operands), 1.0)


@hlo("stablehlo.divide")
def divide(call: Call) -> Node:
    """`divide`; of integers `whole_quotient`, towards 0"""
    return call.b.emit("divide" if _is_float_result(call) else "whole_quotient", *call.operands)


@hlo("stablehlo.remainder")
def remainder(call: Call) -> Node:
    """`modulo` with the sign of x"""
    return call.b.modulo(*call.operands, truncated=True)


def _is_float_result(call: Call) -> bool:
    """Return whether the first result of an operator has elements of a floating-point type."""
    return np.dtype(call.dtypes[0]).kind == "f"


@hlo("stablehlo.compare")
def compare(call: Call) -> Node:
    """`equal`, `not_equal`, `greater_equal`, `greater`, `less_equal` or `less`"""
    if call.attrs.get("compare_type") == "TOTALORDER":
        raise NotSupportedError("compare_type=TOTALORDER: NaN and -0 are not kept apart on the device")
    return call.b.emit(_COMPARISONS[call.attrs["comparison_direction"]], *call.operands)


@hlo("stablehlo.and", "stablehlo.or", "stablehlo.xor", "stablehlo.not")
def logical(call: Call) -> Node:
    """`logical_and` and so on, of bool only"""
    if call.dtypes[0] != "bool":
        raise NotSupportedError(f"bits of {call.dtypes[0]}")
    return call.b.emit(f"logical_{call.operator}", *call.operands)


@hlo("stablehlo.select")
def select(call: Call) -> Node:
    """`where`; a side that is NaN everywhere is the result of an index outside of its table, and never taken"""
    chosen, x, y = call.operands
    for side, other in ((x, y), (y, x)):
        if side.op == "constant" and side.value.dtype.kind == "f" and np.isnan(side.value).all():
            return other
    if chosen.op != "constant" and chosen.shape != x.shape:
        chosen = call.b.expand(chosen, shape=x.shape)
    return call.b.where(chosen, x, y)


@hlo("stablehlo.clamp")
def clamp(call: Call) -> Node:
    """`minimum` of `maximum`"""
    low, x, high = call.operands
    return call.b.minimum(call.b.maximum(x, low), high)


@hlo("stablehlo.convert")
def convert(call: Call) -> Node:
    """the same value under another type; `truncate` from floats to integers, x != 0 to bool"""
    x = call.operands[0]
    (dtype,) = call.dtypes
    before = np.dtype(x.dtype).kind
    after = np.dtype(dtype).kind
    if after == "b" and before != "b":
        return call.b.boolean(x)
    if before == "f" and after in "iu":
        return call.b.truncate(x)
    return x


@hlo("stablehlo.optimization_barrier")
def barrier(call: Call) -> list[Node]:
    """its operands"""
    return list(call.operands)


@hlo("stablehlo.gather")
def gather(call: Call) -> Node:
    """rows of one dimension: `take` by constants, `embedding` by an input, else `gather`; one element for each of the
    other dimensions: `gather_elements`"""
    b = call.b
    (x, index) = call.operands
    numbers: dict[str, Any] = call.attrs["dimension_numbers"]
    dims = list(numbers.get("start_index_map", ()))
    sizes = list(call.attrs["slice_sizes"])
    if len(dims) != 1 or list(numbers.get("collapsed_slice_dims", ())) != dims:
        raise NotSupportedError("of other than whole rows of one dimension")
    dim = dims[0]
    last = numbers.get("index_vector_dim", len(index.shape))
    index_shape = (*index.shape[:last], *index.shape[last + 1 :])
    plain_index = _strip_negative_wrap(b, index, x.shape[dim])
    is_from_end = plain_index is not index
    index = b.reshape(plain_index, shape=index_shape)
    if numbers.get("operand_batching_dims"):
        return _gather_elements(call, x, _clamp_indices(b, index, x.shape[dim], is_from_end), dim, numbers)
    row_sizes = [1 if place == dim else size for place, size in enumerate(x.shape)]
    if sizes != row_sizes:
        raise NotSupportedError("of parts of rows")
    rows = _gather_rows(b, x, index, dim, is_from_end)  # [before dim.., index.., behind dim..]
    offsets = list(numbers.get("offset_dims", ()))
    places = [*range(dim), *range(dim + len(index_shape), len(rows.shape))]
    indexed = iter(range(dim, dim + len(index_shape)))
    moved = dict(zip(offsets, places, strict=True))
    order = [moved[place] if place in moved else next(indexed) for place in range(len(rows.shape))]
    if order != sorted(order):
        return b.transpose(rows, perm=tuple(order))
    return rows


def _gather_rows(b: Builder, x: Node, index: Node, dim: int, is_from_end: bool) -> Node:
    """Gather whole rows of dimension `dim` of x: [sizes before dim, index shape, sizes behind dim]. With `is_from_end`,
    negative indices count from the end."""
    shape = (*x.shape[:dim], *index.shape, *x.shape[dim + 1 :])
    if index.op == "constant":
        inside = np.clip(index.value.astype(np.int64), 0, x.shape[dim] - 1)
        return b.reshape(b.take(x, dim=dim, index=inside.ravel()), shape=shape)
    if dim == 0 and x.op == "constant" and is_picked_by_host(b, index):
        table = b.constant(x.value.reshape(x.shape[0], -1).astype(np.float32))
        return b.reshape(table_rows(b, table, index, from_end=is_from_end), shape=shape)
    return b.gather(x, _clamp_indices(b, index, x.shape[dim], is_from_end), dim=dim)


def _clamp_indices(b: Builder, index: Node, size: int, is_from_end: bool) -> Node:
    """Return indices of a dimension of `size` elements with those outside moved to its ends, as StableHLO does."""
    least = -size if is_from_end else 0
    if index.op == "constant":
        return b.constant(np.clip(index.value, least, size - 1))
    low = b.constant(np.full(index.shape, least, index.dtype))
    high = b.constant(np.full(index.shape, size - 1, index.dtype))
    return b.minimum(b.maximum(index, low), high)


def _gather_elements(call: Call, x: Node, index: Node, dim: int, numbers: dict[str, Any]) -> Node:
    """Gather single elements of x along one dimension, with all other dimensions as batches. Raises NotSupportedError
    for batches in another order and for parts of rows."""
    operand_batches = list(numbers["operand_batching_dims"])
    index_batches = list(numbers["start_indices_batching_dims"])
    rank = len(x.shape)
    if (
        operand_batches != index_batches
        or sorted([*operand_batches, dim]) != list(range(rank))
        or len(index.shape) != rank
    ):
        raise NotSupportedError("of batches in another order")
    if numbers.get("offset_dims"):
        raise NotSupportedError("of parts of rows")
    return call.b.gather_elements(x, index, dim=dim)


def _strip_negative_wrap(b: Builder, index: Node, size: int) -> Node:
    """Return the indices of a dimension of `size` elements without jax's own handling of negative ones, `where(i < 0, i
    + n, i)`, possibly moved: the ops that read them count negative indices from the end themselves."""
    if index.op in ("reshape", "expand"):
        inner = b.graph[index.inputs[0]]
        unwrapped = _strip_negative_wrap(b, inner, size)
        if unwrapped is inner:
            return index
        return b.emit(index.op, unwrapped, **index.attrs)
    if index.op != "where":
        return index
    is_negative, wrapped, plain = (b.graph[name] for name in index.inputs)
    if _applies_constant(b, is_negative, "less", plain, 0) and _applies_constant(b, wrapped, "add", plain, size):
        return plain
    return index


def _applies_constant(b: Builder, node: Node, op: str, operand: Node, number: int) -> bool:
    """Return whether a node is the op on the operand and a constant that is `number` everywhere."""
    if node.op != op:
        return False
    left, right = (b.graph[name] for name in node.inputs)
    return left is operand and _is_constant_of(right, number)


def _is_constant_of(node: Node, number: int) -> bool:
    """Return whether a node is a constant all elements of which are `number`."""
    return node.op == "constant" and bool((node.value == number).all())


@hlo("stablehlo.dynamic_slice")
def dynamic_slice(call: Call) -> Node:
    """`slice` from places that are constants

    Raises NotSupportedError for a place that is computed.
    """
    x, *starts = call.operands
    for dim, first in enumerate(_constant_starts(call, starts, x)):
        if call.shape[dim] != x.shape[dim]:
            x = call.b.slice(x, dim=dim, start=first, count=call.shape[dim])
    return x


@hlo("stablehlo.dynamic_update_slice")
def dynamic_update_slice(call: Call) -> Node:
    """`pad` of the part, chosen by a constant mask; its place is a constant"""
    b = call.b
    (x, part, *starts) = call.operands
    if prod(part.shape) == prod(x.shape):
        return part
    first = _constant_starts(call, starts, part, x)
    pads = tuple((start, size - start - length) for start, size, length in zip(first, x.shape, part.shape, strict=True))
    mask = np.zeros(x.shape, bool)
    mask[tuple(slice(start, start + length) for start, length in zip(first, part.shape, strict=True))] = True
    return b.where(b.constant(mask), b.pad(part, pads=pads), x)


def _constant_starts(call: Call, starts: list[Node], part: Node, x: Node | None = None) -> list[int]:
    """Return where a slice begins along each dimension, clamped to lie inside as StableHLO does: a slice of `part` that
    has the shape of the result or, with x, the part that is written into x. Raises NotSupportedError for a computed
    begin."""
    if any(start.op != "constant" for start in starts):
        raise NotSupportedError("a place that is computed")
    if x is None:
        sizes = part.shape
        size = call.shape
    else:
        sizes = x.shape
        size = part.shape
    return [
        int(np.clip(start.value, 0, total - length)) for start, total, length in zip(starts, sizes, size, strict=True)
    ]


@hlo("stablehlo.dot_general")
def dot_general(call: Call) -> Node:
    """`matmul` of [batch.., kept, summed] and [batch.., summed, kept]"""
    b = call.b
    (x, y) = call.operands
    numbers = call.attrs["dot_dimension_numbers"]
    batch = [list(numbers.get(f"{side}_batching_dimensions", ())) for side in ("lhs", "rhs")]
    summed = [list(numbers.get(f"{side}_contracting_dimensions", ())) for side in ("lhs", "rhs")]
    free = [
        [dim for dim in range(len(node.shape)) if dim not in (*batch[side], *summed[side])]
        for side, node in enumerate((x, y))
    ]
    leading = tuple(x.shape[dim] for dim in batch[0])
    count = prod(x.shape[dim] for dim in summed[0])
    rows, columns = (prod(node.shape[dim] for dim in free[side]) for side, node in enumerate((x, y)))
    left = b.reshape(b.transpose(x, perm=(*batch[0], *free[0], *summed[0])), shape=(*leading, rows, count))
    right = b.reshape(b.transpose(y, perm=(*batch[1], *summed[1], *free[1])), shape=(*leading, count, columns))
    return b.reshape(b.matmul(left, right), shape=call.shape)


@hlo("stablehlo.convolution")
def convolution(call: Call) -> Node:
    """`convolution` between transpositions; an input that is dilated gets zeros between its elements"""
    b = call.b
    (x, w) = call.operands
    numbers: dict[str, Any] = call.attrs["dimension_numbers"]
    if call.attrs.get("batch_group_count", 1) != 1:
        raise NotSupportedError("groups of the batch")
    rank = len(w.shape) - 2
    space = [2 + place for place in range(rank)]
    x_order = (numbers["input_batch_dimension"], numbers["input_feature_dimension"])
    x = b.transpose(x, perm=(*x_order, *numbers["input_spatial_dimensions"]))
    w_order = (numbers["kernel_output_feature_dimension"], numbers["kernel_input_feature_dimension"])
    w = b.transpose(w, perm=(*w_order, *numbers["kernel_spatial_dimensions"]))
    for dim, step in zip(space, call.list_attribute("lhs_dilation", 1, rank), strict=True):
        x = insert_zeros(call, x, dim, step)
    for dim, backward in zip(space, call.list_attribute("window_reversal", 0, rank), strict=True):
        if backward:
            w = b.take(w, dim=dim, index=np.arange(w.shape[dim])[::-1])
    pads = tuple(map(tuple, call.attrs.get("padding") or ((0, 0),) * rank))
    if any(pad < 0 for around in pads for pad in around):
        x = b.pad(x, pads=((0, 0), (0, 0), *((min(low, 0), min(high, 0)) for low, high in pads)))
        pads = tuple((max(low, 0), max(high, 0)) for low, high in pads)
    y = b.convolution(
        x,
        w,
        strides=call.list_attribute("window_strides", 1, rank),
        pads=pads,
        dilations=call.list_attribute("rhs_dilation", 1, rank),
        groups=call.attrs.get("feature_group_count", 1),
    )
    order = [numbers["output_batch_dimension"], numbers["output_feature_dimension"]]
    order += numbers["output_spatial_dimensions"]
    return b.transpose(y, perm=tuple(order.index(dim) for dim in range(rank + 2)))


def insert_zeros(call: Call, x: Node, dim: int, step: int) -> Node:
    """Insert zeros between the elements of a dimension, so that these are `step` apart."""
    if step == 1:
        return x
    index = np.full((x.shape[dim] - 1) * step + 1, -1)
    index[::step] = np.arange(x.shape[dim])
    return call.b.take(x, dim=dim, index=index)


@hlo("stablehlo.reshape")
def reshape(call: Call) -> Node:
    """`reshape`"""
    return call.b.reshape(call.operands[0], shape=call.shape)


@hlo("stablehlo.transpose")
def transpose(call: Call) -> Node:
    """`transpose`"""
    return call.b.transpose(call.operands[0], perm=tuple(call.attrs["permutation"]))


@hlo("stablehlo.broadcast_in_dim")
def broadcast_in_dim(call: Call) -> Node:
    """`transpose`, `reshape` and `expand`; a number stays one value where an op broadcasts it"""
    b = call.b
    x = call.operands[0]
    dims = list(call.attrs["broadcast_dimensions"])
    order = sorted(range(len(dims)), key=dims.__getitem__)
    if order != list(range(len(dims))):
        x = b.transpose(x, perm=tuple(order))
    shape = [1] * len(call.shape)
    for dim, size in zip(sorted(dims), x.shape, strict=True):
        shape[dim] = size
    x = b.reshape(x, shape=tuple(shape))
    if tuple(shape) == call.shape:
        return x
    return b.expand(x, shape=call.shape)


@hlo("stablehlo.iota")
def iota(call: Call) -> Node:
    """a constant"""
    check_constant_size("iota", call.shape)
    dim = call.attrs["iota_dimension"]
    along = [call.shape[dim] if place == dim else 1 for place in range(len(call.shape))]
    value = np.broadcast_to(np.arange(call.shape[dim]).reshape(along), call.shape)
    return call.b.constant(value.astype(call.dtypes[0]))


@hlo("stablehlo.concatenate")
def concatenate(call: Call) -> Node:
    """`concat`"""
    return call.b.concat(*call.operands, dim=call.attrs["dimension"])


@hlo("stablehlo.slice")
def slice_(call: Call) -> Node:
    """`slice` of each dimension that gets shorter"""
    x = call.operands[0]
    for dim, (start, step) in enumerate(zip(call.attrs["start_indices"], call.attrs["strides"], strict=True)):
        if call.shape[dim] != x.shape[dim]:
            x = call.b.slice(x, dim=dim, start=start, count=call.shape[dim], step=step)
    return x


@hlo("stablehlo.reverse")
def reverse(call: Call) -> Node:
    """`take` from the last to the first"""
    x = call.operands[0]
    for dim in call.attrs["dimensions"]:
        x = call.b.take(x, dim=dim, index=np.arange(x.shape[dim])[::-1])
    return x


@hlo("stablehlo.pad")
def pad(call: Call) -> Node:
    """`pad` by a constant; zeros between elements too"""
    x, value = call.operands
    if value.op != "constant":
        raise NotSupportedError("a value that is computed")
    number = float(value.value)
    between = call.list_attribute("interior_padding", 0, len(x.shape))
    if any(between) and number:
        raise NotSupportedError("something else than zeros between elements")
    for dim, count in enumerate(between):
        x = insert_zeros(call, x, dim, count + 1)
    pads = tuple(zip(call.attrs["edge_padding_low"], call.attrs["edge_padding_high"], strict=True))
    return call.b.pad(x, pads=pads, value=number)


_REDUCTIONS: Final = {
    "add": ("reduce_sum", "0"), "multiply": ("reduce_product", "1"), "maximum": ("reduce_largest", "the least"),
    "minimum": ("reduce_smallest", "the largest"), "and": ("reduce_smallest", "1"), "or": ("reduce_largest", "0"),
}  # fmt: skip


def check_initial_value(call: Call, word: str) -> None:
    """Raise NotSupportedError if a reduction begins with anything but its neutral element, which `word` names: "0",
    "1", "the least" or "the largest"."""
    first = call.operands[len(call.operands) // 2]
    kind = np.dtype(first.dtype)
    if kind.kind == "f":
        least = -np.inf
        largest = np.inf
    elif kind.kind == "b":
        least = 0
        largest = 1
    else:
        least = np.iinfo(kind).min
        largest = np.iinfo(kind).max
    neutral = {"0": 0, "1": 1, "the least": least, "the largest": largest}[word]
    if first.op != "constant" or first.value.item() != neutral:
        raise NotSupportedError(f"that does not begin with {word}")


@hlo("stablehlo.reduce")
def reduce(call: Call) -> Any:
    """`reduce_sum` and so on, by the operator in the reduction's body; of values with positions `argmax` and `argmin`

    Of values with positions the results are the extreme values and their positions. Raises NotSupportedError
    for another body and, without positions, for a start other than the neutral element.
    """
    body = call.regions[0]
    dims = tuple(call.attrs["dimensions"])
    if len(call.operands) == 4:
        return _reduce_with_positions(call, body, dims)
    if len(body) != 1 or body[0] not in _REDUCTIONS:
        raise NotSupportedError(f"of {', '.join(body)}")
    op, word = _REDUCTIONS[body[0]]
    check_initial_value(call, word)
    if dims:
        return call.b.emit(op, call.operands[0], axes=dims, keepdims=False)
    return call.operands[0]


_PLACES: Final = ("compare NE", "or", "compare EQ", "compare LT", "and", "or", "select", "select")
"""The operators of jax's argmax and argmin behind the first comparison: the first of equal values counts, and NaN
wins."""


def _reduce_with_positions(call: Call, body: tuple[str, ...], dims: tuple[int, ...]) -> list[Node]:
    """Handle a reduction of values with their positions, jax's argmax and argmin, and return the largest (smallest)
    values and their positions. Raises NotSupportedError for any other body or positions."""
    b = call.b
    x = call.operands[0]
    place = call.operands[1]
    largest = {"compare GT": True, "compare LT": False}.get(body[0])
    if largest is None or body[1:] != _PLACES or len(dims) != 1:
        raise NotSupportedError(f"of {', '.join(body)}")
    size = x.shape[dims[0]]
    expected_places = np.arange(size).reshape([size if dim == dims[0] else 1 for dim in range(len(x.shape))])
    if place.op != "constant" or not (place.value == expected_places).all():
        raise NotSupportedError("of values beside others than their places")
    if largest:
        op = "reduce_largest"
    else:
        op = "reduce_smallest"
    position = b.argmax(x if largest else b.negative(x), dim=dims[0], keepdims=False)
    return [b.emit(op, x, axes=dims, keepdims=False), position]


@hlo("chlo.top_k")
def top_k(call: Call) -> list[Node]:
    """`ordered` and `order`"""
    x = call.operands[0]
    options = {"dim": len(call.shape) - 1, "count": int(call.attrs["k"])}
    return [call.b.ordered(x, **options), call.b.order(x, **options)]


def _is_pooled(options: Mapping[str, Any], dim: int) -> bool:
    """Return whether windows with these options change a dimension: they are wider than 1, skip elements, or pad."""
    return options["kernel"][dim] > 1 or options["strides"][dim] > 1 or any(options["pads"][dim])


@hlo("stablehlo.reduce_window")
def reduce_window(call: Call) -> Node:
    """`max_pool`, or `avg_pool` for its sums, over the dimensions along which windows are wider than 1"""
    b = call.b
    x = call.operands[0]
    rank = len(x.shape)
    body = call.regions[0]
    if len(call.operands) != 2 or body not in (("add",), ("maximum",)):
        raise NotSupportedError(f"of {', '.join(body)}")
    if max(call.list_attribute("base_dilations", 1, rank)) > 1:
        raise NotSupportedError("of elements that are spread")
    check_initial_value(call, {"add": "0", "maximum": "the least"}[body[0]])
    options = _window_options(call, rank)
    pooled = [dim for dim in range(rank) if _is_pooled(options, dim)]
    if not pooled:
        return x
    others = [dim for dim in range(rank) if dim not in pooled]
    order = (*others, *pooled)
    count = prod(x.shape[dim] for dim in others)
    images = b.reshape(b.transpose(x, perm=order), shape=(1, count, *(x.shape[dim] for dim in pooled)))
    options = {name: tuple(values[dim] for dim in pooled) for name, values in options.items()}
    if body == ("maximum",):
        y = b.max_pool(images, **options)
    else:
        y = b.avg_pool(images, **options, total=True)
    y = b.reshape(y, shape=tuple(call.shape[dim] for dim in order))
    return b.transpose(y, perm=tuple(order.index(dim) for dim in range(rank)))


def _window_options(call: Call, rank: int) -> dict[str, Any]:
    """Return kernel, strides, pads and dilations of a window, each with a value for every dimension."""
    return {
        "kernel": call.list_attribute("window_dimensions", 1, rank),
        "strides": call.list_attribute("window_strides", 1, rank),
        "pads": tuple(tuple(pads) for pads in call.attrs.get("padding") or ((0, 0),) * rank),
        "dilations": call.list_attribute("window_dilations", 1, rank),
    }
