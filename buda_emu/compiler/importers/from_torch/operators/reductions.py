"""Handlers of reductions, softmax and norms."""

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_torch.declared import aten, dims_of
from buda_emu.compiler.importers.from_torch.operators.elementwise import to_copy
from buda_emu.compiler.importers.from_torch.operators.moves import view
from buda_emu.compiler.importers.operators import NotSupportedError
from buda_emu.compiler.importers.special_values import find_unmasked_rows, zero_masked_rows


def _declare_reduction(name: str, op: str) -> None:
    """Declare a handler of the ATen operator `name` that emits the front-end reduction `op`."""

    def handler(b: Builder, x: Node, dims: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Node:
        return b.emit(op, to_copy(b, x, dtype=dtype), axes=dims_of(x, dims), keepdims=bool(keepdim))

    handler.__doc__ = f"`{op}`"
    # torch's decomposition of logsumexp takes the logarithm of 0 for a row of -inf, which is a number in the reference
    aten(name, intact=name == "logsumexp")(handler)


for _name, _op in (
    ("sum", "reduce_sum"),
    ("mean", "reduce_mean"),
    ("amax", "reduce_largest"),
    ("amin", "reduce_smallest"),
    ("prod", "reduce_product"),
    ("logsumexp", "reduce_log_sum_exp"),
):
    _declare_reduction(_name, _op)


@aten("max")
def largest(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Any:
    """`reduce_largest`, with `argmax` if the place is needed; of two values `maximum`

    `dim` is a dimension, None for all, or the second value; with a dimension the places are returned, too.
    """
    if isinstance(dim, Node):
        return b.maximum(x, dim)
    values = b.reduce_largest(x, axes=dims_of(x, dim), keepdims=bool(keepdim))
    if dim is None:
        return values
    return [values, b.argmax(x, dim=dim % len(x.shape), keepdims=bool(keepdim))]


@aten("min")
def smallest(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Any:
    """minus the `max` of -x; of two values `minimum`

    `dim` is a dimension, None for all, or the second value; with a dimension the places are returned, too.
    """
    if isinstance(dim, Node):
        return b.minimum(x, dim)
    negated = largest(b, b.negative(x), dim, keepdim)
    if isinstance(negated, list):
        return [b.negative(negated[0]), negated[1]]
    return b.negative(negated)


@aten("any")
def any_(b: Builder, x: Node, dims: Any = None, keepdim: bool = False) -> Node:
    """`reduce_largest` of 0 and 1"""
    return b.reduce_largest(b.boolean(x) if x.dtype != "bool" else x, axes=dims_of(x, dims), keepdims=bool(keepdim))


@aten("argmax")
def argmax(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Node:
    """`argmax`: the first place"""
    if dim is None:
        place = b.argmax(b.reshape(x, shape=(prod(x.shape),)), dim=0, keepdims=False)
        if keepdim:
            return b.reshape(place, shape=(1,) * len(x.shape))
        return place
    return b.argmax(x, dim=dim % len(x.shape), keepdims=bool(keepdim))


@aten("argmin")
def argmin(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Node:
    """`argmax` of -x"""
    return argmax(b, b.negative(x), dim, keepdim)


@aten("cumsum")
def cumsum(b: Builder, x: Node, dim: int, *, dtype: Any = None) -> Node:
    """`cumsum`: a triangular matrix"""
    return b.cumsum(to_copy(b, x, dtype=dtype), dim=dim % len(x.shape))


@aten("var")
def variance(
    b: Builder,
    x: Node,
    *,
    dim: Any = None,
    correction: float | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
) -> Node:
    """The mean square of x - mean, of a sample or of all

    The sum of squares is divided by the number of elements less `correction`. Raises NotSupportedError if nothing is
    left.
    """
    axes = dims_of(x, dim)
    count = prod(x.shape[axis] for axis in axes)
    if correction is None:
        if unbiased:
            correction = 1
        else:
            correction = 0
    if correction >= count:
        raise NotSupportedError(f"correction={correction} of {count} elements, which divides by nothing")
    centred = b.subtract(x, b.reduce_mean(x, axes=axes))
    total = b.reduce_sum(b.square(centred), axes=axes, keepdims=bool(keepdim))
    return b.multiply(total, 1 / (count - float(correction)))


@aten("var_mean")
def variance_and_mean(
    b: Builder,
    x: Node,
    *,
    dim: Any = None,
    correction: float | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
) -> list[Node]:
    """The variance, as in `var`, and `reduce_mean`

    Returns both over the dimensions `dim`, None for all; `correction` is taken off the number of elements that the sum
    of squares is divided by."""
    mean = b.reduce_mean(x, axes=dims_of(x, dim), keepdims=keepdim)
    return [variance(b, x, dim=dim, correction=correction, unbiased=unbiased, keepdim=keepdim), mean]


@aten("linalg_vector_norm")
def vector_norm(
    b: Builder, x: Node, order: float = 2, dims: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Node:
    """`reduce_l1`, `reduce_l2`, `reduce_lp`: of any order, also infinite or 0

    `order`: the exponent of the norm.
    """
    x = to_copy(b, x, dtype=dtype)
    op, options = {1.0: ("reduce_l1", {}), 2.0: ("reduce_l2", {})}.get(float(order), ("reduce_lp", {"p": float(order)}))
    return b.emit(op, x, axes=dims_of(x, dims), keepdims=bool(keepdim), **options)


@aten("_softmax", "softmax", intact=True)
def softmax(b: Builder, x: Node, dim: int, *, dtype: Any = None) -> Node:
    """`softmax`"""
    return b.softmax(to_copy(b, x, dtype=dtype), dim=dim % len(x.shape))


@aten("_safe_softmax")
def safe_softmax(b: Builder, x: Node, dim: int, *, dtype: Any = None) -> Node:
    """`softmax`, zeros for rows that are masked completely"""
    result = softmax(b, x, dim, dtype=dtype)
    return zero_masked_rows(b, result, find_unmasked_rows(b, x, dim % len(x.shape)))


@aten("_log_softmax", intact=True)
@aten("log_softmax")
def log_softmax(b: Builder, x: Node, dim: int, *, dtype: Any = None) -> Node:
    """`log_softmax`"""
    return b.log_softmax(to_copy(b, x, dtype=dtype), dim=dim % len(x.shape))


@aten("native_layer_norm", intact=True)
def layer_norm(b: Builder, x: Node, shape: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    """`layer_norm`; mean and reciprocal deviation for the backward pass

    Returns the result, mean and reciprocal deviation. `shape`: the last dimensions, over which is normalised.
    """
    weights = _weights_of_norm(b, weight, bias)
    moments = _mean_and_deviation(b, x, range(len(x.shape) - len(shape), len(x.shape)), float(epsilon))
    return [b.layer_norm(x, *weights, rank=len(shape), epsilon=float(epsilon)), *moments]


def _weights_of_norm(b: Builder, weight: Any, bias: Any) -> list[Node]:
    """Return the operands of a norm: gamma and beta as far as the last of them that is there; a bias alone stands
    behind a gamma of ones."""
    if bias is None:
        return [] if weight is None else [weight]
    if weight is None:
        weight = b.constant(np.ones(bias.shape, np.float32))
    return [weight, bias]


def _mean_and_deviation(b: Builder, x: Node, axes: Sequence[int], epsilon: float) -> list[Node]:
    """Return mean and reciprocal deviation over the axes, computed in the steps of the norm itself so that common steps
    are merged."""
    mean = b.reduce_mean(x, axes=tuple(axes))
    return [mean, b.rsqrt(b.add(b.reduce_mean(b.square(b.subtract(x, mean)), axes=tuple(axes)), epsilon))]


_DOUBLE_SPACING: Final = 2.0**-52
_SINGLE_SPACING: Final = 2.0**-23
"""Distance from 1 to the next number: torch's epsilon where a root mean square norm has none. Norms of 16-bit values
are computed in single precision."""


@aten("rms_norm", intact=True)
def rms_norm(b: Builder, x: Node, shape: Any, weight: Any = None, epsilon: Any = None) -> Node:
    """`layer_norm` by the root mean square

    `shape`: the last dimensions, over which the mean is taken; `epsilon` None: the spacing of numbers near 1 in the
    type of x."""
    if weight is not None:
        weights = [weight]
    else:
        weights = []
    if epsilon is None:
        small = _DOUBLE_SPACING if x.dtype == "float64" else _SINGLE_SPACING
    else:
        small = float(epsilon)
    return b.layer_norm(x, *weights, rank=len(shape), epsilon=small, centre=False)


@aten("native_group_norm", intact=True)
def group_norm(
    b: Builder, x: Node, weight: Any, bias: Any, n: int, c: int, _pixels: int, groups: int, epsilon: float
) -> Any:
    """`group_norm`; mean and reciprocal deviation for the backward pass

    Returns the result, and mean and reciprocal deviation [n, groups] of each group of channels."""
    weights = _weights_of_norm(b, weight, bias)
    parts = b.reshape(x, shape=(n, groups, c // groups, *x.shape[2:]))
    moments = _mean_and_deviation(b, parts, range(2, len(parts.shape)), float(epsilon))
    normal = b.group_norm(x, *weights, groups=groups, epsilon=float(epsilon))
    return [normal, *(b.reshape(moment, shape=(n, groups)) for moment in moments)]


@aten("_native_batch_norm_legit_no_training")
def batch_norm(
    b: Builder, x: Node, weight: Any, bias: Any, mean: Node, variance: Node, _momentum: float, epsilon: float
) -> Any:
    """`batch_norm` with given statistics

    Returns the result, and None for the two statistics that only training has."""
    single = np.ones(mean.shape, np.float32)
    zero = np.zeros(mean.shape, np.float32)
    if weight is None:
        gamma = single
    else:
        gamma = weight
    if bias is None:
        beta = zero
    else:
        beta = bias
    return [b.batch_norm(x, gamma, beta, mean, variance, epsilon=float(epsilon)), None, None]


@aten("_native_batch_norm_legit_functional")
def batch_norm_in_training(
    b: Builder,
    x: Node,
    weight: Any,
    bias: Any,
    mean: Node,
    variance: Node,
    training: bool,
    momentum: float,
    epsilon: float,
) -> Any:
    """`standardise` over the batch; its statistics move the running ones

    Returns the result, mean and reciprocal deviation of the batch, and the running mean and variance moved by
    `momentum`; outside of training the running ones are used and stay.
    """
    if not training:
        return [*batch_norm(b, x, weight, bias, mean, variance, momentum, epsilon), mean, variance]
    axes = (0, *range(2, len(x.shape)))
    count = prod(x.shape[axis] for axis in axes)
    normal, own_mean, deviation = instance_norm(b, x, weight, bias, eps=epsilon)
    centred = b.subtract(x, b.reduce_mean(x, axes=axes))
    spread = b.multiply(b.reduce_sum(b.square(centred), axes=axes, keepdims=False), 1 / max(1, count - 1))
    moved = [
        b.add(b.multiply(old, 1 - float(momentum)), b.multiply(new, float(momentum)))
        for old, new in ((mean, own_mean), (variance, spread))
    ]
    return [normal, own_mean, deviation, *moved]


@aten("_native_batch_norm_legit")
def instance_norm(b: Builder, x: Node, weight: Any, bias: Any, *, eps: float) -> Any:
    """`standardise` by the input itself: torch's decomposition of an instance norm

    Returns the result, and mean and reciprocal deviation of each channel.
    """
    normal = b.standardise(x, axes=(0, *range(2, len(x.shape))), epsilon=float(eps))
    channels = (1, -1, *(1,) * (len(x.shape) - 2))
    for factor_or_term, combine in ((weight, b.multiply), (bias, b.add)):
        if factor_or_term is not None:
            normal = combine(normal, view(b, factor_or_term, channels))
    moments = _mean_and_deviation(b, x, (0, *range(2, len(x.shape))), float(eps))
    return [normal, *(b.reshape(moment, shape=(x.shape[1],)) for moment in moments)]
