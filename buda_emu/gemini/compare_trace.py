"""A timeline beside a reference trace of the same schedule."""

from dataclasses import dataclass

from buda_emu.errors import ScheduleError
from buda_emu.gemini.model import IR
from buda_emu.gemini.time.assembler import read_assembler
from buda_emu.gemini.time.assembler_schedule import COMPUTE
from buda_emu.gemini.time.schedule import simulate
from buda_emu.gemini.time.timing import Span, Timeline


@dataclass(frozen=True, slots=True)
class WorkloadDifference:
    """Start and end of a workload here and in the trace."""

    workload_id: int
    layer: str
    start: int
    end: int
    trace_start: int
    trace_end: int


@dataclass(frozen=True, slots=True)
class TraceDifferences:
    """`instructions` of the trace, and how many start when it says: `exact_starts` with the trace's own
    durations in our
    queues, `equal_durations` of the predicted ones but for ct_* (both None without an assembler file)."""

    total: int
    trace_total: int
    instructions: int
    exact_starts: int | None
    equal_durations: int | None
    compared_durations: int | None
    workloads: tuple[WorkloadDifference, ...]

    @property
    def share(self) -> float:
        """By which the total is longer (below 0: shorter) than the trace's."""
        return self.total / max(self.trace_total, 1) - 1


def trace_differences(ir: IR, timeline: Timeline, asm: str | None, trace: str) -> TraceDifferences:
    """Compare. Raises ScheduleError for a trace that cannot be read or is of another assembler file."""
    lines = read_assembler(trace)
    spans = [Span(*item.span) for item in lines if item.span is not None]
    if len(spans) != len(lines):
        raise ScheduleError(f"{trace}: instructions without a time: this is not a trace")
    exact = equal = compared = None
    if asm is not None:
        ours = simulate(ir, asm=asm, durations=trace).instructions
        exact = sum(a.start == b.start for a, b in zip(ours, spans, strict=True))
        pairs = [(a, b) for item, a, b in zip(lines, timeline.instructions, spans, strict=True) if item.prefix != "ct"]
        compared = len(pairs)
        equal = sum(a.end - a.start == b.end - b.start for a, b in pairs)
    works: dict[int, Span] = {}
    for item, span in zip(lines, spans, strict=True):
        if item.name in COMPUTE:
            before = works.get(item.wkl, span)
            works[item.wkl] = Span(min(before.start, span.start), max(before.end, span.end))
    rows: list[WorkloadDifference] = []
    for work in ir.workloads():
        own, other = timeline.workloads.get((work.core, work.workload_id)), works.get(work.workload_id)
        if own is not None and other is not None:
            rows.append(WorkloadDifference(work.workload_id, work.layer_name, *own, *other))
    total = max((span.end for span in spans), default=0)
    return TraceDifferences(timeline.total, total, len(lines), exact, equal, compared, tuple(rows))
