"""Strides in bits, what is required of them, and addresses (VPUX 1). Everything here is in memory order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from buda_emu.errors import HostError
from buda_emu.vpux.layout.dims import MemDim
from buda_emu.vpux.layout.order import DimsOrder

KINDS: Final = ("any", "compact", "aligned", "fixed")


@dataclass(frozen=True, slots=True)
class Requirement:
    """What the stride of one memory dimension must be: `compact` (no gap), `aligned` (to a power of two), `fixed`.

    `value` is in bits. Raises HostError for a value that the kind does not allow.
    """

    dim: MemDim
    kind: str
    value: int | None = None

    def __post_init__(self) -> None:
        value = self.value
        if self.kind not in KINDS:
            raise HostError(f"requirement {self.kind!r} of a stride is not one of {', '.join(KINDS)}")
        if self.kind in ("any", "compact"):
            fits = value is None
        else:
            fits = value is not None and value > 0 and (self.kind == "fixed" or value & (value - 1) == 0)
        if not fits:
            raise HostError(f"stride {self.dim.index} cannot be {self.kind} with value {value}")


class StrideReqs:
    """Requirements, at most one for each memory dimension: `StrideReqs([(0, "compact"), (2, "aligned", 1024)])`.

    Raises HostError for a dimension that is named twice and for impossible requirements.
    """

    def __init__(self, requirements: Iterable[Requirement | Sequence[object]] = ()) -> None:
        self._by_dim: dict[int, Requirement] = {}
        for item in requirements:
            made = item if isinstance(item, Requirement) else _requirement(item)
            if made.dim.index in self._by_dim:
                raise HostError(f"memory dimension {made.dim.index} has two requirements")
            if made.kind != "any":
                self._by_dim[made.dim.index] = made

    @classmethod
    def simple(cls, rank: int) -> "StrideReqs":
        """The innermost dimension without gap."""
        return cls([(rank - 1, "compact")] if rank else [])

    @classmethod
    def compact(cls, rank: int) -> "StrideReqs":
        """No gap anywhere."""
        return cls([(dim, "compact") for dim in range(rank)])

    @classmethod
    def fixed(cls, strides: Sequence[int]) -> "StrideReqs":
        """Exactly these."""
        return cls([(dim, "fixed", stride) for dim, stride in enumerate(strides)])

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """In order of dimensions."""
        return tuple(self._by_dim[dim] for dim in sorted(self._by_dim))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StrideReqs) and self._by_dim == other._by_dim

    def __hash__(self) -> int:
        return hash(self.requirements)

    def __repr__(self) -> str:
        return f"StrideReqs({[(r.dim.index, r.kind, r.value) for r in self.requirements]})"

    def calculate(self, bits: int, shape: Sequence[int]) -> tuple[int, ...]:
        """Strides of a memory shape with elements of so many bits. Raises HostError for dimensions that it lacks."""
        self._fit(bits, shape)
        strides = [0] * len(shape)
        for dim in reversed(range(len(shape))):
            stride = _base(strides, shape, dim, bits)
            required = self._by_dim.get(dim)
            if required is not None and required.kind != "compact":
                value = required.value or 1
                stride = value if required.kind == "fixed" else -(-stride // value) * value
            strides[dim] = stride
        return tuple(strides)

    def check(self, strides: Sequence[int], bits: int, shape: Sequence[int]) -> bool:
        """Do strides fit the shape, and these requirements?

        A stride may be one element short of what the next inner dimension takes, as in the public compiler.
        """
        self._fit(bits, shape)
        if len(strides) != len(shape):
            return False
        for dim, stride in enumerate(strides):
            base = _base(strides, shape, dim, bits)
            least = bits if dim == len(shape) - 1 else base - bits
            required = self._by_dim.get(dim)
            kind, value = (required.kind, required.value or 1) if required is not None else ("any", 1)
            wrong = (
                stride < least
                or (kind == "fixed" and stride != value)
                or (kind == "aligned" and stride % value != 0)
                or (kind == "compact" and stride != base)
            )
            if wrong:
                return False
        return True

    def join(self, other: "StrideReqs", bits: int, shape: Sequence[int]) -> "StrideReqs":
        """Requirements of both sides. Raises HostError where no strides fulfil both."""
        merged: list[Requirement] = []
        for dim in sorted({*self._by_dim, *other._by_dim}):
            mine, theirs = self._by_dim.get(dim), other._by_dim.get(dim)
            if mine is None or theirs is None:
                merged += [item for item in (mine, theirs) if item is not None]
                continue
            if mine.kind == theirs.kind == "fixed" and mine.value != theirs.value:
                raise HostError(f"stride {dim} cannot be both {mine.value} and {theirs.value} bits")
            merged.append(theirs if theirs.kind == "fixed" else mine)
        result = StrideReqs(merged)
        strides = result.calculate(bits, shape)
        if not (self.check(strides, bits, shape) and other.check(strides, bits, shape)):
            raise HostError(f"no strides fulfil both {self!r} and {other!r}")
        return result

    def _fit(self, bits: int, shape: Sequence[int]) -> None:
        if bits <= 0 or any(size < 0 for size in shape):
            raise HostError(f"elements of {bits} bits in shape {list(shape)} are not possible")
        if self._by_dim and max(self._by_dim) >= len(shape):
            raise HostError(f"memory dimension {max(self._by_dim)} is not in a shape of {len(shape)}")


def _base(strides: Sequence[int], shape: Sequence[int], dim: int, bits: int) -> int:
    """The stride without any gap, from those further inside."""
    return bits if dim == len(shape) - 1 else strides[dim + 1] * shape[dim + 1]


def _requirement(item: Sequence[object]) -> Requirement:
    dim, kind, value = (*item, None, None)[:3]
    odd = len(item) > 3 or isinstance(value, bool) or isinstance(dim, bool)
    if odd or not isinstance(kind, str) or not isinstance(value, int | None) or not isinstance(dim, int | MemDim):
        raise HostError(f"{item!r} is not a requirement: (dimension, kind, value)")
    return Requirement(dim if isinstance(dim, MemDim) else MemDim(dim), kind, value)


def address(index: Sequence[int], order: DimsOrder, strides: Sequence[int]) -> int:
    """Bits from the beginning of a tensor to an element: a logical index, strides in memory order."""
    return sum(at * stride for at, stride in zip(order.to_memory(index), strides, strict=True))


def alloc_bits(shape: Sequence[int], strides: Sequence[int], bits: int) -> int:
    """Bits from the first to the last element, inclusive; 0 without elements. Shape and strides in memory order."""
    if any(size == 0 for size in shape):
        return 0
    return sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + bits
