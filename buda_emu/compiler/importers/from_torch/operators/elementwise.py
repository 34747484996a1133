"""Handlers of arithmetic, activations, comparisons, casts and masks, element by element."""

from math import prod
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers import special_values
from buda_emu.compiler.importers.from_torch.declared import as_float, aten, declare_plain
from buda_emu.compiler.importers.operators import NotSupportedError

declare_plain(
    {
        "exp": "exp", "log": "log", "sqrt": "sqrt", "reciprocal": "reciprocal", "sigmoid": "sigmoid", "tanh": "tanh",
        "sin": "sine", "cos": "cosine", "abs": "abs", "neg": "negative", "rsqrt": "rsqrt", "floor": "floor",
        "ceil": "ceil", "trunc": "truncate", "sign": "sign", "erf": "erf", "relu": "relu",
        "silu": "silu", "mish": "mish", "hardswish": "hard_swish", "hardsigmoid": "hard_sigmoid",
        "maximum": "maximum", "minimum": "minimum", "gt": "greater", "ge": "greater_equal", "lt": "less",
        "le": "less_equal", "eq": "equal", "ne": "not_equal", "mul": "multiply", "tan": "tan", "asin": "asin",
        "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh",
        "atanh": "atanh", "atan2": "atan2", "log2": "log2", "log10": "log10", "exp2": "exp2",
    },
    intact=("silu", "mish", "hardswish", "hardsigmoid"),
)  # fmt: skip


@aten("clone", "detach", "alias", "contiguous", "lift_fresh_copy")
def return_operand(_: Builder, x: Node) -> Node:
    """The operand itself."""
    return x


def _declare_logical(name: str) -> None:
    """Declare the handlers of `logical_NAME`, for any operands, and `bitwise_NAME`, for bool ones and integers of which
    the operator reads or changes the last bit alone."""

    def handler(b: Builder, *inputs: Any) -> Node:
        return b.emit(f"logical_{name}", *(_as_bool(b, b.node(operand)) for operand in inputs))

    def bitwise(b: Builder, *inputs: Any) -> Node:
        operands = [b.node(operand) for operand in inputs]
        flags = [operand for operand in operands if operand.dtype == "bool"]
        numbers = [operand for operand in operands if operand.dtype != "bool"]
        if len(flags) == len(numbers) == 1:
            return _change_last_bit(b, name, flags[0], numbers[0])
        if numbers:
            raise NotSupportedError(f"bits of {', '.join(operand.dtype for operand in operands)}")
        return b.emit(f"logical_{name}", *operands)

    handler.__doc__ = f"`logical_{name}` of x != 0"
    bitwise.__doc__ = f"`logical_{name}` of bool; of bool and an integer by its last bit, `modulo` 2"
    if name == "not":
        bitwise.__doc__ = "`logical_not`, of bool only"
    aten(f"logical_{name}")(handler)
    aten(f"bitwise_{name}")(bitwise)


for _name in ("not", "and", "or", "xor"):
    _declare_logical(_name)


def _change_last_bit(b: Builder, name: str, flag: Node, number: Node) -> Node:
    """Return the `and`, `or` or `xor` of a truth value, whose other bits are 0, and an integer."""
    odd = b.modulo(number, 2.0, dtype="float32")
    if name == "and":
        return b.multiply(flag, odd, dtype=number.dtype)
    if name == "or":
        step = b.subtract(1.0, odd)
    else:
        step = b.subtract(1.0, b.multiply(odd, 2.0))
    return b.add(number, b.multiply(flag, step, dtype="float32"), dtype=number.dtype)


def _as_bool(b: Builder, x: Node) -> Node:
    """Return x itself if it is bool, or else x != 0."""
    if x.dtype == "bool":
        return x
    return b.boolean(x)


@aten("div")
def divide(b: Builder, x: Any, y: Any, *, rounding_mode: str | None = None) -> Node:
    """`divide`, or `whole_quotient` towards 0 or at or below x / y"""
    if rounding_mode is None:
        return b.divide(as_float(x), as_float(y))
    return b.whole_quotient(as_float(x), as_float(y), below=rounding_mode == "floor")


@aten("add")
def add(b: Builder, x: Any, y: Any, *, alpha: float = 1) -> Node:
    """x + alpha y"""
    return b.add(as_float(x), as_float(y) if alpha == 1 else b.multiply(as_float(y), float(alpha)))


@aten("sub")
def sub(b: Builder, x: Any, y: Any, *, alpha: float = 1) -> Node:
    """x - alpha y"""
    return b.subtract(as_float(x), as_float(y) if alpha == 1 else b.multiply(as_float(y), float(alpha)))


@aten("rsub")
def rsub(b: Builder, x: Any, y: Any, *, alpha: float = 1) -> Node:
    """y - alpha x"""
    return b.subtract(as_float(y), x if alpha == 1 else b.multiply(x, float(alpha)))


@aten("pow")
def pow_(b: Builder, x: Any, y: Any) -> Node:
    """`pow`: an integer as products, else exp(y log x)"""
    return b.pow(as_float(x), b.constant(np.float32(y)) if not isinstance(y, Node) else y)


@aten("clamp", "clamp_min")
def clamp(b: Builder, x: Node, low: Any = None, high: Any = None) -> Node:
    """`clip` between numbers, `maximum` and `minimum` of values

    `low` and `high` may be numbers, values or None.
    """
    if isinstance(low, Node) or isinstance(high, Node):
        if low is not None:
            x = b.maximum(x, low)
        if high is None:
            return x
        return b.minimum(x, high)
    return b.clip(x, low=None if low is None else float(low), high=None if high is None else float(high))


@aten("clamp_max")
def clamp_max(b: Builder, x: Node, high: Any) -> Node:
    """min(x, high)"""
    return clamp(b, x, None, high)


@aten("hardtanh")
def hardtanh(b: Builder, x: Node, low: float = -1.0, high: float = 1.0) -> Node:
    """x clamped between two numbers"""
    return clamp(b, x, low, high)


@aten("relu6")
def relu6(b: Builder, x: Node) -> Node:
    """x clamped between 0 and 6"""
    return clamp(b, x, 0.0, 6.0)


@aten("gelu", intact=True)
def gelu(b: Builder, x: Node, *, approximate: str = "none") -> Node:
    """`gelu`, exact or with tanh"""
    return b.gelu(x, approximate=approximate)


@aten("leaky_relu", intact=True)
def leaky_relu(b: Builder, x: Node, slope: float = 0.01) -> Node:
    """`leaky_relu`: times the slope below 0"""
    return b.leaky_relu(x, slope=float(slope))


@aten("elu", intact=True)
def elu(b: Builder, x: Node, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Node:
    """`elu` with its three numbers"""
    return b.elu(x, alpha=float(alpha), scale=float(scale), slope=float(input_scale))


@aten("softplus", intact=True)
def softplus(b: Builder, x: Node, beta: float = 1, threshold: float = 20) -> Node:
    """log(1 + exp(beta x)) / beta, and x where beta x is above the threshold

    A `threshold` from which on the two do not differ in float32 adds no op."""
    smooth = b.softplus(x, beta=float(beta))
    if threshold >= _SOFTPLUS_IS_LINEAR:
        return smooth
    above = b.greater(x if beta == 1 else b.multiply(x, float(beta)), float(threshold))
    return b.where(above, x, smooth)


_SOFTPLUS_IS_LINEAR = 17
"""From this argument on log(1 + exp(x)) is x in float32: exp(-17) / 17 is less than half of its last digit."""


@aten("prelu", "_prelu_kernel")
def prelu(b: Builder, x: Node, weight: Node) -> Node:
    """`prelu`, a slope for each channel

    `weight` holds one slope for all, or one for each element of dimension 1 of x."""
    shape = (1, -1, *[1] * (len(x.shape) - 2))
    broadcasts = weight.shape == () or prod(weight.shape) == 1 or len(weight.shape) == len(x.shape)
    return b.prelu(
        x, weight if broadcasts else b.reshape(weight, shape=tuple(prod(weight.shape) if n == -1 else n for n in shape))
    )


@aten("xlogy", intact=True)
def xlogy(b: Builder, x: Any, y: Any) -> Node:
    """x log(y), and 0 where x is 0"""
    nothing = b.equal(as_float(x), 0.0)
    return b.multiply(as_float(x), b.log(b.where(nothing, 1.0, as_float(y))))


@aten("isnan")
def isnan(b: Builder, x: Node) -> Node:
    """`is_nan`; of a softmax the rows that are masked completely"""
    return special_values.is_nan(b, x)


@aten("isinf")
def isinf(b: Builder, x: Node) -> Node:
    """`is_infinite`"""
    return special_values.is_infinite(b, x)


@aten("isposinf", intact=True)
def isposinf(b: Builder, x: Node) -> Node:
    """`is_infinite` above 0"""
    return special_values.is_infinite(b, x, below=False)


@aten("isneginf", intact=True)
def isneginf(b: Builder, x: Node) -> Node:
    """`is_infinite` below 0"""
    return special_values.is_infinite(b, x, above=False)


@aten("isfinite", intact=True)
def isfinite(b: Builder, x: Node) -> Node:
    """`is_finite`"""
    return special_values.is_finite(b, x)


@aten("where")
def where(b: Builder, condition: Node, x: Any, y: Any) -> Node:
    """`where`, or `guarded_where` if the condition asks for NaN or infinities

    Returns x where the condition holds, else y; x and y may be numbers."""
    return special_values.select_values(b, condition, as_float(x), as_float(y))


@aten("masked_fill")
def masked_fill(b: Builder, x: Node, mask: Node, value: Any) -> Node:
    """`where` the mask is set the value

    Elsewhere it is x."""
    return special_values.select_values(b, mask, as_float(value), x)


@aten("copy")
def copy(b: Builder, x: Node, y: Node) -> Node:
    """`expand` to the shape of the overwritten tensor, in its element type

    Returns y as torch's `x.copy_(y)` leaves it in x.
    """
    return to_type(b, y if y.shape == x.shape else b.expand(y, shape=x.shape), x.dtype)


@aten("_to_copy")
def to_copy(b: Builder, x: Node, *, dtype: Any = None) -> Node:
    """Another element type: to integers `truncate`, to bool x != 0"""
    if dtype is None:
        return x
    return to_type(b, x, str(dtype).removeprefix("torch."))


def to_type(b: Builder, x: Node, name: str) -> Node:
    """Convert a value to an element type given by torch's or numpy's name. Raises NotSupportedError for complex
    types."""
    if name == "bfloat16":
        name = "float32"
    if np.dtype(name).kind not in "fiub":
        raise NotSupportedError(f"to {name}")
    if name == "bool":
        if x.dtype != "bool":
            return b.retype(b.boolean(x), name)
        return x
    if np.dtype(name).kind != "f" and np.dtype(x.dtype).kind == "f":
        return b.retype(b.truncate(x), name)
    return b.retype(x, name)


@aten("full_like", "zeros_like", "empty_like")
def full_like(b: Builder, x: Node, value: float = 0) -> Node:
    """A constant of the shape

    The constant has the shape of x and is filled with `value`.
    """
    return b.constant(np.full(x.shape, value, np.float32))


@aten("ones_like")
def ones_like(b: Builder, x: Node) -> Node:
    """A constant of ones

    The constant has the shape of x.
    """
    return b.constant(np.ones(x.shape, np.float32))


@aten("fmod")
def fmod(b: Builder, x: Node, y: Any) -> Node:
    """`modulo` with the sign of x"""
    return b.modulo(x, y, truncated=True)


@aten("remainder")
def remainder(b: Builder, x: Any, y: Any) -> Node:
    """`modulo` with the sign of y"""
    return b.modulo(as_float(x), as_float(y))


@aten("round")
def round_(b: Builder, x: Node, *, decimals: int = 0) -> Node:
    """`round`, or `round_decimals`"""
    if decimals == 0:
        return b.round(x)
    if abs(decimals) > _MOST_DECIMALS:
        raise NotSupportedError(f"decimals={decimals}: the most is {_MOST_DECIMALS}")
    return b.round_decimals(x, decimals=decimals)


_MOST_DECIMALS = 29
"""Limit for decimals: larger powers of ten count as infinity on the device."""


@aten("expm1")
def expm1(b: Builder, x: Node) -> Node:
    """exp(x) - 1"""
    return b.subtract(b.exp(x), 1.0)


@aten("log1p")
def log1p(b: Builder, x: Node) -> Node:
    """log(1 + x)"""
    return b.log(b.add(x, 1.0))


@aten("tril")
def tril(b: Builder, x: Node, k: int = 0) -> Node:
    """A mask of ones.

    Returns x with zeros above its diagonal number `k`, in the last two dimensions.
    """
    return b.multiply(x, b.constant(np.tril(np.ones(x.shape[-2:], np.float32), k)), dtype=x.dtype)


@aten("triu")
def triu(b: Builder, x: Node, k: int = 0) -> Node:
    """A mask of ones.

    Returns x with zeros below its diagonal number `k`, in the last two dimensions.
    """
    return b.multiply(x, b.constant(np.triu(np.ones(x.shape[-2:], np.float32), k)), dtype=x.dtype)
