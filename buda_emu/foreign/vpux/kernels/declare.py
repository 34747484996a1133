"""The declaration of a kernel: entry point, operands, attributes and definition (VPUX 5)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.vpux.layout import DimsOrder
from buda_emu.support.errors import ProgramError

Array: TypeAlias = NDArray[Any]


def fail_op(message: str, rule: str = "X046") -> NoReturn:
    """Raise ProgramError for a kernel that was given what it cannot compute with."""
    raise ProgramError(message, kind="op", rule=rule)


def logical_dim(axis: int, rank: int, name: str = "axis") -> int:
    """Return the dimension of a logical axis, -1 being the last one (LegalizeAxisInd of the public compiler's softmax).

    Raises ProgramError (X046), with `name` in the message, for an axis outside of -rank to rank - 1.
    """
    if not -rank <= axis < rank:
        fail_op(f"{name} {axis} of {rank} dimensions" + (f": {-rank} to {rank - 1} are there" if rank else ""))
    return axis % rank


@dataclass(frozen=True, slots=True)
class Tensor:
    """An operand that a kernel decoded: the stored elements as `raw`, in logical shape, and their order in memory."""

    raw: Array
    order: DimsOrder

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return self.raw.shape

    @property
    def values(self) -> Array:
        """The elements as float64 or int64, for computing."""
        return self.raw.astype(np.float64 if self.raw.dtype.kind == "f" else np.int64)

    @property
    def floats(self) -> NDArray[np.float64]:
        """The elements as float64, of whatever type they are."""
        return self.raw.astype(np.float64)

    def in_memory(self) -> Array:
        """Return the stored elements with their dimensions in memory order."""
        return self.raw.transpose(self.order.perm)

    def dim_of_axis(self, axis: int) -> int:
        """Return the logical dimension of an axis attribute, which counts from the innermost in memory.

        There are no negative axes: a kernel's attribute is what the compiler made of a logical axis, from whichever
        side that one counted (`computeReverseMemDim`). Raises ProgramError (X046).
        """
        rank = self.order.rank
        if not 0 <= axis < rank:
            if axis < 0:
                hint = ": a kernel counts from the innermost dimension, 0, outwards"
            else:
                hint = ""
            fail_op(f"axis {axis} of {rank} dimensions{hint}")
        return self.order.perm[rank - 1 - axis]


@dataclass(frozen=True, slots=True)
class Call:
    """One invocation: decoded inputs, attributes by name, and the shapes and orders of the outputs."""

    inputs: tuple[Tensor, ...]
    attributes: Mapping[str, Any]
    shapes: tuple[tuple[int, ...], ...]
    orders: tuple[DimsOrder, ...]

    def integer(self, name: str) -> int:
        """Return an attribute as an integer."""
        return int(self.attributes[name])

    def number(self, name: str) -> float:
        """Return an attribute as a float."""
        return float(self.attributes[name])


Compute: TypeAlias = Callable[[Call], "Array | Sequence[Array]"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel by its entry point.

    `attributes` are names in the order in which they are packed; `x[n]` has as many values as the attribute n says,
    `x=0` may be left out. `compute` returns logical arrays, one for each output, which are rounded once to the output's
    type. `exact`: the results do not depend on the method of computation. `keeps_shape`: the output has the first
    input's actual shape. `moves_raw`: elements are moved and never looked at, so any type will do.
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
        """Return the attributes by name from the scalars of a call, `rank` being that of the first input; surplus
        scalars are ignored.

        Raises ProgramError (X046) for too few or impossible ones.
        """
        attributes: dict[str, Any] = {"rank": rank}
        remaining = list(scalars)
        for declaration in self.attributes:
            name, _, default = declaration.partition("=")
            name, _, count = name.rstrip("]").partition("[")
            if count:
                number = int(attributes[count])
                if not 0 <= number <= len(remaining):
                    fail_op(f"{self.name}: {number} values of {name} of {len(remaining)} that are there")
                attributes[name] = tuple(int(value) for value in remaining[:number])
                del remaining[:number]
            elif remaining:
                attributes[name] = remaining.pop(0)
            elif default:
                attributes[name] = float(default)
            else:
                fail_op(f"{self.name}: attribute {name} is missing")
        return attributes


def family(name: str, kernels: "Sequence[Kernel]") -> tuple[Kernel, ...]:
    """Return the kernels as members of a family, by which the docs group them."""
    return tuple(replace(kernel, family=name) for kernel in kernels)
