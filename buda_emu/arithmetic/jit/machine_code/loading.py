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
    """Raised by machine code where a kernel raised: the exception, pickled as (class, arguments, place)."""

    def exception(self, kernel: str) -> BaseException:
        """Return the exception itself. Its message is only known where all of it stands in the source."""
        kind, arguments, _ = pickle.loads(self.args[0])
        if all(isinstance(argument, str | int | float) for argument in arguments or ()):
            return kind(*arguments or ())
        return kind(f"raised in kernel {kernel}; with NUMBA_DISABLE_JIT=1 it says why")


def raised_at(address: int, kernel: str) -> BaseException:
    """Return the exception that a kernel left at an address: the address and the bytes of a pickle, as numba keeps
    it."""
    left = _Left.from_address(address)
    return Raised(ctypes.string_at(left.data, left.size)).exception(kernel)


class _Left(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_int32))


def kinds_of(arguments: Iterable[Any]) -> str:
    """Return the kinds of plain arguments as text: machine code serves those of equal kinds. `i8` and the like are
    scalars, `f4[3]C` is an array of three dimensions, `r` one that is only read. Raises TypeError for any other
    object."""
    return ", ".join(map(_kind, arguments))


def _plain_array(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array or a view of it that is no subclass and has the usual type of its elements."""
    if type(array) is not np.ndarray:
        array = array.view(np.ndarray)
    usual = np.dtype(array.dtype.str)
    if array.dtype.num == usual.num:
        return array
    return array.view(usual)


def plain(value: Any) -> Any:
    """Return the object itself or one of the same value of the class that machine code takes."""
    if isinstance(value, np.ndarray):
        return _plain_array(value)
    if isinstance(value, tuple):
        items: list[Any] = [plain(member) for member in value]  # pyright: ignore[reportUnknownVariableType]
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return tuple(items)
    if isinstance(value, np.bool_):
        return bool(value)
    if type(value) is np.int64 or (isinstance(value, int) and type(value) not in (int, bool)):
        return int(value)
    return value


def _layout_of(flags: Any) -> str:
    """Return the letter of an array's layout: C, F, or A for any other."""
    if flags.c_contiguous:
        return "C"
    if flags.f_contiguous:
        return "F"
    return "A"


def _array_kind(array: NDArray[Any]) -> str:
    """Return the kind of an array. Raises TypeError for elements that kernels do not read."""
    flags = array.flags
    if not array.dtype.isnative or array.dtype.kind not in "biuf" or not flags.aligned:
        raise TypeError(f"a kernel takes no array of {array.dtype}, unless it is native and aligned")
    kind = f"{array.dtype.str[1:]}[{array.ndim}]{_layout_of(flags)}"
    if flags.writeable:
        return kind
    return f"{kind}r"


def _tuple_kind(value: tuple[Any, ...]) -> str:
    """Return the kind of a tuple: of a named one with its class, which decides how kernels address its fields."""
    items = f"({kinds_of(value)})"
    if not hasattr(value, "_fields"):
        return items
    return f"{type(value).__module__}.{type(value).__qualname__}{items}"


def _kind(value: Any) -> str:
    """Return the kind of one plain argument, see `kinds_of`. Raises TypeError."""
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


NOBODY_WAITS: Final = 0  # threads share no function
FREE: Final = 1  # it is no thread's turn
TAKEN: Final = 2  # it is some thread's turn
SPINS: Final = 6_000  # a third of a millisecond where each takes 50 ns; then a thread goes to sleep
TURN: Final[NDArray[np.int64]] = np.zeros(1, np.int64)
"""One word, of all threads of the process, as Python's lock is."""


def take_turns() -> None:
    """Begin to let threads take turns in Python around a function that they share; it is the turn of this one."""
    TURN[0] = TAKEN


def end_turns() -> None:
    """End the turns that threads take at Python's lock while they share a function of Python: kernels that end wait for
    nobody again."""
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
    """Return the function in machine code from `compiling.machine_code`, which gives NotImplemented for arguments of
    another kind. Profilers and debuggers see it as a built-in function of that module and name."""
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
    """Return a description of the processor that machine code is made for."""
    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


@cache
def _engine() -> Any:
    """Return LLVM's loader, made once, which knows the Python objects that machine code refers to."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address_of in OBJECTS.items():
        llvm.add_symbol(name, id(address_of))
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
