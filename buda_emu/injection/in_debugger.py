"""A fault as commands of the debugger: what is to be written where, and when (docs/run/debug.md)."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError
from buda_emu.injection.compare_outputs import rows_of
from buda_emu.injection.fault import Fault
from buda_emu.injection.sites import Sites, name_of
from buda_emu.injection.trace import Node, Spoil
from buda_emu.records import dataclass
from buda_emu.runtime.graph.steps import Push, Run

Host = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Steps:
    """`values`: what the fault makes of a value, [t, rows, columns]; `before`: commands that lead to where it is
    written; `target`: what it is the value of."""

    values: Host
    before: tuple[str, ...]
    target: str

    def commands(self, file: str) -> tuple[str, ...]:
        """All of them."""
        return (*self.before, f"write {self.target} {file}")


def steps(sites: Sites, fault: Fault, spoils: Mapping[int, Spoil]) -> Steps:
    """Of a fault that changes one value for all that read it. Raises HostError for any other."""
    if fault.reader is not None or len(fault.nodes) != 1:
        raise HostError(
            f"fault {fault.number}: the debugger changes one value for all that read it; this fault is of another kind"
        )
    node = sites.trace.nodes[fault.nodes[0]]
    floats = sites.trace.arithmetic.floats(spoils[node.number](node.value))
    if node.step is None:
        blocking = sites.trace.netlist.queues[node.queue].blocking
        return Steps(rows_of(floats, blocking), (), f"{node.queue}[{node.slot}]")
    made = _made(sites, node)
    if made is None or not isinstance(made.step, Run):
        raise HostError(
            f"fault {fault.number}: ops read what {node.queue} is given as it was: the debugger changes it for all"
        )
    op = made.step.op
    return Steps(rows_of(floats, op.blocking), _right_after(op.name, sites.ordinals[made.number]), f"op:{op.name}")


def _made(sites: Sites, node: Node) -> Node | None:
    """The op's result that an entry is a copy of, and nothing else."""
    if not isinstance(node.step, Push):
        return node
    source = sites.trace.nodes[node.inputs[0]]
    alone = node.step.map is None and len(source.readers) == 1
    return source if alone and name_of(source) else None


def _right_after(op: str, times: int) -> tuple[str, ...]:
    """Stops when the op has run so many times before."""
    ignored = (f"ignore 1 {times}",) if times else ()
    return (f"break if absmax(op:{op}) >= 0 or nan(op:{op}) > 0", *ignored, "continue", "delete")
