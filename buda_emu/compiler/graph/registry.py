"""Declarations of front-end ops. Documentation, checks and decompositions read them from here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from buda_emu.compiler.graph.graph import Shape
from buda_emu.support.errors import InternalError

ShapeRule = Callable[..., Shape]
Reference = Callable[..., Any]
Decomposition = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class FrontOp:
    """The declaration of one op. A *core* op has a shape rule and a numpy reference, and `lower` makes netlist ops of
    it. A composite op has a decomposition into other ops, from which its shape and reference follow.

    `decompose(builder, *nodes, **attributes)` returns the node that replaces the op. `dtype` is the element type of the
    result if it is not that of the operands.
    """

    name: str
    family: str
    doc: str
    shape: ShapeRule | None = None
    reference: Reference | None = None
    decompose: Decomposition | None = None
    dtype: str | None = None

    @property
    def is_core(self) -> bool:
        """True for an op without a decomposition, which reaches `lower`."""
        return self.decompose is None


_OPS: dict[str, FrontOp] = {}


def core(name: str, doc: str, shape: ShapeRule, reference: Reference, *, family: str, dtype: str | None = None) -> None:
    """Declare a core op. `shape`: its shape rule; `reference`: the numpy function that defines its value; `dtype`: the
    element type of the result if it is not that of the operands."""
    _register(FrontOp(name=name, family=family, doc=doc, shape=shape, reference=reference, decompose=None, dtype=dtype))


def composite(family: str, *, dtype: str | None = None) -> Callable[[Decomposition], Decomposition]:
    """Return a decorator that declares a composite op by its decomposition: a function of the op's name (with "_"
    behind it if Python has the name) whose docstring is the equation."""

    def declare(function: Decomposition) -> Decomposition:
        """Register the function as the decomposition of the front-end op of its name. The first paragraph of its
        docstring describes the op."""
        first_paragraph = (function.__doc__ or "").strip().partition("\n\n")[0]
        doc = " ".join(first_paragraph.split())
        _register(
            FrontOp(
                name=function.__name__.rstrip("_"),
                family=family,
                doc=doc,
                shape=None,
                reference=None,
                decompose=function,
                dtype=dtype,
            )
        )
        return function

    return declare


def _register(op: FrontOp) -> None:
    """Enter a front-end op in the table. Raises InternalError if its name is taken."""
    if op.name in _OPS:
        raise InternalError(f"front-end op {op.name} is declared twice")
    _OPS[op.name] = op


@cache
def _load_declarations() -> None:
    """Import all modules that declare ops, once."""
    import_module("buda_emu.compiler.frontend_ops")


def front_op(name: str) -> FrontOp:
    """Return the declaration of an op. Raise InternalError for an unknown name."""
    _load_declarations()
    if name not in _OPS:
        raise InternalError(f"there is no front-end op {name}")
    return _OPS[name]


def has_front_op(name: str) -> bool:
    """Return whether an op of that name is declared."""
    _load_declarations()
    return name in _OPS


def front_ops() -> Iterator[FrontOp]:
    """Iterate over all declarations in the order of the source."""
    _load_declarations()
    return iter(_OPS.values())
