"""Netlists made of others: with another number of inputs, what stands on one chip of several, and templates whose
places are filled.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from buda_emu.netlist.model import Allocate, Deallocate, Declare, Execute, Instruction, Netlist, Program, Queue, VarInst
from buda_emu.netlist.nodes import Mapping, Node, Scalar
from buda_emu.netlist.sourced import evolve
from buda_emu.support.checker.diagnostic import Diagnostic

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


MARK = "$TEMPLATE_"
_NAME = re.compile(r"\$TEMPLATE_\w*")
_COMMENT = re.compile(r"(?:^|\s)#.*")


def template_findings(text: str, path: str, root: Node | None) -> list[Diagnostic]:
    """One finding that names the placeholders, if there are any outside comments; `root` is None for a broken text.

    Comments may speak of placeholders: rendered templates often keep them there.
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
    if not names or (root is not None and not _used(root)):
        return []
    listed = ", ".join(list(names)[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    message = f"this is a template, not a netlist: {listed} must be filled in"
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


def _used(root: Node) -> bool:
    """Whether a key or value of the tree holds a placeholder."""
    waiting = [root]
    seen = {id(root)}
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scalar):
            if MARK in node.text:
                return True
            continue
        children = [part for pair in node.pairs for part in pair] if isinstance(node, Mapping) else node.items
        for child in children:
            if id(child) not in seen:  # aliases
                seen.add(id(child))
                waiting.append(child)
    return False
