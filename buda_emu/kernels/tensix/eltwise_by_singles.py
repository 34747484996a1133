"""ELWADD and ELWMUL onto a cleared Dst in single precision, as LLVM vector code; `eltwise` computes whatever there is.

A Src word is a single, and so are the parts of its significand that a phase multiplies: both have their value. Products
of parts are exact, and what the chip rounds is rounded by adding 1.5 * 2^23 units, as in `group_sums`. Operands of
family A get the exponents of singles first (`lift`). That holds while exponents keep away from the ends of their range:
tiles in which they do not are left out.

Called from Python the functions compute the same in numpy, and so define the code.
"""

from functools import partial
from typing import Any, Final

import numpy as np
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable
from numpy.typing import NDArray

from buda_emu.kernels.fma import fma_f32, llvm_fma
from buda_emu.kernels.jit import helper, kernel
from buda_emu.kernels.tensix.prepared import aligned
from buda_emu.kernels.tensix.vectors import I32, Vectors
from buda_emu.kernels.tensix.words import BF16, FP16, FP32, TILE, Lanes, Tiles, i32, store_words
from buda_emu.kernels.tile_memory import SIZE, Builder, Value, call_shared

__all__ = ["add_by_singles", "add_words", "multiply_by_singles", "multiply_exactly", "multiply_words"]

LANES: Final = 16
"""Of the widest vectors: `special`, int32[LANES], tells lanes with numbers too large or too small."""
LIFT: Final = 112
"""What is added to exponents of 5 bits."""
LEAST: Final = 12 << 23
"""The least exponent of the larger operand of a sum: 10 below it is still a normal single."""
MOST: Final = 250 << 23
LEAST_PRODUCT: Final = (127 + 12 + 22) << 23  # exponents of a pair of factors, so that those of the last phase are 22
MOST_PRODUCT: Final = (127 + 200) << 23  # would not fit: exponents are halved before they are added
_EXPONENT: Final = 0x7F800000
_SIZE: Final = 0x7FFFFFFF
_SRC_BITS: Final = -0x2000
_SIGN: Final = -0x80000000
_MAGIC: Final = 1.5 * 2.0**23
_UPWARD: Final = 0.5 + 2.0**-14  # half a unit, and what the chip's first rounding adds (`accumulate`)
_FRACTION_BITS: Final = 10
_INVERSE: Final = (2 * 127 + _FRACTION_BITS) << 23
_AWAY: Final = 1 << 10
_FP16_MOST: Final = (LIFT + 31) << 23 | 0x3FF << 13
_SRCA_CUTS: Final = (-0x80000, -0x4000)  # what the first parts have of a word, and what both have
_SRCB_CUTS: Final = (-0x20000, -0x2000)
_ROUNDING: Final = {BF16: (0x8000, -0x10000), FP16: (0x1000, -0x2000), FP32: (0, -1)}


@kernel
def add_by_singles(
    start: int,
    stop: int,
    dst: Tiles,
    srca: Tiles,
    srcb: Tiles,
    subtract: bool,
    mode: int,
    exponent_bits: int,
    left_out: NDArray[np.bool_],
) -> None:
    """dst = srca + srcb, or the difference. Items: the tiles. Arguments as for `eltwise.elwadd_tiles`.

    left_out: bool[n], True on return for a tile that is not done.
    """
    word = aligned(np.empty(2 * TILE, np.int32), TILE)
    special = np.zeros(LANES, np.int32)
    lift = LIFT << 23 if exponent_bits == 5 else 0
    for item in range(start, stop):
        a, b = srca[item].view(np.int32), srcb[item].view(np.int32)
        add_words(word, a, b, 1 << 31 if subtract else 0, lift, mode, special)
        left_out[item] = _put(dst[item].view(np.int32), word, special, mode)


@kernel
def multiply_by_singles(
    start: int,
    stop: int,
    dst: Tiles,
    srca: Tiles,
    srcb: Tiles,
    phases: int,
    mode: int,
    exponent_bits: int,
    left_out: NDArray[np.bool_],
) -> None:
    """dst = srca * srcb. Items: the tiles. Arguments as for `eltwise.elwmul_tiles` and `add_by_singles`."""
    word = aligned(np.empty(2 * TILE, np.int32), TILE)
    special = np.zeros(LANES, np.int32)
    lift = LIFT << 23 if exponent_bits == 5 else 0
    for item in range(start, stop):
        a, b = srca[item].view(np.int32), srcb[item].view(np.int32)
        for n in range(TILE):
            word[n] = i32(0)
        for phase in range(4):
            if phases >> phase & 1:
                if mode == FP32:
                    multiply_exactly(word, a, b, phase, lift, special)
                else:
                    multiply_words(word, a, b, phase, lift, mode, special)
        left_out[item] = _put(dst[item].view(np.int32), word, special, mode)


@helper
def _put(image: Lanes, word: Lanes, special: Lanes, mode: int) -> bool:
    """The image of lifted words, unless something is special, which is forgotten then; whether it is."""
    found = i32(0)
    for n in range(LANES):
        found = i32(found | special[n])
        special[n] = i32(0)
    if found != 0:
        return True
    if mode == FP16:
        for n in range(TILE):
            word[n] = i32(word[n] - i32(LIFT << 23)) if i32(word[n] & i32(_EXPONENT)) else i32(0)
    store_words(image, word, mode)
    return False


def add_words(word: Any, a: Any, b: Any, flip: int, lift: int, mode: int, special: Any) -> None:
    """word = a + (b ^ flip), int32[1024] each; the result is lifted. `special` is set where the result is not right.

    Both are rounded to units of 2^-10 of the larger one's exponent, halves away from zero, which loses nothing of that
    one (2.5); then their sum is to what Dst holds.
    """
    half, kept = _ROUNDING[mode]
    with np.errstate(all="ignore"):
        first, second = _lifted(a, lift), _lifted(b ^ np.array(flip, np.uint32).view(np.int32), lift)
        top = np.maximum(first & i32(_EXPONENT), second & i32(_EXPONENT))
        unit = np.maximum(top, i32(LEAST))
        inverse = np.asarray(_difference(_INVERSE | _AWAY, unit)).view(np.float32)
        magic = np.float32(_MAGIC)
        counts = [fma_f32(x.view(np.float32), inverse, magic) - magic for x in (first, second)]
        bits = (np.asarray(counts[0] + counts[1]).view(np.int32) + i32(half)) & i32(kept)
        result = bits.view(np.float32) * (unit - i32(_FRACTION_BITS << 23)).view(np.float32)
        word[:] = _ends(result.view(np.int32), mode)
    special[0] |= bool(((top != 0) & (top < LEAST) | (top > MOST)).any())


def multiply_words(word: Any, a: Any, b: Any, phase: int, lift: int, mode: int, special: Any) -> None:
    """word += a * b in one phase, int32[1024] each, in a 16-bit Dst; word is lifted. `special` as for
    `add_words`."""
    half, kept = _ROUNDING[mode]
    with np.errstate(all="ignore"):
        first, second, pair = _factors(a, b, lift, special)
        shift = 5 * (phase & 1) + 7 * (phase >> 1)
        exponent = np.where(pair == 0, i32(0), (pair << 1) - i32((127 + shift) << 23))
        product = _part(first, _SRCA_CUTS, phase & 1) * _part(second, _SRCB_CUTS, phase >> 1)
        if mode == FP16:  # an exponent of zero or less is none
            product = np.where(exponent > i32(LIFT << 23), product, np.float32(0))
        common = np.maximum(np.maximum(exponent, word & i32(_EXPONENT)), i32(LEAST))
        scale = np.asarray(_difference(_INVERSE, common)).view(np.float32)
        away = np.asarray(_difference(_INVERSE | _AWAY, common)).view(np.float32)
        total = fma_f32(word.view(np.float32), away, np.float32(_MAGIC))
        total = total + np.floor(fma_f32(product, scale, np.float32(_UPWARD)))
        bits = (np.asarray(total - np.float32(_MAGIC)).view(np.int32) + i32(half)) & i32(kept)
        result = bits.view(np.float32) * (common - i32(_FRACTION_BITS << 23)).view(np.float32)
        word[:] = _ends(result.view(np.int32), mode)


def multiply_exactly(word: Any, a: Any, b: Any, phase: int, lift: int, special: Any) -> None:
    """The same in a 32-bit Dst, which holds the sum of all four products: it has 22 bits."""
    with np.errstate(all="ignore"):
        first, second, _ = _factors(a, b, lift, special)
        part = _part(first, _SRCA_CUTS, phase & 1), _part(second, _SRCB_CUTS, phase >> 1)
        word[:] = fma_f32(*part, word.view(np.float32)).view(np.int32)


def _lifted(x: Any, lift: int) -> NDArray[np.int32]:
    """The 19 bits of Src words, without what has the exponent 0."""
    return np.where(x & i32(_EXPONENT) == 0, i32(0), (x & i32(_SRC_BITS)) + i32(lift))


def _difference(constant: int, exponent: Any) -> Any:
    return np.array(constant, np.uint32) - exponent.view(np.uint32)


def _part(x: Any, cuts: tuple[int, int], second: int) -> Any:
    first = (x & i32(cuts[0])).view(np.float32)
    return (x & i32(cuts[1])).view(np.float32) - first if second else first


def _factors(a: Any, b: Any, lift: int, special: Any) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Both factors, and half the sum of their exponents, 0 where one is a zero."""
    first, second = _lifted(a, lift), _lifted(b, lift)
    exponents = (first & i32(_EXPONENT)) >> 1, (second & i32(_EXPONENT)) >> 1
    pair = np.where((exponents[0] == 0) | (exponents[1] == 0), i32(0), exponents[0] + exponents[1])
    weak = (pair != 0) & (pair < LEAST_PRODUCT >> 1) | (pair > MOST_PRODUCT >> 1)
    weak |= (pair != 0) & (np.minimum(*exponents) < LEAST >> 1) | (np.maximum(*exponents) > MOST >> 1)
    special[0] |= bool(weak.any())
    return first, second, pair


def _ends(bits: Any, mode: int) -> Any:
    """What an fp16 Dst makes of a lifted number that is too large or too small for it."""
    if mode != FP16:
        return bits
    size = bits & i32(_SIZE)
    size = np.where(size >= i32((LIFT + 32) << 23), i32(_FP16_MOST), size)
    return np.where(size < i32((LIFT + 1) << 23), i32(0), size | (bits & i32(_SIGN)))


# ------------------------------------------------------------------------------------------------------------ types
@type_callable(add_words)
def _type_add_words(_context: Any) -> Any:
    def typer(word: Any, a: Any, b: Any, flip: Any, lift: Any, mode: Any, special: Any) -> Any:
        del flip, lift, mode
        return signature(types.none, word, a, b, types.intp, types.intp, types.intp, special)

    return typer


@type_callable(multiply_words)
def _type_multiply_words(_context: Any) -> Any:
    def typer(word: Any, a: Any, b: Any, phase: Any, lift: Any, mode: Any, special: Any) -> Any:
        del phase, lift, mode
        return signature(types.none, word, a, b, types.intp, types.intp, types.intp, special)

    return typer


@type_callable(multiply_exactly)
def _type_multiply_exactly(_context: Any) -> Any:
    def typer(word: Any, a: Any, b: Any, phase: Any, lift: Any, special: Any) -> Any:
        del phase, lift
        return signature(types.none, word, a, b, types.intp, types.intp, special)

    return typer


_WORDS: Final = (types.Array, types.Array, types.Array)


@lower_builtin(add_words, *_WORDS, types.intp, types.intp, types.intp, types.Array)
def _lower_add_words(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    return _for_mode(context, builder, call, arguments, "add_words", _emit_add)


@lower_builtin(multiply_words, *_WORDS, types.intp, types.intp, types.intp, types.Array)
def _lower_multiply_words(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    return _for_mode(context, builder, call, arguments, "multiply_words", _emit_multiply)


@lower_builtin(multiply_exactly, *_WORDS, types.intp, types.intp, types.Array)
def _lower_multiply_exactly(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    width, plain = _plain(context, builder, call, arguments)
    call_shared(builder, "multiply_exactly", plain, partial(_emit_multiply_exactly, width))
    return context.get_dummy_value()


def _plain(context: Any, builder: Builder, call: Any, arguments: Any) -> tuple[int, list[Value]]:
    """Lanes of a vector; the arguments, of arrays the addresses of their first elements."""
    wide = "+avx512f" in context.codegen().magic_tuple()[2].split(",")
    return 16 if wide else 8, [
        context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
        for kind, value in zip(call.args, arguments, strict=False)
    ]


def _for_mode(context: Any, builder: Builder, call: Any, arguments: Any, name: str, emit: Any) -> Value:
    """One function for each mode, told by the last argument but one."""
    width, (*others, mode, special) = _plain(context, builder, call, arguments)
    for number in (BF16, FP16, FP32) if emit is _emit_add else (BF16, FP16):
        with builder.if_then(builder.icmp_signed("==", mode, SIZE(number))):
            call_shared(builder, f"{name}_{number}", [*others, special], partial(emit, width, number))
    return context.get_dummy_value()


# ------------------------------------------------------------------------------------------------------------- code
class _Code(Vectors):
    """What both kinds of step share."""

    def lifted(self, x: Value, lift: Value) -> Value:
        """As `_lifted`."""
        zero = self.builder.icmp_signed("==", self.builder.and_(x, self.word(_EXPONENT)), self.word(0))
        word = self.builder.add(self.builder.and_(x, self.word(_SRC_BITS)), lift)
        return self.builder.select(zero, self.word(0), word)

    def exponent(self, x: Value) -> Value:
        """The bits of the exponent."""
        return self.builder.and_(x, self.word(_EXPONENT))

    def rounded(self, total: Value, common: Value, mode: int) -> Value:
        """Counts of 2^-10 of `common`, rounded to what Dst holds, as words."""
        builder = self.builder
        half, kept = _ROUNDING[mode]
        bits = builder.and_(builder.add(self.as_words(total), self.word(half)), self.word(kept))
        unit = self.as_floats(builder.sub(common, self.word(_FRACTION_BITS << 23)))
        bits = self.as_words(builder.fmul(self.as_floats(bits), unit))
        if mode != FP16:
            return bits
        size = builder.and_(bits, self.word(_SIZE))
        too_large = builder.icmp_signed(">=", size, self.word((LIFT + 32) << 23))
        size = builder.select(too_large, self.word(_FP16_MOST), size)
        too_small = builder.icmp_signed("<", size, self.word((LIFT + 1) << 23))
        return builder.select(too_small, self.word(0), builder.or_(size, builder.and_(bits, self.word(_SIGN))))

    def part(self, x: Value, kept: Value, without: Value) -> Value:
        """A part of a significand as a single: what `kept` has of a word, without what `without` has."""
        builder = self.builder
        return builder.fsub(self.as_floats(builder.and_(x, kept)), self.as_floats(builder.and_(x, without)))

    def note(self, found: Value, special: Value) -> None:
        """Set lanes of `special` for good."""
        builder = self.builder
        seen = self.load(special, SIZE(0), self.words)
        self.store(builder.or_(seen, builder.sext(found, self.words)), special, SIZE(0))


def _emit_add(
    width: int, mode: int, builder: Builder, word: Value, a: Value, b: Value, flip: Value, lift: Value, special: Value
) -> None:
    code = _Code(builder, width)
    flips, lifts = code.every_word(flip), code.every_word(lift)
    with cgutils.for_range(builder, SIZE(TILE // width)) as loop:
        place = builder.mul(loop.index, SIZE(width))
        first = code.lifted(code.load(a, place, code.words), lifts)
        second = code.lifted(builder.xor(code.load(b, place, code.words), flips), lifts)
        top = code.largest(code.exponent(first), code.exponent(second))
        unit = code.largest(top, code.word(LEAST))
        inverse = code.as_floats(builder.sub(code.word(_INVERSE | _AWAY), unit))
        magic = code.float(_MAGIC)
        counts = [
            builder.fsub(llvm_fma(builder, code.floats, code.as_floats(x), inverse, magic), magic)
            for x in (first, second)
        ]
        code.store(code.rounded(builder.fadd(*counts), unit, mode), word, place)
        weak = builder.and_(
            builder.icmp_signed("!=", top, code.word(0)), builder.icmp_signed("<", top, code.word(LEAST))
        )  # fmt: skip
        code.note(builder.or_(weak, builder.icmp_signed(">", top, code.word(MOST))), special)


def _emit_factors(
    code: "_Code", a: Value, b: Value, place: Value, lift: Value, special: Value
) -> tuple[Value, Value, Value]:  # fmt: skip
    """As `_factors`."""
    builder = code.builder
    first, second = (code.lifted(code.load(x, place, code.words), lift) for x in (a, b))
    exponents = [builder.lshr(code.exponent(x), code.word(1)) for x in (first, second)]
    weaker = code.least(*exponents)
    none = builder.icmp_signed("==", weaker, code.word(0))
    pair = builder.select(none, code.word(0), builder.add(*exponents))
    weak = builder.or_(
        builder.icmp_signed("<", pair, code.word(LEAST_PRODUCT >> 1)),
        builder.icmp_signed("<", weaker, code.word(LEAST >> 1)),
    )
    strong = builder.or_(
        builder.icmp_signed(">", pair, code.word(MOST_PRODUCT >> 1)),
        builder.icmp_signed(">", code.largest(*exponents), code.word(MOST >> 1)),
    )
    code.note(builder.or_(builder.and_(builder.not_(none), weak), strong), special)
    return first, second, pair


def _cuts(code: "_Code", second: Value, cuts: tuple[int, int]) -> tuple[Value, Value]:
    """The masks of `_Code.part` for the first or the second part."""
    builder = code.builder
    kept = builder.select(second, I32(cuts[1]), I32(cuts[0]))
    without = builder.select(second, I32(cuts[0]), I32(0))
    return code.every(kept), code.every(without)


def _phase_cuts(code: "_Code", phase: Value) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    builder = code.builder
    low = builder.icmp_signed("!=", builder.and_(phase, SIZE(1)), SIZE(0))
    high = builder.icmp_signed(">=", phase, SIZE(2))
    return _cuts(code, low, _SRCA_CUTS), _cuts(code, high, _SRCB_CUTS)


def _emit_multiply(
    width: int, mode: int, builder: Builder, word: Value, a: Value, b: Value, phase: Value, lift: Value, special: Value
) -> None:
    code = _Code(builder, width)
    lifts = code.every_word(lift)
    cuts_a, cuts_b = _phase_cuts(code, phase)
    shift = builder.add(
        builder.mul(builder.and_(phase, SIZE(1)), SIZE(5)), builder.mul(builder.lshr(phase, SIZE(1)), SIZE(7))
    )
    bias = code.every_word(builder.shl(builder.add(shift, SIZE(127)), SIZE(23)))
    with cgutils.for_range(builder, SIZE(TILE // width)) as loop:
        place = builder.mul(loop.index, SIZE(width))
        first, second, pair = _emit_factors(code, a, b, place, lifts, special)
        none = builder.icmp_signed("==", pair, code.word(0))
        exponent = builder.select(none, code.word(0), builder.sub(builder.shl(pair, code.word(1)), bias))
        product = builder.fmul(code.part(first, *cuts_a), code.part(second, *cuts_b))
        if mode == FP16:
            positive = builder.icmp_signed(">", exponent, code.word(LIFT << 23))
            product = builder.select(positive, product, code.float(0.0))
        old = code.load(word, place, code.words)
        common = code.largest(code.largest(exponent, code.exponent(old)), code.word(LEAST))
        scale = code.as_floats(builder.sub(code.word(_INVERSE), common))
        away = code.as_floats(builder.sub(code.word(_INVERSE | _AWAY), common))
        total = llvm_fma(builder, code.floats, code.as_floats(old), away, code.float(_MAGIC))
        total = builder.fadd(total, code.floor(llvm_fma(builder, code.floats, product, scale, code.float(_UPWARD))))
        code.store(code.rounded(builder.fsub(total, code.float(_MAGIC)), common, mode), word, place)


def _emit_multiply_exactly(
    width: int, builder: Builder, word: Value, a: Value, b: Value, phase: Value, lift: Value, special: Value
) -> None:
    code = _Code(builder, width)
    lifts = code.every_word(lift)
    cuts_a, cuts_b = _phase_cuts(code, phase)
    with cgutils.for_range(builder, SIZE(TILE // width)) as loop:
        place = builder.mul(loop.index, SIZE(width))
        first, second, _ = _emit_factors(code, a, b, place, lifts, special)
        parts = code.part(first, *cuts_a), code.part(second, *cuts_b)
        old = code.as_floats(code.load(word, place, code.words))
        code.store(llvm_fma(builder, code.floats, *parts, old), word, place)
