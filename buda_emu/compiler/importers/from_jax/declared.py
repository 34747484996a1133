"""What a StableHLO or CHLO operator is: one declaration. The reader and the docs read it from here."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node, Shape

FAMILIES = ("elementwise", "products", "windows", "reductions", "moves", "index")
"""Modules of this room that declare operators. None imports jax: what it hands over is told by its words."""


@dataclass(frozen=True, slots=True)
class Call:
    """One operator of a function. `attrs`: numbers, lists, words and dictionaries; `shapes` and `dtypes` of its
    results; `regions`: of each the operators in it, in order, comparisons as `compare GT`."""

    b: Builder
    operands: tuple[Node, ...]
    shapes: tuple[Shape, ...] = ()
    dtypes: tuple[str, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    regions: tuple[tuple[str, ...], ...] = ()

    @property
    def shape(self) -> Shape:
        """Of the first result."""
        return self.shapes[0]

    def listed(self, name: str, otherwise: int, rank: int) -> tuple[int, ...]:
        """An attribute of one number for each dimension; all are `otherwise` where it is left out."""
        return tuple(self.attrs.get(name) or (otherwise,) * rank)


Handler = Callable[[Call], Any]
"""Gives a node, or a list of them for several results."""


@dataclass(frozen=True, slots=True)
class HloOp:
    """One operator; `becomes`: for the docs."""

    name: str
    family: str
    becomes: str
    handler: Handler


_OPS: dict[str, HloOp] = {}


def hlo(*names: str) -> Callable[[Handler], Handler]:
    """Declares the handler of some operators; its first docstring line says what they become."""

    def declare(handler: Handler) -> Handler:
        _declare(names, handler, (handler.__doc__ or "").strip().splitlines()[0])
        return handler

    return declare


def plain(table: Mapping[str, str]) -> None:
    """Declares operators that are one front-end op on all operands."""
    for name, op in table.items():
        _declare((name,), _plain(op), f"`{op}`", "elementwise")


def _plain(op: str) -> Handler:
    return lambda call: call.b.emit(op, *call.operands)


def _declare(names: tuple[str, ...], handler: Handler, becomes: str, family: str = "") -> None:
    family = family or handler.__module__.rpartition(".")[2]
    for name in names:
        assert name not in _OPS, f"{name} is declared twice"
        _OPS[name] = HloOp(name, family, becomes, handler)


@cache
def _load() -> None:
    for family in FAMILIES:
        import_module(f"buda_emu.compiler.importers.from_jax.{family}")


def hlo_op(name: str) -> HloOp | None:
    """The declaration of an operator, with its dialect in front; None for one that has none."""
    _load()
    return _OPS.get(name)


def hlo_ops() -> Iterator[HloOp]:
    """All declarations."""
    _load()
    return iter(_OPS.values())
