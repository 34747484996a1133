"""LLVM code on vectors, for kernels that are written in it: where numba's loops would vectorise in another way."""

from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils

from buda_emu.arithmetic.jit.intrinsics.code import FLOAT, Builder, Value, splat

I8: Final = ir.IntType(8)
I16: Final = ir.IntType(16)
I32: Final = ir.IntType(32)
WIDE: Final = 16
"""Lanes of vectors whose instructions round as they are told: AVX-512."""
_DOWN: Final = 9  # an instruction's own rounding, without exceptions
_AS_SET: Final = 4  # none of its own


def lanes_for(context: Any) -> int:
    """Return the number of singles in a vector of the processor that numba compiles for."""
    features = context.codegen().magic_tuple()[2].split(",")
    return WIDE if "+avx512f" in features else WIDE // 2


class Vectors:
    """Emits vectors of `width` singles, or of as many 32-bit integers, or of `lanes` 16-bit ones."""

    def __init__(self, builder: Builder, width: int, lanes: int = 0) -> None:
        self.builder = builder
        self.width = width
        self.floats = ir.VectorType(FLOAT, width)
        self.words = ir.VectorType(I32, width)
        self.halves = ir.VectorType(I16, lanes or width)

    def load(self, pointer: Value, place: Value, kind: ir.Type, align: int = 2) -> Value:
        """Load a vector of `kind` from element `place` on; `align`: bytes that an element takes, or less."""
        address = self.builder.bitcast(self.builder.gep(pointer, [place]), kind.as_pointer())
        return self.builder.load(address, align=align)

    def store(self, value: Value, pointer: Value, place: Value, align: int = 2) -> None:
        """Write a vector from element `place` on; `align`: bytes that an element takes, or less."""
        address = self.builder.bitcast(self.builder.gep(pointer, [place]), value.type.as_pointer())
        self.builder.store(value, address, align=align)

    def word(self, number: int) -> Value:
        """Return a vector with one 32-bit constant in every lane."""
        return ir.Constant(self.words, [number & 0xFFFFFFFF] * self.width)

    def float(self, number: float) -> Value:
        """Return a vector with one single in every lane."""
        return ir.Constant(self.floats, [number] * self.width)

    def every_word(self, number: Value) -> Value:
        """Return a vector with a 64-bit number, cut to 32 bits, in every lane."""
        return splat(self.builder, self.builder.trunc(number, I32), self.words)

    def as_words(self, value: Value) -> Value:
        """Return the bits of singles as integers."""
        return self.builder.bitcast(value, self.words)

    def as_floats(self, value: Value) -> Value:
        """Return the singles that have these bits."""
        return self.builder.bitcast(value, self.floats)

    def largest(self, first: Value, second: Value) -> Value:
        """Return the larger signed integer in each lane."""
        bits = first.type.element.width
        return self._intrinsic(f"llvm.smax.v{first.type.count}i{bits}", first, second)

    def larger_pattern(self, first: Value, second: Value) -> Value:
        """Return the larger pattern of positive singles in each lane: as singles where the processor has more units for
        that."""
        if self.width != WIDE:
            return self.largest(first, second)
        function = ir.FunctionType(self.floats, [self.floats, self.floats, I32])
        function = cgutils.get_or_insert_function(self.builder.module, function, "llvm.x86.avx512.max.ps.512")
        return self.as_words(self.builder.call(function, [self.as_floats(first), self.as_floats(second), I32(_AS_SET)]))

    def least(self, first: Value, second: Value) -> Value:
        """Return the smaller signed integer in each lane."""
        return self._intrinsic(f"llvm.smin.v{first.type.count}i{first.type.element.width}", first, second)

    def floor(self, value: Value) -> Value:
        """Return singles rounded down."""
        return self._intrinsic(f"llvm.floor.v{self.width}f32", value)

    def _intrinsic(self, name: str, *arguments: Value) -> Value:
        kind = arguments[0].type
        function = ir.FunctionType(kind, [kind] * len(arguments))
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, function, name), arguments)

    def magnitude(self, value: Value) -> Value:
        """Return 32-bit integers without their signs."""
        name = f"llvm.abs.v{self.width}i32"
        function = ir.FunctionType(self.words, [self.words, ir.IntType(1)])
        function = cgutils.get_or_insert_function(self.builder.module, function, name)
        return self.builder.call(function, [value, ir.IntType(1)(0)])

    def sum_down(self, first: Value, second: Value) -> Value:
        """Return the sum of 16 singles each, rounded down: AVX-512 only."""
        function = ir.FunctionType(self.floats, [self.floats, self.floats, I32])
        function = cgutils.get_or_insert_function(self.builder.module, function, "llvm.x86.avx512.add.ps.512")
        return self.builder.call(function, [first, second, I32(_DOWN)])

    def integers_down(self, value: Value) -> Value:
        """Convert singles to the integers below."""
        if self.width != WIDE:
            return self.builder.fptosi(self.floor(value), self.words)
        function = ir.FunctionType(self.words, [self.floats, self.words, I16, I32])
        name = "llvm.x86.avx512.mask.cvtps2dq.512"
        function = cgutils.get_or_insert_function(self.builder.module, function, name)
        return self.builder.call(function, [value, self.word(0), I16(-1), I32(_DOWN)])

    def every(self, number: Value) -> Value:
        """Return a vector full of one 32-bit integer."""
        return splat(self.builder, number, self.words)

    def largest_in(self, value: Value) -> Value:
        """Return the largest of a vector of signed 32-bit integers."""
        return self._reduce("smax", value)

    def least_in(self, value: Value) -> Value:
        """Return the least of a vector of signed 32-bit integers."""
        return self._reduce("smin", value)

    def _reduce(self, how: str, value: Value) -> Value:
        name = f"llvm.vector.reduce.{how}.v{self.width}i32"
        function = ir.FunctionType(I32, [self.words])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, function, name), [value])
