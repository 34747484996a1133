"""The names that a user may give: queues and ops of the netlist, inputs and outputs of a compiled model, nodes of the
model that ops were made from, and lines of the text.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from buda_emu.netlist.model import Instruction, Netlist, Op, Queue
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.emulator.image.device_image import DeviceImage

_NOTE: Final = "#"


@dataclass(frozen=True, slots=True)
class AtLine:
    """What a line of the netlist is about; `line` is where that begins."""

    line: int
    kind: Literal["instruction", "op", "queue", "graph"]
    name: str  # of the op, queue or graph; of an instruction its program
    index: int = -1  # of the instruction


class Names:
    """Of one netlist; `image`: the one that it is of."""

    def __init__(self, netlist: Netlist, image: "DeviceImage | None") -> None:
        self.netlist = netlist
        self.ops: Mapping[str, Op] = netlist.ops
        self._image = image

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The netlist's text; empty where its file is gone."""
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
        """Queue by the name that the model gives to an input or output."""
        model = self._image.model if self._image is not None else None
        if model is None:
            return {}
        pairs = [(item.label, item.queue) for item in (*model.inputs, *model.outputs)]
        return {label: queue for label, queue in reversed(pairs) if queue in self.netlist.queues}

    @cached_property
    def nodes(self) -> Mapping[str, str]:
        """By op the nodes of the model that it was made of, as the compiler wrote them above the op."""
        found: dict[str, str] = {}
        if self._image is None or self._image.model is None:
            return found
        lines = self.lines
        for graph in self.netlist.graphs.values():
            note = ""
            for op in graph.ops:
                above = op.at().line - 2
                if 0 <= above < len(lines) and lines[above].lstrip().startswith(_NOTE):
                    note = lines[above].lstrip().removeprefix(_NOTE).strip()
                found[op.name] = note
        return found

    def ops_of_node(self, node: str) -> list[Op]:
        """Those that were made of a node of the model."""
        return [self.ops[name] for name, note in self.nodes.items() if node in note.split(", ")]

    def queue(self, name: str) -> Queue:
        """By its name, or the model's. Raises HostError that names the nearest."""
        found = self.netlist.queues.get(name) or self.netlist.queues.get(self.labels.get(name, ""))
        if found is None:
            raise HostError(f"no queue {name!r}{self._hint(name, (*self.netlist.queues, *self.labels))}")
        return found

    def op(self, name: str) -> Op:
        """Raises HostError that names the nearest."""
        found = self.ops.get(name)
        if found is None:
            raise HostError(f"no op {name!r}{self._hint(name, self.ops)}")
        return found

    def either(self, name: str) -> Queue | Op:
        """A queue, else an op. Raises HostError that names the nearest of both."""
        queue = self.netlist.queues.get(name) or self.netlist.queues.get(self.labels.get(name, ""))
        found = queue or self.ops.get(name)
        if found is None:
            known = (*self.netlist.queues, *self.labels, *self.ops)
            raise HostError(f"no queue or op {name!r}{self._hint(name, known)}")
        return found

    def shown(self, queue: str) -> str:
        """A queue's name, with the model's where it has one."""
        label = next((label for label, name in self.labels.items() if name == queue), "")
        return f"{queue} ({label})" if label and label != queue else queue

    def at_line(self, line: int) -> AtLine:
        """What a line belongs to, else the next thing below it. Raises HostError where there is none."""
        if self.lines and line > len(self.lines):
            raise HostError(f"nothing to stop at on line {line}: the netlist has {len(self.lines)} lines")
        begun = [item for item in self._places if item.line <= line]
        if begun and not self._between(begun[-1].line, line):
            return begun[-1]
        below = next((item for item in self._places if item.line > line), None)
        if below is None:
            raise HostError(f"nothing to stop at on line {line} or below it")
        return below

    def _between(self, begun: int, line: int) -> bool:
        """Is the line a comment, or blank? Then it belongs to what follows."""
        if line == begun or not self.lines:
            return False
        text = self.lines[line - 1].strip()
        return not text or text.startswith(_NOTE)

    @cached_property
    def _places(self) -> list[AtLine]:
        netlist = self.netlist
        found = [AtLine(queue.at().line, "queue", queue.name) for queue in netlist.queues.values()]
        found += [AtLine(graph.at().line, "graph", graph.name) for graph in netlist.graphs.values()]
        found += [AtLine(op.at().line, "op", op.name) for op in self.ops.values()]
        found += [
            AtLine(line_of(instruction), "instruction", program.name, index)
            for program in netlist.programs.values()
            for index, instruction in enumerate(program.instructions)
        ]
        return sorted(found, key=lambda item: item.line)

    @staticmethod
    def _hint(name: str, known: "tuple[str, ...] | Mapping[str, object]") -> str:
        hint = near(name, known)
        return f" ({hint})" if hint else ""


def line_of(instruction: Instruction) -> int:
    """Where it stands in the netlist."""
    return instruction.at().line
