"""The order of a tensor's dimensions in memory (VPUX 1)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeVar

from buda_emu.checker.suggest import near
from buda_emu.errors import HostError
from buda_emu.vpux.layout.dims import MOST_DIMS, Dim, MemDim

Item = TypeVar("Item")

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
        """From the logical dimension of each memory position, outermost first."""
        return cls(tuple(permutation))

    @classmethod
    def identity(cls, rank: int) -> "DimsOrder":
        """Memory in logical order."""
        return cls(tuple(range(rank)))

    @classmethod
    def from_code(cls, code: int) -> "DimsOrder":
        """From one hex digit for each position (dimension + 1), most significant digit outermost."""
        digits = f"{code:x}" if code > 0 else ""
        if code < 0 or code >> 64 or "0" in digits:
            raise HostError(f"{code:#x} is not a code of an order: it holds the digits 1 to n, each once")
        return cls(tuple(int(digit, 16) - 1 for digit in digits))

    @classmethod
    def from_name(cls, name: str) -> "DimsOrder":
        """From a name such as NHWC or OYXI."""
        if name not in _CODES:
            raise HostError(f"no order is named {name!r}, {near(name, _CODES)}".removesuffix(", "))
        return cls.from_code(_CODES[name])

    @classmethod
    def from_affine_map(cls, text: str) -> "DimsOrder":
        """From `affine_map<(d0, d1) -> (d1, d0)>`; the names of the dimensions are free."""
        found = _AFFINE.match(text)
        if found is None:
            raise HostError(f"{text} is not an order: it does not map dimensions to themselves")
        dims, results = ([item.strip() for item in part.split(",")] if part.strip() else [] for part in found.groups())
        if len(set(dims)) != len(dims) or any(item not in dims for item in results) or len(dims) != len(results):
            raise HostError(f"{text} is not an order: it does not permute its dimensions")
        return cls(tuple(dims.index(item) for item in results))

    @classmethod
    def of(cls, value: "DimsOrder | str | int | Iterable[int]") -> "DimsOrder":
        """From any of its forms: an order, a name, a code, a permutation."""
        if isinstance(value, DimsOrder):
            return value
        if isinstance(value, str):
            return cls.from_name(value)
        return cls.from_code(value) if isinstance(value, int) else cls.from_permutation(value)

    @property
    def rank(self) -> int:
        """Dimensions."""
        return len(self.perm)

    @property
    def code(self) -> int:
        """One hex digit for each position, dimension + 1; 0 for a scalar."""
        return int("".join(f"{dim + 1:x}" for dim in self.perm) or "0", 16)

    @property
    def kernel_code(self) -> int:
        """The code as kernels see it: innermost dimension in the most significant digit."""
        return int("".join(f"{dim + 1:x}" for dim in reversed(self.perm)) or "0", 16)

    @property
    def name(self) -> str:
        """The canonical name, empty where there is none."""
        return CANONICAL_NAMES.get(self.code, "")

    @property
    def is_identity(self) -> bool:
        """Is memory in logical order?"""
        return self.perm == tuple(range(len(self.perm)))

    def to_affine_map(self) -> str:
        """As MLIR writes it."""
        dims = ", ".join(f"d{dim}" for dim in range(len(self.perm)))
        return f"affine_map<({dims}) -> ({', '.join(f'd{dim}' for dim in self.perm)})>"

    def to_memory(self, values: Sequence[Item]) -> tuple[Item, ...]:
        """Logical order to memory order. Raises HostError for another rank."""
        self._same_rank(values)
        return tuple(values[dim] for dim in self.perm)

    def to_logical(self, values: Sequence[Item]) -> tuple[Item, ...]:
        """Memory order to logical order. Raises HostError for another rank."""
        self._same_rank(values)
        return tuple(values[self.perm.index(dim)] for dim in range(len(self.perm)))

    def dim_at(self, position: MemDim) -> Dim:
        """The logical dimension at a memory position. Raises HostError where there is none."""
        if position.index >= len(self.perm):
            raise HostError(f"{self} has no memory position {position.index}")
        return Dim(self.perm[position.index])

    def position_of(self, dim: Dim) -> MemDim:
        """The memory position of a logical dimension. Raises HostError where there is none."""
        if dim.index >= len(self.perm):
            raise HostError(f"{self} has no dimension {dim.index}")
        return MemDim(self.perm.index(dim.index))

    def is_compatible(self, strides: Sequence[int]) -> bool:
        """May these strides, in logical order, belong to this order? They must not grow from outermost to innermost."""
        if len(strides) != len(self.perm):
            return False
        along = self.to_memory(strides)
        return all(outer >= inner for outer, inner in pairwise(along))

    def _same_rank(self, values: Sequence[object]) -> None:
        if len(values) != len(self.perm):
            raise HostError(f"{len(values)} values do not belong to the {len(self.perm)} dimensions of {self}")

    def __str__(self) -> str:
        return self.name or str(list(self.perm))
