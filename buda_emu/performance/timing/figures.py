"""Figures of an op as the vendor's reports name them (PERF 3), from a modelled epoch."""

from collections.abc import Iterator
from dataclasses import dataclass

from buda_emu.netlist.model import Netlist
from buda_emu.performance.timing.result import EpochReport, PerfRun


@dataclass(frozen=True, slots=True)
class OpFigures:
    """One op in one epoch; all its cores are alike. Cycles of the AI clock, utilisation in per cent, bandwidths in
    bytes a nanosecond. `cycles_first` and `cycles_last`: first unpack to last pack of that input."""

    op: str
    type: str
    chip: int
    place: tuple[int, ...]
    cores: int
    inputs: int
    math: float  # cycles that the math unit works for one input
    cycles_first: float
    cycles_last: float
    total_runtime: float
    cycles_per_input: float | None
    average_utilisation: float
    input_bandwidth: tuple[float | None, ...]
    output_bandwidth: float | None
    waiting_for_input: float  # cycles of each input
    waiting_for_room: float
    provenance: str

    @property
    def utilisation_first(self) -> float:
        """Of the first input."""
        return 100 * self.math / max(self.cycles_first, 1.0)

    @property
    def utilisation_last(self) -> float:
        """Of the last input."""
        return 100 * self.math / max(self.cycles_last, 1.0)


def op_figures(netlist: Netlist, run: PerfRun, epoch: EpochReport) -> Iterator[OpFigures]:
    """Every op of an epoch, in document order."""
    timing = epoch.timing
    ops = netlist.ops
    pace = timing.cycles_per_input
    output_bytes = epoch.output_bytes
    incoming: dict[str, list[float]] = {}
    for edge in epoch.edges:
        if edge.operand >= 0:
            incoming.setdefault(edge.target, []).append(float(edge.core_bytes))
    for item in timing.ops:
        op = ops[item.op]
        total = item.last_end - item.first_start + (timing.inputs - timing.modelled) * (pace or 0.0)
        nanoseconds = run.seconds(pace) * 1e9 if pace else 0.0
        output = output_bytes.get(item.op, 0)
        yield OpFigures(
            op=item.op,
            type=op.type,
            chip=op.target_device,
            place=tuple(op.grid_loc),
            cores=op.blocking.cells,
            inputs=timing.inputs,
            math=item.cost.math,
            cycles_first=item.first_end - item.first_start,
            cycles_last=item.last_end - item.last_start,
            total_runtime=total,
            cycles_per_input=pace,
            average_utilisation=100 * item.cost.math * timing.inputs / max(total, 1.0),
            input_bandwidth=tuple(size / nanoseconds if nanoseconds else None for size in incoming.get(item.op, [])),
            output_bandwidth=output / nanoseconds if nanoseconds and output else None,
            waiting_for_input=item.waiting_for_input / timing.modelled,
            waiting_for_room=item.waiting_for_room / timing.modelled,
            provenance=item.cost.provenance,
        )
