"""A package beside the model that it was compiled from (DARWINN 10).

Runs with values: real bytes go through input DMAs, device layout, output DMAs and relayout, and the uncompiled model
computes the values in between on the CPU; the device's instructions are never executed. Comparison: which tensors of
the twin are the package's layers, and whether weights, biases, names and shapes are equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.container import CUSTOM_CODE
from buda_emu.foreign.darwinn.dma import Descriptor, descriptors
from buda_emu.foreign.darwinn.idl import Executable, Layer
from buda_emu.foreign.darwinn.layouts import relayout, to_device, unrelayout
from buda_emu.foreign.darwinn.model import Package
from buda_emu.foreign.darwinn.reading import Source
from buda_emu.foreign.darwinn.rules.package import VARIABLE_SUFFIX
from buda_emu.foreign.darwinn.twin import Twin
from buda_emu.foreign.darwinn.twin.graph import Array, Graph, Operation, Tensor
from buda_emu.foreign.darwinn.twin.operators import OPERATORS
from buda_emu.foreign.darwinn.twin.run import feed
from buda_emu.support.errors import HostError, PackageError, UnsupportedError
from buda_emu.support.unmasked import refuse_masked_arrays


@dataclass(frozen=True, slots=True)
class Pairing:
    """Tensor numbers of inputs and outputs by the layer's name, and the differences between layers and tensors."""

    inputs: dict[str, int]
    outputs: dict[str, int]
    problems: tuple[str, ...]


def pair(executable: Executable, graph: Graph) -> Pairing:
    """Pair layers with tensors by name. Sizes, types, scales and zero points that differ are problems."""
    problems: list[str] = []
    inputs = _pair_layers(executable.inputs, False, graph, problems)
    outputs = _pair_layers(executable.outputs, True, graph, problems)
    return Pairing(inputs, outputs, tuple(problems))


def _pair_layers(layers: tuple[Layer, ...], outputs: bool, graph: Graph, problems: list[str]) -> dict[str, int]:
    """Return the numbers of the layers' tensors by layer name, and add to `problems` what differs. `outputs` says
    that the layers are outputs, which may be named after a variable."""
    numbers: dict[str, int] = {}
    for layer in layers:
        name = layer.name or ""
        number = graph.number_of(tensor_name(name, graph) if outputs else name)
        if number is None:
            problems.append(f"the model has no tensor {name!r}")
            continue
        numbers[name] = number
        difference = _difference(layer, graph.tensors[number])
        if difference:
            problems.append(f"{name!r}: {difference}")
    return numbers


def tensor_name(layer: str, graph: Graph) -> str:
    """Return the name of an output's tensor: for `X_variable_output` it is X, where X is a variable of the graph."""
    base = layer.removesuffix(VARIABLE_SUFFIX)
    number = graph.number_of(base)
    if base != layer and number is not None and graph.tensors[number].is_variable:
        return base
    return layer


def _difference(layer: Layer, tensor: Tensor) -> str:
    """Describe the first difference between a layer and its tensor; "" where they agree."""
    if layer.element is None or layer.element.dtype != tensor.type:
        return f"the package has {layer.element.name if layer.element else layer.data_type}, the model {tensor.type}"
    elements = layer.elements * layer.execution_count_per_inference
    if elements != prod(tensor.shape):
        return f"the package has {elements} elements, the model {prod(tensor.shape)}"
    if layer.numerics is None or len(tensor.scale) != 1:
        return "there is no one scale"
    scale = layer.numerics.dequantization_factor
    if np.float32(scale) != np.float32(tensor.scale[0]):
        return f"the package's scale is {scale}, the model's {tensor.scale[0]}"
    if layer.element.signed:
        flip = 1 << (8 * layer.element.size - 1)
    else:
        flip = 0
    host_zero = layer.numerics.zero_point - flip
    if host_zero != tensor.zero_point[0]:
        return f"the package's zero point is {host_zero}, the model's {tensor.zero_point[0]}"
    return ""


_BIASED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_BIAS_BYTES = 16  # four values are enough to find a bias
_EIGHT_BITS = ("int8", "uint8")


@dataclass(frozen=True, slots=True)
class Verification:
    """The figures of a comparison. `matches` means: layers agree, every weight byte is there often enough, every bias
    was found, and there was a weight or a bias to look for."""

    layers: bool
    weights: int
    """Bytes of 8-bit constants of the model's operators."""
    weights_missing: int
    """Bytes that the package's parameters have too few of."""
    biases: int
    biases_found: int
    differences: tuple[str, ...]
    """Differences between layers and tensors, one line each."""

    @property
    def is_vacuous(self) -> bool:
        """Return whether the model has no bytes between the package's layers that the package could hold."""
        return not self.weights and not self.biases

    @property
    def matches(self) -> bool:
        """Return whether the package was made from this model, as far as bytes can tell."""
        all_found = not self.weights_missing and self.biases_found == self.biases
        return self.layers and all_found and not self.is_vacuous


def verify(package: Package, model: "Twin | Source") -> Verification:
    """Compare a package with an uncompiled model.

    The order of weights on the device is not public: their bytes are counted, biases searched. Raises PackageError for
    bytes that are no model, HostError for a compiled model, OSError for a file that cannot be opened.
    """
    twin = _require_runnable_twin(model)
    pairing = pair(package.main, twin.graph)
    operations: list[Operation] = list(twin.graph.operations)
    if not pairing.problems:
        outputs = [tensor_name(name, twin.graph) for name in pairing.outputs]
        operations = twin.between(pairing.inputs, outputs)
    blobs = [bytes(executable.parameters) for executable in package.executables if executable.parameters]
    have = sum((_count_bytes(blob) for blob in blobs), np.zeros(256, np.int64))
    need = _weight_counts(twin.graph, operations)
    heads = _bias_heads(twin.graph, operations)
    return Verification(
        layers=not pairing.problems,
        weights=int(need.sum()),
        weights_missing=int(np.maximum(need - have, 0).sum()),
        biases=len(heads),
        biases_found=sum(any(head in blob for blob in blobs) for head in heads),
        differences=pairing.problems,
    )


def _require_runnable_twin(model: "Twin | Source") -> Twin:
    """Return an uncompiled model that runs. Raises HostError for a compiled one, whose operators stand in a package."""
    if isinstance(model, Twin):
        twin = model
    else:
        twin = Twin(model)
    if any(map(_is_device_operation, twin.graph.operations)):
        subject = str(model) if isinstance(model, (str, PathLike)) else "the model"
        raise HostError(
            f"{subject} is a compiled file, with an Edge TPU package in place of operators and weights: give the "
            "uncompiled .tflite that edgetpu_compiler made the package from"
        )
    return twin


def _weight_counts(graph: Graph, operations: list[Operation]) -> NDArray[Any]:
    """Return how often each value occurs among the bytes of the 8-bit constants that operators read, as the device
    holds them: it flips the sign bit of int8."""
    counts = np.zeros(256, np.int64)
    for number in _tensors_read(operations):
        tensor = graph.tensors[number]
        if tensor.constant is None or tensor.is_variable or tensor.type not in _EIGHT_BITS:
            continue
        tensor_counts = _count_bytes(tensor.constant.tobytes())
        counts += np.roll(tensor_counts, 128) if tensor.type == "int8" else tensor_counts
    return counts


def _bias_heads(graph: Graph, operations: list[Operation]) -> list[bytes]:
    """Return the first bytes of each bias that is a constant of int32."""
    heads: list[bytes] = []
    for number in _bias_numbers(operations):
        constant = graph.tensors[number].constant
        if constant is not None and constant.dtype == np.int32:
            heads.append(constant.tobytes()[:_BIAS_BYTES])
    return heads


def _count_bytes(data: bytes) -> NDArray[Any]:
    """Return how often each of the 256 byte values occurs."""
    return np.bincount(np.frombuffer(data, np.uint8), minlength=256).astype(np.int64)


def _tensors_read(operations: list[Operation]) -> list[int]:
    """Return the numbers of the tensors that operators read, constants and others, each once, in order."""
    numbers: dict[int, None] = {}
    for operation in operations:
        numbers |= dict.fromkeys(number for number in operation.inputs if number >= 0)
    return list(numbers)


def _bias_numbers(operations: list[Operation]) -> list[int]:
    """Return the numbers of the tensors that are biases, each once, in order."""
    codes = {code for code, operator in OPERATORS.items() if operator.name in _BIASED}
    biased = [operation for operation in operations if operation.code in codes and len(operation.inputs) > 2]
    numbers = (operation.inputs[2] for operation in biased)
    return list(dict.fromkeys(number for number in numbers if number >= 0))


def run(
    package: Package, inputs: Mapping[str, Any], *, reference: "Twin | Source | None" = None, whole: bool = False
) -> dict[str, Array]:
    """Return the outputs of one request, by the names of the package's layers, computed by the reference, never by
    the device.

    `inputs` are arrays by the names of the layers or of the model's inputs; states stay in the reference.
    `reference` is the uncompiled model. With `whole`, the operators that the compiler left on the CPU run, too, and
    the result is that of the compiled model. Bytes that no DMA moves arrive inverted, so that a gap in the DMA list
    shows in the outputs.

    Raises HostError without a reference, with one that does not fit, and for inputs that do not fit;
    UnsupportedError for a batch size other than 1 and, by name, for operators that the reference does not compute.
    """
    if reference is None:
        raise HostError(
            "run needs a reference: the uncompiled .tflite of this package. The Edge TPU's instructions are not "
            "public, so the package alone gives no outputs, and none are invented"
        )
    twin = _require_runnable_twin(reference)
    main = package.main
    if main.batch_size != 1:
        raise UnsupportedError(f"run of a package with batch size {main.batch_size}")
    pairing = pair(main, twin.graph)
    if pairing.problems:
        raise HostError(f"the reference does not fit the package: {pairing.problems[0]}")
    if whole:
        return _run_compiled_model(package, inputs, twin, pairing)
    return _run_device(main, _device_inputs(inputs, twin, pairing), twin, pairing)


def _compute_missing(arrays: Mapping[str, Array], missing: Sequence[str], twin: Twin) -> dict[str, Array]:
    """Return the missing inputs as the operators in front of the package compute them. Raises HostError for one that is
    not computed."""
    computed = twin.compute(arrays, twin.between(arrays, missing))
    absent = [name for name in missing if name not in computed]
    if absent and arrays:
        raise HostError(f"input {absent[0]!r} is neither given nor computed from {', '.join(arrays)}")
    if absent:
        names = ", ".join(missing)
        raise HostError(f"no input is given (--input {absent[0]}=FILE.npy); the package takes {names}")
    return {name: computed[name] for name in missing}


def _device_inputs(inputs: Mapping[str, Any], twin: Twin, pairing: Pairing) -> dict[str, Array]:
    """Return the arrays of the package's inputs: passed by the caller, from the reference's variables, or computed from
    inputs of the model by the operators in front of them."""
    arrays: dict[str, Array] = {}
    for name, array in inputs.items():
        refuse_masked_arrays(array, f"input {name}")
        if name in pairing.inputs:
            arrays[name] = feed(twin.graph.tensors[pairing.inputs[name]], array)
        else:
            arrays[name] = np.asarray(array)
    states: dict[str, Array] = {}
    for name, number in pairing.inputs.items():
        if number in twin.variables and name not in arrays:
            states[name] = twin.variables[number]
    missing = [name for name in pairing.inputs if name not in arrays and name not in states]
    if missing:
        arrays |= _compute_missing(arrays, missing, twin)
    return states | {name: arrays[name] for name in pairing.inputs if name in arrays}


def _run_device(main: Executable, inputs: Mapping[str, Array], twin: Twin, pairing: Pairing) -> dict[str, Array]:
    """Return the outputs of the main executable in the host's form for inputs in the host's form: both pass their
    DMAs and layouts, and the reference computes in between. Raises HostError for an output that it does not
    compute."""
    steps = descriptors(main)
    tensors = twin.graph.tensors
    arrived: dict[str, Array] = {}
    for layer in main.inputs:
        name = layer.name or ""
        array = _send_input(main, layer, inputs[name], steps)
        arrived[name] = array.reshape(tensors[pairing.inputs[name]].shape)
    tensor_names = {name: tensor_name(name, twin.graph) for name in pairing.outputs}
    values = twin.compute(arrived, twin.between(arrived, tensor_names.values()))
    outputs: dict[str, Array] = {}
    for layer in main.outputs:
        name = layer.name or ""
        if tensor_names[name] not in values:
            raise HostError(f"output {name!r} does not follow from the package's inputs in the reference")
        array = values[tensor_names[name]]
        outputs[name] = _receive_output(main, layer, array, steps).reshape(array.shape)
        if name != tensor_names[name]:  # a state: the host copies it into the input of the next run (DARWINN 4)
            twin.variables[pairing.outputs[name]] = outputs[name]
    return outputs


def _layer_moves(main: Executable, kind: str, layer: Layer, steps: list[Descriptor]) -> list[tuple[int, int]]:
    """Return offsets and sizes in bytes of a layer's DMAs, whose `kind` is "input" or "output"; the layer's full
    size where an incomplete list has none."""
    moves = [(step.offset, step.size) for step in steps if step.kind == kind and step.name == layer.name]
    if moves or main.fully_deterministic:
        return moves
    return [(0, layer.padded_bytes)]


def _transfer_bytes(source: bytes, moves: list[tuple[int, int]], size: int) -> Array:
    """Return the first `size` bytes of a buffer after its DMAs, `moves` (offset and length): every byte that none
    moves is inverted, so that it cannot be right by chance. Raises PackageError for a negative offset or length."""
    data = np.frombuffer(source, np.uint8)
    result = ~data[:size]
    for offset, length in moves:
        if offset < 0 or length < 0:
            raise PackageError(f"a DMA of {length} bytes at {offset} (D053, D054)")
        result[offset : offset + length] = data[offset : offset + length][: max(size - offset, 0)]
    return result


def _send_input(main: Executable, layer: Layer, array: Array, steps: list[Descriptor]) -> Array:
    """Return an input after its DMAs, among `steps`, turned back from the device's form into the host's."""
    assert layer.element is not None
    raw = to_device(layer, array)
    device_bytes = _transfer_bytes(raw, _layer_moves(main, "input", layer, steps), len(raw))
    executions = layer.execution_count_per_inference
    execution_bytes = layer.actual_bytes // executions
    data = np.ascontiguousarray(device_bytes.reshape(executions, -1)[:, :execution_bytes]).reshape(-1)
    if layer.element.signed:
        word = {1: np.uint8, 2: np.uint16}[layer.element.size]
        data = (data.view(word) ^ word(1 << (8 * layer.element.size - 1))).view(np.uint8)
    return data.view(layer.element.dtype)


def _receive_output(main: Executable, layer: Layer, array: Array, steps: list[Descriptor]) -> Array:
    """Return an output after the device's layout and its DMAs, among `steps`, in the host's form."""
    raw = unrelayout(layer, array)
    return relayout(layer, _transfer_bytes(raw, _layer_moves(main, "output", layer, steps), len(raw)))


def _run_compiled_model(package: Package, inputs: Mapping[str, Any], twin: Twin, pairing: Pairing) -> dict[str, Array]:
    """Return the outputs of the compiled model: CPU operators before, the device, CPU operators after."""
    if package.model is None:
        raise HostError("a bare package has no CPU operators: give the .tflite that holds it, or run without whole")
    compiled = Twin(package.model)
    operations = compiled.graph.operations
    at = next(operation.number for operation in operations if _is_device_operation(operation))
    before = compiled.between(inputs, _names_of_tensors(compiled, operations[at].inputs))
    values = compiled.compute(dict(inputs), [operation for operation in before if operation.number < at])
    outputs = _run_device(package.main, _input_arrays(values, inputs, twin, pairing), twin, pairing)
    tensors: dict[str, Any] = dict(values)
    for name, array in outputs.items():
        number = compiled.graph.number_of(name)
        if number is not None:
            tensors[name] = array.reshape(compiled.graph.tensors[number].shape)
        elif not name.endswith(VARIABLE_SUFFIX):
            raise PackageError(f"the compiled model has no tensor for output {name!r}")
    behind = [operation for operation in compiled.between(tensors, compiled.outputs) if operation.number > at]
    results = compiled.compute(tensors, behind)
    return {name: results[name] for name in compiled.outputs}


def _is_device_operation(operation: Operation) -> bool:
    """Return whether an operator is the custom operator that stands for the package."""
    return operation.code == tflite.CUSTOM and operation.custom == CUSTOM_CODE


def _input_arrays(values: Mapping[str, Any], inputs: Mapping[str, Any], twin: Twin, pairing: Pairing) -> dict[str, Any]:
    """Return the arrays of the package's inputs from computed values, or else from the reference's variables.
    `inputs`, the caller's, are for the message. Raises HostError for an input that is in neither."""
    arrays: dict[str, Any] = {}
    for name, number in pairing.inputs.items():
        if name in values:
            arrays[name] = values[name]
        elif number in twin.variables:
            arrays[name] = twin.variables[number]
        else:
            raise HostError(f"input {name!r} is neither given nor computed from {', '.join(inputs) or 'nothing'}")
    return arrays


def _names_of_tensors(twin: Twin, numbers: tuple[int, ...]) -> list[str]:
    """Return the names of tensors by their numbers; -1, an absent input, is left out."""
    return [twin.graph.tensors[number].name for number in numbers if number >= 0]
