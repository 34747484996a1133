"""Handlers of ONNX reductions, norms and softmax."""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node, dim_of
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.importers.from_onnx.call import Call, onnx_op

_REDUCE = {
    "ReduceSum": "reduce_sum", "ReduceMean": "reduce_mean", "ReduceMax": "reduce_largest",
    "ReduceMin": "reduce_smallest",
    "ReduceProd": "reduce_product", "ReduceL1": "reduce_l1", "ReduceL2": "reduce_l2", "ReduceLogSum": "reduce_log_sum",
    "ReduceSumSquare": "reduce_sum_square", "ReduceLogSumExp": "reduce_log_sum_exp",
}  # fmt: skip


_FRACTIONAL = frozenset({"ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"})
"""Reductions whose result of integers is no integer in general: it is cut towards 0."""


@onnx_op(*_REDUCE, becomes=_REDUCE)
def reduce(call: Call) -> Node:
    """Axes are an attribute or a constant; none are all, or none.

    Emits the reduction that the table has for the operator; without axes it covers all dimensions, or with
    `noop_with_empty_axes` none.
    """
    axes_operand = call.constant(1, "axes")
    if axes_operand is not None:
        axes = axes_operand.tolist()
    else:
        axes = call.attr("axes")
    keep = bool(call.attr("keepdims", 1))
    keeps_all = bool(call.attr("noop_with_empty_axes", 0))
    if not axes:
        if keeps_all:
            return call.b.emit(_REDUCE[call.op], call[0], axes=(), keepdims=True)
        axes = None
    x = call[0]
    if np.dtype(x.dtype).kind in "iu" and call.op in _FRACTIONAL:
        return _mean_of_integers(call, x, axes, keepdims=keep)
    logical = x.dtype == "bool"
    result = call.b.emit(_REDUCE[call.op], x, axes=None if axes is None else tuple(axes), keepdims=keep)
    if logical and result.dtype != "bool":
        return call.b.retype(result, "bool")
    return result


def _mean_of_integers(call: Call, x: Node, axes: Sequence[int] | None, *, keepdims: bool) -> Node:
    """Return the mean of integers, towards 0: a sum and a whole quotient are exact. Raise NotSupportedError for roots
    and logarithms, whose computed value may lie on the other side of an integer."""
    if call.op != "ReduceMean":
        raise call.refuse("of integers: cast them to a float")
    rank = len(x.shape)
    reduced = range(rank) if axes is None else {dim_of(axis, rank) for axis in axes}
    count = prod(x.shape[dim] for dim in reduced)
    total = call.b.reduce_sum(x, axes=None if axes is None else tuple(axes), keepdims=keepdims)
    return call.b.retype(call.b.whole_quotient(total, call.b.constant(np.float32(count))), x.dtype)


@onnx_op("ArgMax", "ArgMin")
def argmax(call: Call) -> Node:
    """`argmax`: the first or last place"""
    if call.op == "ArgMin":
        x = call.b.negative(call[0])
    else:
        x = call[0]
    return call.b.argmax(
        x,
        dim=call.attr("axis", 0),
        keepdims=bool(call.attr("keepdims", 1)),
        last=bool(call.attr("select_last_index", 0)),
    )


@onnx_op("Softmax", "LogSoftmax", "Hardmax")
def softmax(call: Call) -> Node:
    """`softmax`, `log_softmax`, or 1 at the largest; before opset 13 over all dimensions from the axis on"""
    x = call[0]
    axis = call.attr("axis", -1 if call.opset >= 13 else 1)
    form = {"Softmax": call.b.softmax, "LogSoftmax": call.b.log_softmax}.get(call.op, partial(_emit_hardmax, call.b))
    axis = dim_of(axis, len(x.shape))
    if call.opset >= 13 or axis == len(x.shape) - 1:
        return form(x, dim=axis)
    flat = call.b.reshape(x, shape=(prod(x.shape[:axis]), prod(x.shape[axis:])))
    return call.b.reshape(form(flat, dim=1), shape=x.shape)


def _emit_hardmax(b: Builder, x: Node, *, dim: int) -> Node:
    """Emit and return 1 at the first maximum along a dimension and 0 elsewhere."""
    place = b.argmax(x, dim=dim, keepdims=True)
    shape = [1] * len(x.shape)
    shape[dim] = x.shape[dim]
    return b.equal(place, b.constant(np.arange(x.shape[dim], dtype=np.float32).reshape(shape)), dtype="float32")


@onnx_op("LayerNormalization", "RMSNormalization")
def layer_norm(call: Call) -> Node:
    """Mean and deviation are not available.

    Emits `layer_norm` over the dimensions from the axis on. Raises NotSupportedError if mean or deviation are results,
    too.
    """
    if len(call.shapes) > 1:
        raise call.refuse("mean and deviation as results")
    x = call[0]
    rank = len(x.shape) - dim_of(call.attr("axis", -1), len(x.shape))
    weights = [node for node in call.inputs[1:] if node is not None]
    return call.b.layer_norm(
        x, *weights, rank=rank, epsilon=float(call.attr("epsilon", 1e-5)), centre=call.op == "LayerNormalization"
    )


@onnx_op("BatchNormalization")
def batch_norm(call: Call) -> Node:
    """`batch_norm` with given statistics

    Raises NotSupportedError for an operator in training, which would compute statistics of its own."""
    if call.attr("training_mode", 0) or (len(call.shapes) > 1 and call.opset >= 14):
        raise call.refuse("in training")
    return call.b.batch_norm(*(call[place] for place in range(5)), epsilon=float(call.attr("epsilon", 1e-5)))


@onnx_op("InstanceNormalization")
def instance_norm(call: Call) -> Node:
    """`group_norm`: groups of one channel"""
    x = call.image(0)
    return call.b.group_norm(x, call[1], call[2], groups=x.shape[1], epsilon=float(call.attr("epsilon", 1e-5)))


@onnx_op("GroupNormalization")
def group_norm(call: Call) -> Node:
    """`group_norm`; before opset 21 there was a weight for each group

    Weights for groups are repeated for their channels."""
    groups = call.attr("num_groups")
    x = call[0]
    weights = [call[1], call[2]]
    if weights[0].shape[0] != x.shape[1]:
        weights = [call.b.repeat(node, dim=0, times=x.shape[1] // groups) for node in weights]
    return call.b.group_norm(x, *weights, groups=groups, epsilon=float(call.attr("epsilon", 1e-5)))


@onnx_op("LpNormalization")
def lp_norm(call: Call) -> Node:
    """p is 1 or 2

    Emits `lp_normalise`: x over its L1 or L2 norm along the axis."""
    return call.b.lp_normalise(call[0], dim=call.attr("axis", -1), p=call.attr("p", 2))


@onnx_op("LRN")
def lrn(call: Call) -> Node:
    """x / (bias + alpha / size * sum of squares of neighbouring channels)^beta"""
    b = call.b
    x = call.image(0)
    size = call.attr("size")
    channels = x.shape[1]
    place = np.arange(channels)
    low = place - (size - 1) // 2
    high = place + size // 2
    band = (place[None, :] >= low[:, None]) & (place[None, :] <= high[:, None])
    total = b.linear(b.square(x), dim=1, matrix=Sparse.dense(band.astype(np.float32)))
    scale = b.add(b.multiply(total, call.attr("alpha", 1e-4) / size), float(call.attr("bias", 1.0)))
    return b.divide(x, b.pow(scale, b.constant(np.float32(call.attr("beta", 0.75)))))


@onnx_op("CumSum")
def cumsum(call: Call) -> Node:
    """`cumsum`: a triangular matrix"""
    return call.b.cumsum(call[0], **_scan_options(call))


@onnx_op("CumProd")
def cumprod(call: Call) -> Node:
    """Along a constant axis.

    Emits `cumprod`.
    """
    return call.b.cumprod(call[0], **_scan_options(call))


def _scan_options(call: Call) -> dict[str, Any]:
    """Return dimension and options of a running sum or product."""
    axis = call.constant(1, "axis")
    assert axis is not None
    ends = {name: bool(call.attr(name, 0)) for name in ("exclusive", "reverse")}
    return {"dim": int(axis.reshape(-1)[0]), **ends}


@onnx_op("MeanVarianceNormalization")
def mean_variance_norm(call: Call) -> Node:
    """Over axes.

    Returns (x - mean) / (deviation + 1e-9) over the operator's axes.
    """
    axes = call.attr("axes", [0, 2, 3])
    b = call.b
    x = call[0]
    centred = b.subtract(x, b.reduce_mean(x, axes=tuple(axes)))
    deviation = b.sqrt(b.reduce_mean(b.square(centred), axes=tuple(axes)))
    return b.divide(centred, b.add(deviation, 1e-9))


@onnx_op("Unique", "NonZero", "Compress", place="refused")
def refuse_value_dependent(call: Call) -> Node:
    """Shapes or order that depend on values.

    Always raises NotSupportedError: the reader then tries the operator's definition or the host.
    """
    raise call.refuse("")


@onnx_op("TopK")
def top_k(call: Call) -> tuple[Node, Node]:
    """Values and indices, always sorted.

    Emits `ordered` and `order` for a constant count.
    """
    count = call.constant(1, "a count")
    if count is None:
        count = np.asarray(call.attr("k"))
    attrs = {"dim": call.attr("axis", -1), "count": int(count.ravel()[0]), "descending": bool(call.attr("largest", 1))}
    return call.b.ordered(call[0], **attrs), call.b.order(call[0], **attrs)
