"""Number formats in plain numpy: the definition of what every format does to a value (FORMATS 1 to 4).

Values are float32 throughout; RawUInt* words travel as the same 32 bits viewed as float32. The kernels are held
against this room.

The package's function of this name, `be.numerics(netlist)`, is reached by calling this module: a module and a function
of one name cannot both be attributes of the package, and this one would win as soon as it is imported.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from buda_emu.numerics.blocks import Rounding
from buda_emu.numerics.codecs import BLOCK_CODECS, SCALAR_CODECS, quantise
from buda_emu.numerics.host import host_decode, host_dtype, host_read, host_widen
from buda_emu.numerics.packing import pack_tiles, unpack_tiles

__all__ = [
    "BLOCK_CODECS",
    "SCALAR_CODECS",
    "Rounding",
    "host_decode",
    "host_dtype",
    "host_read",
    "host_widen",
    "pack_tiles",
    "quantise",
    "unpack_tiles",
]


class _Room(ModuleType):
    """This module, which can be called."""

    def __call__(self, *sources: Any, **options: Any) -> Any:
        """`buda_emu.api.numerics.numerics`: why the chip's answer differs."""
        return import_module("buda_emu.api.numerics").numerics(*sources, **options)


sys.modules[__name__].__class__ = _Room
