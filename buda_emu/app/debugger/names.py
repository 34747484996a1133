"""Resolution of the names that a user may type: queues and ops of the netlist, inputs and outputs of a compiled model,
nodes of the model that ops were made from, and lines of the text."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from buda_emu.netlist.model import Execute, Instruction, Netlist, Op, Queue
from buda_emu.netlist.program.settings import instruction_text
from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.emulator.image.device_image import DeviceImage

_NOTE: Final = "#"


@dataclass(frozen=True, slots=True)
class LineTarget:
    """The part of the netlist that a line belongs to; `line` is where the part begins."""

    line: int
    kind: Literal["instruction", "op", "queue", "graph"]
    name: str  # of the op, queue or graph; for an instruction that of its program
    index: int = -1  # of the instruction


class Names:
    """The names of one netlist; `image` is the device image that it was read from, if any."""

    def __init__(self, netlist: Netlist, image: "DeviceImage | None") -> None:
        self.netlist = netlist
        self.ops: Mapping[str, Op] = netlist.ops
        self._image = image

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines of the netlist's text; empty where its file no longer exists."""
        if self._image is not None:
            text = self._image.netlist_text()
        else:
            try:
                with open(self.netlist.path, "rb") as file:  # noqa: PTH123 - pathlib is not imported for this
                    text = file.read()
            except OSError:
                return ()
        return tuple(text.decode("utf-8", "replace").splitlines())

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The queue name for each name that the model gives to an input or output."""
        if self._image is None or self._image.model is None:
            return {}
        model = self._image.model
        pairs = [(binding.label, binding.queue) for binding in (*model.inputs, *model.outputs)]
        return {label: queue for label, queue in reversed(pairs) if queue in self.netlist.queues}

    @cached_property
    def nodes(self) -> Mapping[str, str]:
        """For each op the nodes of the model that it was made from, in the words of the comment that the compiler wrote
        above the op."""
        notes: dict[str, str] = {}
        if self._image is None or self._image.model is None:
            return notes
        lines = self.lines
        for graph in self.netlist.graphs.values():
            note = ""
            for op in graph.ops:
                above = op.at().line - 2
                if 0 <= above < len(lines) and lines[above].lstrip().startswith(_NOTE):
                    note = lines[above].lstrip().removeprefix(_NOTE).strip()
                notes[op.name] = note
        return notes

    def ops_of_node(self, node: str) -> list[Op]:
        """Return the ops that were made from a node of the model."""
        return [self.ops[name] for name, note in self.nodes.items() if node in note.split(", ")]

    def queue(self, name: str) -> Queue:
        """Return a queue by its own name or by the model's name for it. Raises HostError that suggests the nearest
        name."""
        queue = self.netlist.queues.get(name) or self.netlist.queues.get(self.labels.get(name, ""))
        if queue is None:
            raise HostError(f"no queue {name!r}{hint_in_parentheses(name, (*self.netlist.queues, *self.labels))}")
        return queue

    def op(self, name: str) -> Op:
        """Return an op by name. Raises HostError that suggests the nearest name."""
        op = self.ops.get(name)
        if op is None:
            raise HostError(f"no op {name!r}{hint_in_parentheses(name, self.ops)}")
        return op

    def queue_or_op(self, name: str) -> Queue | Op:
        """Return the queue of this name, else the op. Raises HostError that suggests the nearest name of both kinds."""
        queue = self.netlist.queues.get(name) or self.netlist.queues.get(self.labels.get(name, ""))
        source = queue or self.ops.get(name)
        if source is None:
            candidates = (*self.netlist.queues, *self.labels, *self.ops)
            raise HostError(f"no queue or op {name!r}{hint_in_parentheses(name, candidates)}")
        return source

    def resolve(self, kind: Literal["", "op", "queue"], name: str) -> Queue | Op:
        """Return the op or queue of this name; with kind "" the queue if there is one, else the op. Raises
        HostError."""
        if kind == "op":
            return self.op(name)
        if kind == "queue":
            return self.queue(name)
        return self.queue_or_op(name)

    def display_name(self, queue: str) -> str:
        """Return a queue's name, followed by the model's name for it if that differs."""
        label = next((label for label, name in self.labels.items() if name == queue), "")
        if label in ("", queue):
            return queue
        return f"{queue} ({label})"

    def at_line(self, line: int) -> LineTarget:
        """Return the part of the netlist that a line belongs to; for a comment or blank line, the next part below it.
        Raises HostError if there is none, and for a line beyond the end."""
        if self.lines and line > len(self.lines):
            raise HostError(f"nothing to stop at on line {line}: the netlist has {len(self.lines)} lines")
        started = [target for target in self._line_targets if target.line <= line]
        if started and not self._is_gap(started[-1].line, line):
            return started[-1]
        below = next((target for target in self._line_targets if target.line > line), None)
        if below is None:
            raise HostError(f"nothing to stop at on line {line} or below it")
        return below

    def _is_gap(self, start: int, line: int) -> bool:
        """Return whether a line after `start`, where a part begins, is blank or a comment, so that it belongs to the
        next part."""
        if line == start or not self.lines:
            return False
        text = self.lines[line - 1].strip()
        return not text or text.startswith(_NOTE)

    @cached_property
    def _line_targets(self) -> list[LineTarget]:
        """All parts of the netlist that a line can belong to, in the order of their lines."""
        netlist = self.netlist
        targets = [LineTarget(queue.at().line, "queue", queue.name) for queue in netlist.queues.values()]
        targets += [LineTarget(graph.at().line, "graph", graph.name) for graph in netlist.graphs.values()]
        targets += [LineTarget(op.at().line, "op", op.name) for op in self.ops.values()]
        for program in netlist.programs.values():
            for index, instruction in enumerate(program.instructions):
                targets.append(LineTarget(line_of(instruction), "instruction", program.name, index))
        return sorted(targets, key=lambda target: target.line)


def line_of(instruction: Instruction) -> int:
    """Return the line of an instruction in the netlist."""
    return instruction.at().line


def describe_instruction(instruction: Instruction) -> str:
    """Return an instruction as text; of an execute only the graph, without its queue settings."""
    if isinstance(instruction, Execute):
        return f"execute {instruction.graph}"
    return instruction_text(instruction)
