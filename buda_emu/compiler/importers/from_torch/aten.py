"""ATen operators: a table of those that are one front-end op, and a handler for each other one."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np
import torch

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.errors import UnsupportedError

Handler = Callable[..., Any]
_PLAIN: Final = {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "reciprocal": "reciprocal", "sigmoid": "sigmoid", "tanh": "tanh",
    "sin": "sine", "cos": "cosine", "abs": "abs", "neg": "negative", "rsqrt": "rsqrt", "floor": "floor", "ceil": "ceil",
    "round": "round", "trunc": "truncate", "sign": "sign", "erf": "erf", "relu": "relu", "silu": "silu", "mish": "mish",
    "hardswish": "hard_swish", "hardsigmoid": "hard_sigmoid", "logical_not": "logical_not",
    "bitwise_not": "logical_not",
    "maximum": "maximum", "minimum": "minimum", "logical_and": "logical_and", "bitwise_and": "logical_and",
    "logical_or": "logical_or", "bitwise_or": "logical_or", "logical_xor": "logical_xor", "gt": "greater",
    "ge": "greater_equal", "lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal", "mul": "multiply",
    "div": "divide", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh",
    "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
}  # fmt: skip
_SAME: Final = ("clone", "detach", "alias", "contiguous", "lift_fresh_copy", "_assert_tensor_metadata", "dropout")
_WHOLE: Final = (
    "gelu", "silu", "softmax", "_softmax", "_log_softmax", "native_layer_norm", "native_group_norm", "hardswish",
    "mish", "hardsigmoid", "scaled_dot_product_attention", "upsample_nearest2d", "upsample_bilinear2d", "elu",
    "leaky_relu", "softplus", "linear", "rms_norm",
)  # fmt: skip
HANDLERS: dict[str, Handler] = {}


class NotSupportedError(UnsupportedError):
    """Why one node cannot be taken; the reader collects them."""


def kept_whole() -> Any:
    """torch's decompositions to core ATen, but for operators that have a handler of their own."""
    table = torch.export.default_decompositions()
    for word in _WHOLE:
        packet = getattr(torch.ops.aten, word, None)
        for overload in packet.overloads() if packet is not None else ():
            table.pop(getattr(packet, overload), None)
    return table


def aten(*names: str) -> Callable[[Handler], Handler]:
    """Declares the handler of some operators."""

    def declare(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return declare


def _plain(op: str) -> Handler:
    def handler(b: Builder, *inputs: Any, **options: Any) -> Node:
        if options and set(options) != {"rounding_mode"}:
            raise NotSupportedError(", ".join(options))
        found = b.emit(op, *(_number(item) for item in inputs))
        mode = options.get("rounding_mode")
        return found if mode is None else b.floor(found) if mode == "floor" else b.truncate(found)

    return handler


HANDLERS.update({name: _plain(op) for name, op in _PLAIN.items()})
HANDLERS.update(dict.fromkeys(_SAME, lambda _b, x, *_, **__: x))


def _number(item: Any) -> Any:
    return float(item) if isinstance(item, (int, float)) and not isinstance(item, bool) else item


def _dims(x: Node, dims: Any) -> tuple[int, ...]:
    if dims is None or dims == []:
        return tuple(range(len(x.shape)))
    return tuple(int(dim) % len(x.shape) for dim in (dims if isinstance(dims, list) else [dims]))


# ------------------------------------------------------------------------------------------------------------ values
@aten("add")
def add(b: Builder, x: Any, y: Any, alpha: float = 1) -> Node:
    """x + alpha y"""
    return b.add(_number(x), _number(y) if alpha == 1 else b.multiply(_number(y), float(alpha)))


@aten("sub")
def sub(b: Builder, x: Any, y: Any, alpha: float = 1) -> Node:
    """x - alpha y"""
    return b.subtract(_number(x), _number(y) if alpha == 1 else b.multiply(_number(y), float(alpha)))


@aten("rsub")
def rsub(b: Builder, x: Any, y: Any, alpha: float = 1) -> Node:
    """y - alpha x"""
    return b.subtract(_number(y), x if alpha == 1 else b.multiply(x, float(alpha)))


@aten("pow")
def pow_(b: Builder, x: Any, y: Any) -> Node:
    """x to the power of y"""
    return b.pow(_number(x), b.constant(np.float32(y)) if not isinstance(y, Node) else y)


@aten("clamp", "clamp_min")
def clamp(b: Builder, x: Node, low: Any = None, high: Any = None, **options: Any) -> Node:
    """Between numbers or values."""
    low, high = options.get("min", low), options.get("max", high)
    if isinstance(low, Node) or isinstance(high, Node):
        x = x if low is None else b.maximum(x, low)
        return x if high is None else b.minimum(x, high)
    return b.clip(x, low=None if low is None else float(low), high=None if high is None else float(high))


@aten("clamp_max")
def clamp_max(b: Builder, x: Node, high: Any) -> Node:
    """min(x, high)"""
    return clamp(b, x, None, high)


@aten("hardtanh")
def hardtanh(b: Builder, x: Node, low: float = -1.0, high: float = 1.0) -> Node:
    """x between two numbers"""
    return clamp(b, x, low, high)


@aten("relu6")
def relu6(b: Builder, x: Node) -> Node:
    """x between 0 and 6"""
    return clamp(b, x, 0.0, 6.0)


@aten("gelu")
def gelu(b: Builder, x: Node, approximate: str = "none") -> Node:
    """Exact or with tanh."""
    return b.gelu(x, approximate=approximate)


@aten("leaky_relu")
def leaky_relu(b: Builder, x: Node, slope: float = 0.01) -> Node:
    """slope below 0"""
    return b.leaky_relu(x, slope=float(slope))


@aten("elu")
def elu(b: Builder, x: Node, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Node:
    """Three numbers."""
    return b.elu(x, alpha=float(alpha), scale=float(scale), slope=float(input_scale))


@aten("softplus")
def softplus(b: Builder, x: Node, beta: float = 1, threshold: float = 20) -> Node:
    """log(1 + exp(beta x)) / beta"""
    del threshold  # beyond it both forms agree in float32
    return b.softplus(x, beta=float(beta))


@aten("prelu", "_prelu_kernel")
def prelu(b: Builder, x: Node, weight: Node) -> Node:
    """A slope for each channel."""
    shape = (1, -1, *[1] * (len(x.shape) - 2))
    whole = weight.shape == () or prod(weight.shape) == 1 or len(weight.shape) == len(x.shape)
    return b.prelu(
        x, weight if whole else b.reshape(weight, shape=tuple(prod(weight.shape) if n == -1 else n for n in shape))
    )


@aten("where")
def where(b: Builder, condition: Node, x: Any, y: Any) -> Node:
    """0 and 1 choose."""
    return b.where(condition, _number(x), _number(y))


@aten("masked_fill")
def masked_fill(b: Builder, x: Node, mask: Node, value: Any) -> Node:
    """value where the mask is set"""
    return b.where(mask, _number(value), x)


@aten("_to_copy", "to", "type_as")
def to_copy(b: Builder, x: Node, dtype: Any = None, **_: Any) -> Node:
    """Another element type."""
    if dtype is None or not isinstance(dtype, torch.dtype):
        return x
    name = str(dtype).removeprefix("torch.")
    if dtype == torch.bool:
        return b.retyped(b.boolean(x), name) if x.dtype != "bool" else x
    if not dtype.is_floating_point and np.dtype(x.dtype).kind == "f":
        return b.retyped(b.truncate(x), name)
    return b.retyped(x, "float32" if dtype == torch.bfloat16 else name)


@aten("full_like", "zeros_like")
def full_like(b: Builder, x: Node, value: Any = 0, **_: Any) -> Node:
    """A constant of the shape."""
    return b.constant(np.full(x.shape, value if isinstance(value, (int, float)) else 0, np.float32))


@aten("ones_like")
def ones_like(b: Builder, x: Node, **_: Any) -> Node:
    """1"""
    return b.constant(np.ones(x.shape, np.float32))


@aten("fmod")
def fmod(b: Builder, x: Node, y: Any) -> Node:
    """With the sign of x."""
    return b.modulo(x, y, truncated=True)


@aten("remainder")
def remainder(b: Builder, x: Node, y: Any) -> Node:
    """With the sign of y; of floats near a multiple of y it would hang on rounding."""
    if "int" not in x.dtype:
        raise NotSupportedError("of floats")
    return b.modulo(x, y)


@aten("expm1")
def expm1(b: Builder, x: Node) -> Node:
    """exp(x) - 1"""
    return b.subtract(b.exp(x), 1.0)


@aten("log1p")
def log1p(b: Builder, x: Node) -> Node:
    """log(1 + x)"""
    return b.log(b.add(x, 1.0))


# ---------------------------------------------------------------------------------------------------------- products
@aten("mm", "bmm", "matmul")
def matmul(b: Builder, x: Node, y: Node) -> Node:
    """numpy's matmul."""
    return b.matmul(x, y)


@aten("addmm", "baddbmm")
def addmm(b: Builder, c: Node, x: Node, y: Node, beta: float = 1, alpha: float = 1) -> Node:
    """beta c + alpha x y"""
    found = b.matmul(x, y)
    found = found if alpha == 1 else b.multiply(found, float(alpha))
    return b.add(found, c if beta == 1 else b.multiply(c, float(beta)))


@aten("linear")
def linear(b: Builder, x: Node, weight: Node, bias: Node | None = None) -> Node:
    """x W' + bias"""
    found = b.matmul(x, b.transpose(weight, perm=(1, 0)))
    return found if bias is None else b.add(found, bias)


@aten("scaled_dot_product_attention")
def attention(
    b: Builder, q: Node, k: Node, v: Node, mask: Node | None = None, dropout: float = 0.0, causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Node:  # fmt: skip
    """softmax(scale q k' + mask) v"""
    if dropout:
        raise NotSupportedError("dropout")
    del enable_gqa
    if mask is not None and mask.dtype == "bool":
        mask = b.multiply(b.subtract(1.0, mask), -1e30)
    masks = [mask] if mask is not None else []
    size = q.shape[-1] ** -0.5 if scale is None else float(scale)
    return b.attention(q, k, v, *masks, scale=size, causal=bool(causal))


@aten("convolution")
def convolution(
    b: Builder, x: Node, w: Node, bias: Node | None, strides: Any, pads: Any, dilations: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Node:  # fmt: skip
    """Of any rank, forward or transposed."""
    rank = len(w.shape) - 2
    wide = [tuple(item * (rank if len(item) == 1 else 1)) for item in (strides, pads, dilations, output_padding)]
    both = tuple((pad, pad) for pad in wide[1])
    weights = [w, *([bias] if bias is not None else [])]
    if transposed:
        return b.conv_transpose(
            x, *weights, strides=wide[0], pads=both, dilations=wide[2], groups=groups, output_padding=wide[3]
        )
    return b.convolution(x, *weights, strides=wide[0], pads=both, dilations=wide[2], groups=groups)


def _window(x: Node, rank: int, kernel: Any, stride: Any, pad: Any, dilation: Any, ceil: bool) -> dict[str, Any]:
    def wide(item: Any) -> tuple[int, ...]:
        return tuple(item) * rank if len(item) == 1 else tuple(item)

    kernel, pads, dilations = wide(kernel), wide(pad), wide(dilation)
    strides = wide(stride) if stride else kernel
    out: list[int] = []
    for size, k, s, p, d in zip(x.shape[-rank:], kernel, strides, pads, dilations, strict=True):
        room = size + 2 * p - (k - 1) * d - 1
        count = (-(-room // s) if ceil else room // s) + 1
        out.append(count - 1 if ceil and (count - 1) * s >= size + p else count)
    both = tuple((p, p) for p in pads)
    return {"kernel": kernel, "strides": strides, "pads": both, "dilations": dilations, "out": tuple(out)}


def _batched(b: Builder, x: Node, rank: int, run: Callable[[Node], Node]) -> Node:
    """With a batch dimension in front, where there is none."""
    if len(x.shape) == rank + 2:
        return run(x)
    found = run(b.reshape(x, shape=(1, *x.shape)))
    return b.reshape(found, shape=found.shape[1:])


def _max_pool(rank: int) -> Handler:
    def handler(b: Builder, x: Node, kernel: Any, stride: Any = (), pad: Any = (0,), dilation: Any = (1,),
                ceil: bool = False) -> Any:  # fmt: skip
        options = _window(x, rank, kernel, list(stride), list(pad), list(dilation), ceil)
        return [_batched(b, x, rank, lambda y: b.max_pool(y, **options)), None]

    return handler


def _avg_pool(rank: int) -> Handler:
    def handler(b: Builder, x: Node, kernel: Any, stride: Any = (), pad: Any = (0,), ceil: bool = False,
                count_pads: bool = True, divisor: int | None = None) -> Node:  # fmt: skip
        options = _window(x, rank, kernel, list(stride), list(pad), [1], ceil)
        if divisor:
            options |= {"total": False, "divisor": float(divisor)}
        return _batched(b, x, rank, lambda y: b.avg_pool(y, count_pads=count_pads, **options))

    return handler


def _first(handler: Handler) -> Handler:
    return lambda *items, **options: handler(*items, **options)[0]


for _rank in (1, 2, 3):
    HANDLERS[f"max_pool{_rank}d_with_indices"] = _max_pool(_rank)
    HANDLERS[f"avg_pool{_rank}d"] = _avg_pool(_rank)
    HANDLERS[f"max_pool{_rank}d"] = _first(_max_pool(_rank))


@aten("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "adaptive_avg_pool1d", "_adaptive_avg_pool3d")
def adaptive(b: Builder, x: Node, out: Any) -> Node:
    """Means of about equal parts: a matrix along each dimension."""
    for place, count in enumerate(out):
        dim = len(x.shape) - len(out) + place
        size = x.shape[dim]
        matrix = np.zeros((count, size), np.float32)
        for row in range(count):
            low, high = row * size // count, -(-(row + 1) * size // count)
            matrix[row, low:high] = 1 / (high - low)
        x = b.linear(x, dim=dim, matrix=Sparse.dense(matrix)) if size != count else x
    return x


# ------------------------------------------------------------------------------------------------ norms and reductions
@aten("_softmax", "softmax", "_safe_softmax")
def softmax(b: Builder, x: Node, dim: int, *_: Any, **__: Any) -> Node:
    """Along a dimension."""
    return b.softmax(x, dim=dim % len(x.shape))


@aten("_log_softmax", "log_softmax")
def log_softmax(b: Builder, x: Node, dim: int, *_: Any, **__: Any) -> Node:
    """Along a dimension."""
    return b.log_softmax(x, dim=dim % len(x.shape))


@aten("native_layer_norm")
def layer_norm(b: Builder, x: Node, shape: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    """Mean and deviation are not told."""
    weights = [item for item in (weight, bias) if item is not None]
    return [b.layer_norm(x, *weights, rank=len(shape), epsilon=float(epsilon)), None, None]


@aten("rms_norm")
def rms_norm(b: Builder, x: Node, shape: Any, weight: Any = None, epsilon: Any = None) -> Node:
    """By the root mean square."""
    weights = [weight] if weight is not None else []
    small = float(np.finfo(np.float32).eps) if epsilon is None else float(epsilon)
    return b.layer_norm(x, *weights, rank=len(shape), epsilon=small, centre=False)


@aten("native_group_norm")
def group_norm(
    b: Builder, x: Node, weight: Any, bias: Any, n: int, c: int, hw: int, groups: int, epsilon: float
) -> Any:
    """Groups of channels."""
    del n, c, hw
    weights = [item for item in (weight, bias) if item is not None]
    return [b.group_norm(x, *weights, groups=groups, epsilon=float(epsilon)), None, None]


@aten("_native_batch_norm_legit_no_training")
def batch_norm(
    b: Builder, x: Node, weight: Any, bias: Any, mean: Node, variance: Node, momentum: float, epsilon: float
) -> Any:
    """With given statistics."""
    del momentum
    one, zero = np.ones(mean.shape, np.float32), np.zeros(mean.shape, np.float32)
    gamma, beta = (one if weight is None else weight), (zero if bias is None else bias)
    return [b.batch_norm(x, gamma, beta, mean, variance, epsilon=float(epsilon)), None, None]


@aten("_native_batch_norm_legit")
def instance_norm(b: Builder, x: Node, weight: Any, bias: Any, training: bool, momentum: float, epsilon: float) -> Any:
    """By the statistics of the input itself: torch's decomposition of an instance norm."""
    del training, momentum
    normal = b.standardise(x, axes=(0, *range(2, len(x.shape))), epsilon=float(epsilon))
    channels = (1, -1, *(1,) * (len(x.shape) - 2))
    for item, form in ((weight, b.multiply), (bias, b.add)):
        normal = normal if item is None else form(normal, view(b, item, channels))
    return [normal, None, None]


def _reduction(op: str) -> Handler:
    def handler(b: Builder, x: Node, dims: Any = None, keepdim: bool = False, **_: Any) -> Node:
        return b.emit(op, x, axes=_dims(x, dims), keepdims=bool(keepdim))

    return handler


for _name, _op in (
    ("sum", "reduce_sum"), ("mean", "reduce_mean"), ("amax", "reduce_largest"), ("amin", "reduce_smallest"),
    ("prod", "reduce_product"), ("logsumexp", "reduce_log_sum_exp"),
):  # fmt: skip
    HANDLERS[_name] = _reduction(_op)


@aten("max")
def largest(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest alone, or with its place."""
    if isinstance(dim, Node):
        return b.maximum(x, dim)
    values = b.reduce_largest(x, axes=_dims(x, dim), keepdims=bool(keepdim))
    return values if dim is None else [values, b.argmax(x, dim=dim % len(x.shape), keepdims=bool(keepdim))]


@aten("min")
def smallest(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Any:
    """Of -x the largest."""
    if isinstance(dim, Node):
        return b.minimum(x, dim)
    found = largest(b, b.negative(x), dim, keepdim)
    return [b.negative(found[0]), found[1]] if isinstance(found, list) else b.negative(found)


@aten("var")
def variance(b: Builder, x: Node, dims: Any = None, correction: float = 1, keepdim: bool = False, **_: Any) -> Node:
    """Of a sample, or of all."""
    axes = _dims(x, dims)
    count = prod(x.shape[axis] for axis in axes)
    centred = b.subtract(x, b.reduce_mean(x, axes=axes))
    total = b.reduce_sum(b.square(centred), axes=axes, keepdims=bool(keepdim))
    return b.multiply(total, 1 / (count - float(correction)))


@aten("linalg_vector_norm")
def vector_norm(b: Builder, x: Node, order: float = 2, dims: Any = None, keepdim: bool = False, **_: Any) -> Node:
    """The sum of sizes, the root of the sum of squares, or the largest size."""
    op = {1.0: "reduce_l1", 2.0: "reduce_l2"}.get(float(order))
    if op is not None:
        return b.emit(op, x, axes=_dims(x, dims), keepdims=bool(keepdim))
    if float(order) != float("inf"):
        raise NotSupportedError(f"of order {order}")
    return b.reduce_largest(b.abs(x), axes=_dims(x, dims), keepdims=bool(keepdim))


@aten("argmax")
def argmax(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Node:
    """The first place."""
    if dim is None:
        return b.argmax(b.reshape(x, shape=(prod(x.shape),)), dim=0, keepdims=False)
    return b.argmax(x, dim=dim % len(x.shape), keepdims=bool(keepdim))


@aten("argmin")
def argmin(b: Builder, x: Node, dim: Any = None, keepdim: bool = False) -> Node:
    """Of -x the largest."""
    return argmax(b, b.negative(x), dim, keepdim)


@aten("cumsum")
def cumsum(b: Builder, x: Node, dim: int, **_: Any) -> Node:
    """A triangular matrix."""
    return b.cumsum(x, dim=dim % len(x.shape))


# ------------------------------------------------------------------------------------------------------------- moves
@aten("view", "reshape", "_unsafe_view")
def view(b: Builder, x: Node, shape: Sequence[int]) -> Node:
    """The same elements."""
    rest = prod(size for size in shape if size != -1)
    full = tuple(prod(x.shape) // rest if size == -1 else int(size) for size in shape)
    return x if full == x.shape else b.reshape(x, shape=full)


@aten("squeeze")
def squeeze(b: Builder, x: Node, dims: Any = None) -> Node:
    """Without dimensions of size 1."""
    gone = {dim for dim in _dims(x, dims) if x.shape[dim] == 1}
    return view(b, x, [size for place, size in enumerate(x.shape) if place not in gone])


@aten("unsqueeze")
def unsqueeze(b: Builder, x: Node, dim: int) -> Node:
    """With one more."""
    place = dim % (len(x.shape) + 1)
    return view(b, x, [*x.shape[:place], 1, *x.shape[place:]])


@aten("permute")
def permute(b: Builder, x: Node, perm: Any) -> Node:
    """Dimensions in another order."""
    return b.transpose(x, perm=tuple(dim % len(x.shape) for dim in perm))


@aten("transpose", "t")
def transpose(b: Builder, x: Node, first: int = 0, second: int = 1) -> Node:
    """Two dimensions swapped."""
    perm = list(range(len(x.shape)))
    first, second = first % len(perm), second % len(perm)
    perm[first], perm[second] = second, first
    return b.transpose(x, perm=tuple(perm))


@aten("expand")
def expand(b: Builder, x: Node, shape: Any, **_: Any) -> Node:
    """Dimensions of size 1 repeated."""
    padded = (*(1,) * (len(shape) - len(x.shape)), *x.shape)
    full = tuple(own if size == -1 else int(size) for size, own in zip(shape, padded, strict=True))
    x = view(b, x, padded)
    return x if full == x.shape else b.expand(x, shape=full)


@aten("repeat")
def repeat(b: Builder, x: Node, times: Any) -> Node:
    """The whole several times."""
    return b.tile(view(b, x, (*(1,) * (len(times) - len(x.shape)), *x.shape)), repeats=tuple(times))


@aten("slice")
def slice_(b: Builder, x: Node, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Node:
    """A part of one dimension."""
    dim %= len(x.shape)
    index = np.arange(*slice(start, end, step).indices(x.shape[dim]))
    if not index.size:
        raise NotSupportedError("a slice without elements")
    return b.take(x, dim=dim, index=index)


@aten("select")
def select(b: Builder, x: Node, dim: int, place: int) -> Node:
    """One element of a dimension."""
    dim %= len(x.shape)
    found = b.take(x, dim=dim, index=np.asarray([place % x.shape[dim]]))
    return view(b, found, [*x.shape[:dim], *x.shape[dim + 1 :]])


@aten("split_with_sizes", "split", "chunk")
def split(b: Builder, x: Node, sizes: Any, dim: int = 0) -> list[Node]:
    """Parts along one dimension."""
    dim %= len(x.shape)
    if isinstance(sizes, int):
        sizes = [min(sizes, x.shape[dim] - start) for start in range(0, x.shape[dim], sizes)]
    starts = np.cumsum([0, *sizes])
    return [b.slice(x, dim=dim, start=int(start), count=int(n)) for start, n in zip(starts, sizes, strict=False)]


@aten("unbind")
def unbind(b: Builder, x: Node, dim: int = 0) -> list[Node]:
    """Every element of one dimension."""
    return [select(b, x, dim, place) for place in range(x.shape[dim])]


@aten("cat")
def cat(b: Builder, parts: Sequence[Node], dim: int = 0) -> Node:
    """Behind each other."""
    full = [part for part in parts if part.shape != (0,)]
    return full[0] if len(full) == 1 else b.concat(*full, dim=dim % len(full[0].shape))


@aten("stack")
def stack(b: Builder, parts: Sequence[Node], dim: int = 0) -> Node:
    """Along a new dimension."""
    return cat(b, [unsqueeze(b, part, dim) for part in parts], dim % (len(parts[0].shape) + 1))


@aten("flip")
def flip(b: Builder, x: Node, dims: Any) -> Node:
    """Backwards."""
    for dim in _dims(x, dims):
        x = b.take(x, dim=dim, index=np.arange(x.shape[dim])[::-1])
    return x


@aten("roll")
def roll(b: Builder, x: Node, shifts: Any, dims: Any) -> Node:
    """Round."""
    for shift, dim in zip(shifts, _dims(x, dims), strict=True):
        x = b.take(x, dim=dim, index=np.roll(np.arange(x.shape[dim]), shift))
    return x


@aten("constant_pad_nd")
def constant_pad(b: Builder, x: Node, pads: Any, value: float = 0.0) -> Node:
    """From the last dimension on."""
    return b.pad(x, pads=_pads(x, pads), value=float(value))


def _pads(x: Node, pads: Any) -> tuple[tuple[int, int], ...]:
    both = [(0, 0)] * len(x.shape)
    for number in range(len(pads) // 2):
        both[len(x.shape) - 1 - number] = (pads[2 * number], pads[2 * number + 1])
    return tuple(both)


@aten("reflection_pad1d", "reflection_pad2d")
def reflection_pad(b: Builder, x: Node, pads: Any) -> Node:
    """What is mirrored."""
    return b.pad(x, pads=_pads(x, pads), mode="reflect")


@aten("replication_pad1d", "replication_pad2d")
def replication_pad(b: Builder, x: Node, pads: Any) -> Node:
    """The edge."""
    return b.pad(x, pads=_pads(x, pads), mode="edge")


@aten("tril")
def tril(b: Builder, x: Node, k: int = 0) -> Node:
    """A mask of ones."""
    return b.multiply(x, b.constant(np.tril(np.ones(x.shape[-2:], np.float32), k)), dtype=x.dtype)


@aten("triu")
def triu(b: Builder, x: Node, k: int = 0) -> Node:
    """A mask of ones."""
    return b.multiply(x, b.constant(np.triu(np.ones(x.shape[-2:], np.float32), k)), dtype=x.dtype)


@aten("pixel_shuffle")
def pixel_shuffle(b: Builder, x: Node, factor: int) -> Node:
    """Channels as blocks of pixels."""
    return b.depth_to_space(x, block=factor, columns_first=False)


@aten("embedding")
def embedding(b: Builder, table: Node, index: Node, *_: Any) -> Node:
    """Rows of a table."""
    if table.op != "constant" or not _host_picks(b, index):
        return b.gather(table, index, dim=0)
    return b.embedding(table, index)


def _host_picks(b: Builder, node: Node) -> bool:
    while node.op in ("reshape", "identity", "transpose", "linear", "expand", "take", "slice"):
        node = b.graph[node.inputs[0]]
    return node.op == "input"


@aten("index_select")
def index_select(b: Builder, x: Node, dim: int, index: Node) -> Node:
    """By constants a move, else by one-hot rows."""
    if index.op == "constant":
        return b.take(x, dim=dim, index=np.asarray(index.value).reshape(-1) % x.shape[dim])
    return b.gather(x, index, dim=dim)


@aten("gather")
def gather(b: Builder, x: Node, dim: int, index: Node, **_: Any) -> Node:
    """One-hot along a dimension."""
    return b.gather_elements(x, index, dim=dim)


@aten("index")
def index(b: Builder, x: Node, indices: Any) -> Node:
    """Constant indices of neighbouring dimensions; an input as index of a table."""
    places = [place for place, item in enumerate(indices) if item is not None]
    given = [indices[place] for place in places]
    if len(given) == 1 and given[0].op != "constant":
        if places[0] == 0 and x.op == "constant" and _host_picks(b, given[0]):
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


@aten("unfold")
def unfold(b: Builder, x: Node, dim: int, size: int, step: int) -> Node:
    """Windows of one dimension, which become the last dimension."""
    dim %= len(x.shape)
    starts = np.arange(0, x.shape[dim] - size + 1, step)
    found = b.take(x, dim=dim, index=(starts[:, None] + np.arange(size)).reshape(-1))
    split = view(b, found, [*x.shape[:dim], len(starts), size, *x.shape[dim + 1 :]])
    return b.transpose(split, perm=(*(place for place in range(len(split.shape)) if place != dim + 1), dim + 1))


# ---------------------------------------------------------------------------------------------------------- resizing
@aten("upsample_nearest2d", "upsample_nearest1d")
def nearest(b: Builder, x: Node, out: Any, *_: Any) -> Node:
    """Each pixel several times."""
    sizes = x.shape[2:]
    if out is None:
        scales = _[0]
        out = [int(size * scale) for size, scale in zip(sizes, scales, strict=True)]
    for place, (size, count) in enumerate(zip(sizes, out, strict=True)):
        x = b.take(x, dim=2 + place, index=np.arange(count) * size // count)
    return x


@aten("upsample_bilinear2d")
def bilinear(b: Builder, x: Node, out: Any, align: bool, *scales: Any) -> Node:
    """Between neighbours."""
    sizes = x.shape[2:]
    if out is None:
        out = [int(size * scale) for size, scale in zip(sizes, scales[0], strict=True)]
    for place, (size, count) in enumerate(zip(sizes, out, strict=True)):
        at = np.arange(count, dtype=np.float64)
        at = at * (size - 1) / max(count - 1, 1) if align else np.maximum((at + 0.5) * size / count - 0.5, 0)
        low = np.minimum(np.floor(at).astype(int), size - 1)
        high = np.minimum(low + 1, size - 1)
        matrix = np.zeros((count, size), np.float32)
        np.add.at(matrix, (np.arange(count), low), 1 - (at - low))
        np.add.at(matrix, (np.arange(count), high), at - low)
        x = b.linear(x, dim=2 + place, matrix=Sparse.dense(matrix))
    return x
