"""The programs of a placed graph: loops, pointers and queue settings (FRONTEND 5, 6)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from buda_emu.compiler.lower.tiles import State, Store
from buda_emu.compiler.place.placement import GraphPlace, Placement, Queue
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
    QueueSettings,
    VarInst,
)
from buda_emu.netlist.program.parameters import CACHE
from buda_emu.netlist.variants import LOOP
from buda_emu.netlist.variants import SIZE as _SIZE

ZERO = "$p_zero_grad"
_INDEX: Final = "$v_cache_write_index"
_ADDS_ANEW: Final = "$v_zero_grad"
"""Variable of a training's programs: 1 for the first microbatch, then 0."""

ONE_ROUND: Final[Mapping[str, str]] = {
    LOOP: "1", ZERO: "1", CACHE.write_index: "0", CACHE.inner_count: "1", CACHE.inner_increment: "0",
    CACHE.outer_count: "1", CACHE.outer_increment: "1",
}  # fmt: skip
"""Parameters of any program for one round of inputs."""


def program_name(program: str) -> str:
    """Return the name in the netlist of a program of the model: "fwd_0" becomes "run_fwd_0" (FRONTEND 5)."""
    return f"run_{program}"


def graph_names(placement: Placement) -> dict[GraphPlace, str]:
    """Return the names in the netlist of the graphs, one for each epoch and chip (FRONTEND 5). Graphs of one epoch
    stand behind each other with different chips, so they run at the same time (NETLIST 1.8)."""
    program_of: dict[GraphPlace, str] = {}
    for program, graphs in placement.programs.items():
        program_of |= dict.fromkeys(graphs, program)
    return {
        graph: f"{program_of[graph]}_{number}_temporal_epoch_{graph.epoch}"
        for number, graph in enumerate(placement.graphs())
    }


def programs(placement: Placement) -> Iterator[Program]:
    """Yield the netlist's program for each program of the placed graph, in the order in which they run."""
    reads = {graph: placement.held_by_queue(ops) for graph, ops in placement.ops_by_graph().items()}
    last: dict[str, str] = {}
    for program, graphs in placement.programs.items():
        for graph in graphs:
            last |= dict.fromkeys(reads[graph], program)
    for program, graphs in placement.programs.items():
        reads_of_program = {graph: reads[graph] for graph in graphs}
        instructions = tuple(_program_instructions(placement, program, reads_of_program, last))
        yield Program(name=program_name(program), instructions=instructions)


def _program_instructions(
    placement: Placement, program: str, reads: Mapping[GraphPlace, Mapping[str, bool]], last: Mapping[str, str]
) -> Iterator[Instruction]:
    """Yield the instructions of a program: one loop, at the end of which all queues advance together. `reads`: the
    queues that each of its graphs reads, with whether they are held in L1; `last`: the program that reads each queue
    last.

    Queues that a later program also reads keep their entries until that one is done: in this program their global
    pointer stays, for the whole loop, at the entries that were there at the beginning.
    """
    graphs = [*reads]
    names = graph_names(placement)
    stores = [store for store in placement.tiles.stores.values() if placement.ops[store.op].op.program == program]
    moving = [placement.queues[name] for names_read in reads.values() for name in names_read]
    form = _program_form(placement, program, [queue for queue in moving if _is_advanced(queue)], last, stores)
    yield from form.begin()
    allocated, freed = _queue_lives(placement, graphs, reads)
    for graph in graphs:
        if graph in allocated:
            yield Allocate(queues=tuple(allocated[graph]))
        settings = {
            name: _read_setting(placement.queues[name], form, last[name] != program, in_l1)
            for name, in_l1 in reads[graph].items()
        }
        for store in stores:
            if placement.ops[store.op].graph == graph:
                state = placement.tiles.states[store.queue]
                settings[state.written] = _write_setting(state, store.accumulate)
        yield Execute(graph=names[graph], queue_settings=tuple(settings.values()))
        if graph in freed:
            yield Deallocate(queues=tuple(freed[graph]))
    yield from form.end()


def _program_form(
    placement: Placement, program: str, moving: Sequence[Queue], last: Mapping[str, str], stores: Sequence[Store]
) -> "_Form":
    """Return what the loops and pointers of a program depend on. `moving`: the queues that it reads and advances;
    `last`: the program that reads each queue last; `stores`: the program's own."""
    return _Form(
        entries=tuple(sorted({queue.entries for queue in moving}, reverse=True)),
        popped=frozenset(queue.entries for queue in moving if last[queue.name] == program),
        fed=placement.tiles.flows(program),
        held=any(last[queue.name] != program for queue in moving),
        sums=any(store.accumulate for store in stores),
        slots=max((placement.tiles.states[store.queue].slots for store in stores), default=1),
        inputs=placement.count(program),
    )


_ByGraph = dict[GraphPlace, list[str]]


def _queue_lives(
    placement: Placement, graphs: Sequence[GraphPlace], reads: Mapping[GraphPlace, Mapping[str, bool]]
) -> tuple[_ByGraph, _ByGraph]:
    """Return the queues to allocate before each graph is executed, and those to deallocate after each, by graph
    (NETLIST 3.6, V127)."""
    allocated: _ByGraph = {}
    freed: _ByGraph = {}
    for name in dict.fromkeys(name for graph in graphs for name in reads[graph]):
        queue = placement.queues[name]
        if queue.life:
            producer = placement.ops[queue.input].graph
            allocated.setdefault(producer, []).append(name)
            freed.setdefault(max(graph for graph in graphs if name in reads[graph]), []).append(name)
    return allocated, freed


@dataclass(frozen=True, slots=True)
class _Form:
    """The instructions around the executes of a program. `entries`: sizes of the queues that advance, the largest
    first; `popped`: those sizes among them whose entries are freed here; `fed`: the host or another program writes to
    its queues, so that there may be many rounds; `held`: some entries are kept for a later program, in queues of the
    largest size; `sums`: gradients are added up; `slots` of a cache, of which each round writes one; `inputs` of a
    round."""

    entries: tuple[int, ...]
    popped: frozenset[int]
    fed: bool
    held: bool
    sums: bool
    slots: int
    inputs: int

    def pointer(self, name: str, entries: int) -> str:
        """Return the pointer called `name` of queues with `entries` entries; each size needs its own, because pointers
        wrap at twice the entries (NETLIST 1.8)."""
        if entries == self.entries[0]:
            return name
        return f"{name}_{entries}"

    def pointers(self, entries: int) -> Iterator[str]:
        """Yield the names of the pointer variables of queues with `entries` entries: the local one and, if entries are
        freed here, the global one."""
        yield self.pointer("$lptr", entries)
        if entries in self.popped:
            yield self.pointer("$gptr", entries)

    def begin(self) -> Iterator[Instruction]:
        """Yield the instructions in front of the executes: declarations, initial values and the heads of loops."""
        yield from self._declarations()
        if self.held:
            yield VarInst(out="$gptr_held", opcode="set", args=("$gptr_next",))
        if self.sums:
            yield VarInst(out=_ADDS_ANEW, opcode="set", args=(ZERO,))
        if self.slots > 1:
            yield VarInst(out=_INDEX, opcode="set", args=(CACHE.write_index,))
            yield Loop(count=CACHE.outer_count)
            yield Loop(count=CACHE.inner_count)
        elif self.fed:
            yield Loop(count=LOOP)

    def _declarations(self) -> Iterator[Instruction]:
        """Yield the declarations of parameters, variables and pointers."""
        params: list[str] = []
        if self.slots > 1:
            params += CACHE
        elif self.fed:
            params.append(LOOP)
        if self.sums:
            params.append(ZERO)
        if params:
            yield Param(names=tuple(params))
        variables = {"$c_zero": 0, _SIZE: self.inputs}
        if self.sums:
            variables[_ADDS_ANEW] = 0
        if self.slots > 1:
            variables[_INDEX] = 0
        yield _declare_instruction("var", variables)
        if self.entries:
            pointers: list[str] = []
            for count in self.entries:
                pointers += self.pointers(count)
            if self.held:
                pointers += ["$gptr_held", "$gptr_next"]
            yield _declare_instruction("staticvar", dict.fromkeys(pointers, 0))

    def end(self) -> Iterator[Instruction]:
        """Yield the instructions behind the executes: the advance of pointers and the ends of loops."""
        if self.sums:
            yield VarInst(out=_ADDS_ANEW, opcode="set", args=("0",))
        for count in self.entries:
            for pointer in reversed([*self.pointers(count)]):
                yield _advance_instruction(pointer, _SIZE, 2 * count)
        if self.held:
            yield _advance_instruction("$gptr_next", _SIZE, 2 * self.entries[0])
        if self.slots > 1:
            for increment in (CACHE.inner_increment, CACHE.outer_increment):
                yield _advance_instruction(_INDEX, increment, self.slots)
                yield EndLoop()
        elif self.fed:
            yield EndLoop()


def _declare_instruction(kind: Literal["var", "staticvar"], values: Mapping[str, int]) -> Declare:
    """Return the instruction that declares variables with their first values; `kind`: whether they keep their values
    from run to run ("staticvar") or not ("var")."""
    return Declare(kind=kind, variables=tuple((name, str(value)) for name, value in values.items()))


def _advance_instruction(pointer: str, step: str, wrap: int) -> VarInst:
    """Return the instruction that moves a queue pointer by a step, modulo `wrap`."""
    return VarInst(out=pointer, opcode="incwrap", args=(step, str(wrap)))


def _is_advanced(queue: Queue) -> bool:
    """Return whether the program moves the pointers of a queue after each run: that of an input or between epochs,
    unless it is allocated only while some epochs run and is empty again after them."""
    return queue.role in ("input", "between") and not queue.life


def _truth_word(value: bool) -> str:
    """Return the word for a truth value in a netlist, `true` or `false`."""
    if value:
        return "true"
    return "false"


def _write_setting(state: State, accumulates: bool) -> QueueSettings:
    """Return the settings of a ram that an op of the epoch writes. A sum is kept in L1 from input to input (NETLIST
    V162), or it is read and written again and begins with the zeros of the second entry."""
    in_memory = accumulates and state.zeros
    in_l1 = accumulates and not state.zeros
    return QueueSettings(
        queue=state.written,
        prologue=_truth_word(in_l1),
        epilogue=_truth_word(in_l1),
        zero=_ADDS_ANEW if in_l1 else "false",
        rd_ptr_global=_ADDS_ANEW if in_memory else "$c_zero",
        wr_ptr_global=_INDEX if state.slots > 1 else "$c_zero",
    )


def _read_setting(queue: Queue, form: _Form, held: bool, in_l1: bool) -> QueueSettings:
    """Return the settings of a queue that the program reads. `held`: its entries stay for a later program; `in_l1`: its
    content is loaded into L1 before the first input."""
    local = "$c_zero"
    read = "$c_zero"
    written = ""
    step = ""
    if queue.type == "ram":
        local = ""
        written = "$c_zero"
    elif queue.role == "constant":
        step = "0"
    elif not queue.life:  # else it is empty whenever it is allocated
        local, freed = (form.pointer(name, queue.entries) for name in ("$lptr", "$gptr"))
        read = "$gptr_held" if held else freed
    return QueueSettings(
        queue=queue.name,
        prologue=_truth_word(in_l1),
        read_only=_truth_word(bool(queue.alias)),  # NETLIST 1.10
        rd_ptr_local=local,
        rd_ptr_global=read,
        wr_ptr_global=written,
        rd_ptr_autoinc=step,
    )
