"""What modelling the programs of a netlist gave: the objects that tables, CSV, JSON, pictures and checks read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from buda_emu.performance.timing.epoch.critical import contention
from buda_emu.performance.timing.epoch.result import INPUT_BUFFERS, EpochTiming
from buda_emu.performance.timing.memory_use import ChannelUse
from buda_emu.performance.timing.transfers.flows import Flow
from buda_emu.performance.timing.transfers.loading import EpochLoad
from buda_emu.performance.timing.transfers.noc import Path
from buda_emu.spec.boards import board
from buda_emu.spec.devices import Device, device

UNHELD: Final = 0.9
"""Share of the time that a link or port works from which on silicon was never looked at."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What an epoch is held back by.

    `kind`: "op", "memory", "link" of a NoC, or port, or between chips, "transfer", "buffers" when nothing is busy
    enough, "latency" of a single input. `caveat`: what of the figure nobody has compared with silicon, "" of nothing.
    """

    kind: str
    name: str
    cycles: float  # that it works for each input
    share: float  # of the time from one input to the next
    sentence: str
    caveat: str = ""


@dataclass(frozen=True, slots=True)
class EpochReport:
    """One epoch of one program. Cycles are of the AI clock."""

    program: str
    graphs: tuple[str, ...]
    graph_chips: tuple[int, ...]  # parallel to graphs
    runs: int
    host_bytes: int  # that the host pushes and pops for one run, beside what is loaded once
    load: EpochLoad  # before anything of a run
    timing: EpochTiming
    bottleneck: Bottleneck
    edges: tuple[Flow, ...]
    paths: tuple[Path, ...]  # parallel to edges

    @property
    def chips(self) -> tuple[int, ...]:
        """Each once."""
        return tuple(dict.fromkeys(self.graph_chips))

    @property
    def cycles(self) -> float:
        """Of one run, with its loading."""
        return self.load.cycles + self.timing.total

    @property
    def load_share(self) -> float:
        """What part of a run is loading."""
        return self.load.cycles / max(self.cycles, 1.0)

    @property
    def output_bytes(self) -> dict[str, int]:
        """What each core of an op writes into queues for one input."""
        return {edge.source: edge.core_bytes for edge in self.edges if edge.operand < 0}

    @property
    def pace(self) -> float:
        """Cycles for each input: from one to the next, or of the only one."""
        return self.timing.pace


@dataclass(frozen=True, slots=True)
class PerfRun:
    """A netlist's programs, modelled once each with `parameters`. `clock` in MHz."""

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

    @property
    def assumed(self) -> str:
        """What is hypothetical, "" where nothing is."""
        return assumptions(self.what_if, self.chip)

    @property
    def l1_capacity(self) -> int:
        """Bytes of a core's L1 that buffers may use."""
        return self.chip.l1_data_bytes

    def programs(self) -> dict[str, float]:
        """Cycles of each program: its epochs one after the other, each loaded every time it runs."""
        return self._by_program(lambda epoch: epoch.runs * (self.setup + epoch.cycles))

    def program_loads(self) -> dict[str, float]:
        """Cycles in which each program loads epochs; part of `programs`."""
        return self._by_program(lambda epoch: epoch.runs * epoch.load.cycles)

    def host_seconds(self) -> dict[str, float]:
        """How long the host link takes, at least, to push what each program reads and to pop what it leaves."""
        return self._by_program(lambda epoch: epoch.runs * epoch.host_bytes / self.host_rate)

    def _by_program(self, figure: Callable[[EpochReport], float]) -> dict[str, float]:
        total: dict[str, float] = {}
        for epoch in self.epochs:
            total[epoch.program] = total.get(epoch.program, 0.0) + figure(epoch)
        return total

    def seconds(self, cycles: float) -> float:
        """Of the AI clock."""
        return cycles / (self.clock * 1e6)


def bottleneck(
    timing: EpochTiming, edges: Sequence[Flow] = (), paths: Sequence[Path] = (), channels: int = 0, assumed: str = ""
) -> Bottleneck:
    """The busiest op, memory channel, link or transfer, whether it explains the pace, who shares it, and what the model
    had to assume. `channels`: DRAM channels of the chip; `assumed`: what is hypothetical."""
    found = _busiest(timing)
    sentence = found.sentence
    shared = contention(timing, edges, paths, found.name, channels) if found.name else None
    if shared is not None:
        sentence += f"; {shared.sentence(timing.pace if found.kind in ('memory', 'link') else None)}"
    if timing.input_buffers != INPUT_BUFFERS:
        note = f"branches that meet again would stall with {INPUT_BUFFERS} parts in each input buffer"
        sentence += f"; {note}, {timing.input_buffers} were assumed"
    caveat = _unheld(timing)
    sentence += f"; {caveat}" if caveat else ""
    return replace(found, caveat=caveat, sentence=f"{sentence} ({hypothetical(assumed)})" if assumed else sentence)


def _unheld(timing: EpochTiming) -> str:
    """What is said of an epoch in which a link or port works nearly all the time."""
    most = max(timing.links, key=lambda item: item.cycles, default=None)
    if most is None or most.cycles <= UNHELD * timing.pace:
        return ""
    often = f"{most.name} works over {100 * UNHELD:.0f} % of the time"
    return f"{often}: this part of the model was not compared with silicon"


def hypothetical(assumed: str) -> str:
    """What is said of figures of a chip that is not built: `hypothetical: dram_gbps 12`."""
    return f"hypothetical: {assumed}"


def assumptions(what_if: Mapping[str, float], chip: Device) -> str:
    """What of a run is not as its chip or board is: speeds, a smaller grid; "" where nothing is."""
    found = [f"{name} {value:g}" for name, value in what_if.items()]
    if chip.grid != (board(chip.board).grid if chip.board else device(chip.name).grid):
        found.append(f"grid {chip.grid[0]}x{chip.grid[1]}")
    return ", ".join(found)


def _busiest(timing: EpochTiming) -> Bottleneck:
    pace = max(timing.pace, 1.0)
    found = timing.busy()
    if not found:
        return Bottleneck(kind="buffers", name="", cycles=0.0, share=0.0, sentence="the epoch has no ops")
    kind, busiest = max(found, key=lambda item: item[1].cycles)
    name = busiest.name
    cycles = busiest.cycles
    share = min(cycles / pace, 1.0)
    what = {"op": f"op {name}", "memory": name, "link": name, "transfer": f"the transfer {name}"}[kind]
    works = f"{what} works {cycles:,.0f} of the {pace:,.0f} cycles of an input"
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


_ENOUGH: Final = 0.9
