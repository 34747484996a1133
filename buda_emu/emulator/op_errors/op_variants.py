"""Variants of one op of precision "device": with one cause of error switched off, or one field of the netlist changed.

A switch removes one cause and leaves the rest: the registers stay those of the op as it stands, except for the one that
is switched. Such an op need not exist in any netlist. A change is an op as a netlist would have it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix.functions.table import Bound
from buda_emu.arithmetic.tensix.lanes import DstMode, VectorMode, load, touched_mask
from buda_emu.arithmetic.tensix.registers import REGISTERS, OpRegisters
from buda_emu.emulator.op_errors.numerics_result import Cause
from buda_emu.emulator.ops.base import Parallel, PlannedOp, Tiles, serial
from buda_emu.emulator.ops.fused_plan import fused_plan
from buda_emu.emulator.ops.on_device import device_op
from buda_emu.emulator.ops.on_device.base import DeviceCall, DstTiles, pack_tiles, result_shape, run, vector_mode
from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
from buda_emu.emulator.ops.on_device.units import ProductBlock
from buda_emu.emulator.ops.sfpu import Region, run_in_place
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import FORMATS, is_integer, is_raw
from buda_emu.spec.ops import SFPU_TYPES
from buda_emu.spec.precision import FIDELITIES, PHASES

_WIDER: Final = {
    "Bfp2_b": ("Bfp4_b", "Bfp8_b", "Float16_b", "Float32"),
    "Bfp4_b": ("Bfp8_b", "Float16_b", "Float32"),
    "Bfp8_b": ("Float16_b", "Float32"),
    "Float16_b": ("Float32",),
    "Bfp2": ("Bfp4", "Bfp8", "Float16", "Float32"),
    "Bfp4": ("Bfp8", "Float16", "Float32"),
    "Bfp8": ("Float16", "Float32"),
    "Lf8": ("Float16", "Float32"),
    "Fp8_e4m3": ("Float16", "Float32"),
    "Float16": ("Float32",),
}
_LARGEST: Final = {"Int8": 127, "UInt8": 255, "UInt16": 65535, "Float16": 131008.0, "Lf8": 114688.0, "Fp8_e4m3": 480.0}
"""The largest magnitudes of formats; the largest exponent of floats is an ordinary one on the chip (FORMATS 3)."""


@dataclass(frozen=True)
class SwitchedOp(DeviceCall):
    """An op with the registers of `original`, made wider for the causes in `wide`."""

    original: DeviceCall | None = None
    wide: frozenset[Cause] = frozenset()

    def registers(self, operands: Sequence[int] | None = None) -> OpRegisters:
        """Return the registers of the original op, widened for the causes that are switched off. Raises
        UnsupportedError."""
        assert self.original is not None
        registers = self.original.registers(operands)
        if "inputs" in self.wide:
            registers = replace(registers, inputs=tuple(_widest(name) for name in registers.inputs))
        if "spills" in self.wide:
            registers = replace(registers, intermediate=_widest(registers.intermediate))
        if "dest" in self.wide:
            return replace(registers, dst="fp32")
        return registers


@dataclass(frozen=True, slots=True)
class VariantChange:
    """A field of the netlist with another value; `call` is the op that has it."""

    field: str
    before: str
    after: str
    call: DeviceCall


@dataclass(frozen=True, slots=True)
class WatchingUnits(KernelUnits):
    """The kernels of a core, with a record of those units used that may lose precision."""

    used: set[str] = field(default_factory=set[str], compare=False)

    def multiply(self, a: U32, b: U32, register: str, mode: DstMode, fidelity: str, dst: U32 | None = None) -> U32:
        """Multiply as the kernels do, and record that the math fidelity matters."""
        self.used.add("fidelity")
        return KernelUnits.multiply(self, a, b, register, mode, fidelity, dst)

    def matmul(self, dst: U32, items: range, block: ProductBlock) -> None:
        """Multiply as the kernels do, and record that the math fidelity matters."""
        self.used.add("fidelity")
        KernelUnits.matmul(self, dst, items, block)

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """Compute a vector function as the kernels do, and record it if an exact form of it is known."""
        if _has_exact_function(bound, mode):
            self.used.add("sfpu")
        return KernelUnits.function(self, bound, mode, *images, vector=vector)


@dataclass(frozen=True, slots=True)
class ExactFunctions(KernelUnits):
    """The kernels of a core, except that functions are those of precision "ideal", rounded once to what Dst holds. `op`
    has the slope as the netlist gives it."""

    op: PlannedOp

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """Compute the function as in precision "ideal" and round it once to the mode of Dst; one without an exact form
        by the kernel."""
        if not _has_exact_function(bound, mode):
            return KernelUnits.function(self, bound, mode, *images, vector=vector)
        image = np.ascontiguousarray(images[0]).reshape(-1, TILE_ELEMENTS)
        values = load(image, mode).view(np.float32)[np.newaxis]
        name = bound.function.name
        parameters = dict(bound.parameters)
        attributes = replace(Attributes(), exp=int(parameters.get("exponent", 0)))
        if "slope" in parameters:
            slope = np.uint32(parameters["slope"]).view(np.float32)
            attributes = replace(attributes, slope=self.op.attributes.slope if self.op.type == name else float(slope))
        run_in_place(replace(self.op, attributes=attributes), name, Region(32, 32), values, serial)
        df = {"bf16": "Float16_b", "fp16": "Float16"}.get(mode)
        if df:
            result = _pack_from_fp32(values[0], df, self).datums.astype(np.uint32)
        else:
            result = values[0].view(np.uint32)
        return np.where(touched_mask(vector, bound.whole_faces).reshape(-1), result, image).reshape(images[0].shape)


@dataclass(frozen=True, slots=True)
class Ideal:
    """An operand in precision "ideal", before TMs: float32[1, tiles, 1024]. `by_host`: the host pushed it."""

    values: Tiles
    by_host: bool

    def round_to(self, df: str, units: KernelUnits) -> Bits:
        """Return the operand in a format: encoded as the host does for an operand from the host, for integers and raw
        words (FORMATS 3), else rounded as a packer does (DEVICE_NUMERICS 4)."""
        if self.by_host or is_integer(df) or is_raw(df):
            return Bits.encode(df, self.values)
        return _pack_from_fp32(self.values, df, units)


def compute_op(call: DeviceCall, operands: Sequence[Ideal], units: KernelUnits, parallel: Parallel) -> Tiles:
    """Return the result of an op, float32[1, tiles, 1024], for ideal operands rounded to the formats of `call`.

    Raises UnsupportedError, ProgramError."""
    inputs = [operand.round_to(df, units) for df, operand in zip(call.dfs, operands, strict=True)]
    t, rows, cols = result_shape(call)
    out = Bits.empty(call.op.out_df, 1, t * rows * cols)
    run(call, inputs, out, None, units, parallel)
    return out.values()


@dataclass(frozen=True, slots=True)
class Switch:
    """A way to switch off one cause of error: by fields of the op, its fidelity, exact functions, or by comparing only
    a part of each tile, bool[1024]."""

    cause: Cause
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fidelity: str = ""
    exact: bool = False
    part: NDArray[np.bool_] | None = None


def switches(call: DeviceCall, used: set[str]) -> Iterator[Switch]:
    """Yield a switch for each cause of error that the op can have; none for an op on integers. `used` are the names
    that `WatchingUnits` recorded for it."""
    registers = device_op(call.op.type).registers(call)
    op = call.op
    if registers.integer or is_raw(op.out_df):
        return
    wide = tuple(operand if is_raw(operand.label) else replace(operand, label="Float32") for operand in op.operands)
    if any(operand.label == "Float32" for operand in wide):
        yield Switch("inputs", {"operands": wide})
    if "fidelity" in used and call.fidelity != "HiFi4":
        yield Switch("fidelity", fidelity="HiFi4")
    if registers.dst != "fp32":
        yield Switch("dest")
    if op.has("keeps sums"):
        yield Switch("spills", {"intermed_df": "Float32", "attributes": _attributes_in_one_block(op)})
    if "sfpu" in used:
        yield Switch("sfpu", exact=True)
    part = _vector_part(op)
    if part is not None:
        yield Switch("vector", part=part)
    if op.out_df != "Float32":
        yield Switch("packing", {"out_df": "Float32"})


def switch_off(call: DeviceCall, chosen: Sequence[Switch]) -> tuple[DeviceCall, KernelUnits]:
    """Return the op and the units that compute it without the causes of all chosen switches. `part` of a switch is for
    the caller, who compares results."""
    fields: dict[str, Any] = {}
    for switch in chosen:
        fields.update(switch.fields)
    fidelity = next((switch.fidelity for switch in chosen if switch.fidelity), call.fidelity)
    exact = any(switch.exact for switch in chosen)
    if exact:
        units = ExactFunctions(call.core, call.op)
    else:
        units = KernelUnits(call.core)
    wide: frozenset[Cause] = frozenset(switch.cause for switch in chosen)
    op = replace(call.op, **fields)
    return SwitchedOp(op, call.core, fidelity, call.gradient, original=call, wide=wide), units


def largest(call: DeviceCall) -> float:
    """Return the largest magnitude that the op's result can have in the output's format and its Dst; infinity where
    that is of no concern."""
    out = FORMATS[call.op.out_df]
    if is_integer(out.name) or is_raw(out.name):
        return _LARGEST.get(out.name, np.inf)
    narrow = out.family == "a" or device_op(call.op.type).registers(call).dst == "fp16"
    if narrow:
        return _LARGEST.get(out.name, _LARGEST["Float16"])
    return np.inf


def changes(call: DeviceCall, used: set[str]) -> Iterator[VariantChange]:
    """Yield changes of the op that a netlist could make, the cheapest first: those that cost cycles of one unit, then
    room on the core, then data moved. `used` are the names that `WatchingUnits` recorded for the op."""
    op = call.op
    if "sfpu" in used and op.attributes.approximate_mode:
        exact = replace(op, attributes=replace(op.attributes, approximate_mode=False))
        yield VariantChange("approximate_mode", "true", "false", replace(call, op=exact))
    if "fidelity" in used:
        phases = len(PHASES[call.fidelity])
        for name in FIDELITIES:
            if len(PHASES[name]) > phases:
                yield VariantChange("math_fidelity", call.fidelity, name, replace(call, fidelity=name))
    if op.has("keeps sums") and not call.gradient:
        for df in _WIDER.get(op.intermed_df, ()):
            yield _change_field(call, "intermed_df", df, intermed_df=df)
    if op.acc_df != "Float32" and not is_integer(op.acc_df):
        yield _change_field(call, "acc_df", "Float32", acc_df="Float32")
    for df in _WIDER.get(op.out_df, ()):
        more_fields = {"intermed_df": df} if call.gradient else {}
        yield _change_field(call, "out_df", df, out_df=df, **more_fields)
    yield from _operand_changes(call)


def _change_field(call: DeviceCall, name: str, new_value: str, **fields: Any) -> VariantChange:
    """Return a change of one field of the netlist, which may set several `fields` of the op."""
    return VariantChange(name, getattr(call.op, name), new_value, replace(call, op=replace(call.op, **fields)))


def _operand_changes(call: DeviceCall) -> Iterator[VariantChange]:
    """Yield, for each wider format that an operand could have, a change of all operands to it for which it is wider."""
    formats: dict[str, None] = {}
    for label in call.dfs:
        formats.update(dict.fromkeys(_WIDER.get(label, ())))
    for df in formats:
        labels = [df if df in _WIDER.get(label, ()) else label for label in call.dfs]
        if labels != list(call.dfs):
            operands = tuple(replace(o, label=label) for o, label in zip(call.op.operands, labels, strict=True))
            before, after = (f"[{', '.join(names)}]" for names in (call.dfs, labels))
            yield VariantChange("in_df", before, after, replace(call, op=replace(call.op, operands=operands)))


def _vector_part(op: PlannedOp) -> NDArray[np.bool_] | None:
    """Return a mask of the part of a tile, bool[1024], that the op's vector modes compute, None for all of it. The chip
    leaves the rest as it is, where the reference has zeros (DEVICE_NUMERICS 3.2)."""
    if op.has("sub-ops"):
        calls = [step.call for step in fused_plan(op).steps]
    else:
        calls = [op]
    modes: list[VectorMode] = [vector_mode(call) for call in calls if call.has("vector unit")]
    parts = [touched_mask(mode).reshape(-1) for mode in modes if mode != "rc"]
    return np.logical_and.reduce(parts) if parts else None


def _widest(register: str) -> str:
    """Return the register format of the same exponent family that keeps most bits; formats without a family stay."""
    family = REGISTERS.get(register)
    if family:
        return {"b": "Tf32", "a": "Float16"}.get(family, register)
    return register


def _attributes_in_one_block(op: PlannedOp) -> Attributes:
    """Return the attributes of a dense product with its inner dimension in one block, which has no spills. Those of
    other ops and of a sparse product, whose encoding depends on its blocks, stay."""
    if op.type != "matmul" or op.attributes.identity:
        return op.attributes
    inner = op.operands[0].map.shape[2]
    return replace(op.attributes, m_k=1, u_kt=inner)


def _has_exact_function(bound: Bound, mode: DstMode) -> bool:
    """Return whether precision "ideal" has the vector function, on floats, so that its exact values can be computed."""
    name = bound.function.name
    return name in SFPU_TYPES and name != "dropout" and mode != "int32" and bound.function.reads == (None,)


def _pack_from_fp32(values: Tiles, df: str, units: KernelUnits) -> Bits:
    """Return float32[..., 1024] in a format, rounded as the packer does from an fp32 Dst."""
    image = np.ascontiguousarray(values).view(np.uint32).reshape(-1, TILE_ELEMENTS)
    bits = pack_tiles(units, DstTiles(image, "fp32"), df)
    if bits.exponents is None:
        exponents = None
    else:
        exponents = bits.exponents.reshape(*values.shape[:-1], -1)
    return Bits(df, bits.datums.reshape(values.shape), exponents)
