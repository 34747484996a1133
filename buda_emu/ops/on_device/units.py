"""The units of a core on rows of tiles: what every op of precision "device" is composed of.

An op is written once against `Units`. `ReferenceUnits` is plain numpy and the definition; `KernelUnits` are the numba
kernels with the same bits. Tiles are rows of 1024 datums in natural order: register words and Dst images uint32[n,
1024], stored tiles `Bits`. The section in brackets is that of DEVICE_NUMERICS.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from buda_emu.kernels.tensix import eltwise as eltwise_kernels
from buda_emu.kernels.tensix import eltwise_by_singles as singles_kernels
from buda_emu.kernels.tensix import integer as integer_kernels
from buda_emu.kernels.tensix import l1_acc as l1_kernels
from buda_emu.kernels.tensix import maxpool as maxpool_kernels
from buda_emu.kernels.tensix import moves as move_kernels
from buda_emu.kernels.tensix import pack as pack_kernels
from buda_emu.kernels.tensix import tile_matmul as matmul_kernels
from buda_emu.kernels.tensix.spills import SPILLS
from buda_emu.kernels.tensix.words import MODES
from buda_emu.numerics.bits import U32
from buda_emu.numerics.stored import Bits
from buda_emu.spec.formats import Family
from buda_emu.tensix import eltwise, functions, integer, l1_acc, maxpool, moves, pack, tile_matmul, unpack
from buda_emu.tensix.fidelity import PHASES, phase_mask
from buda_emu.tensix.functions import Bound
from buda_emu.tensix.intermediate import Intermediate
from buda_emu.tensix.lanes import DstMode, VectorMode
from buda_emu.tensix.maxpool import KEPT, Dim
from buda_emu.tensix.registers import IN_DST, REGISTERS
from buda_emu.tensix.relu import ReluMode
from buda_emu.tensix.unpack_tiles import unpacker
from buda_emu.tensix.words import Core, kernel_setting

Index = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Words:
    """An operand in a register file: words uint32[w or 1, tiles, 1024], read through `index`, in which a negative
    number is a tile full of the word `pad`; `transposed` inside each tile."""

    register: str
    tiles: U32
    index: Index
    pad: np.uint32
    transposed: bool = False


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


class Units(Protocol):
    """Unpacker, matrix unit, vector unit and packer of one core."""

    @property
    def core(self) -> Core:
        """Whose arithmetic it is."""
        ...

    def unpack(self, tiles: Bits, register: str) -> U32:
        """Register words of stored tiles [n, 1024]; a Dst image for registers of `IN_DST` (1)."""
        ...

    def copy(self, words: U32, register: str, mode: DstMode) -> U32:
        """The Dst image of an operand that is copied to Dst (2.7)."""
        ...

    def add(self, a: U32, b: U32, register: str, mode: DstMode, subtract: bool = False, dst: U32 | None = None) -> U32:
        """ELWADD or ELWSUB, accumulated onto `dst` where one is given (2.5, 5)."""
        ...

    def multiply(self, a: U32, b: U32, register: str, mode: DstMode, fidelity: str, dst: U32 | None = None) -> U32:
        """ELWMUL onto `dst`, or onto zeros (2.4, 5)."""
        ...

    def matmul(
        self, dst: U32, start: int, stop: int, in0: Words, in1: Words, product: Product, mode: DstMode, k: range,
        spill: Spill | None = None,
    ) -> None:  # fmt: skip
        """dst[w, n, 1024] += in0 x in1 over the inner tiles k, for tiles start..stop of dst counted over w (2.8)."""
        ...

    def pool(self, source: Words, dst: U32, start: int, stop: int, dim: Dim, mode: DstMode) -> None:
        """Tiles start..stop of dst[w, m, 1024] = the maxima over equally many tiles of the source each (2.6)."""
        ...

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """A function of the vector unit; what the vector mode does not reach keeps the first image (3)."""
        ...

    def to_src(self, dst: U32, mode: DstMode, register: str) -> U32:
        """Register words of a Dst image used as an operand (2.7)."""
        ...

    def pack(
        self, dst: U32, mode: DstMode, held_as: Intermediate, df: str, relu: ReluMode = 0, threshold: int = 0,
        out: Bits | None = None,
    ) -> Bits:  # fmt: skip
        """Stored tiles of a Dst image (4), in `out` where it is given."""
        ...

    def recode(self, tiles: Bits) -> Bits:
        """Tiles of Float16 or Float16_b unpacked, copied to a Dst of the same bits, and packed again."""
        ...

    def add_in_l1(self, old: Bits, new: Bits) -> Bits:
        """What the packer leaves in L1 where it adds to what is there (4.6)."""
        ...


def float_mode(mode: DstMode) -> DstMode:
    """What Dst holds of a float in an op on integers, whose Dst has 32 bits (1.1)."""
    return "fp32" if mode == "int32" else mode


def family_of(register: str) -> Family | None:
    """Of a register format; None for integers and what is not in a Src register."""
    return REGISTERS[register]


def _float_family(register: str) -> Family:
    return REGISTERS[register] or "b"


@dataclass(frozen=True, slots=True)
class ReferenceUnits:
    """The definition, in plain numpy."""

    core: Core

    def unpack(self, tiles: Bits, register: str) -> U32:
        """See `Units`."""
        return unpack.unpack(tiles.datums, tiles.df, register, self.core, tiles.exponents)

    def copy(self, words: U32, register: str, mode: DstMode) -> U32:
        """See `Units`."""
        if register in IN_DST:
            return words.copy()
        if REGISTERS[register] is None:
            return integer.int_copy(words)
        return moves.copy_to_dst(words, _float_family(register), float_mode(mode), self.core)

    def add(self, a: U32, b: U32, register: str, mode: DstMode, subtract: bool = False, dst: U32 | None = None) -> U32:
        """See `Units`."""
        if REGISTERS[register] is None:
            return (integer.int_elwsub if subtract else integer.int_elwadd)(dst, a, b)
        function = eltwise.elwsub if subtract else eltwise.elwadd
        return function(dst, a, b, _float_family(register), mode, self.core)

    def multiply(self, a: U32, b: U32, register: str, mode: DstMode, fidelity: str, dst: U32 | None = None) -> U32:
        """See `Units`."""
        result = np.zeros_like(a) if dst is None else dst
        for phase in PHASES[fidelity]:
            if REGISTERS[register] is None:
                result = integer.int_elwmul(result, a, b, phase)
            else:
                result = eltwise.elwmul(result, a, b, phase, _float_family(register), mode, self.core)
        return result

    def matmul(
        self, dst: U32, start: int, stop: int, in0: Words, in1: Words, product: Product, mode: DstMode, k: range,
        spill: Spill | None = None,
    ) -> None:  # fmt: skip
        """See `Units`."""
        if spill is not None:
            _block_by_block(self, dst, start, stop, in0, in1, product, mode, k, spill)
            return
        rows, inner, cols = product.rows, product.inner, product.cols
        flat = dst.reshape(-1, 32, 32)
        kept = slice(0, 16 * product.faces)
        for item in range(start, stop):
            entry, tile = divmod(item, dst.shape[1])
            row, col = divmod(tile, cols)
            left = [_tile(in0, entry, row * inner + n)[:, kept] for n in k]
            right = [_tile(in1, entry, (row // rows * inner + n) * cols + col)[kept] for n in k]
            a, b = np.stack(left), np.stack(right)
            if REGISTERS[in0.register] is None:
                flat[item] = tile_matmul.int_tile_matmul(flat[item], a, b, self.core)
            else:
                family = _float_family(in0.register)
                phases = PHASES[product.fidelity]
                flat[item] = tile_matmul.tile_matmul(flat[item], a, b, phases, family, mode, self.core)

    def pool(self, source: Words, dst: U32, start: int, stop: int, dim: Dim, mode: DstMode) -> None:
        """See `Units`."""
        count = source.index.size // dst.shape[1]
        flat = dst.reshape(-1, 32, 32)
        for item in range(start, stop):
            entry, tile = divmod(item, dst.shape[1])
            tiles = np.stack([_tile(source, entry, n) for n in range(tile * count, (tile + 1) * count)])
            flat[item] = maxpool.reduce_max(tiles, dim, source.register, mode, self.core)

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """See `Units`."""
        tiles = (image.reshape(-1, 32, 32) for image in images)
        return functions.reference(bound, mode, *tiles, vector=vector).reshape(-1, 1024)

    def to_src(self, dst: U32, mode: DstMode, register: str) -> U32:
        """See `Units`."""
        return moves.move_to_src(dst, mode, register)

    def pack(
        self, dst: U32, mode: DstMode, held_as: Intermediate, df: str, relu: ReluMode = 0, threshold: int = 0,
        out: Bits | None = None,
    ) -> Bits:  # fmt: skip
        """See `Units`."""
        packed = Bits(df, *pack.pack(dst, mode, held_as, df, relu, threshold, self.core))
        if out is not None:
            out.assign(slice(None), packed)
        return packed if out is None else out

    def recode(self, tiles: Bits) -> Bits:
        """See `Units`."""
        mode: DstMode = "fp16" if tiles.df == "Float16" else "bf16"
        image = self.copy(self.unpack(tiles, tiles.df), tiles.df, mode)
        return self.pack(image, mode, "Float16" if tiles.df == "Float16" else "Float16_b", tiles.df)

    def add_in_l1(self, old: Bits, new: Bits) -> Bits:
        """See `Units`."""
        return Bits(new.df, l1_acc.accumulate(new.df, old.datums, new.datums))


def _tile(source: Words, entry: int, position: int) -> U32:
    """uint32[32, 32] of one tile of an operand."""
    at = source.index[position]
    if at < 0:
        return np.full((32, 32), source.pad)
    tile = source.tiles[entry if len(source.tiles) > 1 else 0, at].reshape(32, 32)
    return tile.T if source.transposed else tile


def _ranges(chosen: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """From where to where, for each that is set."""
    return [(n, n + 1) for n in np.flatnonzero(chosen).tolist()] if chosen.any() else []


def _block_by_block(
    units: Units, dst: U32, start: int, stop: int, in0: Words, in1: Words, product: Product, mode: DstMode, k: range,
    spill: Spill,
) -> None:  # fmt: skip
    """`Units.matmul` with a spill, of the other units' steps."""
    rows = dst.reshape(-1, 1024)[start:stop]
    after = [n + 1 for n in k[:-1] if spill.ends[n]]
    for first, last in pairwise([k.start, *after, k.stop]):
        if first > k.start:
            stored = units.pack(rows, mode, spill.held_as, spill.df)
            rows[...] = units.copy(units.unpack(stored, spill.register), spill.register, mode)
        units.matmul(dst, start, stop, in0, in1, product, mode, range(first, last))


_unpacker = lru_cache(maxsize=64)(unpacker)


@dataclass(frozen=True, slots=True)
class KernelUnits:
    """The kernels. Arrays are C-contiguous."""

    core: Core

    @property
    def _blackhole(self) -> bool:
        return self.core == "blackhole"

    def unpack(self, tiles: Bits, register: str) -> U32:
        """See `Units`."""
        if register in IN_DST:
            return unpack.unpack(tiles.datums, tiles.df, register, self.core)
        out = np.empty(tiles.datums.shape, np.uint32)
        parts = (tiles.datums,) if tiles.exponents is None else (tiles.datums, tiles.exponents)
        _unpacker(tiles.df, register, self.core)(0, len(out), out, *parts)
        return out

    def copy(self, words: U32, register: str, mode: DstMode) -> U32:
        """See `Units`."""
        if register in IN_DST:
            return words.copy()
        out = np.empty_like(words)
        if REGISTERS[register] is None:
            integer_kernels.int_copy_tiles(0, len(out), out, words)
        else:
            setting = self._setting(register, float_mode(mode))
            move_kernels.copy_to_dst_tiles(0, len(out), out, words, setting[0], setting[1])
        return out

    def add(self, a: U32, b: U32, register: str, mode: DstMode, subtract: bool = False, dst: U32 | None = None) -> U32:
        """See `Units`."""
        out = np.empty_like(a) if dst is None else dst.copy()
        if REGISTERS[register] is None:
            integer_kernels.int_elwadd_tiles(0, len(out), out, a, b, subtract, dst is not None)
            return out
        setting, todo = self._setting(register, mode), [(0, len(out))]
        if dst is None:
            left_out = np.empty(len(out), np.bool_)
            singles_kernels.add_by_singles(0, len(out), out, a, b, subtract, *setting[:2], left_out)
            todo = _ranges(left_out)
        for start, stop in todo:
            eltwise_kernels.elwadd_tiles(start, stop, out, a, b, subtract, dst is not None, *setting)
        return out

    def multiply(self, a: U32, b: U32, register: str, mode: DstMode, fidelity: str, dst: U32 | None = None) -> U32:
        """See `Units`."""
        if REGISTERS[register] is None:
            out = np.zeros_like(a) if dst is None else dst.copy()
            integer_kernels.int_elwmul_tiles(0, len(out), out, a, b)
            return out
        setting, phases = self._setting(register, mode), phase_mask(fidelity)
        out = np.empty_like(a) if dst is None else dst.copy()
        todo = [(0, len(out))]
        if dst is None:
            left_out = np.empty(len(out), np.bool_)
            singles_kernels.multiply_by_singles(0, len(out), out, a, b, phases, *setting[:2], left_out)
            out[left_out] = 0
            todo = _ranges(left_out)
        for start, stop in todo:
            eltwise_kernels.elwmul_tiles(start, stop, out, a, b, phases, *setting)
        return out

    def matmul(
        self, dst: U32, start: int, stop: int, in0: Words, in1: Words, product: Product, mode: DstMode, k: range,
        spill: Spill | None = None,
    ) -> None:  # fmt: skip
        """See `Units`."""
        if spill is not None:
            self._matmul_in_blocks(dst, start, stop, in0, in1, product, mode, k, spill)
            return
        dims = dst.shape[1] // (product.rows * product.cols), product.rows, product.inner, product.cols
        inner = k.start, k.stop, product.faces
        faces_first = self.core == "grayskull"
        if REGISTERS[in0.register] is None:
            integer_kernels.int_matmul_tiles(
                start, stop, dst, in0.tiles, in0.index, in1.tiles, in1.index, in1.transposed, *dims, *inner, faces_first
            )
            return
        matmul_kernels.matmul_tiles(start, stop, dst, *self._product(dst, in0, in1, product, mode, k))

    def _matmul_in_blocks(
        self, dst: U32, start: int, stop: int, in0: Words, in1: Words, product: Product, mode: DstMode, k: range,
        spill: Spill,
    ) -> None:  # fmt: skip
        """In one kernel where one knows the way to intermed_df and back."""
        ways = (MODES.get(mode, -1), spill.held_as, spill.df, spill.register)
        left = [(start, stop)]
        if ways in SPILLS and REGISTERS[in0.register] is not None:
            arguments = self._product(dst, in0, in1, product, mode, k)
            items = matmul_kernels.matmul_blocks(start, stop, SPILLS[ways], spill.ends, dst, *arguments)
            left = [(item, item + 1) for item in items]
        for first, last in left:
            _block_by_block(self, dst, first, last, in0, in1, product, mode, k, spill)

    def _product(
        self, dst: U32, in0: Words, in1: Words, product: Product, mode: DstMode, k: range
    ) -> tuple[Any, ...]:  # fmt: skip
        """What the kernels are told after `dst`."""
        dims = dst.shape[1] // (product.rows * product.cols), product.rows, product.inner, product.cols
        return (
            in0.tiles, in0.index, in0.pad, in1.tiles, in1.index, in1.pad, in1.transposed, *dims, k.start, k.stop,
            product.faces, phase_mask(product.fidelity), *self._setting(in0.register, mode), self.core == "grayskull",
        )  # fmt: skip

    def pool(self, source: Words, dst: U32, start: int, stop: int, dim: Dim, mode: DstMode) -> None:
        """See `Units`."""
        mode_number, exponent_bits, _ = self._setting(source.register, mode)
        maxpool_kernels.reduce_max_tiles(
            start, stop, dst, source.tiles, source.index, source.pad, dim == "c", KEPT[source.register], mode_number,
            exponent_bits, False,
        )  # fmt: skip

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """See `Units`."""
        out = np.empty_like(images[0])
        functions.run(bound, mode, out, *images, vector=vector)
        return out

    def to_src(self, dst: U32, mode: DstMode, register: str) -> U32:
        """See `Units`."""
        moves.move_to_src(dst[:0], mode, register)  # the same refusals
        kept = KEPT.get(register, np.uint32(0xFFFFFFFF))
        out = np.empty_like(dst)
        move_kernels.move_to_src_tiles(0, len(out), out, dst, {"bf16": 0, "fp16": 1}.get(mode, 2), kept)
        return out

    def pack(
        self, dst: U32, mode: DstMode, held_as: Intermediate, df: str, relu: ReluMode = 0, threshold: int = 0,
        out: Bits | None = None,
    ) -> Bits:  # fmt: skip
        """See `Units`."""
        out = Bits.empty(df, len(dst)) if out is None else out
        pack_kernels.pack(
            0, len(dst), dst, mode, held_as, df, relu, threshold, self.core, out.datums, out.exponents
        )  # fmt: skip
        return out

    def recode(self, tiles: Bits) -> Bits:
        """See `Units`."""
        out = Bits.empty(tiles.df, len(tiles))
        bits = (0x7C00, 0) if tiles.df == "Float16" else (0x7F80, 0x7F80)
        move_kernels.recode_halves(0, len(tiles), out.datums, tiles.datums, *bits)
        return out

    def add_in_l1(self, old: Bits, new: Bits) -> Bits:
        """See `Units`."""
        datums = old.datums.copy()
        l1_kernels.accumulate(0, len(datums), new.df, datums, new.datums)
        return Bits(new.df, datums)

    def _setting(self, register: str, mode: DstMode) -> tuple[int, int, bool]:
        return kernel_setting(_float_family(register), mode, self.core)
