"""Faults inside an op of precision "device": in Dst, in registers of the vector unit, in the output of the packer.

The op runs once more on the kernels, without the shortcuts that spare a unit, and one unit's result is changed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix.functions.table import Bound
from buda_emu.arithmetic.tensix.functions.vector_unit import NumpyUnit
from buda_emu.arithmetic.tensix.lanes import DstMode, VectorMode, load, store, touched_mask
from buda_emu.emulator.ops.base import Parallel
from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
from buda_emu.emulator.ops.on_device.reference_units import ReferenceUnits
from buda_emu.emulator.ops.on_device.units import PackedAs, Picking, Spill
from buda_emu.testing.injection.fault import INSIDE, Fault, Place

_HELD_AS = {"bf16": "Float16_b", "fp16": "Float16", "fp32": "Float32", "int32": "Int32"}
"""The format of Dst's datums, by the mode of Dst."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Tiles that passed through a unit in one call: `first` is their position among all that the op sends through it,
    `df` their format there; `steps` counts the instructions of the vector unit that write a register."""

    place: Place
    first: int
    tiles: int
    df: str
    steps: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedUnits(KernelUnits):
    """The kernels without shortcuts, so that every tile goes through the packer; results have the same bits. Without
    `fault`, `visits` records the tiles that go through each unit; with it, one of them is changed instead. `counts` is
    the number of tiles so far, by unit."""

    fault: Fault | None = None
    visits: list[Visit] = field(default_factory=list[Visit])
    counts: dict[Place, int] = field(default_factory=lambda: dict.fromkeys(INSIDE, 0))

    def halves(self, tiles: Bits, register: str, parallel: Parallel) -> None:
        """Return None, which refuses this shortcut of `Units`: the tiles then go through the units one by one."""

    def picker(self, picking: Picking, fidelity: str, mode: DstMode, spill: Spill | None) -> None:
        """Return None, which refuses this shortcut of `Units`: the tiles then go through the units one by one."""

    def l1_picker(self, picking: Picking, fidelity: str, mode: DstMode, df: str) -> None:
        """Return None, which refuses this shortcut of `Units`: the tiles then go through the units one by one."""

    def recode(self, tiles: Bits, out: Bits) -> None:
        """Write `tiles`, passed through Dst and the packer, to `out`, without the shortcut that the kernels have for
        this."""
        ReferenceUnits.recode(self, tiles, out)  # pyright: ignore[reportArgumentType] - it asks for units, not for their kind

    def _record_visit(self, place: Place, tiles: int, df: str, steps: Callable[[], int] = lambda: 1) -> int | None:
        """Count tiles that go through a unit now, and return which of them the fault hits, counted from 0 in this call.
        Returns None where it hits none, and without a fault, when the tiles are added to `visits`. `df` is their format
        there; `steps` returns the number of instructions of the vector unit."""
        first = self.counts[place]
        self.counts[place] = first + tiles
        if self.fault is None:
            self.visits.append(Visit(place=place, first=first, tiles=tiles, df=df, steps=steps()))
            return None
        hit = self.fault.tile - first
        if self.fault.place == place and 0 <= hit < tiles:
            return hit
        return None

    def pack(self, dst: U32, to: PackedAs, out: Bits | None = None) -> Bits:
        """Pack Dst as the kernels do. If one of its tiles is hit, bits flip in a copy of Dst, or in the packed
        result."""
        hit = self._record_visit("dst", len(dst), _HELD_AS[to.mode])
        if hit is not None and self.fault is not None:
            dst = dst.copy()
            dst.reshape(len(dst), -1)[hit, self.fault.datum] ^= _bit_mask(self.fault)
        packed = KernelUnits.pack(self, dst, to, out)
        hit = self._record_visit("packer", len(dst), to.df)
        if hit is not None and self.fault is not None:
            codes = packed.datums
            if self.fault.exponent and packed.exponents is not None:
                codes = packed.exponents
            codes[hit, self.fault.datum] ^= codes.dtype.type(_bit_mask(self.fault))
        return packed

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """Compute a vector function as the kernels do. If one of its tiles is hit, the fault's datum is computed again
        with flipped bits in an instruction's result; a datum that the function does not touch stays."""
        out = KernelUnits.function(self, bound, mode, *images, vector=vector)
        hit = self._record_visit(
            "sfpu", len(out), "Float32", lambda: _compute_datum(bound, mode, images, 0, 0, None)[1]
        )
        fault = self.fault
        if hit is not None and fault is not None:
            row, column = divmod(fault.datum, 32)
            if touched_mask(vector, bound.whole_faces)[row, column]:
                datum, _ = _compute_datum(bound, mode, images, hit, fault.datum, fault)
                out.reshape(len(out), -1)[hit, fault.datum] = datum
        return out


def _bit_mask(fault: Fault) -> np.uint32:
    """Return the word to XOR a datum with: 1 at each bit that the fault flips."""
    return np.uint32(sum(1 << bit for bit in fault.bits))


def _compute_datum(
    bound: Bound, mode: DstMode, images: tuple[U32, ...], tile: int, datum: int, fault: Fault | None
) -> tuple[np.uint32, int]:
    """Compute one datum of a vector function by its definition, one instruction after the other. Returns the datum and
    the number of instructions that wrote a register. A `fault`, None for a clean result, flips bits in the result of
    its instruction `step`."""
    reads, writes = bound.modes(mode)
    lanes: list[Any] = []
    for image, read_mode in zip(images, reads, strict=True):
        lanes.append(load(image.reshape(len(image), -1)[tile, datum : datum + 1], read_mode))
    unit = _HitUnit(NumpyUnit(bound.blackhole), fault)
    with np.errstate(all="ignore"):
        result = store(bound.define(unit, *lanes), writes)
    return result[0], unit.steps


class _HitUnit:
    """A vector unit that counts in `steps` the instructions that write a register, and flips the fault's bits in one
    result. Instructions that return conditions neither count nor are hit."""

    def __init__(self, unit: NumpyUnit, fault: Fault | None) -> None:
        self._unit = unit
        self._fault = fault
        self.steps = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        instruction = getattr(self._unit, name)

        def run(*operands: Any) -> Any:
            """Execute the instruction, and flip the fault's bits in its result if it is the instruction that the fault
            hits."""
            result = instruction(*operands)
            if result.dtype == np.uint32:
                if self._fault is not None and self.steps == self._fault.step:
                    result = result ^ _bit_mask(self._fault)
                self.steps += 1
            return result

        return run
