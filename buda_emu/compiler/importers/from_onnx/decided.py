"""Shapes that inputs of an ONNX model decide by their values. The importer compiles for one shape, that of the example
inputs or else the one that the model states, and records what the inputs must then mean (`ShapeRule`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final, NamedTuple

import numpy as np

from buda_emu.compiler.graph.graph import Array, Graph, Node
from buda_emu.compiler.importers.index_inputs import move_elements
from buda_emu.compiler.importers.operators import NotSupportedError
from buda_emu.emulator.image.shape_rules import CONSTANT, DecidingInput, Element, Shape, ShapeRule, decides_shapes
from buda_emu.support.checker.text import plural

_MOVES: Final = ("identity", "reshape", "transpose", "expand", "take", "slice", "concat")
"""Ops whose results are elements of their operands."""
_MOST_ELEMENTS: Final = 1 << 12
"""Elements of a value up to which its way from an input is followed; a shape has as many as it has dimensions."""


class Decision(NamedTuple):
    """A shape that an operand decides: the operator's name, the name of its result, the `shape` of its operand, the
    `stated` shape of its result, None where the model states none, and whether a size of 0 keeps that of the operand.
    `subject` names the deciding operand in messages."""

    operator: str
    result: str
    shape: Shape
    stated: Shape | None
    keeps_zero: bool
    subject: str


class DecidedShapes:
    """The shapes of a model that its inputs decide. `examples` are the example inputs by label."""

    def __init__(self, graph: Graph, examples: Mapping[str, Array]) -> None:
        self._graph = graph
        self._values: dict[tuple[str, int], int] = {}  # what elements of inputs are, as far as that is decided
        self._examples = examples
        self._rules: list[ShapeRule] = []

    def shape_of(self, operand: Node, decision: Decision) -> Shape:
        """Return the shape of a result that `operand` decides, and record what the model's inputs must mean. Raises
        NotSupportedError for an operand whose values cannot be checked when the model is called, and without a shape to
        compile for."""
        refusal = f"{decision.subject} that is computed or an input"
        if decision.stated is None and not self._examples:
            raise NotSupportedError(refusal)
        inputs, elements = self._element_sources(operand, refusal)
        example = self._example_values(decision, inputs, elements, refusal)
        rule = ShapeRule(
            operator=decision.operator,
            result=decision.result,
            shape=decision.shape,
            gives=(),
            inputs=inputs,
            elements=elements,
            example=example,
            keeps_zero=decision.keeps_zero,
        )
        try:
            rule = replace(rule, gives=rule.shape_by(example))
        except ValueError as error:
            raise NotSupportedError(f"{decision.subject} {list(example)}: {error}") from None
        if rule.gives != decision.stated and not self._examples:
            raise NotSupportedError(f"{refusal}: no values of it give the shape {list(decision.stated or ())}")
        self._record(rule)
        return rule.gives

    def _example_values(
        self, decision: Decision, inputs: Sequence[DecidingInput], elements: Sequence[Element], refusal: str
    ) -> tuple[int, ...]:
        """Return the values to compile for: those of an operand's elements that are decided already, and others that
        give the result its stated shape. Raises NotSupportedError if some are not decided and no shape is stated."""
        values = self._known_values(inputs, elements)
        decided = tuple(value for value in values if value is not None)
        if len(decided) == len(values):
            return decided
        if decision.stated is None:
            raise NotSupportedError(refusal)
        fitting = _values_giving(decision.operator, decision.shape, decision.stated, len(values))
        return tuple(fit if value is None else value for value, fit in zip(values, fitting, strict=True))

    def _record(self, rule: ShapeRule) -> None:
        """Add a rule, and keep the values that its inputs have from now on."""
        self._rules.append(rule)
        for element, value in zip(rule.elements, rule.example, strict=True):
            if element.source != CONSTANT:
                self._values[rule.inputs[element.source].label, element.value] = value

    def _known_values(self, inputs: Sequence[DecidingInput], elements: Sequence[Element]) -> list[int | None]:
        """Return the values of an operand's elements, None where they are not decided yet."""
        values: list[int | None] = []
        for element in elements:
            if element.source == CONSTANT:
                values.append(element.value)
                continue
            label = inputs[element.source].label
            if label in self._examples:
                values.append(int(np.asarray(self._examples[label]).reshape(-1)[element.value]))
            else:
                values.append(self._values.get((label, element.value)))
        return values

    def _element_sources(self, operand: Node, refusal: str) -> tuple[tuple[DecidingInput, ...], tuple[Element, ...]]:
        """Return the inputs of the model that an operand's elements come from, and for each element its place in one of
        them or its constant value. Raises NotSupportedError, beginning with `refusal`, for an operand that is
        computed."""
        table: list[Element] = []
        inputs: list[DecidingInput] = []
        places: dict[str, Array] = {}
        for node in self._ancestors(operand, refusal):
            if node.op == "input":
                elements = [Element(len(inputs), place) for place in range(prod(node.shape))]
                inputs.append(DecidingInput(node.attrs["label"], node.shape, node.dtype))
            elif node.op == "constant":
                elements = [Element(CONSTANT, int(value)) for value in np.asarray(node.value).reshape(-1)]
            else:
                operands = [places[name] for name in node.inputs]
                places[node.name] = np.rint(move_elements(node, operands)).astype(np.int64).reshape(node.shape)
                continue
            places[node.name] = np.arange(len(table), len(table) + len(elements)).reshape(node.shape)
            table += elements
        return tuple(inputs), tuple(table[int(place)] for place in places[operand.name].reshape(-1))

    def _ancestors(self, operand: Node, refusal: str) -> Iterator[Node]:
        """Yield the nodes that an operand is made of, each after its operands. Raises NotSupportedError for a node that
        computes, for element types other than whole numbers, and for large values."""
        names = {operand.name}
        for node in reversed(self._graph.nodes.values()):
            if node.name in names:
                names.update(node.inputs)
        for node in list(self._graph.nodes.values()):
            if node.name not in names:
                continue
            if node.op not in (*_MOVES, "input", "constant"):
                raise NotSupportedError(f"{refusal}: it is computed by {node.op}")
            if not decides_shapes(node.dtype):
                raise NotSupportedError(f"{refusal}: of type {node.dtype}")
            if prod(node.shape) > _MOST_ELEMENTS:
                raise NotSupportedError(f"{refusal}: made of {plural(prod(node.shape), 'element')}")
            yield node

    def put_into_graph(self) -> None:
        """Write the rules to the input nodes of the graph, each to the first input that it reads."""
        nodes = {node.attrs["label"]: node for node in self._graph if node.op == "input"}
        for label, node in nodes.items():
            rules = tuple(rule for rule in self._rules if rule.inputs[0].label == label)
            if rules:
                self._graph.nodes[node.name] = replace(node, attrs={**node.attrs, "rules": rules})


def _values_giving(operator: str, shape: Shape, gives: Shape, count: int) -> list[int]:
    """Return `count` values of the operand that decides a shape with which an operator gives a result of the shape
    `gives`; values that mean another shape where there are none."""
    if operator == "Tile":
        values = [have // max(1, size) for size, have in zip(shape, gives, strict=False)]
    elif operator == "Squeeze":
        values = _missing_places(shape, gives)
    elif operator == "Unsqueeze":
        values = _missing_places(gives, shape)
    elif operator == "Expand":
        values = list(gives[len(gives) - count :])  # the dimensions in front may be the operand's own
    else:
        values = list(gives)
    return [*values, *[1] * count][:count]


def _missing_places(longer: Shape, shorter: Shape) -> list[int]:
    """Return the numbers of the dimensions of `longer` that are left over when the sizes of `shorter` are found in it,
    in order."""
    places: list[int] = []
    number = 0
    for place, size in enumerate(longer):
        if number < len(shorter) and shorter[number] == size:
            number += 1
        else:
            places.append(place)
    return places
