"""A netlist while it grows: queues with room in DRAM, graphs with free cores, and what ops may read."""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from random import Random
from typing import Final, TypeVar

from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Buffer, Graph, Netlist, Op, Pad, Queue, Tm
from buda_emu.netlist.printer import document_text
from buda_emu.netlist.reader import Document
from buda_emu.netlist.sizes import align_up
from buda_emu.netlist.sourced import evolve
from buda_emu.spec.archs import ARCHS, Arch
from buda_emu.spec.attributes import ATTRIBUTES, Attributes
from buda_emu.spec.blocking import FULL_TILE, Blocking, Shape
from buda_emu.spec.formats import is_integer, tile_bytes
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.records import dataclass
from buda_emu.testing.coverage.features import lists

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draw:
    """A source of choices."""

    random: Random
    wanted: frozenset[str] = frozenset()
    """What is taken more often than not where it is among the choices: what coverage lacks."""

    def integer(self, least: int, most: int) -> int:
        """One of least, ..., most."""
        return self.random.randint(least, most)

    def pick(self, items: Sequence[T]) -> T:
        """One of them."""
        liked = [item for item in items if isinstance(item, str) and item in self.wanted] if self.wanted else []
        if liked and self.chance(80):
            items = liked
        return items[self.random.randint(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        """Yes in so many of a hundred cases."""
        return self.random.randint(0, 99) < percent

    def sometimes(self, percent: int, *words: str) -> bool:
        """Yes in so many of a hundred cases, mostly where one of the words is wanted."""
        return self.chance(70 if self.wanted.intersection(words) else percent)

    def divisor(self, number: int, most: int | None = None) -> int:
        """One of the divisors of a number, none above `most`."""
        limit = number if most is None else min(number, most)
        return self.pick([item for item in range(1, limit + 1) if number % item == 0])


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
        high = rows // down
        wide = cols // across
        ublock_rows = self.draw.divisor(high, most_in_ublock)
        ublock_cols = self.draw.divisor(wide, most_in_ublock // ublock_rows)
        return Blocking(
            grid_size=(down, across),
            t=t,
            mblock=(high // ublock_rows, wide // ublock_cols),
            ublock=(ublock_rows, ublock_cols),
            ublock_order=order or self.draw.pick("rc"),
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


_SIZES = (1, 1, 1, 2, 2, 3, 4)


def any_shape(draft: NetlistDraft) -> Shape:
    """(t, tile rows, tile columns): often that of something that is there, so that ops come to follow each other."""
    draw = draft.draw
    there = [value.shape for value in draft.graph.values]
    if there and draw.chance(60):
        return draw.pick(there)
    t, rows, cols = (draw.pick(_SIZES) for _ in range(3))
    while t * rows * cols > draft.most_tiles:
        t = max(1, t // 2)
        rows = max(1, rows // 2)
        cols = max(1, cols // 2)
    return t, rows, cols


_VALUES: Final = {"bool": (True,), "int": (1, 2), "float": (0.5, 0.0, 2.0)}
_BESIDE: Final = {"relu_threshold": {"relu_en": True}, "relu_mode": {"relu_en": True}}
"""What gives an attribute its meaning."""


def with_attribute(draw: Draw, document: Document) -> "tuple[Document, Netlist] | str":
    """The document, loaded, with one more attribute of one of its ops; or, where that is refused, `name: rules`."""
    op = draw.pick(list(_ops(document)))
    name = draw.pick([name for name in lists()["attributes"] if _may_come_late(name, op, document)] or [""])
    if not name:
        return ""
    _, attribute, word = parts(name)
    kind = ATTRIBUTES[attribute].kind
    value = word or ((0,) * op.blocking.cells if kind == "ints" else draw.pick(_VALUES[kind]))
    values = {**_BESIDE.get(attribute, {}), attribute: value}
    given = op.attributes.given | values.keys()
    new = evolve(op, attributes=replace(op.attributes, given=given, **values))
    made = replace(document, graphs=dict(document.graphs))
    graph = made.graphs[op.graph]
    made.graphs[op.graph] = evolve(graph, ops=tuple(new if item is op else item for item in graph.ops))
    found = check_text(document_text(made), document.path, document.arch_name)
    if found.netlist is not None:
        return made, found.netlist
    return f"{name}: {', '.join(sorted({item.rule for item in found.diagnostics if item.severity == 'error'}))}"


def parts(name: str) -> tuple[str, str, str]:
    """Op type, attribute and word of a name of coverage."""
    op_type, _, written = name.partition(" ")
    attribute, _, word = written.partition("=")
    return op_type, attribute, word


def _may_come_late(name: str, op: Op, document: Document) -> bool:
    """Whether an attribute changes neither operands nor shape of an op, and is not yet there. What a fused op has is
    read by sub-ops that may have it."""
    op_type, attribute, _ = parts(name)
    if op_type != op.type or attribute in op.attributes.given:
        return False
    spec = ATTRIBUTES[attribute]
    if not OP_TYPES[op_type].has("sub-ops"):
        return not spec.has_effect or attribute.startswith("relu")
    schedules = document.fused_ops[op.attributes.fused_op_id].schedules
    return not any(spec.is_legal_on(step.type) and not spec.everywhere for steps in schedules for step in steps)


def _ops(document: Document) -> Iterator[Op]:
    for graph in document.graphs.values():
        yield from graph.ops
