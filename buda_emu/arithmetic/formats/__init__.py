"""Number formats in plain numpy: the definition of what every format does to a value (FORMATS 1 to 4).

Values are float32 throughout; RawUInt* words travel as the same 32 bits viewed as float32. The kernels are held
against this room.
"""

from buda_emu.arithmetic.formats.codecs import quantise
from buda_emu.arithmetic.formats.host import host_decode, host_read, host_widen

__all__ = ["host_decode", "host_read", "host_widen", "quantise"]
