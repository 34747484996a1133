"""Edits of fields: the parts of a proposal, and their application to a netlist."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from buda_emu.netlist.model import Buffer, Netlist, Op, Queue, Tm
from buda_emu.netlist.sourced import evolve

Value = int | bool | str | tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """A new value for one field of an op or a queue.

    `path` has the keys and places from the object's map to the value, such as ("attributes", "approximate_mode") or
    ("input_0_tms", 1, "broadcast", "c").
    """

    kind: Literal["op", "queue"]
    name: str
    path: tuple[str | int, ...]
    value: Value

    @property
    def place(self) -> tuple[str, str, tuple[str | int, ...]]:
        """Return the field that the edit changes: two edits of one place exclude each other."""
        return self.kind, self.name, self.path

    def __str__(self) -> str:
        return f"{self.name}: {'.'.join(map(str, self.path))}: {self.text}"

    @property
    def text(self) -> str:
        """Return the value as a netlist writes it on one line."""
        if self.path[-1] == "kernel_broadcast" and isinstance(self.value, tuple):
            return f"{{{', '.join(f'input_{operand}: {tiles}' for operand, tiles in self.value)}}}"
        return text_of(self.value)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Edits that belong together. `host` says what the host has to do differently, "" if nothing."""

    move: str
    target: str  # the op or queue that it is about
    sentence: str
    edits: tuple[Edit, ...]
    lossy: bool = False  # values change
    gain: float = 0.0  # cycles that it is expected to bring, for the order in which to try
    host: str = ""

    @property
    def key(self) -> tuple[Edit, ...]:
        """Return the edits as a key to find duplicates: proposals with the same edits are the same proposal."""
        return self.edits


def text_of(value: Value) -> str:
    """Return a value as a netlist writes it on one line: `true`, `[2, 4]`."""
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"
    if isinstance(value, tuple):
        return f"[{', '.join(_element(element) for element in value)}]"
    return str(value)


def _element(element: Any) -> str:
    """Return an element of a list as a netlist writes it, a buffer of a queue as channel and address."""
    if isinstance(element, Buffer):
        return f"[{element.channel}, {element.address:#x}]"
    return text_of(element)


def merge_edits(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return the edits without those that a later edit of the same field replaces."""
    return tuple({edit.place: edit for edit in edits}.values())


def apply_edits(netlist: Netlist, edits: Iterable[Edit]) -> Netlist:
    """Return the netlist with the values of these edits. Nothing is checked, and fields that derive from others are not
    updated."""
    of_ops: dict[str, list[Edit]] = {}
    of_queues: dict[str, list[Edit]] = {}
    for edit in edits:
        (of_ops if edit.kind == "op" else of_queues).setdefault(edit.name, []).append(edit)
    graphs = dict(netlist.graphs)
    for name, graph in netlist.graphs.items():
        if any(op.name in of_ops for op in graph.ops):
            ops = tuple(_apply_to_op(op, of_ops[op.name]) if op.name in of_ops else op for op in graph.ops)
            graphs[name] = evolve(graph, ops=ops)
    queues = dict(netlist.queues)
    for name, queue_edits in of_queues.items():
        queues[name] = _apply_to_queue(queues[name], queue_edits)
    return replace(netlist, graphs=graphs, queues=queues)


def _apply_to_op(op: Op, edits: Iterable[Edit]) -> Op:
    """Return the op with the new values of its fields, attributes and broadcast factors. Raises KeyError for a field
    that no move edits."""
    for edit in edits:
        key, *rest = edit.path
        if key == "attributes":
            stated = op.attributes.given | {str(rest[0])}
            op = evolve(op, attributes=replace(op.attributes, given=stated, **{str(rest[0]): edit.value}))
        elif rest:
            op = evolve(op, input_tms=_with_broadcast_factor(op, int(str(key).split("_")[1]), int(rest[0]), edit.value))
        else:
            op = _OP_FIELDS[str(key)](op, edit.value)
    return op


def _with_broadcast_factor(op: Op, operand: int, place: int, count: Value) -> tuple[tuple[Tm, ...], ...]:
    """Return the TMs of all inputs of the op, with `count` as the factor of the broadcast at `place` among those of
    input `operand`."""
    chains = [list(chain) for chain in op.input_tms]
    before = chains[operand][place]
    chains[operand][place] = replace(before, args=(before.args[0], int(count)))  # type: ignore[arg-type]
    return tuple(map(tuple, chains))


def _apply_to_queue(queue: Queue, edits: Iterable[Edit]) -> Queue:
    """Return the queue with the new values of its fields. Raises KeyError for a field that no move edits."""
    for edit in edits:
        queue = _QUEUE_FIELDS[str(edit.path[0])](queue, edit.value)
    return queue


def _blocking_setter(field: str) -> Callable[[Any, Any], Any]:
    """Return a function of an op or queue and a value that returns it with this field of its blocking replaced."""
    return lambda entity, value: evolve(entity, blocking=replace(entity.blocking, **{field: value}))


def _field_setter(field: str) -> Callable[[Any, Any], Any]:
    """Return a function of an op or queue and a value that returns it with this field replaced."""
    return lambda entity, value: evolve(entity, **{field: value})


_BLOCKING: Final = {name: _blocking_setter(name) for name in ("grid_size", "t", "mblock", "ublock")}
_OP_FIELDS: Final[Mapping[str, Callable[[Op, Any], Op]]] = {
    **_BLOCKING,
    **{name: _field_setter(name) for name in ("grid_loc", "buf_size_mb", "math_fidelity", "in_df", "out_df")},
}
_QUEUE_FIELDS: Final[Mapping[str, Callable[[Queue, Any], Queue]]] = {
    **_BLOCKING, "dram": _field_setter("buffers"), "df": _field_setter("df"),
}  # fmt: skip
