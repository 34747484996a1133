"""Operators of a model that are left to the host: what it can compute, and the `host` op that stands for a node."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node, Shape
from buda_emu.compiler.importers.from_onnx.evaluator import make_evaluator, make_node_model
from buda_emu.compiler.importers.from_onnx.standard import TYPES, captured_names, element_type, static_shapes
from buda_emu.compiler.importers.operators import NotSupportedError

RANDOM: Final = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
"""Operators that give other values in each run; neither the host computes them, nor are they folded."""


class HostResults(NamedTuple):
    """Shape and element type of each result of a node for the host, by name."""

    shapes: dict[str, Shape]
    types: dict[str, str]


def may_leave_to_host(
    node: Any, model: Any, result_types: Mapping[str, Any], stated: Mapping[str, Shape | None]
) -> bool:
    """Return whether the host could compute a node, as far as types and sizes of its results tell. The parameters are
    those of `results_of_host`."""
    if node.op_type in RANDOM:
        return False
    try:
        results_of_host(node, model, result_types, stated)
    except NotSupportedError:
        return False
    return True


def results_of_host(
    node: Any, model: Any, result_types: Mapping[str, Any], stated: Mapping[str, Shape | None]
) -> HostResults:
    """Return what a node of a model gives on the host, from the types that the standard infers (`result_types`) and the
    shapes that the model states. Raise NotSupportedError for results whose type or size is not known."""
    results = [name for name in node.output if name]
    types = _types_of_results(results, model, result_types)
    inferred = static_shapes(result_types)
    shapes: dict[str, Shape] = {}
    for name in results:
        shape = inferred.get(name, stated.get(name))
        if shape is None or min(shape, default=0) < 0 or not types.get(name):
            raise NotSupportedError("on the host: of a size that only the values tell")
        shapes[name] = shape
    if unsupported := [types[name] for name in results if types[name] not in TYPES]:
        raise NotSupportedError(f"on the host: of type {unsupported[0]}")
    return HostResults(shapes, types)


def _types_of_results(results: Sequence[str], model: Any, inferred: Mapping[str, Any]) -> dict[str, str]:
    """Return the element types of results: those that the model declares, else the inferred ones."""
    declared = {value.name: value.type for value in (*model.graph.value_info, *model.graph.output)}
    protos = {**inferred, **declared}
    return {name: element_type(protos[name]) for name in results if name in protos}


def leave_to_host(
    b: Builder, node: Any, model: Any, values: Mapping[str, Node | None], results: HostResults, reason: str
) -> list[Node | None]:
    """Leave a node of a model to onnx's evaluator when the model runs and return its results; branches and loops take
    along the values of the model that they read. Raise NotSupportedError if the evaluator cannot compute it."""
    names = dict.fromkeys(name for name in (*node.input, *captured_names(node)) if name)
    operands = {name: operand for name in names if (operand := values.get(name)) is not None}
    signature = {name: (operand.shape, operand.dtype) for name, operand in operands.items()}
    node_model = make_node_model(node, signature, model)
    work = {
        "kind": node.op_type,
        "form": "onnx",
        "data": node_model.SerializeToString(),
        "run": make_evaluator(node_model),
        "why": reason,
    }
    nodes: dict[str, Node | None] = {}
    for place, (name, shape) in enumerate(results.shapes.items()):
        nodes[name] = b.emit("host", *operands.values(), dtype=results.types[name], place=place, shape=shape, **work)
    return [nodes.get(name) for name in node.output]
