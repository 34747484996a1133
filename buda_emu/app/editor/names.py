"""The names in a netlist's tree, with the places where they are defined and used."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from buda_emu.netlist.fields import GRAPH_FIELDS, SETTING_FIELDS
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.spec.varinst import is_variable, stored_name
from buda_emu.support.records import dataclass

Kind = Literal["queue", "op", "graph", "fused op", "program", "variable"]
_SOURCES: Final = ("queue", "op")


@dataclass(frozen=True, slots=True)
class Name:
    """A name at one place: lines and columns count from 1, `end` is one past its last character. `scope` is the
    program of a variable, `body` the node that a definition defines."""

    kind: Kind
    text: str
    line: int
    column: int
    end: int
    defines: bool
    scope: str = ""
    body: Node | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """A key that is equal for all places of the same object."""
        return self.kind, stored_name(self.text) if self.kind == "variable" else self.text, self.scope


def _text_order(name: Name) -> tuple[int, int, bool]:
    """Return the sort key that puts names in the order of the text, a definition before a use at the same place."""
    return name.line, name.column, not name.defines


class Names:
    """All names of one tree, in the order in which they stand."""

    def __init__(self, root: Mapping) -> None:
        self._queues: dict[str, Name] = {}
        self._ops: dict[str, Name] = {}
        self.all: list[Name] = []
        definitions = [*_definitions(root)]
        for name in definitions:
            if name.kind == "queue":
                self._queues.setdefault(name.text, name)
            elif name.kind == "op":
                self._ops.setdefault(name.text, name)
        seen: set[tuple[int, int]] = set()
        for name in sorted((*definitions, *self._uses(root)), key=_text_order):
            if (name.line, name.column) not in seen:  # an alias of YAML repeats a name without another place
                seen.add((name.line, name.column))
                self.all.append(name)
        self.by_key: dict[tuple[str, str, str], list[Name]] = {}
        for name in self.all:
            self.by_key.setdefault(name.key, []).append(name)

    def at(self, line: int, column: int) -> Name | None:
        """Return the name at a place, or one that ends just before it; None if there is none."""
        return next((name for name in self.all if name.line == line and name.column <= column <= name.end), None)

    def same(self, name: Name) -> list[Name]:
        """Return all places of the object that a name names."""
        return self.by_key.get(name.key, [])

    def definition(self, name: Name) -> Name | None:
        """Return the first definition of the object that a name names, or None."""
        return next((place for place in self.same(name) if place.defines), None)

    def definitions(self, kind: Kind, scope: str | None = None) -> Iterator[Name]:
        """Yield the definitions of a kind, of variables those of the program `scope`."""
        return (name for name in self.all if name.defines and name.kind == kind and scope in (None, name.scope))

    # ----------------------------------------------------------------------------------------------------------- uses
    def _uses(self, root: Mapping) -> Iterator[Name]:
        """Yield the places where names are used, section by section."""
        for section, _, node in root.items():
            if section == "queues":
                for _, _, queue in _map_items(node):
                    yield from self._uses_in_queue(queue)
            elif section == "graphs":
                for body in _op_bodies(node):
                    yield from self._uses_in_op(body)
            elif section == "programs":
                for program, _, body in _program_items(node):
                    for step in _list_items(body):
                        yield from self._uses_in_step(step, program)

    def _uses_in_queue(self, queue: Node) -> Iterator[Name]:
        """Yield the names that a queue's body refers to: the op that feeds it, and the queue that it is an
        alias of."""
        for key, _, value in _map_items(queue):
            if key == "input":
                yield from self._uses_of_source(value, ("op",))
            elif key == "alias":
                yield from self._uses_of_source(value, ("queue",))

    def _uses_of_source(self, node: Node, kinds: tuple[Kind, ...]) -> Iterator[Name]:
        """Yield the queue or op, of these kinds, that a node names, if the text defines it; `name.device` is the copy
        of `name` for one chip (NETLIST 1.7)."""
        if not isinstance(node, Scalar):
            return
        for text in (node.text, node.text.rpartition(".")[0]):
            for kind in kinds:
                if text in (self._queues if kind == "queue" else self._ops):
                    yield _make_name(kind, node, text)
                    return

    def _uses_in_op(self, body: Node) -> Iterator[Name]:
        """Yield the names that an op's body refers to: its inputs, the queues of forked_dram_inputs, and its fused
        op."""
        for key, _, value in _map_items(body):
            if key == "inputs":
                for entry in _list_items(value):
                    yield from self._uses_of_source(entry, _SOURCES)
            elif key == "forked_dram_inputs":
                yield from self._uses_in_forks(value)
            elif key == "attributes":
                for attribute, _, number in _map_items(value):
                    if attribute == "fused_op_id" and isinstance(number, Scalar):
                        yield _make_name("fused op", number)

    def _uses_in_forks(self, node: Node) -> Iterator[Name]:
        """Yield the names in `forked_dram_inputs`, a list of maps from a queue to an op that reads it, too."""
        for entry in _list_items(node):
            for _, queue, op in _map_items(entry):
                yield from self._uses_of_source(queue, ("queue",))
                yield from self._uses_of_source(op, ("op",))

    def _uses_in_step(self, step: Node, program: str) -> Iterator[Name]:
        """Yield the names in an instruction of a program."""
        for word, _, value in _map_items(step):
            if word == "varinst" and isinstance(value, Sequence):
                for operand in (*value.items[:1], *value.items[2:]):
                    yield from _variable_uses(operand, program)
            elif word == "loop":
                yield from _variable_uses(value, program)
            elif word in ("allocate_queue", "deallocate_queue") and isinstance(value, Sequence):
                for operand in value.items:
                    yield from self._uses_of_source(operand, ("queue",))
            elif word == "execute":
                yield from self._uses_in_execute(value, program)

    def _uses_in_execute(self, node: Node, program: str) -> Iterator[Name]:
        """Yield the names that an `execute` instruction of `program` refers to: its graph, the queues of its
        settings, and the variables in these."""
        for key, _, value in _map_items(node):
            if key == "graph_name" and isinstance(value, Scalar):
                yield _make_name("graph", value)
            elif key == "queue_settings":
                for _, queue, settings in _map_items(value):
                    yield from self._uses_of_source(queue, ("queue",))
                    for field, _, text in _map_items(settings):
                        if field in SETTING_FIELDS:
                            yield from _variable_uses(text, program)


def _definitions(root: Mapping) -> Iterator[Name]:
    """Yield the places where names are defined, section by section."""
    for section, _, node in root.items():
        if section == "queues":
            for _, key, value in _map_items(node):
                yield _make_name("queue", key, defines=True, body=value)
        elif section == "fused_ops":
            for _, key, value in _map_items(node):
                yield _make_name("fused op", key, defines=True, body=value)
        elif section == "graphs":
            for _, key, graph in _map_items(node):
                yield _make_name("graph", key, defines=True, body=graph)
                yield from _op_definitions(graph)
        elif section == "programs":
            for program, key, body in _program_items(node):
                yield _make_name("program", key, defines=True, body=body)
                for step in _list_items(body):
                    yield from _variable_definitions(step, program)


def _op_definitions(graph: Node) -> Iterator[Name]:
    """Yield the name of each op that the graph defines, with the op's body."""
    for op, key, body in _map_items(graph):
        if op not in GRAPH_FIELDS:
            yield _make_name("op", key, defines=True, body=body)


def _op_bodies(graphs: Node) -> Iterator[Node]:
    """Yield the node of each op of all graphs."""
    for _, _, graph in _map_items(graphs):
        for op, _, body in _map_items(graph):
            if op not in GRAPH_FIELDS:
                yield body


def _variable_definitions(step: Node, program: str) -> Iterator[Name]:
    """Yield the variables and parameters that an instruction declares."""
    for word, _, value in _map_items(step):
        if word not in ("var", "staticvar", "param"):
            continue
        if isinstance(value, Sequence):
            names = value.items
        else:
            names = [key for _, key, _ in _map_items(value)]
        for name in names:
            if isinstance(name, Scalar):
                yield _make_name("variable", name, defines=True, scope=program, body=value)


def _variable_uses(node: Node, program: str) -> Iterator[Name]:
    """Yield the variable that `node` names, or nothing if the node is no variable; variables belong to `program`."""
    if isinstance(node, Scalar) and is_variable(node.text):
        yield _make_name("variable", node, scope=program)


def _program_items(node: Node) -> Iterator[tuple[str, Scalar, Node]]:
    """Yield name, key and instructions of each program."""
    for entry in _list_items(node):
        yield from _map_items(entry)


def _list_items(node: Node) -> Iterable[Node]:
    """Return the entries of a list, none for a node that is no list: the text may be broken."""
    if isinstance(node, Sequence):
        return node.items
    return ()


def _map_items(node: Node) -> Iterator[tuple[str, Scalar, Node]]:
    """Return the text of each key, its node and its value, none for a node that is no map: the text may be broken."""
    if isinstance(node, Mapping):
        return node.items()
    return iter(())


def _make_name(
    kind: Kind,
    node: Scalar,
    text: str | None = None,
    *,
    defines: bool = False,
    scope: str = "",
    body: Node | None = None,
) -> Name:
    """Return the name at a scalar; with `text`, the name is only that beginning of the scalar. Its column leaves out a
    quote."""
    if text is None:
        text = node.text
    column = node.column
    if not node.plain:
        column += 1
    return Name(
        kind=kind,
        text=text,
        line=node.line,
        column=column,
        end=column + len(text),
        defines=defines,
        scope=scope,
        body=body,
    )
