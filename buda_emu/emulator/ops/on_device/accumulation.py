"""Block by block: spill and reload, accumulation in L1, bias, requantisation, gelu (DEVICE_NUMERICS 2.8, 4.6, 5).

A product comes in blocks of the inner dimension. Between blocks the sums lie in intermed_df, which is where most of the
precision of a long product is lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32, single
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.kernels.tiles.tile_memory import FIRST_ROW
from buda_emu.arithmetic.tensix.conversions.pack import intermediate
from buda_emu.arithmetic.tensix.functions.table import bind
from buda_emu.arithmetic.tensix.lanes import DstMode
from buda_emu.arithmetic.tensix.registers import IN_DST, REGISTERS, OpRegisters
from buda_emu.emulator.ops.on_device.base import (
    DeviceCall,
    DstTiles,
    Packing,
    pack_tiles,
    require_reloadable,
    vector_mode,
)
from buda_emu.emulator.ops.on_device.operands import OperandSource, Stored, arrange_words
from buda_emu.emulator.ops.on_device.units import Product, ProductBlock, Spill, Units, Words, tiles_of
from buda_emu.spec.attributes import Attributes
from buda_emu.support.errors import UnsupportedError

Block = Callable[[U32, int, int, bool], None]
"""A function that adds the products of one block to tiles start..stop of dst [w, n, 1024], or to zeros where the tiles
are fresh."""


@dataclass(frozen=True)
class Accumulation:
    """The steps around the blocks of one op. `bias` and `scale` are operands after those of the product.

    The rules for `l1_acc` and for the steps between blocks are those of 2.8; that the two buffers share their memory
    where intermed_df is out_df is BUDA's own rule (10: 4.6). A gradient op's result always goes back to intermed_df,
    past gelu and relu, and is summed up in L1 after its first block (10: 6.2)."""

    call: DeviceCall
    registers: OpRegisters
    units: Units
    bias: OperandSource | None = None
    scale: OperandSource | None = None
    previous: OperandSource | None = None

    def __post_init__(self) -> None:
        """Raise UnsupportedError for combinations of formats whose arithmetic is not known."""
        op = self.call.op
        intermediate = self.registers.intermediate
        families = {REGISTERS[self.registers.inputs[0]]}
        if self.bias is not None and not self.registers.integer:
            families |= {REGISTERS[self.bias.register], REGISTERS[intermediate]}
        if len(families) > 1:
            raise UnsupportedError(f"op {op.name}: bias and intermed_df {op.intermed_df} of different families")
        if self._adds_in_l1 and op.intermed_df not in ("Float32", "Float16_b", "Float16"):
            raise UnsupportedError(f"op {op.name}: l1_acc with intermed_df {op.intermed_df}")

    @property
    def _attributes(self) -> Attributes:
        """Attributes of the op."""
        return self.call.op.attributes

    @cached_property
    def _adds_in_l1(self) -> bool:
        """True for an op with `l1_acc`: the packer adds the sums of each block to those of earlier blocks in L1."""
        return self._attributes.l1_acc

    @property
    def _scaled(self) -> bool:
        """True where the result is requantised or dequantised."""
        return self._attributes.requant or self._attributes.dequant

    def run(
        self, blocks: Sequence[Block], dst: U32, start: int, stop: int, first: int | None = None
    ) -> DstTiles | Bits:
        """Compute tiles start..stop of an op block after block, with spills or additions in L1 between blocks and bias,
        rescaling and gelu at the end. Returns the tiles in Dst or, if they are added up in L1, packed. `dst` uint32 [w,
        n, 1024] is working memory. `first`: the number of the op's tile at `start`, None for the same. Raises
        UnsupportedError."""
        rows = tiles_of(dst)[start:stop]
        at = start if first is None else first
        operand_range = at, at + stop - start
        initial = self._initial_dst(*operand_range)
        if initial is not None:
            rows[...] = initial
        partial: Bits | None = None
        bias = self.bias is not None and not self.registers.integer
        for number, block in enumerate(blocks):
            last = number == len(blocks) - 1
            adding = self._adds_in_l1 and partial is not None and (not last or bias or self._last_adds_in_l1)
            fresh = adding if number else initial is None
            if partial is not None and not adding:
                rows[...] = self._reload(partial)
            block(dst, start, stop, fresh)
            if last and not (bias or self._scaled or adding):
                break
            new = self._pack_sums(rows)
            if adding and partial is not None:
                partial = self.units.add_in_l1(partial, new)
            else:
                partial = new
        else:
            if bias and partial is not None:
                return self._activate(self._add_bias(partial, *operand_range), self.registers.dst)
            if self._scaled and partial is not None:
                return self._rescale(partial, *operand_range)
            if partial is not None:
                return partial  # summed up in L1
        return self._activate(rows, self.registers.dst)

    def blocks(self, in0: Words, in1: Words, product: Product, ends: NDArray[np.bool_]) -> list[Block]:
        """Return the functions that add the blocks of a product, for `run`. A block ends after each inner tile for
        which `ends`, bool[inner], is set; there is a single function where the units spill and reload between blocks by
        themselves. Raises UnsupportedError."""

        def block_of(k: range, spill: Spill | None) -> Block:
            """Return the block of inner tiles `k`, a function that adds their products to tiles of dst. With `spill`
            it also takes the steps between the blocks of the device itself."""

            def add(dst: U32, start: int, stop: int, fresh: bool) -> None:
                """Add the block's products to tiles start..stop of dst; `fresh`: dst holds nothing yet."""
                part = ProductBlock(
                    operands=(in0, in1), product=product, mode=self.registers.dst, k=k, spill=spill, fresh=fresh
                )
                self.units.matmul(dst, range(start, stop), part)

            return add

        if not len(ends):
            return [_add_no_products]
        after = (np.flatnonzero(ends[:-1]) + 1).tolist()
        if not after or self._adds_in_l1 or self.registers.integer:
            return [block_of(range(*cut), None) for cut in pairwise([0, *after, len(ends)])]
        return [block_of(range(len(ends)), self.spill(ends))]

    def spill(self, ends: NDArray[np.bool_]) -> Spill:
        """Return how sums are packed to intermed_df and read back between blocks, which end where `ends`, bool[inner],
        is set. Raises UnsupportedError for formats that cannot be read back."""
        require_reloadable(self.call, self.registers)
        df = self.call.op.intermed_df
        held_as = intermediate(self.registers.dst, df, False, self.units.core)
        return Spill(ends, held_as, df, self.registers.intermediate)

    @property
    def begins_empty(self) -> bool:
        """True for an op on floats whose sums start from zeros, not from the running value of a gradient op."""
        return self.previous is None and not self.registers.integer

    @property
    def all_in_l1(self) -> bool:
        """True where every block, the last one too, is added up in L1, and neither bias nor gelu follows."""
        return self._adds_in_l1 and self._last_adds_in_l1 and self.bias is None and not self.call.gradient

    @property
    def sums_only(self) -> bool:
        """True where sums begin with zeros in Dst, stay there between blocks or are spilled, and only packing follows
        the last one."""
        plain = self.bias is None and self.previous is None and not self._scaled and not self._adds_in_l1
        return plain and not self._has_gelu

    @property
    def _has_gelu(self) -> bool:
        """True where gelu ends the op; a gradient op skips it."""
        return self._attributes.sfpu_op == "gelu" and not self.call.gradient

    @property
    def _last_adds_in_l1(self) -> bool:
        """True where the last block is added in L1 too, as the output has the format of the partial sums and needs no
        further step."""
        attributes = self._attributes
        if self.call.gradient:
            return True
        same = self.call.op.intermed_df == self.call.op.out_df
        return same and not attributes.relu_en and not self._has_gelu and not self._scaled

    def _initial_dst(self, start: int, stop: int) -> U32 | None:
        """Return the Dst contents before the first block, for tiles start..stop: the running value of a gradient op,
        the bias of an integer op, or None for zeros."""
        if self.previous is not None:
            return self.previous.image(self.units, start, stop)
        if self.bias is not None and self.registers.integer:
            return self.bias.image(self.units, start, stop)
        return None

    def _pack_sums(self, image: U32) -> Bits:
        """Pack a Dst image as intermed_df, in which partial sums lie in L1."""
        result = DstTiles(image, self.registers.dst)
        return pack_tiles(self.units, result, self.call.op.intermed_df, Packing(self.registers.integer))

    def _reload(self, partial: Bits) -> U32:
        """Return the Dst image of partial sums read back from L1. Raises UnsupportedError where intermed_df has another
        exponent width than the inputs or Dst."""
        require_reloadable(self.call, self.registers)
        register = self.registers.intermediate
        mode = self.registers.dst
        return self.units.copy(self.units.unpack(partial, register), register, mode)

    def _add_bias(self, partial: Bits, start: int, stop: int) -> U32:
        """Return the sum of a partial result and the bias for tiles start..stop, in Dst; of each bias tile row 0
        counts."""
        assert self.bias is not None
        a = self.units.unpack(partial, self.registers.intermediate)
        b = arrange_words(self.bias.words(self.units, start, stop), FIRST_ROW)
        return self.units.add(a, b, self.bias.register, self.registers.dst)

    def _rescale(self, partial: Bits, start: int, stop: int) -> DstTiles:
        """Apply requant or dequant, then gelu, to tiles start..stop of the spilled result `partial`, and return them in
        Dst (DEVICE_NUMERICS 5)."""
        assert self.scale is not None
        zero_point = np.float32(self._attributes.zero_point)
        if self._attributes.requant:
            bound = bind("requantization", self.call.core, zero_point=single(float(zero_point)))
        else:
            bound = bind("dequantization", self.call.core, minus_zero_point=single(float(-zero_point)))
        scale = self.scale.image(self.units, start, stop)
        image = self.units.function(bound, "int32", self._reload(partial), scale)
        return self._activate(image, bound.modes("int32")[1])

    def _activate(self, image: U32, mode: DstMode) -> DstTiles:
        """Return a Dst image of numbers of `mode` after gelu, if the op ends with gelu. Raises UnsupportedError for
        gelu of integers."""
        op = self.call.op
        result = DstTiles(image, mode)
        if not self._has_gelu:
            return result
        if result.mode == "int32":
            raise UnsupportedError(f"op {op.name}: gelu of integers is not known on the device")
        gelu = bind("gelu", self.call.core, approximate=self._attributes.approximate_mode)
        return result._replace(image=self.units.function(gelu, result.mode, image, vector=vector_mode(op)))


def _add_no_products(dst: U32, start: int, stop: int, fresh: bool) -> None:
    """Set tiles start..stop of Dst to zero if it is `fresh`, else change nothing: the block of a product without inner
    tiles."""
    if fresh:
        tiles_of(dst)[start:stop] = 0


def tail_sources(
    call: DeviceCall, sources: Sequence[OperandSource], first: int
) -> tuple[OperandSource | None, OperandSource | None]:
    """Return (bias, scale) among the op's operands `sources`: the bias is number `first`, the scale of requant or
    dequant the last one. None where the op has none."""
    attributes = call.op.attributes
    bias = sources[first] if attributes.bias else None
    scale = None
    if attributes.requant or attributes.dequant:
        scale = sources[-1]
    return bias, scale


def require_in_l1(call: DeviceCall, source: OperandSource) -> Stored:
    """Return a product's operand if it lies in L1 and is unpacked to a Src register. Raises UnsupportedError for one in
    Dst."""
    if not isinstance(source, Stored) or source.register in IN_DST:
        raise UnsupportedError(f"op {call.op.name}: {call.op.type} of {source.register}, not in a Src register")
    return source
