"""The netlist as frozen data. A value that could not be read keeps the reference's default, which its rule then
refuses.

Every object has `source`, the YAML map it was read from, and `name_node`, the scalar that names it: `at("field")`
gives the place of a field for a diagnostic. Objects made by expansion (NETLIST 1.7) share the source of their original.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, FrozenInstanceError, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, dataclass_transform

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.checker.text import plural
from buda_emu.netlist import nodes
from buda_emu.netlist.nodes import Mark
from buda_emu.records import dataclass
from buda_emu.spec.archs import ARCHS, Arch
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.ops.of_type import OfOpType

NO_MARK = Mark(1, 1, 2)
T = TypeVar("T")
SourcedT = TypeVar("SourcedT", bound="Sourced")


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(field,))
def _sourced(kind: type[T]) -> type[T]:
    """A frozen dataclass with slots whose methods all come from Sourced: generating them for every class takes a tenth
    of the time in which a netlist is checked."""
    return dataclasses.dataclass(slots=True, kw_only=True, init=False, eq=False, repr=False)(kind)


@_sourced
class Sourced:
    """Base of everything that stands somewhere in the file."""

    source: nodes.Node | None = field(default=None, compare=False, repr=False)
    name_node: nodes.Scalar | None = field(default=None, compare=False, repr=False)
    # Reading found an error in it: its values are not to be relied on and nothing else is reported for its sake.
    broken: bool = field(default=False, compare=False, repr=False)

    if not TYPE_CHECKING:  # checkers make it of the fields

        def __init__(self, **values: Any) -> None:
            for name, put, default in _arguments(type(self)):
                value = values.pop(name) if name in values else default
                if value is MISSING:
                    raise TypeError(f"{type(self).__name__} needs {name}")
                put(self, value)
            if values:
                raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[Any]:
        return [get(self) for _, get, _ in _slots(type(self))]

    def __setstate__(self, state: list[Any]) -> None:
        for (_, _, put), value in zip(_slots(type(self)), state, strict=True):
            put(self, value)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _compared(type(self)))

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in _compared(type(self))))

    def __repr__(self) -> str:
        values = ((item.name, getattr(self, item.name), item.default) for item in fields(self) if item.repr)
        changed = ", ".join(f"{name}={value!r}" for name, value, default in values if value != default)
        return f"{type(self).__name__}({changed})"

    def at(self, *keys: str) -> Mark:
        """The place of the value under the first of `keys` that was written, else of the object's name."""
        if isinstance(self.source, nodes.Mapping):
            for key in keys:
                value = self.source.find(key)
                if value is not None:
                    return value.mark
        if self.name_node is not None:
            return self.name_node.mark
        return self.source.mark if self.source is not None else NO_MARK


def evolve(item: SourcedT, **changes: Any) -> SourcedT:
    """A copy with other values in some fields: `dataclasses.replace`, much faster for objects of many fields."""
    copy = object.__new__(type(item))
    for name, get, put in _slots(type(item)):
        put(copy, changes.pop(name) if name in changes else get(item))
    if changes:
        raise TypeError(f"{type(item).__name__} has no {', '.join(changes)}")
    return copy


@cache
def _slots(kind: type[Sourced]) -> tuple[tuple[str, Callable[[Any], Any], Callable[[Any, Any], None]], ...]:
    """Name, getter and setter of each field: the slots themselves, which know nothing of `frozen`."""
    slots = ((item.name, getattr(kind, item.name)) for item in fields(kind))
    return tuple((name, slot.__get__, slot.__set__) for name, slot in slots)


@cache
def _arguments(kind: type[Sourced]) -> tuple[tuple[str, Callable[[Any, Any], None], Any], ...]:
    """Name, setter and default of each field."""
    return tuple((item.name, getattr(kind, item.name).__set__, item.default) for item in fields(kind))


@cache
def _compared(kind: type[Sourced]) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind) if item.compare)


@dataclass(frozen=True, slots=True)
class Tm:
    """One tensor manipulation. args: broadcast ("r", n); hslice/hstack/vslice/vstack (n,); pad (rt, ct, value);
    tile_broadcast ("r",); transpose ()."""

    name: str
    args: tuple[int | float | str, ...] = ()
    mark: Mark = field(default=NO_MARK, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pad:
    """`input_N_pad` / `input_N_unpad`: tile rows and columns (NETLIST 1.4)."""

    rt: int = 0
    ct: int = 0
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Buffer:
    """One allocation of a queue: channel and byte address (unsigned 32 bit)."""

    channel: int
    address: int


@_sourced
class Queue(Sourced):
    """A queue or ram (NETLIST 1.3). `input` is HOST, an op name, or a net2net name."""

    name: str
    written_name: str = ""  # the name in the file; `name` has a device suffix after expansion (NETLIST 1.7)
    input: str = ""
    type: str = ""
    entries: int = -1
    blocking: Blocking = Blocking(ublock_order="r")
    df: str = ""
    target_device: int = -1
    loc: str = ""
    buffers: tuple[Buffer, ...] = ()
    read_ports: tuple[int, ...] = ()
    write_ports: tuple[int, ...] = ()
    layout: str = "tilized"
    alias: str = ""
    input_tms: tuple[Tm, ...] = ()
    # derived (NETLIST 1.3 "Derived per queue"); -1 = never consumed
    input_count: int = -1

    @property
    def host_fed(self) -> bool:
        """Not fed by an op: HOST, or a queue that another netlist fills (NETLIST 1.3 input)."""
        return self.input == "HOST" or "net2net" in self.input

    @property
    def is_ram(self) -> bool:
        """type: ram."""
        return self.type == "ram"


@_sourced
class Op(Sourced, OfOpType):
    """One op of a graph (NETLIST 1.4). Input lists are parallel to `inputs`."""

    name: str
    graph: str
    written_name: str = ""  # the name in the file; `name` has a device suffix after expansion (NETLIST 1.7)
    type: str = ""
    target_device: int = -1
    grid_loc: tuple[int, ...] = ()
    blocking: Blocking = Blocking()
    inputs: tuple[str, ...] = ()
    in_df: tuple[str, ...] = ()
    out_df: str = ""
    intermed_df: str = ""
    acc_df: str = ""
    math_fidelity: str = ""
    untilize_output: bool = False
    gradient_op: bool = False
    grid_transpose: bool = False
    buf_size_mb: int = -1
    overlay_size: int = -1
    input_buf_min_size_tiles: tuple[int, ...] = ()
    input_dram_io_buf_size_tiles: tuple[int, ...] = ()
    forked_dram_inputs: tuple[tuple[str, str], ...] = ()
    input_tms: tuple[tuple[Tm, ...], ...] = ()
    # Applied before / after the TM list; a `pad` inside the list shares the value that was written last (OPS 7.3).
    input_unpad: tuple[Pad, ...] = ()
    input_pad: tuple[Pad, ...] = ()
    attributes: Attributes = Attributes()
    # derived (NETLIST 1.5)
    input_tile_dims: tuple[tuple[int, int], ...] = ()
    vector: str = ""  # final vector mode; "" until derived
    transpose: bool = False  # in-tile transpose flag: odd number of transpose TMs (OPS 7.4)

    @property
    def cores(self) -> tuple[int, int]:
        """Rows and columns of cores that it takes; grid_transpose exchanges them (NETLIST 1.4)."""
        rows, columns = self.blocking.grid_size
        return (columns, rows) if self.grid_transpose else (rows, columns)


@_sourced
class Graph(Sourced):
    """One graph: ops that run together on one chip."""

    name: str
    target_device: int = -1
    input_count: int = -1
    ops: tuple[Op, ...] = ()


@_sourced
class SubOp(Sourced, OfOpType):
    """One scheduled op of a fused op (OPS 8). Input names: inputN, intermedN, dest."""

    name: str
    type: str = ""
    inputs: tuple[str, ...] = ()
    output: str = ""
    mblock: tuple[int, int] = (-1, -1)
    ublock: tuple[int, int] = (-1, -1)
    pop: tuple[str, ...] = ()
    pop_last: tuple[str, ...] = ()
    zero_point: float = 0.0
    input_tms: tuple[tuple[Tm, ...], ...] = ()  # parallel to `inputs`
    attributes: Attributes = Attributes()


@_sourced
class FusedOp(Sourced):
    """One definition of `fused_ops`; ids are compared as text (CENSUS 2)."""

    id: str
    inputs: int = -1
    intermediates: int = -1
    schedules: tuple[tuple[SubOp, ...], ...] = ()
    custom_kernel_path: str = ""


@_sourced
class QueueSettings(Sourced):
    """One entry of an execute's queue_settings as source texts; "" = not written and no default (NETLIST 1.5)."""

    queue: str
    prologue: str = "false"
    epilogue: str = "false"
    zero: str = "false"
    read_only: str = "false"
    rd_ptr_global: str = ""
    rd_ptr_local: str = ""
    wr_ptr_global: str = ""
    rd_ptr_autoinc: str = ""  # after derivation: "1" for queue, "0" for ram unless written
    global_rdptr_autoinc: str = ""  # "0"
    global_wrptr_autoinc: str = ""  # "1" for queue, "0" for ram


@_sourced
class Declare(Sourced):
    """`var` / `staticvar`: names and initial texts. Names keep their `$`."""

    kind: Literal["var", "staticvar"]
    variables: tuple[tuple[str, str], ...]


@_sourced
class Param(Sourced):
    """`param`: names that the caller binds."""

    names: tuple[str, ...]


@_sourced
class VarInst(Sourced):
    """`varinst: [out, opcode, args...]`, operands as texts."""

    out: str
    opcode: str
    args: tuple[str, ...]


@_sourced
class Loop(Sourced):
    """`loop: count`."""

    count: str


@_sourced
class EndLoop(Sourced):
    """`endloop`."""


@_sourced
class Execute(Sourced):
    """`execute: {graph_name, queue_settings}`."""

    graph: str
    queue_settings: tuple[QueueSettings, ...] = ()


@_sourced
class Allocate(Sourced):
    """`allocate_queue`."""

    queues: tuple[str, ...]


@_sourced
class Deallocate(Sourced):
    """`deallocate_queue`."""

    queues: tuple[str, ...]


Instruction: TypeAlias = Declare | Param | VarInst | Loop | EndLoop | Execute | Allocate | Deallocate


@_sourced
class Program(Sourced):
    """One program; the end marker is implied."""

    name: str
    instructions: tuple[Instruction, ...] = ()


@dataclass(frozen=True, slots=True)
class TemporalGraph:
    """Graphs that run as one on different chips (NETLIST 1.8)."""

    id: int
    graphs: tuple[str, ...]


_painters: "list[Callable[[Netlist], str]]" = []


def painted_by(painter: "Callable[[Netlist], str]") -> None:
    """Who draws a netlist as SVG where one shows itself, in a notebook: this room knows no pictures."""
    _painters[:] = [painter]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, weakref_slot=True)
class Netlist:
    """A whole netlist for one architecture, expanded (1.7) and with its derived properties (1.5, 1.8) filled in.

    Maps are in document order. `programs` holds the last body of each name (NETLIST 11.1 A16); `program_order` lists
    the names as written, a repeated name twice. `sections` keeps every other top-level section as its YAML tree
    (test-config, performance-check, unknown ones).
    """

    path: str
    arch_name: str
    archs: tuple[str, ...]
    queues: Mapping[str, Queue]
    graphs: Mapping[str, Graph]
    fused_ops: Mapping[str, FusedOp]
    programs: Mapping[str, Program]
    program_order: tuple[str, ...]
    temporal_graphs: tuple[TemporalGraph, ...] = ()
    sections: Mapping[str, nodes.Node] = field(default_factory=dict[str, nodes.Node])
    diagnostics: tuple[Diagnostic, ...] = ()  # findings that do not refuse the netlist

    def __repr__(self) -> str:
        what = {"graph": len(self.graphs), "op": len(self.ops), "queue": len(self.queues)}
        counts = ", ".join(plural(count, word) for word, count in what.items())
        return f"<Netlist {self.path} for {self.arch_name}: {counts}, programs {', '.join(self.programs) or 'none'}>"

    def _repr_svg_(self) -> str | None:
        return _painters[0](self) if _painters else None

    @property
    def arch(self) -> Arch:
        """The architecture's table."""
        return ARCHS[self.arch_name]

    @property
    def ops(self) -> Mapping[str, Op]:
        """Every op by name, in document order."""
        return {op.name: op for graph in self.graphs.values() for op in graph.ops}
