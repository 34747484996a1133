"""Breakpoints, watches and log points: parsing of where they are set, and the tests that decide whether they hit."""

import re
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, Final, Literal

from buda_emu.app.debugger.expressions import (
    POINTER_FUNCTIONS,
    TENSOR_FUNCTIONS,
    Node,
    Pieces,
    Tensor,
    calls_in,
    evaluate,
    format_pieces,
)
from buda_emu.app.debugger.lookup import MomentScope
from buda_emu.app.debugger.machine.engine import Engine
from buda_emu.app.debugger.machine.steps import Steps
from buda_emu.app.debugger.machine.stop import Moment, StoppedShortError
from buda_emu.app.debugger.names import Names, describe_instruction, line_of
from buda_emu.app.debugger.tensors import summary
from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.runtime.graph.steps import Topology
from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass

Kind = Literal["instruction", "op", "graph", "input", "pointer", "wrap", "watch", "if", "nan", "inf"]
Pointers = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Breakpoint:
    """A breakpoint, watch or log point, and its counts.

    `name` is that of the program, op, graph or queue; `index` is the instruction, the input (from 1) or the pointer's
    value, and -1 means any. `condition` must hold for a hit. `ignore` counts the hits that are still passed over. `log`
    is the text of a log point, whose hits print it and stop nothing.
    """

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
    last: Any = field(default=None, repr=False)  # pointers or truth of the condition at the previous event

    def __repr__(self) -> str:
        return f"<Breakpoint {self.number}: {self.text}, {plural(self.hits, 'hit')}>"

    def as_json(self) -> dict[str, Any]:
        """Return the breakpoint as plain data."""
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
        """Return the line of the netlist where the breakpoint's instruction, op, graph or queue stands; 0 for kinds
        without a place."""
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
    """Return the global read and global write pointers of a ram, and for a queue also its local read pointer."""
    if isinstance(channel, Ram):
        return channel.rd, channel.wr
    return channel.ring.rd, channel.ring.wr, channel.ring.local


def _pointer_names(values: Pointers) -> str:
    """Return pointers with their names as text."""
    names = ("rd_ptr_global", "wr_ptr_global", "rd_ptr_local")
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=False))


class BreakpointSet:
    """All breakpoints of a session, by number; implements `steps.BreakpointTests`. `scope` resolves names for a moment
    of a machine."""

    def __init__(self, names: Names, scope: Callable[[Steps, Moment], MomentScope]) -> None:
        self._names = names
        self._scope = scope
        self._next = 1
        self.items: dict[int, Breakpoint] = {}
        self.counting = True  # False while hits do not count and ignore counts stay
        self.on_log: Callable[[str], None] = lambda _: None  # receives the texts of log points, on the run's thread

    def add(self, kind: Kind, text: str, **fields: Any) -> Breakpoint:
        """Add a breakpoint under the next number and return it; `fields` are further fields of `Breakpoint`."""
        point = Breakpoint(self._next, kind, text, **fields)
        self.items[point.number] = point
        self._next += 1
        return point

    def get(self, number: int) -> Breakpoint:
        """Return the breakpoint of this number. Raises HostError that lists the numbers in use where there is none."""
        if number not in self.items:
            numbers = ", ".join(map(str, self.items)) or "none"
            raise HostError(f"no breakpoint {number}; there are: {numbers}")
        return self.items[number]

    @property
    def enabled(self) -> list[Breakpoint]:
        """The breakpoints that are not disabled."""
        return [point for point in self.items.values() if point.enabled]

    def forget(self) -> None:
        """Clear what each breakpoint saw at the previous event, when the run jumps, so that no change across the jump
        is a hit."""
        for point in self.items.values():
            point.last = None

    # -------------------------------------------------------------------------- how closely the run is watched
    def stops_at_ops(self, graphs: Sequence[str]) -> bool:
        """Return whether an enabled breakpoint has to be tested at single ops of these graphs; if not, the engine may
        run an input as a whole."""
        return any(self._may_stop_at_ops(point, graphs) for point in self.enabled)

    def _may_stop_at_ops(self, point: Breakpoint, graphs: Sequence[str]) -> bool:
        """Return whether the breakpoint has to be tested at single ops of these graphs."""
        match point.kind:
            case "op":
                return self._graph_of(point.name) in graphs
            case "graph":
                return point.name in graphs
            case "input" | "nan" | "inf":
                return True
            case "if":
                return any(self._graph_of(name) in graphs for name in self._ops_in(point.condition))
            case _:
                return False

    def _graph_of(self, name: str) -> str:
        """Return the graph of an op, or "" where no op has the name."""
        op = self._names.ops.get(name)
        return op.graph if op is not None else ""

    def _ops_in(self, node: Node | None) -> list[str]:
        """Return the names of the ops whose results an expression reads."""
        return [reference.name for reference in _tensors_in(node) if self._is_op(reference)]

    def _is_op(self, reference: Tensor) -> bool:
        """Return whether a reference names an op."""
        return reference.kind == "op" or (reference.kind == "" and reference.name in self._names.ops)

    def _queues_in(self, node: Node | None) -> list[str]:
        """Return the netlist names of the queues and rams that an expression reads."""
        return [self._names.queue(reference.name).name for reference in _tensors_in(node) if not self._is_op(reference)]

    def stops_at_inputs(self, topo: Topology) -> bool:
        """Return whether an enabled breakpoint has to be tested after each input of this epoch; if not, the engine may
        run it as a whole."""
        touched = {*topo.reads, *topo.writes, *topo.local}
        for point in self.enabled:
            if point.kind in ("pointer", "wrap", "watch") and point.name in touched:
                return True
            if point.kind == "if" and (
                point.last is not None or touched.intersection(self._queues_in(point.condition))
            ):
                return True
        return False

    # ------------------------------------------------------------------------------------- tests at a moment
    def hits(self, engine: Steps, moment: Moment) -> tuple[tuple[int, ...], str]:
        """Test the enabled breakpoints at this moment. Count the hits and print the texts of log points, and return the
        numbers of the breakpoints that stop the run, with the text of what happened; () and "" if none does. Hits that
        are still ignored stop nothing. Raises StoppedShortError if an interrupt ends the evaluation of a condition;
        nothing is counted then."""
        before = [(point, point.last) for point in self.enabled]
        try:
            hit_points = [
                (point, text) for point, _ in before if (text := self._describe_stop(point, engine, moment)) is not None
            ]
        except StoppedShortError:  # the hits of this moment are going to be asked for again
            for point, last in before:
                point.last = last
            raise
        numbers: list[int] = []
        texts: list[str] = []
        for point, text in hit_points:
            if self.counting:
                point.hits += 1
                if point.ignore:
                    point.ignore -= 1
                    continue
                if point.log:
                    self.on_log(self._log_message(point, engine, moment))
            if point.log:
                continue
            numbers.append(point.number)
            texts.append(text)
        return tuple(numbers), "; ".join(texts)

    def _log_message(self, point: Breakpoint, engine: Steps, moment: Moment) -> str:
        """Return the text of a log point with the values of its expressions filled in."""
        scope = self._scope(engine, moment)
        return format_pieces(
            point.log, lambda node: evaluate(node, scope), lambda reference: summary(scope.find(reference, False))
        )

    def _describe_stop(self, point: Breakpoint, engine: Steps, moment: Moment) -> str | None:
        """Return what happened where the breakpoint hits and its condition holds, else None. A condition that cannot be
        evaluated counts as a hit, and the text says why."""
        text = self._describe_hit(point, engine, moment)
        if text is None or point.kind == "if" or point.condition is None:
            return text
        try:
            holds = evaluate(point.condition, self._scope(engine, moment))
        except StoppedShortError:
            raise
        except HostError as error:
            return f"{text}; its condition: {error}"
        return text if holds else None

    def _describe_hit(self, point: Breakpoint, engine: Steps, moment: Moment) -> str | None:
        """Return what happened where the breakpoint hits, whatever its condition says, else None."""
        match point.kind:
            case "instruction" | "op" | "graph" | "input":
                return point.text if _stands_at(point, engine, moment) else None
            case "pointer" | "wrap" | "watch":
                return self._describe_move(point, engine, moment)
            case "nan" | "inf":
                return self._describe_non_finite(engine, moment, point.kind)
            case "if":
                return self._describe_condition(point, engine, moment)

    def _describe_move(self, point: Breakpoint, engine: Steps, moment: Moment) -> str | None:
        """Return text on a breakpoint of a queue's pointers or entries: which entry was written, or how the pointers
        moved since the previous event. None if neither is what it waits for. Remembers the pointers for the next
        event."""
        if moment.event not in ("instruction", "stored"):
            return None
        before = point.last
        values = pointers_of(engine.channels[point.name])
        point.last = values
        if point.kind == "watch" and moment.event == "stored":
            slots = next(engine.log.latest()).writes.get(point.name)
            if slots:
                return f"{point.name}[{slots[-1]}] was written by op {engine.netlist.queues[point.name].input}"
        if before is None or before == values or not _is_awaited_move(point, before, values):
            return None
        return f"{point.name}: {_pointer_names(before)} -> {_pointer_names(values)}"

    def _describe_non_finite(self, engine: Steps, moment: Moment, kind: str) -> str | None:
        """Return how many NaN the op that has just run gave, with kind "inf" also how many infinities; None where there
        are none."""
        op = engine.op_now
        if moment.event != "result" or op is None or op.name not in engine.values:
            return None
        tiles = engine.values[op.name]
        nan_count = int(TENSOR_FUNCTIONS["nan"][1](tiles))
        if nan_count:
            return f"op {op.name} gave {nan_count} NaN"
        if kind == "nan":
            return None
        infinity_count = int(TENSOR_FUNCTIONS["inf"][1](tiles))
        return f"op {op.name} gave {plural(infinity_count, 'infinity')}" if infinity_count else None

    def _describe_condition(self, point: Breakpoint, engine: Steps, moment: Moment) -> str | None:
        """Test a breakpoint that consists of a condition alone, and return text if it hits, else None. A condition on
        tensors is tested when one of them is new; one on pointers and variables hits when it changes from false to
        true."""
        condition = point.condition
        if condition is None:
            return None
        tensors = [reference for reference in _tensors_in(condition) if not _is_pointer_argument(condition, reference)]
        if tensors:
            return self._describe_tensor_condition(point, tensors, engine, moment)
        if moment.event not in ("instruction", "stored"):
            return None
        try:
            holds = bool(evaluate(condition, self._scope(engine, moment)))
        except StoppedShortError:
            raise
        except HostError:
            point.last = False  # a variable that is not declared yet
            return None
        before = point.last
        point.last = holds
        return f"{point.condition_text} holds now" if holds and before is False else None

    def _describe_tensor_condition(
        self, point: Breakpoint, tensors: Sequence[Tensor], engine: Steps, moment: Moment
    ) -> str | None:
        """Test a condition on these tensors if one of them is new, and return text if it holds, else None. A condition
        that cannot be evaluated counts as a hit, and the text says why."""
        if point.condition is None or not self._has_new_operand(tensors, engine, moment):
            return None
        try:
            holds = evaluate(point.condition, self._scope(engine, moment))
        except StoppedShortError:
            raise
        except HostError as error:
            return f"{point.text}: {error}"
        return f"{point.condition_text} holds" if holds else None

    def _has_new_operand(self, tensors: Sequence[Tensor], engine: Steps, moment: Moment) -> bool:
        """Return whether one of the tensors comes from the step that has just been done, while the values of all ops
        among them exist."""
        ops = {reference.name for reference in tensors if self._is_op(reference)}
        if not ops <= engine.values.keys():
            return False
        if moment.event == "result":
            return engine.op_now is not None and engine.op_now.name in ops
        if moment.event != "stored" or ops:
            return False
        chunk = next(engine.log.latest())
        return any(self._names.queue(reference.name).name in chunk.writes for reference in tensors)


def _stands_at(point: Breakpoint, engine: Steps, moment: Moment) -> bool:
    """Return whether the run is at the instruction, op, or beginning of an input that the breakpoint names."""
    if point.kind == "instruction":
        return moment.event == "instruction" and moment.program == point.name and moment.index == point.index
    if moment.event != "op":
        return False
    if point.kind == "op":
        return engine.op_now is not None and engine.op_now.name == point.name
    if moment.position.step != 0:
        return False
    if point.kind == "graph":
        return moment.position.input == 0 and point.name in engine.graphs
    return moment.position.input == point.index - 1 and (not point.name or point.name in engine.graphs)


def _is_awaited_move(point: Breakpoint, before: Pointers, values: Pointers) -> bool:
    """Return whether the pointers moved in the way that the breakpoint waits for: one of them backwards for "wrap", one
    of them to the breakpoint's value for a "pointer" with a value, in any way for other kinds."""
    pairs = list(zip(before, values, strict=True))
    if point.kind == "wrap":
        return any(new < old for old, new in pairs)
    if point.kind == "pointer" and point.index >= 0:
        return any(new == point.index != old for old, new in pairs)
    return True


def _tensors_in(node: Node | None) -> list[Tensor]:
    """Return the references to tensors in an expression, those in functions of pointers included."""
    if node is None:
        return []
    tensors: list[Tensor] = []
    for call in calls_in(node):
        tensors += [argument for argument in call.arguments if isinstance(argument, Tensor)]
    return tensors


def _is_pointer_argument(node: Node, reference: Tensor) -> bool:
    """Return whether a reference stands in a function of pointers, which reads no tensor."""
    return any(call.name in POINTER_FUNCTIONS and reference in call.arguments for call in calls_in(node))


WORDS: Final = ("op", "graph", "line", "instruction", "input", "pointer", "wrap", "queue", "node", "nan", "inf")

_MAX_DIGITS = 9  # so that any number fits 32 bits


@dataclass(frozen=True, slots=True)
class BreakLocation:
    """The fields of a `Breakpoint` that say where it stops."""

    kind: Kind
    text: str
    name: str = ""
    index: int = -1


def locate(text: str, names: Names, engine: Engine) -> BreakLocation:
    """Parse where a breakpoint is to stop: a line, PROGRAM:INSTRUCTION, a name, or a word of `WORDS` with its
    arguments. Raises HostError that suggests what was probably meant."""
    words = text.split()
    first = next(iter(words), "")
    if first in WORDS and (len(words) > 1 or first in ("nan", "inf")):
        return _locate_by_kind(first, words[1:], names, engine)
    if len(words) > 1:
        raise HostError(f"break {text}: the first word is one of {', '.join(WORDS)}, or it is the only word")
    if first.isdecimal():
        return _locate_line(_parse_number(first, "a line"), names)
    numbered = re.fullmatch(r"(.+):(\d+)", first)
    if numbered is not None and (numbered[1] in names.netlist.programs or numbered[1] == names.netlist.path):
        number = _parse_number(numbered[2], "a line or instruction")
        if numbered[1] in names.netlist.programs:
            return _locate_instruction(numbered[1], number, names)
        return _locate_line(number, names)
    name = first.removeprefix("op:").strip("'")
    location = _locate_name(name, names)
    if location is None:
        candidates = (*names.ops, *names.netlist.graphs, *names.netlist.programs, *names.netlist.queues, *WORDS)
        hint = hint_in_parentheses(name, candidates)
        raise HostError(f"break {text}: no line, op, graph, program or queue {name!r}{hint}")
    return location


def _locate_name(name: str, names: Names) -> BreakLocation | None:
    """Return the location of the op, graph, program or queue of this name, in this order; None where there is none."""
    if name in names.ops:
        return _locate_op(name, names)
    if name in names.netlist.graphs:
        return BreakLocation("graph", f"graph {name}", name)
    if name in names.netlist.programs:
        return _locate_instruction(name, 0, names)
    if name in names.netlist.queues or name in names.labels:
        queue = names.queue(name).name
        return BreakLocation("watch", f"queue {queue}", queue)
    return None


def _locate_by_kind(kind: str, words: list[str], names: Names, engine: Engine) -> BreakLocation:
    """Return the location that one of `WORDS` and the words after it name. Raises HostError for arguments that name
    nothing."""
    argument = next(iter(words), "")
    match kind:
        case "op":
            return _locate_op(argument.strip("'"), names)
        case "line":
            return _locate_line(_parse_number(argument, "a line"), names)
        case "graph":
            return _locate_graph(argument, names)
        case "instruction":
            if len(words) > 1:
                return _locate_instruction(argument, _parse_number(words[1], "an instruction"), names)
            program = engine.program or next(iter(names.netlist.programs))
            return _locate_instruction(program, _parse_number(argument, "an instruction"), names)
        case "input":
            return _locate_input(words, names)
        case "node":
            return _locate_node(" ".join(words), names)
        case "nan":
            return BreakLocation("nan", "a NaN in any op's result")
        case "inf":
            return BreakLocation("inf", "an infinity or NaN in any op's result")
        case _:
            return _locate_pointer(kind, words, names)


def _locate_graph(name: str, names: Names) -> BreakLocation:
    """Return the location where a graph begins. Raises HostError that suggests the nearest name."""
    if name not in names.netlist.graphs:
        raise HostError(f"no graph {name!r}{hint_in_parentheses(name, names.netlist.graphs)}")
    return BreakLocation("graph", f"graph {name}", name)


def _locate_input(words: list[str], names: Names) -> BreakLocation:
    """Return the location of `N [GRAPH]`: where input N (from 1) begins in the epoch of the graph, or in any epoch.
    Raises HostError."""
    number = _parse_number(next(iter(words), ""), "an input, from 1,")
    if number < 1:
        raise HostError("inputs of an epoch are counted from 1")
    if len(words) < 2:
        return BreakLocation("input", f"input {number}", "", number)
    graph = words[1]
    if graph not in names.netlist.graphs:
        raise HostError(f"no graph {graph!r}")
    return BreakLocation("input", f"input {number} of {graph}", graph, number)


def _locate_pointer(kind: str, words: list[str], names: Names) -> BreakLocation:
    """Return the location of `QUEUE [VALUE]` for the words "pointer", "wrap" and "queue": a move of the queue's
    pointers, with a value a move to it; "wrap" takes no value. Raises HostError."""
    name = names.queue(next(iter(words), "")).name
    if kind == "wrap":
        return BreakLocation("wrap", f"wrap of {name}", name)
    if len(words) < 2:
        return BreakLocation("pointer", f"pointer of {name}", name)
    value = _parse_number(words[1], "a pointer")
    return BreakLocation("pointer", f"pointer of {name} at {value}", name, value)


def _parse_number(text: str, meaning: str) -> int:
    """Parse a number of at most `_MAX_DIGITS` digits; `meaning` names it in the error. Raises HostError."""
    if not text.isdecimal() or len(text) > _MAX_DIGITS:
        raise HostError(f"{meaning} is a number of at most {_MAX_DIGITS} digits, not {text[:40]!r}")
    return int(text)


def _locate_op(name: str, names: Names) -> BreakLocation:
    """Return the location of an op. Raises HostError that suggests the nearest name."""
    op = names.op(name)
    return BreakLocation("op", f"op {op.name} ({op.type}, line {op.at().line})", op.name)


def _locate_node(node: str, names: Names) -> BreakLocation:
    """Return the location of the first op that the compiler made from a node of the model. Raises HostError if there is
    none."""
    ops = names.ops_of_node(node)
    if not ops:
        candidates: dict[str, None] = {}
        for note in names.nodes.values():
            candidates |= dict.fromkeys(note.split(", "))
        raise HostError(f"no op was made of a node {node!r}{hint_in_parentheses(node, candidates)}")
    return BreakLocation("op", f"node {node}, op {ops[0].name}", ops[0].name)


def _locate_instruction(program: str, index: int, names: Names) -> BreakLocation:
    """Return the location of an instruction by the number in its program. Raises HostError."""
    body = names.netlist.programs.get(program)
    if body is None:
        raise HostError(f"no program {program!r}{hint_in_parentheses(program, names.netlist.programs)}")
    if index >= len(body.instructions):
        raise HostError(f"program {program} has instructions 0..{len(body.instructions) - 1}, not {index}")
    instruction = body.instructions[index]
    text = f"{program} instruction {index}, line {instruction.at().line}: {describe_instruction(instruction)}"
    return BreakLocation("instruction", text, program, index)


def _locate_line(line: int, names: Names) -> BreakLocation:
    """Return the location of the instruction, op, graph or queue on a line, or else on the next line below that has
    one, which the text then says."""
    target = names.at_line(line)
    match target.kind:
        case "instruction":
            location = _locate_instruction(target.name, target.index, names)
        case "op":
            location = _locate_op(target.name, names)
        case "graph":
            location = BreakLocation("graph", f"graph {target.name} (line {target.line})", target.name)
        case "queue":
            location = BreakLocation("watch", f"queue {target.name} (line {target.line})", target.name)
    if target.line == line:
        return location
    return replace(location, text=f"{location.text} (line {target.line}, the next that runs)")
