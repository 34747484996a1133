"""What of a netlist stands on one chip: a copy of what a list of chips made several of (NETLIST 1.7)."""

from collections.abc import Iterator
from dataclasses import replace

from buda_emu.netlist.model import Allocate, Deallocate, Execute, Instruction, Netlist, Program
from buda_emu.netlist.sourced import evolve


def on_one_chip(netlist: Netlist, chip: int) -> Netlist:
    """The netlist without graphs and queues of other chips, and without what its programs do with them. Names stay. For
    chips that exchange nothing: every queue that is left is filled by the host or an op that is left, too."""
    graphs = {name: graph for name, graph in netlist.graphs.items() if graph.target_device == chip}
    queues = {name: queue for name, queue in netlist.queues.items() if queue.target_device == chip}
    epochs = (
        replace(item, graphs=tuple(name for name in item.graphs if name in graphs)) for item in netlist.temporal_graphs
    )

    def left(program: Program) -> Iterator[Instruction]:
        for step in program.instructions:
            if isinstance(step, Execute):
                if step.graph in graphs:
                    yield step
            elif isinstance(step, (Allocate, Deallocate)):
                names = tuple(name for name in step.queues if name in queues)
                if names:
                    yield evolve(step, queues=names)
            else:
                yield step

    return replace(
        netlist,
        queues=queues,
        graphs=graphs,
        temporal_graphs=tuple(item for item in epochs if item.graphs),
        programs={
            name: evolve(program, instructions=tuple(left(program))) for name, program in netlist.programs.items()
        },
    )
