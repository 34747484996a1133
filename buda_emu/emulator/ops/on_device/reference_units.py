"""The units of a core by their definition: in plain numpy, of `buda_emu.arithmetic.tensix`."""

from dataclasses import dataclass

import numpy as np

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix import elementwise, products
from buda_emu.arithmetic.tensix.conversions import pack, unpack
from buda_emu.arithmetic.tensix.elementwise import Dim
from buda_emu.arithmetic.tensix.functions import table as functions
from buda_emu.arithmetic.tensix.functions.table import Bound
from buda_emu.arithmetic.tensix.lanes import DstMode, VectorMode
from buda_emu.arithmetic.tensix.registers import IN_DST, REGISTERS, Core
from buda_emu.emulator.ops.base import Parallel
from buda_emu.emulator.ops.on_device.units import (
    PackedAs,
    Picking,
    ProductBlock,
    Spill,
    Words,
    block_by_block,
    float_family,
    float_mode,
    tiles_of,
)
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.precision import PHASES


@dataclass(frozen=True, slots=True)
class ReferenceUnits:
    """`Units` in plain numpy, which are the definition."""

    core: Core

    def room(self, *leading: int) -> U32:
        """Return new working memory uint32[*leading, 1024] with undefined contents."""
        return np.empty((*leading, TILE_ELEMENTS), np.uint32)

    def halves(self, tiles: Bits, register: str, parallel: Parallel) -> None:
        """Return None: there are no products on halves of words here, so the caller unpacks tiles to words."""

    def unpack(self, tiles: Bits, register: str, out: U32 | None = None) -> U32:
        """Return words of `register`, uint32[n, 1024], of stored tiles, in `out` where it is given, by the
        definition."""
        words = unpack.unpack(tiles.datums, tiles.df, register, self.core, tiles.exponents)
        if out is None:
            return words
        out[...] = words
        return out

    def copy(self, words: U32, register: str, mode: DstMode) -> U32:
        """Return the Dst image, for a Dst of `mode`, of register words [n, 1024] of format `register`, by the
        definition."""
        if register in IN_DST:
            return words.copy()
        if REGISTERS[register] is None:
            return products.int_copy(words)
        return elementwise.copy_to_dst(words, float_family(register), float_mode(mode), self.core)

    def add(self, a: U32, b: U32, register: str, mode: DstMode, subtract: bool = False, dst: U32 | None = None) -> U32:
        """Return the Dst image of a + b, with `subtract` a - b, added to `dst` where one is given, by the
        definition."""
        if REGISTERS[register] is None:
            return (products.int_elwsub if subtract else products.int_elwadd)(dst, a, b)
        function = elementwise.elwsub if subtract else elementwise.elwadd
        return function(dst, a, b, float_family(register), mode, self.core)

    def multiply(self, a: U32, b: U32, register: str, mode: DstMode, fidelity: str, dst: U32 | None = None) -> U32:
        """Return the Dst image of a * b, one fidelity phase after the other, added to `dst` where one is given, by the
        definition."""
        result = np.zeros_like(a) if dst is None else dst
        for phase in PHASES[fidelity]:
            if REGISTERS[register] is None:
                result = products.int_elwmul(result, a, b, phase)
            else:
                result = elementwise.elwmul(result, a, b, phase, float_family(register), mode, self.core)
        return result

    def matmul(self, dst: U32, items: range, block: ProductBlock) -> None:
        """Add the products of a block to the tiles `items` of dst[w, n, 1024], in place, tile by tile by the
        definition."""
        (in0, in1), product, mode, k, spill, fresh = block
        if fresh:
            tiles_of(dst)[items.start : items.stop] = 0
        if spill is not None:
            block_by_block(self, dst, items, block, spill)
            return
        rows = product.rows
        inner = product.inner
        cols = product.cols
        flat = dst.reshape(-1, 32, 32)
        used = slice(0, 16 * product.faces)
        for number in items:
            entry, tile = divmod(number, dst.shape[1])
            row, col = divmod(tile, cols)
            left = [tile_of(in0, entry, row * inner + n)[:, used] for n in k]
            right = [tile_of(in1, entry, (row // rows * inner + n) * cols + col)[used] for n in k]
            a = np.stack(left)
            b = np.stack(right)
            if REGISTERS[in0.register] is None:
                flat[number] = products.int_tile_matmul(flat[number], a, b, self.core)
            else:
                family = float_family(in0.register)
                phases = PHASES[product.fidelity]
                flat[number] = products.tile_matmul(flat[number], a, b, phases, family, mode, self.core)

    def picker(self, picking: Picking, fidelity: str, mode: DstMode, spill: Spill | None) -> None:
        """Return None: identity matmuls have no shortcut by picked lines here, so the caller multiplies tiles."""

    def l1_picker(self, picking: Picking, fidelity: str, mode: DstMode, df: str) -> None:
        """Return None: identity matmuls have no shortcut by picked lines here, so the caller multiplies tiles."""

    def pool(self, source: Words, dst: U32, start: int, stop: int, dim: Dim, mode: DstMode) -> None:
        """Write tiles start..stop of dst[w, m, 1024], each the maximum, along `dim`, over equally many tiles of the
        source, by the definition."""
        count = source.index.size // dst.shape[1]
        flat = dst.reshape(-1, 32, 32)
        for number in range(start, stop):
            entry, tile = divmod(number, dst.shape[1])
            tiles = np.stack([tile_of(source, entry, n) for n in range(tile * count, (tile + 1) * count)])
            flat[number] = elementwise.reduce_max(tiles, dim, source.register, mode, self.core)

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """Return the Dst image of a vector function of one or two images, by its program in numpy."""
        tiles = (image.reshape(-1, 32, 32) for image in images)
        return functions.reference(bound, mode, *tiles, vector=vector).reshape(-1, TILE_ELEMENTS)

    def to_src(self, dst: U32, mode: DstMode, register: str) -> U32:
        """Return the words of a Src register of format `register` for a Dst image, by the definition. Raises
        UnsupportedError for a mode and register that cannot be combined."""
        return elementwise.move_to_src(dst, mode, register)

    def pack(self, dst: U32, to: PackedAs, out: Bits | None = None) -> Bits:
        """Return the stored tiles of a Dst image packed with the settings `to`, in `out` where it is given, by the
        definition."""
        packed = Bits(to.df, *pack.pack(dst, *to, self.core))
        if out is not None:
            out.assign(slice(None), packed)
        return packed if out is None else out

    def recode(self, tiles: Bits, out: Bits) -> None:
        """Copy 16-bit floats to `out` by unpacking, copying to Dst and packing them."""
        mode: DstMode = "fp16" if tiles.df == "Float16" else "bf16"
        image = self.copy(self.unpack(tiles, tiles.df), tiles.df, mode)
        self.pack(image, PackedAs(mode, "Float16" if tiles.df == "Float16" else "Float16_b", tiles.df), out)

    def add_in_l1(self, old: Bits, new: Bits) -> Bits:
        """Return the tiles that the packer leaves in L1 where it adds `new` to the tiles `old` there, by the
        definition."""
        return Bits(new.df, pack.accumulate(new.df, old.datums, new.datums))


def tile_of(source: Words, entry: int, position: int) -> U32:
    """Return uint32[32, 32], the tile at post-TM `position` of an entry of an operand; a pad is a full tile, and a
    transposed operand's tile is transposed."""
    at = source.index[position]
    if at < 0:
        return np.full((32, 32), source.pad)
    tile = source.tiles[entry if len(source.tiles) > 1 else 0, at].reshape(32, 32)
    return tile.T if source.transposed else tile
