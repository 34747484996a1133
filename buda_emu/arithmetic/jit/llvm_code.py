"""The means to build LLVM code and to declare it as the code of a function that kernels call.

`intrinsic` and `shared_intrinsic` are the declarations, `Vectors` and the functions before it emit instructions. What
any kernel may call stands in `intrinsics`. Importing this module imports numba; only a process that compiles does so.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.cgutils import get_or_insert_function
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

# llvmlite says nothing of its types.
Builder: TypeAlias = Any
Value: TypeAlias = Any

FLOAT: Final = ir.FloatType()
SIZE: Final = ir.IntType(64)


def call_shared_function(builder: Builder, name: str, arguments: Sequence[Value], emit: Callable[..., None]) -> None:
    """Emit a call of the LLVM function `name` of the builder's module. At its first use the function is made:
    emit(builder, *arguments) emits its body, which returns nothing.

    Code that is used in several places is compiled once, and LLVM cannot unroll it into each of them.
    """
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(
            builder.module, ir.FunctionType(ir.VoidType(), [value.type for value in arguments]), name
        )
        function.linkage = "internal"
        function.attributes.add("noinline")
        inside: Builder = ir.IRBuilder(function.append_basic_block())
        emit(inside, *function.args)
        inside.ret_void()
    builder.call(function, arguments)


def on_data(context: Any, builder: Builder, call: Any, arguments: Sequence[Value]) -> list[Value]:
    """Return the LLVM values that an intrinsic works on: of an array the address of its first element, of a tuple those
    of its items, else the argument itself. `call` is numba's signature of the call; of more arguments than `arguments`
    has the first are taken."""
    values: list[Value] = []
    for kind, value in zip(call.args, arguments, strict=False):
        values += _values_of_argument(context, builder, kind, value)
    return values


def _values_of_argument(context: Any, builder: Builder, kind: Any, value: Value) -> list[Value]:
    """Return the LLVM values that an intrinsic works on for one argument of numba type `kind`: of a tuple those of its
    items, of an array the address of its first element, else the argument itself."""
    if isinstance(kind, types.BaseTuple):
        kinds: Any = kind
        items = zip(kinds, cgutils.unpack_tuple(builder, value), strict=True)
        values: list[Value] = []
        for item_kind, item_value in items:
            values += _values_of_argument(context, builder, item_kind, item_value)
        return values
    if isinstance(kind, types.Array):
        return [context.make_array(kind)(context, builder, value).data]
    return [value]


def splat(builder: Builder, value: Value, vector: ir.VectorType) -> Value:
    """Emit and return a vector of that type with `value` in every element."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(builder.insert_element(undefined, value, ir.IntType(32)(0)), undefined, first)


def tile_pointer(builder: Builder, address: Value, kind: ir.Type = FLOAT) -> Value:
    """Emit the conversion of an address, an integer, to a pointer to `kind`, by default to the first float of a
    tile."""
    return builder.inttoptr(address, kind.as_pointer())


def llvm_fma(builder: ir.IRBuilder, kind: ir.Type, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """Emit a * b + c with one rounding, for a scalar or vector `kind` of float or double, and return its value."""
    element = kind
    suffix = ""
    if isinstance(kind, ir.VectorType):
        element = kind.element
        suffix = f"v{kind.count}"
    if isinstance(element, ir.FloatType):
        suffix += "f32"
    else:
        suffix += "f64"
    name = f"llvm.fma.{suffix}"
    return builder.call(get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name), [a, b, c])


def prefetch(builder: Builder, address: Value) -> None:
    """Emit an instruction that fetches the cache line at an address into the second level of cache."""
    byte_pointer = ir.IntType(8).as_pointer()
    flag = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte_pointer, flag, flag, flag])
    function = get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    read = flag(0)
    second_level = flag(2)
    data = flag(1)
    builder.call(function, [builder.inttoptr(address, byte_pointer), read, second_level, data])


I8: Final = ir.IntType(8)
I16: Final = ir.IntType(16)
I32: Final = ir.IntType(32)
WIDE: Final = 16
"""Lanes of vectors whose instructions round as they are told: AVX-512."""
_DOWN: Final = 9  # an instruction's own rounding, without exceptions
_AS_SET: Final = 4  # none of its own


def lanes_for(context: Any) -> int:
    """Return the number of singles in a vector of the processor that numba compiles for: 16 with AVX-512, else 8."""
    features = context.codegen().magic_tuple()[2].split(",")
    if "+avx512f" in features:
        return WIDE
    return WIDE // 2


class Vectors:
    """Emits code on vectors of `width` lanes: singles (`floats`) or 32-bit integers (`words`), and on vectors of
    `lanes` (default `width`) 16-bit integers (`halves`). Methods emit instructions and return the values that these
    give; operands and results are vectors unless said otherwise."""

    def __init__(self, builder: Builder, width: int, lanes: int = 0) -> None:
        self.builder = builder
        self.width = width
        self.floats = ir.VectorType(FLOAT, width)
        self.words = ir.VectorType(I32, width)
        self.halves = ir.VectorType(I16, lanes or width)

    def load(self, pointer: Value, place: Value, kind: ir.Type, align: int = 2) -> Value:
        """Load a vector of type `kind` whose first element is element number `place` after `pointer`; the address is a
        multiple of `align` bytes."""
        address = self.builder.bitcast(self.builder.gep(pointer, [place]), kind.as_pointer())
        return self.builder.load(address, align=align)

    def store(self, value: Value, pointer: Value, place: Value, align: int = 2) -> None:
        """Store a vector so that its first element becomes element number `place` after `pointer`; the address is a
        multiple of `align` bytes."""
        address = self.builder.bitcast(self.builder.gep(pointer, [place]), value.type.as_pointer())
        self.builder.store(value, address, align=align)

    def word(self, number: int) -> Value:
        """Return a constant vector with the low 32 bits of a Python int in every lane."""
        return ir.Constant(self.words, [number & 0xFFFFFFFF] * self.width)

    def float(self, number: float) -> Value:
        """Return a constant vector with a Python number, as a single, in every lane."""
        return ir.Constant(self.floats, [number] * self.width)

    def every_word(self, number: Value) -> Value:
        """Return a vector with a 64-bit value of the emitted code, cut to 32 bits, in every lane (`word` is for
        constants, `every` for 32-bit values)."""
        return splat(self.builder, self.builder.trunc(number, I32), self.words)

    def as_words(self, value: Value) -> Value:
        """Return the bit patterns of singles as integers."""
        return self.builder.bitcast(value, self.words)

    def as_floats(self, value: Value) -> Value:
        """Return the singles that have these bit patterns."""
        return self.builder.bitcast(value, self.floats)

    def largest(self, first: Value, second: Value) -> Value:
        """Return the larger of the two signed integers in each lane, of any width."""
        bits = first.type.element.width
        return self._intrinsic(f"llvm.smax.v{first.type.count}i{bits}", first, second)

    def larger_pattern(self, first: Value, second: Value) -> Value:
        """Return in each lane the larger of two bit patterns of positive singles, given and returned as words; it
        compares them as singles on AVX-512, which has more units for that."""
        if self.width != WIDE:
            return self.largest(first, second)
        function = ir.FunctionType(self.floats, [self.floats, self.floats, I32])
        function = cgutils.get_or_insert_function(self.builder.module, function, "llvm.x86.avx512.max.ps.512")
        return self.as_words(self.builder.call(function, [self.as_floats(first), self.as_floats(second), I32(_AS_SET)]))

    def least(self, first: Value, second: Value) -> Value:
        """Return the smaller of the two signed integers in each lane, of any width."""
        return self._intrinsic(f"llvm.smin.v{first.type.count}i{first.type.element.width}", first, second)

    def floor(self, value: Value) -> Value:
        """Return singles rounded toward minus infinity to integral values, still as singles."""
        return self._intrinsic(f"llvm.floor.v{self.width}f32", value)

    def _intrinsic(self, name: str, *arguments: Value) -> Value:
        """Emit a call of LLVM's function `name`, whose result has the type of its first argument, as all arguments
        have."""
        kind = arguments[0].type
        function = ir.FunctionType(kind, [kind] * len(arguments))
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, function, name), arguments)

    def magnitude(self, value: Value) -> Value:
        """Return the absolute values of signed 32-bit integers; -2^31 stays as it is."""
        name = f"llvm.abs.v{self.width}i32"
        function = ir.FunctionType(self.words, [self.words, ir.IntType(1)])
        function = cgutils.get_or_insert_function(self.builder.module, function, name)
        return self.builder.call(function, [value, ir.IntType(1)(0)])

    def sum_down(self, first: Value, second: Value) -> Value:
        """Return the sums of two vectors of 16 singles, rounded toward minus infinity: AVX-512 only."""
        function = ir.FunctionType(self.floats, [self.floats, self.floats, I32])
        function = cgutils.get_or_insert_function(self.builder.module, function, "llvm.x86.avx512.add.ps.512")
        return self.builder.call(function, [first, second, I32(_DOWN)])

    def integers_down(self, value: Value) -> Value:
        """Return singles rounded toward minus infinity, as signed 32-bit integers."""
        if self.width != WIDE:
            return self.builder.fptosi(self.floor(value), self.words)
        function = ir.FunctionType(self.words, [self.floats, self.words, I16, I32])
        name = "llvm.x86.avx512.mask.cvtps2dq.512"
        function = cgutils.get_or_insert_function(self.builder.module, function, name)
        return self.builder.call(function, [value, self.word(0), I16(-1), I32(_DOWN)])

    def every(self, number: Value) -> Value:
        """Return a vector with a 32-bit value of the emitted code in every lane."""
        return splat(self.builder, number, self.words)

    def largest_in(self, value: Value) -> Value:
        """Return the largest lane of a vector of signed 32-bit integers, as one integer."""
        return self._reduce("smax", value)

    def least_in(self, value: Value) -> Value:
        """Return the least lane of a vector of signed 32-bit integers, as one integer."""
        return self._reduce("smin", value)

    def _reduce(self, how: str, value: Value) -> Value:
        """Emit LLVM's reduction `how` ("smax", "smin") of a vector of 32-bit integers, and return the one integer that
        it gives."""
        name = f"llvm.vector.reduce.{how}.v{self.width}i32"
        function = ir.FunctionType(I32, [self.words])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, function, name), [value])


Emit = TypeVar("Emit", bound=Callable[..., Any])


def intrinsic(function: Callable[..., Any], result: Any, *kinds: Any) -> Callable[[Emit], Emit]:
    """Decorate emit(context, builder, *arguments), which emits the code of a call of `function` in a kernel and returns
    the call's value, None for a call without a result. `result` is numba's type of that.

    kinds: numba types, or classes of types, of the arguments; for `intp` integers of any width and bools are accepted,
    too. Of arrays `emit` gets the addresses of their first elements, of tuples their items.
    """

    def typer(*types_given: Any) -> Any:
        """Return the signature of a call with arguments of these types; None where one is of no kind that is
        accepted."""
        accepted = [_accept(type_given, kind) for type_given, kind in zip(types_given, kinds, strict=True)]
        if None in accepted:
            return None
        return signature(result, *accepted)

    def decorate(emit: Emit) -> Emit:
        """Register `emit` with numba as the code of the function, and return it."""

        def lower(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
            """Emit a call, and return its value, or that of None for a call without a result."""
            value = emit(context, builder, *on_data(context, builder, call, arguments))
            if value is None:
                return context.get_dummy_value()
            return value

        signed_typer: Any = typer
        signed_typer.__signature__ = inspect.signature(
            function
        )  # numba goes by it: what is not in it would be put into a tuple
        type_callable(function)(lambda _context: signed_typer)
        lower_builtin(function, *kinds)(lower)
        return emit

    return decorate


def shared_intrinsic(function: Callable[..., Any], *kinds: Any, by_lanes: bool = False) -> Callable[[Emit], Emit]:
    """Decorate emit(builder, *arguments), which emits the body of an LLVM function that every call of `function`, which
    has no result, calls: the code is compiled once in a kernel, however many calls there are. `kinds` are those of
    `intrinsic`. With `by_lanes`, `emit` gets the number of singles in the processor's vectors (`lanes_for`) before the
    builder."""

    def decorate(emit: Emit) -> Emit:
        """Register `emit` with numba as the body of the function, and return it."""

        @intrinsic(function, types.none, *kinds)
        def call(context: Any, builder: Builder, *arguments: Value) -> None:  # pyright: ignore[reportUnusedFunction]
            """Emit a call of the shared LLVM function."""
            code: Callable[..., None] = emit
            if by_lanes:
                code = partial(emit, lanes_for(context))
            call_shared_function(builder, function.__name__, arguments, code)

        return emit

    return decorate


def _accept(argument: Any, kind: Any) -> Any:
    """Return the type as which an argument of type `argument` is passed to a parameter of `kind`, a type or class of
    types; None where it does not fit."""
    if inspect.isclass(kind):
        if isinstance(argument, kind):
            return argument
        return None
    integer = kind == types.intp and isinstance(argument, types.Integer | types.Boolean)
    if integer or argument == kind:
        return kind
    return None
