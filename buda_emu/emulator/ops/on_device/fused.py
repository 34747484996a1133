"""fused_op: results named intermedK go through intermed_df, dest stays in Dst (DEVICE_NUMERICS 2.8)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix.functions.table import bind, fp16_constant
from buda_emu.arithmetic.tensix.lanes import DstMode
from buda_emu.arithmetic.tensix.registers import REGISTERS, OpRegisters
from buda_emu.emulator.ops.base import Parallel, Work
from buda_emu.emulator.ops.fused_plan import DEST, OUTPUT, PlannedSubOp, fused_plan
from buda_emu.emulator.ops.on_device.base import (
    DeviceCall,
    DeviceOp,
    DstTiles,
    Job,
    Maker,
    Packing,
    arrangement,
    in_blocks,
    make,
    on_device,
    relu_of,
    result_dims,
    tiles_at_a_time,
)
from buda_emu.emulator.ops.on_device.binary import binary_maker
from buda_emu.emulator.ops.on_device.matmul import matmul_maker
from buda_emu.emulator.ops.on_device.moves import copy_maker
from buda_emu.emulator.ops.on_device.operands import InDest, OperandSource, Stored, blank_words
from buda_emu.emulator.ops.on_device.reduce import pool_maker
from buda_emu.emulator.ops.on_device.sfpu import sfpu_maker
from buda_emu.emulator.ops.on_device.units import Index, Units
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import UnsupportedError


@on_device("fused_op")
class Fused(DeviceOp):
    """The sub-ops in order, each on whole tensors: their tiles do not depend on the order in which a core takes
    them."""

    def maker(self, job: Job) -> Maker:
        """Run all sub-ops at once, and return the function that hands out tiles of the result. Raises UnsupportedError,
        also for a gradient op."""
        job.no_gradient()
        work = _Schedule(job.call, job.registers, job.sources, job.entries, job.units, job.parallel)
        rows = work.run().rows()
        return lambda start, stop: rows[start:stop]


@dataclass
class _Schedule:
    """One run through the schedules of a fused op."""

    call: DeviceCall
    registers: OpRegisters
    sources: Sequence[OperandSource]
    entries: int
    units: Units
    parallel: Parallel
    stored: dict[str, Bits] = field(default_factory=dict[str, Bits])
    dest: DstTiles | None = None

    def run(self) -> Bits:
        """Run all sub-ops in order, and return the content of the buffer `output`, [w, tiles]. Raises
        UnsupportedError."""
        for step in fused_plan(self.call.op).steps:
            self._run_sub_op(step)
        return self.stored[OUTPUT]

    def _run_sub_op(self, step: PlannedSubOp) -> None:
        """Run one sub-op, and keep its result in Dst or in the buffer that it names; buffers that it uses last are
        released."""
        # In the words of 1.1 the formats are those of the op as a whole.
        op = replace(step.call, out_df=self.call.op.out_df)
        call = DeviceCall(op, self.call.core, self.call.fidelity)
        operands = [self._operand_source(call, step, position) for position in range(len(step.sources))]
        if call.op.type == "requantization" and isinstance(operands[1], InDest):
            operands.reverse()  # dest holds the data, input 0 the scale (OPS 8.3 rule 8)
        maker = self._sub_op_maker(call, operands, step)
        t, rows, cols = step.shape
        shape = self.entries, t * rows * cols
        relu = relu_of(step.relu)
        datums = sum(source.bits.datums.size for source in self.sources if isinstance(source, Stored))
        if step.target == DEST:
            if relu.mode:
                maker = self._relu_in_dest(maker, relu.mode, relu.threshold)
            images = self.units.room(*shape)
            flat = images.reshape(-1, TILE_ELEMENTS)
            modes = set[DstMode]()
            self.parallel(
                _make_in_dst,
                len(flat),
                flat,
                maker,
                modes,
                result_dims(call),
                tiles_at_a_time(call.op),
                Work(4 * datums),
            )
            result: DstTiles | Bits = DstTiles(images, modes.pop())
        else:
            if step.target == OUTPUT:
                df = self.call.op.out_df
            else:
                df = self.call.op.intermed_df
            result = Bits.empty(df, *shape)
            from_single = step.target == OUTPUT and self.call.makes_output_of_single
            packing = Packing(self.registers.integer, relu, from_single, fused=True)
            make(maker, result, packing, result_dims(call), self.units, self.parallel, datums, tiles_at_a_time(call.op))
        for name in step.emptied:
            self.stored.pop(name, None)
        self.dest = result if isinstance(result, DstTiles) else None
        if isinstance(result, Bits):
            self.stored[step.target] = result

    def _operand_source(self, call: DeviceCall, step: PlannedSubOp, position: int) -> OperandSource:
        """Return the input at `position` of a sub-op, after all of its TMs: in Dst if it is dest, else in L1."""
        source = step.sources[position]
        operand = call.op.operands[position]
        arrange = arrangement(call.op, position)
        if source.external >= 0:
            base = self.sources[source.external]
            assert isinstance(base, Stored)
            tiles = operand.map
            return replace(base, index=tiles.index, pad_value=tiles.pad_value, arrange=arrange)
        if source.buffer == DEST:
            assert self.dest is not None
            return self._operand_in_dest(self.dest, operand.map.index, step)
        register = self.registers.intermediate
        bits = self.stored[source.buffer]
        return Stored(
            bits=bits,
            index=operand.map.index,
            pad_value=0.0,
            arrange=arrange,
            register=register,
            mode=self.registers.dst,
        )

    def _operand_in_dest(self, dest: DstTiles, index: Index, step: PlannedSubOp) -> InDest:
        """Return the result `dest` of the sub-op before as an operand whose tiles are read in the order `index`. It is
        moved to the kind of Src register that the format of another operand asks for. Binary ops other than maximum
        first cast fp32 to fp16 where that register has five-bit exponents (DEVICE_NUMERICS 2.7, inferred)."""
        others = [self._register_of(s.external) for s in step.sources if s.buffer != DEST]
        register = next((other for other in others if REGISTERS.get(other) is not None), self._default_register)
        image, mode = dest
        binary = OP_TYPES[step.call.type].is_binary and step.call.type != "maximum"
        if binary and mode == "fp32" and REGISTERS.get(register) == "a":
            cast = bind("cast_to_fp16", self.call.core)
            flat = self.units.function(cast, mode, image.reshape(-1, TILE_ELEMENTS))
            return InDest(flat.reshape(image.shape), index, register, "fp16")
        return InDest(image, index, register, mode)

    def _register_of(self, external: int) -> str:
        """Return the register format of input number `external` of the fused op; for a negative number that of
        intermediate buffers."""
        if external >= 0:
            return self.registers.inputs[external]
        return self.registers.intermediate

    @cached_property
    def _default_register(self) -> str:
        """The first format in registers with a float exponent, of the inputs or else of intermediate results."""
        names = chain(self.registers.inputs, (self.registers.intermediate,))
        return next((name for name in names if REGISTERS.get(name) is not None), self.registers.intermediate)

    def _sub_op_maker(self, call: DeviceCall, operands: Sequence[OperandSource], step: PlannedSubOp) -> Maker:
        """Return the function that makes tiles of a sub-op from its operands. Raises UnsupportedError for a type of op
        that no fused op has."""
        mode = self.registers.dst
        units = self.units
        match OP_TYPES[call.op.type].family:
            case "binary" | "quantization":
                return binary_maker(call, operands, None, mode, units)
            case "unary" | "ethernet":
                return copy_maker(call, operands[0], None, mode, units)
            case "sfpu":
                approximate = self.call.op.attributes.approximate_mode
                return sfpu_maker(call.op, call.core, operands[0], mode, approximate, step.shape, units)
            case "reduce":
                return pool_maker(call, operands[0], mode, step.shape, self.entries, units, self.parallel)
            case "matmul":
                return self._matmul_sub_op_maker(call, operands)
            case family:
                raise UnsupportedError(f"op {call.op.name}: {family} in a fused op")

    def _matmul_sub_op_maker(self, call: DeviceCall, operands: Sequence[OperandSource]) -> Maker:
        """Return the function that makes tiles of a matmul sub-op. Raises UnsupportedError for an operand in dest."""
        if isinstance(operands[0], InDest) or isinstance(operands[1], InDest):
            raise UnsupportedError(f"op {call.op.name}: matmul of dest")
        registers = replace(self.registers, inputs=tuple(source.register for source in operands))
        return matmul_maker(
            Job(
                call=call,
                registers=registers,
                sources=operands,
                previous=None,
                entries=self.entries,
                units=self.units,
                parallel=self.parallel,
            )
        )

    def _relu_in_dest(self, maker: Maker, mode: int, threshold: float) -> Maker:
        """Return a maker that applies relu to the tiles of `maker` by the vector unit, as a result that stays in Dst is
        not packed (DEVICE_NUMERICS 2.8, 3.3). `mode`: 3 for an upper bound at the threshold, else a lower one. Raises
        UnsupportedError for integers."""
        bound = bind("relu_max" if mode == 3 else "relu_min", self.call.core, threshold=fp16_constant(threshold))
        if self.registers.integer:
            raise UnsupportedError(f"op {self.call.op.name}: relu of integers in dest is not known on the device")

        def tiles(start: int, stop: int) -> DstTiles:
            """Make tiles start..stop and apply relu to their image."""
            result = _require_in_dst(maker(start, stop))
            return result._replace(image=self.units.function(bound, result.mode, result.image))

        return tiles


def _require_in_dst(result: DstTiles | Bits) -> DstTiles:
    """Return a result that is in Dst. Raises UnsupportedError for one that is summed up in L1."""
    if isinstance(result, Bits):
        raise UnsupportedError("a result that is summed up in L1 does not stay in dest")
    return result


def _make_in_dst(
    start: int, stop: int, flat: U32, maker: Maker, modes: set[DstMode], dims: tuple[int, int], block: int, _work: Work
) -> None:
    """Make tiles start..stop, `block` at a time, in the Dst images `flat`, with zeros outside `dims`, and add the modes
    of their numbers to `modes`. `_work` only tells `parallel` the size of the work."""
    for begin, end in in_blocks(start, stop, block):
        result = _require_in_dst(maker(begin, end))
        flat[begin:end] = blank_words(result.image, dims)
        modes.add(result.mode)
