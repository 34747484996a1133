"""A package with values: real bytes through input DMAs, device layout, output DMAs and relayout; what lies between is
computed by the uncompiled model on the CPU (DARWINN 10). The device's instructions are never executed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.container import CUSTOM_CODE
from buda_emu.foreign.darwinn.dma import Descriptor, descriptors
from buda_emu.foreign.darwinn.idl import Executable, Layer
from buda_emu.foreign.darwinn.layouts import relayout, to_device, unrelayout
from buda_emu.foreign.darwinn.model import Package
from buda_emu.foreign.darwinn.reading import Source
from buda_emu.foreign.darwinn.rules.package import VARIABLE_SUFFIX
from buda_emu.foreign.darwinn.twin import Twin
from buda_emu.foreign.darwinn.twin.graph import Array
from buda_emu.foreign.darwinn.twin.run import fed
from buda_emu.foreign.darwinn.verifying import Pairing, pair, tensor_name
from buda_emu.support.errors import HostError, PackageError, UnsupportedError
from buda_emu.support.unmasked import refuse_masked_arrays


def run(
    package: Package, inputs: Mapping[str, Any], *, reference: "Twin | Source | None" = None, whole: bool = False
) -> dict[str, Array]:
    """Outputs of one request, by the names of the package's layers, computed by the reference, never by the device.

    `inputs`: arrays by name, of the layers or of the model's inputs; states are kept in the reference. `reference`: the
    uncompiled model. `whole`: also run the operators that the compiler left on the CPU; the result is that of the
    compiled model. Every byte that no DMA moves arrives wrong.

    Raises HostError without a reference, with one that does not fit, and for inputs that do not fit; UnsupportedError,
    by name, for operators that the reference does not compute.
    """
    if reference is None:
        raise HostError(
            "run needs a reference: the uncompiled .tflite of this package. The Edge TPU's instructions are not "
            "public, so the package alone gives no outputs, and none are invented"
        )
    twin = reference if isinstance(reference, Twin) else Twin(reference)
    main = package.main
    if main.batch_size != 1:
        raise UnsupportedError(f"run of a package with batch size {main.batch_size}")
    pairing = pair(main, twin.graph)
    if pairing.problems:
        raise HostError(f"the reference does not fit the package: {pairing.problems[0]}")
    return (
        _whole(package, inputs, twin, pairing)
        if whole
        else _device(main, _before(inputs, twin, pairing), twin, pairing)
    )


def _before(inputs: Mapping[str, Any], twin: Twin, pairing: Pairing) -> dict[str, Array]:
    """What the package's inputs get: as given, from the reference's variables, or computed by what stands before."""
    tensors = twin.graph.tensors
    for name, array in inputs.items():
        refuse_masked_arrays(array, f"input {name}")
    given = {
        name: fed(tensors[pairing.inputs[name]], array) if name in pairing.inputs else np.asarray(array)
        for name, array in inputs.items()
    }
    states = {
        name: twin.variables[n] for name, n in pairing.inputs.items() if n in twin.variables and name not in given
    }
    missing = [name for name in pairing.inputs if name not in given and name not in states]
    if missing:
        computed = twin.compute(given, twin.between(given, missing))
        absent = [name for name in missing if name not in computed]
        if absent:
            raise HostError(f"input {absent[0]!r} is neither given nor computed from {', '.join(given) or 'nothing'}")
        given |= {name: computed[name] for name in missing}
    return states | {name: given[name] for name in pairing.inputs if name in given}


def _device(main: Executable, inputs: Mapping[str, Array], twin: Twin, pairing: Pairing) -> dict[str, Array]:
    """From host arrays to host arrays."""
    steps = descriptors(main)
    tensors = twin.graph.tensors
    arrived = {
        layer.name or "": _arrived(main, layer, inputs[layer.name or ""], steps).reshape(
            tensors[pairing.inputs[layer.name or ""]].shape
        )
        for layer in main.inputs
    }
    wanted = {name: tensor_name(name, twin.graph) for name in pairing.outputs}
    values = twin.compute(arrived, twin.between(arrived, wanted.values()))
    outputs: dict[str, Array] = {}
    for layer in main.outputs:
        name = layer.name or ""
        if wanted[name] not in values:
            raise HostError(f"output {name!r} does not follow from the package's inputs in the reference")
        array = values[wanted[name]]
        outputs[name] = _returned(main, layer, array, steps).reshape(array.shape)
        if name != wanted[name]:  # a state: the host copies it into the input of the next run (DARWINN 4)
            twin.variables[pairing.outputs[name]] = outputs[name]
    return outputs


def _moves(main: Executable, kind: str, layer: Layer, steps: list[Descriptor]) -> list[tuple[int, int]]:
    """Offsets and sizes of a layer's DMAs; the whole layer where a list that is not complete has none."""
    found = [(item.offset, item.size) for item in steps if item.kind == kind and item.name == layer.name]
    return found if found or main.fully_deterministic else [(0, layer.padded_bytes)]


def _moved(source: bytes, moves: list[tuple[int, int]], size: int) -> Array:
    """What arrives of a buffer: moved bytes as they are, all others as what they cannot be."""
    data = np.frombuffer(source, np.uint8)
    result = ~data[:size]
    for offset, length in moves:
        if offset < 0 or length < 0:
            raise PackageError(f"a DMA of {length} bytes at {offset} (D053, D054)")
        result[offset : offset + length] = data[offset : offset + length][: max(size - offset, 0)]
    return result


def _arrived(main: Executable, layer: Layer, array: Array, steps: list[Descriptor]) -> Array:
    """An input as the device has it, back in the host's form."""
    assert layer.element is not None
    raw = to_device(layer, array)
    there = _moved(raw, _moves(main, "input", layer, steps), len(raw))
    executions = layer.execution_count_per_inference
    one = layer.actual_bytes // executions
    data = np.ascontiguousarray(there.reshape(executions, -1)[:, :one]).reshape(-1)
    if layer.element.signed:
        word = {1: np.uint8, 2: np.uint16}[layer.element.size]
        data = (data.view(word) ^ word(1 << (8 * layer.element.size - 1))).view(np.uint8)
    return data.view(layer.element.dtype)


def _returned(main: Executable, layer: Layer, array: Array, steps: list[Descriptor]) -> Array:
    """An output through the device's layout and the DMAs."""
    raw = unrelayout(layer, array)
    return relayout(layer, _moved(raw, _moves(main, "output", layer, steps), len(raw)))


def _whole(package: Package, inputs: Mapping[str, Any], twin: Twin, pairing: Pairing) -> dict[str, Array]:
    """The compiled model: CPU operators before, the device, CPU operators after."""
    if package.model is None:
        raise HostError("a bare package has no CPU operators: give the .tflite that holds it, or run without whole")
    compiled = Twin(package.model)
    operations = compiled.graph.operations
    at = next(item.number for item in operations if item.code == tflite.CUSTOM and item.custom == CUSTOM_CODE)
    before = compiled.between(inputs, _names(compiled, operations[at].inputs))
    values = compiled.compute(dict(inputs), [item for item in before if item.number < at])
    states = {name: twin.variables[n] for name, n in pairing.inputs.items() if n in twin.variables}
    absent = [name for name in pairing.inputs if name not in values and name not in states]
    if absent:
        raise HostError(f"input {absent[0]!r} is neither given nor computed from {', '.join(inputs) or 'nothing'}")
    given = {name: values.get(name, states.get(name)) for name in pairing.inputs}
    outputs = _device(package.main, {n: a for n, a in given.items() if a is not None}, twin, pairing)
    known: dict[str, Any] = dict(values)
    for name, array in outputs.items():
        number = compiled.graph.named(name)
        if number is not None:
            known[name] = array.reshape(compiled.graph.tensors[number].shape)
        elif not name.endswith(VARIABLE_SUFFIX):
            raise PackageError(f"the compiled model has no tensor for output {name!r}")
    behind = [item for item in compiled.between(known, compiled.outputs) if item.number > at]
    results = compiled.compute(known, behind)
    return {name: results[name] for name in compiled.outputs}


def _names(twin: Twin, numbers: tuple[int, ...]) -> list[str]:
    return [twin.graph.tensors[number].name for number in numbers if number >= 0]
