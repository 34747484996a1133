"""nop, datacopy, ethernet_datacopy (DEVICE_NUMERICS 2.7, 6.2)."""

from buda_emu.arithmetic.kernels.tiles.tile_memory import AS_IS
from buda_emu.arithmetic.tensix.lanes import DstMode
from buda_emu.arithmetic.tensix.registers import IN_DST, REGISTERS, OpRegisters
from buda_emu.emulator.ops.on_device.base import (
    DeviceCall,
    DeviceOp,
    DstTiles,
    Filler,
    Job,
    Maker,
    on_device,
    result_dims,
)
from buda_emu.emulator.ops.on_device.operands import InDest, OperandSource, Stored
from buda_emu.emulator.ops.on_device.units import Units, float_mode
from buda_emu.spec.blocking import FULL_TILE
from buda_emu.support.errors import UnsupportedError


@on_device("nop", "datacopy")
class Copy(DeviceOp):
    """A copy: unpacked, copied to Dst, packed. A gradient nop adds the input to the running value (2.8)."""

    def maker(self, job: Job) -> Maker | Filler:
        """Return the maker of a copy; 16-bit datums that go through unchanged are recoded at once."""
        call = job.call
        source = job.sources[0]
        units = job.units
        if isinstance(source, Stored) and _keeps_halves(job, source):
            return Filler(lambda start, stop, out: units.recode(source.stored_tiles(start, stop), out))
        return copy_maker(call, source, job.previous, job.registers.dst, units)


def _keeps_halves(job: Job, source: Stored) -> bool:
    """Return whether datums of 16 bits go from the source through a Dst of the same bits to the same format, unchanged
    but for those without an exponent: then no unit needs to be run."""
    call = job.call
    df = source.bits.df
    mode = {"Float16": "fp16", "Float16_b": "bf16"}.get(df)
    same = df == source.register == call.op.out_df and mode == job.registers.dst and source.arrange == AS_IS
    plain = job.previous is None and not call.op.attributes.relu_en and result_dims(call) == FULL_TILE
    return same and plain


def copy_maker(
    call: DeviceCall, source: OperandSource, previous: OperandSource | None, mode: DstMode, units: Units
) -> Maker:
    """Return the maker of a copy of `source`, stand-alone or in a fused op. `previous`: the running value of a gradient
    op; `mode`: that of Dst. Raises UnsupportedError."""
    if isinstance(source, InDest):
        mode = source.mode
    elif mode == "int32" and REGISTERS[source.register] is not None:
        mode = float_mode(mode)
    if previous is None:
        return lambda start, stop: DstTiles(source.image(units, start, stop), mode)
    if source.register in IN_DST:
        raise UnsupportedError(f"op {call.op.name}: gradient nop of {call.dfs[0]}, which is not in a Src register")

    def sum_of(start: int, stop: int) -> DstTiles:
        """Compute tiles start..stop of input plus running value."""
        a = source.words(units, start, stop)
        b = previous.words(units, start, stop)
        return DstTiles(units.add(a, b, source.register, mode), mode)

    return sum_of


@on_device("ethernet_datacopy")
class EthernetCopy:
    """A copy of the unchanged bytes: they do not pass through a core's units (6.2)."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Return empty register formats: none are used. Raises UnsupportedError for a conversion of formats."""
        if call.dfs[0] != call.op.out_df:
            raise UnsupportedError(f"op {call.op.name}: ethernet_datacopy of {call.dfs[0]} to {call.op.out_df}")
        return OpRegisters(("",), "", "fp32")

    def maker(self, job: Job) -> Maker:
        """Return the maker that passes on the stored tiles. Raises UnsupportedError for a gradient op."""
        job.no_gradient()
        (source,) = job.sources
        assert isinstance(source, Stored)
        return source.stored_tiles
