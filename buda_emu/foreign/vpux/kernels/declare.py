"""What a kernel is: one declaration with its entry point, operands, attributes and definition (VPUX 5)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.vpux.layout import DimsOrder
from buda_emu.support.errors import ProgramError

Array: TypeAlias = NDArray[Any]


def impossible(message: str, rule: str = "X046") -> NoReturn:
    """A kernel was given what it cannot compute with. Raises ProgramError."""
    raise ProgramError(message, kind="op", rule=rule)


def logical_dim(axis: int, rank: int, name: str = "axis") -> int:
    """The dimension of a logical axis, -1 being the last one (LegalizeAxisInd of the public compiler's softmax).

    Raises ProgramError (X046) for an axis outside of -rank to rank - 1, `name` saying which one.
    """
    if not -rank <= axis < rank:
        impossible(f"{name} {axis} of {rank} dimensions" + (f": {-rank} to {rank - 1} are there" if rank else ""))
    return axis % rank


@dataclass(frozen=True, slots=True)
class Tensor:
    """An operand as a kernel decoded it: logical `values` (float64, or int64), the stored ones as `raw`."""

    raw: Array
    order: DimsOrder

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical."""
        return self.raw.shape

    @property
    def values(self) -> Array:
        """To compute with."""
        return self.raw.astype(np.float64 if self.raw.dtype.kind == "f" else np.int64)

    @property
    def floats(self) -> NDArray[np.float64]:
        """As float64, of whatever type."""
        return self.raw.astype(np.float64)

    def in_memory(self) -> Array:
        """The stored elements with their dimensions in memory order."""
        return self.raw.transpose(self.order.perm)

    def dim_of_axis(self, axis: int) -> int:
        """The logical dimension of an axis attribute, which counts from the innermost in memory.

        No negative ones: a kernel's attribute is what the compiler made of a logical axis, from whichever side that one
        counted (`computeReverseMemDim`). Raises ProgramError (X046).
        """
        rank = self.order.rank
        if not 0 <= axis < rank:
            hint = ": a kernel counts from the innermost dimension, 0, outwards" if axis < 0 else ""
            impossible(f"axis {axis} of {rank} dimensions{hint}")
        return self.order.perm[rank - 1 - axis]


@dataclass(frozen=True, slots=True)
class Call:
    """One invocation: decoded inputs, attributes by name, and the shapes and orders that the outputs have."""

    inputs: tuple[Tensor, ...]
    attributes: Mapping[str, Any]
    shapes: tuple[tuple[int, ...], ...]
    orders: tuple[DimsOrder, ...]

    def integer(self, name: str) -> int:
        """An attribute that is an integer."""
        return int(self.attributes[name])

    def number(self, name: str) -> float:
        """An attribute that is a float."""
        return float(self.attributes[name])


Compute: TypeAlias = Callable[[Call], "Array | Sequence[Array]"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel by its entry point.

    `attributes` are names in the order in which they are packed; `x[n]` is as many as the attribute n says, `x=0` may
    be left out. `compute` gives logical arrays, one for each output, rounded once to the output's type. `exact`:
    its results do not depend on how it is computed. `keeps_shape`: the output has the first input's actual shape.
    `moves_raw`: elements are moved and never looked at, so any type will do.
    """

    name: str
    inputs: int
    compute: Compute
    summary: str
    attributes: tuple[str, ...] = ()
    outputs: int = 1
    exact: bool = True
    keeps_shape: bool = False
    moves_raw: bool = False
    family: str = ""

    def read(self, scalars: Sequence[int | float], rank: int) -> dict[str, Any]:
        """The attributes by name, `rank` being that of the first input; too many are ignored.

        Raises ProgramError (X046) for too few or impossible ones.
        """
        found: dict[str, Any] = {"rank": rank}
        left = list(scalars)
        for item in self.attributes:
            name, _, default = item.partition("=")
            name, _, count = name.rstrip("]").partition("[")
            if count:
                number = int(found[count])
                if not 0 <= number <= len(left):
                    impossible(f"{self.name}: {number} values of {name} of {len(left)} that are there")
                found[name] = tuple(int(value) for value in left[:number])
                del left[:number]
            elif left:
                found[name] = left.pop(0)
            elif default:
                found[name] = float(default)
            else:
                impossible(f"{self.name}: attribute {name} is missing")
        return found


def family(name: str, kernels: "Sequence[Kernel]") -> tuple[Kernel, ...]:
    """Kernels of one family, for docs."""
    return tuple(replace(item, family=name) for item in kernels)
