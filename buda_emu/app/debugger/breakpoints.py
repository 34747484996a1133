"""Breakpoints, watches and conditions: where they are set, and whether they hold."""

import re
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, Final, Literal

from buda_emu.app.debugger.expressions import OF_POINTERS, OF_TENSOR, Node, Pieces, Tensor, calls, evaluate, told
from buda_emu.app.debugger.lookup import MomentScope
from buda_emu.app.debugger.machine.engine import Engine
from buda_emu.app.debugger.machine.steps import Steps
from buda_emu.app.debugger.machine.stop import Moment, StoppedShortError
from buda_emu.app.debugger.names import Names, line_of
from buda_emu.app.debugger.tensors import summary
from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.runtime.graph.steps import Topology
from buda_emu.netlist.model import Execute
from buda_emu.netlist.program.settings import instruction_text
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass

Kind = Literal["instruction", "op", "graph", "input", "pointer", "wrap", "watch", "if", "nan", "inf"]
Pointers = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Breakpoint:
    """`name`: of the program, op, graph or queue; `index`: of the instruction, the input (from 1) or the pointer's
    value, -1 for any; `condition` has to hold, too; `ignore`: how many hits are still passed over; `log`: of a
    log point, whose hits tell this and stop nothing."""

    number: int
    kind: Kind
    text: str
    name: str = ""
    index: int = -1
    condition: Node | None = None
    condition_text: str = ""
    enabled: bool = True
    temporary: bool = False
    ignore: int = 0
    hits: int = 0
    log: Pieces = ()
    log_text: str = ""
    last: Any = field(default=None, repr=False)  # what it saw at the event before

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "number": self.number,
            "kind": self.kind,
            "text": self.text,
            "enabled": self.enabled,
            "temporary": self.temporary,
            "ignore": self.ignore,
            "hits": self.hits,
            "condition": self.condition_text,
            "log": self.log_text,
        }

    def line(self, names: Names) -> int:
        """Where it stands in the netlist; 0 where it has no place."""
        match self.kind:
            case "instruction":
                return line_of(names.netlist.programs[self.name].instructions[self.index])
            case "op":
                return names.ops[self.name].at().line
            case "graph":
                return names.netlist.graphs[self.name].at().line
            case "watch" | "pointer" | "wrap":
                return names.netlist.queues[self.name].at().line
            case _:
                return 0


def pointers_of(channel: Fifo | Ram) -> Pointers:
    """Global read and write pointer, and of a queue the local one."""
    if isinstance(channel, Ram):
        return channel.rd, channel.wr
    return channel.ring.rd, channel.ring.wr, channel.ring.local


def _pointer_names(values: Pointers) -> str:
    names = ("rd_ptr_global", "wr_ptr_global", "rd_ptr_local")
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=False))


class BreakpointSet:
    """All breakpoints of a session. Is a `steps.Breaks`. `scope`: what names mean at a moment of a machine."""

    def __init__(self, names: Names, scope: Callable[[Steps, Moment], MomentScope]) -> None:
        self._names = names
        self._scope = scope
        self._next = 1
        self.items: dict[int, Breakpoint] = {}
        self.counting = True  # hits count, and ignore counts are used up
        self.on_log: Callable[[str], None] = lambda _: None  # is given what log points tell, on the run's thread

    def add(self, kind: Kind, text: str, **more: Any) -> Breakpoint:
        """Another one."""
        found = Breakpoint(self._next, kind, text, **more)
        self.items[found.number] = found
        self._next += 1
        return found

    def of(self, number: int) -> Breakpoint:
        """Raises HostError where there is not one of this number."""
        if number not in self.items:
            known = ", ".join(map(str, self.items)) or "none"
            raise HostError(f"no breakpoint {number}; there are: {known}")
        return self.items[number]

    @property
    def enabled(self) -> list[Breakpoint]:
        """Those that may stop."""
        return [item for item in self.items.values() if item.enabled]

    def forget(self) -> None:
        for item in self.items.values():
            item.last = None

    # --------------------------------------------------------------------------------- how closely to look
    def stops_at_ops(self, graphs: Sequence[str]) -> bool:
        return any(self._at_ops(item, graphs) for item in self.enabled)

    def _at_ops(self, item: Breakpoint, graphs: Sequence[str]) -> bool:
        match item.kind:
            case "op":
                return self._graph_of(item.name) in graphs
            case "graph":
                return item.name in graphs
            case "input" | "nan" | "inf":
                return True
            case "if":
                return any(self._graph_of(name) in graphs for name in self._ops_in(item.condition))
            case _:
                return False

    def _graph_of(self, op: str) -> str:
        found = self._names.ops.get(op)
        return found.graph if found is not None else ""

    def _ops_in(self, node: Node | None) -> list[str]:
        return [which.name for which in _tensors(node) if self._is_op(which)]

    def _is_op(self, which: Tensor) -> bool:
        return which.kind == "op" or (which.kind == "" and which.name in self._names.ops)

    def _queues_in(self, node: Node | None) -> list[str]:
        return [self._names.queue(which.name).name for which in _tensors(node) if not self._is_op(which)]

    def stops_at_inputs(self, topo: Topology) -> bool:
        touched = {*topo.reads, *topo.writes, *topo.local}
        for item in self.enabled:
            if item.kind in ("pointer", "wrap", "watch") and item.name in touched:
                return True
            if item.kind == "if" and (item.last is not None or touched.intersection(self._queues_in(item.condition))):
                return True
        return False

    # --------------------------------------------------------------------------------------- does one stop
    def hits(self, engine: Steps, now: Moment) -> tuple[tuple[int, ...], str]:
        before = [(item, item.last) for item in self.enabled]
        try:
            found = [(item, text) for item, _ in before if (text := self._told(item, engine, now)) is not None]
        except StoppedShortError:  # this moment is going to be asked for again
            for item, last in before:
                item.last = last
            raise
        numbers: list[int] = []
        texts: list[str] = []
        for item, text in found:
            if self.counting:
                item.hits += 1
                if item.ignore:
                    item.ignore -= 1
                    continue
                if item.log:
                    self.on_log(self._logged(item, engine, now))
            if item.log:
                continue
            numbers.append(item.number)
            texts.append(text)
        return tuple(numbers), "; ".join(texts)

    def _logged(self, item: Breakpoint, engine: Steps, now: Moment) -> str:
        scope = self._scope(engine, now)
        return told(item.log, lambda node: evaluate(node, scope), lambda which: summary(scope.find(which, False)))

    def _told(self, item: Breakpoint, engine: Steps, now: Moment) -> str | None:
        """In words, where it hits and its condition holds or cannot be told; else None."""
        text = self._hit(item, engine, now)
        if text is None or item.kind == "if" or item.condition is None:
            return text
        try:
            return text if evaluate(item.condition, self._scope(engine, now)) else None
        except StoppedShortError:
            raise
        except HostError as error:
            return f"{text}; its condition: {error}"

    def _hit(self, item: Breakpoint, engine: Steps, now: Moment) -> str | None:
        """In words, or None."""
        place = now.position
        match item.kind:
            case "instruction":
                here = now.event == "instruction" and now.program == item.name and now.index == item.index
                return item.text if here else None
            case "op":
                op = engine.op_now
                return item.text if now.event == "op" and op is not None and op.name == item.name else None
            case "graph":
                first = now.event == "op" and place.input == 0 and place.step == 0
                return item.text if first and item.name in engine.graphs else None
            case "input":
                first = now.event == "op" and place.input == item.index - 1 and place.step == 0
                return item.text if first and (not item.name or item.name in engine.graphs) else None
            case "pointer" | "wrap" | "watch":
                return self._moved(item, engine, now)
            case "nan" | "inf":
                return self._not_finite(engine, now, item.kind)
            case "if":
                return self._holds(item, engine, now)

    def _moved(self, item: Breakpoint, engine: Steps, now: Moment) -> str | None:
        if now.event not in ("instruction", "stored"):
            return None
        before = item.last
        values = pointers_of(engine.channels[item.name])
        item.last = values
        if item.kind == "watch" and now.event == "stored":
            chunk = next(engine.log.latest())
            slots = chunk.writes.get(item.name)
            if slots:
                return f"{item.name}[{slots[-1]}] was written by op {engine.netlist.queues[item.name].input}"
        if before is None or before == values:
            return None
        moved = f"{item.name}: {_pointer_names(before)} -> {_pointer_names(values)}"
        if item.kind == "wrap":
            return moved if any(new < old for old, new in zip(before, values, strict=True)) else None
        if item.kind == "pointer" and item.index >= 0:
            reached = any(new == item.index != old for old, new in zip(before, values, strict=True))
            return moved if reached else None
        return moved

    def _not_finite(self, engine: Steps, now: Moment, kind: str) -> str | None:
        """NaN in the result of the op that has run; of kind "inf" infinities, too."""
        op = engine.op_now
        if now.event != "result" or op is None or op.name not in engine.values:
            return None
        count = int(OF_TENSOR["nan"][1](engine.values[op.name]))
        if count or kind == "nan":
            return f"op {op.name} gave {count} NaN" if count else None
        count = int(OF_TENSOR["inf"][1](engine.values[op.name]))
        return f"op {op.name} gave {plural(count, 'infinity')}" if count else None

    def _holds(self, item: Breakpoint, engine: Steps, now: Moment) -> str | None:
        """A condition of its own: of tensors when one of them is new, of pointers and variables when it becomes so."""
        if item.condition is None:
            return None
        tensors = [which for which in _tensors(item.condition) if not _is_pointer(item.condition, which)]
        if tensors and not self._is_new(tensors, engine, now):
            return None
        if not tensors and now.event not in ("instruction", "stored"):
            return None
        try:
            value = bool(evaluate(item.condition, self._scope(engine, now)))
        except StoppedShortError:
            raise
        except HostError as error:
            if tensors:
                return f"{item.text}: {error}"
            item.last = False  # a variable that is not declared yet
            return None
        if tensors:
            return f"{item.condition_text} holds" if value else None
        before = item.last
        item.last = value
        return f"{item.condition_text} holds now" if value and before is False else None

    def _is_new(self, tensors: Sequence[Tensor], engine: Steps, now: Moment) -> bool:
        """Is one of them from the step that has just been done, and are all of them there?"""
        ops = {which.name for which in tensors if self._is_op(which)}
        if not ops <= engine.values.keys():
            return False
        if now.event == "result":
            return engine.op_now is not None and engine.op_now.name in ops
        if now.event != "stored" or ops:
            return False
        chunk = next(engine.log.latest())
        return any(self._names.queue(which.name).name in chunk.writes for which in tensors)


def _tensors(node: Node | None) -> list[Tensor]:
    if node is None:
        return []
    return [item for call in calls(node) for item in call.arguments if isinstance(item, Tensor)]


def _is_pointer(node: Node, which: Tensor) -> bool:
    return any(call.name in OF_POINTERS and which in call.arguments for call in calls(node))


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
