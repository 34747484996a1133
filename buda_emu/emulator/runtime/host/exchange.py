"""The host's access to queues and rams, from any thread and while a program runs (NETLIST 4.6)."""

import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from time import monotonic
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.float_state import exact_floats
from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.memory.store import EntryView
from buda_emu.emulator.runtime.host.host_io import HostIo, Lender, Readout, whole_tiles
from buda_emu.emulator.runtime.machine.gate import Gate, Slices
from buda_emu.emulator.runtime.machine.listeners import HOST
from buda_emu.emulator.runtime.machine.memory import Channel, Memory, Watchers
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import is_raw
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, HostTimeoutError
from buda_emu.support.records import dataclass

_PART = 64  # entries that are converted and stored at a time, or
PART_BYTES: Final = 8 << 20  # of them: what stands beside the queues is some such parts (docs/run/memory.md)


@dataclass(frozen=True, slots=True)
class OutputParts:
    """An op-fed queue or ram that holds entries: `shape` and `dtype` of all, and the entries in order, a part of at
    most PART_BYTES, but at least one entry, at a time."""

    queue: str
    shape: tuple[int, int, int, int]
    dtype: "np.dtype[Any]"
    parts: Iterator[NDArray[Any]]


class Exchange:
    """The implementation of `Emulator`'s pushes, pops and reads. Arrays are converted outside of the gate, entries and
    pointers move within it."""

    def __init__(self, netlist: Netlist, memory: Memory, host: HostIo, gate: Gate, watched: Watchers) -> None:
        self._netlist = netlist
        self._memory = memory
        self._host = host
        self._gate = gate
        self._watched = watched
        self._lender = Lender(netlist, memory, host)
        self._pushing: dict[str, bool] = {}  # queue that a thread pushes to -> is it waiting for room?

    def _channel(self, name: str) -> Channel:
        """Return the queue or ram of that name. Raises HostError for a closed machine, an unknown name, and an argument
        that is no text."""
        if self._gate.closed:  # by another thread, after the caller's own check
            raise HostError("this Emulator is closed")
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types
            raise HostError(f"a queue is named by its name, not by {name!r}")
        return self._memory.channel(name)

    # ------------------------------------------------------------------------------------------------------ push
    @exact_floats
    def push(self, name: str, array: object, slot: int | None, timeout: float) -> None:
        """Write the caller's entries to a queue or ram, by reference where possible: the work of `Emulator.push`, with
        its arguments and errors."""
        channel = self._channel(name)
        slot = None if slot is None else _as_integer(slot, "slot")
        queue = self._netlist.queues[name]
        if isinstance(array, Referenced) and not slot and self._push_by_reference(channel, queue, array):
            return
        values = self._host.host_array(queue, array)
        if isinstance(channel, Ram):
            self._push_ram(channel, queue, values, slot or 0)
            return
        if slot is not None:
            raise HostError(f"push to {name}: slot= is for rams; a queue takes entries in order")
        deadline = _deadline(timeout)
        self._begin_push(channel, len(values), deadline)
        try:
            self._push_fifo(channel, queue, values, deadline, patient=timeout > 0)
        finally:
            self._pushing.pop(name, None)
            self._gate.wake()

    def pushed_elsewhere(self, name: str, count: int, slot: int | None) -> None:
        """Move pointers and mark `count` entries as written, without data, for a queue or ram that another machine
        holds. Raises HostError beyond a ram's slots, HostTimeoutError where a queue has no room."""
        channel = self._channel(name)
        queue = self._netlist.queues[name]
        with self._gate:
            if isinstance(channel, Ram):
                _require_slots(channel, slot or 0, count)
                slots = list(range(slot or 0, (slot or 0) + count))
            elif count > self._count_free_slots(channel):
                raise HostTimeoutError(self._no_room_message(channel, count))
            else:
                slots = [channel.ring.advance_write() for _ in range(count)]
                self._memory.host_moves += count
            channel.view.note(slots, self._host.label(queue))
            for place in slots:
                self._watched.push(name, HOST, place)

    def _push_by_reference(self, channel: Channel, queue: Queue, array: Referenced) -> bool:
        """Let an unused queue or ram refer to an array instead of copying it, and count the push. Returns False, and
        does nothing, where `Lender` does not allow that or the queue was used before."""
        if not self._lender.may_lend(channel, queue, array):
            return False
        with self._gate as gate:
            begun = isinstance(channel, Fifo) and (channel.ring.wr or channel.ring.rd or channel.name in self._pushing)
            if begun or not self._lender.lend(channel, queue, array):
                return False
            for slot in range(len(array)):
                if isinstance(channel, Fifo):
                    channel.ring.advance_write()
                    self._memory.host_moves += 1
                self._watched.push(queue.name, HOST, slot)
            gate.notify()
        return True

    @exact_floats
    def filler(self, name: str, array: object, slot: int | None) -> Callable[[], object]:
        """Return a function that stores the entries where a first push would put them, without moving pointers, for
        memory that is empty by then. Everything that can be wrong with the array is checked before this returns; raises
        HostError."""
        channel = self._channel(name)
        queue = self._netlist.queues[name]
        if isinstance(array, Referenced) and not slot and self._lender.may_lend(channel, queue, array):
            return partial(self._lender.lend, channel, queue, array)
        values = self._host.host_array(queue, array)
        slots = range(slot or 0, (slot or 0) + len(values))
        if slots.stop > channel.view.entries:
            raise HostError(f"{name} has slots 0..{channel.view.entries - 1}, not {slots.stop - 1}")
        return partial(channel.view.write, slots, self._host.tiles(queue, values), self._host.label(queue))

    def _begin_push(self, channel: Fifo, count: int, deadline: float) -> None:
        """Wait until no other thread pushes to the queue, then reserve it for this push, so that its `count` entries
        stay together. Raises HostTimeoutError."""
        name = channel.name
        pushing = self._pushing
        with self._gate as gate:
            while name in pushing:
                if not gate.wait(lambda: not pushing.get(name, False), deadline):
                    raise HostTimeoutError(
                        f"push of {plural(count, 'entry')} to {channel.describe()}: it is full, another thread waits "
                        "to push"
                    )
                gate.wait(lambda: pushing.get(name, True), None)  # it has room: it is through soon, or waits again
            pushing[name] = False

    def _push_fifo(
        self, channel: Fifo, queue: Queue, values: NDArray[np.float32], deadline: float, *, patient: bool
    ) -> None:
        """Write entries after the queue's write pointer, a few at a time as room appears until `deadline`. Unless
        `patient`, all entries must fit at once. Raises HostTimeoutError with the number of entries that were pushed."""
        ring = channel.ring
        count = len(values)
        done = 0
        with self._gate:
            if not patient and count > self._count_free_slots(channel):
                raise HostTimeoutError(self._no_room_message(channel, count))
            slots = [ring.slot(ring.wr + i) for i in range(min(count, ring.entries))]
            channel.view.reserve(max(slots, default=-1) + 1)
        while done < count:
            with self._gate as gate:
                if not self._count_free_slots(channel):
                    self._wait_for_room(gate, channel, count, done, deadline)
                part = values[done : done + min(self._count_free_slots(channel), _entries_of_part(channel))]
            tiles = self._host.tiles(queue, part)
            with self._gate as gate:
                for entry, entry_tiles in zip(part, tiles, strict=True):
                    if ring.occupancy >= ring.entries:  # a restored snapshot, or a program that moved the pointers
                        self._wait_for_room(gate, channel, count, done, deadline)
                    slot = ring.slot(ring.wr)
                    self._write(channel, queue, slot, entry, entry_tiles)
                    ring.advance_write()
                    self._memory.host_moves += 1
                    done += 1
                    self._watched.push(queue.name, HOST, slot)
                gate.notify()

    def _wait_for_room(self, gate: Gate, channel: Fifo, count: int, done: int, deadline: float) -> None:
        """Wait until an entry fits into the queue, and meanwhile mark this push as waiting, so that other pushes can
        fail in time. `done` of its `count` entries are pushed already. Raises HostTimeoutError that carries `done`."""
        self._pushing[channel.name] = True
        gate.notify()
        if not gate.wait(lambda: self._count_free_slots(channel) > 0, deadline):
            pushed = ""
            if done:
                pushed = f", {done} of them were pushed in time"
            action = f"push of {plural(count, 'entry')} to {channel.describe()}"
            raise HostTimeoutError(f"{action}: it is full{pushed}", done)
        self._pushing[channel.name] = False

    def _no_room_message(self, channel: Fifo, count: int) -> str:
        """Return the message for a push without time-out whose `count` entries do not all fit."""
        room = self._count_free_slots(channel)
        reason = "it is full"
        if room:
            reason = f"it has room for {room} now, and a push without a timeout takes all or none"
        return f"push of {plural(count, 'entry')} to {channel.describe()}: {reason}"

    def _count_free_slots(self, channel: Fifo) -> int:
        """Return how many entries may be written now, from the write pointer on. A slot that the running chunk still
        reads is not free."""
        ring = channel.ring
        free = max(0, ring.entries - ring.occupancy)  # a program may have placed the pointers further apart
        return _count_free(channel.view, ring.wr, free, self._gate.in_flight(written_only=False))

    def _push_ram(self, channel: Ram, queue: Queue, values: NDArray[np.float32], first: int) -> None:
        """Write entries into the slots of a ram from `first` on, a few at a time, each once no running chunk uses its
        slot. Raises HostError beyond the ram's slots."""
        count = len(values)
        _require_slots(channel, first, count)
        with self._gate:
            channel.view.reserve(first + count)
        step = _entries_of_part(channel)
        for start in range(0, count, step):
            part = values[start : start + step]
            tiles = self._host.tiles(queue, part)
            slots = range(first + start, first + start + len(part))
            with self._gate as gate:
                self._wait_until_unused(gate, channel.view, slots, written_only=False)
                for slot, entry, entry_tiles in zip(slots, part, tiles, strict=True):
                    self._write(channel, queue, slot, entry, entry_tiles)
                    self._watched.push(queue.name, HOST, slot)
                gate.notify()

    @exact_floats
    def put(self, name: str, array: object, slot: int) -> None:
        """Replace the entry in one slot and leave pointers as they are: the work of `Emulator.put`. Raises
        HostError."""
        channel = self._channel(name)
        slot = _as_integer(slot, "slot")
        if not 0 <= slot < channel.view.entries:
            raise HostError(f"{name} has slots 0..{channel.view.entries - 1}, not {slot}")
        queue = self._netlist.queues[name]
        values = self._host.host_array(queue, array)
        if len(values) != 1:
            raise HostError(f"one entry of {name} is put, not {len(values)}")
        tiles = self._host.tiles(queue, values)
        with self._gate as gate:
            self._wait_until_unused(gate, channel.view, range(slot, slot + 1), written_only=False)
            self._write(channel, queue, slot, values[0], tiles[0])

    @exact_floats
    def put_bytes(self, name: str, slot: int, offset: int, data: bytes) -> None:
        """Replace bytes of an entry as the device would hold it, and store the decoded values: the work of
        `Emulator.put_bytes`, with its errors."""
        channel = self._channel(name)
        queue = self._netlist.queues[name]
        with self._gate as gate:
            self._wait_until_unused(gate, channel.view, range(slot, slot + 1), written_only=True)
            tiles = self._host.with_bytes(queue, self._copy_tiles(channel, [slot])[0], offset, data)
            values = self._host.values(queue, tiles[np.newaxis], "raw").view(np.float32)
            self._write(channel, queue, slot, values[0], tiles)

    def _write(
        self, channel: Channel, queue: Queue, slot: int, entry: NDArray[np.float32], tiles: NDArray[np.float32]
    ) -> None:
        """Store one entry in a slot: its tiles, and for a queue that keeps them the row-major elements `entry`."""
        channel.view.write([slot], tiles[np.newaxis], self._host.label(queue))
        if channel.flat is not None:
            channel.flat[slot] = whole_tiles(entry)

    # ------------------------------------------------------------------------------------------------ pop, read
    @exact_floats
    def pop(self, name: str, count: int, readout: Readout, timeout: float) -> NDArray[Any]:
        """Wait for `count` entries of a queue, free them and return them as the host reads them: the work of
        `Emulator.pop`, with its errors."""
        channel = self._channel(name)
        count = _as_integer(count, "count")
        if isinstance(channel, Ram):
            raise HostError(f"pop of ram {name}: a ram has no entries to pop, use peek")
        _check_readout(readout)
        deadline = _deadline(timeout)
        with self._gate as gate:
            slots = self._wait_for_entries(gate, channel, count, deadline)
            tiles = self._copy_tiles(channel, slots)
            if count:
                channel.ring.advance_read(count)
                self._memory.host_moves += count
                self._watched.pop(name, HOST, count)
                gate.notify()
        return self._host.values(self._netlist.queues[name], tiles, readout)

    @exact_floats
    def peek(self, name: str, count: int | None, readout: Readout, slot: int, timeout: float) -> NDArray[Any]:
        """Wait for entries of a queue or ram and return them as the host reads them: the work of `Emulator.peek`, with
        its errors."""
        channel = self._channel(name)
        slot = _as_integer(slot, "slot")
        if count is not None:
            count = _as_integer(count, "count")
        _check_readout(readout)
        deadline = _deadline(timeout)
        with self._gate as gate:
            if isinstance(channel, Fifo):
                slots = self._wait_for_entries(
                    gate, channel, self._count_readable(channel) if count is None else count, deadline
                )
            else:
                slots = self._wait_for_ram_slots(gate, channel, slot, 1 if count is None else count, deadline)
            tiles = self._copy_tiles(channel, slots)
        return self._host.values(self._netlist.queues[name], tiles, readout)

    @exact_floats
    def image(self, name: str, slot: int) -> list[NDArray[np.uint8]]:
        """Return the bytes of an entry in each buffer, once no running chunk writes it: the work of
        `Emulator.memory_image`, with its errors."""
        channel = self._channel(name)
        slot = _as_integer(slot, "slot")
        if not 0 <= slot < channel.view.entries:
            raise HostError(f"entry {slot} of {name} was never written")
        with self._gate as gate:
            self._wait_until_unused(gate, channel.view, range(slot, slot + 1), written_only=True)
            tiles = self._copy_tiles(channel, [slot])
        return self._host.image(self._netlist.queues[name], tiles[0])

    @exact_floats
    def outputs(self, readout: Readout, queues: Collection[str] | None) -> dict[str, NDArray[Any]]:
        """Return the entries of op-fed queues and rams by name, of all or of `queues`: the work of `Emulator.outputs`.
        Raises HostError for an unknown readout."""
        _check_readout(readout)
        with self._gate as gate:
            return {
                queue.name: self._host.values(queue, self._copy_tiles(channel, slots, missing_is_zero=True), readout)
                for queue, channel, slots in self._channels_with_entries(gate)
                if queues is None or queue.name in queues
            }

    def outputs_in_parts(self, readout: Readout) -> Iterator[OutputParts]:
        """Yield all op-fed queues and rams with entries, each with an iterator that reads a few entries at a time: the
        work of `Emulator.outputs_in_parts`."""
        _check_readout(readout)
        with self._gate as gate:
            filled = self._channels_with_entries(gate)
        for queue, channel, slots in filled:
            t, rows, cols = queue.blocking.element_shape
            dtype = np.dtype(np.uint32 if is_raw(queue.df) else np.float32)
            yield OutputParts(
                queue.name, (len(slots), t, rows, cols), dtype, self._read_parts(queue, channel, slots, readout)
            )

    def _channels_with_entries(self, gate: Gate) -> list[tuple[Queue, Channel, Sequence[int]]]:
        """Return every op-fed queue that holds entries and every op-fed ram, each with its slots in order. Waits until
        no chunk is in flight."""
        gate.wait(lambda: gate.is_runner or not gate.in_flight(written_only=True), None)
        channels: list[tuple[Queue, Channel, Sequence[int]]] = []
        for queue in self._netlist.queues.values():
            if queue.host_fed:
                continue
            channel = self._memory.channels[queue.name]
            if isinstance(channel, Fifo):
                slots: Sequence[int] = channel.window()[: self._count_readable(channel)]
            else:
                slots = range(channel.entries)
            if slots:
                channels.append((queue, channel, slots))
        return channels

    def _read_parts(
        self, queue: Queue, channel: Channel, slots: Sequence[int], readout: Readout
    ) -> Iterator[NDArray[Any]]:
        """Yield the entries in these slots as the host reads them, at most PART_BYTES at a time."""
        step = _entries_of_part(channel)
        for start in range(0, len(slots), step):
            yield self._read_part(queue, channel, slots[start : start + step], readout)

    @exact_floats
    def _read_part(self, queue: Queue, channel: Channel, slots: Sequence[int], readout: Readout) -> NDArray[Any]:
        """Return the entries in these slots as the host reads them; those never written are zero."""
        with self._gate:
            tiles = self._copy_tiles(channel, slots, missing_is_zero=True)
        return self._host.values(queue, tiles, readout)

    def _wait_for_entries(self, gate: Gate, channel: Fifo, count: int, deadline: float) -> list[int]:
        """Wait until a queue has `count` entries to read, and return the slots of the oldest ones. Raises HostError for
        more than it can hold, HostTimeoutError at the deadline."""
        if not 0 <= count <= max(channel.ring.entries, channel.ring.occupancy):
            raise HostError(f"read of {plural(count, 'entry')} from {channel.describe()}: it never holds so many")
        if not gate.wait(lambda: self._count_readable(channel) >= count, deadline):
            available = self._count_readable(channel)
            reason = f"it holds {available}" if available else "it is empty"
            raise HostTimeoutError(f"read of {plural(count, 'entry')} from {channel.describe()}: {reason}")
        ring = channel.ring
        return [ring.slot(ring.rd + i) for i in range(count)]

    def _wait_for_ram_slots(self, gate: Gate, channel: Ram, first: int, count: int, deadline: float) -> range:
        """Wait until `count` slots of a ram from `first` on are written and no running chunk writes them, and return
        them; at the deadline return them anyway. Raises HostError beyond the ram's slots."""
        if first < 0 or count < 0 or first + count > channel.entries:
            raise HostError(f"read of slots {first}..{first + count - 1} of {channel.describe()}")
        slots = range(first, first + count)
        self._wait_until_unused(gate, channel.view, slots, written_only=True)
        gate.wait(lambda: all(channel.view.label(slot) for slot in slots), deadline)
        self._wait_until_unused(gate, channel.view, slots, written_only=True)
        return slots

    def _count_readable(self, channel: Fifo) -> int:
        """Return how many entries may be read now, from the read pointer on. Those that the running chunk has yet to
        write do not count."""
        ring = channel.ring
        return _count_free(channel.view, ring.rd, ring.occupancy, self._gate.in_flight(written_only=True))

    def _copy_tiles(
        self, channel: Channel, slots: Sequence[int], *, missing_is_zero: bool = False
    ) -> NDArray[np.float32]:
        """Return a copy of entries, float32[len(slots), tiles, 1024]. Raises HostError for one that was never
        written."""
        view = channel.view
        copy = np.empty((len(slots), view.tiles, TILE_ELEMENTS), np.float32)
        for position, slot in enumerate(slots):
            if view.label(slot):
                copy[position] = view.entry(slot)
            elif missing_is_zero:
                copy[position] = 0
            else:
                raise HostError(f"entry {slot} of {channel.name} was never written")
        return copy

    def _wait_until_unused(self, gate: Gate, view: EntryView, slots: range, *, written_only: bool) -> None:
        """Wait until the running chunk neither writes nor, unless `written_only`, reads these slots; that is never
        long. On the program's own thread, in a listener, it does not wait."""

        def is_free() -> bool:
            """Return whether no slot is in flight."""
            in_flight = gate.in_flight(written_only=written_only)
            return _count_free(view, slots.start, len(slots), in_flight) == len(slots)

        if not gate.is_runner:
            gate.wait(is_free, None)


def _require_slots(channel: Ram, first: int, count: int) -> None:
    """Raise HostError unless a ram has the `count` slots from `first` on."""
    if first < 0 or first + count > channel.entries:
        raise HostError(f"push of slots {first}..{first + count - 1} to {channel.describe()}")


def _entries_of_part(channel: Channel) -> int:
    """Return how many entries of a queue or ram are converted at a time: at most PART_BYTES of them, but at least
    one."""
    return max(1, min(_PART, PART_BYTES // (channel.view.tiles * TILE_ELEMENTS * 4)))


def _count_free(view: EntryView, first: int, count: int, in_flight: Slices) -> int:
    """Return how many of `count` entries from pointer `first` on come before the first one whose slices are in
    flight."""
    if in_flight:
        for position in range(count):
            if not in_flight.isdisjoint(view.slices((first + position) % view.entries)):
                return position
    return count


def _as_integer(value: object, name: str) -> int:
    """Convert a Python or numpy integer, the argument `name`, to int. Raises HostError for any other object."""
    try:
        return operator.index(value)  # pyright: ignore[reportArgumentType] - that is the question
    except TypeError:
        raise HostError(f"{name} must be an integer, not {value!r}") from None


def _deadline(timeout: float) -> float:
    """Return the monotonic time at which a time-out in seconds, which begins now, ends. Raises HostError for a negative
    one, NaN or no number."""
    if not isinstance(timeout, int | float) or not timeout >= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise HostError(f"timeout must be 0 or more seconds, not {timeout!r}")
    return monotonic() + timeout


def _check_readout(readout: str) -> None:
    """Raise HostError for an unknown readout."""
    if readout not in get_args(Readout):
        raise HostError(f"readout {readout!r} is not one of: raw, host")
