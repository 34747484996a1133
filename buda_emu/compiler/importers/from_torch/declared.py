"""What an ATen operator is: one declaration. The reader, torch's decompositions and the docs read it from here."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.refusal import NotSupportedError

FAMILIES = ("elementwise", "products", "windows", "reductions", "moves", "index", "order", "pairs", "complex_numbers",
            "backward")  # fmt: skip
"""Modules of `operators`. None imports torch: what it hands over is told by its words."""
Handler = Callable[..., Any]
"""Takes the builder and the operator's own arguments; gives a node, or a list of them for several results."""


@dataclass(frozen=True, slots=True)
class AtenOp:
    """One operator, all its overloads. `whole`: torch must not take it apart; `becomes`: for the docs."""

    name: str
    family: str
    becomes: str
    handler: Handler
    whole: bool = False


_OPS: dict[str, AtenOp] = {}


def aten(*names: str, whole: bool = False) -> Callable[[Handler], Handler]:
    """Declares the handler of some operators; its first docstring line says what they become."""

    def declare(handler: Handler) -> Handler:
        _declare(names, handler, (handler.__doc__ or "").strip().splitlines()[0], whole)
        return handler

    return declare


def plain(table: Mapping[str, str], *, whole: tuple[str, ...] = ()) -> None:
    """Declares operators that are one front-end op on all operands."""
    for name, op in table.items():
        _declare((name,), _plain(op), f"`{op}`", name in whole, "elementwise")


def _declare(names: tuple[str, ...], handler: Handler, becomes: str, whole: bool, family: str = "") -> None:
    family = family or handler.__module__.rpartition(".")[2]
    for name in names:
        assert name not in _OPS, f"{name} is declared twice"
        _OPS[name] = AtenOp(name, family, becomes, handler, whole)


def _plain(op: str) -> Handler:
    def handler(b: Builder, *inputs: Any, **options: Any) -> Node:
        if options and set(options) != {"rounding_mode"}:
            raise NotSupportedError(", ".join(options))
        operands, mode = [number(item) for item in inputs], options.get("rounding_mode")
        if mode is None:
            return b.emit(op, *operands)
        return b.emit("whole_quotient", *operands, below=mode == "floor")

    return handler


@cache
def _load() -> None:
    for family in FAMILIES:
        import_module(f"buda_emu.compiler.importers.from_torch.operators.{family}")


def aten_op(name: str) -> AtenOp | None:
    """The declaration of an operator, without its overload; None for one that has none."""
    _load()
    return _OPS.get(name)


def aten_ops() -> Iterator[AtenOp]:
    """All declarations."""
    _load()
    return iter(_OPS.values())


def number(item: Any) -> Any:
    """Python's numbers are floats, as torch computes them against a tensor of floats."""
    return float(item) if isinstance(item, (int, float)) and not isinstance(item, bool) else item


def dims_of(x: Node, dims: Any) -> tuple[int, ...]:
    """Dimensions counted from the front; None and [] are all."""
    if dims is None or dims == []:
        return tuple(range(len(x.shape)))
    return tuple(int(dim) % len(x.shape) for dim in (dims if isinstance(dims, list) else [dims]))
