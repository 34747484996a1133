"""Failures that are certain before programs run, reported at their place in the text as the document's fault.

A check leaves it at a warning, since the reference loads such netlists. Nothing is guessed here: the finding of the
check is there, and the graph that it is about is executed and cannot be planned, or cannot move its entries.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.checker.render import render
from buda_emu.errors import NetlistError, ProgramError, UnsupportedError
from buda_emu.netlist.model import Execute, Netlist, Program
from buda_emu.runtime.graph.plan import build_plan
from buda_emu.runtime.graph.topology import topology

_ROOM = "V208"
_SHAPE = "V179"


def require_runnable(netlist: Netlist, programs: Sequence[Program]) -> None:
    """Raise NetlistError when these programs are bound to fail for a reason that the text alone shows."""
    found = [item for item in netlist.diagnostics if item.rule in (_ROOM, _SHAPE)]
    if not found:
        return
    executed = {
        step.graph for program in programs for step in program.instructions if isinstance(step, Execute)
    }  # every one of them is reached: programs have no branches, and loops run at least once (NETLIST 3.4)
    failures = [*_without_room(netlist, programs, executed, found), *_without_plan(netlist, executed, found)]
    if failures:
        errors = tuple(replace(item, severity="error") for item in dict.fromkeys(failures))
        raise NetlistError(render(errors), errors)


def _without_room(
    netlist: Netlist, programs: Sequence[Program], executed: set[str], found: Sequence[Diagnostic]
) -> Iterator[Diagnostic]:
    owner = {op.name: graph.name for graph in netlist.graphs.values() for op in graph.ops}
    names = {f"queue {queue.name}" for queue in netlist.queues.values() if owner.get(queue.input) in executed}
    names |= {f"program {program.name}" for program in programs}
    yield from (item for item in found if item.rule == _ROOM and item.message.partition(":")[0] in names)


def _without_plan(netlist: Netlist, executed: set[str], found: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    shapes = [item for item in found if item.rule == _SHAPE]
    labels = {queue.name: queue.df for queue in netlist.queues.values()}
    for temporal in netlist.temporal_graphs if shapes else ():
        if not executed.issuperset(temporal.graphs):
            continue
        try:
            build_plan(netlist, topology(netlist, temporal), labels, quantised=True)
        except ProgramError as error:
            names = {f"op {error.op}", f"queue {error.queue}"}
            yield from (item for item in shapes if item.message.partition(":")[0] in names)
        except UnsupportedError:
            continue  # said when it runs, by name
