"""Number formats in plain numpy: the definition of what every format does to a value (FORMATS 1 to 4).

Values are float32 throughout; RawUInt* words travel as the same 32 bits viewed as float32. The kernels are held
against this room.
"""

from buda_emu.formats.blocks import Rounding
from buda_emu.formats.codecs import BLOCK_CODECS, SCALAR_CODECS, quantise
from buda_emu.formats.host import host_decode, host_dtype, host_read, host_widen
from buda_emu.formats.packing import pack_tiles, unpack_tiles

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
