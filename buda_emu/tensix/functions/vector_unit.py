"""The instructions of the vector unit (SFPU), and the unit that executes them in plain numpy (DEVICE_NUMERICS 3).

Functions of this room are written once against `VectorUnit`. `NumpyUnit` computes them, which is their definition;
`buda_emu.tensix.functions.programs` records them for the kernel that runs the same steps fast.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from buda_emu.formats.bits import U32
from buda_emu.tensix import lanes
from buda_emu.tensix.functions.fma import fma

V = TypeVar("V")
"""Whatever stands for the 32 lanes of a register: words, or the truth values of a condition."""


class VectorUnit(Protocol[V]):
    """The instructions. A plain int is a constant: the same pattern in every lane."""

    def fma(self, x: V | int, y: V | int, z: V | int) -> V:
        """x * y + z (3.1)."""
        ...

    def merge(self, a: V, kept: int, added: V | int) -> V:
        """The kept bits of `a` with others added: (a & kept) | added."""
        ...

    def exponent(self, a: V) -> V:
        """The exponent field of a float, as an integer."""
        ...

    def bit_and(self, a: V, b: V | int) -> V:
        """Bits set in both."""
        ...

    def bit_or(self, a: V, b: V | int) -> V:
        """Bits set in either."""
        ...

    def shift_left(self, a: V, places: int) -> V:
        """Towards the high bits; what falls out is lost."""
        ...

    def shift_right(self, a: V, places: int) -> V:
        """Towards the low bits, zeros come in."""
        ...

    def add(self, a: V | int, b: V | int) -> V:
        """Integer sum modulo 2^32."""
        ...

    def subtract(self, a: V | int, b: V | int) -> V:
        """Integer difference modulo 2^32."""
        ...

    def negative(self, a: V) -> V:
        """Condition: the sign bit is set, as "x < 0" is tested; -0 and negative NaNs are negative."""
        ...

    def equal(self, a: V, b: V | int) -> V:
        """Condition: all 32 bits agree; -0 is not equal to 0."""
        ...

    def less(self, a: V, b: V | int) -> V:
        """Condition: a < b as integers in two's complement."""
        ...

    def select(self, condition: V, a: V | int, b: V | int) -> V:
        """`a` in the lanes where the condition holds, `b` in the others."""
        ...

    def lookup(self, breaks: tuple[int, ...], values: tuple[int, ...], a: V) -> V:
        """`values[i]` where `a` is at least i of the ascending `breaks`, compared as unsigned integers."""
        ...

    def to_integer(self, a: V, limit: int) -> V:
        """fp32 to the nearest integer in sign and magnitude, bounded (3.2)."""
        ...

    def to_float(self, a: V) -> V:
        """Integer in sign and magnitude to fp32 (3.2)."""
        ...

    def greater(self, a: V | int, b: V | int) -> V:
        """The larger in the order of sign and magnitude."""
        ...


_Words = NDArray[Any]


@dataclass(frozen=True, slots=True)
class NumpyUnit:
    """A `VectorUnit` that executes at once on arrays of lanes, uint32 of any shape; conditions are arrays of bool."""

    blackhole: bool = False

    def fma(self, x: _Words | int, y: _Words | int, z: _Words | int) -> _Words:
        return fma(_words(x), _words(y), _words(z), self.blackhole)

    def merge(self, a: _Words, kept: int, added: _Words | int) -> _Words:
        return a & _words(kept) | _words(added)

    def exponent(self, a: _Words) -> _Words:
        return a >> np.uint32(23) & np.uint32(255)

    def bit_and(self, a: _Words, b: _Words | int) -> _Words:
        return a & _words(b)

    def bit_or(self, a: _Words, b: _Words | int) -> _Words:
        return a | _words(b)

    def shift_left(self, a: _Words, places: int) -> _Words:
        return a << np.uint32(places)

    def shift_right(self, a: _Words, places: int) -> _Words:
        return a >> np.uint32(places)

    def add(self, a: _Words | int, b: _Words | int) -> _Words:
        return _words(a) + _words(b)

    def subtract(self, a: _Words | int, b: _Words | int) -> _Words:
        return _words(a) - _words(b)

    def negative(self, a: _Words) -> _Words:
        return a >> np.uint32(31) != 0

    def equal(self, a: _Words, b: _Words | int) -> _Words:
        return a == _words(b)

    def less(self, a: _Words, b: _Words | int) -> _Words:
        return a.view(np.int32) < _words(b).view(np.int32)

    def select(self, condition: _Words, a: _Words | int, b: _Words | int) -> _Words:
        return np.where(condition, _words(a), _words(b))

    def lookup(self, breaks: tuple[int, ...], values: tuple[int, ...], a: _Words) -> _Words:
        return np.array(values, dtype=np.uint32)[np.searchsorted(np.array(breaks, dtype=np.uint32), a, side="right")]

    def to_integer(self, a: _Words, limit: int) -> _Words:
        return lanes.to_integer(a, limit)

    def to_float(self, a: _Words) -> _Words:
        return lanes.to_float(a)

    def greater(self, a: _Words | int, b: _Words | int) -> _Words:
        return lanes.greater(_words(a), _words(b))


def _words(value: _Words | int) -> U32:
    """A constant as an array of no dimensions: unlike a scalar, it wraps around silently."""
    return np.asarray(value, dtype=np.uint32)
