"""Programs for graphs: loops, variables and parameters, pointers that follow the queues (NETLIST 3, 4)."""

from collections.abc import Iterator

from buda_emu.netlist.microbatch import LOOP
from buda_emu.netlist.model import (
    Allocate,
    Deallocate,
    Declare,
    EndLoop,
    Execute,
    Instruction,
    Loop,
    Param,
    Program,
    Queue,
    QueueSettings,
    VarInst,
)
from buda_emu.netlist.sourced import evolve
from buda_emu.records import dataclass
from buda_emu.testing.generator.draft import NetlistDraft, OpenGraph


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often the graphs run: in a loop, in two nested ones, or one time after the other without a loop."""

    outer: int
    inner: int
    parameter: bool
    """The inner count is `$p_loop_count`."""
    looped: bool
    split: bool
    """Every graph has a program of its own."""

    @property
    def count(self) -> int:
        """Executes of each graph."""
        return self.outer * self.inner


def draw_rounds(draft: NetlistDraft) -> Rounds:
    """From one round to six."""
    draw = draft.draw
    looped = draw.chance(75)
    outer = draw.pick((1, 1, 1, 2)) if looped else 1
    inner = draw.pick((1, 2, 3)) if looped else draw.pick((1, 1, 2))
    return Rounds(outer, inner, looped and draw.chance(40), looped, draft.chips == 1 and draw.chance(15))


def add_programs(draft: NetlistDraft, rounds: Rounds) -> None:
    """Gives queues their entries and writes the program that runs all graphs, or one for each."""
    sizes = {queue.name: _entries(draft, queue, rounds) for queue in draft.document.queues.values()}
    for queue, entries in sizes.items():
        draft.document.queues[queue] = evolve(draft.document.queues[queue], entries=entries)
    for number, graphs in enumerate([[graph] for graph in draft.graphs] if rounds.split else [draft.graphs]):
        name = f"run_fwd_{number}" if rounds.split else "run_fwd"
        instructions = tuple(_instructions(draft, rounds, graphs))
        draft.document.programs[name] = Program(name=name, instructions=instructions)
        draft.document.program_order.append(name)


def _entries(draft: NetlistDraft, queue: Queue, rounds: Rounds) -> int:
    """A constant keeps its one; the host fills a stream before the program runs and empties results after it."""
    if queue.name in draft.constants or queue.type == "ram":
        return queue.entries
    between = not rounds.split and not queue.host_fed and any(queue.name in graph.read for graph in draft.graphs)
    return (2 if queue.name in draft.strided else 1) * queue.entries * (1 if between else rounds.count)


def _pointer(inputs: int, entries: int) -> tuple[str, str]:
    return f"$l_{inputs}_{entries}", f"$g_{inputs}_{entries}"


def _instructions(draft: NetlistDraft, rounds: Rounds, graphs: list[OpenGraph]) -> Iterator[Instruction]:
    draw = draft.draw
    pointers: dict[tuple[str, str], tuple[int, int]] = {}
    executes = [_execute(draft, graph, pointers) for graph in graphs]
    if rounds.parameter:
        yield Param(names=(LOOP,))
    count = LOOP if rounds.parameter else str(rounds.inner)
    computed = [("$rounds", "0")] if rounds.looped and not rounds.parameter and draw.chance(40) else []
    kind = draw.pick(("var", "var", "staticvar"))
    constant = [("$c_one", "1")] if computed and kind == "var" and draw.sometimes(30, "c_one") else []
    variables = [(name, "0") for pair in pointers for name in pair] + computed + constant
    if variables:
        yield Declare(kind=kind, variables=tuple(variables))
    if kind == "staticvar":  # a second run of the program starts where this one ends
        yield from (VarInst(out=name, opcode="set", args=("0",)) for name, _ in variables)
    if computed:
        opcode, before = draw.pick((("add", ("0",)), ("mul", ("1",)), ("inc", ())))
        if constant:
            opcode, before = "mul", ("$c_one",)
        yield VarInst(out="$rounds", opcode=opcode, args=(*before, count))
        count = "$rounds"
    dynamic = _dynamic(draft) if not rounds.split and draw.sometimes(25, "allocate_queue") else ()
    if dynamic:
        yield Allocate(queues=dynamic)
    body = [*executes, *_moved(pointers)]
    if rounds.looped:
        if rounds.outer > 1:
            yield Loop(count=str(rounds.outer))
        yield Loop(count=count)
        yield from body
        yield EndLoop()
        if rounds.outer > 1:
            yield EndLoop()
    else:
        for _ in range(rounds.count):
            yield from body
    if dynamic:
        yield Deallocate(queues=dynamic)


def _moved(pointers: dict[tuple[str, str], tuple[int, int]]) -> Iterator[Instruction]:
    """Each pair of pointers on by the inputs of an execute, modulo twice the entries (NETLIST 4.1)."""
    for (local, over), (inputs, entries) in pointers.items():
        for name in (local, over):
            yield VarInst(out=name, opcode="incwrap", args=(str(inputs), str(2 * entries)))


def _dynamic(draft: NetlistDraft) -> tuple[str, ...]:
    """Queues between graphs, which may come and go (NETLIST 3.6)."""
    queues = draft.document.queues.values()
    return tuple(
        queue.name
        for queue in queues
        if not queue.host_fed and queue.type == "queue" and any(queue.name in graph.read for graph in draft.graphs)
    )


def _execute(draft: NetlistDraft, graph: OpenGraph, pointers: dict[tuple[str, str], tuple[int, int]]) -> Execute:
    gradients = {op.name for op in graph.ops if op.gradient_op}
    settings: list[QueueSettings] = []
    for queue in draft.document.queues.values():
        if queue.name in graph.read:
            settings.append(_reading(draft, graph, queue, pointers))
        elif queue.name in draft.stepped and any(op.name == queue.input for op in graph.ops):
            settings.append(
                QueueSettings(queue=queue.name, rd_ptr_global="0", wr_ptr_global="0", global_wrptr_autoinc="1")
            )
        elif queue.input in gradients:
            settings.append(
                QueueSettings(
                    queue=queue.name,
                    prologue="true",
                    epilogue="true",
                    zero=draft.draw.pick(("true", "false")),
                    rd_ptr_global="0",
                    wr_ptr_global="0",
                )
            )
    return Execute(graph=graph.name, queue_settings=tuple(settings))


def _reading(
    draft: NetlistDraft, graph: OpenGraph, queue: Queue, pointers: dict[tuple[str, str], tuple[int, int]]
) -> QueueSettings:
    if queue.name in draft.constants:
        local, written = ("", "0") if queue.type == "ram" else ("0", "")
        kept = queue.type == "ram" and draft.draw.chance(30)
        return QueueSettings(
            queue=queue.name,
            prologue="true",
            rd_ptr_global="0",
            rd_ptr_local=local,
            wr_ptr_global=written,
            read_only="true" if kept else "false",
        )
    if queue.name in draft.stepped:
        return QueueSettings(queue=queue.name, rd_ptr_global="0", wr_ptr_global="0", global_rdptr_autoinc="1")
    stride = 2 if queue.name in draft.strided else 1
    step = graph.input_count * stride
    pair = _pointer(step, queue.entries)
    pointers[pair] = (step, queue.entries)
    alone = sum(queue.name in other.read for other in draft.graphs) == 1
    popping = stride == 1 and queue.host_fed and alone and draft.draw.chance(15)
    return QueueSettings(
        queue=queue.name,
        rd_ptr_local=pair[0],
        rd_ptr_global=pair[1],
        rd_ptr_autoinc=str(stride),
        global_rdptr_autoinc="1" if popping else "0",
    )
