"""Why a program stopped: everything around a ProgramError."""

from collections.abc import Mapping

from buda_emu.device.channel import Fifo, Ram
from buda_emu.errors import ProgramError
from buda_emu.netlist.model import Execute, Netlist, Op
from buda_emu.program.instruction_text import instruction_text
from buda_emu.program.place import Place
from buda_emu.runtime.machine.journal import HOST, SETTINGS, Journal, Traffic
from buda_emu.runtime.stop.causes import Scene, likely_cause
from buda_emu.runtime.stop.waiting import waiting
from buda_emu.stopped import OpAtFault, QueueState, Stopped, Transfer


def stopped(
    error: ProgramError, place: Place, netlist: Netlist, channels: Mapping[str, Fifo | Ram], journal: Journal
) -> Stopped:
    """Everything around an error that ended a program at `place`."""
    graphs = _graphs(netlist, place)
    channel = channels.get(error.queue)
    mark = place.instruction.at()
    return Stopped(
        kind=error.kind,
        problem=error.problem,
        file=netlist.path,
        program=place.program,
        instruction=place.index,
        line=mark.line,
        column=mark.column,
        text=instruction_text(place.instruction, error.queue),
        loops=place.rounds,
        variables=place.variables,
        graphs=graphs,
        ops=_ops(error, netlist, graphs),
        input=error.input,
        waiting=waiting(error, netlist, graphs),
        queue=_state(channel, netlist, journal) if channel is not None else None,
        cause=likely_cause(error, Scene(netlist, place, graphs, channel, journal)),
    )


def _graphs(netlist: Netlist, place: Place) -> tuple[str, ...]:
    instruction = place.instruction
    if not isinstance(instruction, Execute):
        return ()
    found = (item.graphs for item in netlist.temporal_graphs if instruction.graph in item.graphs)
    return next(found, (instruction.graph,))


def _ops(error: ProgramError, netlist: Netlist, graphs: tuple[str, ...]) -> tuple[OpAtFault, ...]:
    """The op at fault, else those of the running graphs that read or write the queue at fault."""
    return tuple(OpAtFault(op.name, op.type, op.graph, op.at().line) for op in _found_ops(error, netlist, graphs))


def _found_ops(error: ProgramError, netlist: Netlist, graphs: tuple[str, ...]) -> list[Op]:
    ops = netlist.ops
    if error.op in ops:
        return [ops[error.op]]
    queue = netlist.queues.get(error.queue)
    if queue is None or error.kind not in ("full", "empty", "unwritten"):
        return []
    if error.kind == "full":
        return [ops[queue.input]] if queue.input in ops else []
    return [op for name in graphs for op in netlist.graphs[name].ops if queue.name in op.inputs]


def _state(channel: Fifo | Ram, netlist: Netlist, journal: Journal) -> QueueState:
    entry = journal.of(channel.name)
    pushed, popped = _transfer(entry.pushed, netlist), _transfer(entry.popped, netlist)
    entries = channel.view.entries
    written = channel.view.written
    if isinstance(channel, Ram):
        return QueueState(channel.name, "ram", entries, channel.rd, channel.wr, None, None, written, pushed, popped)
    ring = channel.ring
    return QueueState(
        channel.name, "queue", entries, ring.rd, ring.wr, ring.local, ring.occupancy, written, pushed, popped
    )


def _transfer(traffic: Traffic | None, netlist: Netlist) -> Transfer | None:
    if traffic is None:
        return None
    by, place = traffic.by, traffic.place
    if by not in (HOST, SETTINGS):
        by = f"op {by} of graph {netlist.ops[by].graph}"
    slot = traffic.slot if traffic.slot >= 0 else None
    if place is None:
        return Transfer(by, slot, traffic.total, "", None, None, ())
    return Transfer(by, slot, traffic.total, place.program, place.index, place.line, place.rounds)
