"""The graph between pipes and streams: each pipe taken apart into simple ones, each of which is a few streams.

pipegen2 calls it the rational graph. Its nodes are the buffers, and virtual nodes between two simple pipes that are
connected by a stream without a buffer.
"""

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from enum import Enum, auto
from math import gcd
from typing import Any, TypeAlias, TypeVar

from buda_emu.performance.routing.pipes.model import Buffer
from buda_emu.performance.routing.streams.connected import BufferNode, Inputs, PipeNode, invalid_graph
from buda_emu.performance.routing.streams.model import MERGED_READ_BYTES, WRITE_BYTES, Place


class Kind(Enum):
    """The kind of a simple pipe."""

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
    """A node of the graph: a buffer (`of`), or, if `virtual`, a stream between two simple pipes; `of` is then the
    buffer that it stands for, or None."""

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
        """Return the node of the buffer that the tiles come from: the node itself, or, for a virtual node, the nearest
        node before it that is not virtual (along first sources)."""
        node = self
        while node.virtual and node.input is not None:
            node = node.input.sources[0]
        return node

    @property
    def buffer(self) -> BufferNode:
        """Return the buffer that the node is or stands for. Raises RefusedError if there is none."""
        if self.of is None:
            raise invalid_graph("a pipe has no buffer where it needs one")
        return self.of

    @property
    def kernel_operand(self) -> BufferNode | None:
        """Return the node's buffer if it is an operand in L1 that a kernel unpacks, else None."""
        of = self.of
        if of is None or not of.kernel_input or of.intermediate or of.in_dram or of.dram_input:
            return None
        return of

    def feed(self, pipe: "Simple") -> None:
        """Add `pipe` to the pipes that read this node; once only."""
        if pipe not in self.outputs:
            self.outputs.append(pipe)


class Simple:
    """A simple pipe: the part of a pipe that a few streams of one kind carry out. `entries` has (index of the source,
    tile in it) for each input, in the order of reading; None if each source is read whole and once."""

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
        """Return the pipe that this is a part of. Raises RefusedError for a fork behind a buffer that several pipes
        read, which is part of none."""
        if self.of is None:
            raise invalid_graph("a fork stands where a part of a pipe is needed")
        return self.of

    def read(self, node: Node) -> None:
        """Add a node to the sources, to be read whole."""
        self.sources.append(node)
        node.feed(self)

    def fill(self, node: Node) -> None:
        """Add a node to the outputs that the pipe fills."""
        self.outputs.append(node)
        node.input = self

    def read_through(self, old: Node, new: Node) -> None:
        """Replace the source `old` by `new`, a node that was put between it and this pipe."""
        if old is self.beside:
            self.beside = new
        else:
            self.sources[self.sources.index(old)] = new
        new.feed(self)

    @property
    def inputs(self) -> int:
        """Return the number of inputs; a source counts as often as it is read."""
        if self.entries is None:
            return len(self.sources)
        return len(self.entries)

    def tiles_of_inputs(self) -> int:
        """Return the tiles of all inputs in one iteration."""
        if self.counts is None:
            return sum(source.tiles for source in self.sources)
        return sum(count * source.tiles for count, source in zip(self.counts, self.sources, strict=True))

    def tiles_at_once(self) -> int:
        """Return the greatest number of tiles that divides those of every input in an iteration."""
        return gcd(*(source.tiles for source in self.sources))


T = TypeVar("T", bound=Hashable)
R = TypeVar("R")
Walk: TypeAlias = Generator["Walk[Any]", Any, R]
"""A function that yields the calls of itself, and is given what they return."""


def run_walk(walk: Walk[R]) -> R:
    """Run a recursive generator (see `Walk`) and return its result, with a stack of its own, so that deep graphs do not
    exceed Python's."""
    stack: list[Walk[Any]] = [walk]
    returned: Any = None
    while stack:
        try:
            ahead = stack[-1].send(returned)
        except StopIteration as end:
            stack.pop()
            returned = end.value
        else:
            stack.append(ahead)
            returned = None
    return returned


def in_order(roots: Iterable[T], followers: Callable[[T], Iterable[T]], seen: set[T] | None = None) -> list[T]:
    """Return all nodes that can be reached from `roots` and are not in `seen`, each before its followers, and add them
    to `seen`.

    The last root and its last follower come first, as in pipegen2. In a cycle each node stands once.
    """
    if seen is None:
        seen = set()
    done: list[T] = []
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        path: list[tuple[T, Iterator[T]]] = [(root, iter(followers(root)))]
        while path:
            node, ahead = path[-1]
            following = next((follower for follower in ahead if follower not in seen), None)
            if following is None:
                done.append(node)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(followers(following))))
    done.reverse()
    return done


def pcie_buffer(inputs: Inputs, outputs: list[BufferNode]) -> BufferNode:
    """Return a new buffer through which a core of one chip writes and a core of another chip reads, as a queue of
    `q_slots` slots of `size_tiles` tiles each."""
    tile = inputs[0][0].buffer.tile_size
    at_once = _tiles_per_write(inputs, outputs, tile)
    if len(outputs) == 1:
        receiver_tiles = outputs[0].buffer.size_tiles
    else:
        receiver_tiles = at_once * (2 if 2 * at_once * tile <= MERGED_READ_BYTES else 1)
    return BufferNode(
        Buffer(
            id=-1,
            buffer_type="pcie",
            chip=inputs[0][0].place.chip,
            epoch_tiles=outputs[0].buffer.epoch_tiles,
            tiles_per_input=at_once,
            size_tiles=at_once,
            tile_size=tile,
            scatter_gather_num_tiles=1,
            q_slots=max(1, receiver_tiles // at_once),
            dram_io_flag=True,
        )
    )


def _tiles_per_write(inputs: Inputs, outputs: list[BufferNode], tile_bytes: int) -> int:
    """Return the tiles of one write over PCIe: the greatest common divisor of those that each core in turn sends and,
    if there is a single output, of its buffer; halved as long as it is even and too large for one write."""
    runs = list[int]()
    place = None
    for buffer, _ in inputs:
        if buffer.place == place:
            runs[-1] += buffer.buffer.scatter_gather_num_tiles
        else:
            runs.append(buffer.buffer.scatter_gather_num_tiles)
        place = buffer.place
    tiles = gcd(*runs)
    if len(outputs) == 1:
        tiles = gcd(tiles, outputs[0].buffer.size_tiles)
    while tiles % 2 == 0 and tiles * tile_bytes > WRITE_BYTES:
        tiles //= 2
    return tiles
