"""Netlists that are derived from others: with another number of inputs in a round, or reduced to one chip of
several. Also finds the placeholders of templates that were not filled in."""

import re
from collections.abc import Container, Iterator
from dataclasses import replace
from itertools import chain

from buda_emu.netlist.model import Allocate, Deallocate, Declare, Execute, Instruction, Netlist, Program, Queue, VarInst
from buda_emu.netlist.nodes import Mapping, Node, Scalar
from buda_emu.netlist.sourced import evolve
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.text import list_first

SIZE = "$c_microbatch_size"
"""The variable that holds the number of inputs of a round; front ends move pointers by it (FRONTEND 5)."""


LOOP = "$p_loop_count"
"""The parameter that holds the number of rounds of a program (FRONTEND 5, NETLIST 3.7)."""


def resize_microbatch(netlist: Netlist, count: int) -> Netlist:
    """Return the netlist with `count` inputs in each round instead of the number in `$c_microbatch_size`.

    The same ops run on the same cores, so each input has the same results; queues that hold whole rounds shrink or
    grow. `buda-emu run` uses this to run one input of a netlist that was compiled for many.
    """
    size = _microbatch_size(netlist)
    if size in (0, count):
        return netlist

    def resize_count(input_count: int) -> int:
        """Return the new number of inputs for that of a whole round, any other number as it is."""
        return count if input_count == size else input_count

    def resize_queue(queue: Queue) -> Queue:
        """Return the queue with room for the new number of inputs, if it holds whole rounds."""
        entries = queue.entries
        if not queue.is_ram and entries % size == 0:
            entries = entries // size * count
        return evolve(queue, entries=entries, input_count=resize_count(queue.input_count))

    return replace(
        netlist,
        queues={name: resize_queue(queue) for name, queue in netlist.queues.items()},
        graphs={
            name: evolve(graph, input_count=resize_count(graph.input_count)) for name, graph in netlist.graphs.items()
        },
        programs={name: _resize_program(program, size, count) for name, program in netlist.programs.items()},
    )


def _microbatch_size(netlist: Netlist) -> int:
    """Return the number of inputs of a round; 0 if no program declares one."""
    for program in netlist.programs.values():
        for step in program.instructions:
            if isinstance(step, Declare):
                for name, value in step.variables:
                    if name == SIZE:
                        return int(value)
    return 0


def _resize_program(program: Program, old_size: int, new_size: int) -> Program:
    """Return the program with rounds of `new_size` instead of `old_size` inputs: in the variable that holds this
    number, and in the wraps of pointers that move by it.
    """

    def resize_step(step: Instruction) -> Instruction:
        """Return an instruction with the new number of inputs, itself if it does not depend on it."""
        if isinstance(step, Declare):
            variables = tuple((name, str(new_size) if name == SIZE else value) for name, value in step.variables)
            return evolve(step, variables=variables)
        if isinstance(step, VarInst) and step.opcode == "incwrap" and step.args[0] == SIZE:
            wrap = step.args[1]
            if wrap.isdigit() and int(wrap) % old_size == 0:
                return evolve(step, args=(SIZE, str(int(wrap) // old_size * new_size)))
        return step

    return evolve(program, instructions=tuple(resize_step(step) for step in program.instructions))


def restrict_to_chip(netlist: Netlist, chip: int) -> Netlist:
    """Return the netlist without graphs and queues of other chips, and without the instructions that use them.

    Names stay. The chips must exchange nothing: every remaining queue is filled by the host or by a remaining op.
    """
    graphs = {name: graph for name, graph in netlist.graphs.items() if graph.target_device == chip}
    queues = {name: queue for name, queue in netlist.queues.items() if queue.target_device == chip}
    epochs = [
        replace(epoch, graphs=tuple(name for name in epoch.graphs if name in graphs))
        for epoch in netlist.temporal_graphs
    ]
    programs = {
        name: evolve(program, instructions=tuple(_restrict_instructions(program, graphs, queues)))
        for name, program in netlist.programs.items()
    }
    return replace(
        netlist,
        queues=queues,
        graphs=graphs,
        temporal_graphs=tuple(epoch for epoch in epochs if epoch.graphs),
        programs=programs,
    )


def _restrict_instructions(program: Program, graphs: Container[str], queues: Container[str]) -> Iterator[Instruction]:
    """Yield the instructions of a program that concern the graphs and queues, or none in particular."""
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


MARK = "$TEMPLATE_"
_NAME = re.compile(r"\$TEMPLATE_\w*")
_COMMENT = re.compile(r"(?:^|\s)#.*")


def template_findings(text: str, path: str, root: Node | None) -> list[Diagnostic]:
    """Return one finding that names the placeholders of a text, or none if all stand in comments.

    `root` is None for a text that is not YAML. Placeholders in comments are legal: filled templates often keep them.
    """
    if MARK not in text:
        return []
    names: dict[str, None] = {}
    first = (0, 0)
    for number, line in enumerate(text.splitlines(), 1):
        if MARK not in line:
            continue
        for match in _NAME.finditer(_COMMENT.sub("", line)):
            first = first if names else (number, match.start() + 1)
            names[match[0]] = None
    if not names or (root is not None and not _has_placeholder(root)):
        return []
    message = f"this is a template, not a netlist: {list_first(names, 8)} must be filled in"
    line, column = first
    return [
        Diagnostic(
            path=path,
            rule="V000",
            severity="error",
            message=message,
            line=line,
            column=column,
            end_column=column + len(next(iter(names))),
        )
    ]


def _has_placeholder(root: Node) -> bool:
    """Return whether a key or value of the tree holds a placeholder."""
    waiting = [root]
    seen = {id(root)}
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scalar):
            if MARK in node.text:
                return True
            continue
        if isinstance(node, Mapping):
            children = list(chain.from_iterable(node.pairs))
        else:
            children = node.items
        for child in children:
            if id(child) not in seen:  # an alias repeats a node
                seen.add(id(child))
                waiting.append(child)
    return False
