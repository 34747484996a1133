"""Rules of layers: names, sizes, types, quantisation, shapes (DARWINN 7, 8)."""

from collections.abc import Iterable
from math import isfinite

from buda_emu.checker import Finding
from buda_emu.darwinn.book import BOOK
from buda_emu.darwinn.idl import Executable, Layer
from buda_emu.darwinn.rules.subject import Subject, finding

VARIABLE_SUFFIX = "_variable_output"
"""An output X_variable_output is copied into input X after each run (DARWINN 4)."""


@BOOK.rule(
    "D070", "error", "a layer has no name, or two inputs or outputs have the same", stage="F", source="DARWINN 8",
    fix="compile the model again",
)  # fmt: skip
def _names(subject: Subject) -> Iterable[Finding]:
    for name, item in subject.executables:
        for kind, layers in (("input", item.inputs), ("output", item.outputs)):
            seen: set[str] = set()
            for number, layer in enumerate(layers):
                if not layer.name:
                    yield finding(layer, "name", f"{name}, {kind} {number}", "the layer has no name")
                elif layer.name in seen:
                    yield finding(layer, "name", f"{name}, {kind} {number}", f"{layer.name!r} is there twice")
                seen.add(layer.name or "")


@BOOK.rule(
    "D071", "error", "an output does not carry an OutputLayer: the driver aborts", stage="F", source="DARWINN 8",
    fix="compile the model again",
)  # fmt: skip
def _output_layer(subject: Subject) -> Iterable[Finding]:
    for name, item in subject.executables:
        for layer in {id(layer): layer for layer in item.outputs}.values():
            if layer.output is None:
                yield finding(layer, "any_layer", f"{name}, output {layer.name!r}", "the layer carries no OutputLayer")


def _dimensions(layer: Layer) -> tuple[int, int, int]:
    return layer.y_dim, layer.x_dim, layer.z_dim


@BOOK.rule(
    "D072", "error", "a layer's dimension is below 1, or its size does not hold its elements", stage="F",
    source="DARWINN 7, 8", fix="compile the model again",
)  # fmt: skip
def _sizes(subject: Subject) -> Iterable[Finding]:
    for name, which, layer in subject.layers:
        y, x, z = _dimensions(layer)
        if min(y, x, z) < 1:
            yield finding(layer, "y_dim", f"{name}, {which}", f"the dimensions are {y} x {x} x {z}")
        elif layer.element is not None and layer.size_bytes < y * x * z * layer.element.size:
            message = f"{layer.size_bytes} bytes for {y} x {x} x {z} elements of {layer.element.size}"
            yield finding(layer, "size_bytes", f"{name}, {which}", message)


@BOOK.rule(
    "D073", "error", "a layer's data type is unknown", stage="F", source="DARWINN 2, 8",
    fix="check with a newer buda-emu, if the compiler is newer",
)  # fmt: skip
def _data_type(subject: Subject) -> Iterable[Finding]:
    for name, which, layer in subject.layers:
        if layer.element is None:
            yield finding(layer, "data_type", f"{name}, {which}", f"data type {layer.data_type}")


@BOOK.rule(
    "D074", "warning", "a layer has no quantisation, or a factor that is not positive and finite", stage="W",
    source="DARWINN 7, 8", fix="values of this layer cannot be dequantised",
)  # fmt: skip
def _numerics(subject: Subject) -> Iterable[Finding]:
    for name, which, layer in subject.layers:
        if layer.numerics is None:
            yield finding(layer, "numerics", f"{name}, {which}", "there is no quantisation")
            continue
        factor = layer.numerics.dequantization_factor
        if not (isfinite(factor) and factor > 0):
            yield finding(layer.numerics, "dequantization_factor", f"{name}, {which}", f"the factor is {factor}")


@BOOK.rule(
    "D075", "error", "a layer's execution_count_per_inference is below 1", stage="F", source="DARWINN 7, 8",
    fix="compile the model again",
)  # fmt: skip
def _executions(subject: Subject) -> Iterable[Finding]:
    for name, which, layer in subject.layers:
        count = layer.execution_count_per_inference
        if count < 1:
            yield finding(layer, "execution_count_per_inference", f"{name}, {which}", f"{count} executions")


@BOOK.rule(
    "D081", "error", "a layer's shape has an empty range, or not as many elements as its dimensions", stage="F",
    source="DARWINN 7, 8", fix="compile the model again",
)  # fmt: skip
def _shape(subject: Subject) -> Iterable[Finding]:
    batches = {id(layer): item for _, item in subject.executables for layer in (*item.inputs, *item.outputs)}
    for name, which, layer in subject.layers:
        if layer.shape is None:
            continue
        ranges = layer.shape.dimension or ()
        empty = next((number for number, (start, end) in enumerate(ranges) if start > end), None)
        if empty is not None:
            message = f"dimension {empty} goes from {ranges[empty][0]} to {ranges[empty][1]}"
            yield finding(layer.shape, "dimension", f"{name}, {which}", message)
        elif layer.elements not in _products(layer, batches[id(layer)]):
            y, x, z = _dimensions(layer)
            message = f"the shape has {layer.elements} elements, the dimensions {y} x {x} x {z}"
            yield finding(layer.shape, "dimension", f"{name}, {which}", message)


def _products(layer: Layer, item: Executable) -> set[int]:
    """Elements that a shape may have: y * x * z, with slices also those of all batches."""
    one = layer.y_dim * layer.x_dim * layer.z_dim
    return {one, item.batch_size * one} if layer.slices is not None else {one}


@BOOK.rule(
    "D085", "note", f"an output X{VARIABLE_SUFFIX} has no input X to be copied to", stage="N", source="DARWINN 4, 8",
    fix="nothing, if the output is not a state",
)  # fmt: skip
def _state(subject: Subject) -> Iterable[Finding]:
    for name, item in subject.executables:
        known = {layer.name for layer in item.inputs}
        for layer in {id(layer): layer for layer in item.outputs}.values():
            if layer.name and layer.name.endswith(VARIABLE_SUFFIX) and layer.name[: -len(VARIABLE_SUFFIX)] not in known:
                message = f"there is no input {layer.name[: -len(VARIABLE_SUFFIX)]!r}"
                yield finding(layer, "name", f"{name}, output {layer.name!r}", message)
