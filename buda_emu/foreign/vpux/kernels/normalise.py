"""Kernels that reduce over axes, and those that normalise by what they reduced."""

import math
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.vpux.kernels import elementwise as el
from buda_emu.foreign.vpux.kernels.declare import Array, Call, Kernel, fail_op, family, logical_dim

Floats = NDArray[np.float64]


def softmax_along(x: Floats, dim: int, pad: int = 0) -> Floats:
    """Return the softmax over a dimension, whose last `pad` elements take no part and become 0. Raises ProgramError
    (X046) for more padding than elements."""
    if not 0 <= pad <= x.shape[dim]:
        fail_op(f"{pad} elements of padding in a dimension of {x.shape[dim]}")
    x = np.moveaxis(x, dim, -1)
    used = x[..., : x.shape[-1] - pad]
    result = np.zeros_like(x)
    if used.size:
        weights = el.exp(used - used.max(axis=-1, keepdims=True))
        result[..., : used.shape[-1]] = weights / ordered_sum(weights, (-1,))
    return np.moveaxis(result, -1, dim)


def ordered_sum(x: Floats, axes: tuple[int, ...]) -> Floats:
    """Return the sum over axes, which are kept with size 1. Elements are added in a fixed order, so that bits are the
    same on every machine."""
    all_axes = tuple(range(x.ndim))
    axes = tuple(axis % x.ndim for axis in axes)
    outer = [axis for axis in all_axes if axis not in axes]
    sizes = [x.shape[axis] for axis in outer]
    length = math.prod(x.shape[axis] for axis in axes)
    flat: Floats = x.transpose([*outer, *sorted(axes)]).reshape([*sizes, length])
    # pairs of halves: few roundings, and an order that does not depend on vector width
    while length > 1:
        half = length // 2
        rest = flat[..., 2 * half :]
        flat = np.concatenate([flat[..., :half] + flat[..., half : 2 * half], rest], axis=-1)
        length -= half
    if length == 0:
        flat = np.zeros([*sizes, 1])
    return flat[..., 0].reshape([1 if axis in axes else x.shape[axis] for axis in all_axes])


def _softmax(call: Call) -> Array:
    """Return the softmax along an axis, whose last `pad` elements become 0."""
    tensor = call.inputs[0]
    return softmax_along(tensor.floats, tensor.dim_of_axis(call.integer("axis")), call.integer("pad"))


def _log_softmax(call: Call) -> Array:
    """Return the logarithm of the softmax along an axis."""
    tensor = call.inputs[0]
    dim = tensor.dim_of_axis(call.integer("axis"))
    x = tensor.floats
    if not x.size:
        return x
    x = x - x.max(axis=dim, keepdims=True)
    return x - el.log(ordered_sum(el.exp(x), (dim,)))


def _mvn1(call: Call) -> Array:
    """Return x less its mean over all dimensions from 2 on, or from 1 on with `across`; with `variance` also divided by
    √(var + eps). Raises ProgramError (X046) where there are no such dimensions."""
    x = call.inputs[0].floats
    first = 1 if call.attributes["across"] else 2
    axes = tuple(range(first, x.ndim))
    if not axes:
        fail_op(f"mvn1 of {x.ndim} dimensions")
    if not x.size:
        return x
    count = int(np.prod([x.shape[axis] for axis in axes]))
    centred = x - ordered_sum(x, axes) / count
    if not call.attributes["variance"]:
        return centred
    return centred / np.sqrt(ordered_sum(centred * centred, axes) / count + call.number("eps"))


def _cum_sum(call: Call) -> Array:
    """Return the sums up to each element along an axis: from the end with `reverse`, without the element with
    `exclusive`."""
    tensor = call.inputs[0]
    dim = tensor.dim_of_axis(call.integer("axis"))
    x = tensor.values
    if call.attributes["reverse"]:
        x = np.flip(x, dim)
    result = np.cumsum(x, axis=dim)
    if call.attributes["exclusive"]:
        before = np.moveaxis(np.zeros_like(result), dim, 0)
        before[1:] = np.moveaxis(result, dim, 0)[:-1]
        result = np.moveaxis(before, 0, dim)
    if call.attributes["reverse"]:
        return np.flip(result, dim)
    return result


def _normalize_l2(call: Call) -> Array:
    """Return x divided by √(Σx² + eps), or by √max(Σx², eps) for mode 1, with the sum over logical axes. Raises
    ProgramError (X046) for another mode and for an axis that is named twice."""
    x = call.inputs[0].floats
    # logical, as the layer has them: the compiler hands them on unresolved, negative ones, too
    axes = tuple(logical_dim(axis, x.ndim) for axis in call.attributes["axes"])
    if len(set(axes)) != len(axes):
        fail_op(f"axes {list(call.attributes['axes'])} of {x.ndim} dimensions name one twice")
    mode = call.integer("mode")
    eps = call.number("eps")
    if mode not in (0, 1):
        fail_op(f"normalize_l2 mode {mode}: 0 adds, 1 takes the larger one")
    squares = ordered_sum(x * x, axes) if axes else x * x
    return x / np.sqrt(squares + eps if mode == 0 else np.maximum(squares, eps))


KERNELS: Final = family(
    "along axes",
    (
        *(
            Kernel(
                name=name,
                inputs=1,
                compute=_softmax,
                summary="softmax; the last pad elements take no part and become 0",
                attributes=("axis", "pad=0"),
                exact=False,
                keeps_shape=True,
            )
            for name in ("softmax", "softmaxFp32", "singleShaveSoftmax")
        ),
        Kernel(
            name="log_softmax",
            inputs=1,
            compute=_log_softmax,
            summary="ln softmax",
            attributes=("axis",),
            exact=False,
            keeps_shape=True,
        ),
        *(
            Kernel(
                name=name,
                inputs=1,
                compute=_mvn1,
                summary="(x - mean)/√(var + eps), or x - mean; over dimensions 2.., across: 1..",
                attributes=("across", "variance", "eps"),
                exact=False,
                keeps_shape=True,
            )
            for name in ("mvn1", "singleShaveMVN")
        ),
        Kernel(
            name="cum_sum",
            inputs=1,
            compute=_cum_sum,
            summary="sums up to each element",
            attributes=("axis", "exclusive", "reverse"),
            exact=False,
        ),
        Kernel(
            name="normalize_l2",
            inputs=1,
            compute=_normalize_l2,
            summary="x/√(Σx² + eps), mode 1: x/√max(Σx², eps); axes are logical, -1 the last",
            attributes=("eps", "mode", "n", "axes[n]"),
            exact=False,
        ),
    ),
)


Reduce = Callable[[Array, tuple[int, ...]], Array]


def _sum(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the sum over axes; of floats in a fixed order and with the axes kept."""
    if x.dtype.kind == "i":
        return x.sum(axis=axes)
    return ordered_sum(x, axes)


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the mean over axes, which are kept with size 1."""
    count = int(np.prod([x.shape[axis] for axis in axes]))
    return ordered_sum(x.astype(np.float64), axes) / count


_KINDS: Final[tuple[tuple[str, bool, str, Reduce], ...]] = (
    ("sum", False, "the sum", _sum),
    ("mean", False, "the mean", _mean),
    ("max", True, "the largest", lambda x, axes: x.max(axis=axes)),
    ("min", True, "the smallest", lambda x, axes: x.min(axis=axes)),
    ("prod", False, "the product", lambda x, axes: x.prod(axis=axes)),
    ("l1", False, "Σ|x|", lambda x, axes: _sum(np.abs(x), axes)),
    ("l2", False, "√Σx²", lambda x, axes: np.sqrt(_sum(x * x, axes).astype(np.float64))),
    ("and", True, "all are not 0", lambda x, axes: (x != 0).all(axis=axes)),
    ("or", True, "one is not 0", lambda x, axes: (x != 0).any(axis=axes)),
    ("logical_and", True, "all are not 0", lambda x, axes: (x != 0).all(axis=axes)),
    ("logical_or", True, "one is not 0", lambda x, axes: (x != 0).any(axis=axes)),
)


def _make_reduction(function: Reduce) -> Callable[[Call], Array]:
    """Return the definition of a kernel that reduces its input over the axes of a call by `function`."""

    def compute(call: Call) -> Array:
        """Reduce the input. Raises ProgramError (X046) for an axis that is named twice, a dimension without
        elements, and a result that does not fit the output."""
        tensor = call.inputs[0]
        axes = tuple(tensor.dim_of_axis(axis) for axis in call.attributes["axes"])
        if len(set(axes)) != len(axes):
            fail_op(f"axes {list(call.attributes['axes'])} name a dimension twice")
        x = tensor.values
        if any(x.shape[axis] == 0 for axis in axes):
            fail_op("a dimension without elements is reduced")
        return _reshape_result(np.asarray(function(x, axes)), call.shapes[0])

    return compute


def _reshape_result(result: Array, shape: tuple[int, ...]) -> Array:
    """Return reduced elements in the output's shape. Raises ProgramError (X046) where they do not fit it."""
    if result.size != int(np.prod(shape)):
        fail_op(f"{result.size} reduced elements do not fit an output of shape {list(shape)}")
    return result.reshape(shape)


def _reduction_kernels() -> Iterator[Kernel]:
    """Yield a kernel for each kind of reduction."""
    for name, exact, text, function in _KINDS:
        yield Kernel(
            name=f"reduce_{name}",
            inputs=1,
            compute=_make_reduction(function),
            summary=text,
            attributes=("keep", "n", "axes[n]"),
            exact=exact,
        )


REDUCTIONS: Final = family("reductions", tuple(_reduction_kernels()))
