"""Figures of an op as the vendor's reports name them (PERF 3), from a modelled epoch."""

from collections.abc import Iterator
from dataclasses import dataclass

from buda_emu.netlist.model import Netlist
from buda_emu.performance.timing.flags import Flag, op_flags
from buda_emu.performance.timing.result import EpochReport, PerfRun


@dataclass(frozen=True, slots=True)
class OpFigures:
    """Figures of one op in one epoch; all its cores are alike. Cycles of the AI clock, utilisation in per cent,
    bandwidths in bytes per nanosecond. `cycles_first` and `cycles_last` run from the first unpack to the last pack of
    that input."""

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
    flags: tuple[Flag, ...] = ()

    @property
    def utilisation_first(self) -> float:
        """Return the utilisation of the math unit during the first input, in per cent."""
        return 100 * self.math / max(self.cycles_first, 1.0)

    @property
    def utilisation_last(self) -> float:
        """Return the utilisation of the math unit during the last modelled input, in per cent."""
        return 100 * self.math / max(self.cycles_last, 1.0)


def op_figures(netlist: Netlist, run: PerfRun, epoch: EpochReport) -> Iterator[OpFigures]:
    """Yield the figures of every op of an epoch, in document order; a bandwidth is None if the epoch has a single
    input, or for an output that is not sent."""
    timing = epoch.timing
    ops = netlist.ops
    pace = timing.cycles_per_input
    output_bytes = epoch.output_bytes
    flags = op_flags(netlist, run, epoch)
    incoming: dict[str, list[float]] = {}
    for edge in epoch.edges:
        if edge.operand >= 0:
            incoming.setdefault(edge.target, []).append(float(edge.core_bytes))
    for op_timing in timing.ops:
        op = ops[op_timing.op]
        total = op_timing.last_end - op_timing.first_start + (timing.inputs - timing.run.inputs) * (pace or 0.0)
        if pace:
            nanoseconds = run.seconds(pace) * 1e9
        else:
            nanoseconds = 0.0
        output = output_bytes.get(op_timing.op, 0)
        yield OpFigures(
            op=op_timing.op,
            type=op.type,
            chip=op.target_device,
            place=tuple(op.grid_loc),
            cores=op.blocking.cells,
            inputs=timing.inputs,
            math=op_timing.cost.math,
            cycles_first=op_timing.first_end - op_timing.first_start,
            cycles_last=op_timing.last_end - op_timing.last_start,
            total_runtime=total,
            cycles_per_input=pace,
            average_utilisation=100 * op_timing.cost.math * timing.inputs / max(total, 1.0),
            input_bandwidth=tuple(
                size / nanoseconds if nanoseconds else None for size in incoming.get(op_timing.op, [])
            ),
            output_bandwidth=output / nanoseconds if nanoseconds and output else None,
            waiting_for_input=op_timing.waiting_for_input / timing.run.inputs,
            waiting_for_room=op_timing.waiting_for_room / timing.run.inputs,
            provenance=op_timing.cost.provenance,
            flags=flags[op_timing.op],
        )
