"""A model before it is read: versions that onnx knows, its own functions in place, sizes for its open dimensions, and
inferred shapes."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

import numpy as np
import onnx
from onnx import inliner

from buda_emu.compiler.graph.builder import MOST_ELEMENTS, printable_name
from buda_emu.compiler.graph.examples import Examples, in_order
from buda_emu.compiler.importers.from_onnx.standard import static_dims
from buda_emu.compiler.importers.operators import OpenSizes
from buda_emu.support.errors import HostError, UnsupportedError

_STANDARD: Final = "ai.onnx"
"""The domain of the standard's operators, which models also write as ""."""
_NEWEST: Final = {domain or _STANDARD: newest for domain, (_, newest) in onnx.defs.C.schema_version_map().items()}
MOST_VERSION: Final = (1 << 31) - 1
"""Limit for versions of domains that are not onnx's own: what its functions take."""
MOST_OPERATORS: Final = 1 << 17
"""Limit for the operators of a model after its own functions are inlined, since nested functions grow without bound."""


def prepare_model(model: Any, inputs: Examples, sizes: OpenSizes) -> Any:
    """Return an onnx.ModelProto with its functions inlined, open sizes bound and shapes inferred. Raise
    UnsupportedError for versions that the installed onnx does not know and for too many operators, HostError for
    versions that do not exist or contradict each other, and what onnx raises for a broken model."""
    _check_versions(model)
    return _infer_shapes(_bind_open_sizes(_inline_functions(model), inputs, sizes))


def _check_versions(model: Any) -> None:
    """Raise UnsupportedError for versions of the format or of its operators that are newer than the installed onnx,
    HostError for such as there are none, and for a domain with two versions."""
    if model.HasField("ir_version"):
        _check_version("ir_version", model.ir_version, onnx.IR_VERSION)
    versions: dict[str, int] = {}
    for entry in chain(model.opset_import, *(function.opset_import for function in model.functions)):
        name = printable_name(entry.domain) or _STANDARD
        _check_version(f"opset of {name}", entry.version, _NEWEST.get(name, MOST_VERSION))
    for entry in model.opset_import:
        name = entry.domain or _STANDARD
        if versions.setdefault(name, entry.version) != entry.version:
            raise HostError(
                f"compile: opset of {printable_name(name)}: {versions[name]} and {entry.version}: a model has one"
            )


def _check_version(subject: str, version: int, newest: int) -> None:
    """Raise HostError for a version below 1, UnsupportedError for one above the newest; `subject` says of what."""
    text = f"compile: {subject}: {version}: onnx {onnx.__version__} knows 1 to {newest}"
    if version < 1:
        raise HostError(text)
    if version > newest:
        raise UnsupportedError(text)


def _inline_functions(model: Any) -> Any:
    """Inline the model's own functions. Raise UnsupportedError if the result has too many operators."""
    if not model.functions:
        return model
    functions = {(function.domain, function.name, function.overload): function for function in model.functions}
    counts: dict[Any, int] = {}

    def operators_of_nodes(nodes: Iterable[Any]) -> int:
        """Return how many operators nodes, with the graphs in their attributes, become when all functions are
        inlined."""
        return sum(
            operators_of_call((node.domain, node.op_type, node.overload))
            + sum(operators_of_nodes(function.g.node) for function in node.attribute if function.HasField("g"))
            for node in nodes
        )

    def operators_of_call(key: Any) -> int:
        """Return how many operators a call becomes when it is inlined; an operator that is no function of the model is
        one. `key`: domain, name and overload."""
        if key not in functions:
            return 1
        if key not in counts:
            counts[key] = 0  # of one that calls itself, which onnx refuses
            counts[key] = operators_of_nodes(functions[key].node)
        return counts[key]

    if operators_of_nodes(model.graph.node) > MOST_OPERATORS:
        raise UnsupportedError(f"compile: {MOST_OPERATORS:,} operators, and more, with its own functions in place")
    return inliner.inline_local_functions(model)


def _set_open_sizes(value: Any, sizes: OpenSizes) -> None:
    """Write the sizes that were requested into the symbolic dimensions of an input of the model. Raise HostError for a
    size below 1."""
    for place, dim in enumerate(value.type.tensor_type.shape.dim):
        if not dim.HasField("dim_value"):
            size = sizes.of(value.name, place, dim.dim_param)
            if size is not None:
                dim.dim_value = size


def _bind_open_sizes(model: Any, inputs: Examples, sizes: OpenSizes) -> Any:
    """Return the model with symbolic sizes replaced by those of example inputs or those that were requested; the model
    itself if there are neither."""
    if inputs is None and not sizes.given:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    values = inputs_of(copy)
    for value in values:
        _set_open_sizes(value, sizes)
    examples = in_order(inputs, [value.name for value in values])
    for value, array in zip(values, examples or (), strict=False):
        shape = value.type.tensor_type.shape
        if static_dims(value.type) not in (None, np.shape(array)):
            _forget_output_shapes(copy)
        del shape.dim[:]
        for size in np.shape(array):
            shape.dim.add().dim_value = size
    return copy


def _forget_output_shapes(model: Any) -> None:
    """Forget the shapes of a model's outputs, which hold for the inputs that it states."""
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def inputs_of(model: Any) -> list[Any]:
    """Return the inputs that a call of the model gives: those without an initializer."""
    initializer_names = {entry.name for entry in model.graph.initializer}
    return [entry for entry in model.graph.input if entry.name not in initializer_names]


def _infer_shapes(model: Any) -> Any:
    """Return a model with the shapes of its values inferred; unchanged if it exceeds a gigabyte or an input has a size
    beyond any tensor."""
    if model.ByteSize() > 1 << 30:
        return model  # beyond what protobuf can hand over; exporters state the shapes
    sizes = (
        dim.dim_value for dim in chain.from_iterable(value.type.tensor_type.shape.dim for value in model.graph.input)
    )
    if max(sizes, default=0) > MOST_ELEMENTS:
        return model  # no tensor is as large, which is said below: onnx would take memory for it
    return onnx.shape_inference.infer_shapes(model, data_prop=True)
