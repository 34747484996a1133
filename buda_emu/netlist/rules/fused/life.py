"""The life of intermediate buffers (NETLIST V138; 11.1 A6, 11.3 C6; OPS 8.3.11)."""

from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.fused_use import FusedUse, Step
from buda_emu.netlist.rules.registry import Findings, fused_check
from buda_emu.netlist.rules.rule import rule

ENDERS = ("matmul", "reduce")


@fused_check(
    rule(
        "V138",
        "F",
        "an intermediate is used outside its life",
        "An intermed is written, read, popped, and only then written again; none is left at the end. Results "
        "of a schedule that ends in a matmul or reduce are gone after it, except the result of that matmul "
        "or reduce and results of mblock [1, 1].",
        "[a: {output: intermed0}, b: {inputs: [intermed0], output: output}]",
        "[a: {output: intermed0}, b: {inputs: [intermed0], pop: [intermed0], output: output}]",
        "OPS 8.3, NETLIST 11.1 A6, 11.3 C6",
    ),
    unless=("V134",),
)
def life(_: Context, use: FusedUse) -> Findings:
    """Written, read, popped, and only then written again. The buffer is the last character of the name."""
    ends = {step.schedule: step.sub.type for step in use.steps if step.last}
    live: dict[str, Step] = {}
    for step in use.steps:
        inputs = dict.fromkeys(step.sub.inputs)
        for name in inputs:
            if name.startswith("intermed"):
                yield from _read(step, name, live.get(name[-1]), ends)
        for name in (*step.sub.pop, *step.sub.pop_last):
            if name.startswith("intermed") and live.pop(name[-1], None) is None and name not in inputs:
                yield step.at(f"pops {name}, which holds nothing", "pop_last")
        if step.sub.output.startswith("intermed"):
            holder = live.get(step.sub.output[-1])
            if holder is not None:
                what = f"writes {step.sub.output}, which still holds the result of {holder.sub.name}"
                yield step.at(what, "output", hint="pop it first")
            live[step.sub.output[-1]] = step
    for step in live.values():
        yield step.at(f"{step.sub.output} is never popped", "output")


def _read(step: Step, name: str, writer: Step | None, ends: dict[int, str]) -> Findings:
    if writer is None:
        yield step.at(f"reads {name}, which holds nothing", "inputs")
    elif writer.sub.output != name:
        yield step.at(f"reads {name}, written as {writer.sub.output}", "inputs", hint="use one name for the buffer")
    elif writer.schedule != step.schedule and ends[writer.schedule] in ENDERS and not _outlives(writer):
        what = f"reads {name}, which {writer.sub.name} wrote in a schedule that ends in a {ends[writer.schedule]}"
        yield step.at(what, "inputs", hint="only matmul, reduce or a result of mblock [1, 1] outlives its schedule")


def _outlives(writer: Step) -> bool:
    return writer.sub.type in ENDERS or writer.sub.mblock == (1, 1)
