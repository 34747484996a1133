"""What an ATen operator is: one declaration. The reader, torch's decompositions and the docs read it from here."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.operators import Operators

FAMILIES = ("elementwise", "products", "windows", "reductions", "moves", "index", "order", "pairs", "complex_numbers",
            "scatter", "backward")  # fmt: skip
"""Modules of `operators`. None imports torch: what it hands over is told by its words."""
Handler = Callable[..., Any]
"""Takes the builder and the operator's own arguments, those that it reads (`run_handler`); gives a node, or a list of
them for several results."""


ATEN: Final = Operators[Handler]("buda_emu.compiler.importers.from_torch.operators", FAMILIES)
"""By name, without the overload."""
aten = ATEN.declare


def declare_plain(table: Mapping[str, str], *, kept_whole: tuple[str, ...] = ()) -> None:
    """Declares operators that are one front-end op on all operands."""
    for name, op in table.items():
        aten(name, becomes=table, whole=name in kept_whole, family="elementwise")(_make_handler(op))


def _make_handler(op: str) -> Handler:
    def handler(b: Builder, *inputs: Any) -> Node:
        return b.emit(op, *(as_float(operand) for operand in inputs))

    return handler


def as_float(operand: Any) -> Any:
    """Python's numbers are floats, as torch computes them against a tensor of floats."""
    if isinstance(operand, (int, float)) and not isinstance(operand, bool):
        return float(operand)
    return operand


def dims_of(x: Node, dims: Any) -> tuple[int, ...]:
    """Dimensions counted from the front; None and [] are all."""
    if dims is None or dims == []:
        return tuple(range(len(x.shape)))
    return tuple(int(dim) % len(x.shape) for dim in (dims if isinstance(dims, list) else [dims]))
