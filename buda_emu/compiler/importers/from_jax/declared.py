"""What a StableHLO or CHLO operator is: one declaration. The reader and the docs read it from here."""

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
    """One operator of a function. `attrs`: numbers, lists, words and dictionaries; `shapes` and `dtypes` of its
    results; `regions`: of each the operators in it, in order, comparisons as `compare GT`; `operator`: its name
    without the dialect."""

    b: Builder
    operands: tuple[Node, ...]
    shapes: tuple[Shape, ...] = ()
    dtypes: tuple[str, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    regions: tuple[tuple[str, ...], ...] = ()
    operator: str = ""

    @property
    def shape(self) -> Shape:
        """Of the first result."""
        return self.shapes[0]

    def list_attribute(self, name: str, default: int, rank: int) -> tuple[int, ...]:
        """An attribute of one number for each dimension; all are `default` where it is left out."""
        return tuple(self.attrs.get(name) or (default,) * rank)


Handler = Callable[[Call], Any]
"""Gives a node, or a list of them for several results."""


HLO: Final = Operators[Handler]("buda_emu.compiler.importers.from_jax", FAMILIES)
"""By name, with the dialect in front."""
hlo = HLO.declare


def declare_plain(table: Mapping[str, str]) -> None:
    """Declares operators that are one front-end op on all operands."""
    for name, op in table.items():
        hlo(name, becomes=table, family="elementwise")(_make_handler(op))


def _make_handler(op: str) -> Handler:
    return lambda call: call.b.emit(op, *call.operands)
