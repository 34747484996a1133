"""The value of an expression at a moment of a run."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from buda_emu.debugger.expressions.functions import OF_POINTERS, OF_TENSOR, OF_TWO
from buda_emu.debugger.expressions.tree import Binary, Call, Ideal, Node, Number, Tensor, Unary, Variable, Word
from buda_emu.errors import HostError


class Scope(Protocol):
    """What names mean. Every method raises HostError for what is not there."""

    def tensor(self, which: Tensor, *, ideal: bool = False) -> NDArray[Any]:
        """Its values."""
        ...

    def pointer(self, queue: Tensor, which: str) -> int:
        """A key of OF_POINTERS."""
        ...

    def variable(self, name: str) -> int:
        """Of the running program, by `$name`."""
        ...

    def word(self, name: str) -> int:
        """A key of WORDS."""
        ...


# Arithmetic is that of floats from the first operator on: products of integers would grow without end.
_OPERATORS: Final[Mapping[str, Callable[[float, float], float]]] = MappingProxyType(
    {
        "+": lambda a, b: float(a) + float(b),
        "-": lambda a, b: float(a) - float(b),
        "*": lambda a, b: float(a) * float(b),
        "/": lambda a, b: float(np.float64(a) / np.float64(b)),  # by zero it is infinite, as everywhere here
        "%": lambda a, b: float(np.mod(np.float64(a), np.float64(b))),
        "<": lambda a, b: float(a < b),
        "<=": lambda a, b: float(a <= b),
        ">": lambda a, b: float(a > b),
        ">=": lambda a, b: float(a >= b),
        "==": lambda a, b: float(a == b),
        "!=": lambda a, b: float(a != b),
    }
)


def evaluate(node: Node, scope: Scope) -> float:
    """Its value; a truth is 1 or 0. Raises HostError."""
    with np.errstate(all="ignore"):
        return _value(node, scope)


def _value(node: Node, scope: Scope) -> float:
    match node:
        case Number():
            return node.value
        case Variable():
            return scope.variable(node.name)
        case Word():
            return scope.word(node.name)
        case Call():
            return _call(node, scope)
        case Unary(operator="not"):
            return float(not _value(node.operand, scope))
        case Unary():
            return -_value(node.operand, scope)
        case Binary(operator="and"):
            return float(bool(_value(node.left, scope)) and bool(_value(node.right, scope)))
        case Binary(operator="or"):
            return float(bool(_value(node.left, scope)) or bool(_value(node.right, scope)))
        case Binary():
            return _OPERATORS[node.operator](_value(node.left, scope), _value(node.right, scope))


def _call(call: Call, scope: Scope) -> float:
    first = next(item for item in call.arguments if isinstance(item, Tensor))
    if call.name in OF_POINTERS:
        return scope.pointer(first, call.name)
    if call.name in OF_TENSOR:
        return OF_TENSOR[call.name][1](scope.tensor(first))
    values = [
        scope.tensor(first, ideal=True) if isinstance(item, Ideal) else scope.tensor(item) for item in call.arguments
    ]
    a, b = values
    if a.size != b.size:
        raise HostError(f"{call.name}: the tensors have {a.size} and {b.size} elements")
    return OF_TWO[call.name][1](a, b)
