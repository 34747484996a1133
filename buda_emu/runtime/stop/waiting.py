"""Which ops wait for what when an epoch cannot go on: a deadlock, op by op."""

from collections.abc import Sequence

from buda_emu.errors import ProgramError
from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.stopped import Wait


def waiting(error: ProgramError, netlist: Netlist, graphs: Sequence[str]) -> tuple[Wait, ...]:
    """The ops of the running graphs that a full or empty queue stops, and those after them that get no input.

    Nothing for the other kinds of stop: there no op waits.
    """
    queue = netlist.queues.get(error.queue)
    ops = [op for name in graphs for op in netlist.graphs[name].ops]
    if queue is None or error.kind not in ("full", "empty"):
        return ()
    stuck = {op.name: _own(error.kind, op, queue) for op in ops if _is_at(error.kind, op, queue)}
    names = list(stuck)
    for name in names:  # grows while it is walked: breadth first
        fed = {name, *(item.name for item in netlist.queues.values() if item.input == name and not item.is_ram)}
        for op in ops:
            if op.name not in stuck and not fed.isdisjoint(op.inputs):
                stuck[op.name] = f"the result of {name}"
                names.append(op.name)
    found = netlist.ops
    return tuple(Wait(name, found[name].type, found[name].graph, reason) for name, reason in stuck.items())


def _is_at(kind: str, op: Op, queue: Queue) -> bool:
    """Does the op write the full queue, or read the empty one?"""
    return op.name == queue.input if kind == "full" else queue.name in op.inputs


def _own(kind: str, op: Op, queue: Queue) -> str:
    if kind == "full":
        return f"room in {queue.name}"
    position = list(op.inputs).index(queue.name)
    return f"an entry of {queue.name} (its input {position})"
