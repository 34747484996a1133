"""Where a breakpoint is set: `54`, `run_fwd:3`, `op NAME`, `graph NAME`, `input 3`, `wrap QUEUE`, or a name alone."""

import re
from dataclasses import replace
from typing import Final

from buda_emu.checker.suggest import near
from buda_emu.debugger.breakpoints import Kind
from buda_emu.debugger.machine.engine import Engine
from buda_emu.debugger.names import Names
from buda_emu.errors import HostError
from buda_emu.netlist.model import Execute
from buda_emu.program.instruction_text import instruction_text
from buda_emu.records import dataclass

WORDS: Final = ("op", "graph", "line", "instruction", "input", "pointer", "wrap", "queue", "node", "nan", "inf")

_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class BreakLocation:
    """Fields of a `Breakpoint`."""

    kind: Kind
    text: str
    name: str = ""
    index: int = -1


def place(text: str, names: Names, engine: Engine) -> BreakLocation:
    """Raises HostError that names what was probably meant."""
    words = text.split()
    first = words[0] if words else ""
    if first in WORDS and (len(words) > 1 or first in ("nan", "inf")):
        return _worded(first, words[1:], names, engine)
    if len(words) > 1:
        raise HostError(f"break {text}: the first word is one of {', '.join(WORDS)}, or it is the only word")
    if first.isdecimal():
        return _line(_number(first, "a line"), names)
    found = re.fullmatch(r"(.+):(\d+)", first)
    if found is not None and (found[1] in names.netlist.programs or found[1] == names.netlist.path):
        if found[1] in names.netlist.programs:
            return _instruction(found[1], int(found[2]), names)
        return _line(int(found[2]), names)
    first = first.removeprefix("op:").strip("'")
    if first in names.ops:
        return _op(first, names)
    if first in names.netlist.graphs:
        return BreakLocation("graph", f"graph {first}", first)
    if first in names.netlist.programs:
        return _instruction(first, 0, names)
    if first in names.netlist.queues or first in names.labels:
        name = names.queue(first).name
        return BreakLocation("watch", f"queue {name}", name)
    known = (*names.ops, *names.netlist.graphs, *names.netlist.programs, *names.netlist.queues, *WORDS)
    hint = near(first, known)
    raise HostError(f"break {text}: no line, op, graph, program or queue {first!r}{f' ({hint})' if hint else ''}")


def _worded(kind: str, words: list[str], names: Names, engine: Engine) -> BreakLocation:
    argument = words[0] if words else ""
    match kind:
        case "op":
            return _op(argument.strip("'"), names)
        case "line":
            return _line(_number(argument, "a line"), names)
        case "graph":
            if argument not in names.netlist.graphs:
                hint = near(argument, names.netlist.graphs)
                raise HostError(f"no graph {argument!r}{f' ({hint})' if hint else ''}")
            return BreakLocation("graph", f"graph {argument}", argument)
        case "instruction":
            if len(words) > 1:
                return _instruction(argument, _number(words[1], "an instruction"), names)
            program = engine.program or next(iter(names.netlist.programs))
            return _instruction(program, _number(argument, "an instruction"), names)
        case "input":
            graph = words[1] if len(words) > 1 else ""
            if graph and graph not in names.netlist.graphs:
                raise HostError(f"no graph {graph!r}")
            number = _number(argument, "an input, from 1,")
            if number < 1:
                raise HostError("inputs of an epoch are counted from 1")
            return BreakLocation("input", f"input {number}{f' of {graph}' if graph else ''}", graph, number)
        case "node":
            return _node(" ".join(words), names)
        case "nan":
            return BreakLocation("nan", "a NaN in any op's result")
        case "inf":
            return BreakLocation("inf", "an infinity or NaN in any op's result")
        case _:
            name = names.queue(argument).name
            if kind == "wrap":
                return BreakLocation("wrap", f"wrap of {name}", name)
            value = _number(words[1], "a pointer") if len(words) > 1 else -1
            return BreakLocation("pointer", f"pointer of {name}{f' at {value}' if value >= 0 else ''}", name, value)


def _number(text: str, what: str) -> int:
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise HostError(f"{what} is a number of at most {_MOST_DIGITS} digits, not {text[:40]!r}")
    return int(text)


def _op(name: str, names: Names) -> BreakLocation:
    op = names.op(name)
    return BreakLocation("op", f"op {op.name} ({op.type}, line {op.at().line})", op.name)


def _node(node: str, names: Names) -> BreakLocation:
    ops = names.ops_of_node(node)
    if not ops:
        every = dict.fromkeys(one for note in names.nodes.values() for one in note.split(", "))
        hint = near(node, every)
        raise HostError(f"no op was made of a node {node!r}{f' ({hint})' if hint else ''}")
    return BreakLocation("op", f"node {node}, op {ops[0].name}", ops[0].name)


def _instruction(program: str, index: int, names: Names) -> BreakLocation:
    body = names.netlist.programs.get(program)
    if body is None:
        hint = near(program, names.netlist.programs)
        raise HostError(f"no program {program!r}{f' ({hint})' if hint else ''}")
    if index >= len(body.instructions):
        raise HostError(f"program {program} has instructions 0..{len(body.instructions) - 1}, not {index}")
    instruction = body.instructions[index]
    told = f"execute {instruction.graph}" if isinstance(instruction, Execute) else instruction_text(instruction)
    text = f"{program} instruction {index}, line {instruction.at().line}: {told}"
    return BreakLocation("instruction", text, program, index)


def _line(line: int, names: Names) -> BreakLocation:
    found = names.at_line(line)
    moved = f" (line {found.line}, the next that runs)" if found.line != line else ""
    match found.kind:
        case "instruction":
            location = _instruction(found.name, found.index, names)
        case "op":
            location = _op(found.name, names)
        case "graph":
            location = BreakLocation("graph", f"graph {found.name} (line {found.line})", found.name)
        case "queue":
            location = BreakLocation("watch", f"queue {found.name} (line {found.line})", found.name)
    return replace(location, text=location.text + moved)
