"""What ops share whose elements find new places and pass the units as in a datacopy (DEVICE_NUMERICS 6.2, inferred)."""

from buda_emu.errors import UnsupportedError
from buda_emu.formats.bits import U32
from buda_emu.formats.stored import Bits
from buda_emu.ops.on_device.base import DeviceCall, Made, Maker
from buda_emu.ops.on_device.operands import Source, Stored
from buda_emu.ops.on_device.units import Units, float_mode
from buda_emu.spec.formats import is_block
from buda_emu.tensix.lanes import DstMode
from buda_emu.tensix.registers import REGISTERS


def elements_of(call: DeviceCall, source: Source) -> Stored:
    """An operand whose elements are taken one by one. Raises UnsupportedError for formats without such (LAYOUT 3.3)."""
    if not isinstance(source, Stored) or is_block(source.bits.df):
        raise UnsupportedError(f"op {call.op.name}: {call.op.type} of {call.dfs[0]}, which has no elements of its own")
    return source


def copied_mode(source: Source, mode: DstMode) -> DstMode:
    """What of Dst a datacopy of `source` leaves."""
    return float_mode(mode) if REGISTERS.get(source.register) is not None else mode


def copy_of(bits: Bits, register: str, mode: DstMode, units: Units) -> Maker:
    """A datacopy of tiles that have been put together."""
    rows = bits.rows()

    def tiles(start: int, stop: int) -> Made:
        words: U32 = units.unpack(rows[start:stop], register)
        return Made(units.copy(words, register, mode), mode)

    return tiles
