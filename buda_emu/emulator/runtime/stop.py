"""Explains why a program stopped: the surroundings of a ProgramError, ops that wait for each other, and the likely
cause in a sentence or two."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.options import MORE_MEMORY_IN_PYTHON
from buda_emu.emulator.runtime.machine.listeners import HOST, SETTINGS, Journal, Traffic
from buda_emu.netlist.flow.pointers import WRAP
from buda_emu.netlist.model import Execute, Netlist, Op, Queue, QueueSettings
from buda_emu.netlist.program.settings import Place, instruction_text
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import ProgramError
from buda_emu.support.stopped import OpAtFault, QueueState, Stopped, Transfer, Wait


@dataclass(frozen=True, slots=True)
class Scene:
    """The facts from which the cause of a stop is inferred. `graphs`: those that run together; `channel`: the queue or
    ram at fault, None where there is none."""

    netlist: Netlist
    place: Place
    graphs: tuple[str, ...]
    channel: Fifo | Ram | None
    journal: Journal

    @property
    def queue(self) -> Queue | None:
        """The queue at fault, None where there is none."""
        if self.channel is not None:
            return self.netlist.queues.get(self.channel.name)
        return None

    def settings(self, queue: str) -> QueueSettings | None:
        """Return the settings of a queue in the execute at which the program stopped; None where that has none, or is
        no execute."""
        instruction = self.place.instruction
        if not isinstance(instruction, Execute):
            return None
        return next((settings for settings in instruction.queue_settings if settings.queue == queue), None)


def likely_cause(error: ProgramError, scene: Scene) -> str:
    """Return the likely cause of a stop and its remedy in words, "" where nothing can be added to the error's own
    text."""
    wrap = _wrong_wrap(scene)
    if wrap:
        return wrap
    find = _CAUSES.get(error.kind)
    return find(error, scene) if find is not None else ""


def _wrong_wrap(scene: Scene) -> str:
    """Return, as a cause, the checker's finding that a program wraps a pointer of the queue at fault at a number that
    is not the queue's; "" without one. Such a pointer goes wrong after some rounds, whatever else the program does."""
    queue = scene.queue
    if queue is None:
        return ""
    for finding in scene.netlist.diagnostics:
        if finding.rule == WRAP and f"the pointers of {queue.name} run" in finding.message:
            return f"line {finding.line}: {finding.message} ({WRAP}): mend this first"
    return ""


def _full_cause(_error: ProgramError, scene: Scene) -> str:
    """Return why a queue is full: the host pops too little, or a graph frees too little. "" without a queue."""
    queue = scene.queue
    if queue is None:
        return ""
    pushed, popped = _count_traffic(scene, queue)
    readers = _readers(scene.netlist, queue)
    traffic = f"so far {plural(pushed, 'entry')} pushed and {popped} freed"
    if not readers:
        return (
            f"no op reads {queue.name}, so only the host makes room: {traffic}. Pop its entries between runs, run "
            f"fewer rounds, or give it more than {queue.entries} entries"
        )
    graphs = ", ".join(dict.fromkeys(op.graph for op in readers))
    if not popped:
        return (
            f"graph {graphs} reads {queue.name} but nothing frees what it has read: {traffic}. Advance its "
            f"rd_ptr_global after the execute (varinst: [$ptr, incwrap, input_count, {2 * queue.entries}]) or set "
            "global_rdptr_autoinc: 1"
        )
    return (
        f"graph {graphs} frees entries of {queue.name} more slowly than op {queue.input} fills them: {traffic}. "
        "Compare how far rd_ptr_global moves in a round with the input_count of the graph that writes, or run the "
        "reader in the same round"
    )


def _empty_cause(_error: ProgramError, scene: Scene) -> str:
    """Return why a queue is empty: too few pushes of the host, or a graph that did not fill it. "" without a queue."""
    queue = scene.queue
    if queue is None:
        return ""
    pushed, popped = _count_traffic(scene, queue)
    if queue.host_fed:
        if not pushed:
            return f"the host has pushed nothing to {queue.name}: push its entries before the run"
        return (
            f"the host has pushed {plural(pushed, 'entry')} to {queue.name} in all and {popped} are used up: push as "
            "many as the program reads (input_count in each round), or run fewer rounds"
        )
    return _producer_cause(scene, queue, pushed, popped)


def _producer_cause(scene: Scene, queue: Queue, pushed: int, popped: int) -> str:
    """Return why the op that fills a queue did not do so in time, "" for a queue that no op fills. `pushed` and
    `popped`: entries so far."""
    op = scene.netlist.ops.get(queue.input)
    if op is None:
        return ""
    runs = scene.journal.executed.get(op.graph, 0)
    if op.graph in scene.graphs:
        return (
            f"op {op.name} of the same graph fills {queue.name}, one entry for each input, and the entry that is read "
            "is not among those that it has filled so far: let the local read pointer begin where the graph writes"
        )
    if not runs:
        return f"op {op.name} of graph {op.graph} fills {queue.name}, and that graph has not run yet: execute it before"
    return (
        f"graph {op.graph}, whose op {op.name} fills {queue.name}, ran {_times(runs)} and pushed "
        f"{plural(pushed, 'entry')}, of which {popped} are freed: execute it in the same round, or read fewer entries"
    )


def _unwritten_cause(_error: ProgramError, scene: Scene) -> str:
    """Return why the program reads an entry that nobody has written, "" where that is not known."""
    queue = scene.queue
    channel = scene.channel
    if queue is None or channel is None:
        return ""
    pushed, popped = _count_traffic(scene, queue)
    if isinstance(channel, Ram):
        if queue.host_fed:
            return (
                f"the host has written {plural(pushed, 'entry')} of ram {queue.name}: push the slots that are read "
                "(slot= of Emulator.push; by default the first ones)"
            )
        return (
            f"no op has written that slot of ram {queue.name} yet: let the host initialise it, execute graph "
            f"{_graph_of(scene, queue)} before, or compare rd_ptr_global with where wr_ptr_global wrote"
        )
    ring = channel.ring
    ahead = (ring.local - ring.rd) % ring.limit
    local = ""
    if ahead:
        local = f"; rd_ptr_local {ring.local} is {ahead} ahead of rd_ptr_global {ring.rd}"
    if queue.host_fed:
        return f"the host has pushed {plural(pushed, 'entry')} to {queue.name} and the epoch reads beyond them{local}"
    text = _producer_cause(scene, queue, pushed, popped)
    return f"{text}{local}" if text else ""


def _pointer_cause(_error: ProgramError, scene: Scene) -> str:
    """Return the remedy for a pointer outside of its range: a wrap at the queue's own number. "" without a queue."""
    queue = scene.queue
    if queue is None:
        return ""
    settings = scene.settings(queue.name)
    if settings is not None:
        pointers = (settings.rd_ptr_global, settings.wr_ptr_global, settings.rd_ptr_local)
    else:
        pointers = ()
    variable = next((text for text in pointers if "$" in text), "$ptr")
    wrap = queue.entries if queue.is_ram else 2 * queue.entries
    kind = "queue: its pointers count"
    if queue.is_ram:
        kind = "ram: its pointers count slots"
    return (
        f"{queue.name} is a {kind} 0..{wrap - 1}. Let the pointer wrap there: varinst: [{variable}, incwrap, "
        f"input_count, {wrap}]"
    )


def _settings_cause(error: ProgramError, scene: Scene) -> str:
    """Return the remedy for queue settings that are not possible, "" for other problems than the common ones."""
    queue = scene.queue
    if "input_count" in error.problem and queue is not None:
        return (
            f"an epoch must not wrap around the end of a streamed queue: give {queue.name} a multiple of input_count "
            "entries, or read it by global_rdptr_autoinc"
        )
    if "zero without prologue" in error.problem:
        return "zero clears the entries that the prologue loads: set prologue: true, or leave zero out"
    if "twice" in error.problem:
        return "graphs of one temporal graph run together: execute each of them once, then the next round"
    if "differ" in error.problem:
        return "graphs of one temporal graph share their queues: give a queue the same settings in each execute"
    return ""


def _value_cause(error: ProgramError, _scene: Scene) -> str:
    """Return the remedy for a variable without a value or with a wrong one, "" for other problems."""
    if error.problem.find("unknown variable") >= 0:
        return "declare it by var or staticvar, or bind it by param, before it is used"
    if "has no value" in error.problem:
        return "give it a value: Emulator.run(program, {name: value}), or --param NAME=VALUE on the command line"
    if "incwrap" in error.problem:
        return "a pointer wraps at twice the entries of a queue, or at the entries of a ram: give incwrap that number"
    return ""


def _loop_cause(error: ProgramError, scene: Scene) -> str:
    """Return the cause of a loop that does not run, "" for other problems."""
    instruction = scene.place.instruction
    count = getattr(instruction, "count", "")
    if "$" in count:
        return f"{count} is {scene.place.variables.get(count)}: give the parameter or variable a value of 1 or more"
    if "endloop" in error.problem:
        return "a loop is the instructions between loop and endloop, each once"
    return ""


def _allocation_cause(error: ProgramError, _scene: Scene) -> str:
    """Return the remedy for a failed allocate_queue or deallocate_queue."""
    if "held by" in error.problem:
        return "deallocate_queue the one that holds the memory first, or give them different addresses"
    return "pair each allocate_queue with one deallocate_queue"


def _op_cause(error: ProgramError, scene: Scene) -> str:
    """Return what to look at in an op that fails on its operands, "" where no op is known."""
    op = scene.netlist.ops.get(error.op)
    if op is None:
        return ""
    mark = op.at()
    return (
        f"op {op.name} (line {mark.line}) reads {', '.join(op.inputs) or 'nothing'}: compare what they hold, their "
        f"dims after TMs, and its attributes with what {op.type} takes (buda-emu ops {op.type})"
    )


def _limit_cause(error: ProgramError, _scene: Scene) -> str:
    """Return how to raise the limit, of steps or of memory, that was met."""
    if "step_limit" in error.problem:
        return "a loop count that is much too large, or Emulator(step_limit=...) that is too small"
    return f"more memory: {MORE_MEMORY_IN_PYTHON}"


_CAUSES: Mapping[str, Callable[[ProgramError, Scene], str]] = {
    "full": _full_cause,
    "empty": _empty_cause,
    "unwritten": _unwritten_cause,
    "pointer": _pointer_cause,
    "settings": _settings_cause,
    "value": _value_cause,
    "loop": _loop_cause,
    "allocation": _allocation_cause,
    "op": _op_cause,
    "limit": _limit_cause,
}


def _count_traffic(scene: Scene, queue: Queue) -> tuple[int, int]:
    """Return the numbers of entries of a queue pushed and freed so far."""
    entry = scene.journal.of(queue.name)
    return _total_of(entry.pushed), _total_of(entry.popped)


def _total_of(traffic: Traffic | None) -> int:
    """Return the total of a push or pop record, 0 for None."""
    return traffic.total if traffic is not None else 0


def _readers(netlist: Netlist, queue: Queue) -> list[Op]:
    """Return the ops of the netlist that read a queue."""
    return [op for op in netlist.ops.values() if queue.name in op.inputs]


def _graph_of(scene: Scene, queue: Queue) -> str:
    """Return the graph whose op feeds a queue, "?" where none does."""
    op = scene.netlist.ops.get(queue.input)
    return op.graph if op is not None else "?"


def _times(count: int) -> str:
    """Return a number of times in words."""
    return "once" if count == 1 else f"{count} times"


def _ops_of(netlist: Netlist, graphs: Sequence[str]) -> list[Op]:
    """Return the ops of these graphs, in order."""
    return list(chain.from_iterable(netlist.graphs[name].ops for name in graphs))


def waiting_ops(error: ProgramError, netlist: Netlist, graphs: Sequence[str]) -> tuple[Wait, ...]:
    """Return the ops of the running graphs that wait at a full or empty queue, and those that in turn wait for their
    results. Empty for other kinds of stop, where no op waits."""
    queue = netlist.queues.get(error.queue)
    ops = _ops_of(netlist, graphs)
    if queue is None or error.kind not in ("full", "empty"):
        return ()
    stuck = {op.name: _missing_resource(error.kind, op, queue) for op in ops if _is_stuck_at(error.kind, op, queue)}
    names = list(stuck)
    for name in names:  # grows while it is walked: breadth first
        fed = {name, *(other.name for other in netlist.queues.values() if other.input == name and not other.is_ram)}
        for op in ops:
            if op.name not in stuck and not fed.isdisjoint(op.inputs):
                stuck[op.name] = f"the result of {name}"
                names.append(op.name)
    netlist_ops = netlist.ops
    return tuple(Wait(name, netlist_ops[name].type, netlist_ops[name].graph, reason) for name, reason in stuck.items())


def _is_stuck_at(kind: str, op: Op, queue: Queue) -> bool:
    """Return whether an op waits at a queue: for `kind` "full" the op that writes it, else ("empty") an op that reads
    it."""
    if kind == "full":
        return op.name == queue.input
    return queue.name in op.inputs


def _missing_resource(kind: str, op: Op, queue: Queue) -> str:
    """Return in words what an op waits for at a queue: room for `kind` "full", else an entry."""
    if kind == "full":
        return f"room in {queue.name}"
    position = list(op.inputs).index(queue.name)
    return f"an entry of {queue.name} (its input {position})"


def describe_stop(
    error: ProgramError, place: Place, netlist: Netlist, channels: Mapping[str, Fifo | Ram], journal: Journal
) -> Stopped:
    """Return what a report needs of an error that ended a program at `place`: instruction, variables, graphs, ops and
    queue at fault, waiting ops, and the likely cause."""
    graphs = _graphs_at(netlist, place)
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
        ops=_ops_at_fault(error, netlist, graphs),
        input=error.input,
        waiting=waiting_ops(error, netlist, graphs),
        queue=_queue_state(channel, netlist, journal) if channel is not None else None,
        cause=likely_cause(error, Scene(netlist=netlist, place=place, graphs=graphs, channel=channel, journal=journal)),
    )


def _graphs_at(netlist: Netlist, place: Place) -> tuple[str, ...]:
    """Return the graphs that run together by the execute at this place, () where it is no execute."""
    instruction = place.instruction
    if not isinstance(instruction, Execute):
        return ()
    graphs = (temporal.graphs for temporal in netlist.temporal_graphs if instruction.graph in temporal.graphs)
    return next(graphs, (instruction.graph,))


def _ops_at_fault(error: ProgramError, netlist: Netlist, graphs: tuple[str, ...]) -> tuple[OpAtFault, ...]:
    """Return, as a report shows them, the op that the error names, else the ops of these graphs that fill (a full) or
    read (an empty or unwritten) queue at fault."""
    return tuple(OpAtFault(op.name, op.type, op.graph, op.at().line) for op in _found_ops(error, netlist, graphs))


def _found_ops(error: ProgramError, netlist: Netlist, graphs: tuple[str, ...]) -> list[Op]:
    """Return the op that the error names, else the ops of the graphs at the queue that it names; none for kinds where
    no op is at fault."""
    ops = netlist.ops
    if error.op in ops:
        return [ops[error.op]]
    queue = netlist.queues.get(error.queue)
    if queue is None or error.kind not in ("full", "empty", "unwritten"):
        return []
    if error.kind == "full":
        return [ops[queue.input]] if queue.input in ops else []
    return [op for op in _ops_of(netlist, graphs) if queue.name in op.inputs]


def _queue_state(channel: Fifo | Ram, netlist: Netlist, journal: Journal) -> QueueState:
    """Return the pointers, occupancy and last traffic of a queue or ram, as a report shows them."""
    entry = journal.of(channel.name)
    pushed = _transfer(entry.pushed, netlist)
    popped = _transfer(entry.popped, netlist)
    entries = channel.view.entries
    written = channel.view.written
    if isinstance(channel, Ram):
        return QueueState(
            name=channel.name,
            kind="ram",
            entries=entries,
            rd_ptr_global=channel.rd,
            wr_ptr_global=channel.wr,
            rd_ptr_local=None,
            occupancy=None,
            written=written,
            pushed=pushed,
            popped=popped,
        )
    ring = channel.ring
    return QueueState(
        name=channel.name,
        kind="queue",
        entries=entries,
        rd_ptr_global=ring.rd,
        wr_ptr_global=ring.wr,
        rd_ptr_local=ring.local,
        occupancy=ring.occupancy,
        written=written,
        pushed=pushed,
        popped=popped,
    )


def _transfer(traffic: Traffic | None, netlist: Netlist) -> Transfer | None:
    """Return a push or pop record as a report shows it, with the place in the program where that is known; None for
    None."""
    if traffic is None:
        return None
    by = traffic.by
    place = traffic.place
    if by not in (HOST, SETTINGS):
        by = f"op {by} of graph {netlist.ops[by].graph}"
    slot = traffic.slot if traffic.slot >= 0 else None
    if place is None:
        return Transfer(by=by, slot=slot, total=traffic.total, program="", instruction=None, line=None, loops=())
    return Transfer(
        by=by,
        slot=slot,
        total=traffic.total,
        program=place.program,
        instruction=place.index,
        line=place.line,
        loops=place.rounds,
    )
