"""The result of modelling the programs of a netlist: the objects that tables, CSV, JSON, pictures and checks read,
among them the memory in L1 and DRAM that a netlist takes (LAYOUT 6, PERF 1.1, NETLIST 1.9, 2.2)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from buda_emu.netlist.model import Netlist, Op
from buda_emu.netlist.rules.queues.memory import l1_bytes
from buda_emu.netlist.sizes import buffer_bytes
from buda_emu.performance.timeline.tasks import union_length
from buda_emu.performance.timing.epoch.critical import contention
from buda_emu.performance.timing.epoch.result import INPUT_BUFFERS, EpochTiming
from buda_emu.performance.timing.transfers.flows import Flow
from buda_emu.performance.timing.transfers.loading import EpochLoad
from buda_emu.performance.timing.transfers.noc import Path
from buda_emu.spec.boards import board
from buda_emu.spec.devices import Device, device
from buda_emu.support.checker.text import plural


@dataclass(frozen=True, slots=True)
class ChannelUse:
    """Memory of the queues in one DRAM channel of one chip, in bytes. Memory that several rams share counts once."""

    chip: int
    channel: int
    used: int
    capacity: int

    @property
    def share(self) -> float:
        """Return the used part of the capacity, above 1 if it is exceeded."""
        return self.used / self.capacity


def l1_use(op: Op, netlist: Netlist, chip: Device) -> tuple[int, int]:
    """Return (least bytes that the buffers of one core of an op take, bytes of L1 that a core has for them); rule V164
    compares them."""
    return l1_bytes(op, netlist.arch.alignment), chip.l1_data_bytes


def dram_use(netlist: Netlist, chip: Device) -> tuple[ChannelUse, ...]:
    """Return the use of every DRAM channel that holds queues, by chip and channel. Overlapping buffers count once."""
    ops = netlist.ops
    ranges: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for queue in netlist.queues.values():
        if queue.loc.lower() != "dram":
            continue
        size = buffer_bytes(queue, netlist, ops)
        for buffer in queue.buffers:
            place = queue.target_device, buffer.channel
            ranges.setdefault(place, []).append((buffer.address, buffer.address + size))
    return tuple(
        ChannelUse(device, channel, union_length(ranges[device, channel]), chip.dram_channel_bytes)
        for device, channel in sorted(ranges)
    )


UNCOMPARED_SHARE: Final = 0.9
"""Share of the time that a link or port works from which on silicon was never looked at."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The unit that limits an epoch.

    `kind` is "op", "memory", "link" (of a NoC, a port, or between chips), "transfer", "buffers" if nothing is busy
    enough, or "latency" of a single input. `caveat` names the part of the figure that was not compared with silicon, ""
    if there is none.
    """

    kind: str
    name: str
    cycles: float  # that it works for each input
    share: float  # of the time from one input to the next
    sentence: str
    caveat: str = ""


@dataclass(frozen=True, slots=True)
class EpochReport:
    """The model of one epoch of one program. Cycles are of the AI clock."""

    program: str
    graphs: tuple[str, ...]
    graph_chips: tuple[int, ...]  # parallel to graphs
    runs: int
    host_queues: Mapping[str, int]  # bytes of each queue that the host pushes or pops for one run
    load: EpochLoad  # before anything of a run
    timing: EpochTiming
    bottleneck: Bottleneck
    edges: tuple[Flow, ...]
    paths: tuple[Path, ...]  # parallel to edges
    copies: int = 1  # of each graph on several chips (NETLIST 1.7), each with inputs of its own

    def __repr__(self) -> str:
        graphs = " + ".join(self.graphs)
        return f"<EpochReport of {graphs} in {self.program}: {plural(self.runs, 'run')} of {self.cycles:,.0f} cycles>"

    @property
    def inputs(self) -> int:
        """Return the inputs of all runs on all copies."""
        return self.runs * self.timing.inputs * self.copies

    @property
    def chips(self) -> tuple[int, ...]:
        """Return the chips of the epoch, each once."""
        return tuple(dict.fromkeys(self.graph_chips))

    @property
    def host_bytes(self) -> int:
        """Return the bytes that the host pushes and pops for one run, beside what is loaded once."""
        return sum(self.host_queues.values())

    @property
    def cycles(self) -> float:
        """Return the cycles of one run, with its loading."""
        return self.load.cycles + self.timing.total

    @property
    def load_share(self) -> float:
        """Return the share of a run that is loading."""
        return self.load.cycles / max(self.cycles, 1.0)

    @property
    def output_bytes(self) -> dict[str, int]:
        """Return the bytes that each core of an op writes into a queue for one input, by op; of several queues the
        last. Ops that feed no queue are missing."""
        return {edge.source: edge.core_bytes for edge in self.edges if edge.operand < 0}

    @property
    def pace(self) -> float:
        """Return the cycles from one input to the next, or those of the only input."""
        return self.timing.pace


def host_bytes_by_program(epochs: Iterable[tuple[str, Mapping[str, int]]]) -> dict[str, int]:
    """Return the bytes that the host has to push and pop at least for each program, given the program of each epoch and
    the bytes of its queues in all its runs. The host pushes an entry once, however many epochs of the program read it:
    a queue counts as often as the epoch that takes most of it."""
    by_program: dict[str, dict[str, int]] = {}
    for program, queues in epochs:
        largest_sizes = by_program.setdefault(program, {})
        for queue, size in queues.items():
            largest_sizes[queue] = max(size, largest_sizes.get(queue, 0))
    return {program: sum(queues.values()) for program, queues in by_program.items()}


@dataclass(frozen=True, slots=True)
class PerfRun:
    """The model of a netlist's programs, each run once with `parameters`. `clock` in MHz."""

    netlist: str
    arch: str
    clock: float
    host_rate: float  # bytes in a second
    setup: float  # cycles before each run of an epoch, beside its loading
    version: str
    parameters: Mapping[str, str]
    what_if: Mapping[str, float]
    epochs: tuple[EpochReport, ...]
    dram: tuple[ChannelUse, ...]
    l1: Mapping[str, int]  # op -> the least that its buffers take on each core, in bytes
    chip: Device = field(repr=False)
    padding: Mapping[str, float] = field(default_factory=dict[str, float], repr=False)
    """The share of the elements of each op's result that are padding, as far as the compiler recorded it."""

    def __repr__(self) -> str:
        return f"<PerfRun of {self.netlist} on {self.chip.title}: {plural(len(self.epochs), 'epoch')}>"

    @property
    def assumed(self) -> str:
        """Return the assumptions that make the figures hypothetical, "" if there are none."""
        return assumptions(self.what_if, self.chip)

    @property
    def l1_capacity(self) -> int:
        """Return the bytes of a core's L1 that buffers may use."""
        return self.chip.l1_data_bytes

    def programs(self) -> dict[str, float]:
        """Return the cycles of each program: its epochs one after the other, each loaded every time it runs."""
        return self._by_program(lambda epoch: epoch.runs * (self.setup + epoch.cycles))

    def program_loads(self) -> dict[str, float]:
        """Return the cycles in which each program loads epochs; they are part of `programs`."""
        return self._by_program(lambda epoch: epoch.runs * epoch.load.cycles)

    def host_seconds(self) -> dict[str, float]:
        """Return the seconds that the host link needs at least to push the inputs of each program and to pop its
        outputs."""
        pushed_and_popped = host_bytes_by_program(
            (epoch.program, {queue: epoch.runs * size for queue, size in epoch.host_queues.items()})
            for epoch in self.epochs
        )
        return {program: size / self.host_rate for program, size in pushed_and_popped.items()}

    @property
    def inputs(self) -> int:
        """Return how many inputs all programs together take: as many as the epoch that takes most; 0 without epochs."""
        return max((epoch.inputs for epoch in self.epochs), default=0)

    @property
    def overall_seconds(self) -> float:
        """Return the seconds of the whole run: all epochs, each loaded every time it runs, or the host link where that
        takes longer."""
        return max(self.seconds(sum(self.programs().values())), sum(self.host_seconds().values()))

    @property
    def is_bound_by_host(self) -> bool:
        """Return whether the host link takes longer than all epochs."""
        return sum(self.host_seconds().values()) > self.seconds(sum(self.programs().values()))

    @property
    def overall_inputs_per_second(self) -> float | None:
        """Return the inputs over the seconds of the whole run, None without epochs."""
        if not self.inputs or not self.overall_seconds:
            return None
        return self.inputs / self.overall_seconds

    @property
    def overall_cycles_per_input(self) -> float | None:
        """Return the cycles of the AI clock in the whole run over its inputs, None without epochs."""
        if not self.inputs:
            return None
        return self.overall_seconds * self.clock * 1e6 / self.inputs

    def _by_program(self, figure: Callable[[EpochReport], float]) -> dict[str, float]:
        """Return the sum of a figure over the epochs of each program."""
        total: dict[str, float] = {}
        for epoch in self.epochs:
            total[epoch.program] = total.get(epoch.program, 0.0) + figure(epoch)
        return total

    def seconds(self, cycles: float) -> float:
        """Return how many seconds cycles of the AI clock take."""
        return cycles / (self.clock * 1e6)


def bottleneck(
    timing: EpochTiming, edges: Sequence[Flow] = (), paths: Sequence[Path] = (), channels: int = 0, assumed: str = ""
) -> Bottleneck:
    """Return the unit that limits an epoch (the busiest op, memory channel, link or transfer, or "buffers" or "latency"
    if none explains the pace), with a sentence about it, the streams that share it, and what the model had to assume.
    `channels` is the number of DRAM channels of the chip; `assumed` names hypothetical assumptions, "" for none."""
    busiest = _busiest(timing)
    sentence = busiest.sentence
    if busiest.name:
        shared = contention(timing, edges, paths, busiest.name, channels)
    else:
        shared = None
    if shared is not None:
        sentence += f"; {shared.sentence(timing.pace if busiest.kind in ('memory', 'link') else None)}"
    if timing.run.input_buffers != INPUT_BUFFERS:
        note = f"branches that meet again would stall with {INPUT_BUFFERS} parts in each input buffer"
        sentence += f"; {note}, {timing.run.input_buffers} were assumed"
    caveat = _silicon_caveat(timing)
    sentence += f"; {caveat}" if caveat else ""
    return replace(busiest, caveat=caveat, sentence=f"{sentence} ({hypothetical(assumed)})" if assumed else sentence)


def bottleneck_kind(timing: EpochTiming) -> str:
    """Return the kind of the bottleneck of an epoch (see `Bottleneck`), without the work for its sentence."""
    return _busiest(timing).kind


def _silicon_caveat(timing: EpochTiming) -> str:
    """Return the caveat for an epoch in which a link or port works over 90 % of the time, which was never compared with
    silicon; else ""."""
    busiest = max(timing.shared.links, key=lambda link: link.cycles, default=None)
    if busiest is None or busiest.cycles <= UNCOMPARED_SHARE * timing.pace:
        return ""
    statement = f"{busiest.name} works over {100 * UNCOMPARED_SHARE:.0f} % of the time"
    return f"{statement}: this part of the model was not compared with silicon"


def hypothetical(assumed: str) -> str:
    """Return the note for figures of a chip that does not exist: `hypothetical: dram_gbps 12`. `assumed` names the
    assumptions."""
    return f"hypothetical: {assumed}"


def assumptions(what_if: Mapping[str, float], chip: Device) -> str:
    """Return as text the speeds and the grid of a run that differ from those of its chip or board, "" if none does."""
    changes = [f"{name} {value:g}" for name, value in what_if.items()]
    if chip.grid != (board(chip.board).grid if chip.board else device(chip.name).grid):
        changes.append(f"grid {chip.grid[0]}x{chip.grid[1]}")
    return ", ".join(changes)


def _busiest(timing: EpochTiming) -> Bottleneck:
    """Return the bottleneck of an epoch before `bottleneck` adds streams and assumptions: the busiest unit if it
    explains the pace, else the latency of a single input, or buffers, with the busiest unit's name."""
    pace = max(timing.pace, 1.0)
    units = timing.busy()
    if not units:
        return Bottleneck(kind="buffers", name="", cycles=0.0, share=0.0, sentence="the epoch has no ops")
    kind, busiest = max(units, key=lambda unit: unit[1].cycles)
    name = busiest.name
    cycles = busiest.cycles
    share = min(cycles / pace, 1.0)
    unit_name = {"op": f"op {name}", "memory": name, "link": name, "transfer": f"the transfer {name}"}[kind]
    works = f"{unit_name} works {cycles:,.0f} of the {pace:,.0f} cycles of an input"
    if share >= _ENOUGH:
        return Bottleneck(kind=kind, name=name, cycles=cycles, share=share, sentence=f"{works}: it sets the pace")
    if timing.inputs == 1:
        return Bottleneck(
            kind="latency",
            name=name,
            cycles=cycles,
            share=share,
            sentence=f"a single input goes through the ops one by one; {works}",
        )
    return Bottleneck(
        kind="buffers",
        name=name,
        cycles=cycles,
        share=share,
        sentence=f"nothing is busy enough, ops wait for each other; {works}",
    )


_ENOUGH: Final = 0.9  # share of the pace that a unit works to be called what sets it
