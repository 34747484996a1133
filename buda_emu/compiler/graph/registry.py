"""The declaration of a front-end op. All other descriptions of the op are derived from it."""

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
    """One op. A *core* op has a shape rule and a plain numpy reference, and `lower` makes netlist ops of it; any other
    has a decomposition into others, of which shape and reference follow.

    `decompose(builder, *nodes, **attributes)` returns the node that stands for it. `dtype`: of the result, where it is
    not that of the operands.
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
        """Whether it reaches `lower`."""
        return self.decompose is None


_OPS: dict[str, FrontOp] = {}


def core(name: str, doc: str, shape: ShapeRule, reference: Reference, *, family: str, dtype: str | None = None) -> None:
    """Declare a core op."""
    _register(FrontOp(name=name, family=family, doc=doc, shape=shape, reference=reference, decompose=None, dtype=dtype))


def composite(family: str, *, dtype: str | None = None) -> Callable[[Decomposition], Decomposition]:
    """Declare an op by its decomposition: a function of the op's name whose docstring is the equation."""

    def declare(function: Decomposition) -> Decomposition:
        doc = (function.__doc__ or "").strip().splitlines()[0]
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
    if op.name in _OPS:
        raise InternalError(f"front-end op {op.name} is declared twice")
    _OPS[op.name] = op


@cache
def _load_declarations() -> None:
    """All that the room declares, when an op is first asked for."""
    import_module("buda_emu.compiler.frontend_ops")


def front_op(name: str) -> FrontOp:
    """The declaration of an op. Raises InternalError for a name that none has."""
    _load_declarations()
    if name not in _OPS:
        raise InternalError(f"there is no front-end op {name}")
    return _OPS[name]


def has_front_op(name: str) -> bool:
    """Whether there is an op of that name."""
    _load_declarations()
    return name in _OPS


def front_ops() -> Iterator[FrontOp]:
    """All declarations, in the order of the text."""
    _load_declarations()
    return iter(_OPS.values())
