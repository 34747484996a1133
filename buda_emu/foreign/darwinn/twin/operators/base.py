"""What an operator of the twin is, and what all of them ask."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from buda_emu.foreign.darwinn.flatbuffer import Table
from buda_emu.foreign.darwinn.tflite import ACTIVATIONS
from buda_emu.foreign.darwinn.tflite_names import BUILTIN_OPERATORS
from buda_emu.foreign.darwinn.twin.graph import Array, Tensor
from buda_emu.foreign.darwinn.twin.rounding import Ints, half_away
from buda_emu.support.errors import PackageError, UnsupportedError

T = TypeVar("T", bound=Table)


class Value(NamedTuple):
    """A tensor and what it holds."""

    tensor: Tensor
    array: Array


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One operator that is to be computed."""

    name: str
    inputs: tuple[Value | None, ...]
    outputs: tuple[Tensor, ...]
    options: Table | None
    intermediates: tuple[Tensor, ...] = ()
    state: dict[str, Array] = field(default_factory=dict[str, Array])
    """What variable tensors hold afterwards, by name."""

    def refuse(self, why: str) -> UnsupportedError:
        """The error for a variant that the twin does not compute."""
        out = self.outputs[0].name if self.outputs else ""
        return UnsupportedError(f"{self.name} ({out}): {why} is not computed")

    def input(self, number: int) -> Value:
        """An input that must be there."""
        value = self.inputs[number] if number < len(self.inputs) else None
        if value is None:
            raise PackageError(f"{self.name}: input {number} is absent")
        return value

    def optional(self, number: int) -> Value | None:
        """An input that may be absent."""
        return self.inputs[number] if number < len(self.inputs) else None

    def output(self, number: int = 0) -> Tensor:
        """An output."""
        if number >= len(self.outputs):
            raise PackageError(f"{self.name}: output {number} is absent")
        return self.outputs[number]

    def option(self, table: type[T]) -> T:
        """The operator's options; defaults where there are none."""
        if self.options is None:
            return table()
        if not isinstance(self.options, table):
            raise PackageError(f"{self.name} has the options of another operator, {type(self.options).__name__}")
        return self.options

    def types(self, tensors: Sequence[Tensor], *types: str) -> None:
        """Refuse any other type."""
        for tensor in tensors:
            if tensor.type not in types:
                raise self.refuse(f"type {tensor.type} of {tensor.name!r}")

    def quantised(self, tensor: Tensor) -> tuple[float, int]:
        """Scale and zero point of a tensor that has one of each."""
        if len(tensor.scale) != 1 or not (np.isfinite(tensor.scale[0]) and tensor.scale[0] > 0):
            raise self.refuse(f"{tensor.name!r} with {len(tensor.scale)} scales, or one that is not a positive number,")
        low, high = limits(tensor)
        if tensor.type in ("int8", "uint8") and not low <= tensor.zero_point[0] <= high:
            raise PackageError(f"{self.name}: zero point {tensor.zero_point[0]} of {tensor.name!r}")
        return tensor.scale[0], tensor.zero_point[0]

    def shaped(self, array: Array, number: int = 0) -> Array:
        """The array, if it has the shape and type that the graph says."""
        tensor = self.output(number)
        if array.shape != tensor.shape:
            raise PackageError(f"{self.name}: {tensor.name!r} comes out as {array.shape}, not {tensor.shape}")
        return array

    def clamped(self, values: Ints, act: int) -> Array:
        """Clamp to the output's type and activation, and convert."""
        tensor = self.output()
        low, high = self.bounds(tensor, act)
        return np.clip(values, low, high).astype(tensor.dtype)

    def bounds(self, tensor: Tensor, act: int) -> tuple[int, int]:
        """Lowest and highest value of an output (DARWINN_TWIN 3)."""
        low, high = limits(tensor)
        scale, zero = self.quantised(tensor)

        def real(value: float) -> int:
            return zero + int(half_away(np.float32(value) / np.float32(scale)))

        kind = ACTIVATIONS.get(act)
        if kind is None:
            raise self.refuse(f"activation {act}")
        if kind == "none":
            return low, high
        ends = {"relu": (0.0, None), "relu6": (0.0, 6.0), "relu_n1_to_1": (-1.0, 1.0)}[kind]
        return max(low, real(ends[0])), high if ends[1] is None else min(high, real(ends[1]))


def limits(tensor: Tensor) -> tuple[int, int]:
    """Lowest and highest value of an integer type."""
    info = np.iinfo(tensor.dtype)
    return int(info.min), int(info.max)


def constant(call: Call, number: int) -> Ints:
    """An input of integers that must be known beforehand, as int64."""
    value = call.input(number)
    if value.array.dtype.kind not in "iu":
        raise call.refuse(f"type {value.tensor.type} of input {number}")
    return value.array.astype(np.int64)


Function = Callable[[Call], list[Array]]


class Operator(NamedTuple):
    """A declaration: name, TFLite's code, what it computes in one line, types, function."""

    name: str
    code: int
    says: str
    types: str
    run: Function


OPERATORS: dict[int, Operator] = {}
"""By code; filled while the files of operators are imported, only read afterwards."""


def operator(code: int, types: str) -> Callable[[Function], Function]:
    """Decorator: declare an operator; its name stands in `BUILTIN_OPERATORS`, the function's docstring says what it
    computes."""

    def declare(function: Function) -> Function:
        OPERATORS[code] = Operator(
            name=BUILTIN_OPERATORS[code],
            code=code,
            says=" ".join((function.__doc__ or "").split()),
            types=types,
            run=function,
        )
        return function

    return declare


def windows(size: int, kernel: int, stride: int, dilation: int, same: bool) -> tuple[int, int]:
    """Outputs along a dimension, and how far the first window reaches before the input (DARWINN_TWIN 4)."""
    reach = (kernel - 1) * dilation
    if same:
        out = -(-size // stride)
        return out, max((out - 1) * stride + reach + 1 - size, 0) // 2
    return max((size - reach - 1 + stride) // stride, 0), 0
