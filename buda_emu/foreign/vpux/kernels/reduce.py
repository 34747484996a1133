"""Kernels that reduce over axes; the result takes the output's shape."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from buda_emu.foreign.vpux.kernels.declare import Array, Call, Kernel, fail_op, family
from buda_emu.foreign.vpux.kernels.normalise import ordered_sum

Reduce = Callable[[Array, tuple[int, ...]], Array]


def _sum(x: Array, axes: tuple[int, ...]) -> Array:
    if x.dtype.kind == "i":
        return x.sum(axis=axes)
    return ordered_sum(x, axes)


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
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
    def compute(call: Call) -> Array:
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
    if result.size != int(np.prod(shape)):
        fail_op(f"{result.size} reduced elements do not fit an output of shape {list(shape)}")
    return result.reshape(shape)


def _all() -> Iterator[Kernel]:
    for name, exact, text, function in _KINDS:
        yield Kernel(
            name=f"reduce_{name}",
            inputs=1,
            compute=_make_reduction(function),
            summary=text,
            attributes=("keep", "n", "axes[n]"),
            exact=exact,
        )


KERNELS: Final = family("reductions", tuple(_all()))
