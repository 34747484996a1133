"""The steps of precision "device" that a run takes: units of a core that record how they are used."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import UnsupportedError
from buda_emu.formats.bits import U32
from buda_emu.formats.stored import Bits
from buda_emu.ops.base import Parallel
from buda_emu.ops.on_device.kernel_units import KernelUnits
from buda_emu.ops.on_device.units import PackedAs, Picking, ProductBlock, Spill, Words
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.tensix.conversions.intermediate import intermediate
from buda_emu.tensix.conversions.relu import RELU_MODES
from buda_emu.tensix.elementwise.maxpool import Dim
from buda_emu.tensix.functions.table import FUNCTIONS, Bound
from buda_emu.tensix.lanes import DstMode, VectorMode
from buda_emu.tensix.registers import REGISTERS, op_registers
from buda_emu.tensix.words import Core

_CORES: Final[tuple[Core, ...]] = ("wormhole_b0", "grayskull", "blackhole")
_FORMATS: Final = tuple(name for name in NETLIST_FORMATS if name != "UInt16")
"""Numbers of rows and columns, which are UInt16, go past the units."""
_MODES: Final[tuple[DstMode, ...]] = ("bf16", "fp16", "fp32", "int32")
_STEPS: Final = (
    "halves", "copy to Dst", "add", "subtract", "add onto Dst", "multiply", "multiply onto Dst", "exact beside singles",
    "matmul", "matmul in blocks", "pick lines", "pick lines into L1", "pool r", "pool c", "Dst to Src", "recode",
    "add in L1", "relu min in the packer", "relu max in the packer", "integer copy to Dst", "integer subtract",
    "integer multiply", "integer matmul",
)  # fmt: skip
"""Of integers the matrix unit adds none: the vector unit does, and gradients of integers are refused (V095, V102)."""


@cache
def device_steps() -> tuple[str, ...]:
    """All that a netlist reaches: steps of units, functions of the vector unit, and the ways of formats into registers
    and out of Dst that a core has."""
    functions = (f"function {name}" for name in FUNCTIONS)
    return (*_STEPS, *functions, *dict.fromkeys((*_unpacks(), *_packs())))


def _unpacks() -> list[str]:
    """Of each format the registers that it may be unpacked to."""
    found: list[str] = []
    for df in _FORMATS:
        for acc in ("", "Float32", "Int32"):
            for between in ("Float16", "Float16_b"):
                found.append(_unpack(df, op_registers((df,), between, between, acc, "blackhole").inputs[0]))
    return found


def _packs() -> list[str]:
    """Of each mode of Dst the formats that some core packs it to."""
    found: list[str] = []
    for core in _CORES:
        for mode in _MODES:
            for df in _FORMATS:
                try:
                    intermediate(mode, df, mode == "int32", core)
                except UnsupportedError:
                    continue
                found.append(_pack(mode, df))
    return found


def _unpack(df: str, register: str) -> str:
    return f"unpack {df} to {register}"


def _pack(mode: DstMode, df: str) -> str:
    return f"pack {mode} to {df}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotingUnits(KernelUnits):
    """The kernels; `steps` gets the names of what they do."""

    steps: set[str] = field(default_factory=set[str])

    def halves(self, tiles: Bits, register: str, parallel: Parallel) -> U32 | None:
        found = KernelUnits.halves(self, tiles, register, parallel)
        if found is not None:
            self.steps.update(("halves", _unpack(tiles.df, register)))
        return found

    def unpack(self, tiles: Bits, register: str, out: U32 | None = None) -> U32:
        self.steps.add(_unpack(tiles.df, register))
        return KernelUnits.unpack(self, tiles, register, out)

    def copy(self, words: U32, register: str, mode: DstMode) -> U32:
        self._note("copy to Dst", register)
        return KernelUnits.copy(self, words, register, mode)

    def add(self, a: U32, b: U32, register: str, mode: DstMode, subtract: bool = False, dst: U32 | None = None) -> U32:
        self._note("add onto Dst" if dst is not None else "subtract" if subtract else "add", register)
        return KernelUnits.add(self, a, b, register, mode, subtract, dst)

    def left_by_singles(self, left_out: NDArray[np.bool_]) -> list[tuple[int, int]]:
        found = KernelUnits.left_by_singles(self, left_out)
        if found:
            self.steps.add("exact beside singles")
        return found

    def multiply(self, a: U32, b: U32, register: str, mode: DstMode, fidelity: str, dst: U32 | None = None) -> U32:
        integer = REGISTERS[register] is None
        self._note("multiply" if dst is None or integer else "multiply onto Dst", register)
        return KernelUnits.multiply(self, a, b, register, mode, fidelity, dst)

    def matmul(self, dst: U32, items: range, block: ProductBlock) -> None:
        self._note("matmul" if block.spill is None else "matmul in blocks", block.operands[0].register)
        KernelUnits.matmul(self, dst, items, block)

    def picker(
        self, picking: Picking, fidelity: str, mode: DstMode, spill: Spill | None
    ) -> Callable[[U32, int, int], None] | None:
        return self._picks("pick lines", picking, KernelUnits.picker(self, picking, fidelity, mode, spill))

    def l1_picker(
        self, picking: Picking, fidelity: str, mode: DstMode, df: str
    ) -> Callable[[Bits, int, int], None] | None:
        return self._picks("pick lines into L1", picking, KernelUnits.l1_picker(self, picking, fidelity, mode, df))

    def _picks(self, step: str, picking: Picking, found: Any) -> Any:
        if found is not None:
            self.steps.update((step, _unpack(picking.source.df, picking.register)))
        return found

    def pool(self, source: Words, dst: U32, start: int, stop: int, dim: Dim, mode: DstMode) -> None:
        self.steps.add(f"pool {dim}")
        KernelUnits.pool(self, source, dst, start, stop, dim, mode)

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        self.steps.add(f"function {bound.function.name}")
        return KernelUnits.function(self, bound, mode, *images, vector=vector)

    def to_src(self, dst: U32, mode: DstMode, register: str) -> U32:
        self.steps.add("Dst to Src")
        return KernelUnits.to_src(self, dst, mode, register)

    def pack(self, dst: U32, to: PackedAs, out: Bits | None = None) -> Bits:
        self.steps.add(_pack(to.mode, to.df))
        if to.relu:
            self.steps.add(f"relu {'max' if to.relu == RELU_MODES['max'] else 'min'} in the packer")
        return KernelUnits.pack(self, dst, to, out)

    def recode(self, tiles: Bits, out: Bits) -> None:
        self.steps.add("recode")
        KernelUnits.recode(self, tiles, out)

    def add_in_l1(self, old: Bits, new: Bits) -> Bits:
        self.steps.add("add in L1")
        return KernelUnits.add_in_l1(self, old, new)

    def _note(self, step: str, register: str) -> None:
        self.steps.add(f"integer {step}" if REGISTERS[register] is None else step)
