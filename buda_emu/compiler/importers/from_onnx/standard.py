"""What the ONNX standard says of a node: whether it is valid, and its definition by other operators."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, starmap
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from buda_emu.compiler.graph.graph import Node, Shape
from buda_emu.compiler.importers.from_onnx.call import ONNX

TYPES: Final = {
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
}  # fmt: skip
"""Element types that the graph of a model may hold, by numpy's names."""
_SMALL: Final = 1024
"""Limit for the elements of an operand whose values may decide shapes."""


def _operands_by_name(node: Any, inputs: Sequence[Node | None]) -> dict[str, Node]:
    """Return the operands that a node has, without those that it leaves out."""
    return {name: operand for name, operand in zip(node.input, inputs, strict=True) if operand is not None}


def infer_results(node: Any, inputs: Sequence[Node | None], opset: Mapping[str, int]) -> dict[str, Any]:
    """Infer an onnx.TypeProto for each result by name, from the operands' types and small constants. Floats of any
    width count as float32, unless the standard requires equal types and only the real ones agree. Return an empty
    dictionary for operators that the standard does not know, and for branches and loops, which read values around them.

    Raise ValueError with onnx's message for a node that the standard forbids: wrong, unknown or missing attributes, too
    many operands, axes or shapes that do not fit.
    """
    schema = schema_of(node, opset)
    if schema is None or has_inner_graph(node):
        return {}
    operands = _operands_by_name(node, inputs)
    first_error: Exception | None = None
    for keep_width in (False, True):
        types = {name: _type_proto(operand, keep_width=keep_width) for name, operand in operands.items()}
        try:
            _check_node(node, schema, inputs, opset)
            results = onnx.shape_inference.infer_node_outputs(
                schema,
                node,
                types,
                _small_constants(operands),
                ir_version=onnx.IR_VERSION,
                opset_imports=list(starmap(helper.make_opsetid, opset.items())),
            )
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            first_error = first_error or error
        else:
            return {name: results[name] for name in node.output if name in results}
    shapes = ", ".join(str(list(operand.shape)) for operand in operands.values())
    raise ValueError(f"{_first_sentence(first_error)} (operands {shapes or 'none'})")


def _check_node(node: Any, schema: Any, inputs: Sequence[Node | None], opset: Mapping[str, int]) -> None:
    """Check a node against the standard. Raise onnx's ValidationError, or ValueError for operands of a wrong kind."""
    context: Any = onnx.checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = dict(opset)
    onnx.checker.check_node(node, context)
    _check_families(schema, inputs)


def _small_constants(operands: Mapping[str, Node]) -> dict[str, Any]:
    """Return the operands whose values may decide shapes, as onnx.TensorProtos by name."""
    constants = {name: operand.value for name, operand in operands.items() if operand.op == "constant"}
    return {name: numpy_helper.from_array(array, name) for name, array in constants.items() if array.size <= _SMALL}


def captured_names(node: Any) -> set[str]:
    """Return the names of values around a node that its branches or its loop read."""
    captured: set[str] = set()
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            defined = {value.name for value in (*graph.input, *graph.initializer)}
            defined |= set(chain.from_iterable(inner.output for inner in graph.node))
            read = set(chain.from_iterable((*inner.input, *captured_names(inner)) for inner in graph.node))
            captured |= (read | {value.name for value in graph.output}) - defined
    return captured


def static_shapes(types: Mapping[str, Any]) -> dict[str, Shape]:
    """Return the shapes of those onnx.TypeProtos, by name, that are tensors without an open size."""
    shapes = {name: static_dims(kind) for name, kind in types.items()}
    return {name: shape for name, shape in shapes.items() if shape is not None}


def _check_families(schema: Any, inputs: Sequence[Node | None]) -> None:
    """Raise ValueError if an operand is of another kind than the standard allows, such as a number in place of a truth
    value."""
    for place, operand in enumerate(inputs):
        formal = schema.inputs[min(place, len(schema.inputs) - 1)]
        element_types = sorted(_element_name(name) for name in formal.types)
        if operand is not None and type_family(operand.dtype) not in map(type_family, element_types):
            raise ValueError(f"operand {place} ({formal.name}) is {operand.dtype}, none of {', '.join(element_types)}")


def type_family(dtype: str) -> str:
    """Return the kind of an element type by numpy's name: "f" for floats, "i" for integers, "b" for truth values, else
    the name itself."""
    kind = dtype.rstrip("0123456789")
    return {"float": "f", "double": "f", "bfloat": "f", "int": "i", "uint": "i", "bool": "b"}.get(kind, dtype)


def _element_name(name: str) -> str:
    """Return the element type that a type of the standard names: "float" of "tensor(float)"."""
    return name.removeprefix("tensor(").removesuffix(")")


def has_inner_graph(node: Any) -> bool:
    """Return whether a node has graphs as attributes, as branches and loops have."""
    return any(
        attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for attribute in node.attribute
    )


def schema_of(node: Any, opset: Mapping[str, int]) -> Any | None:
    """Return the standard's declaration of an operator; None if this version of the standard does not have it."""
    try:
        return onnx.defs.get_schema(node.op_type, opset.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return None


def static_dims(kind: Any) -> Shape | None:
    """Return the shape of an onnx.TypeProto; None if it is no tensor or has an open size."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    if all(dim.HasField("dim_value") for dim in dims):
        return tuple(dim.dim_value for dim in dims)
    return None


def element_type(kind: Any) -> str:
    """Return numpy's name of the elements of an onnx.TypeProto, "" if it is no tensor, or the standard's number of an
    unknown type, as text."""
    number: int = kind.tensor_type.elem_type if kind.HasField("tensor_type") else 0
    try:
        if number:
            return np.dtype(helper.tensor_dtype_to_np_dtype(number)).name
        return ""
    except KeyError:
        return str(number)


def type_bytes(node: Node | None) -> bytes:
    """Return the type of a value as a serialised onnx.TypeProto, an empty type for None."""
    return (onnx.TypeProto() if node is None else _type_proto(node)).SerializeToString()


def _type_proto(node: Node, *, keep_width: bool = False) -> Any:
    """Return the onnx.TypeProto of a node. Floats count as float32 unless `keep_width`."""
    kind = np.dtype(node.dtype)
    if kind.kind == "f" and not keep_width:
        kind = np.dtype(np.float32)
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(kind), node.shape)


def _first_sentence(error: Exception | None) -> str:
    """Return the first line of onnx's error without its category."""
    text = str(error).partition("\n")[0]
    return text.removeprefix("[ShapeInferenceError] ").removeprefix("[TypeInferenceError] ")


def has_body(node: Any, opset: Mapping[str, int]) -> bool:
    """Return whether a handler or a function of the standard defines an operator."""
    schema = schema_of(node, opset)
    if schema is None:
        return False
    return node.op_type in ONNX or schema.has_function or schema.has_context_dependent_function


def find_body(node: Any, inputs: Sequence[Node | None], opset: Mapping[str, int]) -> Any | None:
    """Return the function body by which the standard defines an operator; None if it has none, or none for a node of
    this form."""
    schema = schema_of(node, opset)
    if schema is None:
        return None
    try:
        if schema.has_function:
            return schema.function_body
        if schema.has_context_dependent_function:
            types = [type_bytes(operand) for operand in inputs]
            body = onnx.FunctionProto()
            body.ParseFromString(schema.get_context_dependent_function(node.SerializeToString(), types))
            if body.node:
                return body
            return None
    except Exception:  # noqa: BLE001 - the builder of a body refuses in many ways what it was not made for
        return None
    return None


def instantiate_body(
    node: Any, body: Any, inputs: Sequence[Node | None], within: str, opset: Mapping[str, int]
) -> list[Any]:
    """Return the operators of a function body for one node: named after it, with its attributes bound, and without
    names of operands that are left out."""
    operands = dict(zip(body.input, inputs, strict=False))
    absent = {name for name in body.input if operands.get(name) is None}
    schema = schema_of(node, opset)
    if schema is None:
        standard = {}
    else:
        standard = {name: entry.default_value for name, entry in schema.attributes.items()}
    attributes = {name: entry for name, entry in standard.items() if entry.name}
    attributes |= {entry.name: entry for entry in (*body.attribute_proto, *node.attribute)}
    nodes: list[Any] = []
    for entry in body.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(entry)
        copy.name = f"{within}.{entry.op_type}"
        del copy.attribute[:]
        copy.attribute.extend(_bind_attributes(entry, attributes))
        for place, name in enumerate(entry.input):
            if name in absent:
                copy.input[place] = ""
        nodes.append(copy)
    return nodes


def _bind_attributes(operator: Any, node_attributes: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the attributes of an operator of a body: its own, then those that refer to attributes of the node."""
    yield from (attribute for attribute in operator.attribute if not attribute.ref_attr_name)
    for attribute in operator.attribute:
        if attribute.ref_attr_name and attribute.ref_attr_name in node_attributes:
            bound = onnx.AttributeProto()
            bound.CopyFrom(node_attributes[attribute.ref_attr_name])
            bound.name = attribute.name
            yield bound
