"""A netlist while it grows: queues with room in DRAM, graphs with free cores, and what ops may read."""

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from buda_emu.netlist.model import Buffer, Graph, Op, Pad, Queue, Tm
from buda_emu.netlist.reader import Document
from buda_emu.netlist.sizes import align_up
from buda_emu.netlist.sourced import evolve
from buda_emu.records import dataclass
from buda_emu.spec.archs import ARCHS, Arch
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import FULL_TILE, Blocking, Shape
from buda_emu.spec.formats import is_integer, tile_bytes
from buda_emu.testing.generator.draw import Draw

FIRST_ADDRESS: Final = 0x10000000
"""In DRAM; what is below belongs to the backend (NETLIST V153)."""
_HOST_BYTES: Final = (1 << 30) - (1 << 27)
"""Of channel 0 of the host's memory that queues may have (NETLIST V156)."""


class NoRoomError(Exception):
    """The op that was begun does not fit the netlist: another is drawn in its place."""


@dataclass(frozen=True, slots=True)
class Value:
    """What an op may read: a queue, or an op of the same graph. `shape`: (t, tile rows, tile columns).

    `positive`: no element is below zero or NaN, as functions such as sqrt demand. `flat`: stored row by row.
    """

    name: str
    shape: Shape
    df: str
    is_queue: bool
    positive: bool = False
    flat: bool = False


@dataclass(slots=True)
class OpenGraph:
    """A graph that ops are added to."""

    name: str
    chip: int
    input_count: int
    free: set[tuple[int, int]]
    family: str
    """b or a: which formats of 8-bit or 5-bit exponents its ops use (FORMATS 2)."""
    ops: list[Op] = field(default_factory=list[Op])
    values: list[Value] = field(default_factory=list[Value])
    read: set[str] = field(default_factory=set[str])
    stored: set[str] = field(default_factory=set[str])
    """Ops that feed a queue."""


@dataclass(slots=True)
class NetlistDraft:
    """The netlist. `most_tiles`: of one operand or result."""

    draw: Draw
    arch: Arch
    most_tiles: int
    document: Document
    graphs: list[OpenGraph] = field(default_factory=list[OpenGraph])
    constants: set[str] = field(default_factory=set[str])
    """Queues that a graph reads the same entry of for every input."""
    stepped: set[str] = field(default_factory=set[str])
    """Rams of an entry for each input: their pointers move on by themselves (NETLIST 4.2)."""
    strided: set[str] = field(default_factory=set[str])
    """Queues of which every second entry is read."""
    sparse: list[str] = field(default_factory=list[str])
    """Queues of tiles with one element in each row, as test-config has it (NETLIST 5.1)."""
    chips: int = 1
    tile: tuple[int, int] = FULL_TILE
    """Of everything in the netlist."""
    ends: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """By chip, -1 for the host, and channel: the first free byte."""
    count: int = 0
    rounds: int = 1
    """Executes of each graph: streams and results have entries for all of them."""

    @staticmethod
    def new(draw: Draw, arch: str, most_tiles: int) -> "NetlistDraft":
        """An empty netlist for one architecture."""
        return NetlistDraft(draw, ARCHS[arch], most_tiles, Document("generated.yaml", arch, (arch,)))

    @property
    def graph(self) -> OpenGraph:
        """The one that ops are added to."""
        return self.graphs[-1]

    def name(self, word: str) -> str:
        """A name that nothing has yet."""
        self.count += 1
        return f"{word}_{self.count}"

    # ---------------------------------------------------------------------------------------------------- queues
    def queue(
        self,
        word: str,
        blocking: Blocking,
        df: str,
        *,
        source: str = "HOST",
        kind: str = "queue",
        entries: int,
        layout: str = "tilized",
        input_tms: tuple[Tm, ...] = (),
    ) -> Queue:
        """A new queue of the open graph's chip, in DRAM, or, of the chip at the host, now and then in the host's, where
        no embedding or tilizer reads it (V082)."""
        name = self.name(word)
        chip = self.graph.chip
        height, width = blocking.tile_dim
        at_host = chip == 0 and kind == "queue" and layout != "flat" and self.draw.sometimes(6, "in host memory")
        entry = blocking.tiles_per_core * tile_bytes(df, height, width, self.arch.alignment, True)
        size = 2 * entry * entries * self.rounds + self.arch.alignment
        buffers: list[Buffer] = []
        channels = 1 if at_host else self.arch.dram_channels
        place = -1 if at_host else chip
        channel = self.draw.integer(0, channels - 1)
        for _ in range(blocking.cells):
            start = align_up(self.ends.get((place, channel), FIRST_ADDRESS), self.arch.alignment)
            if start + size > (_HOST_BYTES if at_host else self.arch.dram_channel_bytes):
                raise NoRoomError
            self.ends[place, channel] = start + size
            buffers.append(Buffer(channel, start))
            channel = (channel + 1) % channels
        made = Queue(
            name=name,
            written_name=name,
            input=source,
            type=kind,
            entries=entries,
            blocking=blocking,
            df=df,
            target_device=chip,
            loc="host" if at_host else "dram",
            buffers=tuple(buffers),
            layout=layout,
            input_tms=input_tms,
        )
        self.document.queues[name] = made
        return made

    # ------------------------------------------------------------------------------------------------------- ops
    def blocking(self, shape: Shape, most_in_ublock: int, *, order: str = "", one_core: bool = False) -> Blocking:
        """A way to cut a result of this shape into cores and blocks. Raises NoRoomError where no core is free."""
        t, rows, cols = shape
        down, across = (1, 1) if one_core else (self.draw.divisor(rows, 3), self.draw.divisor(cols, 3))
        high, wide = rows // down, cols // across
        ublock_rows = self.draw.divisor(high, most_in_ublock)
        ublock_cols = self.draw.divisor(wide, most_in_ublock // ublock_rows)
        return Blocking(
            (down, across),
            t,
            (high // ublock_rows, wide // ublock_cols),
            (ublock_rows, ublock_cols),
            order or self.draw.pick("rc"),
        )

    def place(self, blocking: Blocking) -> tuple[tuple[int, int], bool]:
        """Cores for a blocking: where they begin, and whether rows and columns of the grid are exchanged."""
        transposed = self.draw.chance(15)
        rows, cols = blocking.grid_size[::-1] if transposed else blocking.grid_size
        places = [
            (row, col)
            for row, col in sorted(self.graph.free)
            if all((row + r, col + c) in self.graph.free for r in range(rows) for c in range(cols))
        ]
        if not places:
            raise NoRoomError
        row, col = self.draw.pick(places)
        self.graph.free -= {(row + r, col + c) for r in range(rows) for c in range(cols)}
        return (row, col), transposed

    def add(
        self,
        op_type: str,
        operands: "Sequence[Operand]",
        blocking: Blocking,
        formats: "Formats",
        *,
        attributes: dict[str, object] | None = None,
        positive: bool = False,
        fields: dict[str, object] | None = None,
    ) -> Op:
        """Adds an op to the open graph, and its result to what further ops may read."""
        t, rows, cols = blocking.shape
        if t * rows * cols > self.most_tiles:
            raise NoRoomError
        attributes = attributes or {}
        found = Attributes(given=frozenset(attributes), **attributes)  # type: ignore[arg-type]  # as their table has them
        more = dict(fields or {})
        loc: tuple[int, ...] = ()
        if not more.pop("on_ethernet", False):
            loc, transposed = self.place(blocking)
            more["grid_transpose"] = transposed
        buffers = [2] + [4] * (blocking.t % 2 == 0 or blocking.t == 1) + [1]
        name = self.name(op_type)
        op = Op(
            name=name,
            written_name=name,
            graph=self.graph.name,
            type=op_type,
            target_device=self.graph.chip,
            grid_loc=loc,
            blocking=blocking,
            inputs=tuple(item.value.name for item in operands),
            in_df=tuple(item.value.df for item in operands),
            out_df=formats.out,
            intermed_df=formats.intermed,
            acc_df=formats.acc,
            math_fidelity=self._fidelity(operands),
            buf_size_mb=self.draw.pick(buffers),
            input_tms=tuple(item.tms for item in operands),
            input_unpad=tuple(item.unpad for item in operands),
            input_pad=tuple(item.pad for item in operands),
            attributes=found,
        )
        op = evolve(op, **more)
        self.graph.ops.append(op)
        self.graph.read |= set(op.inputs)
        self.graph.values.append(Value(name, blocking.shape, formats.out, is_queue=False, positive=positive))
        return op

    def _fidelity(self, operands: "Sequence[Operand]") -> str:
        """Any; the highest for integers (NETLIST V102)."""
        if any(is_integer(item.value.df) for item in operands):
            return "HiFi4"
        return self.draw.pick(("LoFi", "HiFi2", "HiFi3", "HiFi4"))

    def close(self) -> None:
        """The open graph is whole: into the document with it."""
        graph = self.graph
        made = Graph(name=graph.name, target_device=graph.chip, input_count=graph.input_count, ops=tuple(graph.ops))
        self.document.graphs[graph.name] = made


@dataclass(frozen=True, slots=True)
class Operand:
    """A value and what shapes it."""

    value: Value
    tms: tuple[Tm, ...] = ()
    unpad: Pad = Pad()
    pad: Pad = Pad()


@dataclass(frozen=True, slots=True)
class Formats:
    """The formats of an op: of its result, of partial sums, and of dest."""

    out: str
    intermed: str
    acc: str
