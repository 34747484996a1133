"""Reductions, softmax and norms."""

from math import prod
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_torch.declared import NotSupportedError, aten, dims_of
from buda_emu.compiler.importers.from_torch.moves import view


def _reduction(name: str, op: str) -> None:
    def handler(b: Builder, x: Node, dims: Any = None, keepdim: bool = False, **_: Any) -> Node:
        return b.emit(op, x, axes=dims_of(x, dims), keepdims=bool(keepdim))

    handler.__doc__ = f"`{op}`"
    aten(name)(handler)


for _name, _op in (
    ("sum", "reduce_sum"), ("mean", "reduce_mean"), ("amax", "reduce_largest"), ("amin", "reduce_smallest"),
    ("prod", "reduce_product"), ("logsumexp", "reduce_log_sum_exp"),
):  # fmt: skip
    _reduction(_name, _op)


@aten("max")
def largest(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Any:
    """`reduce_largest`, with `argmax` where the place is wanted; of two values `maximum`"""
    if isinstance(dim, Node):
        return b.maximum(x, dim)
    values = b.reduce_largest(x, axes=dims_of(x, dim), keepdims=bool(keepdim))
    return values if dim is None else [values, b.argmax(x, dim=dim % len(x.shape), keepdims=bool(keepdim))]


@aten("min")
def smallest(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Any:
    """As `max` of -x"""
    if isinstance(dim, Node):
        return b.minimum(x, dim)
    found = largest(b, b.negative(x), dim, keepdim)
    return [b.negative(found[0]), found[1]] if isinstance(found, list) else b.negative(found)


@aten("argmax")
def argmax(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Node:
    """`argmax`: the first place"""
    if dim is None:
        return b.argmax(b.reshape(x, shape=(prod(x.shape),)), dim=0, keepdims=False)
    return b.argmax(x, dim=dim % len(x.shape), keepdims=bool(keepdim))


@aten("argmin")
def argmin(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Node:
    """`argmax` of -x"""
    return argmax(b, b.negative(x), dim, keepdim)


@aten("cumsum")
def cumsum(b: Builder, x: Node, dim: int, **_: Any) -> Node:
    """`cumsum`: a triangular matrix"""
    return b.cumsum(x, dim=dim % len(x.shape))


@aten("var")
def variance(b: Builder, x: Node, dims: Any = None, correction: float = 1, keepdim: bool = False, **_: Any) -> Node:
    """The mean square of x - mean, of a sample or of all"""
    axes = dims_of(x, dims)
    count = prod(x.shape[axis] for axis in axes)
    centred = b.subtract(x, b.reduce_mean(x, axes=axes))
    total = b.reduce_sum(b.square(centred), axes=axes, keepdims=bool(keepdim))
    return b.multiply(total, 1 / (count - float(correction)))


@aten("linalg_vector_norm")
def vector_norm(b: Builder, x: Node, order: float = 2, dims: Any = None, keepdim: bool = False, **_: Any) -> Node:
    """`reduce_l1`, `reduce_l2`, or the largest size"""
    op = {1.0: "reduce_l1", 2.0: "reduce_l2"}.get(float(order))
    if op is not None:
        return b.emit(op, x, axes=dims_of(x, dims), keepdims=bool(keepdim))
    if float(order) != float("inf"):
        raise NotSupportedError(f"of order {order}")
    return b.reduce_largest(b.abs(x), axes=dims_of(x, dims), keepdims=bool(keepdim))


@aten("_softmax", "softmax", whole=True)
@aten("_safe_softmax")
def softmax(b: Builder, x: Node, dim: int, *_: Any, **__: Any) -> Node:
    """`softmax`"""
    return b.softmax(x, dim=dim % len(x.shape))


@aten("_log_softmax", whole=True)
@aten("log_softmax")
def log_softmax(b: Builder, x: Node, dim: int, *_: Any, **__: Any) -> Node:
    """`log_softmax`"""
    return b.log_softmax(x, dim=dim % len(x.shape))


@aten("native_layer_norm", whole=True)
def layer_norm(b: Builder, x: Node, shape: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    """`layer_norm`; mean and deviation are not told"""
    weights = [item for item in (weight, bias) if item is not None]
    return [b.layer_norm(x, *weights, rank=len(shape), epsilon=float(epsilon)), None, None]


@aten("rms_norm", whole=True)
def rms_norm(b: Builder, x: Node, shape: Any, weight: Any = None, epsilon: Any = None) -> Node:
    """`layer_norm` by the root mean square"""
    weights = [weight] if weight is not None else []
    small = float(np.finfo(np.float32).eps) if epsilon is None else float(epsilon)
    return b.layer_norm(x, *weights, rank=len(shape), epsilon=small, centre=False)


@aten("native_group_norm", whole=True)
def group_norm(
    b: Builder, x: Node, weight: Any, bias: Any, n: int, c: int, hw: int, groups: int, epsilon: float
) -> Any:
    """`group_norm`"""
    del n, c, hw
    weights = [item for item in (weight, bias) if item is not None]
    return [b.group_norm(x, *weights, groups=groups, epsilon=float(epsilon)), None, None]


@aten("_native_batch_norm_legit_no_training")
def batch_norm(
    b: Builder, x: Node, weight: Any, bias: Any, mean: Node, variance: Node, momentum: float, epsilon: float
) -> Any:
    """`batch_norm` with given statistics"""
    del momentum
    one, zero = np.ones(mean.shape, np.float32), np.zeros(mean.shape, np.float32)
    gamma, beta = (one if weight is None else weight), (zero if bias is None else bias)
    return [b.batch_norm(x, gamma, beta, mean, variance, epsilon=float(epsilon)), None, None]


@aten("_native_batch_norm_legit")
def instance_norm(b: Builder, x: Node, weight: Any, bias: Any, training: bool, momentum: float, epsilon: float) -> Any:
    """`standardise` by the input itself: torch's decomposition of an instance norm"""
    del training, momentum
    normal = b.standardise(x, axes=(0, *range(2, len(x.shape))), epsilon=float(epsilon))
    channels = (1, -1, *(1,) * (len(x.shape) - 2))
    for item, form in ((weight, b.multiply), (bias, b.add)):
        normal = normal if item is None else form(normal, view(b, item, channels))
    return [normal, None, None]
