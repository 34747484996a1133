"""A model that runs: tensors are fed, operators are computed in order, variables are kept."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.reading import Source
from buda_emu.foreign.darwinn.twin.graph import Array, Operation, Tensor, read_graph
from buda_emu.foreign.darwinn.twin.operators import OPERATORS, Call, Value
from buda_emu.support.errors import HostError, UnsupportedError


class Twin:
    """The uncompiled model of a package, from a path or bytes. Variables keep their values from run to run.

    Raises PackageError for what is not a TFLite model, OSError for a file that cannot be opened.
    """

    def __init__(self, source: "Source | tflite.Model") -> None:
        self.graph = read_graph(source)
        self.variables: dict[int, Array] = {
            number: _initial(item) for number, item in enumerate(self.graph.tensors) if item.is_variable
        }

    @property
    def inputs(self) -> list[tuple[str, "np.dtype[Any]", tuple[int, ...]]]:
        """Name, type and shape of each input of the model."""
        return [(item.name, item.dtype, item.shape) for item in map(self.graph.tensors.__getitem__, self.graph.inputs)]

    @property
    def outputs(self) -> list[str]:
        """Names of the model's outputs."""
        return [self.graph.tensors[number].name for number in self.graph.outputs]

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Compute the model, up to the first custom operator: every tensor by name.

        `feeds`: each input of the model. Raises HostError for feeds that do not fit, UnsupportedError, by name, for an
        operator or variant that is not computed.
        """
        missing = [name for name, _, _ in self.inputs if name not in feeds]
        if missing:
            raise HostError(
                f"input {missing[0]!r} of the model is not fed; it has {', '.join(n for n, *_ in self.inputs)}"
            )
        first_custom = next((item.number for item in self.graph.operations if item.code == tflite.CUSTOM), None)
        return self.compute(feeds, self.graph.operations[:first_custom])

    def compute(self, feeds: Mapping[str, Any], operations: Iterable[Operation]) -> dict[str, Array]:
        """Feed any tensors by name and compute some operators in order; every tensor that is known then, by name."""
        values: dict[int, Array] = {}
        for name, array in feeds.items():
            number = self.graph.named(name)
            if number is None:
                raise HostError(f"the model has no tensor {name!r}")
            values[number] = fed(self.graph.tensors[number], array)
            if self.graph.tensors[number].is_variable:
                self.variables[number] = values[number]
        for operation in operations:
            self._compute(operation, values)
        known = {**values, **self.variables}
        return {self.graph.tensors[number].name: array for number, array in known.items()}

    def between(self, given: Iterable[str], wanted: Iterable[str]) -> list[Operation]:
        """The operators that lead from some tensors to others, in order; constants and variables are given, too."""
        known = {number for number in map(self.graph.named, given) if number is not None}
        needed = {number for number in map(self.graph.named, wanted) if number is not None} - known
        found: list[Operation] = []
        for operation in reversed(self.graph.operations):
            if needed.intersection(operation.outputs) or self._changes(operation, needed):
                found.append(operation)
                needed -= set(operation.outputs)
                needed |= {number for number in operation.inputs if number >= 0} - known
        return found[::-1]

    def _changes(self, operation: Operation, needed: set[int]) -> bool:
        """Whether an operator changes a variable that is wanted."""
        return any(number in needed and number in self.variables for number in operation.inputs)

    def _compute(self, operation: Operation, values: dict[int, Array]) -> None:
        graph = self.graph
        known = OPERATORS.get(operation.code)
        if known is None:
            raise UnsupportedError(f"operator {operation.number}: {operation.name} is not computed")
        inputs = tuple(self._value(number, values, known.name) for number in operation.inputs)
        call = Call(
            name=known.name,
            inputs=inputs,
            outputs=tuple(graph.tensors[number] for number in operation.outputs),
            options=operation.options,
            intermediates=tuple(graph.tensors[number] for number in operation.intermediates),
        )
        try:
            with np.errstate(invalid="raise"):  # what such a cast gives depends on the machine
                results = known.run(call)
            values.update(zip(operation.outputs, results, strict=True))
        except (ValueError, OverflowError, IndexError, FloatingPointError) as error:
            raise UnsupportedError(
                f"operator {operation.number}, {known.name}: its tensors do not go together: {error}"
            ) from error
        for name, array in call.state.items():
            number = graph.named(name)
            if number is not None and number in self.variables:
                self.variables[number] = array

    def _value(self, number: int, values: dict[int, Array], what: str) -> Value | None:
        if number < 0:
            return None
        tensor = self.graph.tensors[number]
        array = self.variables.get(number)
        array = values.get(number, tensor.constant) if array is None else array
        if array is None and tensor.type not in tflite.TENSOR_TYPES.values():
            raise UnsupportedError(f"{what}: type {tensor.type} of {tensor.name!r} is not computed")
        if array is None:
            raise HostError(f"{what}: tensor {tensor.name!r} is neither fed nor computed")
        return Value(tensor, array)


def fed(tensor: Tensor, array: Any) -> Array:
    """An array as a tensor takes it. Raises HostError for another type or number of elements."""
    given = np.asarray(array)
    if given.dtype != tensor.dtype or given.shape != tensor.shape:
        raise HostError(
            f"tensor {tensor.name!r} is {tensor.type} of shape {list(tensor.shape)}, "
            f"not {given.dtype} of shape {list(given.shape)}"
        )
    return given


def _initial(tensor: Tensor) -> Array:
    """A variable as it is before the first run: its zero point. Raises UnsupportedError where it has none such."""
    try:
        return np.full(tensor.shape, tensor.zero_point[0] if tensor.zero_point else 0, tensor.dtype)
    except (OverflowError, ValueError, MemoryError) as error:
        raise UnsupportedError(f"variable {tensor.name!r} of {tensor.shape} {tensor.type}: {error}") from error
