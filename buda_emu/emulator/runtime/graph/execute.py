"""Runs a planned temporal graph on data: chunks of inputs through the steps, results into queues at a chunk's end."""

from collections.abc import Mapping, Sequence
from heapq import nlargest
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.tiles.tile_memory import AS_IS, gather_tiles
from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.memory.host import size_text
from buda_emu.emulator.memory.store import EntryView
from buda_emu.emulator.ops.base import Parallel
from buda_emu.emulator.ops.operands import convert, relu_in_place, run_onto, run_relu
from buda_emu.emulator.options import MORE_MEMORY
from buda_emu.emulator.runtime.graph.chunk import TILE_BYTES, ChunkRun, Context, Late, Tensor
from buda_emu.emulator.runtime.graph.plan import build_plan
from buda_emu.emulator.runtime.graph.schedule import Chunk, HostEnds, Scheduler, host_ends
from buda_emu.emulator.runtime.graph.steps import Convert, Plan, Push, Read, Run, Topology, topology
from buda_emu.emulator.runtime.machine.gate import Gate, Part
from buda_emu.emulator.runtime.machine.listeners import SETTINGS
from buda_emu.emulator.runtime.machine.memory import Memory
from buda_emu.netlist.for_each import ForEach
from buda_emu.netlist.model import Netlist, TemporalGraph
from buda_emu.support.errors import ProgramError

if TYPE_CHECKING:
    from buda_emu.arithmetic.tensix.registers import Core


class PlanCache:
    """Topologies and plans of the temporal graphs of one netlist that have been computed so far."""

    def __init__(self, _netlist: Netlist) -> None:
        self._topologies: dict[int, Topology] = {}  # by the number of the temporal graph
        self._ends: dict[int, HostEnds] = {}
        # By temporal graph and precision: for each set of labels that its sources had so far, which are few.
        self._plans: dict[tuple[object, ...], list[tuple[Mapping[str, str], Plan]]] = {}

    def topology(self, netlist: Netlist, temporal: TemporalGraph) -> Topology:
        """Return the topology of a temporal graph, computed at the first call."""
        result = self._topologies.get(temporal.id)
        if result is None:
            result = self._topologies[temporal.id] = topology(netlist, temporal)
        return result

    def host_ends(self, netlist: Netlist, temporal: TemporalGraph) -> HostEnds:
        """Return the queues of a temporal graph that only the host fills or empties, computed at the first call."""
        ends = self._ends.get(temporal.id)
        if ends is None:
            ends = self._ends[temporal.id] = host_ends(netlist, self.topology(netlist, temporal))
        return ends

    def plan(
        self, netlist: Netlist, temporal: TemporalGraph, labels: Mapping[str, str], quantised: bool, core: "Core | None"
    ) -> Plan:
        """Return the plan of a temporal graph for these labels (by source queue the format of its entries), made by
        `build_plan` at the first call. `quantised`: precision "format"; `core`: precision "device". Raises as
        `build_plan`."""
        plans = self._plans.setdefault((temporal.id, quantised, core), [])
        for plan_labels, plan in plans:
            if plan_labels == labels:
                return plan
        plan = build_plan(netlist, self.topology(netlist, temporal), labels, quantised, core)
        plans.append((dict(labels), plan))
        return plan

    def forget_operands(self) -> None:
        """Release the prepared operands that ops have kept with their plans; an op that needs them again computes them
        again."""
        for plans in list(self._plans.values()):
            for _, plan in list(plans):
                for step in plan.steps:
                    if isinstance(step, Run):
                        step.call.memo.clear()


PLAN_CACHES: Final = ForEach(PlanCache)


_SLACK = 2  # a tensor may lie in memory twice as large as itself (memory/memory_pool.py)
_CHUNK_BYTES = 64 << 20  # intermediates of one chunk: more inputs at once cost fresh memory, and save nothing
_DEVICE_CHUNK_BYTES = 256 << 20  # counted as floats; bits take a quarter to a half of them, and each op takes longer


class Executor:
    """The planner and runner of temporal graphs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._planned = PLAN_CACHES.of(context.netlist)
        self._widest_tiles = 0
        self._scheduler: Scheduler | None = None  # of the epoch that ran last

    def free(self) -> None:
        """Release the prepared operands that ops have kept with the plans of this netlist."""
        self._planned.forget_operands()

    @property
    def widest_cut(self) -> int:
        """Bytes of tensors of one input that are alive at once, entries read among them, in the widest plan so far."""
        return self._widest_tiles * TILE_BYTES

    def undo(self) -> None:
        """Move the queue pointers back over those inputs of the epoch that ran last which were begun and not
        finished."""
        if self._scheduler is not None:
            self._scheduler.undo()

    def run(self, temporal: TemporalGraph, popping: Sequence[Fifo]) -> None:
        """Run all inputs of one epoch (NETLIST 4.3 step 4), and report it to listeners and stepper; `popping` are the
        queues whose entries its settings pop. Raises ProgramError, which leaves the pointers where they failed until
        `undo`; any other exception moves them back."""
        context = self._context
        topo = self._planned.topology(context.netlist, temporal)
        for listener in context.watched.listeners:
            listener.epoch_start(topo.graphs, topo.input_count)
        if context.watched.stepper is not None:
            context.watched.stepper.epoch(topo.graphs, topo.input_count)
        run = context.gate.run
        gate = context.gate
        ends = None
        if run.wait:
            ends = self._planned.host_ends(context.netlist, temporal)
        self._scheduler = scheduler = Scheduler(context.memory, topo, popping, ends)
        run.epoch(topo.input_count)
        gate.epoch(scheduler)
        try:
            if context.part is None:
                self._run_inputs(temporal, topo, scheduler)
            else:
                self._run_inputs_of_part(temporal, topo, scheduler, context.part)
        except ProgramError:  # whoever runs the program looks at the pointers before `undo`
            raise
        except BaseException:
            scheduler.undo()
            raise
        finally:
            gate.epoch(None)
        for channel in popping:
            if channel.global_rdptr_autoinc:
                context.watched.pop(channel.name, SETTINGS, channel.global_rdptr_autoinc * topo.input_count)
        for graph in topo.graphs:
            context.watched.journal.executed[graph] = context.watched.journal.executed.get(graph, 0) + 1
        for listener in context.watched.listeners:
            listener.epoch_end(topo.graphs)

    def _run_inputs_of_part(self, temporal: TemporalGraph, topo: Topology, scheduler: Scheduler, part: Part) -> None:
        """Run all inputs on one of several machines, then receive and store the values that it put off, even where the
        program stops with a ProgramError."""
        late = self._context.late = Late(part, self._context.memory, topo)
        try:
            self._run_inputs(temporal, topo, scheduler)
        except ProgramError:
            late.take_all()
            raise
        finally:
            self._context.late = None
        late.take_all()

    def _run_inputs(self, temporal: TemporalGraph, topo: Topology, scheduler: Scheduler) -> None:
        """Run chunk after chunk. The gate is open while a chunk computes, so that the host may act; a chunk that fails
        moves the pointers back to its beginning. Raises ProgramError where the tensors of one input exceed the memory
        limit."""
        context = self._context
        run = self._context.gate.run
        gate = self._context.gate
        left = topo.input_count
        while left:
            if run.wait:
                _wait_for_host(scheduler, gate)
            plan = self._plan(temporal, scheduler.peek())
            input_bytes = plan.peak_tiles * TILE_BYTES
            intermediate_bytes = plan.own_tiles * TILE_BYTES
            room = context.memory.left
            if context.memory.lends:
                room -= _lent_bytes(context.memory, plan)
            if intermediate_bytes > room:
                raise ProgramError(
                    f"one input needs {size_text(intermediate_bytes)} of intermediate tensors; queues and rams leave "
                    f"{size_text(max(0, room))} of the memory limit ({MORE_MEMORY})",
                    kind="limit",
                )
            if context.core is None:
                chunk_bytes = _CHUNK_BYTES
            else:
                chunk_bytes = _DEVICE_CHUNK_BYTES
            input_limit = max(1, min(chunk_bytes // max(input_bytes, 1), room // max(_SLACK * intermediate_bytes, 1)))
            if context.inputs_at_once is not None:
                input_limit = min(input_limit, context.inputs_at_once)
            stepper = context.watched.stepper
            if stepper is not None and stepper.most_inputs is not None:
                input_limit = min(input_limit, stepper.most_inputs)
            chunk = scheduler.take(min(left, input_limit))
            context.steps.take(chunk.inputs)
            context.pool.leave(max(0, room - _SLACK * intermediate_bytes * chunk.inputs))
            left -= chunk.inputs
            if context.recorder is not None:
                context.recorder(plan, chunk)
            try:
                if stepper is not None:
                    stepper.inputs(chunk.reads, chunk.writes, chunk.inputs)
                running = _chunk_run(context, plan, chunk)
                gate.open()
                try:
                    running.compute()
                finally:
                    gate.shut()
                scheduler.storing()
                running.store()
                scheduler.done()
                running.tell()
                run.chunk(chunk.inputs)
                if stepper is not None:
                    stepper.inputs_done(chunk.inputs)
                gate.chunk_done()
                run.check()
            except BaseException:
                scheduler.undo()
                raise

    def _plan(self, temporal: TemporalGraph, labels: Mapping[str, str]) -> Plan:
        """Return the plan of a temporal graph for sources with these labels, and note the most tiles that any plan so
        far keeps alive."""
        context = self._context
        plan = self._planned.plan(context.netlist, temporal, labels, context.quantised, context.core)
        self._widest_tiles = max(self._widest_tiles, plan.peak_tiles)
        return plan


def _chunk_run(context: Context, plan: Plan, chunk: Chunk) -> ChunkRun[Any]:
    """Return the object that runs a chunk in the machine's precision; it has not begun."""
    if context.core is None:
        return FormatRun(context, plan, chunk)
    from buda_emu.emulator.runtime.graph.device_run import DeviceRun  # with all that only precision "device" needs

    return DeviceRun(context, plan, chunk)


def run_step(step: Run, inputs: list[Tensor], previous: Tensor | None, out: Tensor, parallel: Parallel) -> None:
    """Run one op with the relu and the output conversion that follow it (OPS 3 steps 6 to 9): `inputs` are float32[w or
    1, tiles, 1024], the result in `out` float32[w, tiles, 1024]. A gradient op adds its result to `previous`."""
    if previous is not None:
        run_onto(step.implementation, step.call, inputs, previous, out, parallel)
        relu_in_place(out, step.relu, parallel)
    elif step.relu is None:
        step.implementation.run(step.call, inputs, out, parallel)
    else:
        run_relu(step.implementation, step.call, inputs, step.relu, out, parallel)
    if step.output_format:
        convert(out, step.output_format, parallel, truncate=True)


def arrange(tiles: TileMap, values: Tensor, out: Tensor, parallel: Parallel) -> None:
    """Write a result, moved by a queue's own TMs, to `out`: float32[w, tiles, 1024] each, with the tiles of an entry in
    `out`."""
    size = values.shape[0] * tiles.index.size
    parallel(gather_tiles, size, out, values, tiles.index, np.float32(tiles.pad_value), AS_IS, (32, 32))


def _upper_halves(values: Tensor) -> NDArray[Any]:
    """Return the upper 16 bits of each value (uint16) where all lower bits are zero, else the values themselves, so
    that less is sent to another machine. Lower bits are zero after rounding to Float16_b, a block format of family b or
    small integers; the result of an op is otherwise not rounded to its `out_df` (OPS 3 step 9)."""
    words = values.view(np.uint32)
    if not np.bitwise_or.reduce(words, axis=None) & 0xFFFF:
        return (words >> 16).astype(np.uint16)
    return values


class FormatRun(ChunkRun[Tensor]):
    """A chunk in precisions "format" and "ideal", whose tensors are float32[w, tiles, 1024]."""

    def __init__(self, context: Context, plan: Plan, chunk: Chunk) -> None:
        super().__init__(context, plan, chunk, context.pool.give_back)
        self._pool = context.pool
        self._parallel = context.parallel
        self._replaced: list[Tensor] = []  # memory that queues had before

    def _writable_entries(self, view: EntryView, slot: int, count: int) -> Tensor:
        """Return `count` consecutive entries of a queue from `slot` on, as float32 tiles that lie in its memory."""
        return view.block(slot, count)

    def _take_memory(self, value: int, entries: int) -> Tensor:
        """Return memory of the pool for `entries` entries of the plan's tensor `value`, with undefined contents."""
        return self._pool.take(entries, self._plan.tiles[value])

    def _to_arrays(self, value: Tensor) -> list[NDArray[Any]]:
        """Return one array to be sent to another machine: the upper 16 bits of each value where the rest is zero, else
        the tensor."""
        return [_upper_halves(value)]

    def _from_arrays(self, value: int, arrays: list[NDArray[Any]]) -> Tensor:  # noqa: ARG002
        """Return as float32 tiles the tensor that another machine has sent as one array: float32, or uint16 with the
        upper halves of the values."""
        (array,) = arrays
        if array.dtype == np.float32:
            return array
        return (array.astype(np.uint32) << 16).view(np.float32)

    def _as_tiles(self, array: Tensor) -> Tensor:
        """Return the tensor itself, which is float32 tiles already."""
        return array

    def _overwrite(self, array: Tensor, tiles: Tensor) -> None:
        """Write values into a tensor, without rounding."""
        array[...] = tiles

    def _read(self, step: Read) -> None:
        """Enter the tiles of the slots read as the tensor of the step and show them to those who watch; for a tilizer
        enter the row-major data that the host pushed. Raises ProgramError where these are missing."""
        channel = self._context.memory.channels[step.queue]
        slots = self._slots_to_read(step)
        if not step.flat:
            tiles = self._values[step.value] = channel.view.read(slots)
            if self._is_watched:
                self._tell_read(step.queue, tiles)
            return
        flat = channel.flat
        if flat is None or any(slot not in flat for slot in slots):
            raise ProgramError(
                f"{channel.describe()}: no row-major host data in the entry that a tilizer reads",
                kind="unwritten",
                queue=step.queue,
            )
        self._values[step.value] = np.stack([flat[slot] for slot in slots])

    def _convert(self, step: Convert) -> None:
        """Enter a copy of the step's source, truncated to the step's format, as its tensor."""
        source = self._values[step.source]
        out = self._allocate_result(step.value, source.shape[0])
        out[...] = source
        convert(out, step.format, self._parallel, truncate=True)

    def _run(self, step: Run, inputs: list[Tensor], out: Tensor) -> None:
        """Run an op that accumulates no gradients, with its relu and output conversion, on `inputs` into `out`."""
        run_step(step, inputs, None, out, self._parallel)

    def _accumulate(self, step: Run, inputs: list[Tensor], *, every_sum: bool) -> Tensor:
        """Run a gradient op: the inputs are added one by one to a sum that starts from the content of the destination
        ram (OPS 6.12, deviation NETLIST 9.2). Returns the sum after each input; only the last where one slot takes all
        sums, nothing else reads them, and `every_sum` is not set."""
        ram, slots, zeroed = self._begin_sums(step)
        every_sum = every_sum or slots.count(slots[0]) != len(slots) or not self._plan.only_pushed[step.value]
        out = self._allocate_result(step.value, len(slots) if every_sum else 1)
        spare = None if every_sum else self._take_memory(step.value, 1)
        latest: dict[int, Tensor] = {}  # float32[1, tiles, 1024] by slot
        for i, slot in enumerate(slots):
            previous = latest.get(slot)
            if previous is None and not zeroed:
                previous = self._sum_before(step, ram, slot)
            target = out[i : i + 1] if every_sum else out
            if spare is not None and i:
                target, spare = spare, out  # the last sum is in `out`, which becomes free after this one
                out = target
            operands = [array[i : i + 1] if len(array) > 1 else array for array in inputs]
            run_step(step, operands, previous, target, self._parallel)
            latest[slot] = target
            zeroed = False
        if spare is not None:
            self._give_back(spare)
        if ram is None:
            self._context.gradients[step.op.name] = out[-1].copy()
        return out

    def _sum_before(self, step: Run, ram: Ram | None, slot: int) -> Tensor | None:
        """Return the stored sum that the first result of the chunk is added to, float32[1, tiles, 1024], None where it
        starts from nothing."""
        if ram is not None:
            if ram.view.label(slot):
                return ram.view.block(slot, 1)
            return None
        stored_sum = self._stored_sum(step)
        if stored_sum is None:
            return None
        return stored_sum[np.newaxis]

    def _push(self, step: Push) -> None:
        """Store a result in the slots of a queue or ram, through the queue's TMs; without a copy where it was computed
        in those slots or its memory can replace that of the queue."""
        values = self._values[step.value]
        moved = None
        channel = self._context.memory.channels[step.queue]
        if step.map is not None:
            values = moved = self._pool.take(values.shape[0], step.map.index.size)
            arrange(step.map, self._values[step.value], moved, self._parallel)
        view = channel.view
        slots = self._chunk.writes[step.queue]
        place = self._direct.get(step.value)
        if place is not None and place[0] == step.queue and values is place[1] and view.holds(slots[0], values):
            view.mark(slots, step.label)
        elif moved is None and self._hand_over(step.value, view, slots):
            view.mark(slots[:1], step.label)
        else:
            if len(values) < len(slots):
                values = np.broadcast_to(values, (len(slots), *values.shape[1:]))
            view.write(slots, values, step.label)
        if moved is not None:
            self._pool.give_back(moved)

    def _hand_over(self, value: int, view: EntryView, slots: list[int]) -> bool:
        """Make a tensor of this chunk the memory of a queue or ram with one entry, which spares a copy. Returns False,
        and does nothing, where that is not possible."""
        tiles = self._values[value]
        if value not in self._owned or len(tiles) != 1 or any(slots):
            return False
        before = view.exchange(tiles)
        if before is None:
            return False
        self._owned.discard(value)
        self._replaced.append(before)
        return True

    def store(self) -> None:
        """Store the results as every chunk does, then give back the memory that handed-over tensors replaced in
        queues."""
        super().store()
        for array in self._replaced:  # till here a value may have been a view of it
            self._give_back(array)


def _lent_bytes(memory: Memory, plan: Plan) -> int:
    """Return the bytes of the two largest tensors of a plan that are read from memory that refers to arrays of the host
    (often files): these take additional memory while an op needs them."""
    sizes = (
        plan.tiles[step.value] * TILE_BYTES
        for step in plan.reads
        if memory.channels[step.queue].view.store.source is not None
    )
    return sum(nlargest(2, sizes))


def _wait_for_host(scheduler: Scheduler, gate: Gate) -> None:
    """Wait until the host has pushed what the next input reads and popped what its results need room for. Raises
    ProgramError when that takes longer than the run's waiting time, RunCancelledError when the run is cancelled."""
    error = scheduler.obstacle()
    if error is None:
        return
    deadline = monotonic() + gate.run.wait
    while error is not None:
        if not gate.wait_for_host(deadline):
            error.within(f"waited {gate.run.wait:g} s for the host")
            raise error
        gate.run.check()
        error = scheduler.obstacle()
