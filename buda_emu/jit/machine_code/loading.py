"""Machine code becomes a function that Python calls: without numba, without a compiler, and mostly without LLVM."""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from buda_emu.jit.machine_code import placing
from buda_emu.jit.machine_code.gil_turns import TURN
from buda_emu.jit.machine_code.kinds import Raised
from buda_emu.lazy import lazy

if TYPE_CHECKING:
    import llvmlite.binding as llvm
else:
    llvm = lazy("llvmlite.binding")


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
_METH_FASTCALL: Final = 0x80
_SIZE_BYTES: Final = 4
_methods: Final[list[Any]] = []  # as long as the process, too


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def load(code: bytes, module: str, name: str) -> Callable[..., Any]:
    """The function in machine code from `compiling.machine_code`: NotImplemented for arguments of another kind.

    Profilers and debuggers see it as a built-in function of that module and name.
    """
    size = int.from_bytes(code[:_SIZE_BYTES], "little")
    symbol, machine_code = code[_SIZE_BYTES : _SIZE_BYTES + size].decode(), code[_SIZE_BYTES + size :]
    address = placing.placed(machine_code, symbol, OBJECTS) or _placed_by_llvm(machine_code, symbol)
    method = _MethodDef(name.encode(), address, _METH_FASTCALL, None)
    _methods.append(method)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object)
    return make(ctypes.addressof(method), None, module)


@cache
def processor() -> str:
    """What machine code is made for."""
    known = placing.processor()
    if known is not None:
        return known
    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def _placed_by_llvm(machine_code: bytes, symbol: str) -> int:
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
    engine.finalize_object()
    return engine.get_function_address(symbol)


@cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, known in OBJECTS.items():
        llvm.add_symbol(name, id(known))
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
