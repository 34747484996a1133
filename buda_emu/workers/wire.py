"""What travels between processes: plain values, arrays, and objects of buda_emu's own classes, as bytes.

The bytes are a pickle whose reader knows no function at all, and of classes those of this package and the few below: so
reading them runs no code that came with them.
"""

import pickle
import sys
from importlib import import_module
from io import BytesIO
from typing import Any, Final

_PLAIN: Final = frozenset(
    f"{module}.{name}"
    for modules, names in (
        ("builtins", "set frozenset bytearray complex range slice"),
        ("collections", "OrderedDict Counter deque"),
        ("pathlib pathlib._local", "PosixPath WindowsPath PurePosixPath"),
        ("numpy", "ndarray dtype"),
        ("numpy._core.multiarray numpy.core.multiarray", "_reconstruct scalar"),
        ("numpy._core.numeric numpy.core.numeric", "_frombuffer"),
    )
    for module in modules.split()
    for name in names.split()
)
"""Names beside those of this package; arrays are made by three functions of numpy's."""


def packed(value: Any) -> bytes:
    """A value as bytes. Raises `pickle.PicklingError`, TypeError or AttributeError for what cannot travel."""
    return pickle.dumps(value, 5)


def unpacked(data: bytes) -> Any:
    """The value again. Raises `pickle.UnpicklingError` for what may not travel."""
    return _Unpickler(BytesIO(data)).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """A class of this package, or one of `_PLAIN`."""
        if f"{module_name}.{global_name}" in _PLAIN:
            return super().find_class(module_name, global_name)
        if module_name == "buda_emu" or module_name.startswith("buda_emu."):
            found: Any = sys.modules.get(module_name) or import_module(module_name)
            for name in global_name.split("."):
                found = getattr(found, name)
            if isinstance(found, type) and found.__module__ == module_name:
                return found
        raise pickle.UnpicklingError(f"{module_name}.{global_name} does not travel between workers")
