"""What the checks share: the netlist with its objects indexed by name, made once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType

from buda_emu.netlist import nodes
from buda_emu.netlist.flow.variables import Note
from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.netlist.nodes import Mark
from buda_emu.netlist.sourced import Sourced
from buda_emu.spec.archs import Arch
from buda_emu.spec.blocking import FULL_TILE
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Context:
    """Indexes over one netlist. `broken`: objects whose own fields are wrong; what depends on them is not judged."""

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
    """What the walks of the programs notice, by program: made when it is first asked for."""

    @classmethod
    def of(cls, netlist: Netlist, broken: frozenset[str]) -> "Context":
        """Index a netlist."""
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
            temporal=MappingProxyType({name: one.id for one in netlist.temporal_graphs for name in one.graphs}),
            names_before_expansion=frozenset(op.written_name or op.name for op in ops.values()),
            dynamic=netlist.dynamic,
            broken=frozenset(),
            doubtful=frozenset(),
            read=MappingProxyType(
                {
                    graph.name: frozenset(name for op in graph.ops for name in op.inputs)
                    for graph in netlist.graphs.values()
                }
            ),
        ).without(broken)

    def without(self, broken: frozenset[str]) -> "Context":
        """The same netlist with another set of broken objects."""
        graphs = (self.ops[name].graph if name in self.ops else name for name in broken)
        return replace(self, broken=broken, doubtful=frozenset(name for name in graphs if name in self.netlist.graphs))

    def source(self, name: str) -> Queue | Op | None:
        """The intact queue or op of that name; queues come first, as when an input is read (NETLIST 1.1)."""
        if name in self.broken:
            return None
        return self.queues.get(name) or self.ops.get(name)

    def sources(self, op: Op) -> Iterator[tuple[int, Queue | Op]]:
        """Index and producer of every input whose producer is intact."""
        for index, name in enumerate(op.inputs):
            source = self.source(name)
            if source is not None:
                yield index, source

    def tile_read(self, op: Op, index: int) -> tuple[int, int]:
        """Tile dims of what input `index` reads, before its TMs (NETLIST 1.5): 32x32 from an op of another graph."""
        name = op.inputs[index]
        if name in self.queues:
            return self.queues[name].blocking.tile_dim
        producer = self.ops.get(name)
        return producer.blocking.tile_dim if producer is not None and producer.graph == op.graph else FULL_TILE


def transposes(op: Op, index: int) -> int:
    """How many `transpose` TMs input `index` has."""
    return sum(tm.name == "transpose" for tm in op.input_tms[index]) if index < len(op.input_tms) else 0


def written(item: Sourced, key: str) -> str:
    """The text of a scalar field as it stands in the file, "" where it is absent or no scalar."""
    node = item.source.find(key) if isinstance(item.source, nodes.Mapping) else None
    return node.text if isinstance(node, nodes.Scalar) else ""


def size_problem(item: Sourced, key: str, value: int | tuple[int, int], least: int = 1) -> str:
    """What is wrong with a size of an object, "" for nothing: `mblock is [0, 2], both must be at least 1`."""
    smallest, text, both = (
        (value, str(value), "") if isinstance(value, int) else (min(value), str(list(value)), " both")
    )
    if smallest >= least:
        return ""
    if not isinstance(item.source, nodes.Mapping) or item.source.find(key) is None:
        return f"{key} is missing"
    return f"{key} is {text},{both} must be at least {least}"


def attribute_mark(item: Sourced, key: str) -> Mark:
    """The place of an attribute's value, else of the attributes, else of the object's name."""
    node = item.source.find("attributes") if isinstance(item.source, nodes.Mapping) else None
    value = node.find(key) if isinstance(node, nodes.Mapping) else None
    return value.mark if value is not None else item.at("attributes")


def item_mark(item: Sourced, key: str, index: int) -> Mark:
    """The place of entry `index` of a list field, else of the field, else of the object's name."""
    node = item.source.find(key) if isinstance(item.source, nodes.Mapping) else None
    if isinstance(node, nodes.Sequence) and index < len(node.items):
        return node.items[index].mark
    return item.at(key)


def tms_mark(op: Sourced, index: int) -> Mark:
    """The place of `input_N_tms`."""
    return op.at(f"input_{index}_tms", "inputs")


def on_ethernet(op: Op) -> bool:
    """Whether the op runs on no worker core."""
    known = OP_TYPES.get(op.type)
    return known is not None and known.has("Ethernet")
