"""The interface of an op of precision "device", and the driver that makes its tiles a range at a time."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.kernels.tiles.tile_memory import AS_IS, FIRST_COLUMN, FIRST_ELEMENT, FIRST_ROW, TRANSPOSE
from buda_emu.arithmetic.tensix.conversions.pack import RELU_MODES, ReluMode, intermediate, relu_threshold
from buda_emu.arithmetic.tensix.lanes import DstMode, VectorMode
from buda_emu.arithmetic.tensix.registers import REGISTERS, Core, OpRegisters, op_registers
from buda_emu.emulator import ops
from buda_emu.emulator.ops.base import Parallel, PlannedOp, Registry, Work, serial
from buda_emu.emulator.ops.on_device import device_op
from buda_emu.emulator.ops.on_device.operands import BLOCK, OperandSource, Stored, blank_words
from buda_emu.emulator.ops.on_device.reference_units import ReferenceUnits
from buda_emu.emulator.ops.on_device.units import PackedAs, Units, float_mode
from buda_emu.netlist.model import Op
from buda_emu.spec.blocking import FULL_TILE, Shape
from buda_emu.spec.formats import Family, is_block, is_raw
from buda_emu.spec.ops import OP_TYPES
from buda_emu.spec.precision import PHASES
from buda_emu.support.errors import ProgramError, StochasticRoundingWarning, UnsupportedError

PRODUCT_BLOCK: Final = 1024
"""Tiles of a matrix product that are made at a time, more than BLOCK: an operand tile is unpacked once for all of
them."""


@dataclass(frozen=True)
class DeviceCall:
    """The static facts of one use of an op. `dfs` are the formats of its operands in L1."""

    op: PlannedOp
    core: Core
    fidelity: str = "HiFi4"
    gradient: bool = False

    @cached_property
    def dfs(self) -> tuple[str, ...]:
        """Formats of the operands."""
        return tuple(operand.label for operand in self.op.operands)

    @cached_property
    def in_order(self) -> tuple[bool, ...]:
        """For each operand, whether its TMs leave every tile in its place."""
        return tuple(operand.map.is_identity for operand in self.op.operands)

    @property
    def makes_output_of_single(self) -> bool:
        """True where a Float32 as input 0 sets the packer up for the output. A gradient op writes intermed_df only."""
        return self.dfs[0] == "Float32" and not self.gradient

    def registers(self, operands: Sequence[int] | None = None) -> OpRegisters:
        """Return the register formats for these operands (numbers, by default all) (DEVICE_NUMERICS 1.1). Raises
        UnsupportedError, naming the op, for formats that cannot be combined."""
        if operands is None:
            chosen = self.dfs
        else:
            chosen = tuple(self.dfs[n] for n in operands)
        if all(is_raw(df) for df in chosen):  # moved as Float32, Float16 and Lf8
            moved_as = {"RawUInt32": "Float32", "RawUInt16": "Float16", "RawUInt8": "Lf8"}
            mode: DstMode = "fp32" if "RawUInt32" in chosen else "fp16"
            return OpRegisters(tuple(moved_as[df] for df in chosen), moved_as[chosen[0]], mode)
        try:
            return op_registers(chosen, self.op.out_df, self.op.intermed_df, self.op.acc_df, self.core)
        except UnsupportedError as error:
            raise UnsupportedError(f"op {self.op.name}: {error}") from None


class DstTiles(NamedTuple):
    """Tiles that an op has computed: a Dst image, and the mode of its numbers."""

    image: U32
    mode: DstMode


Maker: TypeAlias = Callable[[int, int], DstTiles | Bits]
"""A function that makes tiles start..stop of an op's result, counted over all entries; Bits where they are packed
already."""


@dataclass(frozen=True, slots=True)
class Filler:
    """A maker that writes tiles start..stop of an op's result to their places in one pass: fill(start, stop, out)."""

    fill: Callable[[int, int, Bits], None]


@dataclass(frozen=True, slots=True)
class Job:
    """One run of an op for `entries` inputs. `previous`: the running value of a gradient op."""

    call: DeviceCall
    registers: OpRegisters
    sources: Sequence[OperandSource]
    previous: OperandSource | None
    entries: int
    units: Units
    parallel: Parallel

    def no_gradient(self) -> None:
        """Raise UnsupportedError for a gradient op of a type that has no rule for it."""
        if self.call.gradient:
            raise UnsupportedError(f"op {self.call.op.name}: gradient op of {self.call.op.type}")


class DeviceOp(Protocol):
    """The behaviour of one op type, from its operands to the Dst image that is packed."""

    def registers(self, call: DeviceCall) -> OpRegisters:
        """Return the register formats of an op; `inputs` of the result has one for each operand. By default all
        operands are unpacked. Raises UnsupportedError."""
        return call.registers()

    def maker(self, job: Job) -> Maker | Filler:
        """Return the function that makes tiles of the result on demand; what has to be prepared for all tiles is
        computed here. Raises UnsupportedError for what is not emulated."""
        ...


DEVICE_OPS: Final = Registry[DeviceOp]("device", " with precision device")
on_device = DEVICE_OPS.implements


def require_reloadable(call: DeviceCall, registers: OpRegisters) -> None:
    """Raise UnsupportedError where intermed_df has exponents of another width than the inputs or Dst. To be called for
    ops that read a result back from intermed_df (spills, gradients, reduce over z): the chip's own tools refuse them,
    too (DEVICE_NUMERICS 1.1; BUDA's model/data_format.cpp)."""
    intermediate_family = REGISTERS[registers.intermediate]
    others = {REGISTERS.get(register) for register in registers.inputs} | {_FAMILIES.get(registers.dst)}
    if intermediate_family is not None and others - {intermediate_family, None}:
        raise UnsupportedError(
            f"op {call.op.name}: intermed_df {call.op.intermed_df} is reloaded into a Dst of {registers.dst}, beside "
            f"inputs of {', '.join(sorted(set(call.dfs)))}"
        )


_FAMILIES: Final[Mapping[DstMode, Family]] = MappingProxyType({"bf16": "b", "fp16": "a"})
"""The family of formats that Dst holds in each mode of 16 bits."""


def stored_operand(bits: Bits, call: DeviceCall, index: int, register: str, mode: DstMode, arrange: int) -> Stored:
    """Return operand `index` of a call as a source: `bits` in L1, unpacked to `register`, copied to a Dst of `mode`,
    moved inside its tiles by the code `arrange`."""
    operand = call.op.operands[index]
    in_order = call.in_order[index] and bits.shape[1] == operand.map.index.size
    return Stored(
        bits=bits,
        index=operand.map.index,
        pad_value=operand.map.pad_value,
        arrange=arrange,
        register=register,
        mode=mode,
        in_order=in_order,
    )


def result_dims(call: DeviceCall) -> tuple[int, int]:
    """Return the rows and columns of a result tile that hold elements, at most 32 each (OPS 6)."""
    op = call.op
    match OP_TYPES[op.type].result_tile:
        case "full":
            return FULL_TILE
        case "of the op":
            return op.blocking.tile_dim
        case "of operand 0":
            return op.operands[0].tile_dim
        case "least":
            (height, width) = op.operands[0].tile_dim
            tile_dim = op.blocking.tile_dim
            return min(height, tile_dim[0]), min(width, tile_dim[1])


class Relu(NamedTuple):
    """Relu in the packer: mode of the register and the netlist's threshold."""

    mode: ReluMode
    threshold: float


NO_RELU: Final = Relu(0, 0.0)


def relu_of(relu: tuple[str, float] | None) -> Relu:
    """Return the packer's relu for the netlist's words (mode, threshold), NO_RELU for None; an unknown or empty mode is
    min (OPS 6.13)."""
    if relu is None:
        return NO_RELU
    mode, threshold = relu
    return Relu(RELU_MODES.get(mode, 2), threshold)


class Packing(NamedTuple):
    """The settings of the packer by an op. `integer`: it computes on integers. `from_single`: what is packed is its
    output, made from a Float32 as input 0 (10: 4.1). `fused`: it is a fused op (10: 6)."""

    integer: bool = False
    relu: Relu = NO_RELU
    from_single: bool = False
    fused: bool = False


PLAIN: Final = Packing()


def pack_tiles(units: Units, tiles: DstTiles, df: str, packing: Packing = PLAIN, out: Bits | None = None) -> Bits:
    """Pack Dst tiles in the format `df`, and return them; into `out` where it is given (DEVICE_NUMERICS 4.1 to 4.5)."""
    held_as = intermediate(tiles.mode, df, packing.integer, units.core, packing.from_single)
    relu = packing.relu
    threshold = 0
    if relu.mode:
        threshold = relu_threshold(relu.threshold, df, tiles.mode, packing.fused)
    return units.pack(
        tiles.image, PackedAs(mode=tiles.mode, held_as=held_as, df=df, relu=relu.mode, threshold=threshold), out
    )


def result_shape(call: DeviceCall) -> Shape:
    """Return the result's (t, R, C) in tiles, as in the other precisions. Raises ProgramError."""
    return ops.implementation(call.op.type).shape(call.op)


def run(
    call: DeviceCall, inputs: Sequence[Bits], out: Bits, previous: Bits | None, units: Units, parallel: Parallel
) -> None:
    """Run one op: `inputs` before their TMs, [w or 1, tiles] each, to `out` [w, tiles] in the op's out_df.

    `previous`: of a gradient op the running value [w or 1, tiles], None at its start. Raises UnsupportedError for what
    is not emulated, ProgramError as the other precisions do."""
    from buda_emu.emulator.ops.on_device import device_op  # a family's module imports this one

    op = device_op(call.op.type)
    registers = op.registers(call)
    if call.gradient:
        require_reloadable(call, registers)
    sources = [
        stored_operand(bits, call, n, register, registers.dst, arrangement(call.op, n))
        for n, (bits, register) in enumerate(zip(inputs, registers.inputs, strict=True))
    ]
    running = None
    if previous is not None:
        index = np.arange(previous.shape[1], dtype=np.int32)
        index.flags.writeable = False
        running = Stored(
            bits=previous,
            index=index,
            pad_value=0.0,
            arrange=AS_IS,
            register=registers.intermediate,
            mode=registers.dst,
        )
    maker = op.maker(
        Job(
            call=call,
            registers=registers,
            sources=sources,
            previous=running,
            entries=len(out),
            units=units,
            parallel=parallel,
        )
    )
    packing = packing_of(call, registers)
    operands = sum(bits.datums.size for bits in inputs)
    make(maker, out, packing, result_dims(call), units, parallel, operands, tiles_at_a_time(call.op))


def packing_of(call: DeviceCall, registers: OpRegisters) -> Packing:
    """Return the settings of the packer for the op's result."""
    return Packing(registers.integer, _packer_relu(call), call.makes_output_of_single)


def in_blocks(start: int, stop: int, block: int) -> Iterator[tuple[int, int]]:
    """Yield the range start..stop as consecutive ranges (begin, end) of `block`; the last one may be shorter."""
    for begin in range(start, stop, block):
        yield begin, min(begin + block, stop)


def tiles_at_a_time(op: PlannedOp) -> int:
    """Return how many tiles of an op's result are computed in Dst before they are packed, to bound the memory of a
    run."""
    return PRODUCT_BLOCK if op.has("inner dimension") else BLOCK


def _packer_relu(call: DeviceCall) -> Relu:
    """Return the relu that the packer applies to the op's result: none for a fused op, whose sub-ops have their own,
    and for a matmul that sums up gradients (DEVICE_NUMERICS 10: 6.2)."""
    op = call.op
    if op.has("sub-ops") or (op.type == "matmul" and call.gradient):
        return NO_RELU
    return relu_of(op.attributes.relu)


def make(
    maker: Maker | Filler,
    out: Bits,
    packing: Packing,
    dims: tuple[int, int],
    units: Units,
    parallel: Parallel,
    operands: int,
    block: int,
) -> None:
    """Make all tiles of `out` [w, n] by `maker`, `block` at a time, and pack them with the settings `packing`. `dims`:
    rows and columns of a tile outside which it is zero. `operands`: the datums of all operands, by which `parallel`
    decides whether threads are worth it."""
    work = Work(np.dtype(np.uint32).itemsize * (out.datums.size + operands))
    parallel(_make_range, out.datums[..., 0].size, out.rows(), maker, packing, dims, units, block, work)


def _make_range(
    start: int,
    stop: int,
    rows: Bits,
    maker: Maker | Filler,
    packing: Packing,
    dims: tuple[int, int],
    units: Units,
    block: int,
    _work: Work,
) -> None:
    """Make tiles start..stop of `rows`, `block` at a time, and pack those that the maker leaves in Dst. `_work` only
    tells `parallel` the size of the work."""
    if isinstance(maker, Filler):
        maker.fill(start, stop, rows[start:stop])
        return
    for begin, end in in_blocks(start, stop, block):
        result = maker(begin, end)
        if isinstance(result, Bits):
            rows.assign(slice(begin, end), result)
        else:
            pack_tiles(units, DstTiles(blank_words(result.image, dims), result.mode), rows.df, packing, rows[begin:end])


def reference(call: DeviceCall, inputs: Sequence[Bits], previous: Bits | None = None) -> Bits:
    """Run the op by its definition, on units of plain numpy, and return its result, [w, tiles]. `previous`: the running
    value of a gradient op."""
    entries = max(len(bits) for bits in inputs)
    t, rows, cols = result_shape(call)
    out = Bits.empty(call.op.out_df, entries, t * rows * cols)
    run(call, inputs, out, previous, ReferenceUnits(call.core), serial)
    return out


def arrangement(op: PlannedOp, index: int) -> int:
    """Return the code of the move inside the tiles of operand `index`: a transpose where the op's flag asks for it (OPS
    7.4), else the tile broadcast of the operand, or none."""
    if op.transpose and index == OP_TYPES[op.type].transposed:
        return TRANSPOSE
    spread = {"": AS_IS, "r": FIRST_ROW, "c": FIRST_COLUMN, "rc": FIRST_ELEMENT}
    return spread[op.operands[index].tile_broadcast]


def vector_mode(op: PlannedOp) -> VectorMode:
    """Return the part of each tile that the vector unit computes: r, c or rc (DEVICE_NUMERICS 3.2). Raises ProgramError
    for an unknown word."""
    if op.vector == "r" or op.vector == "c" or op.vector == "rc":
        return op.vector
    raise ProgramError(f"op {op.name}: vector mode {op.vector!r} is not r, c or rc")


def require_float(call: DeviceCall, register: str) -> None:
    """Raise UnsupportedError where `register` is a format of integers, which the unit does not take."""
    if REGISTERS.get(register) is None:
        raise UnsupportedError(f"op {call.op.name}: {call.op.type} of {register} is not known on the device")


def device_call(call: PlannedOp, op: Op, core: Core) -> DeviceCall:
    """Return a planned op together with what only the chip's arithmetic needs: fidelity, core, gradient accumulation.
    Raises UnsupportedError for combinations that are not emulated; warns with StochasticRoundingWarning where the chip
    would round at random (DEVICE_NUMERICS 4.7)."""
    if op.math_fidelity not in PHASES:
        raise UnsupportedError(f"op {op.name}: math_fidelity {op.math_fidelity!r} is not one of {', '.join(PHASES)}")
    if op.gradient_op and op.intermed_df != op.out_df:
        raise UnsupportedError(
            f"op {op.name}: a gradient op keeps its sum in intermed_df {op.intermed_df}, its result is {op.out_df}"
        )
    if op.attributes.srnd_fpu_en or op.attributes.stoch_rnd_mode not in ("", "none"):
        warnings.warn(
            f"op {op.name} asks for stochastic rounding, which is not modelled: it rounds to nearest",
            StochasticRoundingWarning,
            stacklevel=2,
        )
    device = DeviceCall(call, core, op.math_fidelity, op.gradient_op)
    device_op(op.type).registers(device)
    return device


def elements_of(call: DeviceCall, source: OperandSource) -> Stored:
    """Return an operand whose elements can be moved one by one: it lies in L1 and not in a block format (LAYOUT 3.3).
    Raises UnsupportedError for others."""
    if not isinstance(source, Stored) or is_block(source.bits.df):
        raise UnsupportedError(f"op {call.op.name}: {call.op.type} of {call.dfs[0]}, which has no elements of its own")
    return source


def copied_mode(source: OperandSource, mode: DstMode) -> DstMode:
    """Return the mode of the numbers in Dst after a copy of `source`, where the op's mode is `mode`: floats are never
    held as integers."""
    if REGISTERS.get(source.register) is not None:
        return float_mode(mode)
    return mode


def assembled_copy_maker(bits: Bits, register: str, mode: DstMode, units: Units) -> Maker:
    """Return the maker of an op that copies `bits` [w, tiles] through a Dst of `mode`. For ops such as tilizer and
    embedding, which first put their tiles together from elements."""
    rows = bits.rows()

    def tiles(start: int, stop: int) -> DstTiles:
        """Return the Dst image of tiles start..stop."""
        words: U32 = units.unpack(rows[start:stop], register)
        return DstTiles(units.copy(words, register, mode), mode)

    return tiles
