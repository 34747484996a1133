"""Layouts of tensors: dimensions, their order in memory, strides in bits, and addresses (VPUX 1)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeVar

from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError

MOST_DIMS: Final = 15
"""Dimensions that an order's code has room for."""


@dataclass(frozen=True, slots=True)
class Dim:
    """A logical dimension, by its index in the shape: N of N, C, H, W has index 0. Raises HostError outside of
    0..14."""

    index: int

    def __post_init__(self) -> None:
        _require_dim(self.index)


@dataclass(frozen=True, slots=True)
class MemDim:
    """A position in memory, 0 being the outermost. It is never equal to a Dim. Raises HostError outside of 0..14."""

    index: int

    def __post_init__(self) -> None:
        _require_dim(self.index)


def _require_dim(index: int) -> None:
    """Raise HostError for an index of a dimension outside of 0 to 14."""
    if not 0 <= index < MOST_DIMS:
        raise HostError(f"dimension {index} is not possible: 0 to {MOST_DIMS - 1} are")


Entry = TypeVar("Entry")

CANONICAL_NAMES: Final[Mapping[int, str]] = {
    0x1: "C", 0x12: "NC", 0x21: "CN", 0x123: "CHW", 0x231: "HWC", 0x213: "HCW", 0x1234: "NCHW", 0x1342: "NHWC",
    0x1324: "NHCW", 0x1432: "NWHC", 0x1423: "NWCH", 0x1243: "NCWH", 0x12345: "NCDHW", 0x13452: "NDHWC",
    0x12453: "GNHWC", 0x3412: "YXOI",
}  # fmt: skip
"""Codes that print as a name."""

OTHER_NAMES: Final[Mapping[str, int]] = {
    "OIYX": 0x1234, "OYXI": 0x1342, "GNCHW": 0x12345, "GOIYX": 0x12345, "GOYXI": 0x12453, "WHC": 0x321, "CWH": 0x132,
    "WCHN": 0x4231, "WHNC": 0x4312, "HWCN": 0x3421, "HCNW": 0x3214, "HNWC": 0x3142, "CWNH": 0x2413, "IOYX": 0x2134,
    "GHNWC": 0x14253,
}  # fmt: skip
"""Names that are understood and not printed."""

_CODES: Final = {**{name: code for code, name in CANONICAL_NAMES.items()}, **OTHER_NAMES}
_AFFINE = re.compile(r"\s*affine_map\s*<\s*\(([^()]*)\)\s*->\s*\(([^()]*)\)\s*>\s*\Z")


@dataclass(frozen=True, slots=True)
class DimsOrder:
    """A permutation: `perm[m]` is the logical dimension at memory position m, 0 being the outermost.

    NHWC is (0, 2, 3, 1). Raises HostError for what is not a permutation.
    """

    perm: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.perm) > MOST_DIMS or sorted(self.perm) != list(range(len(self.perm))):
            raise HostError(f"{list(self.perm)} is not an order of dimensions")

    @classmethod
    def from_permutation(cls, permutation: Iterable[int]) -> "DimsOrder":
        """Make an order from the logical dimension of each memory position, outermost first. Raises HostError for what
        is no permutation."""
        return cls(tuple(permutation))

    @classmethod
    def identity(cls, rank: int) -> "DimsOrder":
        """Return the order in which memory follows the logical dimensions."""
        return cls(tuple(range(rank)))

    @classmethod
    def from_code(cls, code: int) -> "DimsOrder":
        """Make an order from one hex digit for each position (dimension + 1), most significant digit outermost. Raises
        HostError for other numbers."""
        digits = f"{code:x}" if code > 0 else ""
        if code < 0 or code >> 64 or "0" in digits:
            raise HostError(f"{code:#x} is not a code of an order: it holds the digits 1 to n, each once")
        return cls(tuple(int(digit, 16) - 1 for digit in digits))

    @classmethod
    def from_name(cls, name: str) -> "DimsOrder":
        """Make an order from a name such as NHWC or OYXI. Raises HostError for an unknown one."""
        if name not in _CODES:
            raise HostError(f"no order is named {name!r}, {near(name, _CODES)}".removesuffix(", "))
        return cls.from_code(_CODES[name])

    @classmethod
    def from_affine_map(cls, text: str) -> "DimsOrder":
        """Make an order from `affine_map<(d0, d1) -> (d1, d0)>`; the names of the dimensions are free. Raises HostError
        for a map that is no permutation."""
        match = _AFFINE.match(text)
        if match is None:
            raise HostError(f"{text} is not an order: it does not map dimensions to themselves")
        dims, results = ([name.strip() for name in part.split(",")] if part.strip() else [] for part in match.groups())
        if len(set(dims)) != len(dims) or any(name not in dims for name in results) or len(dims) != len(results):
            raise HostError(f"{text} is not an order: it does not permute its dimensions")
        return cls(tuple(dims.index(name) for name in results))

    @classmethod
    def of(cls, value: "DimsOrder | str | int | Iterable[int]") -> "DimsOrder":
        """Make an order from any of its forms: an order, a name, a code, a permutation. Raises HostError for a value
        that is none."""
        if isinstance(value, DimsOrder):
            return value
        if isinstance(value, str):
            return cls.from_name(value)
        if isinstance(value, int):
            return cls.from_code(value)
        return cls.from_permutation(value)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.perm)

    @property
    def code(self) -> int:
        """The code with one hex digit for each position, dimension + 1; 0 for a scalar."""
        return int("".join(f"{dim + 1:x}" for dim in self.perm) or "0", 16)

    @property
    def kernel_code(self) -> int:
        """The code in the form that kernels see, the innermost dimension in the most significant digit."""
        return int("".join(f"{dim + 1:x}" for dim in reversed(self.perm)) or "0", 16)

    @property
    def name(self) -> str:
        """The canonical name, empty where there is none."""
        return CANONICAL_NAMES.get(self.code, "")

    @property
    def is_identity(self) -> bool:
        """True when memory follows the logical dimensions."""
        return self.perm == tuple(range(len(self.perm)))

    def to_affine_map(self) -> str:
        """Return the order in MLIR's notation."""
        dims = ", ".join(f"d{dim}" for dim in range(len(self.perm)))
        return f"affine_map<({dims}) -> ({', '.join(f'd{dim}' for dim in self.perm)})>"

    def to_memory(self, values: Sequence[Entry]) -> tuple[Entry, ...]:
        """Return values, one for each logical dimension, in memory order. Raises HostError for another number of
        values."""
        self._require_rank(values)
        return tuple(values[dim] for dim in self.perm)

    def to_logical(self, values: Sequence[Entry]) -> tuple[Entry, ...]:
        """Return values, one for each memory position, in logical order. Raises HostError for another number of
        values."""
        self._require_rank(values)
        return tuple(values[self.perm.index(dim)] for dim in range(len(self.perm)))

    def dim_at(self, position: MemDim) -> Dim:
        """Return the logical dimension at a memory position. Raises HostError where there is none."""
        if position.index >= len(self.perm):
            raise HostError(f"{self} has no memory position {position.index}")
        return Dim(self.perm[position.index])

    def position_of(self, dim: Dim) -> MemDim:
        """Return the memory position of a logical dimension. Raises HostError where there is none."""
        if dim.index >= len(self.perm):
            raise HostError(f"{self} has no dimension {dim.index}")
        return MemDim(self.perm.index(dim.index))

    def is_compatible(self, strides: Sequence[int]) -> bool:
        """Return whether these strides, in logical order, may belong to this order: they must not grow from the
        outermost to the innermost dimension."""
        if len(strides) != len(self.perm):
            return False
        along = self.to_memory(strides)
        return all(outer >= inner for outer, inner in pairwise(along))

    def _require_rank(self, values: Sequence[object]) -> None:
        """Raise HostError unless there is one value for each dimension of the order."""
        if len(values) != len(self.perm):
            raise HostError(f"{len(values)} values do not belong to the {len(self.perm)} dimensions of {self}")

    def __str__(self) -> str:
        return self.name or str(list(self.perm))


KINDS: Final = ("any", "compact", "aligned", "fixed")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement on the stride of one memory dimension: `compact` (no gap), `aligned` (to a power of two), `fixed`
    or `any`.

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
    """Requirements on strides, at most one for each memory dimension: `StrideReqs([(0, "compact"), (2, "aligned",
    1024)])`.

    Raises HostError for a dimension that is named twice and for impossible requirements.
    """

    def __init__(self, requirements: Iterable[Requirement | Sequence[object]] = ()) -> None:
        self._by_dim: dict[int, Requirement] = {}
        for entry in requirements:
            if isinstance(entry, Requirement):
                requirement = entry
            else:
                requirement = _make_requirement(entry)
            if requirement.dim.index in self._by_dim:
                raise HostError(f"memory dimension {requirement.dim.index} has two requirements")
            if requirement.kind != "any":
                self._by_dim[requirement.dim.index] = requirement

    @classmethod
    def simple(cls, rank: int) -> "StrideReqs":
        """Return the requirement that the innermost of `rank` dimensions has no gap."""
        return cls([(rank - 1, "compact")] if rank else [])

    @classmethod
    def compact(cls, rank: int) -> "StrideReqs":
        """Return the requirements that none of `rank` dimensions has a gap."""
        return cls([(dim, "compact") for dim in range(rank)])

    @classmethod
    def fixed(cls, strides: Sequence[int]) -> "StrideReqs":
        """Return the requirements of exactly these strides, in bits and memory order."""
        return cls([(dim, "fixed", stride) for dim, stride in enumerate(strides)])

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements in order of dimensions, without those of kind `any`."""
        return tuple(self._by_dim[dim] for dim in sorted(self._by_dim))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StrideReqs) and self._by_dim == other._by_dim

    def __hash__(self) -> int:
        return hash(self.requirements)

    def __repr__(self) -> str:
        return f"StrideReqs({[(r.dim.index, r.kind, r.value) for r in self.requirements]})"

    def calculate(self, bits: int, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the strides, in bits, of a memory shape with elements of `bits` bits: the smallest that fulfil the
        requirements. Raises HostError for a required dimension that the shape lacks."""
        self._require_fit(bits, shape)
        strides = [0] * len(shape)
        for dim in reversed(range(len(shape))):
            stride = _compact_stride(strides, shape, dim, bits)
            required = self._by_dim.get(dim)
            if required is not None and required.kind != "compact":
                value = required.value or 1
                if required.kind == "fixed":
                    stride = value
                else:
                    stride = -(-stride // value) * value
            strides[dim] = stride
        return tuple(strides)

    def check(self, strides: Sequence[int], bits: int, shape: Sequence[int]) -> bool:
        """Return whether strides, in bits and memory order, fit the shape and these requirements. A stride may be one
        element short of what the next inner dimension takes, as in the public compiler. Raises HostError for a required
        dimension that the shape lacks."""
        self._require_fit(bits, shape)
        if len(strides) != len(shape):
            return False
        for dim, stride in enumerate(strides):
            base = _compact_stride(strides, shape, dim, bits)
            least = bits if dim == len(shape) - 1 else base - bits
            if stride < least or not self._accepts(dim, stride, base):
                return False
        return True

    def _accepts(self, dim: int, stride: int, compact: int) -> bool:
        """Return whether a stride meets the requirement of its dimension, where a compact one would be `compact`."""
        required = self._by_dim.get(dim)
        if required is None:
            return True
        value = required.value or 1
        if required.kind == "fixed":
            return stride == value
        if required.kind == "aligned":
            return stride % value == 0
        return required.kind != "compact" or stride == compact

    def join(self, other: "StrideReqs", bits: int, shape: Sequence[int]) -> "StrideReqs":
        """Return the requirements of both sides, for a memory shape with elements of `bits` bits. Raises HostError
        where no strides fulfil both."""
        merged: list[Requirement] = []
        for dim in sorted({*self._by_dim, *other._by_dim}):
            left = self._by_dim.get(dim)
            right = other._by_dim.get(dim)
            if left is None or right is None:
                merged += [requirement for requirement in (left, right) if requirement is not None]
                continue
            if left.kind == right.kind == "fixed" and left.value != right.value:
                raise HostError(f"stride {dim} cannot be both {left.value} and {right.value} bits")
            merged.append(right if right.kind == "fixed" else left)
        result = StrideReqs(merged)
        strides = result.calculate(bits, shape)
        if not (self.check(strides, bits, shape) and other.check(strides, bits, shape)):
            raise HostError(f"no strides fulfil both {self!r} and {other!r}")
        return result

    def _require_fit(self, bits: int, shape: Sequence[int]) -> None:
        """Raise HostError for elements or a shape that are not possible, and for a shape that lacks a required
        dimension."""
        if bits <= 0 or any(size < 0 for size in shape):
            raise HostError(f"elements of {bits} bits in shape {list(shape)} are not possible")
        if self._by_dim and max(self._by_dim) >= len(shape):
            raise HostError(f"memory dimension {max(self._by_dim)} is not in a shape of {len(shape)}")


def _compact_stride(strides: Sequence[int], shape: Sequence[int], dim: int, bits: int) -> int:
    """Return the stride in bits of memory dimension `dim` that leaves no gap after the next inner one; `bits`, an
    element's, for the innermost."""
    if dim == len(shape) - 1:
        return bits
    return strides[dim + 1] * shape[dim + 1]


def _make_requirement(entry: Sequence[object]) -> Requirement:
    """Return a requirement from its dimension, kind and value. Raises HostError for another sequence."""
    dim, kind, value = (*entry, None, None)[:3]
    odd = len(entry) > 3 or isinstance(value, bool) or isinstance(dim, bool)
    if odd or not isinstance(kind, str) or not isinstance(value, int | None) or not isinstance(dim, int | MemDim):
        raise HostError(f"{entry!r} is not a requirement: (dimension, kind, value)")
    return Requirement(dim if isinstance(dim, MemDim) else MemDim(dim), kind, value)


def address(index: Sequence[int], order: DimsOrder, strides: Sequence[int]) -> int:
    """Return the bits from the beginning of a tensor to an element, given by logical index; strides are in memory
    order."""
    return sum(at * stride for at, stride in zip(order.to_memory(index), strides, strict=True))


def alloc_bits(shape: Sequence[int], strides: Sequence[int], bits: int) -> int:
    """Return the bits from the first to the last element, inclusive; 0 without elements. Shape and strides are in
    memory order."""
    if any(size == 0 for size in shape):
        return 0
    return sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + bits
