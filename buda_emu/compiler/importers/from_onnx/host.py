"""Operators of a model that are left to the host: what it can compute, and the `host` op that stands for a node."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import onnx

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Array, Node, Shape
from buda_emu.compiler.importers.from_onnx.evaluator import find_shape_fault, make_evaluator, make_node_model
from buda_emu.compiler.importers.from_onnx.standard import (
    TYPES,
    captured_names,
    element_type,
    has_inner_graph,
    static_shapes,
)
from buda_emu.compiler.importers.operators import NotSupportedError

SIZE_BY_VALUES: Final = "on the host: of a size that only the values tell"
"""The reason why the host cannot compute an operator between two parts of the device."""
RANDOM: Final = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
"""Operators that give other values in each run: they are neither folded nor left to the host."""
MOST_TRIED: Final = 1 << 13
"""Limit for the elements of operands and results of an operator that is tried when the model is compiled: GridSample by
cubics, the slowest one of the evaluator, takes 0.3 ms for each element of its result."""


class _Results(NamedTuple):
    """Shape and element type of each result of a node for the host, by name."""

    shapes: dict[str, Shape]
    types: dict[str, str]


class Foreseen(NamedTuple):
    """The results of a node before it is computed, by name: the types that the standard infers, and
    the shapes that the model states."""

    inferred: Mapping[str, Any]
    stated: Mapping[str, Shape | None]


class HostOperators:
    """The operators of a model that are left to the host, as `host` ops of its graph."""

    def __init__(self, b: Builder, model: Any) -> None:
        self._b = b
        self._model = model
        self._tried: set[bytes] = set()  # operators that the evaluator computed

    def may_compute(self, node: Any, foreseen: Foreseen) -> bool:
        """Return whether the host could compute a node, as far as types and sizes of its results tell."""
        if node.op_type in RANDOM:
            return False
        try:
            self._foreseen_results(node, foreseen)
        except NotSupportedError:
            return False
        return True

    def leave(
        self, node: Any, values: Mapping[str, Node | None], foreseen: Foreseen, reason: str = "asked for"
    ) -> list[Node | None]:
        """Leave a node to the host: add `host` ops, for which onnx's evaluator runs with the model, and return its
        results, None for those without a name. Branches and loops take along the values of the model that they read.
        `reason` is shown to the user. Raise NotSupportedError for results whose type or size is not known, and where
        the evaluator cannot compute the node."""
        names = dict.fromkeys(name for name in (*node.input, *captured_names(node)) if name)
        operands = {name: operand for name in names if (operand := values.get(name)) is not None}
        results = self._foreseen_results(node, foreseen)
        signature = {name: (operand.shape, operand.dtype) for name, operand in operands.items()}
        node_model = make_node_model(node, signature, self._model)
        run = make_evaluator(node_model)
        if _allows_trial(node, list(operands.values()), results):
            self._try_evaluator(node, list(operands.values()), run, static_shapes(foreseen.inferred))
        work = {
            "kind": node.op_type,
            "form": "onnx",
            "data": node_model.SerializeToString(),
            "run": run,
            "why": reason,
        }
        nodes: dict[str, Node | None] = {}
        for place, (name, shape) in enumerate(results.shapes.items()):
            nodes[name] = self._b.emit(
                "host", *operands.values(), dtype=results.types[name], place=place, shape=shape, **work
            )
        return [nodes.get(name) for name in node.output]

    def _foreseen_results(self, node: Any, foreseen: Foreseen) -> _Results:
        """Return shape and element type of each result that the host will compute of a node. Raises NotSupportedError
        for a result whose type or size is not known before, or whose type a graph cannot hold."""
        results = [name for name in node.output if name]
        types = self._result_types(results, foreseen.inferred)
        inferred = static_shapes(foreseen.inferred)
        shapes: dict[str, Shape] = {}
        for name in results:
            shape = inferred.get(name, foreseen.stated.get(name))
            if shape is None or min(shape, default=0) < 0 or not types.get(name):
                raise NotSupportedError(SIZE_BY_VALUES)
            shapes[name] = shape
        if unsupported := [types[name] for name in results if types[name] not in TYPES]:
            raise NotSupportedError(f"on the host: of type {unsupported[0]}")
        return _Results(shapes, types)

    def _result_types(self, results: Sequence[str], inferred: Mapping[str, Any]) -> dict[str, str]:
        """Return the element types of results: those that the model declares, else the inferred ones."""
        declared = {value.name: value.type for value in (*self._model.graph.value_info, *self._model.graph.output)}
        protos = {**inferred, **declared}
        return {name: element_type(protos[name]) for name in results if name in protos}

    def _try_evaluator(
        self, node: Any, operands: Sequence[Node], run: Callable[..., list[Array]], foreseen: Mapping[str, Shape]
    ) -> None:
        """Let the evaluator compute a node of constants and made-up values. Raises NotSupportedError if it fails for
        zeros and for ones, since then it is not the values that it refuses, or gives other shapes than the standard
        infers (`foreseen`)."""
        key = _content_of_call(node, operands)
        if key in self._tried:
            return
        first_error: NotSupportedError | None = None
        for filler in (0, 1):
            try:
                arrays = run(*[_value_or_filler(operand, filler) for operand in operands])
            except MemoryError:
                return  # which says nothing about the operator
            except NotSupportedError as error:
                first_error = first_error or error
                continue
            if fault := find_shape_fault(node, arrays, foreseen):
                raise NotSupportedError(f"on the host: {fault}")
            self._tried.add(key)
            return
        raise NotSupportedError(f"on the host: {first_error}")


def _allows_trial(node: Any, operands: Sequence[Node], results: _Results) -> bool:
    """Return whether a node can be tried with made-up values: it is small, and no operand behind the first has unknown
    whole numbers, which are axes or sizes in many operators. What a branch or a loop costs is not known before."""
    if has_inner_graph(node):
        return False
    if any(operand.op != "constant" and np.dtype(operand.dtype).kind in "iu" for operand in operands[1:]):
        return False
    shapes = [*(operand.shape for operand in operands), *results.shapes.values()]
    return sum(map(prod, shapes)) <= MOST_TRIED


def _value_or_filler(operand: Node, filler: int) -> Array:
    """Return the value of an operand that is constant, else an array of its shape that is `filler` everywhere."""
    if operand.op == "constant":
        return np.asarray(operand.value)
    return np.full(operand.shape, filler, operand.dtype)


def _content_of_call(node: Any, operands: Sequence[Node]) -> bytes:
    """Return what decides a trial of a node: its operator with attributes, which names it leaves out, and the operands
    with the values of constants."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = ""
    copy.ClearField("metadata_props")
    numbers = {name: str(number) for number, name in enumerate(dict.fromkeys(filter(None, copy.input)))}
    copy.input[:] = [numbers.get(name, "") for name in node.input]
    copy.output[:] = ["+" if name else "" for name in node.output]
    kinds = [f"{operand.shape} {operand.dtype}".encode() for operand in operands]
    constants = [np.asarray(operand.value).tobytes() for operand in operands if operand.op == "constant"]
    places = "".join("c" if operand.op == "constant" else "v" for operand in operands)
    return b"\0".join((copy.SerializeToString(deterministic=True), places.encode(), *kinds, *constants))
