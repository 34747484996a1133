"""The operators of the ONNX standard and where each is computed, for `--ops` and the documentation."""

from collections.abc import Iterator, Mapping
from typing import Any

import onnx
from onnx import helper
from onnx.reference.ops import load_op

from buda_emu.compiler.importers.from_onnx.call import ONNX
from buda_emu.compiler.importers.from_onnx.reader import RANDOM, TYPES
from buda_emu.compiler.importers.operators import Place

_NAMES = {"float": "float32", "double": "float64"}
"""Element types that ONNX and numpy call by different names."""


def standard_operators() -> dict[str, Any]:
    """Return the newest declaration of each operator of the domain ai.onnx, without those that it withdrew."""
    newest: dict[str, Any] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        held = newest.get(schema.name)
        if schema.domain == "" and (held is None or held.since_version < schema.since_version):
            newest[schema.name] = schema
    return {name: newest[name] for name in sorted(newest) if not newest[name].deprecated}


def list_coverage() -> Iterator[tuple[str, Place, str]]:
    """Yield each operator, where it is computed, and how, or why it is refused. Only `compile_in_parts` uses the host
    for what the chip does not compute."""
    schemas = standard_operators()
    for name in schemas:
        yield name, *_locate_operator(name, schemas)


def _locate_operator(name: str, schemas: Mapping[str, Any]) -> tuple[Place, str]:
    """Return where an operator is computed, and how; for one that is refused, why."""
    schema = schemas[name]
    declared = ONNX.get(name)
    if declared is not None:
        return declared.place, declared.becomes.removeprefix("not supported: ").rstrip(".")
    if name in RANDOM:
        return "refused", "random numbers: give them as an input"
    if not all(_may_be_tensor(parameter) for parameter in (*schema.inputs, *schema.outputs)):
        return "refused", "of sequences, strings or optional values"
    if not schema.inputs:
        return "compiler", "a constant"
    return _locate_by_definition(name, schemas)


def _locate_by_definition(name: str, schemas: Mapping[str, Any]) -> tuple[Place, str]:
    """Return where an operator without a handler is computed, and how: by its definition in the standard, or by onnx's
    evaluator on the host; for one that neither computes, "refused" and why."""
    schema = schemas[name]
    parts = _function_operators(schema)
    if not parts and schema.has_context_dependent_function:
        return "chip", "made of other operators, as its attributes and operands tell, or else on the host"
    if parts and all(part == "Constant" or _locate_operator(part, schemas)[0] == "chip" for part in parts):
        return "chip", f"made of {', '.join(parts)}"
    try:
        load_op("", name, schema.since_version)
    except Exception as error:  # noqa: BLE001 - onnx says in several ways that its evaluator lacks an operator
        return "refused", f"onnx's evaluator: {error}"
    return "host", "onnx's evaluator"


def _function_operators(schema: Any) -> list[str]:
    """List the operators of which the standard composes an operator; the list is empty if that depends on the whole
    node."""
    if schema.has_function:
        body = schema.function_body
    else:
        body = onnx.FunctionProto()
    if not schema.has_function and schema.has_context_dependent_function:
        inputs, outputs = (
            [parameter.name for parameter in parameters] for parameters in (schema.inputs, schema.outputs)
        )
        floats = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None).SerializeToString()
        node = helper.make_node(schema.name, inputs, outputs).SerializeToString()
        body.ParseFromString(schema.get_context_dependent_function(node, [floats] * len(schema.inputs)))
    return sorted({node.op_type for node in body.node})


def _may_be_tensor(parameter: Any) -> bool:
    """Return whether an operand or result may be a tensor of an element type that models may have."""
    tensors = (word.removeprefix("tensor(").removesuffix(")") for word in parameter.types if word.startswith("tensor("))
    return any(_NAMES.get(word, word) in TYPES for word in tensors)
