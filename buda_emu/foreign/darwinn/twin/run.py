"""A model that runs: tensors are fed, operators are computed in order, variables keep their values."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.reading import Source
from buda_emu.foreign.darwinn.twin.graph import Array, Operation, Tensor, read_graph
from buda_emu.foreign.darwinn.twin.operators import OPERATORS, Call, TensorValue
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError, UnsupportedError


class Twin:
    """The uncompiled model of a package, from a path or bytes. Variables keep their values from run to run.

    Raises PackageError for bytes that are no TFLite model, OSError for a file that cannot be opened.
    """

    def __init__(self, source: "Source | tflite.Model") -> None:
        self.graph = read_graph(source)
        self.variables: dict[int, Array] = {}
        for number, tensor in enumerate(self.graph.tensors):
            if tensor.is_variable:
                self.variables[number] = _initial_value(tensor)

    @property
    def inputs(self) -> list[tuple[str, "np.dtype[Any]", tuple[int, ...]]]:
        """Name, type and shape of each input of the model."""
        tensors = [self.graph.tensors[number] for number in self.graph.inputs]
        return [(tensor.name, tensor.dtype, tensor.shape) for tensor in tensors]

    @property
    def outputs(self) -> list[str]:
        """Names of the model's outputs."""
        return [self.graph.tensors[number].name for number in self.graph.outputs]

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Compute the model up to the first custom operator and return every tensor by name.

        `feeds` holds each input of the model. Raises HostError for feeds that do not fit, UnsupportedError, by name,
        for an operator or variant that is not computed.
        """
        missing = [name for name, _, _ in self.inputs if name not in feeds]
        if missing:
            raise HostError(
                f"input {missing[0]!r} of the model is not fed; it has {', '.join(n for n, *_ in self.inputs)}"
            )
        operations = self.graph.operations
        first_custom = next((entry.number for entry in operations if entry.code == tflite.CUSTOM), None)
        return self.compute(feeds, operations[:first_custom])

    def compute(self, feeds: Mapping[str, Any], operations: Iterable[Operation]) -> dict[str, Array]:
        """Feed any tensors by name, compute operators in order, and return every fed or computed tensor by name.

        Raises HostError for a name that no tensor has, an array that does not fit, or a tensor that is neither fed
        nor computed; UnsupportedError, by name, for an operator or variant that is not computed.
        """
        values: dict[int, Array] = {}
        for name, array in feeds.items():
            number = self.graph.number_of(name)
            if number is None:
                names = [input_name for input_name, *_ in self.inputs]
                hint = near(name, names) or f"its inputs are {', '.join(names)}"
                raise HostError(f"the model has no tensor {name!r}: {hint}")
            values[number] = feed(self.graph.tensors[number], array)
            if self.graph.tensors[number].is_variable:
                self.variables[number] = values[number]
        for operation in operations:
            self._compute(operation, values)
        values |= self.variables
        return {self.graph.tensors[number].name: array for number, array in values.items()}

    def between(self, sources: Iterable[str], targets: Iterable[str]) -> list[Operation]:
        """Return the operators that lead from source tensors to target tensors, in order; constants and variables need
        no operator."""
        source_numbers = {number for number in map(self.graph.number_of, sources) if number is not None}
        needed = {number for number in map(self.graph.number_of, targets) if number is not None} - source_numbers
        backwards: list[Operation] = []
        for operation in reversed(self.graph.operations):
            if needed.intersection(operation.outputs) or self._changes(operation, needed):
                backwards.append(operation)
                needed -= set(operation.outputs)
                needed |= {number for number in operation.inputs if number >= 0} - source_numbers
        return backwards[::-1]

    def _changes(self, operation: Operation, needed: set[int]) -> bool:
        """Return whether an operator changes a variable that is needed."""
        return any(number in needed and number in self.variables for number in operation.inputs)

    def _compute(self, operation: Operation, values: dict[int, Array]) -> None:
        """Compute one operator and add its outputs to `values` by tensor number."""
        graph = self.graph
        declaration = OPERATORS.get(operation.code)
        if declaration is None:
            raise UnsupportedError(f"operator {operation.number}: {operation.name} is not computed")
        name = declaration.name
        call = Call(
            name=name,
            inputs=tuple(self._input_value(number, values, name) for number in operation.inputs),
            outputs=tuple(graph.tensors[number] for number in operation.outputs),
            options=operation.options,
            intermediates=tuple(graph.tensors[number] for number in operation.intermediates),
        )
        try:
            with np.errstate(invalid="raise"):  # the result of an invalid cast depends on the machine
                results = declaration.run(call)
            values.update(zip(operation.outputs, results, strict=True))
        except (ValueError, OverflowError, IndexError, FloatingPointError) as error:
            raise UnsupportedError(
                f"operator {operation.number}, {name}: its tensors do not go together: {error}"
            ) from error
        for variable, array in call.state.items():
            number = graph.number_of(variable)
            if number is not None and number in self.variables:
                self.variables[number] = array

    def _input_value(self, number: int, values: dict[int, Array], operator: str) -> TensorValue | None:
        """Return an input of an operator: a variable, a fed or computed tensor, or a constant; None for the number -1.
        Raises HostError for a tensor that is neither, UnsupportedError for one of a type that is not read."""
        if number < 0:
            return None
        tensor = self.graph.tensors[number]
        array = self.variables.get(number)
        if array is None:
            array = values.get(number, tensor.constant)
        if array is None and tensor.type not in tflite.TENSOR_TYPES.values():
            raise UnsupportedError(f"{operator}: type {tensor.type} of {tensor.name!r} is not computed")
        if array is None:
            raise HostError(f"{operator}: tensor {tensor.name!r} is neither fed nor computed")
        return TensorValue(tensor, array)


def feed(tensor: Tensor, array: Any) -> Array:
    """Return a caller's array for a tensor. Raises HostError where its type or its shape is another."""
    values = np.asarray(array)
    if values.dtype != tensor.dtype or values.shape != tensor.shape:
        raise HostError(
            f"tensor {tensor.name!r} is {tensor.type} of shape {list(tensor.shape)}, "
            f"not {values.dtype} of shape {list(values.shape)}"
        )
    return values


def _initial_value(tensor: Tensor) -> Array:
    """Return a variable before the first run, filled with its zero point. Raises UnsupportedError where the type
    cannot hold that."""
    try:
        return np.full(tensor.shape, tensor.zero_point[0] if tensor.zero_point else 0, tensor.dtype)
    except (OverflowError, ValueError, MemoryError) as error:
        raise UnsupportedError(f"variable {tensor.name!r} of {tensor.shape} {tensor.type}: {error}") from error
