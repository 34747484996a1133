"""A netlist as it would be with another number of inputs in each round of its loop."""

from dataclasses import replace

from buda_emu.netlist.model import Declare, Instruction, Netlist, Program, Queue, VarInst
from buda_emu.netlist.sourced import evolve

SIZE = "$c_microbatch_size"
"""The variable by which front ends move pointers, and which says how many inputs a round has (FRONTEND 5)."""


LOOP = "$p_loop_count"
"""The parameter that says how many rounds a program has (FRONTEND 5, NETLIST 3.7)."""


def of_microbatch(netlist: Netlist, count: int) -> Netlist:
    """The netlist with `count` inputs in each round instead of what its programs declare as `$c_microbatch_size`: the
    same ops on the same cores, so each input has the same results; queues that hold whole rounds shrink or grow. For
    one input of a netlist that was compiled for many, as `buda-emu run` takes them."""
    size = _declared(netlist)
    if size in (0, count):
        return netlist

    def of_queue(queue: Queue) -> Queue:
        entries = queue.entries
        if not queue.is_ram and entries % size == 0:
            entries = entries // size * count
        return evolve(queue, entries=entries, input_count=count if queue.input_count == size else queue.input_count)

    return replace(
        netlist,
        queues={name: of_queue(queue) for name, queue in netlist.queues.items()},
        graphs={
            name: evolve(graph, input_count=count if graph.input_count == size else graph.input_count)
            for name, graph in netlist.graphs.items()
        },
        programs={name: _of_program(program, size, count) for name, program in netlist.programs.items()},
    )


def _declared(netlist: Netlist) -> int:
    """The number of inputs of a round; 0 where no program says one."""
    for program in netlist.programs.values():
        for step in program.instructions:
            if isinstance(step, Declare):
                for name, value in step.variables:
                    if name == SIZE:
                        return int(value)
    return 0


def _of_program(program: Program, size: int, count: int) -> Program:
    def of_step(step: Instruction) -> Instruction:
        if isinstance(step, Declare):
            changed = tuple((name, str(count) if name == SIZE else value) for name, value in step.variables)
            return evolve(step, variables=changed)
        if isinstance(step, VarInst) and step.opcode == "incwrap" and step.args[0] == SIZE:
            wrap = step.args[1]
            if wrap.isdigit() and int(wrap) % size == 0:
                return evolve(step, args=(SIZE, str(int(wrap) // size * count)))
        return step

    return evolve(program, instructions=tuple(of_step(step) for step in program.instructions))
