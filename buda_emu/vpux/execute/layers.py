"""Ops of functions without tasks that the design documents use: computed on logical arrays, in order (VPUX 5)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.vpux.execute.memory import Watch
from buda_emu.vpux.execute.values import load, rounded, store
from buda_emu.vpux.kernels.declare import impossible, logical_dim
from buda_emu.vpux.kernels.normalise import softmax_along
from buda_emu.vpux.model import Op
from buda_emu.vpux.program import Program, read_uses, written_uses

Array = NDArray[Any]


def compute(watch: Watch, program: Program, op: Op) -> None:
    """Do one of them. Raises ProgramError (X046) for operands that do not fit."""
    sources = [program.buffer(use) for use in read_uses(op)]
    targets = [program.buffer(use) for use in written_uses(op)]
    if not targets and op.results:
        targets = [program.buffers.get(op.results[0])]
    source, target = (items[0] if items else None for items in (sources, targets))
    if source is None or target is None:
        impossible(f"{op.name} needs an input and an output")
    if source.type.shape != target.type.shape:
        impossible(f"{op.name} turns shape {list(source.type.shape or ())} into {list(target.type.shape or ())}")
    with np.errstate(all="ignore"):
        result = _LAYERS[op.name.rpartition(".")[2]](op, load(watch, source))
    wanted = target.type.element
    assert wanted is not None
    store(watch, target, rounded(result, wanted))


def _whole(op: Op, name: str, default: int | None = None) -> int:
    """An attribute that is an integer, else the default."""
    found = op.attributes.get(name, default)
    if found is None:
        impossible(f"{op.name} has no {name}")
    if type(found) is not int:  # `true` is not a number either
        impossible(f"{op.name}: {name} is not an integer")
    return found


def _softmax(op: Op, values: Array) -> Array:
    # as lowered: the logical axis, from either side, and padSize as the kernel's pad (VPUX 5; npu_compiler, softmax)
    dim = logical_dim(_whole(op, "axisInd"), values.ndim, f"{op.name}: axisInd")
    return softmax_along(values.astype(np.float64), dim, _whole(op, "padSize", 0))


def _relu(_: Op, values: Array) -> Array:
    return np.maximum(values, np.zeros((), values.dtype))


def _same(_: Op, values: Array) -> Array:
    return values


_LAYERS: Final[Mapping[str, Callable[[Op, Array], Array]]] = MappingProxyType(
    {"SoftMax": _softmax, "ReLU": _relu, "Reorder": _same, "copy": _same}
)
