"""The graph between pipes and streams: each pipe taken apart into simple ones, each of which is a few streams.

pipegen2 calls it the rational graph. Its nodes are the buffers, and virtual nodes where one simple pipe follows another
and a stream, not a buffer, is between them.
"""

from collections.abc import Sequence
from enum import Enum, auto
from math import gcd

from buda_emu.routing.streams.connected import BufferNode, PipeNode, refused
from buda_emu.routing.streams.model import Place


class Kind(Enum):
    """What a simple pipe does."""

    DRAM_UNICAST = auto()
    DRAM_TILIZER = auto()
    DRAM_EMBEDDING = auto()
    DRAM_GATHER = auto()
    DRAM_MULTICAST = auto()
    DRAM_FORK = auto()
    POST_TM = auto()
    PRE_TM_FORK = auto()
    UNICAST = auto()
    MULTICAST = auto()
    GATHER = auto()
    DORMANT_RELAY = auto()
    RELAY = auto()
    ETHERNET_RELAY = auto()
    ETHERNET_FIRMWARE_RELAY = auto()
    UNION = auto()
    FORK = auto()
    SERIAL_FORK = auto()
    PADDING_SERIAL_FORK = auto()
    TO_DRAM = auto()
    TO_PCIE = auto()
    GATHER_TO_PCIE = auto()
    PCIE_UNICAST = auto()
    PCIE_MULTICAST = auto()
    INTERMEDIATE = auto()
    GRADIENT = auto()
    SHARED_INTERMEDIATE = auto()


READS_DRAM = {Kind.DRAM_UNICAST, Kind.DRAM_TILIZER, Kind.DRAM_EMBEDDING, Kind.DRAM_GATHER, Kind.DRAM_MULTICAST}
MULTICASTS = {Kind.MULTICAST, Kind.DRAM_MULTICAST, Kind.PCIE_MULTICAST}


class Node:
    """A buffer (`of`), or what is between two simple pipes; then `of` is the buffer that it stands for, or None."""

    __slots__ = (
        "input",
        "iterations",
        "max_tiles",
        "of",
        "on_single_path",
        "outputs",
        "place",
        "stream",
        "subtree",
        "tile_size",
        "tiles",
        "turn",
        "virtual",
    )

    def __init__(self, of: BufferNode | None, place: Place, tile_size: int, virtual: bool = True) -> None:
        self.of = of
        self.place = place
        self.tile_size = tile_size
        self.virtual = virtual
        self.input: Simple | None = None
        self.outputs: list[Simple] = []
        self.turn: int | None = None  # in which a serial fork feeds it
        self.stream: object = None
        self.on_single_path = True
        self.iterations = self.tiles = self.max_tiles = 0
        self.subtree = 1

    @property
    def owner(self) -> "Node":
        """The node of the buffer itself, where a fork's is given."""
        node = self
        while node.virtual and node.input is not None:
            node = node.input.sources[0]
        return node

    @property
    def buffer(self) -> BufferNode:
        """The buffer that the node is or stands for."""
        if self.of is None:
            raise refused("a pipe has no buffer where it needs one")
        return self.of

    @property
    def kernel_operand(self) -> BufferNode | None:
        """The buffer, where it is an operand that a kernel unpacks."""
        of = self.of
        if of is None or not of.kernel_input or of.intermediate or of.in_dram or of.dram_input:
            return None
        return of

    def feed(self, pipe: "Simple") -> None:
        """Note that `pipe` reads this node."""
        if pipe not in self.outputs:
            self.outputs.append(pipe)


class Simple:
    """A simple pipe. `entries` says which source, and where in it, each input is, in the order of reading."""

    __slots__ = (
        "beside",
        "counts",
        "direct",
        "entries",
        "kind",
        "of",
        "outputs",
        "padded_outputs",
        "place",
        "repeat",
        "serial_outputs",
        "sources",
        "turn",
    )

    def __init__(self, kind: Kind, of: PipeNode | None, place: Place, repeat: int = 1) -> None:
        self.kind = kind
        self.of = of
        self.place = place
        self.repeat = repeat
        self.sources: list[Node] = []
        self.beside: Node | None = None  # whose stream it waits for, or takes over, without reading it
        self.entries: Sequence[tuple[int, int]] | None = None
        self.counts: Sequence[int] | None = None
        self.outputs: list[Node] = []
        self.serial_outputs = 1
        self.padded_outputs = 0
        self.direct = False
        self.turn = 0  # scatter index of the pipe that this is a part of

    @property
    def pipe(self) -> PipeNode:
        """The pipe that this is a part of; a fork of a buffer that several pipes read is part of none."""
        if self.of is None:
            raise refused("a fork stands where a part of a pipe is needed")
        return self.of

    def read(self, node: Node) -> None:
        """Read one more node, whole."""
        self.sources.append(node)
        node.feed(self)

    def fill(self, node: Node) -> None:
        """Fill one more node."""
        self.outputs.append(node)
        node.input = self

    def read_through(self, old: Node, new: Node) -> None:
        """Read `new` where `old` was read."""
        if old is self.beside:
            self.beside = new
        else:
            self.sources[self.sources.index(old)] = new
        new.feed(self)

    @property
    def inputs(self) -> int:
        """How many inputs there are, each source as often as it is read."""
        return len(self.sources) if self.entries is None else len(self.entries)

    def tiles_of_inputs(self) -> int:
        """Tiles that all inputs bring in one iteration."""
        if self.counts is None:
            return sum(source.tiles for source in self.sources)
        return sum(count * source.tiles for count, source in zip(self.counts, self.sources, strict=True))

    def tiles_at_once(self) -> int:
        """Tiles in which all inputs can be read."""
        return gcd(*(source.tiles for source in self.sources))
