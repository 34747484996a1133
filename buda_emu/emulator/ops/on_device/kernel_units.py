"""The units of a core as kernels, with the bits of `reference_units`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from sys import byteorder
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import GROUPS, Bits
from buda_emu.arithmetic.kernels.tensix import elementwise as elementwise_kernels
from buda_emu.arithmetic.kernels.tensix import elementwise as singles_kernels
from buda_emu.arithmetic.kernels.tensix import pack as l1_kernels
from buda_emu.arithmetic.kernels.tensix import pack as pack_kernels
from buda_emu.arithmetic.kernels.tensix import picks as pick_kernels
from buda_emu.arithmetic.kernels.tensix import unpack as unpack_kernels
from buda_emu.arithmetic.kernels.tensix.products import tile_matmul as integer_kernels
from buda_emu.arithmetic.kernels.tensix.products import tile_matmul as matmul_kernels
from buda_emu.arithmetic.kernels.tensix.products.accumulate import Extent, RegisterOperand
from buda_emu.arithmetic.kernels.tensix.products.accumulate import Product as ProductOfTiles
from buda_emu.arithmetic.kernels.tensix.products.matmul_by_singles import Traversal
from buda_emu.arithmetic.kernels.tensix.products.spills import AS_IT_WAS, SPILLS
from buda_emu.arithmetic.kernels.tensix.products.tile_matmul import runs
from buda_emu.arithmetic.kernels.tensix.words import MODES, Setting
from buda_emu.arithmetic.tensix import elementwise
from buda_emu.arithmetic.tensix.conversions import unpack
from buda_emu.arithmetic.tensix.conversions.unpack import unpacker
from buda_emu.arithmetic.tensix.elementwise import KEPT, Dim
from buda_emu.arithmetic.tensix.functions import table as functions
from buda_emu.arithmetic.tensix.functions.table import Bound
from buda_emu.arithmetic.tensix.lanes import DstMode, VectorMode
from buda_emu.arithmetic.tensix.products import phase_mask
from buda_emu.arithmetic.tensix.registers import IN_DST, REGISTERS, Core, kernel_setting
from buda_emu.emulator.ops.base import Parallel
from buda_emu.emulator.ops.on_device.units import (
    PackedAs,
    Picking,
    Product,
    ProductBlock,
    Spill,
    Words,
    block_by_block,
    float_family,
    float_mode,
    tiles_of,
)
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import FORMATS, is_block


def _product_dims(dst: U32, product: Product) -> tuple[int, int, int, int]:
    """Return in tiles: the t slices of an entry of `dst`, and rows, inner dimension and columns of the product of
    each."""
    return dst.shape[1] // (product.rows * product.cols), product.rows, product.inner, product.cols


_INTEGERS: Final = Setting(MODES["fp32"], 8, False)  # which kernels of integers do not look at


def _kernel_operand(words: Words) -> RegisterOperand:
    """Return an operand as the record that product kernels take."""
    return RegisterOperand(words.tiles, words.index, words.pad, words.transposed)


_WORDS_OF_SINGLES: Final = {"Tf32": -0x2000, "Float16_b": -0x10000}
"""Masks of the bits of a Float32 that a register of the format holds (DEVICE_NUMERICS 1.2)."""


def _spill_key(spill: Spill, mode: DstMode) -> tuple[int, str, str, str]:
    """Return the key of a spill in `SPILLS`, the conversions that the product kernels know."""
    return MODES.get(mode, -1), spill.held_as, spill.df, spill.register


def _kernel_codes(tiles: Bits, register: str) -> pick_kernels.Codes | None:
    """Return stored tiles [w, n] in the form of the kernel of picks; None where that kernel cannot convert their format
    to words of `register`."""
    none = 0, 0, TILE_ELEMENTS
    bytes_ = np.empty(none, np.uint8)
    halves = np.empty(none, np.uint16)
    words = np.empty(none, np.uint32)
    exponents = np.empty((0, 0, GROUPS), np.uint8)
    kind = pick_kernels.HALVES
    align = 0
    mask = -1
    if tiles.exponents is not None:
        kind = pick_kernels.BLOCKS
        bytes_ = _as_bytes(tiles.datums)
        exponents = _as_bytes(tiles.exponents)
        align = 7 - FORMATS[tiles.df].mantissa_bits
    elif tiles.df == "Float32" and register in _WORDS_OF_SINGLES:
        kind = pick_kernels.WORDS
        mask = _WORDS_OF_SINGLES[register]
        words = np.ascontiguousarray(tiles.datums, np.uint32).view()
    elif tiles.df == register and register in ("Float16", "Float16_b"):
        halves = np.ascontiguousarray(tiles.datums, np.uint16).view()
    else:
        return None
    for array in (bytes_, exponents, halves, words):
        array.flags.writeable = False  # one compiled kernel serves all
    return pick_kernels.Codes(kind, bytes_, exponents, align, halves, words, mask)


def _as_bytes(codes: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.uint8]:
    """Return codes as contiguous bytes; always a view, so that kernels are compiled for one kind of array only."""
    return np.ascontiguousarray(codes, np.uint8).view()


_unpacker = lru_cache(maxsize=64)(unpacker)


@dataclass(frozen=True, slots=True)
class KernelUnits:
    """`Units` of kernels. Arrays are C-contiguous."""

    core: Core
    lend: Callable[[int], NDArray[np.float32]] | None = field(default=None, kw_only=True)
    """Lends working memory, float32[count], and takes it back when the op is done."""

    def room(self, *leading: int) -> U32:
        """Return working memory uint32[*leading, 1024] with undefined contents, lent until the op is done, or new where
        nobody lends any."""
        shape = *leading, TILE_ELEMENTS
        if self.lend is None:
            memory = np.empty(shape, np.float32)
        else:
            memory = self.lend(prod(shape))
        return memory.view(np.uint32).reshape(shape)

    def halves(self, tiles: Bits, register: str, parallel: Parallel) -> U32 | None:
        """Return tiles as 16-bit halves of register words for the product kernels; None where these would not hold all
        bits. Tiles of Float16_b are such halves as they are stored."""
        if byteorder != "little":
            return None
        if tiles.df == register == "Float16_b":
            datums = tiles.datums
            fits = datums.flags.c_contiguous and datums.flags.writeable and datums.ctypes.data % 4 == 0
            return datums.view(np.uint32) if fits else None  # one compiled kernel serves all that is left
        if not is_block(tiles.df) or FORMATS[tiles.df].family != "b":
            return None
        (entries, count) = tiles.shape
        rows = tiles.rows()
        out = self.room(-(-entries * count // 2)).reshape(-1, TILE_ELEMENTS // 2)[: entries * count]
        parallel(
            unpack_kernels.unpack_blocks_to_halves,
            len(out),
            out.view(np.uint16),
            rows.datums,
            rows.exponents,
            FORMATS[tiles.df].bits,
        )
        return out.reshape(entries, count, -1)

    def unpack(self, tiles: Bits, register: str, out: U32 | None = None) -> U32:
        """Return words of `register`, uint32[n, 1024], of stored tiles, in `out` where it is given; by kernels,
        integers for Dst by the definition."""
        if out is None:
            out = np.empty(tiles.datums.shape, np.uint32)
        if register in IN_DST:
            out[...] = unpack.unpack(tiles.datums, tiles.df, register, self.core)
            return out
        if tiles.exponents is None:
            parts = (tiles.datums,)
        else:
            parts = (tiles.datums, tiles.exponents)
        _unpacker(tiles.df, register, self.core)(0, len(out), out, *parts)
        return out

    def copy(self, words: U32, register: str, mode: DstMode) -> U32:
        """Return the Dst image, for a Dst of `mode`, of register words [n, 1024] of format `register`, by kernels."""
        if register in IN_DST:
            return words.copy()
        out = np.empty_like(words)
        if REGISTERS[register] is None:
            integer_kernels.int_copy_tiles(0, len(out), out, words)
        else:
            setting = self._setting(register, float_mode(mode))
            elementwise_kernels.copy_to_dst_tiles(0, len(out), out, words, setting[0], setting[1])
        return out

    def add(self, a: U32, b: U32, register: str, mode: DstMode, subtract: bool = False, dst: U32 | None = None) -> U32:
        """Return the Dst image of a + b, with `subtract` a - b, added to `dst` where one is given, for register words
        [n, 1024]. It is computed in float32 arithmetic first, then exactly for the tiles where the bits are not
        certain."""
        out = np.empty_like(a) if dst is None else dst.copy()
        if REGISTERS[register] is None:
            integer_kernels.int_elwadd_tiles(0, len(out), out, a, b, subtract, dst is not None)
            return out
        setting = self._setting(register, mode)
        todo = [(0, len(out))]
        if dst is None:
            left_out = np.empty(len(out), np.bool_)
            singles_kernels.add_by_singles(0, len(out), out, a, b, subtract, setting, left_out)
            todo = self.left_by_singles(left_out)
        for start, stop in todo:
            elementwise_kernels.elwadd_tiles(start, stop, out, a, b, subtract, dst is not None, setting)
        return out

    def left_by_singles(self, left_out: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Return, as runs (start, stop) of neighbours, the tiles marked in `left_out` (bool for each tile): those for
        which float32 arithmetic gives no certain bits."""
        if left_out.any():
            return runs(np.flatnonzero(left_out).tolist())
        return []

    def multiply(self, a: U32, b: U32, register: str, mode: DstMode, fidelity: str, dst: U32 | None = None) -> U32:
        """Return the Dst image of a * b in the phases of a fidelity, added to `dst` where one is given, for register
        words [n, 1024]. It is computed in float32 arithmetic first, then exactly for the tiles where the bits are not
        certain."""
        if REGISTERS[register] is None:
            out = np.zeros_like(a) if dst is None else dst.copy()
            integer_kernels.int_elwmul_tiles(0, len(out), out, a, b)
            return out
        setting = self._setting(register, mode)
        phases = phase_mask(fidelity)
        out = np.empty_like(a) if dst is None else dst.copy()
        todo = [(0, len(out))]
        if dst is None:
            left_out = np.empty(len(out), np.bool_)
            singles_kernels.multiply_by_singles(0, len(out), out, a, b, phases, setting, left_out)
            todo = self.left_by_singles(left_out)
            for start, stop in todo:
                out[start:stop] = 0
        for start, stop in todo:
            elementwise_kernels.elwmul_tiles(start, stop, out, a, b, phases, setting)
        return out

    def matmul(self, dst: U32, items: range, block: ProductBlock) -> None:
        """Add the products of a block to the tiles `items` of dst[w, n, 1024] by kernels, in place; with a spill, block
        after block."""
        if block.spill is not None:
            self._matmul_in_blocks(dst, items, block, block.spill)
            return
        start = items.start
        stop = items.stop
        register = block.operands[0].register
        if REGISTERS[register] is None:
            if block.fresh:
                tiles_of(dst)[start:stop] = 0
            integer_kernels.int_matmul_tiles(start, stop, dst, self._product(dst, block, _INTEGERS))
            return
        arguments = self._product(dst, block, self._setting(register, block.mode))
        matmul_kernels.matmul_tiles(start, stop, dst, arguments, block.fresh)

    def _matmul_in_blocks(self, dst: U32, items: range, block: ProductBlock, spill: Spill) -> None:
        """Add products block after block with a spill between blocks: in one kernel where it knows the conversion to
        intermed_df and back, else one by one."""
        spilled = SPILLS.get(_spill_key(spill, block.mode))
        remaining = [items]
        register = block.operands[0].register
        if spilled is not None and REGISTERS[register] is not None:
            arguments = self._product(dst, block, self._setting(register, block.mode))
            spill_way = Traversal(spilled, spill.ends, block.fresh)
            undone = matmul_kernels.matmul_where_singles_suffice(items.start, items.stop, dst, arguments, spill_way)
            remaining = [range(tile, tile + 1) for tile in undone]
        elif block.fresh:
            tiles_of(dst)[items.start : items.stop] = 0
        for some in remaining:
            block_by_block(self, dst, some, block, spill)

    def _product(self, dst: U32, block: ProductBlock, setting: Setting) -> ProductOfTiles:
        """Return the arguments of the product kernels for a block of inner tiles. `setting`: that of the matrix
        unit."""
        in0, in1 = map(_kernel_operand, block.operands)
        product = block.product
        k = block.k
        extent = Extent(*_product_dims(dst, product), k.start, k.stop, product.faces)
        return ProductOfTiles(
            in0=in0,
            in1=in1,
            extent=extent,
            phases=phase_mask(product.fidelity),
            faces_first=self.core == "grayskull",
            setting=setting,
        )

    def picker(
        self, picking: Picking, fidelity: str, mode: DstMode, spill: Spill | None
    ) -> Callable[[U32, int, int], None] | None:
        """Return a function (images, start, stop) that adds an identity matmul's products of tiles start..stop line by
        line; None where the kernel of picks does not know the format or the spill, and the caller multiplies tiles."""
        if spill is None:
            spill_code = AS_IT_WAS
        else:
            spill_code = SPILLS.get(_spill_key(spill, mode))
        if spill_code is None:
            arguments = None
        else:
            arguments = self._picking_arguments(picking, fidelity, mode, spill_code)
        if arguments is None:
            return None

        def pick(images: U32, start: int, stop: int) -> None:
            """Add the products of tiles start..stop to `images`."""
            none = np.empty((0, TILE_ELEMENTS), np.uint16)
            memory = np.empty(pick_kernels.ROOM, np.int32)
            pick_kernels.pick_tiles(start, stop, images, picking.picks, *arguments, none, memory)

        return pick

    def l1_picker(
        self, picking: Picking, fidelity: str, mode: DstMode, df: str
    ) -> Callable[[Bits, int, int], None] | None:
        """Return a function (out, start, stop) that makes an identity matmul's tiles line by line and adds their strips
        up in L1; None except for bf16 packed as Float16_b, where the caller multiplies tiles."""
        arguments = self._picking_arguments(picking, fidelity, mode, AS_IT_WAS)
        if arguments is None or (mode, df) != ("bf16", "Float16_b"):
            return None

        def pick(out: Bits, start: int, stop: int) -> None:
            """Make tiles start..stop in `out` by adding up in the format."""
            none = np.empty((1, TILE_ELEMENTS), np.uint32)
            memory = np.empty(pick_kernels.ROOM, np.int32)
            datums: NDArray[Any] = out.datums
            pick_kernels.pick_tiles(start, stop, none, picking.picks, *arguments, datums, memory)

        return pick

    def _picking_arguments(
        self, picking: Picking, fidelity: str, mode: DstMode, spill: int
    ) -> tuple[pick_kernels.Reading, pick_kernels.Picking] | None:
        """Return the arguments of the kernel of picks, None where it does not know the format. `spill`: the kernel's
        code for the conversion between strips."""
        codes = _kernel_codes(picking.source, picking.register)
        setting = self._setting(picking.register, mode)
        if codes is None or (mode == "fp32" and setting.exponent_bits == 5):
            return None
        source = pick_kernels.Reading(codes, picking.index, picking.pad, picking.transposed)
        phases = phase_mask(fidelity)
        return source, pick_kernels.Picking(picking.cols, picking.group_cols, phases, setting, spill)

    def pool(self, source: Words, dst: U32, start: int, stop: int, dim: Dim, mode: DstMode) -> None:
        """Write tiles start..stop of dst[w, m, 1024], each the maximum, along `dim`, over equally many tiles of the
        source, by a kernel."""
        setting = self._setting(source.register, mode)
        operand = RegisterOperand(source.tiles, source.index, source.pad, dim == "c")
        elementwise_kernels.reduce_max_tiles(start, stop, dst, operand, KEPT[source.register], setting, False)

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """Return the Dst image of a vector function of one or two images, by its kernel; elements outside the vector
        mode keep those of the first."""
        out = np.empty_like(images[0])
        functions.run(bound, mode, out, *images, vector=vector)
        return out

    def to_src(self, dst: U32, mode: DstMode, register: str) -> U32:
        """Return the words of a Src register of format `register` for a Dst image, by a kernel. Raises UnsupportedError
        for a mode and register that cannot be combined."""
        elementwise.move_to_src(dst[:0], mode, register)  # the same refusals
        mask = KEPT.get(register, np.uint32(0xFFFFFFFF))
        out = np.empty_like(dst)
        elementwise_kernels.move_to_src_tiles(0, len(out), out, dst, {"bf16": 0, "fp16": 1}.get(mode, 2), mask)
        return out

    def pack(self, dst: U32, to: PackedAs, out: Bits | None = None) -> Bits:
        """Return the stored tiles of a Dst image packed with the settings `to`, in `out` where it is given, by
        kernels."""
        out = Bits.empty(to.df, len(dst)) if out is None else out
        by = pack_kernels.Conversion(*to, self.core)
        pack_kernels.pack(0, len(dst), dst, by, out.datums, out.exponents)
        return out

    def recode(self, tiles: Bits, out: Bits) -> None:
        """Copy 16-bit floats to `out` as a pass through Dst would, by a kernel: zeros and denormals become +0, NaNs of
        bf16 infinities."""
        if tiles.df == "Float16":
            bits = (0x7C00, 0)
        else:
            bits = (0x7F80, 0x7F80)
        elementwise_kernels.recode_halves(0, len(tiles), out.datums, tiles.datums, *bits)

    def add_in_l1(self, old: Bits, new: Bits) -> Bits:
        """Return the tiles that the packer leaves in L1 where it adds `new` to the tiles `old` there, by a kernel; both
        are kept."""
        datums = old.datums.copy()
        l1_kernels.accumulate(0, len(datums), new.df, datums, new.datums)
        return Bits(new.df, datums)

    def _setting(self, register: str, mode: DstMode) -> Setting:
        """Return the constants that kernels need for a register format and a mode of Dst on this core."""
        return kernel_setting(float_family(register), mode, self.core)
