"""The steps of a plan in precision "device": tensors are the bits of their formats (DEVICE_NUMERICS 6)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.stored import Bits, floats_for
from buda_emu.arithmetic.kernels.tiles.tile_memory import AS_IS
from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator.memory.bit_store import BitView
from buda_emu.emulator.memory.store import EntryView
from buda_emu.emulator.ops.on_device.base import run
from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
from buda_emu.emulator.ops.on_device.operands import Stored
from buda_emu.emulator.runtime.graph.chunk import ChunkRun, Context, Tensor
from buda_emu.emulator.runtime.graph.schedule import Chunk
from buda_emu.emulator.runtime.graph.steps import Convert, Plan, Push, Read, Run
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.support.errors import InternalError, UnsupportedError


class DeviceRun(ChunkRun[Bits]):
    """A chunk in precision "device". Ops unpack their operands and pack their results: between two ops there are only
    bits."""

    def __init__(self, context: Context, plan: Plan, chunk: Chunk) -> None:
        super().__init__(context, plan, chunk, lambda bits: context.pool.give_back(bits.datums))

    def _writable_entries(self, view: EntryView, slot: int, count: int) -> Bits:
        """Return `count` consecutive entries of a queue from `slot` on, as bits that lie in its memory."""
        return _bit_view(view).bits(slot, count)

    def _take_memory(self, value: int, entries: int) -> Bits:
        """Return memory of the pool, with undefined contents, as bits of the format of the plan's tensor `value`."""
        df = self._plan.labels[value]
        tiles = self._plan.tiles[value]
        return Bits.on(self._context.pool.lend(floats_for(df, entries * tiles)), df, entries, tiles)

    def _to_arrays(self, value: Bits) -> list[NDArray[Any]]:
        """Return the datums of a tensor, and its exponents where the format has them, to be sent to another machine."""
        if value.exponents is None:
            return [value.datums]
        return [value.datums, value.exponents]

    def _from_arrays(self, value: int, arrays: list[NDArray[Any]]) -> Bits:
        """Return the tensor `value` of the plan, made of the datums, and exponents where its format has them, that
        another machine has sent."""
        return Bits(self._plan.labels[value], arrays[0], arrays[1] if len(arrays) > 1 else None)

    def _as_tiles(self, array: Bits) -> Tensor:
        """Decode the bits to float32[w, tiles, 1024]."""
        return array.values()

    def _overwrite(self, array: Bits, tiles: Tensor) -> None:
        """Encode values float32[w or 1, tiles or 1, 1024] as the bits of a tensor, in place."""
        array.assign(slice(0, len(array)), Bits.encode(array.df, np.broadcast_to(tiles, (*array.shape, TILE_ELEMENTS))))

    def _read(self, step: Read) -> None:
        """Enter the bits of the slots read as the tensor of the step, and show them decoded to those who watch."""
        view = _bit_view(self._context.memory.channels[step.queue].view)
        bits = self._values[step.value] = view.read_bits(self._slots_to_read(step))
        if self._watched.listeners or self._op_stepper is not None:  # decoded only for those who look at it
            self._tell_read(step.queue, bits.values())

    def _convert(self, step: Convert) -> None:
        """Raise InternalError: in this precision an op itself unpacks its operands, so that no plan has conversions."""
        raise InternalError(f"precision device does not convert tensors between ops ({step.format})")

    def _run(self, step: Run, inputs: list[Bits], out: Bits) -> None:
        """Run an op that adds to no sum."""
        self._run_from(step, inputs, out, None)

    def _run_from(self, step: Run, inputs: list[Bits], out: Bits, previous: Bits | None) -> None:
        """Run an op on the emulated units of a core, into `out`; a gradient op adds to `previous`, None for an empty
        sum. Raises UnsupportedError naming the op, and InternalError for an op that was planned for another
        precision."""
        if step.device is None or self._context.core is None:
            raise InternalError(f"op {step.op.name} is not planned for precision device")
        lent: list[Tensor] = []

        def lend(count: int) -> Tensor:
            """Lend memory of the pool until the op is done."""
            memory = self._context.pool.lend(count)
            lent.append(memory)
            return memory

        try:
            units = (self._context.units or KernelUnits)(self._context.core, lend=lend)
            run(step.device, inputs, out, previous, units, self._context.parallel)
        except UnsupportedError as error:
            if str(error).startswith("op "):
                raise
            raise UnsupportedError(f"op {step.op.name}: {error}") from None
        finally:
            for array in lent:
                self._context.pool.give_back(array)

    def _accumulate(self, step: Run, inputs: list[Bits], *, every_sum: bool) -> Bits:  # noqa: ARG002
        """Run a gradient op input by input as the chip does: every sum is stored in intermed_df, which is out_df,
        before the next input is added (DEVICE_NUMERICS 2.8). The first sum starts from the content of the ram, as in
        the other precisions (deviation NETLIST 9.2). Returns all sums."""
        ram, slots, zeroed = self._begin_sums(step)
        out = self._allocate_result(step.value, len(slots))
        latest: dict[int, Bits] = {}
        for i, slot in enumerate(slots):
            previous = latest.get(slot)
            if previous is None and not zeroed:
                if ram is not None:
                    previous = None
                    if ram.view.label(slot):
                        previous = _bit_view(ram.view).bits(slot, 1)
                else:
                    stored_sum = self._stored_sum(step)
                    if stored_sum is None:
                        previous = None
                    else:
                        previous = Bits.encode(step.op.out_df, stored_sum[np.newaxis])
            operands = [bits[i : i + 1] if len(bits) > 1 else bits for bits in inputs]
            self._run_from(step, operands, out[i : i + 1], previous)
            latest[slot] = out[i : i + 1]
            zeroed = False
        if ram is None:
            self._context.gradients[step.op.name] = out[-1].values()
        return out

    def _push(self, step: Push) -> None:
        """Store a result in the slots of a queue or ram, through the queue's TMs; a result that was computed in those
        slots is only marked as written."""
        values = self._values[step.value]
        slots = self._chunk.writes[step.queue]
        view = _bit_view(self._context.memory.channels[step.queue].view)
        place = self._direct.get(step.value)
        if step.map is not None:
            values = arrange(step.map, values)
        elif place is not None and place[0] == step.queue and values is place[1] and view.holds_bits(slots[0], values):
            view.mark(slots, step.label)
            return
        view.write_bits(slots, values, step.label)


def arrange(tiles: TileMap, values: Bits) -> Bits:
    """Return a result moved by a queue's own TMs, every bit unchanged. `values` is [w, tiles of the result], the return
    value [w, tiles of an entry]."""
    stored = Stored(bits=values, index=tiles.index, pad_value=tiles.pad_value, arrange=AS_IS, register="", mode="fp32")
    moved = stored.stored_tiles(0, len(values) * tiles.index.size)
    shape = len(values), tiles.index.size, -1
    if moved.exponents is None:
        exponents = None
    else:
        exponents = moved.exponents.reshape(shape)
    return Bits(moved.df, moved.datums.reshape(shape), exponents)


def _bit_view(view: EntryView) -> BitView:
    """Return the view itself, typed as one that holds bits. Raises InternalError for memory of floats."""
    if not isinstance(view, BitView):
        raise InternalError(f"{view.name} does not hold bits")
    return view
