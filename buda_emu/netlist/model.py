"""The netlist as frozen data. A field whose value could not be read keeps the reference's default, which the rules
then refuse."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from itertools import chain
from typing import Literal, TypeAlias

from buda_emu.netlist import nodes
from buda_emu.netlist.fields import BOARD, EFFORT, OWN_SECTION, UNDEFINED, UNDEFINED_IS_NAN
from buda_emu.netlist.nodes import Mark
from buda_emu.netlist.sourced import NO_MARK, Sourced, sourced_dataclass
from buda_emu.spec.archs import ARCHS, Arch
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.ops import OfOpType
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Tm:
    """One tensor manipulation (NETLIST 1.6).

    `args` depend on `name`: broadcast ("r", n); hslice, hstack, vslice, vstack (n,); pad (rt, ct, value);
    tile_broadcast ("r",); transpose ().
    """

    name: str
    args: tuple[int | float | str, ...] = ()
    mark: Mark = field(default=NO_MARK, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pad:
    """Padding of an input, `input_N_pad` or `input_N_unpad`: tile rows and columns (NETLIST 1.4)."""

    rt: int = 0
    ct: int = 0
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Buffer:
    """One allocation of a queue: channel and byte address (unsigned 32 bit)."""

    channel: int
    address: int


def _by(sizes: Iterable[int]) -> str:
    """Return sizes as a text such as `1x64x128`."""
    return "x".join(map(str, sizes))


@sourced_dataclass
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

    def __str__(self) -> str:
        entries = plural(self.entries, "entry")
        return f"{self.type} {self.name}: {entries} of {self.df} {_by(self.blocking.element_shape)}, from {self.input}"

    @property
    def host_fed(self) -> bool:
        """Return whether no op of the netlist feeds it: the input is HOST, or a queue that another netlist fills
        (NETLIST 1.3 input)."""
        return self.input == "HOST" or "net2net" in self.input

    @property
    def is_ram(self) -> bool:
        """Return whether its type is `ram`, whose entries are addressed rather than consumed."""
        return self.type == "ram"


@sourced_dataclass
class Op(Sourced, OfOpType):
    """One op of a graph (NETLIST 1.4). Lists about inputs are parallel to `inputs`."""

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

    def __str__(self) -> str:
        inputs = ", ".join(self.inputs)
        return f"op {self.name} of graph {self.graph}: {self.type}({inputs}) on {_by(self.cores)} cores, {self.out_df}"

    @property
    def cores(self) -> tuple[int, int]:
        """Return the rows and columns of cores that the op takes; `grid_transpose` exchanges them (NETLIST 1.4)."""
        rows, columns = self.blocking.grid_size
        if self.grid_transpose:
            return (columns, rows)
        return (rows, columns)


@sourced_dataclass
class Graph(Sourced):
    """One graph: ops that run together on one chip."""

    name: str
    target_device: int = -1
    input_count: int = -1
    ops: tuple[Op, ...] = ()

    def __repr__(self) -> str:
        inputs = plural(self.input_count, "input")
        return f"<Graph {self.name} on chip {self.target_device}: {plural(len(self.ops), 'op')}, {inputs}>"


@sourced_dataclass
class SubOp(Sourced, OfOpType):
    """One scheduled op of a fused op (OPS 8). Its inputs are named inputN, intermedN or dest."""

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


@sourced_dataclass
class FusedOp(Sourced):
    """One definition of `fused_ops`; ids are compared as text (CENSUS 2)."""

    id: str
    inputs: int = -1
    intermediates: int = -1
    schedules: tuple[tuple[SubOp, ...], ...] = ()
    custom_kernel_path: str = ""


@sourced_dataclass
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


@sourced_dataclass
class Declare(Sourced):
    """Instruction `var` or `staticvar`: pairs of a variable's name, with its `$`, and the text of its initial value."""

    kind: Literal["var", "staticvar"]
    variables: tuple[tuple[str, str], ...]


@sourced_dataclass
class Param(Sourced):
    """Instruction `param`: names of the parameters that the caller of the program binds."""

    names: tuple[str, ...]


@sourced_dataclass
class VarInst(Sourced):
    """Instruction `varinst: [out, opcode, args...]`, arithmetic on variables; operands are texts."""

    out: str
    opcode: str
    args: tuple[str, ...]


@sourced_dataclass
class Loop(Sourced):
    """Instruction `loop`: repeats the instructions up to its `endloop` `count` times; `count` is a text."""

    count: str


@sourced_dataclass
class EndLoop(Sourced):
    """Instruction `endloop`: ends the innermost open loop."""


@sourced_dataclass
class Execute(Sourced):
    """Instruction `execute`: runs a graph with the settings of its queues."""

    graph: str
    queue_settings: tuple[QueueSettings, ...] = ()


@sourced_dataclass
class Allocate(Sourced):
    """Instruction `allocate_queue`: gives dynamic queues their memory (NETLIST 3.6)."""

    queues: tuple[str, ...]


@sourced_dataclass
class Deallocate(Sourced):
    """Instruction `deallocate_queue`: takes the memory of dynamic queues back (NETLIST 3.6)."""

    queues: tuple[str, ...]


Instruction: TypeAlias = Declare | Param | VarInst | Loop | EndLoop | Execute | Allocate | Deallocate


@sourced_dataclass
class Program(Sourced):
    """One program: its instructions in order. The end marker is implied."""

    name: str
    instructions: tuple[Instruction, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the parameters that the program takes, as written, in order."""
        steps = (step for step in self.instructions if isinstance(step, Param))
        return tuple(chain.from_iterable(step.names for step in steps))

    def __repr__(self) -> str:
        return f"<Program {self.name}: {plural(len(self.instructions), 'instruction')}>"


@dataclass(frozen=True, slots=True)
class TemporalGraph:
    """Graphs on different chips that run as one (NETLIST 1.8)."""

    id: int
    graphs: tuple[str, ...]


_painters: "list[Callable[[Netlist], str]]" = []


def register_painter(painter: "Callable[[Netlist], str]") -> None:
    """Register the function that draws a netlist as SVG for notebooks, in place of an earlier one. It lives in a
    package above this one."""
    _painters[:] = [painter]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, weakref_slot=True)
class Netlist:
    """A netlist for one architecture, expanded (NETLIST 1.7) and with its derived properties (1.5, 1.8) filled in.

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
    # The graphs whose ops were looked up, and these by name.
    _ops: tuple[Mapping[str, Graph], Mapping[str, Op]] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __repr__(self) -> str:
        totals = {"graph": len(self.graphs), "op": len(self.ops), "queue": len(self.queues)}
        counts = ", ".join(plural(count, word) for word, count in totals.items())
        return f"<Netlist {self.path} for {self.arch_name}: {counts}, programs {', '.join(self.programs) or 'none'}>"

    def _repr_svg_(self) -> str | None:
        """Return the picture that notebooks show, or None if no painter is registered."""
        return _painters[0](self) if _painters else None

    @property
    def arch(self) -> Arch:
        """Return the table of facts about the netlist's architecture."""
        return ARCHS[self.arch_name]

    @property
    def undefined_is_nan(self) -> bool:
        """Return whether a run goes on with NaN for elements on which the reference aborts, such as the root of a
        negative number. The section `buda-emu` says so; compiled netlists have it."""
        return self._own_word(UNDEFINED) == UNDEFINED_IS_NAN

    @property
    def effort(self) -> str:
        """Return the effort with which a compiler placed the netlist, as the section `buda-emu` says; "" where it says
        nothing."""
        return self._own_word(EFFORT)

    @property
    def board(self) -> str:
        """Return the board whose chips a compiler placed the netlist for, as the section `buda-emu` says; "" where it
        says nothing."""
        return self._own_word(BOARD)

    def _own_word(self, key: str) -> str:
        """Return the word of a key of the section `buda-emu`, "" without one."""
        section = self.sections.get(OWN_SECTION)
        word = None
        if isinstance(section, nodes.Mapping):
            word = section.find(key)
        if isinstance(word, nodes.Scalar):
            return word.text
        return ""

    @property
    def dynamic(self) -> frozenset[str]:
        """Return the names of the queues that a program allocates (NETLIST 3.6)."""
        steps = chain.from_iterable(program.instructions for program in self.programs.values())
        return frozenset(chain.from_iterable(step.queues for step in steps if isinstance(step, Allocate)))

    @property
    def ops(self) -> Mapping[str, Op]:
        """Return every op by name, in document order."""
        if self._ops is not None and self._ops[0] is self.graphs:
            return self._ops[1]
        ops = {op.name: op for op in chain.from_iterable(graph.ops for graph in self.graphs.values())}
        object.__setattr__(self, "_ops", (self.graphs, ops))
        return ops


def require_netlist(value: object, function: str) -> None:
    """Raise HostError, which says how a netlist is read, for a value that is none; `function` is what takes it."""
    if not isinstance(value, Netlist):
        raise HostError(f"{function} takes a netlist, not {type(value).__name__}: buda_emu.load(path) reads one")
