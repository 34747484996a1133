"""add, subtract, multiply, maximum, and the quantization family: ops of two operands, element by element (OPS 6.4,
6.5).
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from buda_emu.arithmetic.kernels.tiles import binary
from buda_emu.arithmetic.tensor.tilemap import Index
from buda_emu.emulator.ops.base import Implementation, Parallel, PlannedOp, Relu, Tiles, implements
from buda_emu.emulator.ops.common import (
    arrange_tiles,
    blank,
    items,
    operand_map,
    relu_arguments,
    require_operands,
    require_same_shape,
    unblanked_dims,
)
from buda_emu.spec.blocking import Shape


def multiply(a: Tiles, b: Tiles) -> Tiles:
    """Return a * b, but +0 where either has the bits of +0, even against infinity and NaN; -0 is not special (OPS
    5)."""
    positive_zero = (_is_zero(a) & ~np.signbit(a)) | (_is_zero(b) & ~np.signbit(b))
    with np.errstate(all="ignore"):
        return np.where(positive_zero, np.float32(0), a * b)


def maximum(a: Tiles, b: Tiles) -> Tiles:
    """Return a where a > b, else b: b where either is NaN, and for zeros of either sign (OPS 5)."""
    return np.where(a > b, a, b)


def _is_zero(values: Tiles) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return where values are zero, of either sign."""
    return values == 0


_KERNEL_CODES: Final = {
    "add": binary.ADD,
    "subtract": binary.SUBTRACT,
    "multiply": binary.MULTIPLY,
    "maximum": binary.MAXIMUM,
    "quantization": binary.SCALE_SHIFT,
    "requantization": binary.SCALE_SHIFT,
    "dequantization": binary.SHIFT_SCALE,
}
_REFERENCES: Final[dict[str, Callable[[Tiles, Tiles], Tiles]]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": multiply,
    "maximum": maximum,
}


@implements("add", "subtract", "multiply", "maximum")
class Binary(Implementation):
    """Ops out = f(in0, in1); the in-tile transpose flag turns input 0."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return the shape of both inputs, which must be equal. Raises ProgramError."""
        require_operands(call, 2)
        return require_same_shape(call)

    def compute(self, call: PlannedOp, a: Tiles, b: Tiles) -> Tiles:
        """Return the function of both operands, which are arranged already: float32[w, t, R, C, 32, 32]."""
        return _REFERENCES[call.type](a, b)

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the result by the definition in numpy, element by element on arranged operands, and multiply what
        lies outside the tile dims by 0."""
        with np.errstate(all="ignore"):
            result = self.compute(call, arrange_tiles(call, 0, inputs[0]), arrange_tiles(call, 1, inputs[1]))
        return blank(result, unblanked_dims(call))

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Compute the result by the kernel, without relu."""
        self.run_relu(call, inputs, None, out, parallel)

    def run_relu(
        self, call: PlannedOp, inputs: Sequence[Tiles], relu: Relu | None, out: Tiles, parallel: Parallel
    ) -> bool:
        """Compute the op, then `relu` if it is not None, in one kernel. Returns True: the caller need not apply
        relu."""
        fixed: _Fixed | None = call.fixed.get("binary")
        if fixed is None or fixed.relu != relu:
            fixed = call.fixed["binary"] = _fixed_arguments(call, relu)
        a = (inputs[0], *fixed.a)
        b = (inputs[1], *fixed.b)
        parallel(binary.binary_tiles, items(out), out, a, b, *fixed.others)
        return True


class _Fixed(NamedTuple):
    """The arguments of the kernel that are the same each time the op runs: everything but the sources of the
    operands."""

    relu: Relu | None
    a: tuple[Index, np.float32, int]
    b: tuple[Index, np.float32, int]
    others: tuple[tuple[int, np.float32], tuple[int, int], tuple[int, np.float32]]


def _fixed_arguments(call: PlannedOp, relu: Relu | None) -> _Fixed:
    """Return the kernel arguments that do not depend on data: operation and zero point, relu, and how operands are
    read."""
    operation = _KERNEL_CODES[call.type], np.float32(call.attributes.zero_point)
    others = operation, unblanked_dims(call), relu_arguments(relu)
    return _Fixed(relu, operand_map(call, 0), operand_map(call, 1), others)


@implements("quantization", "requantization", "dequantization")
class Quantization(Binary):
    """The quantization family: in0 * in1 + zero_point, or (in0 - zero_point) * in1 for dequantization; the product is
    that of `multiply`."""

    def compute(self, call: PlannedOp, a: Tiles, b: Tiles) -> Tiles:
        """Return the function of both operands, which are arranged already: float32[w, t, R, C, 32, 32]."""
        zero_point = np.float32(call.attributes.zero_point)
        if call.type == "dequantization":
            return multiply(a + -zero_point, b)
        return multiply(a, b) + zero_point
