"""A netlist while it grows: queues with their places in DRAM, graphs with free cores, and the values that ops may
read."""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import chain, product
from random import Random
from typing import Final, TypeVar

from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Buffer, Graph, Netlist, Op, Pad, Queue, Tm
from buda_emu.netlist.printer import document_text
from buda_emu.netlist.reader import WrittenNetlist
from buda_emu.netlist.sizes import align_up
from buda_emu.netlist.sourced import evolve
from buda_emu.spec.archs import ARCHS, DRAM_RESERVED, HOST_CHANNEL_BYTES, HOST_RESERVED, Arch
from buda_emu.spec.attributes import ATTRIBUTES, Attributes
from buda_emu.spec.blocking import FULL_TILE, Blocking, Shape
from buda_emu.spec.formats import is_integer, tile_bytes
from buda_emu.spec.ops import OP_TYPES
from buda_emu.spec.precision import FIDELITIES
from buda_emu.support.records import dataclass
from buda_emu.testing.coverage.features import lists

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draw:
    """A source of random choices, which prefers the `wanted` words."""

    random: Random
    wanted: frozenset[str] = frozenset()
    """Words that are mostly taken where they are among the choices: those that coverage lacks."""

    def integer(self, lowest: int, highest: int) -> int:
        """Return an integer from `lowest` to `highest`, both included."""
        return self.random.randint(lowest, highest)

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of the choices, in most cases a wanted one where there are any."""
        liked: list[T] = []
        if self.wanted:
            liked = [choice for choice in choices if isinstance(choice, str) and choice in self.wanted]
        if liked and self.chance(80):
            choices = liked
        return choices[self.random.randint(0, len(choices) - 1)]

    def chance(self, percent: int) -> bool:
        """Return True in `percent` of a hundred cases."""
        return self.random.randint(0, 99) < percent

    def sometimes(self, percent: int, *words: str) -> bool:
        """Return True in `percent` of a hundred cases, in 70 if one of the words is wanted."""
        return self.chance(70 if self.wanted.intersection(words) else percent)

    def divisor(self, number: int, maximum: int | None = None) -> int:
        """Return one of the divisors of a number that are not above `maximum` (None: any)."""
        if maximum is None:
            limit = number
        else:
            limit = min(number, maximum)
        return self.pick([candidate for candidate in range(1, limit + 1) if number % candidate == 0])


_HOST_BYTES: Final = HOST_CHANNEL_BYTES - HOST_RESERVED[0]
"""Bytes of channel 0 of the host's memory that queues may have (NETLIST V156)."""


class NoRoomError(Exception):
    """The op that was begun does not fit the netlist: another one is drawn in its place."""


@dataclass(frozen=True, slots=True)
class DraftTensor:
    """A value that an op may read: a queue, or the result of an op of the same graph. `shape` is (t, tile rows, tile
    columns).

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
    """The family of formats that its ops use: b with 8-bit exponents, a with 5-bit ones (FORMATS 2)."""
    ops: list[Op] = field(default_factory=list[Op])
    values: list[DraftTensor] = field(default_factory=list[DraftTensor])
    read: set[str] = field(default_factory=set[str])
    stored: set[str] = field(default_factory=set[str])
    """Ops that feed a queue."""


@dataclass(slots=True)
class NetlistDraft:
    """A netlist while ops are added. `most_tiles` limits the tiles of one operand or result."""

    draw: Draw
    arch: Arch
    most_tiles: int
    document: WrittenNetlist
    graphs: list[OpenGraph] = field(default_factory=list[OpenGraph])
    constants: set[str] = field(default_factory=set[str])
    """Queues that a graph reads the same entry of for every input."""
    stepped: set[str] = field(default_factory=set[str])
    """Rams with an entry for each input: their pointers move on by themselves (NETLIST 4.2)."""
    strided: set[str] = field(default_factory=set[str])
    """Queues of which only every second entry is read."""
    sparse: list[str] = field(default_factory=list[str])
    """Queues of tiles with one element in each row, as test-config has it (NETLIST 5.1)."""
    chips: int = 1
    tile: tuple[int, int] = FULL_TILE
    """The tile size of all ops and queues."""
    ends: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """The first free byte by chip, -1 for the host, and channel."""
    count: int = 0
    rounds: int = 1
    """Number of executes of each graph: streams and results have entries for all of them."""

    @staticmethod
    def new(draw: Draw, arch: str, most_tiles: int) -> "NetlistDraft":
        """Return an empty netlist for one architecture."""
        return NetlistDraft(draw, ARCHS[arch], most_tiles, WrittenNetlist("generated.yaml", arch, (arch,)))

    @property
    def graph(self) -> OpenGraph:
        """The graph that ops are added to."""
        return self.graphs[-1]

    def name(self, word: str) -> str:
        """Return a name that begins with `word` and that nothing has yet."""
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
        """Add a queue or ram (`kind`) on the open graph's chip, in DRAM or now and then in host memory, and return it.
        `word` begins its name; `source` is the op that feeds it, or HOST; `entries` are those of one round. Raises
        NoRoomError where a channel is full."""
        name = self.name(word)
        chip = self.graph.chip
        height, width = blocking.tile_dim
        at_host = chip == 0 and kind == "queue" and layout != "flat" and self.draw.sometimes(6, "in host memory")
        entry = blocking.tiles_per_core * tile_bytes(df, height, width, self.arch.alignment, True)
        size = 2 * entry * entries * self.rounds + self.arch.alignment
        buffers: list[Buffer] = []
        if at_host:
            channels = 1
        else:
            channels = self.arch.dram_channels
        if at_host:
            place = -1
        else:
            place = chip
        channel = self.draw.integer(0, channels - 1)
        for _ in range(blocking.cells):
            start = align_up(self.ends.get((place, channel), DRAM_RESERVED), self.arch.alignment)
            if start + size > (_HOST_BYTES if at_host else self.arch.dram_channel_bytes):
                raise NoRoomError
            self.ends[place, channel] = start + size
            buffers.append(Buffer(channel, start))
            channel = (channel + 1) % channels
        queue = Queue(
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
        self.document.queues[name] = queue
        return queue

    # ------------------------------------------------------------------------------------------------------- ops
    def blocking(self, shape: Shape, most_in_ublock: int, *, order: str = "", one_core: bool = False) -> Blocking:
        """Draw how a result of this shape is cut into cores and blocks, with at most `most_in_ublock` tiles in a
        ublock. `order` is the ublock_order, "" for a drawn one."""
        t, rows, cols = shape
        down = 1
        across = 1
        if not one_core:
            down = self.draw.divisor(rows, 3)
            across = self.draw.divisor(cols, 3)
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
        """Draw free cores for a blocking and take them. Return the first core, and whether rows and columns of the grid
        are exchanged. Raises NoRoomError where no free rectangle is large enough."""
        transposed = self.draw.chance(15)
        rows, cols = blocking.grid_size
        if transposed:
            grid = (cols, rows)
        else:
            grid = (rows, cols)
        places = [first for first in sorted(self.graph.free) if _cores_of_rectangle(first, grid) <= self.graph.free]
        if not places:
            raise NoRoomError
        first = self.draw.pick(places)
        self.graph.free -= _cores_of_rectangle(first, grid)
        return first, transposed

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
        """Add an op to the open graph, and its result to the values that further ops may read.

        `positive` states that no element of the result is below zero or NaN. `fields` replace fields of the `Op`; with
        `on_ethernet` among them no cores are drawn. Raises NoRoomError where the result is too large or no cores are
        free.
        """
        t, rows, cols = blocking.shape
        if t * rows * cols > self.most_tiles:
            raise NoRoomError
        attributes = attributes or {}
        record = Attributes(given=frozenset(attributes), **attributes)  # type: ignore[arg-type]  # typed by table
        changes = dict(fields or {})
        loc: tuple[int, ...] = ()
        if not changes.pop("on_ethernet", False):
            loc, transposed = self.place(blocking)
            changes["grid_transpose"] = transposed
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
            inputs=tuple(operand.value.name for operand in operands),
            in_df=tuple(operand.value.df for operand in operands),
            out_df=formats.out,
            intermed_df=formats.intermed,
            acc_df=formats.acc,
            math_fidelity=self._draw_fidelity(operands),
            buf_size_mb=self.draw.pick(buffers),
            input_tms=tuple(operand.tms for operand in operands),
            input_unpad=tuple(operand.unpad for operand in operands),
            input_pad=tuple(operand.pad for operand in operands),
            attributes=record,
        )
        op = evolve(op, **changes)
        self.graph.ops.append(op)
        self.graph.read |= set(op.inputs)
        self.graph.values.append(DraftTensor(name, blocking.shape, formats.out, is_queue=False, positive=positive))
        return op

    def _draw_fidelity(self, operands: "Sequence[Operand]") -> str:
        """Draw a fidelity; that of integers is always the highest (NETLIST V102)."""
        if any(is_integer(operand.value.df) for operand in operands):
            return "HiFi4"
        return self.draw.pick(FIDELITIES)

    def close(self) -> None:
        """Put the open graph, to which no op will be added any more, into the document."""
        graph = self.graph
        self.document.graphs[graph.name] = Graph(
            name=graph.name, target_device=graph.chip, input_count=graph.input_count, ops=tuple(graph.ops)
        )


@dataclass(frozen=True, slots=True)
class Operand:
    """A value, with the TMs and the padding that shape it for an op."""

    value: DraftTensor
    tms: tuple[Tm, ...] = ()
    unpad: Pad = Pad()
    pad: Pad = Pad()


@dataclass(frozen=True, slots=True)
class Formats:
    """The formats of an op: of its result, of partial sums, and of dest."""

    out: str
    intermed: str
    acc: str


_SIZES = (1, 1, 1, 2, 2, 3, 4)  # of t, rows and columns in tiles; small ones are drawn more often, as they run faster


def any_shape(draft: NetlistDraft) -> Shape:
    """Draw a shape (t, tile rows, tile columns): often that of a value of the graph, so that ops follow each other."""
    draw = draft.draw
    shapes = [value.shape for value in draft.graph.values]
    if shapes and draw.chance(60):
        return draw.pick(shapes)
    t, rows, cols = (draw.pick(_SIZES) for _ in range(3))
    while t * rows * cols > draft.most_tiles:
        t = max(1, t // 2)
        rows = max(1, rows // 2)
        cols = max(1, cols // 2)
    return t, rows, cols


_VALUES: Final = {"bool": (True,), "int": (1, 2), "float": (0.5, 0.0, 2.0)}
_BESIDE: Final = {"relu_threshold": {"relu_en": True}, "relu_mode": {"relu_en": True}}
"""Attributes that give another one its meaning."""


def _cores_of_rectangle(first: tuple[int, int], grid: tuple[int, int]) -> set[tuple[int, int]]:
    """Return the cores of a rectangle, given its first core and its number of rows and columns."""
    rows = range(first[0], first[0] + grid[0])
    cols = range(first[1], first[1] + grid[1])
    return set(product(rows, cols))


def with_attribute(draw: Draw, document: WrittenNetlist) -> "tuple[WrittenNetlist, Netlist] | str":
    """Draw an op and an attribute, and add the attribute to the op. Return the new document and the loaded netlist;
    `name: rules` if the checker refuses it; "" if no attribute can be added."""
    op = draw.pick(list(_ops(document)))
    name = draw.pick([name for name in lists()["attributes"] if _may_come_late(name, op, document)] or [""])
    if not name:
        return ""
    _, attribute, word = parts(name)
    values = {**_BESIDE.get(attribute, {}), attribute: word or _draw_value(draw, attribute, op)}
    written = op.attributes.given | values.keys()
    new = evolve(op, attributes=replace(op.attributes, given=written, **values))
    changed = replace(document, graphs=dict(document.graphs))
    graph = changed.graphs[op.graph]
    changed.graphs[op.graph] = evolve(graph, ops=tuple(new if old is op else old for old in graph.ops))
    checked = check_text(document_text(changed), document.path, document.arch_name)
    if checked.netlist is not None:
        return changed, checked.netlist
    rules = {diagnostic.rule for diagnostic in checked.diagnostics if diagnostic.severity == "error"}
    return f"{name}: {', '.join(sorted(rules))}"


def _draw_value(draw: Draw, attribute: str, op: Op) -> object:
    """Draw a value for an attribute of an op, by the attribute's kind."""
    kind = ATTRIBUTES[attribute].kind
    if kind == "ints":
        return (0,) * op.blocking.cells
    return draw.pick(_VALUES[kind])


def parts(name: str) -> tuple[str, str, str]:
    """Return op type, attribute and word of a name in coverage's list of attributes, "" for a word that it does not
    have."""
    op_type, _, written = name.partition(" ")
    attribute, _, word = written.partition("=")
    return op_type, attribute, word


def _may_come_late(name: str, op: Op, document: WrittenNetlist) -> bool:
    """Return whether the attribute that `name` (of coverage's list) states can be added to an op that is there already:
    the op is of the type, does not have it, and neither operands nor shape depend on it. An attribute of a fused op
    must not have a meaning on its sub-ops."""
    op_type, attribute, _ = parts(name)
    if op_type != op.type or attribute in op.attributes.given:
        return False
    spec = ATTRIBUTES[attribute]
    if not OP_TYPES[op_type].has("sub-ops"):
        return not spec.has_effect or attribute.startswith("relu")
    steps = chain.from_iterable(document.fused_ops[op.attributes.fused_op_id].schedules)
    return not any(spec.is_legal_on(step.type) and not spec.everywhere for step in steps)


def _ops(document: WrittenNetlist) -> Iterator[Op]:
    """Yield all ops of a document, graph by graph."""
    for graph in document.graphs.values():
        yield from graph.ops
