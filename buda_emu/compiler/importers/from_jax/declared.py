"""The form of a StableHLO or CHLO operator for its handler, and the table of handlers. The reader and the documentation
use them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node, Shape
from buda_emu.compiler.importers.operators import Operators

FAMILIES = ("operators",)
"""Modules of this package that declare operators. None imports jax: they read its text."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator. `attrs` holds numbers, lists, words and dictionaries; `shapes` and `dtypes` are those of
    the results; `regions` lists the operators of each region in order, comparisons as `compare GT`; `operator` is the
    name without the dialect."""

    b: Builder
    operands: tuple[Node, ...]
    shapes: tuple[Shape, ...] = ()
    dtypes: tuple[str, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    regions: tuple[tuple[str, ...], ...] = ()
    operator: str = ""

    @property
    def shape(self) -> Shape:
        """The shape of the first result."""
        return self.shapes[0]

    def list_attribute(self, name: str, default: int, rank: int) -> tuple[int, ...]:
        """Return an attribute with one number for each of `rank` dimensions, or `default` for all of them if it is
        absent."""
        return tuple(self.attrs.get(name) or (default,) * rank)


Handler = Callable[[Call], Any]
"""A handler returns a node, or a list of nodes for several results."""


HLO: Final = Operators[Handler]("buda_emu.compiler.importers.from_jax", FAMILIES)
"""Declarations by name, including the dialect."""
hlo = HLO.declare


def declare_plain(table: Mapping[str, str]) -> None:
    """Declare operators that are a single front-end op on all operands. `table`: the front-end op by the operator's
    name."""
    for name, op in table.items():
        hlo(name, becomes=table, family="elementwise")(_make_handler(op))


def _make_handler(op: str) -> Handler:
    """Return the handler of an operator that is the front-end op `op` on all its operands."""
    return lambda call: call.b.emit(op, *call.operands)
