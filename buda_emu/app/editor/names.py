"""The names in a netlist's tree, with the places where they are defined and used."""

from collections.abc import Iterator
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
        """Return a key that is equal for all places of the same object."""
        return self.kind, stored_name(self.text) if self.kind == "variable" else self.text, self.scope


def _order(name: Name) -> tuple[int, int, bool]:
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
        for name in sorted((*definitions, *self._uses(root)), key=_order):
            if (name.line, name.column) not in seen:  # an alias of YAML repeats a name without another place
                seen.add((name.line, name.column))
                self.all.append(name)
        self.by_key: dict[tuple[str, str, str], list[Name]] = {}
        for name in self.all:
            self.by_key.setdefault(name.key, []).append(name)

    def at(self, line: int, column: int) -> Name | None:
        """Return the name at a place, its end included, or None."""
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
        for section, _, node in root.items():
            if section == "queues":
                for _, _, queue in _items(node):
                    for key, _, value in _items(queue):
                        if key == "input":
                            yield from self._source(value, ("op",))
                        elif key == "alias":
                            yield from self._source(value, ("queue",))
            elif section == "graphs":
                for _, _, graph in _items(node):
                    for op, _, body in _items(graph):
                        if op not in GRAPH_FIELDS:
                            yield from self._of_op(body)
            elif section == "programs":
                for program, _, body in _programs(node):
                    for step in body.items if isinstance(body, Sequence) else ():
                        yield from self._of_step(step, program)

    def _source(self, node: Node, kinds: tuple[Kind, ...]) -> Iterator[Name]:
        """Yield the queue or op that a node names; `name.device` is the copy of `name` for one chip (NETLIST 1.7)."""
        if not isinstance(node, Scalar):
            return
        for text in (node.text, node.text.rpartition(".")[0]):
            for kind in kinds:
                if text in (self._queues if kind == "queue" else self._ops):
                    yield _name(kind, node, text)
                    return

    def _of_op(self, body: Node) -> Iterator[Name]:
        for key, _, value in _items(body):
            if key == "inputs" and isinstance(value, Sequence):
                for entry in value.items:
                    yield from self._source(entry, _SOURCES)
            elif key == "forked_dram_inputs" and isinstance(value, Sequence):
                for entry in value.items:
                    for _, queue, op in _items(entry):
                        yield from self._source(queue, ("queue",))
                        yield from self._source(op, ("op",))
            elif key == "attributes":
                for attribute, _, number in _items(value):
                    if attribute == "fused_op_id" and isinstance(number, Scalar):
                        yield _name("fused op", number)

    def _of_step(self, step: Node, program: str) -> Iterator[Name]:
        for word, _, value in _items(step):
            if word == "varinst" and isinstance(value, Sequence):
                for operand in (*value.items[:1], *value.items[2:]):
                    yield from _variable(operand, program)
            elif word == "loop":
                yield from _variable(value, program)
            elif word in ("allocate_queue", "deallocate_queue") and isinstance(value, Sequence):
                for operand in value.items:
                    yield from self._source(operand, ("queue",))
            elif word == "execute":
                yield from self._of_execute(value, program)

    def _of_execute(self, node: Node, program: str) -> Iterator[Name]:
        for key, _, value in _items(node):
            if key == "graph_name" and isinstance(value, Scalar):
                yield _name("graph", value)
            elif key == "queue_settings":
                for _, queue, settings in _items(value):
                    yield from self._source(queue, ("queue",))
                    for field, _, text in _items(settings):
                        if field in SETTING_FIELDS:
                            yield from _variable(text, program)


def _definitions(root: Mapping) -> Iterator[Name]:
    for section, _, node in root.items():
        if section == "queues":
            yield from (_name("queue", key, defines=True, body=value) for _, key, value in _items(node))
        elif section == "fused_ops":
            yield from (_name("fused op", key, defines=True, body=value) for _, key, value in _items(node))
        elif section == "graphs":
            for _, key, graph in _items(node):
                yield _name("graph", key, defines=True, body=graph)
                for op, op_key, body in _items(graph):
                    if op not in GRAPH_FIELDS:
                        yield _name("op", op_key, defines=True, body=body)
        elif section == "programs":
            for program, key, body in _programs(node):
                yield _name("program", key, defines=True, body=body)
                for step in body.items if isinstance(body, Sequence) else ():
                    yield from _declared(step, program)


def _declared(step: Node, program: str) -> Iterator[Name]:
    for word, _, value in _items(step):
        if word not in ("var", "staticvar", "param"):
            continue
        if isinstance(value, Sequence):
            names = value.items
        else:
            names = [key for _, key, _ in _items(value)]
        for item in names:
            if isinstance(item, Scalar):
                yield _name("variable", item, defines=True, scope=program, body=value)


def _variable(node: Node, program: str) -> Iterator[Name]:
    if isinstance(node, Scalar) and is_variable(node.text):
        yield _name("variable", node, scope=program)


def _programs(node: Node) -> Iterator[tuple[str, Scalar, Node]]:
    for item in node.items if isinstance(node, Sequence) else ():
        yield from _items(item)


def _items(node: Node) -> Iterator[tuple[str, Scalar, Node]]:
    if isinstance(node, Mapping):
        return node.items()
    return iter(())


def _name(
    kind: Kind,
    node: Scalar,
    text: str | None = None,
    *,
    defines: bool = False,
    scope: str = "",
    body: Node | None = None,
) -> Name:
    said = node.text if text is None else text
    column = node.column + (0 if node.plain else 1)
    return Name(
        kind=kind,
        text=said,
        line=node.line,
        column=column,
        end=column + len(said),
        defines=defines,
        scope=scope,
        body=body,
    )
