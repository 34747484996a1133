"""Rules of the package as a whole and of its executables: types, tokens, pages (DARWINN 4, 8)."""

from collections import Counter
from collections.abc import Iterable
from math import isfinite

from buda_emu.foreign.darwinn.idl import (
    EXECUTABLE_TYPES,
    EXECUTION_ONLY,
    PAGE,
    PARAMETER_CACHING,
    STAND_ALONE,
    Executable,
    Layer,
)
from buda_emu.foreign.darwinn.model import BOOK
from buda_emu.foreign.darwinn.rules.subject import Subject, caching_and_main, finding
from buda_emu.support.checker import Finding
from buda_emu.support.checker.text import plural

CHIP = "beagle"
_PARAMETER_UNIT = 64  # bytes, of which every public package has a multiple (DARWINN 3)


@BOOK.rule(
    "D019", "error", "an executable's batch size is below 1", stage="E", source="DARWINN 4, 8",
    fix="compile the model again with a batch of at least 1",
)  # fmt: skip
def _batch_size(subject: Subject) -> Iterable[Finding]:
    """Refuse an executable with a batch size below 1."""
    for name, executable in subject.executables:
        if executable.batch_size < 1:
            yield finding(executable, "batch_size", name, f"batch_size is {executable.batch_size}")


@BOOK.rule(
    "D020", "error", "two executables have the same type", stage="E", source="DARWINN 4, 8",
    fix="keep one executable of each type",
)  # fmt: skip
def _same_type(subject: Subject) -> Iterable[Finding]:
    """Refuse two executables of the same type."""
    counts = Counter(executable.type for _, executable in subject.executables)
    for name, executable in subject.executables:
        if counts[executable.type] > 1:
            yield finding(
                executable, "type", name, f"{counts[executable.type]} executables are of type {executable.kind}"
            )
            return


@BOOK.rule(
    "D021", "error", "the types of the executables are not a combination that the driver knows", stage="E",
    unless=("D020",), source="DARWINN 4, 8",
    fix="one executable of any type, or PARAMETER_CACHING with EXECUTION_ONLY, or all three types",
)  # fmt: skip
def _type_combination(subject: Subject) -> Iterable[Finding]:
    """Refuse executables of types that the driver does not know in this combination."""
    package = subject.package
    types = {executable.type for executable in package.executables}
    count = len(package.executables) + package.unread
    legal = {2: {PARAMETER_CACHING, EXECUTION_ONLY}, 3: set(EXECUTABLE_TYPES)}
    if package.unread and count <= len(EXECUTABLE_TYPES):
        return  # one that does not verify has no type
    if count > 1 and types != legal.get(count):
        kinds = ", ".join(executable.kind for executable in package.executables)
        if package.unread:
            suffix = f" and {package.unread} more"
        else:
            suffix = ""
        yield finding(package.table, "serialized_multi_executable", "", f"the executables are {kinds}{suffix}")


@BOOK.rule(
    "D022", "warning", "the only executable is not of type STAND_ALONE", stage="W", source="DARWINN 4, 8",
    fix="compile the model again",
)  # fmt: skip
def _only_executable(subject: Subject) -> Iterable[Finding]:
    """Warn of an only executable that is not of type STAND_ALONE."""
    for name, executable in subject.executables:
        if len(subject.executables) + subject.package.unread == 1 and executable.type != STAND_ALONE:
            yield finding(executable, "type", name, f"the only executable is of type {executable.kind}")


@BOOK.rule(
    "D023", "warning", "with three executables the driver never caches parameters", stage="W", source="DARWINN 4, 8",
    unless=("D020", "D021"), fix="leave STAND_ALONE out, so that parameters are cached",
)  # fmt: skip
def _three_executables(subject: Subject) -> Iterable[Finding]:
    """Warn of three executables: the driver then runs STAND_ALONE and never caches parameters."""
    if len(subject.executables) == 3 and not subject.package.unread:
        yield finding(
            subject.package.table, "serialized_multi_executable", "", "three executables: only STAND_ALONE runs"
        )


@BOOK.rule(
    "D024", "warning", "package, executables or parameters are not aligned to pages", stage="W", source="DARWINN 1, 8",
    fix=f"write them at multiples of {PAGE} bytes, as `build` does",
)  # fmt: skip
def _page_alignment(subject: Subject) -> Iterable[Finding]:
    """Warn of a package, executable or parameters that are not aligned to pages."""
    package = subject.package
    if len(package.raw) % PAGE:
        yield finding(package.table, "", "", f"the package is {len(package.raw)} bytes long, no multiple of {PAGE}")
    for (name, executable), (start, length, parameters) in zip(subject.executables, package.places, strict=True):
        if length % PAGE:
            yield finding(executable, "", name, f"the executable is {length} bytes long, no multiple of {PAGE}")
        if start % PAGE:
            yield finding(
                executable, "", name, f"the executable begins at byte {start} of the package, no multiple of {PAGE}"
            )
        if parameters >= 0 and parameters % PAGE:
            message = f"the parameters begin at byte {parameters} of the package, no multiple of {PAGE}"
            yield finding(executable, "parameters", name, message)


@BOOK.rule(
    "D025", "warning", f"an executable is made for another chip than {CHIP}", stage="W", source="DARWINN 3, 8",
    fix="the driver does not look at the chip's name; compile for the Edge TPU",
)  # fmt: skip
def _chip(subject: Subject) -> Iterable[Finding]:
    """Warn of an executable for another chip than the Edge TPU."""
    for name, executable in subject.executables:
        if executable.chip != CHIP:
            yield finding(executable, "chip", name, f"the chip is {executable.chip!r}")


@BOOK.rule(
    "D026", "warning", "the package is signed, and nothing verifies the signature", stage="W", source="DARWINN 2, 8",
    fix="do not take the signature for a proof of anything: its algorithm is not public",
)  # fmt: skip
def _signature(subject: Subject) -> Iterable[Finding]:
    """Warn of a signed package, whose signature nothing verifies."""
    table = subject.package.table
    if table.signature:
        message = f"a signature of {plural(len(table.signature), 'byte')} with key {table.keypair_version}"
        yield finding(table, "signature", "", message)


@BOOK.rule(
    "D027", "warning", "virtual_chip_id is neither 0 nor -1, or there are packages for several chips without -1",
    stage="W", source="DARWINN 2, 8", fix="compile for one chip",
)  # fmt: skip
def _virtual_chip(subject: Subject) -> Iterable[Finding]:
    """Warn of a virtual_chip_id other than 0 and -1, and of packages for several chips without -1."""
    table = subject.package.table
    if table.virtual_chip_id not in (0, -1):
        yield finding(table, "virtual_chip_id", "", f"virtual_chip_id is {table.virtual_chip_id}")
    if table.multi_chip_package and table.virtual_chip_id != -1:
        count = len(table.multi_chip_package)
        yield finding(table, "multi_chip_package", "", f"{count} packages for several chips, which the driver ignores")


@BOOK.rule(
    "D030", "error", "the caching executable's token is 0: every request fails", stage="F", source="DARWINN 4, 8",
    fix="compile the model again",
)  # fmt: skip
def _caching_token(subject: Subject) -> Iterable[Finding]:
    """Refuse a caching executable whose token is 0."""
    for name, caching, _main in caching_and_main(subject):
        if not caching.parameter_caching_token:
            yield finding(caching, "parameter_caching_token", name, "the token is 0")


@BOOK.rule(
    "D031", "warning", "the executables' tokens differ, or the main one's is 0: parameters are cached again "
    "for every request", stage="W", source="DARWINN 4, 8", fix="compile the model again",
)  # fmt: skip
def _main_token(subject: Subject) -> Iterable[Finding]:
    """Warn of a main executable whose token is 0 or not that of the caching one."""
    for _name, caching, main in caching_and_main(subject):
        first = caching.parameter_caching_token
        second = main.parameter_caching_token
        if first != second or not second:
            message = f"the main executable's token is {second}, the caching one's {first}"
            yield finding(main, "parameter_caching_token", "", message)


@BOOK.rule(
    "D082", "warning", "parameters or a layer are meant for the chip's DRAM, which this chip does not have", stage="W",
    source="DARWINN 8", fix="compile for the Edge TPU",
)  # fmt: skip
def _dram(subject: Subject) -> Iterable[Finding]:
    """Warn of parameters or a layer for DRAM, which the chip does not have."""
    for name, executable in subject.executables:
        if executable.use_tpu_dram_for_parameters:
            yield finding(executable, "use_tpu_dram_for_parameters", name, "use_tpu_dram_for_parameters is set")
    for name, layer_name, layer in subject.layers:
        if layer.cache_on_dram:
            yield finding(layer, "cache_on_dram", f"{name}, {layer_name}", "cache_on_dram is set")


@BOOK.rule(
    "D083", "note", "the deprecated estimated_cycles differs from the 64-bit one", stage="N", source="DARWINN 8",
    fix="go by estimated_cycles_64bit",
)  # fmt: skip
def _estimated_cycles(subject: Subject) -> Iterable[Finding]:
    """Note a deprecated estimated_cycles that differs from the 64-bit one."""
    for name, executable in subject.executables:
        if executable.estimated_cycles and executable.estimated_cycles != executable.estimated_cycles_64bit:
            wide = executable.estimated_cycles_64bit
            message = f"estimated_cycles is {executable.estimated_cycles}, estimated_cycles_64bit {wide}"
            yield finding(executable, "estimated_cycles", name, message)


@BOOK.rule(
    "D084", "note", "an executable carries a serialized model", stage="N", source="DARWINN 2, 8",
    fix="leave it out if the source model is not to be handed on",
)  # fmt: skip
def _serialized_model(subject: Subject) -> Iterable[Finding]:
    """Note an executable that carries a serialized model."""
    for name, executable in subject.executables:
        if executable.serialized_model:
            yield finding(
                executable, "serialized_model", name, f"a model of {len(executable.serialized_model)} bytes is left in"
            )


@BOOK.rule(
    "D086", "note", "the caching executable has no parameters, or their length is not a multiple of 64", stage="N",
    source="DARWINN 3, 8", fix="compile the model again",
)  # fmt: skip
def _cached_parameters(subject: Subject) -> Iterable[Finding]:
    """Note a caching executable without parameters, or with a length of parameters that is no multiple of 64."""
    for name, executable in subject.executables:
        if executable.type == PARAMETER_CACHING and (
            not executable.parameters or executable.parameter_bytes % _PARAMETER_UNIT
        ):
            yield finding(executable, "parameters", name, f"{executable.parameter_bytes} bytes of parameters")


VARIABLE_SUFFIX = "_variable_output"
"""An output X_variable_output is copied into input X after each run (DARWINN 4)."""


@BOOK.rule(
    "D070", "error", "a layer has no name, or two inputs or outputs have the same", stage="F", source="DARWINN 8",
    fix="compile the model again",
)  # fmt: skip
def _layer_names(subject: Subject) -> Iterable[Finding]:
    """Refuse a layer without a name, and two inputs or outputs of one executable with the same name."""
    for name, executable in subject.executables:
        for kind, layers in (("input", executable.inputs), ("output", executable.outputs)):
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
    """Refuse an output without an OutputLayer."""
    for name, executable in subject.executables:
        for layer in {id(layer): layer for layer in executable.outputs}.values():
            if layer.output is None:
                yield finding(layer, "any_layer", f"{name}, output {layer.name!r}", "the layer carries no OutputLayer")


def _dimensions(layer: Layer) -> tuple[int, int, int]:
    """Return y, x and z of a layer."""
    return layer.y_dim, layer.x_dim, layer.z_dim


@BOOK.rule(
    "D072", "error", "a layer's dimension is below 1, or its size does not hold its elements", stage="F",
    source="DARWINN 7, 8", fix="compile the model again",
)  # fmt: skip
def _layer_sizes(subject: Subject) -> Iterable[Finding]:
    """Refuse a layer with a dimension below 1, or with fewer bytes than its elements take."""
    for name, layer_name, layer in subject.layers:
        y, x, z = _dimensions(layer)
        if min(y, x, z) < 1:
            yield finding(layer, "y_dim", f"{name}, {layer_name}", f"the dimensions are {y} x {x} x {z}")
        elif layer.element is not None and layer.size_bytes < y * x * z * layer.element.size:
            message = f"{layer.size_bytes} bytes for {y} x {x} x {z} elements of {layer.element.size}"
            yield finding(layer, "size_bytes", f"{name}, {layer_name}", message)


@BOOK.rule(
    "D073", "error", "a layer's data type is unknown", stage="F", source="DARWINN 2, 8",
    fix="check with a newer buda-emu, if the compiler is newer",
)  # fmt: skip
def _data_type(subject: Subject) -> Iterable[Finding]:
    """Refuse a layer of an unknown data type."""
    for name, layer_name, layer in subject.layers:
        if layer.element is None:
            yield finding(layer, "data_type", f"{name}, {layer_name}", f"data type {layer.data_type}")


@BOOK.rule(
    "D074", "warning", "a layer has no quantisation, or a factor that is not positive and finite", stage="W",
    source="DARWINN 7, 8", fix="values of this layer cannot be dequantised",
)  # fmt: skip
def _numerics(subject: Subject) -> Iterable[Finding]:
    """Warn of a layer without quantisation, or with a factor that is not positive and finite."""
    for name, layer_name, layer in subject.layers:
        if layer.numerics is None:
            yield finding(layer, "numerics", f"{name}, {layer_name}", "there is no quantisation")
            continue
        factor = layer.numerics.dequantization_factor
        if not (isfinite(factor) and factor > 0):
            yield finding(layer.numerics, "dequantization_factor", f"{name}, {layer_name}", f"the factor is {factor}")


@BOOK.rule(
    "D075", "error", "a layer's execution_count_per_inference is below 1", stage="F", source="DARWINN 7, 8",
    fix="compile the model again",
)  # fmt: skip
def _execution_count(subject: Subject) -> Iterable[Finding]:
    """Refuse a layer with fewer than 1 execution per inference."""
    for name, layer_name, layer in subject.layers:
        count = layer.execution_count_per_inference
        if count < 1:
            yield finding(layer, "execution_count_per_inference", f"{name}, {layer_name}", f"{count} executions")


@BOOK.rule(
    "D081", "error", "a layer's shape has an empty range, or not as many elements as its dimensions", stage="F",
    source="DARWINN 7, 8", fix="compile the model again",
)  # fmt: skip
def _layer_shape(subject: Subject) -> Iterable[Finding]:
    """Refuse a shape with an empty range, or with another number of elements than the dimensions have."""
    owners: dict[int, Executable] = {}
    for _, executable in subject.executables:
        for layer in (*executable.inputs, *executable.outputs):
            owners[id(layer)] = executable
    for name, layer_name, layer in subject.layers:
        if layer.shape is None:
            continue
        ranges = layer.shape.dimension or ()
        empty = next((number for number, (start, end) in enumerate(ranges) if start > end), None)
        if empty is not None:
            message = f"dimension {empty} goes from {ranges[empty][0]} to {ranges[empty][1]}"
            yield finding(layer.shape, "dimension", f"{name}, {layer_name}", message)
        elif layer.elements not in _legal_element_counts(layer, owners[id(layer)]):
            y, x, z = _dimensions(layer)
            message = f"the shape has {layer.elements} elements, the dimensions {y} x {x} x {z}"
            yield finding(layer.shape, "dimension", f"{name}, {layer_name}", message)


def _legal_element_counts(layer: Layer, executable: Executable) -> set[int]:
    """Return the numbers of elements that a shape may have: y * x * z, with slices also those of all batches."""
    elements = layer.y_dim * layer.x_dim * layer.z_dim
    if layer.slices is None:
        return {elements}
    return {elements, executable.batch_size * elements}


@BOOK.rule(
    "D085", "note", f"an output X{VARIABLE_SUFFIX} has no input X to be copied to", stage="N", source="DARWINN 4, 8",
    fix="nothing, if the output is not a state",
)  # fmt: skip
def _state_without_input(subject: Subject) -> Iterable[Finding]:
    """Note an output X_variable_output of an executable that has no input X to copy it to."""
    for name, executable in subject.executables:
        inputs = {layer.name for layer in executable.inputs}
        for layer in {id(layer): layer for layer in executable.outputs}.values():
            if not layer.name or not layer.name.endswith(VARIABLE_SUFFIX):
                continue
            state = layer.name.removesuffix(VARIABLE_SUFFIX)
            if state not in inputs:
                message = f"there is no input {state!r}"
                yield finding(layer, "name", f"{name}, output {layer.name!r}", message)
