"""The operators of the twin as declarations, and the checks that all of them share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from buda_emu.foreign.darwinn.flatbuffer import Table
from buda_emu.foreign.darwinn.tflite import ACTIVATIONS, BUILTIN_OPERATORS
from buda_emu.foreign.darwinn.twin.graph import Array, Tensor
from buda_emu.foreign.darwinn.twin.rounding import Ints, half_away
from buda_emu.support.errors import PackageError, UnsupportedError

T = TypeVar("T", bound=Table)


class TensorValue(NamedTuple):
    """A tensor of the graph with its elements."""

    tensor: Tensor
    array: Array


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One operator to compute, with its inputs, outputs and options."""

    name: str
    inputs: tuple[TensorValue | None, ...]
    outputs: tuple[Tensor, ...]
    options: Table | None
    intermediates: tuple[Tensor, ...] = ()
    state: dict[str, Array] = field(default_factory=dict[str, Array])
    """New elements of variable tensors by name, written by the operator's function."""

    def refuse(self, why: str) -> UnsupportedError:
        """Return the error for a variant that the twin does not compute; `why` names the variant."""
        out = self.outputs[0].name if self.outputs else ""
        return UnsupportedError(f"{self.name} ({out}): {why} is not computed")

    def input(self, number: int) -> TensorValue:
        """Return an input. Raises PackageError where it is absent."""
        if number < len(self.inputs):
            value = self.inputs[number]
        else:
            value = None
        if value is None:
            raise PackageError(f"{self.name}: input {number} is absent")
        return value

    def optional(self, number: int) -> TensorValue | None:
        """Return an input; None where it is absent."""
        if number >= len(self.inputs):
            return None
        return self.inputs[number]

    def output(self, number: int = 0) -> Tensor:
        """Return an output tensor. Raises PackageError where it is absent."""
        if number >= len(self.outputs):
            raise PackageError(f"{self.name}: output {number} is absent")
        return self.outputs[number]

    def option(self, table: type[T]) -> T:
        """Return the operator's options, defaults where there are none. Raises PackageError for options of another
        operator."""
        if self.options is None:
            return table()
        if not isinstance(self.options, table):
            raise PackageError(f"{self.name} has the options of another operator, {type(self.options).__name__}")
        return self.options

    def types(self, tensors: Sequence[Tensor], *types: str) -> None:
        """Raise UnsupportedError for a tensor whose type is none of `types`."""
        for tensor in tensors:
            if tensor.type not in types:
                raise self.refuse(f"type {tensor.type} of {tensor.name!r}")

    def scale_and_zero(self, tensor: Tensor) -> tuple[float, int]:
        """Return scale and zero point of a tensor that has one of each. Raises UnsupportedError for any other
        quantisation, PackageError for a zero point outside of an 8-bit type."""
        if len(tensor.scale) != 1 or not (np.isfinite(tensor.scale[0]) and tensor.scale[0] > 0):
            raise self.refuse(f"{tensor.name!r} with {len(tensor.scale)} scales, or one that is not a positive number,")
        low, high = limits(tensor)
        if tensor.type in ("int8", "uint8") and not low <= tensor.zero_point[0] <= high:
            raise PackageError(f"{self.name}: zero point {tensor.zero_point[0]} of {tensor.name!r}")
        return tensor.scale[0], tensor.zero_point[0]

    def check_shape(self, array: Array, number: int = 0) -> Array:
        """Return the array unchanged. Raises PackageError where its shape is not the one of the output in the graph."""
        tensor = self.output(number)
        if array.shape != tensor.shape:
            raise PackageError(f"{self.name}: {tensor.name!r} comes out as {array.shape}, not {tensor.shape}")
        return array

    def clamp(self, values: Ints, act: int) -> Array:
        """Return values clamped to the range of the output's type and activation, and converted to the type. `act` is
        TFLite's number of the activation."""
        tensor = self.output()
        low, high = self.bounds(tensor, act)
        return np.clip(values, low, high).astype(tensor.dtype)

    def bounds(self, tensor: Tensor, act: int) -> tuple[int, int]:
        """Return the lowest and the highest stored value that an output may have after its activation (DARWINN_TWIN
        3). `act` is TFLite's number of the activation. Raises UnsupportedError for an unknown one."""
        low, high = limits(tensor)
        scale, zero = self.scale_and_zero(tensor)

        def quantise(value: float) -> int:
            """Return the stored value of a real one at the output's scale and zero point."""
            return zero + int(half_away(np.float32(value) / np.float32(scale)))

        kind = ACTIVATIONS.get(act)
        if kind is None:
            raise self.refuse(f"activation {act}")
        if kind == "none":
            return low, high
        real_low, real_high = {"relu": (0.0, None), "relu6": (0.0, 6.0), "relu_n1_to_1": (-1.0, 1.0)}[kind]
        if real_high is not None:
            high = min(high, quantise(real_high))
        return max(low, quantise(real_low)), high


def limits(tensor: Tensor) -> tuple[int, int]:
    """Return the lowest and the highest value of a tensor's integer type."""
    info = np.iinfo(tensor.dtype)
    return int(info.min), int(info.max)


def constant(call: Call, number: int) -> Ints:
    """Return an input of integers, such as axes or paddings, as int64. Raises UnsupportedError for an input of
    another type."""
    value = call.input(number)
    if value.array.dtype.kind not in "iu":
        raise call.refuse(f"type {value.tensor.type} of input {number}")
    return value.array.astype(np.int64)


Function = Callable[[Call], list[Array]]


class Operator(NamedTuple):
    """A declared operator: name, TFLite's code, one line about its result, types, and the function that computes it."""

    name: str
    code: int
    says: str
    types: str
    run: Function


OPERATORS: dict[int, Operator] = {}
"""The operators by code; filled while their files are imported, only read afterwards."""


def operator(code: int, types: str) -> Callable[[Function], Function]:
    """Declare an operator by a decorator; its name is the one in `BUILTIN_OPERATORS`, the function's docstring is the
    line about its result."""

    def declare(function: Function) -> Function:
        """Add the function to OPERATORS and return it unchanged."""
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
    """Return the number of outputs along a dimension of `size` elements, and how far the first window reaches
    before the input (DARWINN_TWIN 4). `same`: padding SAME, else VALID."""
    reach = (kernel - 1) * dilation
    if same:
        out = -(-size // stride)
        return out, max((out - 1) * stride + reach + 1 - size, 0) // 2
    return max((size - reach - 1 + stride) // stride, 0), 0
