"""One op of precision "device" with one cause of error taken away, or one field of the netlist changed.

A switch takes away one cause and leaves the rest: the registers stay those of the op as it stands, but for the one that
is switched. Such an op need not exist in any netlist. A change is an op as a netlist would have it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import TILE_ELEMENTS, Bits
from buda_emu.arithmetic.tensix.functions.table import Bound
from buda_emu.arithmetic.tensix.lanes import DstMode, VectorMode, load, touched_mask
from buda_emu.arithmetic.tensix.products import PHASES
from buda_emu.arithmetic.tensix.registers import REGISTERS, OpRegisters
from buda_emu.emulator.op_errors.numerics_result import Cause
from buda_emu.emulator.ops.base import OpCall, Parallel, Tiles, serial
from buda_emu.emulator.ops.fused_plan import fused_plan
from buda_emu.emulator.ops.on_device import device_op
from buda_emu.emulator.ops.on_device.base import DeviceCall, Made, packed, result_shape, run, vector_mode
from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
from buda_emu.emulator.ops.on_device.units import ProductBlock
from buda_emu.emulator.ops.sfpu import Region, run_in_place
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.formats import FORMATS, is_integer, is_raw
from buda_emu.spec.ops import SFPU_TYPES

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
_FIDELITIES: Final = ("LoFi", "HiFi2", "HiFi3", "HiFi4")


@dataclass(frozen=True)
class Switched(DeviceCall):
    """`op` with the registers of `original`, made wider where asked."""

    original: DeviceCall | None = None
    wide: frozenset[Cause] = frozenset()

    def registers(self, operands: Sequence[int] | None = None) -> OpRegisters:
        assert self.original is not None
        found = self.original.registers(operands)
        if "inputs" in self.wide:
            found = replace(found, inputs=tuple(_widest(name) for name in found.inputs))
        if "spills" in self.wide:
            found = replace(found, intermediate=_widest(found.intermediate))
        return replace(found, dst="fp32") if "dest" in self.wide else found


@dataclass(frozen=True, slots=True)
class Change:
    """A field of the netlist with another value. `call` is the op that has it."""

    field: str
    before: str
    after: str
    call: DeviceCall


@dataclass(frozen=True, slots=True)
class Watching(KernelUnits):
    """The kernels; notes which of the units that may lose precision an op uses."""

    used: set[str] = field(default_factory=set[str], compare=False)

    def multiply(self, a: U32, b: U32, register: str, mode: DstMode, fidelity: str, dst: U32 | None = None) -> U32:
        self.used.add("fidelity")
        return KernelUnits.multiply(self, a, b, register, mode, fidelity, dst)

    def matmul(self, dst: U32, items: range, block: ProductBlock) -> None:
        self.used.add("fidelity")
        KernelUnits.matmul(self, dst, items, block)

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        if _is_exact(bound, mode):
            self.used.add("sfpu")
        return KernelUnits.function(self, bound, mode, *images, vector=vector)


@dataclass(frozen=True, slots=True)
class ExactFunctions(KernelUnits):
    """The kernels, but functions as precision "ideal" has them, rounded once to what Dst holds. `op`: the op, for the
    slope as the netlist gives it."""

    op: OpCall

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        if not _is_exact(bound, mode):
            return KernelUnits.function(self, bound, mode, *images, vector=vector)
        image = np.ascontiguousarray(images[0]).reshape(-1, TILE_ELEMENTS)
        values = load(image, mode).view(np.float32)[np.newaxis]
        name = bound.function.name
        parameters = dict(bound.parameters)
        attributes = replace(Attributes(), exp=int(parameters.get("exponent", 0)))
        if "slope" in parameters:
            own = np.uint32(parameters["slope"]).view(np.float32)
            attributes = replace(attributes, slope=self.op.attributes.slope if self.op.type == name else float(own))
        run_in_place(replace(self.op, attributes=attributes), name, Region(32, 32), values, serial)
        df = {"bf16": "Float16_b", "fp16": "Float16"}.get(mode)
        result = _packed(values[0], df, self).datums.astype(np.uint32) if df else values[0].view(np.uint32)
        return np.where(touched_mask(vector, bound.whole_faces).reshape(-1), result, image).reshape(images[0].shape)


@dataclass(frozen=True, slots=True)
class Ideal:
    """An operand in precision "ideal", before TMs: float32[1, tiles, 1024]. `by_host`: the host pushed it."""

    values: Tiles
    by_host: bool

    def rounded(self, df: str, units: KernelUnits) -> Bits:
        """In its format: encoded by the host, which truncates scalars (FORMATS 3), or as a packer rounds (4)."""
        if self.by_host or is_integer(df) or is_raw(df):
            return Bits.encode(df, self.values)
        return _packed(self.values, df, units)


def computed(call: DeviceCall, operands: Sequence[Ideal], units: KernelUnits, parallel: Parallel) -> Tiles:
    """What the op gives, float32[1, tiles, 1024], for ideal operands rounded to the formats of `call`.

    Raises UnsupportedError, ProgramError.
    """
    inputs = [operand.rounded(df, units) for df, operand in zip(call.dfs, operands, strict=True)]
    t, rows, cols = result_shape(call)
    out = Bits.empty(call.op.out_df, 1, t * rows * cols)
    run(call, inputs, out, None, units, parallel)
    return out.values()


@dataclass(frozen=True, slots=True)
class Switch:
    """What takes away one cause of error: fields of the op, its fidelity, exact functions, or a part of each tile
    bool[1024] that alone is compared."""

    cause: Cause
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fidelity: str = ""
    exact: bool = False
    part: NDArray[np.bool_] | None = None


def switches(call: DeviceCall, used: set[str]) -> Iterator[Switch]:
    """Those of the causes of error that the op can have. `used`: what `Watching` has seen of it."""
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
        yield Switch("spills", {"intermed_df": "Float32", "attributes": _in_one_block(op)})
    if "sfpu" in used:
        yield Switch("sfpu", exact=True)
    part = _vector_part(op)
    if part is not None:
        yield Switch("vector", part=part)
    if op.out_df != "Float32":
        yield Switch("packing", {"out_df": "Float32"})


def switched(call: DeviceCall, chosen: Sequence[Switch]) -> tuple[DeviceCall, KernelUnits]:
    """The op without all of these causes."""
    fields = {name: value for switch in chosen for name, value in switch.fields.items()}
    fidelity = next((switch.fidelity for switch in chosen if switch.fidelity), call.fidelity)
    exact = any(switch.exact for switch in chosen)
    units = ExactFunctions(call.core, call.op) if exact else KernelUnits(call.core)
    wide: frozenset[Cause] = frozenset(switch.cause for switch in chosen)
    op = replace(call.op, **fields)
    return Switched(op, call.core, fidelity, call.gradient, original=call, wide=wide), units


def largest(call: DeviceCall) -> float:
    """What the output's format, or a Dst of fp16, can hold at most."""
    out = FORMATS[call.op.out_df]
    if is_integer(out.name) or is_raw(out.name):
        return _LARGEST.get(out.name, np.inf)
    narrow = out.family == "a" or device_op(call.op.type).registers(call).dst == "fp16"
    return _LARGEST.get(out.name, _LARGEST["Float16"]) if narrow else np.inf


def changes(call: DeviceCall, used: set[str]) -> Iterator[Change]:
    """What a netlist could have instead, the cheapest first: cycles of one unit, then room on the core, then data that
    is moved."""
    op = call.op

    def changed(name: str, after: str, **fields: Any) -> Change:
        return Change(name, getattr(op, name), after, replace(call, op=replace(op, **fields)))

    if "sfpu" in used and op.attributes.approximate_mode:
        exact = replace(op, attributes=replace(op.attributes, approximate_mode=False))
        yield Change("approximate_mode", "true", "false", replace(call, op=exact))
    if "fidelity" in used:
        phases = len(PHASES[call.fidelity])
        for name in _FIDELITIES:
            if len(PHASES[name]) > phases:
                yield Change("math_fidelity", call.fidelity, name, replace(call, fidelity=name))
    if op.has("keeps sums") and not call.gradient:
        for df in _WIDER.get(op.intermed_df, ()):
            yield changed("intermed_df", df, intermed_df=df)
    if op.acc_df != "Float32" and not is_integer(op.acc_df):
        yield changed("acc_df", "Float32", acc_df="Float32")
    for df in _WIDER.get(op.out_df, ()):
        both = {"intermed_df": df} if call.gradient else {}
        yield changed("out_df", df, out_df=df, **both)
    for df in dict.fromkeys(wider for own in call.dfs for wider in _WIDER.get(own, ())):
        labels = [df if df in _WIDER.get(own, ()) else own for own in call.dfs]
        if labels != list(call.dfs):
            operands = tuple(replace(o, label=label) for o, label in zip(op.operands, labels, strict=True))
            before, after = (f"[{', '.join(names)}]" for names in (call.dfs, labels))
            yield Change("in_df", before, after, replace(call, op=replace(op, operands=operands)))


def _vector_part(op: OpCall) -> NDArray[np.bool_] | None:
    """What vector modes leave of a tile; the rest the chip does not touch, where the reference has zeros (3.2). None
    for all of it. A matmul's gelu keeps the rest in the reference too."""
    calls = [step.call for step in fused_plan(op).steps] if op.has("sub-ops") else [op]
    modes: list[VectorMode] = [vector_mode(call) for call in calls if call.has("vector unit")]
    parts = [touched_mask(mode).reshape(-1) for mode in modes if mode != "rc"]
    return np.logical_and.reduce(parts) if parts else None


def _widest(register: str) -> str:
    """The register format of the same family that keeps most."""
    family = REGISTERS.get(register)
    return {"b": "Tf32", "a": "Float16"}.get(family, register) if family else register


def _in_one_block(op: OpCall) -> Attributes:
    """A dense product without a spill between its blocks; the encoding of a sparse one depends on them."""
    if op.type != "matmul" or op.attributes.identity:
        return op.attributes
    inner = op.operands[0].map.shape[2]
    return replace(op.attributes, m_k=1, u_kt=inner)


def _is_exact(bound: Bound, mode: DstMode) -> bool:
    """Whether precision "ideal" has the function, with operands that are floats."""
    name = bound.function.name
    return name in SFPU_TYPES and name != "dropout" and mode != "int32" and bound.function.reads == (None,)


def _packed(values: Tiles, df: str, units: KernelUnits) -> Bits:
    """float32[..., 1024] as the packer rounds them from an fp32 Dst."""
    image = np.ascontiguousarray(values).view(np.uint32).reshape(-1, TILE_ELEMENTS)
    bits = packed(units, Made(image, "fp32"), df)
    exponents = None if bits.exponents is None else bits.exponents.reshape(*values.shape[:-1], -1)
    return Bits(df, bits.datums.reshape(values.shape), exponents)
