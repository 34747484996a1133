"""Computation, storage and comparison of values in each precision: float32 tiles, or the bits of their formats."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix.registers import Core
from buda_emu.emulator.memory.bit_store import BitView
from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.ops.base import serial
from buda_emu.emulator.ops.operands import convert
from buda_emu.emulator.runtime.graph import execute
from buda_emu.emulator.runtime.graph.steps import Convert, Push, Run
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.support.errors import UnsupportedError

if TYPE_CHECKING:
    from buda_emu.testing.injection.inside_op import WatchedUnits

Tiles = NDArray[np.float32]
Value = Any
"""One entry: float32[1, tiles, 1024], or `Bits` [1, tiles]."""


class Arithmetic(Protocol):
    """The functions that a trace needs of a precision: how values are read, computed, stored and compared. All values
    are of one input."""

    def read(self, channel: Fifo | Ram, slot: int, *, flat: bool) -> Value:
        """Return a copy of the entry in a slot; with `flat` as the host pushed it, row by row, where the machine kept
        that."""
        ...

    def run(
        self,
        step: Run,
        inputs: list[Value],
        previous: Value | None,
        tiles: int,
        df: str,
        units: "WatchedUnits | None" = None,
    ) -> Value:
        """Compute an op and return its result, `tiles` tiles of format `df`; on the device on the given units of a
        core. `previous` is the sum that a gradient op adds to, None where there is none. Raises ProgramError and
        UnsupportedError like the machine."""
        ...

    def convert(self, step: Convert, source: Value) -> Value:
        """Return a copy of `source` that is truncated to the format of the step; `source` does not change."""
        ...

    def arrange(self, step: Push, value: Value) -> Value:
        """Return what a queue stores of a result: its tiles moved as the queue's TMs say, or `value` itself without
        TMs."""
        ...

    def join(self, parts: list[Value]) -> Value:
        """Return one value with the tiles of all parts, in their order."""
        ...

    def encode(self, value: Value, df: str) -> Bits:
        """Return a copy of a value as the bits of format `df`, [1, tiles]; on the device a value is that already."""
        ...

    def decode(self, bits: Bits) -> Value:
        """Return the value that bits of a format stand for; on the device the bits themselves."""
        ...

    def equal(self, a: Value, b: Value) -> bool:
        """Return whether two values have the same bits."""
        ...

    def floats(self, value: Value) -> Tiles:
        """Return the value as the host reads it: float32[1, tiles, 1024]."""
        ...


class Floats:
    """The `Arithmetic` of precisions "format" and "ideal"."""

    def read(self, channel: Fifo | Ram, slot: int, *, flat: bool) -> Tiles:
        """Return a copy of the entry as float32 tiles; with `flat` the host's data as pushed, where the machine kept
        that."""
        if flat and channel.flat is not None:
            return np.array(channel.flat[slot])[np.newaxis]
        return channel.view.block(slot, 1).copy()

    def run(
        self,
        step: Run,
        inputs: list[Tiles],
        previous: Tiles | None,
        tiles: int,
        df: str,  # noqa: ARG002
        units: "WatchedUnits | None" = None,  # noqa: ARG002
    ) -> Tiles:
        """Compute an op in float32, as machines of these precisions do; `df` and `units` are not used."""
        out = np.empty((1, tiles, TILE_ELEMENTS), np.float32)
        execute.run_step(step, inputs, previous, out, serial)
        return out

    def convert(self, step: Convert, source: Tiles) -> Tiles:
        """Return a copy of `source`, truncated to the step's format."""
        out = source.copy()
        convert(out, step.format, serial, truncate=True)
        return out

    def arrange(self, step: Push, value: Tiles) -> Tiles:
        """Return the tiles in the order that the queue's TMs give, or `value` itself without TMs."""
        if step.map is None:
            return value
        out = np.empty((1, step.map.index.size, TILE_ELEMENTS), np.float32)
        execute.arrange(step.map, value, out, serial)
        return out

    def join(self, parts: list[Tiles]) -> Tiles:
        """Return the tiles of all parts in one array."""
        return np.concatenate(parts, axis=1)

    def encode(self, value: Tiles, df: str) -> Bits:
        """Return float32 tiles as the bits of format `df`."""
        return Bits.encode(df, value)

    def decode(self, bits: Bits) -> Tiles:
        """Return the float32 tiles that bits of a format stand for."""
        return np.ascontiguousarray(bits.values(), np.float32)

    def equal(self, a: Tiles, b: Tiles) -> bool:
        """Return whether two values have the same bits: zeros of different sign differ, NaN of equal bits do not."""
        return bool(np.array_equal(a.view(np.uint32), b.view(np.uint32)))

    def floats(self, value: Tiles) -> Tiles:
        """Return `value` itself, not a copy."""
        return value


class OnDevice:
    """The `Arithmetic` of precision "device"."""

    def __init__(self, core: Core) -> None:
        self.core: Core = core

    def read(self, channel: Fifo | Ram, slot: int, *, flat: bool) -> Bits:  # noqa: ARG002 - the bits in memory are all
        """Return a copy of the bits of the entry; `flat` is not used. Raises UnsupportedError for memory that does not
        hold bits."""
        view = channel.view
        if not isinstance(view, BitView):
            raise UnsupportedError(f"{view.name} does not hold bits")
        return view.bits(slot, 1).copy()

    def run(
        self,
        step: Run,
        inputs: list[Bits],
        previous: Bits | None,
        tiles: int,
        df: str,
        units: "WatchedUnits | None" = None,
    ) -> Bits:
        """Compute an op bit for bit as a core does, on `units`, None for the kernels. Raises UnsupportedError for an op
        without a plan for the device."""
        from buda_emu.emulator.ops.on_device.base import run
        from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits

        if step.device is None:
            raise UnsupportedError(f"op {step.op.name} is not planned for precision device")
        out = Bits.empty(df, 1, tiles)
        units_of_core = units or KernelUnits(self.core, lend=lambda count: np.empty(count, np.float32))
        run(step.device, inputs, out, previous, units_of_core, serial)
        return out

    def convert(self, step: Convert, source: Bits) -> Bits:
        """Refuse to convert: in precision "device" no tensor changes its format between ops. Raises
        UnsupportedError."""
        raise UnsupportedError(f"precision device does not convert tensors between ops ({step.format}, {source.df})")

    def arrange(self, step: Push, value: Bits) -> Bits:
        """Return the bits with tiles in the order that the queue's TMs give, or `value` itself without TMs."""
        from buda_emu.emulator.runtime.graph.device_run import arrange

        if step.map is None:
            return value
        return arrange(step.map, value)

    def join(self, parts: list[Bits]) -> Bits:
        """Return the tiles of all parts, of equal size and format, as one value."""
        size = parts[0].shape[1]
        out = Bits.empty(parts[0].df, 1, size * len(parts))
        for number, part in enumerate(parts):
            out.assign((slice(0, 1), slice(number * size, (number + 1) * size)), part)
        return out

    def encode(self, value: Bits, df: str) -> Bits:  # noqa: ARG002 - it is in that format already
        """Return a copy: a value is the bits of its format already."""
        return value.copy()

    def decode(self, bits: Bits) -> Bits:
        """Return `bits` themselves, not a copy."""
        return bits

    def equal(self, a: Bits, b: Bits) -> bool:
        """Return whether datums are the same and, where both values have shared exponents, these too."""
        if not np.array_equal(a.datums, b.datums):
            return False
        return a.exponents is None or b.exponents is None or np.array_equal(a.exponents, b.exponents)

    def floats(self, value: Bits) -> Tiles:
        """Return the float32 values that the bits stand for."""
        return value.values()
