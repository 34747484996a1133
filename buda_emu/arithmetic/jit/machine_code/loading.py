"""Machine code becomes a function that Python calls: without numba, by LLVM's loader."""

import ctypes
import pickle
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    import llvmlite.binding as llvm
else:
    llvm = lazy("llvmlite.binding")


class Raised(Exception):  # noqa: N818 - nobody sees it
    """Raised by machine code where a kernel raised: its argument is the exception, pickled by numba as (class,
    arguments, place in the source). `Kernel` raises that one instead."""

    def exception(self, kernel: str) -> BaseException:
        """Return the exception that the kernel raised, for the caller to raise. Its arguments are known where they are
        numbers and strings in the source; else the message says how to see them."""
        kind, arguments, _ = pickle.loads(self.args[0])
        if all(isinstance(argument, str | int | float) for argument in arguments or ()):
            return kind(*arguments or ())
        return kind(f"raised in kernel {kernel}; with NUMBA_DISABLE_JIT=1 it says why")


def raised_at(address: int, kernel: str) -> BaseException:
    """Return the exception that a kernel left, from the address of numba's record of it: address and size of a pickle
    (`Raised`)."""
    left = _PickleRecord.from_address(address)
    return Raised(ctypes.string_at(left.data, left.size)).exception(kernel)


class _PickleRecord(ctypes.Structure):
    """The beginning of the record in which numba keeps a pickled exception."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_int32))


def kinds_of(arguments: Iterable[Any]) -> str:
    """Return the kinds of arguments as text; machine code is made for one such text. `i8` and the like are numbers by
    numpy's names, `f4[3]C` is an array of three axes in C order, with `r` behind it if it is not writable, and
    parentheses are a tuple. The arguments are results of `to_plain`. Raises TypeError for any other object."""
    return ", ".join(map(_kind_of, arguments))


def _to_plain_array(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array itself, or a view of it that is no subclass of np.ndarray and has numpy's usual type number for
    its elements (of types of the same size, such as C's long and long long, there are two)."""
    if type(array) is not np.ndarray:
        array = array.view(np.ndarray)
    usual = np.dtype(array.dtype.str)
    if array.dtype.num == usual.num:
        return array
    return array.view(usual)


def to_plain(value: Any) -> Any:
    """Return an argument as an object that machine code takes: subclasses of arrays and ints, np.bool_ and np.int64
    become a plain array (a view), int or bool of the same value, tuples are converted item by item, and anything else
    stays as it is."""
    if isinstance(value, np.ndarray):
        return _to_plain_array(value)
    if isinstance(value, tuple):
        items: list[Any] = [to_plain(member) for member in value]  # pyright: ignore[reportUnknownVariableType]
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return tuple(items)
    if isinstance(value, np.bool_):
        return bool(value)
    if type(value) is np.int64 or (isinstance(value, int) and type(value) not in (int, bool)):
        return int(value)
    return value


def _layout_letter(flags: Any) -> str:
    """Return the letter of an array's layout, from its flags: C, F, or A for any other."""
    if flags.c_contiguous:
        return "C"
    if flags.f_contiguous:
        return "F"
    return "A"


def _array_kind(array: NDArray[Any]) -> str:
    """Return the kind of an array as text (`kinds_of`). Raises TypeError for elements that are no numbers, not of this
    machine's byte order, or not aligned."""
    flags = array.flags
    if not array.dtype.isnative or array.dtype.kind not in "biuf" or not flags.aligned:
        raise TypeError(f"a kernel takes no array of {array.dtype}, unless it is native and aligned")
    kind = f"{array.dtype.str[1:]}[{array.ndim}]{_layout_letter(flags)}"
    if flags.writeable:
        return kind
    return f"{kind}r"


def _tuple_kind(value: tuple[Any, ...]) -> str:
    """Return the kind of a tuple as text (`kinds_of`): the kinds of its items, after the class of a named tuple, which
    decides how kernels address the fields. Raises TypeError for an item that kernels do not take."""
    items = f"({kinds_of(value)})"
    if not hasattr(value, "_fields"):
        return items
    return f"{type(value).__module__}.{type(value).__qualname__}{items}"


def _kind_of(value: Any) -> str:
    """Return the kind of one argument as text (`kinds_of`). Raises TypeError for objects that kernels do not take."""
    if isinstance(value, np.ndarray):
        return _array_kind(value)
    if isinstance(value, bool):
        return "b1"
    if isinstance(value, int):
        return "i8"
    if isinstance(value, float):
        return "f8"
    if isinstance(value, (np.integer, np.floating)):
        return value.dtype.str[1:]
    if isinstance(value, tuple):
        return _tuple_kind(value)  # pyright: ignore[reportUnknownArgumentType]
    raise TypeError(f"a kernel takes arrays, numbers and tuples of these, no {type(value).__name__}")


NOBODY_WAITS: Final = 0  # threads take no turns: they share no Python function
FREE: Final = 1  # it is no thread's turn
TAKEN: Final = 2  # it is some thread's turn
SPINS: Final = 6_000  # a third of a millisecond where each takes 50 ns; then a thread goes to sleep
TURN: Final[NDArray[np.int64]] = np.zeros(1, np.int64)
"""One word, of all threads of the process, as Python's lock is."""


def take_turns() -> None:
    """Let threads that share a Python function take turns at Python's lock: from now on a thread that comes out of a
    kernel first spins, for a limited time, until no other thread has the turn, because a thread that waits for the lock
    itself sleeps. The calling thread has the first turn."""
    TURN[0] = TAKEN


def end_turns() -> None:
    """End the turns that `take_turns` began: a thread that comes out of a kernel asks for Python's lock at once
    again."""
    TURN[0] = NOBODY_WAITS


ENTRY: Final = "buda_emu_kernel"
"""What the entry points of kernels are called, before a number."""
OBJECTS: Final[dict[str, Any]] = {
    "buda_emu.true": True,
    "buda_emu.int": int,
    "buda_emu.float": float,
    "buda_emu.Raised": Raised,
    "buda_emu.NotImplemented": NotImplemented,
    "buda_emu.None": None,
    "buda_emu.false": False,
    "buda_emu.ndarray": np.ndarray,
    "buda_emu.turn": TURN,
    **{
        f"buda_emu.{kind.__name__}": kind
        for kind in (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32, np.uint64, np.float32, np.float64)
    },
}
"""Objects that machine code knows by name: they live as long as the process."""
_METH_FASTCALL: Final = 0x80  # a flag of CPython's methodobject.h
_SIZE_BYTES: Final = 4  # of the size of the symbol's name, which stands before the code
_methods: Final[list[Any]] = []  # as long as the process, too


class _MethodDef(ctypes.Structure):
    """The structure PyMethodDef of CPython."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def load(code: bytes, module: str, name: str) -> Callable[..., Any]:
    """Load machine code that `compiling.by_numba.machine_code` made, and return the Python function that calls it. That
    gives NotImplemented for arguments of other kinds than it was compiled for; profilers and debuggers see it as a
    built-in function of `module` and `name`. The code stays loaded as long as the process."""
    size = int.from_bytes(code[:_SIZE_BYTES], "little")
    symbol = code[_SIZE_BYTES : _SIZE_BYTES + size].decode()
    machine_code = code[_SIZE_BYTES + size :]
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
    engine.finalize_object()
    method = _MethodDef(name.encode(), engine.get_function_address(symbol), _METH_FASTCALL, None)
    _methods.append(method)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object)
    return make(ctypes.addressof(method), None, module)


@cache
def processor() -> str:
    """Return the target, name and features of this machine's processor as LLVM states them: machine code runs only
    where they are the same."""
    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


@cache
def _engine() -> Any:
    """Return LLVM's loader of object files, made once per process, which knows the addresses of the Python objects that
    machine code refers to (`OBJECTS`)."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address_of in OBJECTS.items():
        llvm.add_symbol(name, id(address_of))
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
