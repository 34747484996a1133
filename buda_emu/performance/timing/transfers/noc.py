"""The ways of data over a chip's two NoCs, and the load of each link and port for one input (PERF 1.2, 5.2).

NoC 0 goes right, then down; NoC 1 up, then left; both wrap around. Reads and transfers between ops are assumed to use
NoC 0, writes into queues NoC 1. Data that several cores need alike (a row of a matmul's cores its first operand, a
column its second, kernel_broadcast all) is sent once along the union of their ways: once through the port of the
sending core, and into the port of each receiver. An op sends to each of its readers separately. TMs are not followed: a
core is assumed to read the rows and columns of its producer at the same relative position as its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final, Literal, NamedTuple

from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.performance.timing.transfers.flows import Flow
from buda_emu.spec.devices import Core, Device

_WAYS: Final = (((0, "right", 1), (1, "down", 1)), ((1, "up", -1), (0, "left", -1)))
"""Axis, name and step of each NoC's two ways, in their order."""


class Link(NamedTuple):
    """The NoC link that leaves the router at x, y."""

    chip: int
    noc: int
    x: int
    y: int
    way: str

    def __str__(self) -> str:
        return f"NoC {self.noc} {self.x}-{self.y} {self.way}, chip {self.chip}"


class Port(NamedTuple):
    """The port between a NoC and a worker core ("core") or DRAM core ("DRAM") at x, y, in one direction."""

    kind: Literal["core", "DRAM"]
    way: Literal["into", "out of"]
    chip: int
    noc: int
    x: int
    y: int

    def __str__(self) -> str:
        return f"NoC {self.noc} {self.way} {self.kind} {self.x}-{self.y}, chip {self.chip}"


class Crossing(NamedTuple):
    """The Ethernet links that lead from one chip to another."""

    source: int
    target: int

    def __str__(self) -> str:
        return f"Ethernet from chip {self.source} to chip {self.target}"


Way = Link | Port | Crossing


@dataclass(frozen=True, slots=True)
class Path:
    """The path of one edge: the bytes for one input over each link and through each port and crossing, and whether a
    core gathers from several places. `far` is 0 if a core reads only itself, 1 its column, 2 its row, 3 any other."""

    links: Mapping[Link, float]
    gathers: bool
    ports: Mapping[Port | Crossing, float]
    far: int

    def loads(self) -> Iterator[tuple[Way, float]]:
        """Yield every link, port and crossing of the path, with its bytes for one input."""
        yield from self.links.items()
        yield from self.ports.items()


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The places of the cells of a grid, row by row. Instances are cached and compared by identity."""

    grid: tuple[int, int]
    places: Sequence[Core]


_ANYWHERE: Final = 3  # of `Path.far`
_NOWHERE: Final = Path({}, False, {}, _ANYWHERE)


def paths(netlist: Netlist, edges: Sequence[Flow], chip: Device) -> list[Path]:
    """Return the path of every edge, in the order of the edges. That of an edge between two chips consists of its
    crossing alone: no NoC link or port is charged for it. An edge whose cores are not known has an empty one."""
    ops = netlist.ops
    ends = (ends_of(edge, ops, netlist.queues) for edge in edges)
    return [path(edge, op, other, chip) for edge, (op, other) in zip(edges, ends, strict=True)]


def ends_of(edge: Flow, ops: Mapping[str, Op], queues: Mapping[str, Queue]) -> tuple[Op, Op | Queue]:
    """Return the op whose cores divide the data of an edge (the reader, or the writer of a queue), and the op or queue
    at the edge's other end. Raises KeyError for an op that is not in `ops`."""
    name, other = (edge.source, edge.target) if edge.operand < 0 else (edge.target, edge.source)
    queue = queues.get(other)
    return ops[name], ops[other] if queue is None else queue


def loads(edges_and_paths: Iterable[tuple[Flow, Path]], *, once: bool = False) -> dict[Way, float]:
    """Return the bytes over each link, port and crossing for one input; with `once`, those of everything that is loaded
    once instead."""
    total: dict[Way, float] = {}
    for edge, path in edges_and_paths:
        if edge.once == once:
            for link, size in path.loads():
                total[link] = total.get(link, 0.0) + size
    return total


def route(chip: int, noc: int, start: Core, end: Core, grid: tuple[int, int]) -> Iterator[Link]:
    """Yield the links from one router to another (x, y), in order. `grid` is the size of the NoC."""
    place = list(start)
    for axis, direction, step in _WAYS[noc]:
        while place[axis] != end[axis]:
            yield Link(chip=chip, noc=noc, x=place[0], y=place[1], way=direction)
            place[axis] = (place[axis] + step) % grid[axis]


def path(edge: Flow, op: Op, other: Op | Queue, chip: Device) -> Path:
    """Return the path of one edge. `op` is the op whose cores divide its data, `other` the queue or op at its other
    end. Empty if their places are not known."""
    near = cores_of(op, chip)
    if isinstance(other, Queue):
        far = buffers_of(other, chip)
    else:
        far = cores_of(other, chip)
    tall, wide = alike = shared_grid(op, edge.operand, op.blocking.grid_size)
    if edge.crosses:
        if edge.operand < 0:
            chips = (op.target_device, other.target_device)
        else:
            chips = (other.target_device, op.target_device)
        return Path({}, False, {Crossing(*chips): edge.core_bytes * op.blocking.cells / (tall * wide)}, _ANYWHERE)
    if near is None or far is None:
        return _NOWHERE
    if isinstance(other, Op):
        kind = "core"
    elif edge.memory == "dram":
        kind = "DRAM"
    else:
        kind = None
    return _path_between_grids(
        op.target_device, edge.operand < 0, edge.core_bytes, alike, near, far, kind, chip.noc_grid
    )


@lru_cache(1 << 13)
def _path_between_grids(
    chip: int,
    writes: bool,
    core_bytes: int,
    alike: tuple[int, int],
    near: Cells,
    far: Cells,
    kind: Literal["core", "DRAM"] | None,
    grid: tuple[int, int],
) -> Path:
    """Return the path between two grids of cells on one chip. `writes` tells whether the near cores, which receive or
    send `core_bytes` each, send; `alike` is the rows and columns of a group of them that needs the same data; `kind` is
    that of the far cores, None if their ports are unknown."""
    links: dict[Link, float] = {}
    ports: dict[Port | Crossing, float] = {}
    gathers = False
    distance = 0
    noc = int(writes)
    near_direction, far_direction = ("out of", "into") if writes else ("into", "out of")
    for cells, sources in sharing_groups(*alike, near.grid, far.grid):
        cores = tuple([near.places[cell] for cell in cells])
        shares = _shares_by_core(sources, far)
        gathers = gathers or len(shares) > 1
        for place, share in shares.items():
            size = core_bytes * share
            for link in _links_to_place(chip, writes, cores, place, grid):
                links[link] = links.get(link, 0.0) + size
            used = [Port(kind="core", way=near_direction, chip=chip, noc=noc, x=x, y=y) for x, y in cores]
            if kind is not None:
                x, y = place
                used.append(Port(kind=kind, way=far_direction, chip=chip, noc=noc, x=x, y=y))
            for port in used:
                ports[port] = ports.get(port, 0.0) + size
            distance = max(distance, *(_distance(core, place) for core in cores))
    return Path(links, gathers and not writes, ports, distance)


def _shares_by_core(sources: Iterable[tuple[int, float]], far: Cells) -> dict[Core, float]:
    """Return the shares of the far cells added up by the core that each cell lies on."""
    shares: dict[Core, float] = {}
    for cell, share in sources:
        place = far.places[cell]
        shares[place] = shares.get(place, 0.0) + share
    return shares


def _distance(a: Core, b: Core) -> int:
    """Return the distance class of two cores for `Device.read_latency`: 0 the same core, 1 its column, 2 its row, 3 any
    other."""
    return 2 * (a[0] != b[0]) + (a[1] != b[1])


@lru_cache(1 << 14)
def _links_to_place(
    chip: int, writes: bool, cores: tuple[Core, ...], place: Core, grid: tuple[int, int]
) -> frozenset[Link]:
    """Return the links of all ways between several cores and one place, each once. `writes` tells whether the cores
    send. Cached."""
    ends = [(core, place) if writes else (place, core) for core in cores]
    first, *others = (_links_between(chip, int(writes), start, end, grid) for start, end in ends)
    return first.union(*others)


@lru_cache(1 << 15)
def _links_between(chip: int, noc: int, start: Core, end: Core, grid: tuple[int, int]) -> frozenset[Link]:
    """Return the links of a NoC from one router to another, as a set. Cached."""
    return frozenset(route(chip, noc, start, end, grid))


def shared_grid(op: Op, operand: int, grid: tuple[int, int]) -> tuple[int, int]:
    """Return (rows, columns) of a group of the op's cores that needs the same data of input `operand`, if the op has a
    grid of the size `grid`; (1, 1) if each core needs its own."""
    rows, columns = grid
    if operand in dict(op.attributes.kernel_broadcast) or operand in dict(op.attributes.kernel_broadcast_per_t):
        return grid
    if op.has("inner dimension"):
        if operand == 0:  # its rows of tiles are those of a row of cores
            return 1, columns
        if operand == 1:
            return rows, 1
    return 1, 1


@lru_cache(1 << 12)
def sharing_groups(
    tall: int, wide: int, grid: tuple[int, int], far: tuple[int, int]
) -> tuple[tuple[tuple[int, ...], tuple[tuple[int, float], ...]], ...]:
    """Return for each group of `tall` by `wide` cells of `grid` that needs the same data: the numbers of its cells, and
    (cell of the grid `far`, share of the data that comes from it), the part of the tensor that both cover."""
    groups: list[tuple[tuple[int, ...], tuple[tuple[int, float], ...]]] = []
    for top in range(0, grid[0], tall):
        for left in range(0, grid[1], wide):
            rows = range(top, top + tall)
            columns = range(left, left + wide)
            cells = tuple(row * grid[1] + column for row, column in product(rows, columns))
            overlaps = product(_overlaps(rows, grid[0], far[0]), _overlaps(columns, grid[1], far[1]))
            shares = [(row * far[1] + column, down * across) for (row, down), (column, across) in overlaps]
            groups.append((cells, tuple(shares)))
    return tuple(groups)


def _overlaps(span: range, count: int, others: int) -> Iterator[tuple[int, float]]:
    """Yield (cell, share) for the cells of a line of `others` cells that overlap the range `span` of a line of `count`
    cells as long; shares are of the range, and add up to 1."""
    first = span.start * others  # in units of 1 / (count * others), as `last`
    last = span.stop * others
    for cell in range(first // count, -(-last // count)):
        common = min(last, (cell + 1) * count) - max(first, cell * count)
        yield cell, common / (last - first)


def cores_of(op: Op, chip: Device) -> Cells | None:
    """Return the cores of an op on the NoC; None if they are not known, as for one on Ethernet cores or outside of the
    chip."""
    if len(op.grid_loc) != 2:
        return None  # ethernet_datacopy
    top, left = op.grid_loc
    return _rectangle(top, left, op.blocking.grid_size, op.grid_transpose, chip.worker_columns, chip.worker_rows)


@lru_cache(1 << 13)
def _rectangle(
    top: int, left: int, grid: tuple[int, int], transposed: bool, xs: tuple[int, ...], ys: tuple[int, ...]
) -> Cells | None:
    """Return the cells of an op whose grid begins at row `top`, column `left` of the worker cores; None if it lies
    outside of the chip. `xs` and `ys` are the NoC columns and rows of worker cores."""
    rows, columns = grid
    down, across = (columns, rows) if transposed else (rows, columns)
    if min(top, left) < 0 or top + down > len(ys) or left + across > len(xs):
        return None
    places = product(range(rows), range(columns))
    if transposed:
        return Cells(grid, [(xs[left + row], ys[top + column]) for row, column in places])
    return Cells(grid, [(xs[left + column], ys[top + row]) for row, column in places])


def buffers_of(queue: Queue, chip: Device) -> Cells | None:
    """Return the cores of the NoC at which the buffers of a queue are reached, that of PCIe for a queue on the host;
    None if they are not known."""
    rows, columns = queue.blocking.grid_size
    if len(queue.buffers) != rows * columns:
        return None
    if queue.loc.lower() == "host":
        return _port_cells((rows, columns), (0,) * (rows * columns), ((chip.pcie,),))
    return _port_cells((rows, columns), tuple([buffer.channel for buffer in queue.buffers]), chip.dram_cores)


@lru_cache(1 << 12)
def _port_cells(grid: tuple[int, int], channels: tuple[int, ...], cores: tuple[tuple[Core, ...], ...]) -> Cells | None:
    """Return the cores at which buffers in these channels are reached. `cores` has those of each channel, which take
    turns. None for a channel that the chip does not have."""
    if any(channel >= len(cores) for channel in channels):
        return None
    return Cells(grid, [cores[channel][number % len(cores[channel])] for number, channel in enumerate(channels)])
