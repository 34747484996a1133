"""Operators that the standard makes of others: their definitions, with the attributes and operands of a node."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_onnx.call import ONNX
from buda_emu.compiler.importers.from_onnx.standard import schema_of, type_bytes


def has_body(node: Any, opset: Mapping[str, int]) -> bool:
    """Whether the standard, or a handler, says what it is made of."""
    schema = schema_of(node, opset)
    if schema is None:
        return False
    return node.op_type in ONNX or schema.has_function or schema.has_context_dependent_function


def body_of(node: Any, inputs: Sequence[Node | None], opset: Mapping[str, int]) -> Any | None:
    """The operators that an operator is made of, where the standard says so."""
    schema = schema_of(node, opset)
    if schema is None:
        return None
    try:
        if schema.has_function:
            return schema.function_body
        if schema.has_context_dependent_function:
            types = [type_bytes(item) for item in inputs]
            body = onnx.FunctionProto()
            body.ParseFromString(schema.get_context_dependent_function(node.SerializeToString(), types))
            return body if body.node else None
    except Exception:  # noqa: BLE001 - the builder of a body refuses in many ways what it was not made for
        return None
    return None


def operators(node: Any, body: Any, inputs: Sequence[Node | None], within: str, opset: Mapping[str, int]) -> list[Any]:
    """Those of the body, named after what they are within; operands that are left out have no name."""
    given = dict(zip(body.input, inputs, strict=False))
    absent = {name for name in body.input if given.get(name) is None}
    schema = schema_of(node, opset)
    standard = {} if schema is None else {name: item.default_value for name, item in schema.attributes.items()}
    attributes = {name: item for name, item in standard.items() if item.name}
    attributes |= {item.name: item for item in (*body.attribute_proto, *node.attribute)}
    nodes: list[Any] = []
    for item in body.node:
        own = onnx.NodeProto()
        own.CopyFrom(item)
        own.name = f"{within}.{item.op_type}"
        del own.attribute[:]
        own.attribute.extend(_attributes(item, attributes))
        for place, name in enumerate(item.input):
            if name in absent:
                own.input[place] = ""
        nodes.append(own)
    return nodes


def _attributes(item: Any, given: Mapping[str, Any]) -> Iterator[Any]:
    """Of an operator of a body: its own, then those that it takes from the node."""
    yield from (attribute for attribute in item.attribute if not attribute.ref_attr_name)
    for attribute in item.attribute:
        if attribute.ref_attr_name and attribute.ref_attr_name in given:
            bound = onnx.AttributeProto()
            bound.CopyFrom(given[attribute.ref_attr_name])
            bound.name = attribute.name
            yield bound
