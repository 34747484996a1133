"""The table of handlers of ATen operators. The reader, torch's decompositions and the documentation use it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.operators import Operators

FAMILIES = ("elementwise", "products", "windows", "reductions", "moves", "index", "complex_numbers",
            "backward")  # fmt: skip
"""The modules of `operators`. None of them imports torch."""
Handler = Callable[..., Any]
"""A handler takes the builder and the arguments of the operator that it reads (`run_handler`). It returns a node, or a
list of nodes for several results."""


ATEN: Final = Operators[Handler]("buda_emu.compiler.importers.from_torch.operators", FAMILIES)
"""Declarations by the operator's name without its overload."""
aten = ATEN.declare


def declare_plain(table: Mapping[str, str], *, kept_whole: tuple[str, ...] = ()) -> None:
    """Declare operators that are a single front-end op on all operands."""
    for name, op in table.items():
        aten(name, becomes=table, whole=name in kept_whole, family="elementwise")(_make_handler(op))


def _make_handler(op: str) -> Handler:
    """Return the handler of an operator that is the front-end op `op` on all its operands."""

    def handler(b: Builder, *inputs: Any) -> Node:
        """Emit the front-end op on the operands, Python numbers as floats."""
        return b.emit(op, *(as_float(operand) for operand in inputs))

    return handler


def as_float(operand: Any) -> Any:
    """Convert a Python int or float to float, as torch does in arithmetic with tensors of floats; return anything else,
    bools too, unchanged."""
    if isinstance(operand, (int, float)) and not isinstance(operand, bool):
        return float(operand)
    return operand


def dims_of(x: Node, dims: Any) -> tuple[int, ...]:
    """Return dimensions counted from the front; None and [] are all dimensions."""
    if dims is None or dims == []:
        return tuple(range(len(x.shape)))
    return tuple(int(dim) % len(x.shape) for dim in (dims if isinstance(dims, list) else [dims]))
