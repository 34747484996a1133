"""What the ONNX standard says about a single node: whether it is valid, and the shapes of its results."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from buda_emu.compiler.graph.graph import Array, Node, Shape

_SMALL: Final = 1024
"""Elements of operands whose values shapes may depend on."""


def told_of(node: Any, inputs: Sequence[Node | None], opset: Mapping[str, int]) -> dict[str, Any]:
    """An onnx.TypeProto for each result by name, as far as the operands' types and small constants tell; that of
    floats is float, but where only their own types agree. Raises ValueError in onnx's own words for a node that the
    standard does not have: attributes of another type, unknown or missing ones, too many operands, axes and shapes
    that do not fit. Nothing is said of operators that the standard does not know, and of branches and loops, which see
    values around them."""
    schema = schema_of(node, opset)
    if schema is None or has_graph(node):
        return {}
    context: Any = onnx.checker.C.CheckerContext()
    context.ir_version, context.opset_imports = onnx.IR_VERSION, dict(opset)
    given = {name: item for name, item in zip(node.input, inputs, strict=True) if item is not None}
    data = {name: item.value for name, item in given.items() if item.op == "constant" and item.value.size <= _SMALL}
    arrays = {name: numpy_helper.from_array(array, name) for name, array in data.items()}
    wrong: Exception | None = None
    for widths in ("as here", "their own"):
        types = {name: _type(item, own=widths == "their own") for name, item in given.items()}
        try:
            onnx.checker.check_node(node, context)
            _check_families(schema, inputs)
            told = onnx.shape_inference.infer_node_outputs(
                schema,
                node,
                types,
                arrays,
                ir_version=onnx.IR_VERSION,
                opset_imports=[helper.make_opsetid(*item) for item in opset.items()],
            )
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            wrong = wrong or error
        else:
            return {name: told[name] for name in node.output if name in told}
    shapes = ", ".join(str(list(item.shape)) for item in given.values())
    raise ValueError(f"{_sentence(wrong)} (operands {shapes or 'none'})")


def seen_by(node: Any) -> set[str]:
    """Names of values around a node that its branches or its loop read."""
    found: set[str] = set()
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            own = {item.name for item in (*graph.input, *graph.initializer)}
            own |= {name for inner in graph.node for name in inner.output}
            read = {name for inner in graph.node for name in (*inner.input, *seen_by(inner))}
            found |= (read | {item.name for item in graph.output}) - own
    return found


def shapes_of(told: Mapping[str, Any]) -> dict[str, Shape]:
    """Those that are known."""
    shapes = {name: dims_of(kind) for name, kind in told.items()}
    return {name: shape for name, shape in shapes.items() if shape is not None}


def _check_families(schema: Any, inputs: Sequence[Node | None]) -> None:
    """Raises ValueError where an operand is a number and a truth value is meant, and the like."""
    for place, item in enumerate(inputs):
        formal = schema.inputs[min(place, len(schema.inputs) - 1)]
        known = sorted(_plain(name) for name in formal.types)
        if item is not None and family(item.dtype) not in map(family, known):
            raise ValueError(f"operand {place} ({formal.name}) is {item.dtype}, none of {', '.join(known)}")


def family(dtype: str) -> str:
    """Of an element type by numpy's name: "f" of floats, "i" of integers, "b" of truth values, else the name."""
    kind = dtype.rstrip("0123456789")
    return {"float": "f", "double": "f", "bfloat": "f", "int": "i", "uint": "i", "bool": "b"}.get(kind, dtype)


def _plain(name: str) -> str:
    """tensor(float) as float."""
    return name.removeprefix("tensor(").removesuffix(")")


def has_graph(node: Any) -> bool:
    """Of branches and loops."""
    return any(item.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for item in node.attribute)


def schema_of(node: Any, opset: Mapping[str, int]) -> Any | None:
    """None for an operator that the standard does not have, or not in this version."""
    try:
        return onnx.defs.get_schema(node.op_type, opset.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return None


def dims_of(kind: Any) -> Shape | None:
    """Of an onnx.TypeProto; None where a size is open."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    return tuple(dim.dim_value for dim in dims) if all(dim.HasField("dim_value") for dim in dims) else None


def dtype_of(kind: Any) -> str:
    """numpy's name of an onnx.TypeProto's elements, "" for no tensor; the number of a type that there is not."""
    number: int = kind.tensor_type.elem_type if kind.HasField("tensor_type") else 0
    try:
        return np.dtype(helper.tensor_dtype_to_np_dtype(number)).name if number else ""
    except KeyError:
        return str(number)


def type_bytes(node: Node | None) -> bytes:
    """Of a value, as an onnx.TypeProto."""
    return (onnx.TypeProto() if node is None else _type(node)).SerializeToString()


def wrong_in_evaluator(
    node: Any, opset: Mapping[str, int], found: Sequence[Array], foreseen: Mapping[str, Shape]
) -> str:
    """Why what onnx's evaluator gives is not what the operator is; "" where nothing is known against it."""
    if node.op_type == "BatchNormalization" and opset.get(node.domain, 1) < 14:
        return "statistics of the operand instead of the given ones"
    for name, array in zip((name for name in node.output if name), found, strict=True):
        if foreseen.get(name, array.shape) != array.shape:
            return f"shape {list(array.shape)}, not {list(foreseen[name])}"
    return ""


def _type(node: Node, *, own: bool = False) -> Any:
    """Floats of other widths are float32 here, unless it is to be the value's own type."""
    kind = np.dtype(node.dtype)
    kind = np.dtype(np.float32) if kind.kind == "f" and not own else kind
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(kind), node.shape)


def _sentence(error: Exception | None) -> str:
    """Without the place in onnx's sources, and what it prints of the node."""
    text = str(error).partition("\n")[0]
    return text.removeprefix("[ShapeInferenceError] ").removeprefix("[TypeInferenceError] ")
