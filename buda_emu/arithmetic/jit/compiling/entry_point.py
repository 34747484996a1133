"""The entry point of a kernel's machine code: a function of Python's C API that looks whether the arguments are of the
kinds that the kernel was compiled for, takes them apart, and calls it without the GIL.

Where threads share the kernel's items, it puts the arguments into their job slot, too, and opens and shuts the job
there. Where they share a Python function, it waits for its turn before it asks for the GIL
(`machine_code/loading.py`).

Arrays are read where numpy's and CPython's headers declare their fields, and never copied or counted: the caller holds
them meanwhile.
"""

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.np import numpy_support

from buda_emu.arithmetic.jit import job_slot
from buda_emu.arithmetic.jit.intrinsics import emit_add, emit_pause, emit_read, word_place
from buda_emu.arithmetic.jit.llvm_code import Builder, Value
from buda_emu.arithmetic.jit.machine_code import loading
from buda_emu.support.errors import InternalError

_BYTE: Final = ir.IntType(8)
_POINTER: Final = _BYTE.as_pointer()
_WORD: Final = ir.IntType(32)
_SIZE: Final = ir.IntType(64)
# Where fields lie: CPython's object.h, floatobject.h, tupleobject.h, numpy's ndarraytypes.h and arrayscalars.h.
_HEAD: Final = object.__basicsize__
_TYPE: Final = _HEAD - 8
_ARRAY_DATA, _ARRAY_NDIM, _ARRAY_SHAPE, _ARRAY_STRIDES, _ARRAY_DTYPE, _ARRAY_FLAGS = (
    _HEAD + offset for offset in (0, 8, 16, 24, 40, 48)
)
_DTYPE_ORDER = _HEAD + 10
_DTYPE_NUMBER = _HEAD + 12
_TUPLE_SIZE = _HEAD
_TUPLE_ITEMS = tuple.__basicsize__
_IS_TUPLE: Final = 1 << 26  # Py_TPFLAGS_TUPLE_SUBCLASS
_C_ORDER: Final = 0x1  # these four are NPY_ARRAY_...
_F_ORDER: Final = 0x2
_ALIGNED: Final = 0x100
_WRITABLE: Final = 0x400


def emit_entry_point(context: Any, module: Any, symbol: str, kernel: Any, *, shares: bool) -> None:
    """Emit `PyObject *symbol(PyObject *, PyObject *const *arguments, Py_ssize_t count)` for a compiled kernel into an
    LLVM module. The emitted function returns NotImplemented for arguments of other kinds than the kernel's.

    `kernel` is numba's description of the kernel; `shares`: its first arguments are those of `thread_team.claim_items`.
    Raises TypeError for kinds of arguments or results that kernels do not have.
    """
    function = ir.Function(module, ir.FunctionType(_POINTER, [_POINTER, _POINTER.as_pointer(), _SIZE]), symbol)
    builder: Builder = ir.IRBuilder(function.append_basic_block())
    call_convention = context.call_conv
    kind = call_convention.get_function_type(kernel.restype, kernel.argtypes)
    native = ir.Function(module, kind, kernel.llvm_func_name)
    job = None
    if shares:
        job = _Job(context, module, f"{symbol}_helper", kernel, native)
    _EntryPoint(context, builder, function.append_basic_block("other")).emit(function.args, kernel, native, job)


class _Job:
    """Emits what a kernel whose items threads share needs besides itself: the code that helpers run, and the opening
    and shutting of the job in the slot of a thread team (`jit/job_slot.py`). Raises InternalError for a kernel whose
    arguments do not fit into a slot."""

    def __init__(self, context: Any, module: Any, symbol: str, kernel: Any, native: Any) -> None:
        self.context = context
        self.kind = ir.LiteralStructType([context.get_value_type(kind) for kind in kernel.argtypes])
        size = context.get_abi_sizeof(self.kind)
        if size > job_slot.ARGUMENT_BYTES:
            room = job_slot.ARGUMENT_BYTES
            raise InternalError(f"the arguments of kernel {kernel.qualname} take {size} bytes, a job slot has {room}")
        self.code = self.emit_helper(module, symbol, kernel, native)

    def emit_helper(self, module: Any, symbol: str, kernel: Any, native: Any) -> Any:
        """Emit `int64 symbol(int64 arguments)`, and return it: it calls the kernel with the arguments that the owner
        stored at that address, and returns the address of the exception that the kernel raised, or 0."""
        function = ir.Function(module, ir.FunctionType(_SIZE, [_SIZE]), symbol)
        builder: Builder = ir.IRBuilder(function.append_basic_block())
        stored = builder.inttoptr(function.args[0], self.kind.as_pointer())
        values = [builder.load(cgutils.gep_inbounds(builder, stored, 0, n)) for n in range(len(kernel.argtypes))]
        status, _ = self.context.call_conv.call_function(builder, native, kernel.restype, kernel.argtypes, values)
        builder.ret(builder.select(status.is_error, builder.ptrtoint(status.excinfoptr, _SIZE), _SIZE(0)))
        return function

    def open(self, builder: Builder, slot: Value, values: Any) -> None:
        """Emit the opening of the job in the slot at an address: store the kernel's arguments (`values`, with HELPING
        in place of SHARED) and the helpers' code, then let helpers enter and count the job."""
        stored = builder.bitcast(word_place(builder, slot, _SIZE(job_slot.ARGUMENTS)), self.kind.as_pointer())
        for number, value in enumerate((values[0], _SIZE(job_slot.HELPING), *values[2:])):
            builder.store(value, cgutils.gep_inbounds(builder, stored, 0, number))
        builder.store(builder.ptrtoint(self.code, _SIZE), word_place(builder, slot, _SIZE(job_slot.CODE)))
        emit_add(builder, slot, _SIZE(job_slot.INSIDE), _SIZE(job_slot.OPEN))
        emit_add(builder, slot, _SIZE(job_slot.NUMBER), _SIZE(1))

    def shut(self, builder: Builder, slot: Value, failed: Value) -> None:
        """Emit the end of the job in the slot at an address: helpers may enter no more, and where the owner's call
        failed (`failed`, one bit), nobody claims further items. Then wait for the helpers inside, no longer than the
        slot says."""
        with builder.if_then(failed, likely=False):
            emit_add(builder, slot, _SIZE(job_slot.CLAIMED), emit_read(builder, slot, _SIZE(job_slot.PARTS)))
        emit_add(builder, slot, _SIZE(job_slot.INSIDE), _SIZE(-job_slot.OPEN))
        with cgutils.for_range(builder, emit_read(builder, slot, _SIZE(job_slot.SPINS))) as loop:
            inside = emit_read(builder, slot, _SIZE(job_slot.INSIDE))
            with builder.if_then(builder.icmp_signed("==", inside, _SIZE(0))):
                loop.do_break()
            emit_pause(self.context, builder)


class _EntryPoint:
    """Emits the body of an entry point. Where an argument is of another kind than the kernel's, the emitted code jumps
    to `refusal_block`, which returns NotImplemented."""

    def __init__(self, context: Any, builder: Builder, other: Any) -> None:
        self.context = context
        self.builder = builder
        self.refusal_block = other

    def emit(self, parameters: Any, kernel: Any, native: Any, job: _Job | None) -> None:
        """Emit the whole body: check and convert the arguments, call `native`, the kernel's code, without the GIL, and
        report its exception or convert its result. `job`: for kernels whose items threads share, else None."""
        builder = self.builder
        _, arguments, count = parameters
        self.require(builder.icmp_signed("==", count, _SIZE(len(kernel.argtypes))))
        places = [builder.gep(arguments, [_SIZE(number)]) for number in range(len(kernel.argtypes))]
        values = [
            self.convert_argument(builder.load(place), kind)
            for place, kind in zip(places, kernel.argtypes, strict=True)
        ]
        is_shared = None
        if job:
            is_shared = builder.icmp_signed("==", values[1], _SIZE(job_slot.SHARED))
            with builder.if_then(is_shared):
                job.open(builder, values[0], values)
        thread = self.call_python("PyEval_SaveThread", _POINTER)
        self.give_turn()
        status, result = self.context.call_conv.call_function(builder, native, kernel.restype, kernel.argtypes, values)
        if job:
            with builder.if_then(is_shared):
                job.shut(builder, values[0], status.is_error)
        self.take_turn()
        self.call_python("PyEval_RestoreThread", ir.VoidType(), thread)
        with builder.if_then(status.is_error, likely=False):
            self.report_exception(builder.load(status.excinfoptr))
            builder.ret(_POINTER(None))
        builder.ret(self.convert_result(result, types.unliteral(kernel.restype)))
        builder.position_at_end(self.refusal_block)
        builder.ret(self.call_python("Py_NewRef", _POINTER, self.object_address("NotImplemented")))

    # --------------------------------------------------------------------------------------------------------- turns
    def turn_address(self) -> Value:
        """Emit the address of the word by which threads take turns (`loading.TURN`), as an integer."""
        return self.load_field(self.object_address("turn"), _ARRAY_DATA, _SIZE)

    def give_turn(self) -> None:
        """Emit the end of this thread's turn at Python's lock: TAKEN becomes FREE, so that another thread can take it;
        nothing happens where threads take no turns."""
        builder = self.builder
        address = self.turn_address()
        seen = emit_read(builder, address, _SIZE(0))
        with builder.if_then(builder.icmp_signed("==", seen, _SIZE(loading.TAKEN))):
            word = word_place(builder, address, _SIZE(0))
            builder.cmpxchg(word, _SIZE(loading.TAKEN), _SIZE(loading.FREE), "seq_cst", "monotonic")

    def take_turn(self) -> None:
        """Emit a wait for this thread's turn at Python's lock, of at most `loading.SPINS` rounds; it ends at once where
        threads take no turns."""
        builder = self.builder
        address = self.turn_address()
        word = word_place(builder, address, _SIZE(0))
        with cgutils.for_range(builder, _SIZE(loading.SPINS)) as loop:
            seen = emit_read(builder, address, _SIZE(0))
            with builder.if_then(builder.icmp_signed("==", seen, _SIZE(loading.NOBODY_WAITS))):
                loop.do_break()
            with builder.if_then(builder.icmp_signed("==", seen, _SIZE(loading.FREE))):
                swapped = builder.cmpxchg(word, _SIZE(loading.FREE), _SIZE(loading.TAKEN), "seq_cst", "monotonic")
                with builder.if_then(builder.extract_value(swapped, 1)):
                    loop.do_break()
            emit_pause(self.context, builder)

    # ------------------------------------------------------------------------------------------------ pieces of code
    def call_python(self, name: str, kind: Any, *arguments: Value) -> Value:
        """Emit a call of CPython's C function `name`, whose result has the LLVM type `kind`."""
        declared = ir.FunctionType(kind, [argument.type for argument in arguments])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, declared, name), arguments)

    def object_address(self, name: str) -> Value:
        """Return the address of the object `buda_emu.<name>` of `loading.OBJECTS`, which the loader fills in."""
        name = f"buda_emu.{name}"
        address = self.builder.module.globals.get(name)
        return address or ir.GlobalVariable(self.builder.module, _BYTE, name)

    def load_field(self, pointer: Value, offset: int, kind: Any) -> Value:
        """Emit the read of a field of LLVM type `kind` of a C structure, `offset` bytes behind its beginning."""
        place = self.builder.gep(pointer, [_SIZE(offset)])
        return self.builder.load(self.builder.bitcast(place, kind.as_pointer()))

    def require(self, holds: Value) -> None:
        """Emit a test of `holds`, one bit: the code emitted after it runs where that is 1, else control leaves for the
        refusal, which returns NotImplemented."""
        block = self.builder.append_basic_block()
        self.builder.cbranch(holds, block, self.refusal_block)
        self.builder.position_at_end(block)

    def is_exactly(self, pointer: Value, name: str) -> Value:
        """Emit the test that an object's class is the class `buda_emu.<name>` of `loading.OBJECTS`, and no subclass of
        it."""
        return self.builder.icmp_unsigned("==", self.load_field(pointer, _TYPE, _POINTER), self.object_address(name))

    def report_exception(self, raised: Value) -> None:
        """Emit the raising of `loading.Raised` in Python, with the exception's pickle as argument. `raised` is the
        pickle's address and size, as numba keeps them."""
        data, size = (self.builder.extract_value(raised, number) for number in range(2))
        pickled = self.call_python("PyBytes_FromStringAndSize", _POINTER, data, self.builder.sext(size, _SIZE))
        self.call_python("PyErr_SetObject", ir.VoidType(), self.object_address("Raised"), pickled)
        self.call_python("Py_DecRef", ir.VoidType(), pickled)

    # ----------------------------------------------------------------------------------------------------- arguments
    def convert_argument(self, pointer: Value, kind: Any) -> Value:
        """Emit the conversion of the Python object at `pointer` to the kernel's argument of numba type `kind`. The
        emitted code refuses the call where the object is of another kind (`require`). Raises TypeError for a type that
        kernels do not take."""
        if isinstance(kind, types.Array):
            return self.convert_array(pointer, kind)
        if isinstance(kind, types.BaseTuple):
            return self.convert_tuple(pointer, kind)
        if kind == types.boolean:
            true = self.builder.icmp_unsigned("==", pointer, self.object_address("true"))
            self.require(
                self.builder.or_(true, self.builder.icmp_unsigned("==", pointer, self.object_address("false")))
            )
            return true
        if kind == types.int64:
            return self.convert_int(pointer)
        if kind == types.float64:
            self.require(self.builder.or_(self.is_exactly(pointer, "float"), self.is_exactly(pointer, "float64")))
        elif isinstance(kind, types.Integer | types.Float):
            self.require(self.is_exactly(pointer, str(kind)))
        else:
            raise TypeError(f"a kernel takes arrays, numbers and tuples of these, no {kind}")
        return self.load_field(pointer, _HEAD, self.context.get_value_type(kind))

    def convert_int(self, pointer: Value) -> Value:
        """Emit the conversion of a Python int to 64 bits. The emitted code refuses the call for other objects
        (`require`), and raises OverflowError for an int that is too large."""
        self.require(self.is_exactly(pointer, "int"))
        number = self.call_python("PyLong_AsLongLong", _SIZE, pointer)
        with self.builder.if_then(self.builder.icmp_signed("==", number, _SIZE(-1)), likely=False):
            failed = self.builder.icmp_unsigned("!=", self.call_python("PyErr_Occurred", _POINTER), _POINTER(None))
            with self.builder.if_then(failed, likely=False):
                self.builder.ret(_POINTER(None))  # OverflowError
        return number

    def convert_tuple(self, pointer: Value, kind: Any) -> Value:
        """Emit the conversion of a tuple of numba type `kind`, item by item. The emitted code refuses the call where
        the object is no tuple, or its length differs (`require`)."""
        flags = self.call_python("PyType_GetFlags", _SIZE, self.load_field(pointer, _TYPE, _POINTER))
        self.require(self.builder.icmp_unsigned("!=", self.builder.and_(flags, _SIZE(_IS_TUPLE)), _SIZE(0)))
        self.require(self.builder.icmp_signed("==", self.load_field(pointer, _TUPLE_SIZE, _SIZE), _SIZE(len(kind))))
        items = [
            self.convert_argument(self.load_field(pointer, _TUPLE_ITEMS + 8 * number, _POINTER), element)
            for number, element in enumerate(kind)
        ]
        return self.context.make_tuple(self.builder, kind, items)

    def convert_array(self, pointer: Value, kind: Any) -> Value:
        """Emit the conversion of an array of numba type `kind`. The emitted code refuses the call where number of axes,
        element type, layout, alignment or write permission differ (`require`)."""
        builder = self.builder
        dtype: np.dtype[Any] = numpy_support.as_dtype(kind.dtype)
        self.require(self.is_exactly(pointer, "ndarray"))
        self.require(builder.icmp_signed("==", self.load_field(pointer, _ARRAY_NDIM, _WORD), _WORD(kind.ndim)))
        described = self.load_field(pointer, _ARRAY_DTYPE, _POINTER)
        self.require(builder.icmp_signed("==", self.load_field(described, _DTYPE_NUMBER, _WORD), _WORD(dtype.num)))
        self.require(
            builder.icmp_signed("==", self.load_field(described, _DTYPE_ORDER, _BYTE), _BYTE(ord(dtype.byteorder)))
        )
        required = _ALIGNED | (_WRITABLE if kind.mutable else 0) | {"C": _C_ORDER, "F": _F_ORDER, "A": 0}[kind.layout]
        looked_at = _ALIGNED | _WRITABLE | (_C_ORDER if kind.layout == "C" else _C_ORDER | _F_ORDER)
        flags = self.load_field(pointer, _ARRAY_FLAGS, _WORD)
        self.require(builder.icmp_signed("==", builder.and_(flags, _WORD(looked_at)), _WORD(required)))

        sizes = ir.ArrayType(_SIZE, kind.ndim)
        array = self.context.make_array(kind)(self.context, builder)
        array.meminfo = _POINTER(None)
        array.parent = _POINTER(None)
        array.itemsize = _SIZE(dtype.itemsize)
        array.data = builder.bitcast(self.load_field(pointer, _ARRAY_DATA, _POINTER), array.data.type)
        items = _SIZE(1)
        for name, offset in (("shape", _ARRAY_SHAPE), ("strides", _ARRAY_STRIDES)):
            listed = self.load_field(pointer, offset, _POINTER)
            setattr(array, name, builder.load(builder.bitcast(listed, sizes.as_pointer())))
        for size in cgutils.unpack_tuple(builder, array.shape, kind.ndim):
            items = builder.mul(items, size)
        array.nitems = items
        return array._getvalue()

    # -------------------------------------------------------------------------------------------------------- result
    def convert_result(self, value: Value, kind: Any) -> Value:
        """Emit the conversion of the kernel's result, of numba type `kind`, to a Python number or None. Raises
        TypeError for any other type."""
        builder = self.builder
        if kind == types.none:
            return self.call_python("Py_NewRef", _POINTER, self.object_address("None"))
        if kind == types.boolean:
            return self.call_python("PyBool_FromLong", _POINTER, builder.zext(value, _SIZE))
        if isinstance(kind, types.Float):
            if value.type != ir.DoubleType():
                value = builder.fpext(value, ir.DoubleType())
            return self.call_python("PyFloat_FromDouble", _POINTER, value)
        if kind in types.unsigned_domain:
            if value.type != _SIZE:
                value = builder.zext(value, _SIZE)
            return self.call_python("PyLong_FromUnsignedLongLong", _POINTER, value)
        if kind in types.signed_domain:
            if value.type != _SIZE:
                value = builder.sext(value, _SIZE)
            return self.call_python("PyLong_FromLongLong", _POINTER, value)
        raise TypeError(f"a kernel returns None or a number, no {kind}")
