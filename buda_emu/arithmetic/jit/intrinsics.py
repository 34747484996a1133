"""LLVM code that any kernel may call as a function: memory that threads share, parts of arrays, shifts of 32 bits, a
few of Python's and numpy's functions; and the means with which such code is built. The functions themselves stand
in `buda_emu.arithmetic.jit`, in Python or numpy, which defines them. Importing this module makes them known to
numba; only a process that compiles does so.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.cgutils import get_or_insert_function
from numba.core.typing.npydecl import parse_dtype
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    bound_function,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import populate_array

from buda_emu.arithmetic.jit.job_slot import ARGUMENTS, CODE, add, pause, read, work_on
from buda_emu.arithmetic.jit.primitives import part_of, shift_left, shift_right

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


@type_callable(part_of)
def _make_typer_of_part_of(_context: Any) -> Any:
    """Return the function by which numba types a call of `part_of`: a part of a contiguous vector has the vector's
    type."""

    def typer(array: Any, _first: Any, _size: Any) -> Any:
        """Return the signature for these arguments; None where the array is no contiguous vector."""
        plain = isinstance(array, types.Array) and (array.ndim, array.layout) == (1, "C")
        if plain:
            return signature(array, array, types.intp, types.intp)
        return None

    return typer


@lower_builtin(part_of, types.Array, types.intp, types.intp)
def _lower_part_of(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit `part_of`: a view of the array's memory, whose count of references goes up by one."""
    make: Any = context.make_array(call.return_type)
    array = make(context, builder, arguments[0])
    part = make(context, builder)
    populate_array(
        part,
        data=builder.gep(array.data, [arguments[1]]),
        shape=cgutils.pack_array(builder, [arguments[2]]),
        strides=array.strides,
        itemsize=array.itemsize,
        meminfo=array.meminfo,
        parent=array.parent,
    )
    context.nrt.incref(builder, call.return_type, part._getvalue())
    return part._getvalue()


@intrinsic(shift_right, types.int32, types.int32, types.int32)
def _shift_right(_context: Any, builder: Builder, value: Value, distance: Value) -> Value:
    """Emit `shift_right` as one instruction, without tests of the distance."""
    return builder.ashr(value, distance)


@intrinsic(shift_left, types.int32, types.int32, types.int32)
def _shift_left(_context: Any, builder: Builder, value: Value, distance: Value) -> Value:
    """Emit `shift_left` as one instruction, without tests of the distance."""
    return builder.shl(value, distance)


_FIRST: Final = {"target": "cpu"}
"""Asked before what numba has for every target."""
_ALIGNMENT: Final = 32  # of numba's arrays, in bytes
_MOST_AXES: Final = 3  # of the arrays that kernels view as words of another type
_WORDS: Final = (types.int32, types.uint32, types.float32)


def _bit_width(kind: Any) -> int:
    """Return the number of bits of a numba type."""
    return kind.bitwidth


def _set_typing_before_numba(function: Any, rule: Any) -> None:
    """Register a typing rule for a function such as `min`, which numba tries before its own."""
    infer: Any = infer_global
    infer(function)(rule)


# ------------------------------------------------------------------------------------------------- np.empty, np.zeros
class _NewArray(AbstractTemplate):
    """The typing rule of a new array in C order, from a size or a tuple of sizes, and an element type."""

    metadata = _FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        """Return the signature of a new array for these arguments; None for other arguments than sizes and an element
        type."""
        if kws or len(args) != 2:
            return None
        shape = args[0]
        dtype = parse_dtype(args[1])
        axes = 1
        sizes = shape
        if isinstance(shape, types.UniTuple):
            axes = len(shape)
            sizes = shape.dtype
        if dtype is None or not axes or sizes != types.intp:
            return None
        return signature(types.Array(dtype, axes, "C"), *args)


for _function in (np.empty, np.zeros):
    _set_typing_before_numba(_function, _NewArray)


@lower_builtin(np.empty, types.Any, types.Any)
def _lower_empty(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit `np.empty`: a new array with undefined contents."""
    return _new_array(context, builder, call, arguments)._getvalue()


@lower_builtin(np.zeros, types.Any, types.Any)
def _lower_zeros(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit `np.zeros`: a new array of zeros."""
    array = _new_array(context, builder, call, arguments)
    cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)
    return array._getvalue()


def _new_array(context: Any, builder: Builder, call: Any, arguments: Any) -> Any:
    """Emit a new contiguous array with undefined contents, and return it. The emitted code raises ValueError for a
    negative size or one that overflows."""
    kind = call.return_type
    shape = [arguments[0]]
    if kind.ndim > 1:
        shape = cgutils.unpack_tuple(builder, arguments[0])
    data_type = context.get_data_type(kind.dtype)
    item_bytes = SIZE(context.get_abi_sizeof(data_type))
    strides = [item_bytes]
    refused = cgutils.false_bit
    for size in reversed(shape):
        checked = builder.smul_with_overflow(strides[0], size)
        strides.insert(0, builder.extract_value(checked, 0))
        negative = builder.icmp_signed("<", size, SIZE(0))
        refused = builder.or_(refused, builder.or_(negative, builder.extract_value(checked, 1)))
    with builder.if_then(refused, likely=False):
        context.call_conv.return_user_exc(builder, ValueError, ("array is too big, or a size of it is negative",))
    memory = context.nrt.meminfo_alloc_aligned(builder, strides[0], _ALIGNMENT)
    array = context.make_array(kind)(context, builder)
    populate_array(
        array,
        data=builder.bitcast(context.nrt.meminfo_data(builder, memory), data_type.as_pointer()),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides[1:]),
        itemsize=item_bytes,
        meminfo=memory,
    )
    return array


# ------------------------------------------------------------------------------------------------ min, max of integers
class _MinOrMax(AbstractTemplate):
    """The typing rule of `min` and `max` of two integers of one type, or of two signed ones, where the result has the
    wider type."""

    metadata = _FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        """Return the signature of min or max of two integers; None for other arguments."""
        if kws or len(args) != 2 or not all(isinstance(kind, types.Integer) for kind in args):
            return None
        if args[0] != args[1] and not all(kind.signed for kind in args):
            return None
        kind = types.unliteral(max(args, key=_bit_width))
        return signature(kind, kind, kind)


for _function in (min, max):
    _set_typing_before_numba(_function, _MinOrMax)


def _register_min_or_max(function: Any, kind: Any, comparison: str) -> None:
    """Register the code of `function`, min or max, for two integers of numba type `kind`: the second is the result
    where `second comparison first` holds, else the first."""

    @lower_builtin(function, kind, kind)
    def lower(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:  # pyright: ignore[reportUnusedFunction]
        """Emit the comparison of the arguments and the choice between them."""
        first, other = arguments
        if kind.signed:
            second_wins = builder.icmp_signed(comparison, other, first)
        else:
            second_wins = builder.icmp_unsigned(comparison, other, first)
        return builder.select(second_wins, other, first)


for _kind in sorted(types.integer_domain, key=str):
    _register_min_or_max(min, _kind, "<")
    _register_min_or_max(max, _kind, ">")


# ---------------------------------------------------------------------------------------------------- int of an integer
class _IntegerAsItIs(AbstractTemplate):
    """The typing rule of `int` of an integer, whose type stays."""

    metadata = _FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        """Return the signature for one integer; None for other arguments."""
        if kws or len(args) != 1 or args[0] not in types.integer_domain:
            return None
        return signature(args[0], args[0])


_set_typing_before_numba(int, _IntegerAsItIs)


@lower_builtin(int, types.Integer)
def _lower_int(_context: Any, _builder: Builder, _call: Any, arguments: Any) -> Value:
    """Emit nothing: an integer is its own int."""
    return arguments[0]


# ------------------------------------------------------------------------------ .view of a number, and of a plain array
class _View(AttributeTemplate):
    """The typing rule of `number.view(dtype)`: the same bits as a number of another type."""

    metadata = _FIRST

    @bound_function("number.view")
    def resolve_view(self, number: Any, args: Any, kws: Any) -> Any:
        """Return the signature of number.view(dtype); None for other arguments than one type of the number's size."""
        if kws or len(args) != 1:
            return None
        dtype: Any = parse_dtype(args[0])
        same_size = isinstance(dtype, types.Integer | types.Float) and _bit_width(dtype) == _bit_width(number)
        if same_size:
            return signature(dtype, *args)
        return None


@infer_getattr
class _IntegerView(_View):
    key = types.Integer


@infer_getattr
class _FloatView(_View):
    key = types.Float


@lower_builtin("number.view", types.Integer, types.DTypeSpec)
@lower_builtin("number.view", types.Float, types.DTypeSpec)
def _lower_number_view(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit `number.view(dtype)`: the bits of a number as a number of another type."""
    return builder.bitcast(arguments[0], context.get_value_type(call.return_type))


def _lower_array_view(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit `array.view(dtype)` for elements of the same size: all fields but the type of the data stay, and the memory
    has one more reference."""
    array = context.make_array(call.args[0])(context, builder, arguments[0])
    view = context.make_array(call.return_type)(context, builder)
    for field in view._datamodel._fields:
        if field == "data":
            view.data = builder.bitcast(array.data, view.data.type)
        else:
            setattr(view, field, getattr(array, field))
    context.nrt.incref(builder, call.return_type, view._getvalue())
    return view._getvalue()


for _of, _as, _axes, _readonly in product(_WORDS, _WORDS, range(1, _MOST_AXES + 1), (False, True)):
    lower_builtin("array.view", types.Array(_of, _axes, "C", readonly=_readonly), types.NumberClass(_as))(
        _lower_array_view
    )


def word_place(builder: Builder, address: Value, number: Value) -> Value:
    """Return a pointer to the int64 number `number` after an address, counted from 0."""
    return builder.gep(builder.inttoptr(address, SIZE.as_pointer()), [number])


def emit_add(builder: Builder, address: Value, number: Value, value: Value) -> Value:
    """Emit `job_slot.add`: an atomic addition to int64 number `number` after an address. The value is the old
    content."""
    return builder.atomic_rmw("add", word_place(builder, address, number), value, "seq_cst")


def emit_read(builder: Builder, address: Value, number: Value) -> Value:
    """Emit `job_slot.read`: a read of int64 number `number` after an address from memory, which is never left out."""
    return builder.load_atomic(word_place(builder, address, number), "seq_cst", 8)


def emit_pause(context: Any, builder: Builder) -> None:
    """Emit `job_slot.pause`: the spin hint of an x86-64 processor, nothing on others."""
    if context.codegen().magic_tuple()[0].startswith("x86_64"):
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])


@intrinsic(add, types.int64, types.intp, types.intp, types.intp)
def _add(_context: Any, builder: Builder, *arguments: Value) -> Value:
    """Emit `job_slot.add` for kernels."""
    return emit_add(builder, *arguments)


@intrinsic(read, types.int64, types.intp, types.intp)
def _read(_context: Any, builder: Builder, *arguments: Value) -> Value:
    """Emit `job_slot.read` for kernels."""
    return emit_read(builder, *arguments)


@intrinsic(work_on, types.int64, types.intp)
def _work_on(_context: Any, builder: Builder, slot: Value) -> Value:
    """Emit `job_slot.work_on`: a call of the code whose address the slot holds, with the address of the slot's
    arguments."""
    code = builder.inttoptr(emit_read(builder, slot, SIZE(CODE)), ir.FunctionType(SIZE, [SIZE]).as_pointer())
    return builder.call(code, [builder.ptrtoint(word_place(builder, slot, SIZE(ARGUMENTS)), SIZE)])


intrinsic(pause, types.none)(emit_pause)
