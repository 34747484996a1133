"""What an expression is made of."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from buda_emu.records import dataclass


@dataclass(frozen=True, slots=True)
class Number:
    """A number, or a truth as 1 or 0."""

    value: float


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name` of the running program."""

    name: str


@dataclass(frozen=True, slots=True)
class Word:
    """`input`, `inputs` or `instruction`."""

    name: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """`op:NAME`, `queue:NAME`, or a name that is looked for among both; `slot`: of a queue, default its newest."""

    name: str
    kind: Literal["", "op", "queue"] = ""
    slot: int | None = None

    def __str__(self) -> str:
        slot = f"[{self.slot}]" if self.slot is not None else ""
        return f"{self.kind}:{self.name}{slot}" if self.kind else f"{self.name}{slot}"


@dataclass(frozen=True, slots=True)
class Ideal:
    """In place of a tensor: the other one, as precision "ideal" has it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function of tensors, or of a queue's pointers."""

    name: str
    arguments: "tuple[Tensor | Ideal, ...]"


@dataclass(frozen=True, slots=True)
class Unary:
    """`-` or `not`."""

    operator: str
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, a comparison, `and`, `or`."""

    operator: str
    left: "Node"
    right: "Node"


Node: TypeAlias = Number | Variable | Word | Call | Unary | Binary


def calls(node: Node) -> Iterator[Call]:
    """Every call in it."""
    match node:
        case Call():
            yield node
        case Unary():
            yield from calls(node.operand)
        case Binary():
            yield from calls(node.left)
            yield from calls(node.right)
        case _:
            pass
