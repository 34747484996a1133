"""The view of a netlist that the rule checks share: its objects indexed by name, and helpers that find places in the
text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType

from buda_emu.netlist import nodes
from buda_emu.netlist.flow.variables import Note
from buda_emu.netlist.model import Graph, Netlist, Op, Queue
from buda_emu.netlist.nodes import Mark
from buda_emu.netlist.sourced import Sourced
from buda_emu.spec.archs import Arch
from buda_emu.spec.blocking import FULL_TILE
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Context:
    """Indexes over one netlist. `broken` names objects whose own fields are wrong; objects that depend on them are
    not checked."""

    netlist: Netlist
    arch: Arch
    ops: Mapping[str, Op]
    queues: Mapping[str, Queue]
    readers: Mapping[str, tuple[Op, ...]]
    """Ops that read a queue or op, by its name; each op once."""
    fed: Mapping[str, tuple[Queue, ...]]
    """Queues that an op feeds, by the op's name."""
    temporal: Mapping[str, int]
    """Temporal graph of a graph, by the graph's name."""
    names_before_expansion: frozenset[str]
    """Op names as the file writes them, before graphs are expanded over devices (NETLIST 1.7)."""
    dynamic: frozenset[str]
    """Queues that a program allocates; all others are static (NETLIST 3.6)."""
    broken: frozenset[str]
    doubtful: frozenset[str]
    """Graphs that are broken or hold a broken op: what they read and write cannot be said."""
    read: Mapping[str, frozenset[str]]
    """Names that the ops of a graph read, by the graph's name."""
    notes: dict[str, Sequence[Note]] = field(default_factory=dict[str, Sequence[Note]], compare=False, repr=False)
    """Notes of the walks of the programs, by program; filled when a check first needs them."""

    @classmethod
    def of(cls, netlist: Netlist, broken: frozenset[str]) -> "Context":
        """Index a netlist whose objects `broken` have wrong fields."""
        ops = netlist.ops
        readers: dict[str, dict[str, Op]] = {}
        for op in ops.values():
            for name in op.inputs:
                readers.setdefault(name, {})[op.name] = op
        fed: dict[str, list[Queue]] = {}
        for queue in netlist.queues.values():
            if not queue.host_fed:
                fed.setdefault(queue.input, []).append(queue)
        return cls(
            netlist=netlist,
            arch=netlist.arch,
            ops=MappingProxyType(ops),
            queues=netlist.queues,
            readers=MappingProxyType({name: tuple(group.values()) for name, group in readers.items()}),
            fed=MappingProxyType({name: tuple(group) for name, group in fed.items()}),
            temporal=MappingProxyType(_temporal_ids(netlist)),
            names_before_expansion=frozenset(op.written_name or op.name for op in ops.values()),
            dynamic=netlist.dynamic,
            broken=frozenset(),
            doubtful=frozenset(),
            read=MappingProxyType({graph.name: _inputs_of(graph) for graph in netlist.graphs.values()}),
        ).without(broken)

    def without(self, broken: frozenset[str]) -> "Context":
        """Return the indexes of the same netlist with another set of broken objects."""
        graphs = (self.ops[name].graph if name in self.ops else name for name in broken)
        return replace(self, broken=broken, doubtful=frozenset(name for name in graphs if name in self.netlist.graphs))

    def source(self, name: str) -> Queue | Op | None:
        """Return the intact queue or op of that name, or None. Queues come first, as when an input is read (NETLIST
        1.1)."""
        if name in self.broken:
            return None
        return self.queues.get(name) or self.ops.get(name)

    def sources(self, op: Op) -> Iterator[tuple[int, Queue | Op]]:
        """Yield index and producer of every input of an op whose producer is intact."""
        for index, name in enumerate(op.inputs):
            source = self.source(name)
            if source is not None:
                yield index, source

    def tile_read(self, op: Op, index: int) -> tuple[int, int]:
        """Return the tile dims (rows, columns of elements) that input `index` of an op reads, before its TMs: 32x32
        from an op of another graph (NETLIST 1.5).
        """
        name = op.inputs[index]
        if name in self.queues:
            return self.queues[name].blocking.tile_dim
        producer = self.ops.get(name)
        if producer is None or producer.graph != op.graph:
            return FULL_TILE
        return producer.blocking.tile_dim


def _temporal_ids(netlist: Netlist) -> dict[str, int]:
    """Return the id of the temporal graph of each graph, by the graph's name."""
    ids: dict[str, int] = {}
    for temporal in netlist.temporal_graphs:
        ids.update(dict.fromkeys(temporal.graphs, temporal.id))
    return ids


def _inputs_of(graph: Graph) -> frozenset[str]:
    """Return the names of queues and ops that the ops of a graph read."""
    return frozenset(name for op in graph.ops for name in op.inputs)


def has_transpose_tm(op: Op, index: int) -> bool:
    """Return whether a `transpose` is among the TMs of input `index`."""
    return index < len(op.input_tms) and any(tm.name == "transpose" for tm in op.input_tms[index])


def _field_node(subject: Sourced, key: str) -> nodes.Node | None:
    """Return the YAML node of a field of an object, or None if it was not written."""
    if isinstance(subject.source, nodes.Mapping):
        return subject.source.find(key)
    return None


def written_text(subject: Sourced, key: str) -> str:
    """Return the text of a scalar field as it stands in the file, "" if it is absent or no scalar."""
    node = _field_node(subject, key)
    return node.text if isinstance(node, nodes.Scalar) else ""


def size_problem(subject: Sourced, key: str, value: int | tuple[int, int], least: int = 1) -> str:
    """Return the message about a size of an object that is less than `least` or not written, such as `mblock is [0,
    2], both must be at least 1`; else "". `key` is the field with the size `value`.
    """
    smallest = value if isinstance(value, int) else min(value)
    if smallest >= least:
        return ""
    if _field_node(subject, key) is None:
        return f"{key} is missing"
    if isinstance(value, int):
        return f"{key} is {value}, must be at least {least}"
    return f"{key} is {list(value)}, both must be at least {least}"


def attribute_mark(subject: Sourced, key: str) -> Mark:
    """Return the place of an attribute's value, else of the attributes, else of the object's name."""
    node = _field_node(subject, "attributes")
    if isinstance(node, nodes.Mapping):
        value = node.find(key)
    else:
        value = None
    if value is not None:
        return value.mark
    return subject.at("attributes")


def item_mark(subject: Sourced, key: str, index: int) -> Mark:
    """Return the place of entry `index` of a list field, else of the field, else of the object's name."""
    node = _field_node(subject, key)
    if isinstance(node, nodes.Sequence) and index < len(node.items):
        return node.items[index].mark
    return subject.at(key)


def tms_mark(op: Sourced, index: int) -> Mark:
    """Return the place of the TMs of input `index`, else of the inputs, else of the op's name."""
    return op.at(f"input_{index}_tms", "inputs")


def on_ethernet(op: Op) -> bool:
    """Return whether the op runs on an Ethernet core rather than on worker cores."""
    declaration = OP_TYPES.get(op.type)
    return declaration is not None and declaration.has("Ethernet")
