"""Attributes that a builder does not draw, one more on an op: the checker says whether it may have it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from buda_emu.coverage.lists import lists
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Netlist, Op
from buda_emu.netlist.printer import document_text
from buda_emu.netlist.reader import Document
from buda_emu.netlist.sourced import evolve
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing.generator.draw import Draw

_VALUES: Final = {"bool": (True,), "int": (1, 2), "float": (0.5, 0.0, 2.0)}
_BESIDE: Final = {"relu_threshold": {"relu_en": True}, "relu_mode": {"relu_en": True}}
"""What gives an attribute its meaning."""


def with_attribute(draw: Draw, document: Document) -> "tuple[Document, Netlist] | str":
    """The document, loaded, with one more attribute of one of its ops; or, where that is refused, `name: rules`."""
    op = draw.pick(list(_ops(document)))
    name = draw.pick([name for name in lists()["attributes"] if _may_come_late(name, op, document)] or [""])
    if not name:
        return ""
    _, attribute, word = parts(name)
    kind = ATTRIBUTES[attribute].kind
    value = word or ((0,) * op.blocking.cells if kind == "ints" else draw.pick(_VALUES[kind]))
    values = {**_BESIDE.get(attribute, {}), attribute: value}
    given = op.attributes.given | values.keys()
    new = evolve(op, attributes=replace(op.attributes, given=given, **values))
    made = replace(document, graphs=dict(document.graphs))
    graph = made.graphs[op.graph]
    made.graphs[op.graph] = evolve(graph, ops=tuple(new if item is op else item for item in graph.ops))
    found = check_text(document_text(made), document.path, document.arch_name)
    if found.netlist is not None:
        return made, found.netlist
    return f"{name}: {', '.join(sorted({item.rule for item in found.diagnostics if item.severity == 'error'}))}"


def parts(name: str) -> tuple[str, str, str]:
    """Op type, attribute and word of a name of coverage."""
    op_type, _, written = name.partition(" ")
    attribute, _, word = written.partition("=")
    return op_type, attribute, word


def _may_come_late(name: str, op: Op, document: Document) -> bool:
    """Whether an attribute changes neither operands nor shape of an op, and is not yet there. What a fused op has is
    read by sub-ops that may have it."""
    op_type, attribute, _ = parts(name)
    if op_type != op.type or attribute in op.attributes.given:
        return False
    spec = ATTRIBUTES[attribute]
    if not OP_TYPES[op_type].has("sub-ops"):
        return not spec.has_effect or attribute.startswith("relu")
    schedules = document.fused_ops[op.attributes.fused_op_id].schedules
    return not any(spec.is_legal_on(step.type) and not spec.everywhere for steps in schedules for step in steps)


def _ops(document: Document) -> Iterator[Op]:
    for graph in document.graphs.values():
        yield from graph.ops
