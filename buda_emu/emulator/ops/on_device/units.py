"""The units of a core on rows of tiles: what every op of precision "device" is composed of.

An op is written once against `Units`. `ReferenceUnits` (`reference_units.py`) is plain numpy and the definition;
`KernelUnits` (`kernel_units.py`) are the numba kernels with the same bits. Tiles are rows of 1024 datums in natural
order: register words and Dst images uint32[n, 1024], stored tiles `Bits`. The section in brackets is that of
DEVICE_NUMERICS.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.kernels.tensix.picks import Picks
from buda_emu.arithmetic.tensix.conversions.pack import Intermediate, ReluMode
from buda_emu.arithmetic.tensix.elementwise import Dim
from buda_emu.arithmetic.tensix.functions.table import Bound
from buda_emu.arithmetic.tensix.lanes import DstMode, VectorMode
from buda_emu.arithmetic.tensix.registers import REGISTERS, Core
from buda_emu.emulator.ops.base import Parallel
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import Family

Index = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Words:
    """An operand in a register file: words uint32[w or 1, tiles, 1024], or `Units.halves` [w or 1, tiles, 512], read
    through `index`, in which a negative number is a tile full of the word `pad`; `transposed` inside each tile."""

    register: str
    tiles: U32
    index: Index
    pad: np.uint32
    transposed: bool = False


Pair = tuple[Words, Words]
"""in0 and in1 of a product."""


@dataclass(frozen=True, slots=True)
class Product:
    """The matrix product of a use of matmul: rows, inner and columns of one t slice in tiles, faces of the inner
    dimension of a tile (1 or 2), and the math fidelity."""

    rows: int
    inner: int
    cols: int
    faces: int
    fidelity: str


@dataclass(frozen=True, slots=True)
class Spill:
    """Blocks of the inner dimension: after those inner tiles for which `ends`, bool[inner], is set, but the last one of
    a product, the sums go to L1 as `df` (`held_as` in the packer) and come back through `register` (2.8)."""

    ends: NDArray[np.bool_]
    held_as: Intermediate
    df: str
    register: str


@dataclass(frozen=True, slots=True)
class Picking:
    """The lines that an identity matmul picks from `source` [w or 1, tiles], read through `index`, in which a negative
    number is a tile full of the word `pad`, `transposed` inside each tile, in register format `register`: see
    `kernels.tensix.picks`."""

    picks: Picks
    source: Bits
    index: Index
    pad: np.uint32
    transposed: bool
    register: str
    cols: int
    group_cols: int


class ProductBlock(NamedTuple):
    """The part of a product that is summed up at once: that over the inner tiles `k`. `fresh`: Dst holds nothing yet,
    which counts as zeros."""

    operands: Pair
    product: Product
    mode: DstMode
    k: range
    spill: Spill | None = None
    fresh: bool = False


class PackedAs(NamedTuple):
    """The settings of the packer for a Dst image: `df`, held as `held_as` on the way, after relu (4)."""

    mode: DstMode
    held_as: Intermediate
    df: str
    relu: ReluMode = 0
    threshold: int = 0


class Units(Protocol):
    """Unpacker, matrix unit, vector unit and packer of one core."""

    @property
    def core(self) -> Core:
        """The core whose arithmetic the units have."""
        ...

    def room(self, *leading: int) -> U32:
        """Return working memory uint32[*leading, 1024] with undefined contents, valid while the op runs."""
        ...

    def halves(self, tiles: Bits, register: str, parallel: Parallel) -> U32 | None:
        """Return the upper halves, packed as uint32[w, n, 512], of the register words of stored tiles [w, n]; None
        where the lower halves hold bits, or `matmul` of these units reads no such tiles. It saves unpacking to whole
        words."""
        ...

    def unpack(self, tiles: Bits, register: str, out: U32 | None = None) -> U32:
        """Return register words uint32[n, 1024] of stored tiles, in `out` where it is given; a Dst image where the
        register is one of those that unpack to Dst (DEVICE_NUMERICS 1)."""
        ...

    def copy(self, words: U32, register: str, mode: DstMode) -> U32:
        """Return the Dst image, for a Dst of `mode`, of register words of format `register` (DEVICE_NUMERICS 2.7)."""
        ...

    def add(self, a: U32, b: U32, register: str, mode: DstMode, subtract: bool = False, dst: U32 | None = None) -> U32:
        """Return the Dst image of a + b (ELWADD), with `subtract` of a - b (ELWSUB), added to `dst` where one is given
        (DEVICE_NUMERICS 2.5, 5). `a` and `b` are register words [n, 1024] of format `register`."""
        ...

    def multiply(self, a: U32, b: U32, register: str, mode: DstMode, fidelity: str, dst: U32 | None = None) -> U32:
        """Return the Dst image of a * b (ELWMUL) in the phases of a math fidelity, added to `dst` where one is given
        (DEVICE_NUMERICS 2.4, 5). `a` and `b` are register words [n, 1024] of format `register`."""
        ...

    def matmul(self, dst: U32, items: range, block: ProductBlock) -> None:
        """Add the products of a block to the tiles `items` of dst[w, n, 1024], in place; tiles are counted over w
        (DEVICE_NUMERICS 2.8)."""
        ...

    def picker(
        self, picking: Picking, fidelity: str, mode: DstMode, spill: Spill | None
    ) -> Callable[[U32, int, int], None] | None:
        """Return a function (images, start, stop) that adds the products of an identity matmul's tiles start..stop to
        images[stop - start, 1024], line by line; None where these units cannot, and the caller multiplies tiles.
        `spill`: how sums go to L1 and back between two strips, None if they stay in Dst."""
        ...

    def l1_picker(
        self, picking: Picking, fidelity: str, mode: DstMode, df: str
    ) -> Callable[[Bits, int, int], None] | None:
        """Return a function (out, start, stop) that makes an identity matmul's tiles start..stop line by line, packs
        every strip as `df` and adds it up in L1 (DEVICE_NUMERICS 4.6); None where these units cannot, and the caller
        multiplies tiles."""
        ...

    def pool(self, source: Words, dst: U32, start: int, stop: int, dim: Dim, mode: DstMode) -> None:
        """Write tiles start..stop of dst[w, m, 1024], each the maximum, along `dim`, over equally many consecutive
        tiles of the source (DEVICE_NUMERICS 2.6)."""
        ...

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """Return the Dst image of a vector function of one or two images; elements outside the vector mode keep those
        of the first image (DEVICE_NUMERICS 3)."""
        ...

    def to_src(self, dst: U32, mode: DstMode, register: str) -> U32:
        """Return the words of a Src register of format `register` for a Dst image that becomes an operand
        (DEVICE_NUMERICS 2.7)."""
        ...

    def pack(self, dst: U32, to: PackedAs, out: Bits | None = None) -> Bits:
        """Return the stored tiles of a Dst image, packed with the settings `to`, in `out` where it is given
        (DEVICE_NUMERICS 4)."""
        ...

    def recode(self, tiles: Bits, out: Bits) -> None:
        """Unpack tiles of Float16 or Float16_b, copy them to a Dst of 16 bits, and pack them again into `out`: a copy
        that changes zeros, denormals and NaNs only."""
        ...

    def add_in_l1(self, old: Bits, new: Bits) -> Bits:
        """Return the tiles that the packer leaves in L1 where it adds `new` to the tiles `old` there (DEVICE_NUMERICS
        4.6)."""
        ...


def float_mode(mode: DstMode) -> DstMode:
    """Return the mode in which Dst holds floats in an op with this mode: fp32 in an op on integers, whose Dst has 32
    bits (DEVICE_NUMERICS 1.1)."""
    return "fp32" if mode == "int32" else mode


def family_of(register: str) -> Family | None:
    """Return the exponent family ("a" or "b") of a register format; None for integers. Raises KeyError for a name that
    is no register format."""
    return REGISTERS[register]


def float_family(register: str) -> Family:
    """Return the exponent family of a register format of floats; "b" for formats that only Dst has."""
    return REGISTERS[register] or "b"


def tiles_of(dst: U32) -> U32:
    """Return dst[w, n, 1024] as one row of tiles [w * n, 1024], the same memory."""
    return dst.reshape(-1, TILE_ELEMENTS)


def block_by_block(units: Units, dst: U32, items: range, block: ProductBlock, spill: Spill) -> None:
    """Do the work of `Units.matmul` with a spill by single steps: multiply the inner tiles up to each end, pack the
    sums and read them back. `items`: the tiles of dst, to whose contents the products are added."""
    rows = tiles_of(dst)[items.start : items.stop]
    after = [n + 1 for n in block.k[:-1] if spill.ends[n]]
    for first, last in pairwise([block.k.start, *after, block.k.stop]):
        if first > block.k.start:
            stored = units.pack(rows, PackedAs(block.mode, spill.held_as, spill.df))
            rows[...] = units.copy(units.unpack(stored, spill.register), spill.register, block.mode)
        units.matmul(dst, items, block._replace(k=range(first, last), spill=None, fresh=False))
