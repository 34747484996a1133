"""The tasks of an epoch on `timeline`: transfers of each input, parts of each op, and the events that they wait for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from itertools import chain
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.netlist.model import Op, TemporalGraph
from buda_emu.performance.timeline import Schedule, Timing
from buda_emu.performance.timeline.tasks import TokenCounts
from buda_emu.performance.timing.epoch.result import (
    HOST_LINK,
    INPUT_BUFFERS,
    Busy,
    Cost,
    EpochTiming,
    ModelledRun,
    OpTiming,
    SharedUnits,
)
from buda_emu.performance.timing.transfers.flows import Flow, channel_name, stream_in_channel
from buda_emu.performance.timing.transfers.noc import Path, loads
from buda_emu.performance.timing.transfers.rates import Rates
from buda_emu.performance.timing.uncertainty import LISTED_LINKS

LEAST_PARTS: Final = 4
MOST_PARTS: Final = 16
"""Parts in which an op works on an input, so that the next op begins before it ends: t slices, cut further if there are
few. More parts make more tasks (docs/timing/perf.md)."""


def parts_of(op: Op) -> int:
    """Return the number of parts into which the model cuts an op's work on one input, so that the next op can begin
    before it ends."""
    return parts_of_blocks(op.blocking.t, op.blocking.mblock)


def parts_of_blocks(t: int, mblock: tuple[int, int]) -> int:
    """Return the number of parts into which the work on `t` slices with such an mblock is cut: of one or more whole
    slices each if t has a suitable divisor, else of blocks of a slice."""
    if t >= LEAST_PARTS:
        parts = next(parts for parts in range(min(t, MOST_PARTS), 0, -1) if t % parts == 0)
        if parts >= LEAST_PARTS:
            return parts
        return MOST_PARTS
    return t * max(1, min(mblock[0] * mblock[1], LEAST_PARTS // t))


def room_of(op: Op, parts: int) -> int:
    """Return how many of an op's `parts` its output buffer holds. It has `buf_size_mb` macroblocks, one for each t
    slice. If a part is many slices, two buffers of one slice count as two parts: one is filled while the other is
    sent."""
    return max(1, min(op.buf_size_mb, INPUT_BUFFERS), op.buf_size_mb * parts // op.blocking.t)


Ints = NDArray[np.int64]
FALLS_BEHIND: Final = 0.004  # by which whatever is busiest may be slower than ops, whose cycles are whole ones


def paces(ends: Sequence[int]) -> tuple[float, float]:
    """Return the cycles from one input to the next over the third and over the last quarter of the inputs, to see
    whether they agree. `ends` has the cycle at which each input is done."""
    quarter = max(len(ends) // 4, 1)
    last = ends[-1]
    middle = ends[-1 - quarter]
    first = ends[max(len(ends) - 1 - 2 * quarter, 0)]
    return (middle - first) / quarter, (last - middle) / quarter


def _ceil_div(a: Ints, b: int) -> Ints:
    """Return each number of `a` divided by b, rounded up."""
    return -(-a // b)


_KEPT_COUNTS: Final = 512
"""Counts of tokens of each kind that are kept, since the epochs that a search models repeat the same few forms."""


@lru_cache(_KEPT_COUNTS)
def _one_each(count: int) -> TokenCounts:
    """Return the counts of `count` tasks, each of which gives one token of one object."""
    return TokenCounts.of(count, [np.ones(count, np.int64)])


@lru_cache(_KEPT_COUNTS)
def _parts_of_writer(count: int) -> TokenCounts:
    """Return what each of `count` writes waits for: one part more of its op than the write before."""
    return TokenCounts.of(count, [np.arange(1, count + 1)])


@lru_cache(_KEPT_COUNTS)
def _room_for_parts(first: int, count: int, buffers: int) -> TokenCounts:
    """Return for each of `count` parts from number `first` on how many parts must have been consumed so that a buffer
    of `buffers` parts has room for it."""
    return TokenCounts.of(count, [_consumed_before(np.arange(first, first + count), buffers)])


def _consumed_before(part: Ints, buffers: int) -> Ints:
    """Return for each number of a part how many parts must have been consumed so that a buffer of `buffers` parts has
    room for it."""
    return np.maximum(part + 1 - buffers, 0)


@lru_cache(_KEPT_COUNTS)
def _steps_between(inputs: int, produced_parts: int, parts: int, buffers: int) -> tuple[TokenCounts, TokenCounts]:
    """Return what the steps of a transfer between two ops wait for (parts done of the producer, parts consumed by the
    consumer), and what each gives (a step that has arrived, freed parts of the producer). An input is `produced_parts`
    of the producer, and `parts` of the consumer, whose buffer holds `buffers` of these."""
    steps = max(produced_parts, parts)
    step = np.arange(inputs * steps)
    entry, index = np.divmod(step, steps)
    needed = entry * produced_parts + _ceil_div((index + 1) * produced_parts, steps)
    room = _consumed_before(entry * parts + index * parts // steps, buffers)
    gives = [np.ones_like(step), np.diff(needed, prepend=0)]
    return TokenCounts.of(len(step), [needed, room]), TokenCounts.of(len(step), gives)


@dataclass(frozen=True, slots=True)
class _FormOfParts:
    """The properties of an op that decide when its parts may begin: its `inputs`, the `parts` of each, how many of
    these are packed `together`, the `room` of its output buffer in parts and the number of its `readers`, the steps in
    which each operand arrives, and how many operands are loaded once."""

    inputs: int
    parts: int
    together: int
    room: int
    readers: int
    steps_of_operands: tuple[int, ...]
    loaded: int


@lru_cache(_KEPT_COUNTS)
def _parts_of_op(form: _FormOfParts) -> tuple[TokenCounts, TokenCounts]:
    """Return what the parts of an op wait for (steps of each operand, what is loaded once, and room freed by each
    reader), and what each gives: a part consumed, and parts done."""
    part = np.arange(form.inputs * form.parts)
    entry, index = np.divmod(part, form.parts)
    waits = [entry * steps + _ceil_div((index + 1) * steps, form.parts) for steps in form.steps_of_operands]
    waits += [np.where(part == 0, 1, 0)] * form.loaded
    together = form.together
    last = part // together * together + together  # parts that are done when this group is
    waits += [np.where(last > form.room, last - max(form.room, together), 0)] * form.readers
    done = np.where((part + 1) % together == 0, together, 0)
    return TokenCounts.of(len(part), waits), TokenCounts.of(len(part), [np.ones_like(part), done])


def step_cycles(edge: Flow, path: Path, travel: float, steps: int, rates: Rates) -> tuple[int, int]:
    """Return the cycles of the first step of a transfer over links and ports, and of each later step; `travel` is the
    cycles of all `steps`. The first step of a DRAM read includes the read latency, each step between two ops that of
    the way. For what is loaded once, all is the first step."""
    if edge.memory == "dram" and edge.operand >= 0:
        latency = rates.read[path.far]
    else:
        latency = 0
    if edge.once:
        return ceil(travel) + latency, 0
    cycles = max(1, ceil(travel / steps))
    if edge.operand >= 0 and edge.memory == "none":
        cycles += rates.start + rates.hop * edge.hops
    return cycles + latency, cycles


class EpochTasks:
    """The schedule of the first inputs of an epoch: made by the constructor, timed by `run`. Then `ends` has the cycle
    at which the last op ends each input."""

    def __init__(
        self,
        ops: Sequence[Op],
        edges: Sequence[tuple[Flow, Path]],
        costs: Mapping[str, Cost],
        rates: Rates,
        inputs: int,
        buffers: int,
    ) -> None:
        self.schedule = Schedule()
        self._ops = ops
        self._least = {op.name: op.input_buf_min_size_tiles for op in ops}
        self._costs = costs
        self._rates = rates
        self._inputs = inputs
        self._buffers = buffers
        self._parts = {op.name: parts_of(op) for op in ops}
        self._units = {op.name: self.schedule.unit(op.name) for op in ops}
        self._done = {op.name: self.schedule.object(f"{op.name}: parts done") for op in ops}
        # what an op waits for, and in how many steps an input of it arrives
        self._arrivals: dict[str, list[tuple[int, int]]] = {op.name: [] for op in ops}
        self._load_objects: dict[str, list[int]] = {op.name: [] for op in ops}  # of what is loaded once
        self._consumed = {op.name: self.schedule.object(f"{op.name}: parts consumed") for op in ops}
        self._freed: dict[str, list[int]] = {op.name: [] for op in ops}  # counted in parts of the producer
        self._memory: dict[str, float] = {}  # cycles of a channel for one input of all its streams
        self._loading: dict[str, float] = {}  # and for all that is loaded once
        self._add_up_channels(edge for edge, _ in edges)
        self._link_cycles = {link: size / rates.over(link) for link, size in loads(edges).items()}
        self._link_cycles_once = {link: size / rates.over(link) for link, size in loads(edges, once=True).items()}
        self._transfers: list[Busy] = []
        self._tasks: dict[str, range] = {}
        self._path_tasks: list[range] = []  # of each edge the tasks that are its way over links and ports
        for edge, path in edges:
            self._add_transfer(edge, path)
        for op in ops:
            self._add_op(op)

    def _add_up_channels(self, edges: Iterable[Flow]) -> None:
        """Add the cycles of each edge to those of the memory channels that it occupies (`_memory`; for what is loaded
        once, `_loading`)."""
        for edge in edges:
            busy = self._loading if edge.once else self._memory
            for channel, cycles in self._channel_cycles(edge):
                busy[channel] = busy.get(channel, 0.0) + cycles

    # ------------------------------------------------------------------------------------------------- transfers
    def _add_transfer(self, edge: Flow, path: Path) -> None:
        """Add the tasks of an edge, by its kind: into a queue, between ops, loaded once, or from a queue."""
        if edge.operand < 0:
            self._add_write(edge, path)
        elif edge.source in self._parts:
            self._add_transfer_between_ops(edge, path)
        elif edge.once:
            self._add_load(edge, path)
        else:
            self._add_read(edge, path)

    def _travel_cycles(self, edge: Flow, path: Path) -> float:
        """Return the cycles of one input on its way into or out of a core: at the core's own rate, or at that of the
        fullest link or port on the way, if that is slower."""
        rate = min(self._rates.gather if path.gathers else self._rates.stream, self._rates.of_packets(edge.packet))
        if edge.crosses:
            rate = min(rate, self._rates.ethernet)
        if edge.once:
            link_cycles = self._link_cycles_once
        else:
            link_cycles = self._link_cycles
        return max(edge.core_bytes / rate, max((link_cycles[link] for link, _ in path.loads()), default=0.0))

    def _add_travel(self, edge: Flow, path: Path) -> float:
        """Return the cycles of one input of an edge on its way into or out of a core, and list the edge with them among
        the transfers of the result."""
        cycles = self._travel_cycles(edge, path)
        self._transfers.append(Busy(edge.name, cycles))
        return cycles

    def _channel_cycles(self, edge: Flow) -> list[tuple[str, float]]:
        """Return (channel, cycles for one input) of each memory channel that an edge occupies; [] for one between
        cores. All of the host's channels are one link."""
        if edge.memory == "none":
            return []
        if edge.memory == "host":
            return [(HOST_LINK, sum(edge.memory_bytes.values()) / self._rates.host)]
        return [(channel_name(n, edge.chip), size / self._rates.dram) for n, size in edge.memory_bytes.items()]

    def _add_streams(self, edge: Flow, path: Path) -> list[tuple[str, float]]:
        """Return (unit, cycles for one input) for a transfer between a core and a queue: of the transfer at the core,
        which is also listed among the transfers of the result, and of its stream in every channel."""
        cycles = self._add_travel(edge, path)
        channels = [
            (stream_in_channel(channel, edge.name), self._memory[channel]) for channel, _ in self._channel_cycles(edge)
        ]
        return [(edge.name, cycles), *channels]

    def _add_read(self, edge: Flow, path: Path) -> None:
        """Add the transfer of a queue into an op: out of every channel, and into the core."""
        op = edge.target
        parts = self._parts[op]
        begin = len(self.schedule)
        for name, busy in self._add_streams(edge, path):
            unit = self.schedule.unit(name)
            arrived = self.schedule.object(f"{name} in {op}")
            first_cycles, later_cycles = step_cycles(edge, path, busy, parts, self._rates)
            for first, count, cycles in ((0, 1, first_cycles), (1, self._inputs * parts - 1, later_cycles)):
                room = [self._consumed[op]], _room_for_parts(first, count, self._buffers_of_operand(edge))
                self.schedule.tasks(unit, cycles, room, ([arrived], _one_each(count)))
            self._arrivals[op].append((arrived, parts))
        self._path_tasks.append(range(begin, begin + self._inputs * parts))

    def _add_load(self, edge: Flow, path: Path) -> None:
        """Add the transfer of an operand that is loaded before the first input: out of every channel, and into the
        core."""
        steps = [
            (stream_in_channel(channel, edge.name), self._loading[channel]) for channel, _ in self._channel_cycles(edge)
        ]
        for unit, cycles in [*steps, (edge.name, self._travel_cycles(edge, path))]:
            loaded = self.schedule.object(f"{edge.source} loaded")
            lasts, _ = step_cycles(edge, path, cycles, 1, self._rates)
            self.schedule.task(self.schedule.unit(unit), lasts, (), [(loaded, 1)])
            self._load_objects[edge.target].append(loaded)
        self._path_tasks.append(range(len(self.schedule) - 1, len(self.schedule)))

    def _add_transfer_between_ops(self, edge: Flow, path: Path) -> None:
        """Add the transfer between two ops, in as many steps as the op with more parts has."""
        producer = edge.source
        consumer = edge.target
        produced_parts = self._parts[producer]
        parts = self._parts[consumer]
        steps = max(produced_parts, parts)
        cycles = self._add_travel(edge, path)
        unit = self.schedule.unit(f"{producer} > {consumer}")
        arrived = self.schedule.object(f"{producer} in {consumer}")
        freed = self.schedule.object(f"room of {producer} for {consumer}")
        _, duration = step_cycles(edge, path, cycles, steps, self._rates)
        waits, gives = _steps_between(self._inputs, produced_parts, parts, self._buffers_of_operand(edge))
        waited = [self._done[producer], self._consumed[consumer]]
        self._path_tasks.append(self.schedule.tasks(unit, duration, (waited, waits), ([arrived, freed], gives)))
        self._arrivals[consumer].append((arrived, steps))
        self._freed[producer].append(freed)

    def _add_write(self, edge: Flow, path: Path) -> None:
        """Add the transfer of an op into a queue: out of the core, and into every channel."""
        op = edge.source
        begin = len(self.schedule)
        count = self._inputs * self._parts[op]
        for name, busy in self._add_streams(edge, path):
            unit = self.schedule.unit(name)
            freed = self.schedule.object(f"room of {name}")
            _, duration = step_cycles(edge, path, busy, self._parts[op], self._rates)
            waits = [self._done[op]], _parts_of_writer(count)
            self.schedule.tasks(unit, duration, waits, ([freed], _one_each(count)))
            self._freed[op].append(freed)
        self._path_tasks.append(range(begin, begin + count))

    def _buffers_of_operand(self, edge: Flow) -> int:
        """Return for how many parts the consumer's buffer of this edge has room: two, or more if a deadlock needs it or
        `input_buf_min_size_tiles` makes the buffer larger."""
        least = self._least[edge.target]
        tiles = edge.core_bytes / max(edge.packet, 1)
        if edge.operand < len(least):
            least_tiles = least[edge.operand]
        else:
            least_tiles = 0
        return max(self._buffers, int(least_tiles * self._parts[edge.target] / max(tiles, 1.0)))

    # ------------------------------------------------------------------------------------------------------- ops
    def _add_op(self, op: Op) -> None:
        """Add the parts of an op as tasks: they wait for their operands and for room in the output buffer."""
        parts = self._parts[op.name]
        unit = self._units[op.name]
        room = room_of(op, parts)
        part_cycles = max(1, round(self._costs[op.name].cycles / parts))
        if parts >= op.blocking.t:
            slices = op.blocking.t
        else:
            slices = parts
        together = parts // slices if op.has("rows by columns") else 1  # a product is packed when its sum is complete
        arrivals = self._arrivals[op.name]
        loaded = self._load_objects[op.name]
        freed = self._freed[op.name]
        waits, gives = _parts_of_op(
            _FormOfParts(
                inputs=self._inputs,
                parts=parts,
                together=together,
                room=room,
                readers=len(freed),
                steps_of_operands=tuple([steps for _, steps in arrivals]),
                loaded=len(loaded),
            )
        )
        waited = [*(arrived for arrived, _ in arrivals), *loaded, *freed]
        signals = [self._consumed[op.name], self._done[op.name]], gives
        self._tasks[op.name] = self.schedule.tasks(unit, part_cycles, (waited, waits), signals)

    # --------------------------------------------------------------------------------------------------- results
    def run(self) -> None:
        """Compute the times of all tasks, and `ends`. Raises ProgramError if buffers are so small that tasks wait for
        ever."""
        self.timing = self.schedule.run()
        ends = np.zeros(self._inputs, np.int64)
        for op, tasks in self._tasks.items():
            op_ends = self.timing.end[tasks.start : tasks.stop].reshape(self._inputs, self._parts[op])
            ends = np.maximum(ends, op_ends[:, -1])
        self.ends: list[int] = ends.tolist()  # when the last op is done with each input

    def busiest(self) -> float:
        """Return the cycles for one input of the busiest channel, transfer or link. In the long run no input takes
        less, although buffers may hide that at first."""
        transfers = [busy.cycles for busy in self._transfers]
        return max([*self._memory.values(), *transfers, *self._link_cycles.values()], default=0.0)

    def result(self, temporal: TemporalGraph, count: int, again: Callable[[int], EpochTiming]) -> EpochTiming:
        """Return the figures of the whole epoch with `count` inputs, those beyond the modelled ones at the pace of the
        last quarter. `again` returns the same with another number of inputs modelled. Call `run` first."""
        timing = self.timing
        ends = self.ends
        pace = None
        if count > 1:
            if self._inputs < count:
                pace = max(paces(ends)[1], self.busiest() * (1 - FALLS_BEHIND))
            else:
                pace = (ends[-1] - ends[0]) / (count - 1)
        beyond = (count - self._inputs) * (pace or 0.0)
        waited = timing.waiting_times()
        return EpochTiming(
            graphs=temporal.graphs,
            inputs=count,
            cycles_per_input=pace,
            first_input=ends[0],
            last_pack=ends[-1] + beyond,
            total=timing.makespan + beyond,
            ops=tuple(self._op_timing(op, timing, waited) for op in self._ops),
            shared=SharedUnits(
                memory=tuple(Busy(name, cycles) for name, cycles in self._memory.items()),
                transfers=tuple(self._transfers),
                links=self._busiest_links(),
            ),
            run=self._modelled_run(),
            again=again,
        )

    def _modelled_run(self) -> ModelledRun:
        """Return the modelled inputs as tasks with their times, and where their steady state begins."""
        ends = self.ends
        timing = self.timing
        if len(ends) > 1:
            steady_from = ends[-1 - max(len(ends) // 4, 1)]
        else:
            steady_from = 0
        if len(timing.end):
            last_task = int(timing.end.argmax())
        else:
            last_task = -1
        return ModelledRun(
            inputs=self._inputs,
            input_buffers=self._buffers,
            last_task=last_task,
            steady_from=steady_from,
            rooms=(*self._consumed.values(), *chain.from_iterable(self._freed.values())),
            timing=timing,
            schedule=self.schedule,
            ways=tuple(self._path_tasks),
        )

    def _busiest_links(self) -> tuple[Busy, ...]:
        """Return the links and ports that work longest for one input, busiest first, at most LISTED_LINKS of them."""
        # The names of links decide between equal cycles. Only those of the busiest are made, since that takes long.
        least = min(nlargest(LISTED_LINKS, self._link_cycles.values()), default=0.0)
        busiest = [(link, cycles) for link, cycles in self._link_cycles.items() if cycles >= least]
        order = sorted(busiest, key=lambda entry: (-entry[1], str(entry[0])))
        return tuple(Busy(str(link), cycles) for link, cycles in order[:LISTED_LINKS])

    def _op_timing(self, op: Op, timing: Timing, waited: Ints) -> OpTiming:
        """Return the times of one op. `waited` has for each task the time for which it waited for objects."""
        tasks = self._tasks[op.name]
        parts = self._parts[op.name]
        span = slice(tasks.start, tasks.stop)
        start = timing.start[span]
        end = timing.end[span]
        held = timing.held_by[span][1:]
        active = int((end - start).sum())
        gaps = waited[span][1:]
        for_room = np.isin(held, self._freed[op.name])
        return OpTiming(
            op=op.name,
            cost=self._costs[op.name].with_cycles(active / self._inputs),
            parts=parts,
            first_start=int(start[0]),
            first_end=int(end[parts - 1]),
            last_start=int(start[-parts]),
            last_end=int(end[-1]),
            active=active,
            waiting_for_input=int(gaps[~for_room].sum()),
            waiting_for_room=int(gaps[for_room].sum()),
        )
