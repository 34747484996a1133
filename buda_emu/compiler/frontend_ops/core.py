"""Core ops: the ops that `lower` turns into netlist ops. All other ops decompose into these (FRONTEND 1, 3)."""

# What a lambda of a declaration takes is said by its op: shapes or arrays, then attributes.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import MOST_ELEMENTS, check_index_size
from buda_emu.compiler.graph.graph import Array, Shape
from buda_emu.compiler.graph.registry import core
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.support.errors import UnsupportedError


def _require(condition: bool, message: str) -> None:
    """Raise ValueError with the message unless a condition on the shapes of operands holds."""
    if not condition:
        raise ValueError(message)


def same_shape(shape: Shape, *_: Shape, **__: Any) -> Shape:
    """Return the shape of the first operand, for ops that keep it."""
    return shape


def broadcast_shapes(*shapes: Shape, **_: Any) -> Shape:
    """Return the shape to which numpy broadcasts the operands."""
    return np.broadcast_shapes(*shapes)


def _in_float32(function: Callable[..., Any]) -> Callable[..., Array]:
    """Wrap a numpy function so that it computes and returns float32."""

    def reference(*arrays: Array, **attrs: Any) -> Array:
        """Compute the function in float32, whatever the element types of its operands."""
        return np.asarray(function(*(array.astype(np.float32) for array in arrays), **attrs), np.float32)

    return reference


# -------------------------------------------------------------------------------------------------------- values
def _gelu(x: Array) -> Array:
    """Return GELU in its form with tanh."""
    return 0.5 * x * (1 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x**3)))


def _relu(x: Array, threshold: float = 0.0, mode: str = "min") -> Array:
    """Compute relu with a threshold: mode "min" keeps x from `threshold` on, mode "max" limits x to 0 to `threshold`
    (OPS 5)."""
    low = np.where(x >= (threshold if mode == "min" else 0), x, np.float32(0))
    if mode == "min":
        return low
    return np.minimum(low, np.float32(threshold))


_UNARY: dict[str, tuple[Callable[..., Any], str]] = {
    "exp": (np.exp, "e to the power of x"),
    "log": (np.log, "natural logarithm"),
    "sqrt": (np.sqrt, "square root"),
    "reciprocal": (lambda x: 1 / x, "1 / x"),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), "1 / (1 + exp(-x))"),
    "tanh": (np.tanh, "hyperbolic tangent"),
    "gelu_tanh": (_gelu, "GELU with tanh, as the device's gelu"),
    "sine": (np.sin, "sine"),
    "cosine": (np.cos, "cosine"),
    "relu": (_relu, "x from `threshold` on, else 0; mode max: x between 0 and `threshold`"),
    "leaky_relu": (lambda x, slope=0.01: np.where(x > 0, x, x * np.float32(slope)), "x, times `slope` below 0"),
}
for _name, (_function, _doc) in _UNARY.items():
    core(
        _name,
        _doc,
        same_shape,
        _in_float32(_function),
        family="elementwise",
        dtype="float32" if _name != "relu" else None,
    )
core("abs", "absolute value", same_shape, lambda x: np.abs(x) if x.dtype != bool else x, family="elementwise")
core("square", "x * x", same_shape, lambda x: x * x, family="elementwise")
core("power", "x to a whole power `exp` of at least 1", same_shape, lambda x, exp: x**exp, family="elementwise")
_WHOLE: dict[str, tuple[Callable[..., Any], str]] = {
    "round": (np.rint, "nearest integer, halves to even"),
    "floor": (np.floor, "the integer below, or x itself"),
    "ceil": (np.ceil, "the integer above, or x itself"),
    "truncate": (np.trunc, "the integer towards 0"),
}
for _name, (_function, _doc) in _WHOLE.items():
    core(_name, _doc, same_shape, _in_float32(_function), family="elementwise")
core("identity", "x itself, perhaps under another element type", same_shape, lambda x: x, family="moves")


def _with_wide_integers(function: Callable[..., Any]) -> Callable[..., Array]:
    """Wrap a numpy function of two operands so that integers are computed in int64."""

    def reference(a: Array, b: Array) -> Array:
        """Compute the function with integers as int64, so that they do not overflow."""
        return function(*(operand if operand.dtype.kind == "f" else operand.astype(np.int64) for operand in (a, b)))

    return reference


for _name, _function, _doc in (
    ("add", np.add, "a + b"),
    ("subtract", np.subtract, "a - b"),
    ("multiply", np.multiply, "a * b"),
    ("maximum", np.maximum, "the larger one"),
):
    core(_name, _doc, broadcast_shapes, _with_wide_integers(_function), family="elementwise")


# ------------------------------------------------------------------------------------------------------ products
def _to_int8(x: Array, factor: Array, zero: float) -> Array:
    """Return factor * x + zero, rounded half away from zero and clamped to -127 to 127, as the device does (OPS
    4.3)."""
    scaled = x.astype(np.float32) * factor.astype(np.float32) + np.float32(zero)
    rounded = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled)  # OPS 4.3
    return np.asarray(np.clip(rounded, -127, 127), np.float32)


core(
    "to_int8", "x times `factor` and `zero`, rounded, halves away from 0, within -127 and 127", same_shape, _to_int8,
    family="quantise", dtype="int8",
)  # fmt: skip
core(
    "from_int8", "x less `zero`, times `scale`", same_shape,
    lambda x, scale, zero: (x.astype(np.float32) - np.float32(zero)) * scale.astype(np.float32), family="quantise",
    dtype="float32",
)  # fmt: skip


def _matmul_shape(a: Shape, b: Shape) -> Shape:
    """Return the shape of a matrix product with broadcast batch dimensions. Raise ValueError for shapes that have no
    product."""
    _require(min(len(a), len(b)) >= 2 and a[-1] == b[-2], f"no product of {list(a)} and {list(b)}")
    return (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])


def _multiply_matrices(a: Array, b: Array) -> Array:
    """Multiply matrices in float64, adding products one after another: the order of BLAS depends on its number of
    threads."""
    shape = _matmul_shape(a.shape, b.shape)
    total = np.zeros(shape)
    for k in range(a.shape[-1]):
        total += a[..., :, k, None].astype(np.float64) * b[..., None, k, :]
    return total


core(
    "matmul", "product of matrices in the last two dimensions, over broadcast leading ones", _matmul_shape,
    _in_float32(_multiply_matrices), family="matmul",
)  # fmt: skip


def tap_indices(
    size: int, kernel: int, stride: int, dilation: int, pad: tuple[int, int], out: int, *, clamp: bool = False
) -> Array:
    """Return [kernel, out]: the index that each tap of each window reads along one dimension, -1 outside. With `clamp`,
    a tap outside reads what the first tap inside of its window reads."""
    positions = np.arange(out)[None, :] * stride + np.arange(kernel)[:, None] * dilation - pad[0]
    inside = (positions >= 0) & (positions < size)
    if not clamp:
        return np.where(inside, positions, -1)
    if inside.all():
        return positions
    first = np.argmax(inside, axis=0)
    index = np.where(inside, positions, -1)
    return np.where(index < 0, np.take_along_axis(index, first[None, :], 0), index)


def iterate_tap_indices(
    sizes: tuple[Sequence[int], Sequence[int], Sequence[int]],
    attrs: Mapping[str, Any],
    clamp: bool = False,
    flipped: bool = False,
) -> Iterator[Array]:
    """Yield for each dimension of windows the indices [kernel, output] that the taps read: -1 outside of the space, or
    with `clamp` what the window's first tap inside reads. `sizes`: those of the space, the kernel and the output;
    `attrs`: strides, dilations and pads; `flipped` puts the last tap first."""
    options = (attrs["strides"], attrs["dilations"], attrs["pads"])
    for size, k, count, stride, dilation, pad in zip(*sizes, *options, strict=True):
        index = tap_indices(size, k, stride, dilation, pad, count, clamp=clamp)
        yield index[::-1] if flipped else index


def window_count(size: int, kernel: int, stride: int, dilation: int, pad: tuple[int, int]) -> int:
    """Return how many windows fit along a dimension of `size` elements with `pad` more before and after. `kernel`: taps
    of a window, `dilation` apart."""
    return (size + pad[0] + pad[1] - (kernel - 1) * dilation - 1) // stride + 1


def window_counts(space: Sequence[int], kernel: Sequence[int], attrs: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the number of windows along each dimension, which is `out` if the attributes have it. Raise ValueError for
    windows that do not fit, UnsupportedError for too many."""
    options = (attrs["strides"], attrs["dilations"], attrs["pads"])
    _require(
        len(space) == len(kernel)
        and all(len(option) == len(space) for option in options)
        and min((*kernel, *attrs["strides"], *attrs["dilations"]), default=1) >= 1,
        f"no windows of {list(kernel)} over {list(space)}, strides, dilations and pads {options}",
    )
    out = tuple(attrs.get("out") or ()) or tuple(
        window_count(size, k, s, d, p)
        for size, k, s, d, p in zip(space, kernel, attrs["strides"], attrs["dilations"], attrs["pads"], strict=True)
    )
    _require(min(out, default=1) >= 1, f"windows of {list(kernel)} reach beyond {list(space)} and pads {attrs['pads']}")
    for size, k in zip(out, kernel, strict=True):
        check_index_size("windows", size * k)
    if prod(out) * prod(kernel) > MOST_ELEMENTS:
        places = f"{list(kernel)} at {list(out)} places"
        raise UnsupportedError(f"windows of {places}: more than {MOST_ELEMENTS:,} elements")
    return out


def _read_windows(
    x: Array, kernel: Sequence[int], out: Sequence[int], attrs: dict[str, Any], clamp: bool, flipped: bool = False
) -> Array:
    """Read windows of x [N, C, space...] as [N, C, k1, o1, k2, o2, ...], 0 outside, or with `clamp` what the first tap
    inside reads. `out`: the number of windows along each dimension; `flipped` puts the last tap first."""
    for place, index in enumerate(iterate_tap_indices((x.shape[2:], kernel, out), attrs, clamp, flipped)):
        axis = 2 + 2 * place
        x = np.take(np.concatenate([x, np.zeros_like(x.take([0], axis))], axis), index, axis)
    return x


def _reference_windows(
    x: Array, *, kernel: Sequence[int], clamp: bool = False, flipped: bool = False, **attrs: Any
) -> Array:
    """Compute the op `windows`: [N, C, taps..., out...]."""
    rank = len(kernel)
    interleaved = _read_windows(x, kernel, window_counts(x.shape[2:], kernel, attrs), attrs, clamp, flipped)
    return interleaved.transpose(0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2))


core(
    "windows", "[N, C, taps..., out...]: what each tap of a window reads, 0 outside; `clamp`: what another tap reads "
    "inside; `flipped`: the last tap first",
    lambda x, kernel, **attrs: (*x[:2], *kernel, *window_counts(x[2:], kernel, attrs)),
    _reference_windows, family="convolution",
)  # fmt: skip


def _conv(x: Array, w: Array, *, groups: int = 1, **attrs: Any) -> Array:
    """Return the convolution of x by w over any number of spatial dimensions; `attrs`: strides, pads and dilations."""
    x = x.astype(np.float32)
    w = w.astype(np.float32)
    kernel = w.shape[2:]
    rank = w.ndim - 2
    out = window_counts(x.shape[2:], kernel, attrs)
    windows = _read_windows(x, kernel, out, attrs, clamp=False)
    windows = windows.transpose(0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2))
    columns = windows.reshape(x.shape[0], groups, -1, prod(out))
    result = _multiply_matrices(w.reshape(1, groups, w.shape[0] // groups, -1), columns).astype(np.float32)
    return result.reshape(x.shape[0], w.shape[0], *out)


def _conv_shape(x: Shape, w: Shape, *, groups: int = 1, **attrs: Any) -> Shape:
    """Return the shape of a convolution. Raise ValueError for operands whose channels do not fit the groups and for
    windows that do not fit, UnsupportedError for too many windows."""
    fits = len(x) == len(w) > 2 and groups >= 1 and x[1] == groups * w[1] and w[0] % groups == 0
    _require(fits, f"no convolution of {list(x)} by {list(w)} in {groups} groups")
    return x[0], w[0], *window_counts(x[2:], w[2:], attrs)


core(
    "conv", "convolution of [N, C, space...] by constant weights [out, C / groups, kernel...]", _conv_shape, _conv,
    family="convolution",
)  # fmt: skip


def _max_pool(x: Array, *, kernel: Sequence[int], **attrs: Any) -> Array:
    """Return the maximum of each window; taps in the padding do not count."""
    out = window_counts(x.shape[2:], kernel, attrs)
    windows = _read_windows(x, kernel, out, attrs, clamp=True)
    return windows.max(axis=tuple(range(2, 2 + 2 * len(kernel), 2)))


core(
    "max_pool", "largest of each window of [N, C, space...]; places outside do not count",
    lambda x, kernel, **attrs: (*x[:2], *window_counts(x[2:], kernel, attrs)), _max_pool, family="convolution",
)  # fmt: skip


# ------------------------------------------------------------------------------------------- along one dimension
def _linear(x: Array, *, dim: int, matrix: Sparse) -> Array:
    """Return the product of a sparse matrix and x along a dimension."""
    return np.moveaxis(matrix.apply(np.moveaxis(x, dim, 0)), 0, dim)


def _linear_shape(x: Shape, *, dim: int, matrix: Sparse) -> Shape:
    """Return the shape of x with as many elements along a dimension as the matrix has rows. Raise ValueError for a
    matrix whose columns do not fit."""
    inside = matrix.col.size == 0 or (int(matrix.col.min()) >= 0 and int(matrix.col.max()) < matrix.shape[1])
    _require(inside and matrix.shape[1] == x[dim], f"{list(x)} has no {matrix.shape[1]} elements along dimension {dim}")
    return *x[:dim], matrix.shape[0], *x[dim + 1 :]


core(
    "linear", "a constant matrix applied along one dimension: slices, pads, sums, resizing and the like", _linear_shape,
    _linear, family="moves",
)  # fmt: skip
core(
    "reduce_max", "largest along one dimension, which stays with size 1",
    lambda x, dim: (*x[:dim], 1, *x[dim + 1 :]), lambda x, dim: x.max(axis=dim, keepdims=True), family="reduce",
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------- moves
def _reshape_shape(x: Shape, *, shape: Shape) -> Shape:
    """Return the new shape, `shape`. Raise ValueError if it has another number of elements."""
    _require(min(shape, default=0) >= 0 and prod(x) == prod(shape), f"{list(x)} as {list(shape)}: other elements")
    return tuple(shape)


def _transpose_shape(x: Shape, *, perm: Sequence[int]) -> Shape:
    """Return the shape with its dimensions in the order `perm`. Raise ValueError if that is not an order of all
    dimensions."""
    _require(sorted(perm) == list(range(len(x))), f"no order of the dimensions of {list(x)}: {list(perm)}")
    return tuple(x[place] for place in perm)


def _expand_shape(x: Shape, *, shape: Shape) -> Shape:
    """Return the new shape, `shape`. Raise ValueError if x does not broadcast to it."""
    _require(np.broadcast_shapes(x, tuple(shape)) == tuple(shape), f"{list(x)} does not repeat to {list(shape)}")
    return tuple(shape)


core("reshape", "the same elements in another shape", _reshape_shape, lambda x, shape: x.reshape(shape), family="moves")
core("transpose", "dimensions in another order", _transpose_shape, lambda x, perm: x.transpose(perm), family="moves")
core(
    "expand", "dimensions of size 1 repeated", _expand_shape, lambda x, shape: np.broadcast_to(x, shape), family="moves"
)


def _concat_shape(*shapes: Shape, dim: int) -> Shape:
    """Return the shape of operands one after another along a dimension. Raise ValueError for operands that differ in
    another dimension."""
    first = shapes[0]
    rest = {(*shape[:dim], *shape[dim + 1 :]) for shape in shapes}
    _require(len(rest) == 1, f"{', '.join(str(list(shape)) for shape in shapes)} not one after another along {dim}")
    return (*first[:dim], sum(shape[dim] for shape in shapes), *first[dim + 1 :])


core("concat", "operands one after another along one dimension", _concat_shape,
     lambda *xs, dim: np.concatenate(xs, dim), family="moves")  # fmt: skip


def _rows_of_table(table: Array, index: Array, *, from_end: bool = False, zero: int | None = None) -> Array:
    """Return the rows of a table that indices name; index `zero` reads zeros. `from_end` only matters to the host,
    which otherwise refuses negative indices."""
    del from_end
    if zero is None:
        return table[index]
    reads_zeros = np.asarray(index) == zero
    return np.where(reads_zeros[..., None], table.dtype.type(0), table[np.where(reads_zeros, 0, index)])


core("embedding", "rows of a constant table by indices that are an input of the model",
     lambda table, index, **_: (*index, *table[1:]), _rows_of_table, family="index")  # fmt: skip
core("host", "an operator that the host runs, between two parts of the model", lambda *_, shape, **__: shape,
     lambda *xs, run, place, **_: run(*xs)[place], family="host")  # fmt: skip
