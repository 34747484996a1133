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
    """Tiles that go through a unit in one call, and their format there; `steps` counts the instructions of the vector
    unit that write a register."""

    place: Place
    first: int
    tiles: int
    df: str
    steps: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedUnits(KernelUnits):
    """The kernels without shortcuts, so that every tile goes through the packer, with the same bits. `visits` records
    the tiles that go through each unit; `fault`, where there is one, changes a tile."""

    fault: Fault | None = None
    visits: list[Visit] = field(default_factory=list[Visit])
    counts: dict[Place, int] = field(default_factory=lambda: dict.fromkeys(INSIDE, 0))

    def halves(self, tiles: Bits, register: str, parallel: Parallel) -> None:
        """Refuse this shortcut of `Units`: None sends the tiles through the units."""

    def picker(self, picking: Picking, fidelity: str, mode: DstMode, spill: Spill | None) -> None:
        """Refuse this shortcut of `Units`: None sends the tiles through the units."""

    def l1_picker(self, picking: Picking, fidelity: str, mode: DstMode, df: str) -> None:
        """Refuse this shortcut of `Units`: None sends the tiles through the units."""

    def recode(self, tiles: Bits, out: Bits) -> None:
        """Recode tiles through Dst, without the shortcut of the kernels."""
        ReferenceUnits.recode(self, tiles, out)  # pyright: ignore[reportArgumentType] - it asks for units, not for their kind

    def _visit(self, place: Place, tiles: int, df: str, steps: Callable[[], int] = lambda: 1) -> int | None:
        """Record that tiles go through a unit; return the position, in this call, of the tile that the fault hits, None
        where it hits none. `df` is their format there, `steps` counts instructions of the vector unit."""
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
        """Pack a Dst image, in which the fault flips bits before or after the packer if it hits one of its tiles."""
        hit = self._visit("dst", len(dst), _HELD_AS[to.mode])
        if hit is not None and self.fault is not None:
            dst = dst.copy()
            dst.reshape(len(dst), -1)[hit, self.fault.datum] ^= _mask(self.fault)
        packed = KernelUnits.pack(self, dst, to, out)
        hit = self._visit("packer", len(dst), to.df)
        if hit is not None and self.fault is not None:
            codes = packed.datums
            if self.fault.exponent and packed.exponents is not None:
                codes = packed.exponents
            codes[hit, self.fault.datum] ^= codes.dtype.type(_mask(self.fault))
        return packed

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """Compute a vector function; if the fault hits one of its tiles, the datum is computed once more with the
        fault."""
        out = KernelUnits.function(self, bound, mode, *images, vector=vector)
        hit = self._visit("sfpu", len(out), "Float32", lambda: _compute_datum(bound, mode, images, 0, 0, None)[1])
        fault = self.fault
        if hit is not None and fault is not None:
            row, column = divmod(fault.datum, 32)
            if touched_mask(vector, bound.whole_faces)[row, column]:
                datum, _ = _compute_datum(bound, mode, images, hit, fault.datum, fault)
                out.reshape(len(out), -1)[hit, fault.datum] = datum
        return out


def _mask(fault: Fault) -> np.uint32:
    """Return the bits that a fault flips, as a word."""
    return np.uint32(sum(1 << bit for bit in fault.bits))


def _compute_datum(
    bound: Bound, mode: DstMode, images: tuple[U32, ...], tile: int, datum: int, fault: Fault | None
) -> tuple[np.uint32, int]:
    """Compute one datum of a vector function by definition, with a fault in one instruction's result.

    Returns the datum with the number of instructions that wrote a register.
    """
    reads, writes = bound.modes(mode)
    lanes: list[Any] = []
    for image, read_mode in zip(images, reads, strict=True):
        lanes.append(load(image.reshape(len(image), -1)[tile, datum : datum + 1], read_mode))
    unit = _HitUnit(NumpyUnit(bound.blackhole), fault)
    with np.errstate(all="ignore"):
        result = store(bound.define(unit, *lanes), writes)
    return result[0], unit.steps


class _HitUnit:
    """A vector unit in which a register loses bits right after an instruction wrote it. Conditions are never hit."""

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
                    result = result ^ _mask(self._fault)
                self.steps += 1
            return result

        return run
