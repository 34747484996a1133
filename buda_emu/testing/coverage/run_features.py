"""Features that a run exercises: events of its queues and rams, and the units of a core that its ops use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix.conversions.pack import RELU_MODES, intermediate
from buda_emu.arithmetic.tensix.elementwise import Dim
from buda_emu.arithmetic.tensix.functions.table import FUNCTIONS, Bound
from buda_emu.arithmetic.tensix.lanes import DstMode, VectorMode
from buda_emu.arithmetic.tensix.registers import REGISTERS, Core, op_registers
from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.ops.base import Parallel
from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
from buda_emu.emulator.ops.on_device.units import PackedAs, Picking, ProductBlock, Spill, Words
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.emulator.runtime.graph.schedule import Chunk
from buda_emu.emulator.runtime.graph.steps import Plan
from buda_emu.emulator.runtime.machine.listeners import Listener
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.support.errors import UnsupportedError

EVENTS: Final = (
    "queue: push by the host", "queue: push by an op", "queue: pop by a pointer setting",
    "queue: pop by global_rdptr_autoinc", "queue: full", "queue: empty again", "queue: write pointer wraps",
    "queue: read pointer wraps", "queue: an entry is read again", "ram: write by the host", "ram: write by an op",
    "ram: write pointer wraps", "ram: read pointer wraps", "ram: an entry is written again",
    "ram: read and written by one input", "inputs together",
)  # fmt: skip


class Noting(Listener):
    """A listener that records the features of one machine's runs: `events` are names of `EVENTS`, `steps` of
    `device_steps()`."""

    def __init__(self, emulator: Emulator) -> None:
        """Begin to listen to a machine before its first run."""
        self.events: set[str] = set()
        self.steps: set[str] = set()
        self._emulator = emulator
        self._in_epoch = False
        self._pushed: dict[str, int] = {}
        """The slot of the last push by queue."""
        self._read: dict[str, int] = {}
        """The slot of the last read by queue."""
        self._written: set[tuple[str, int]] = set()
        emulator.add_listener(self)
        emulator.record(self._record_chunk, self._recording_units() if emulator.precision == "device" else None)

    def _recording_units(self) -> "partial[KernelUnits]":
        """Return the function that makes units of a core which record their steps in `steps`."""
        return partial(NotingUnits, steps=self.steps)

    @property
    def exercised_features(self) -> dict[str, tuple[str, ...]]:
        """The names that the runs have exercised, by list."""
        return {"queues and rams": tuple(sorted(self.events)), "device steps": tuple(sorted(self.steps))}

    def epoch_start(self, graphs: tuple[str, ...], inputs: int) -> None:  # noqa: ARG002
        """Remember that an epoch runs, so that pops count as those of its ops."""
        self._in_epoch = True

    def epoch_end(self, graphs: tuple[str, ...]) -> None:  # noqa: ARG002
        """Remember that no epoch runs, so that pops count as those of pointer settings."""
        self._in_epoch = False

    def queue_push(self, queue: str, slot: int) -> None:
        """Record a write of a slot, by the host or an op, and what it does to the queue or ram."""
        channel = self._emulator.channels[queue]
        by = "an op"
        if self._emulator.netlist.queues[queue].host_fed:
            by = "the host"
        last = self._pushed.get(queue, -1)
        self._pushed[queue] = slot
        if isinstance(channel, Fifo):
            self._record(
                "queue: push by " + by, ("queue: full", channel.ring.full), ("queue: write pointer wraps", slot < last)
            )
            return
        again = (queue, slot) in self._written
        self._written.add((queue, slot))
        wraps = _wraps(last, slot, channel.global_wrptr_autoinc, channel.entries)
        self._record(
            "ram: write by " + by, ("ram: write pointer wraps", wraps), ("ram: an entry is written again", again)
        )

    def queue_pop(self, queue: str, count: int) -> None:  # noqa: ARG002
        """Record a pop, by a pointer setting or an epoch, and whether it empties the queue."""
        channel = self._emulator.channels[queue]
        empty = isinstance(channel, Fifo) and channel.ring.empty
        by = "a pointer setting"
        if self._in_epoch:
            by = "global_rdptr_autoinc"
        self._record("queue: pop by " + by, ("queue: empty again", empty))

    def _record_chunk(self, plan: Plan, chunk: Chunk) -> None:  # noqa: ARG002
        """Record the slots that inputs which are about to run together read, after their pointers have moved."""
        self._record("", ("inputs together", chunk.inputs > 1))
        for queue, slots in chunk.reads.items():
            channel = self._emulator.channels[queue]
            for slot in slots:
                self._record_read(queue, channel, slot)
            rewritten = isinstance(channel, Ram) and bool(set(slots) & set(chunk.writes.get(queue, ())))
            self._record("", ("ram: read and written by one input", rewritten))

    def _record_read(self, queue: str, channel: Fifo | Ram, slot: int) -> None:
        """Record the read of one slot: whether the pointer wraps, or an entry is read again."""
        last = self._read.get(queue, -1)
        self._read[queue] = slot
        if isinstance(channel, Fifo):
            wraps = _wraps(last, slot, channel.rd_ptr_autoinc, channel.ring.entries)
            self._record("", ("queue: read pointer wraps", wraps), ("queue: an entry is read again", slot == last))
        else:
            wraps = _wraps(last, slot, channel.global_rdptr_autoinc, channel.entries)
            self._record("", ("ram: read pointer wraps", wraps))

    def _record(self, always: str, *events: tuple[str, bool]) -> None:
        """Record the event `always`, unless it is "", and those of the `events` that are paired with True."""
        self.events.update(name for name, happened in ((always, bool(always)), *events) if happened)


def _wraps(last: int, slot: int, step: int, entries: int) -> bool:
    """Return whether a pointer moved from slot `last` past the end of `entries` slots to `slot` by its own step; a
    pointer that was set back has moved by another distance."""
    return slot < last and (slot - last) % entries == max(step, 1) % entries


_CORES: Final[tuple[Core, ...]] = ("wormhole_b0", "grayskull", "blackhole")
_FORMATS: Final = tuple(name for name in NETLIST_FORMATS if name != "UInt16")
"""Formats that pass the units: UInt16, the format of row and column numbers, does not."""
_MODES: Final[tuple[DstMode, ...]] = ("bf16", "fp16", "fp32", "int32")
_STEPS: Final = (
    "halves", "copy to Dst", "add", "subtract", "add onto Dst", "multiply", "multiply onto Dst", "exact beside singles",
    "matmul", "matmul in blocks", "pick lines", "pick lines into L1", "pool r", "pool c", "Dst to Src", "recode",
    "add in L1", "relu min in the packer", "relu max in the packer", "integer copy to Dst", "integer subtract",
    "integer multiply", "integer matmul",
)  # fmt: skip
"""Steps of units. Integers are added by the vector unit, and their gradients are refused (V095, V102)."""


@cache
def device_steps() -> tuple[str, ...]:
    """Return all steps that a netlist can reach: steps of units, functions of the vector unit, and the conversions of
    formats into registers and out of Dst that a core has."""
    functions = (f"function {name}" for name in FUNCTIONS)
    return (*_STEPS, *functions, *dict.fromkeys((*_unpack_steps(), *_pack_steps())))


def _unpack_steps() -> list[str]:
    """Return the names of the steps that unpack each format to the registers that it may be unpacked to."""
    steps: list[str] = []
    for df in _FORMATS:
        for acc in ("", "Float32", "Int32"):
            for between in ("Float16", "Float16_b"):
                steps.append(_unpack_step(df, op_registers((df,), between, between, acc, "blackhole").inputs[0]))
    return steps


def _pack_steps() -> list[str]:
    """Return the names of the steps that pack each mode of Dst to the formats that some core packs it to."""
    steps: list[str] = []
    for core in _CORES:
        for mode in _MODES:
            for df in _FORMATS:
                try:
                    intermediate(mode, df, mode == "int32", core)
                except UnsupportedError:
                    continue
                steps.append(_pack_step(mode, df))
    return steps


def _unpack_step(df: str, register: str) -> str:
    """Return the name of the step that unpacks a format to a register."""
    return f"unpack {df} to {register}"


def _pack_step(mode: DstMode, df: str) -> str:
    """Return the name of the step that packs a mode of Dst to a format."""
    return f"pack {mode} to {df}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotingUnits(KernelUnits):
    """The compiled kernels of a core's units; every call adds its name to `steps`."""

    steps: set[str] = field(default_factory=set[str])

    def halves(self, tiles: Bits, register: str, parallel: Parallel) -> U32 | None:
        """Record that stored tiles serve as halves of register words (`Units.halves`), where they do, and return
        these."""
        words = KernelUnits.halves(self, tiles, register, parallel)
        if words is not None:
            self.steps.update(("halves", _unpack_step(tiles.df, register)))
        return words

    def unpack(self, tiles: Bits, register: str, out: U32 | None = None) -> U32:
        """Record the conversion of the tiles' format to the register's, and do it."""
        self.steps.add(_unpack_step(tiles.df, register))
        return KernelUnits.unpack(self, tiles, register, out)

    def copy(self, words: U32, register: str, mode: DstMode) -> U32:
        """Record a copy of an operand to Dst, and do it."""
        self._record("copy to Dst", register)
        return KernelUnits.copy(self, words, register, mode)

    def add(self, a: U32, b: U32, register: str, mode: DstMode, subtract: bool = False, dst: U32 | None = None) -> U32:
        """Record an addition, a subtraction or an addition onto Dst, and do it."""
        step = "add"
        if subtract:
            step = "subtract"
        if dst is not None:
            step = "add onto Dst"
        self._record(step, register)
        return KernelUnits.add(self, a, b, register, mode, subtract, dst)

    def left_by_singles(self, left_out: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Record that some tiles need exact arithmetic where the others are computed in float32, and return their
        runs."""
        ranges = KernelUnits.left_by_singles(self, left_out)
        if ranges:
            self.steps.add("exact beside singles")
        return ranges

    def multiply(self, a: U32, b: U32, register: str, mode: DstMode, fidelity: str, dst: U32 | None = None) -> U32:
        """Record a multiplication, onto Dst where it adds to what is there, and do it."""
        integer = REGISTERS[register] is None
        self._record("multiply" if dst is None or integer else "multiply onto Dst", register)
        return KernelUnits.multiply(self, a, b, register, mode, fidelity, dst)

    def matmul(self, dst: U32, items: range, block: ProductBlock) -> None:
        """Record a product, in blocks where it spills partial sums, and do it."""
        self._record("matmul" if block.spill is None else "matmul in blocks", block.operands[0].register)
        KernelUnits.matmul(self, dst, items, block)

    def picker(
        self, picking: Picking, fidelity: str, mode: DstMode, spill: Spill | None
    ) -> Callable[[U32, int, int], None] | None:
        """Record that an identity matmul is computed line by line in Dst, and return the function that does so; None
        where tiles have to be multiplied."""
        return self._record_picker("pick lines", picking, KernelUnits.picker(self, picking, fidelity, mode, spill))

    def l1_picker(
        self, picking: Picking, fidelity: str, mode: DstMode, df: str
    ) -> Callable[[Bits, int, int], None] | None:
        """Record that an identity matmul is computed line by line in L1, and return the function that does so; None
        where tiles have to be multiplied."""
        return self._record_picker(
            "pick lines into L1", picking, KernelUnits.l1_picker(self, picking, fidelity, mode, df)
        )

    def _record_picker(self, step: str, picking: Picking, picker: Any) -> Any:
        """Record the step if there is a kernel for it (`picker` is not None), and return `picker`."""
        if picker is not None:
            self.steps.update((step, _unpack_step(picking.source.df, picking.register)))
        return picker

    def pool(self, source: Words, dst: U32, start: int, stop: int, dim: Dim, mode: DstMode) -> None:
        """Record a pooling along a dimension, and do it."""
        self.steps.add(f"pool {dim}")
        KernelUnits.pool(self, source, dst, start, stop, dim, mode)

    def function(self, bound: Bound, mode: DstMode, *images: U32, vector: VectorMode = "rc") -> U32:
        """Record a function of the vector unit, and compute it."""
        self.steps.add(f"function {bound.function.name}")
        return KernelUnits.function(self, bound, mode, *images, vector=vector)

    def to_src(self, dst: U32, mode: DstMode, register: str) -> U32:
        """Record that a Dst image becomes an operand, and return its register words."""
        self.steps.add("Dst to Src")
        return KernelUnits.to_src(self, dst, mode, register)

    def pack(self, dst: U32, to: PackedAs, out: Bits | None = None) -> Bits:
        """Record the conversion of Dst to the packed format, and a relu in the packer, and do it."""
        self.steps.add(_pack_step(to.mode, to.df))
        if to.relu:
            self.steps.add(f"relu {'max' if to.relu == RELU_MODES['max'] else 'min'} in the packer")
        return KernelUnits.pack(self, dst, to, out)

    def recode(self, tiles: Bits, out: Bits) -> None:
        """Record the conversion between equal formats through Dst, and do it."""
        self.steps.add("recode")
        KernelUnits.recode(self, tiles, out)

    def add_in_l1(self, old: Bits, new: Bits) -> Bits:
        """Record that the packer adds to tiles in L1, and return the sum."""
        self.steps.add("add in L1")
        return KernelUnits.add_in_l1(self, old, new)

    def _record(self, step: str, register: str) -> None:
        """Add a step to `steps`, by the name of the integer step if the register holds integers."""
        self.steps.add(f"integer {step}" if REGISTERS[register] is None else step)
