"""Which way data takes over a chip's two NoCs, and how much each link and port carries for one input (PERF 1.2, 5.2).

NoC 0 goes right, then down; NoC 1 up, then left; both wrap around. Reads and transfers between ops are taken to use
NoC 0, writes into queues NoC 1. What several cores need alike (a row of a matmul's cores its first operand, a column
its second, kernel_broadcast all) is sent once along their ways' union: through the port of the core that sends it once,
and into that of each that receives it. To each of its readers an op sends by itself. TMs are not followed: a core is
taken to read the rows and columns of its producer that lie where its own lie in the whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.performance.timing.transfers.flows import Flow
from buda_emu.spec.devices import Core, Device

_WAYS: Final = (((0, "right", 1), (1, "down", 1)), ((1, "up", -1), (0, "left", -1)))
"""Axis, name and step of each NoC's two ways, in their order."""


class Link(NamedTuple):
    """The link that leaves the router at x, y."""

    chip: int
    noc: int
    x: int
    y: int
    way: str

    def __str__(self) -> str:
        return f"NoC {self.noc} {self.x}-{self.y} {self.way}, chip {self.chip}"


class Port(NamedTuple):
    """What leads from a NoC into a core at x, y, or out of it: of a worker ("core") or a DRAM core ("DRAM")."""

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
    """How one edge travels: bytes over each link for one input, through each port and crossing, and whether a core
    gathers from several places. `far`: 0 where it reads its own core, 1 its column, 2 its row, 3 any other."""

    links: Mapping[Link, float]
    gathers: bool
    ports: Mapping[Port | Crossing, float]
    far: int

    def loads(self) -> Iterator[tuple[Way, float]]:
        """All that it passes, and bytes for one input."""
        yield from self.links.items()
        yield from self.ports.items()


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Where the cells of a grid stand, row by row; made once for each, so that it is known by itself."""

    grid: tuple[int, int]
    places: Sequence[Core]


_ANYWHERE: Final = 3  # of `Path.far`
_NOWHERE: Final = Path({}, False, {}, _ANYWHERE)


def paths(netlist: Netlist, edges: Sequence[Flow], chip: Device) -> list[Path]:
    """The path of every edge. Of what crosses chips only the crossing is known."""
    ops = netlist.ops
    ends = (ends_of(edge, ops, netlist.queues) for edge in edges)
    return [path(edge, op, other, chip) for edge, (op, other) in zip(edges, ends, strict=True)]


def ends_of(edge: Flow, ops: Mapping[str, Op], queues: Mapping[str, Queue]) -> tuple[Op, Op | Queue]:
    """The op whose cores an edge is cut by, and the other end."""
    name, other = (edge.source, edge.target) if edge.operand < 0 else (edge.target, edge.source)
    queue = queues.get(other)
    return ops[name], ops[other] if queue is None else queue


def loads(found: Iterable[tuple[Flow, Path]], *, once: bool = False) -> dict[Way, float]:
    """Bytes over each link, port and crossing for one input; `once`: of all that is loaded once."""
    total: dict[Way, float] = {}
    for edge, path in found:
        if edge.once == once:
            for way, size in path.loads():
                total[way] = total.get(way, 0.0) + size
    return total


def route(chip: int, noc: int, start: Core, end: Core, grid: tuple[int, int]) -> Iterator[Link]:
    """The links from one router to another, in order."""
    place = list(start)
    for axis, way, step in _WAYS[noc]:
        while place[axis] != end[axis]:
            yield Link(chip=chip, noc=noc, x=place[0], y=place[1], way=way)
            place[axis] = (place[axis] + step) % grid[axis]


def path(edge: Flow, op: Op, other: Op | Queue, chip: Device) -> Path:
    """The path of one edge between an op and its queue, or the op that it reads."""
    near = cores_of(op, chip)
    far = buffers_of(other, chip) if isinstance(other, Queue) else cores_of(other, chip)
    tall, wide = alike = alike_cores(op, edge.operand, op.blocking.grid_size)
    if edge.crosses:
        chips = (op.target_device, other.target_device) if edge.operand < 0 else (other.target_device, op.target_device)
        return Path({}, False, {Crossing(*chips): edge.core_bytes * op.blocking.cells / (tall * wide)}, _ANYWHERE)
    if near is None or far is None:
        return _NOWHERE
    kind = "core" if isinstance(other, Op) else "DRAM" if edge.memory == "dram" else None
    return _path(op.target_device, edge.operand < 0, edge.core_bytes, alike, near, far, kind, chip.noc_grid)


@lru_cache(1 << 13)
def _path(
    chip: int,
    writes: bool,
    core_bytes: int,
    alike: tuple[int, int],
    near: Cells,
    far: Cells,
    kind: Literal["core", "DRAM"] | None,
    grid: tuple[int, int],
) -> Path:
    """`kind`: of the far cores, None where nothing is known of their ports."""
    links: dict[Link, float] = {}
    ports: dict[Port | Crossing, float] = {}
    gathers = False
    distance = 0
    noc = int(writes)
    here, there = ("out of", "into") if writes else ("into", "out of")
    for cells, sources in groups_of(*alike, near.grid, far.grid):
        cores = tuple([near.places[cell] for cell in cells])
        shares: dict[Core, float] = {}
        for cell, share in sources:
            place = far.places[cell]
            shares[place] = shares.get(place, 0.0) + share
        gathers = gathers or len(shares) > 1
        for place, share in shares.items():
            size = core_bytes * share
            for link in _ways(chip, writes, cores, place, grid):
                links[link] = links.get(link, 0.0) + size
            used = [Port("core", here, chip, noc, *core) for core in cores]
            used += [Port(kind, there, chip, noc, *place)] if kind is not None else []
            for port in used:
                ports[port] = ports.get(port, 0.0) + size
            distance = max(distance, *(_distance(core, place) for core in cores))
    return Path(links, gathers and not writes, ports, distance)


def _distance(a: Core, b: Core) -> int:
    """As `Device.read_latency` counts: 0 the same core, 1 its column, 2 its row, 3 any other."""
    return 2 * (a[0] != b[0]) + (a[1] != b[1])


@lru_cache(1 << 14)
def _ways(chip: int, writes: bool, cores: tuple[Core, ...], place: Core, grid: tuple[int, int]) -> frozenset[Link]:
    """The links between cores and one place, each of them once."""
    ends = [(core, place) if writes else (place, core) for core in cores]
    first, *others = (_way(chip, int(writes), start, end, grid) for start, end in ends)
    return first.union(*others)


@lru_cache(1 << 15)
def _way(chip: int, noc: int, start: Core, end: Core, grid: tuple[int, int]) -> frozenset[Link]:
    return frozenset(route(chip, noc, start, end, grid))


def alike_cores(op: Op, operand: int, grid: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of the op's cores that need the same data."""
    rows, columns = grid
    whole = operand in dict(op.attributes.kernel_broadcast) or operand in dict(op.attributes.kernel_broadcast_per_t)
    product = op.has("inner dimension")
    return rows if whole or (product and operand == 1) else 1, columns if whole or (product and operand == 0) else 1


@lru_cache(1 << 12)
def groups_of(
    tall: int, wide: int, grid: tuple[int, int], far: tuple[int, int]
) -> tuple[tuple[tuple[int, ...], tuple[tuple[int, float], ...]], ...]:
    """Cells of a grid that need the same data, and which share of it they have from each cell of a far one: by the part
    of the whole that both cover."""
    found: list[tuple[tuple[int, ...], tuple[tuple[int, float], ...]]] = []
    for top in range(0, grid[0], tall):
        for left in range(0, grid[1], wide):
            rows = range(top, top + tall)
            columns = range(left, left + wide)
            cells = tuple(row * grid[1] + column for row in rows for column in columns)
            shares = [
                (row * far[1] + column, down * across)
                for row, down in _parts(rows, grid[0], far[0])
                for column, across in _parts(columns, grid[1], far[1])
            ]
            found.append((cells, tuple(shares)))
    return tuple(found)


def _parts(own: range, count: int, others: int) -> Iterator[tuple[int, float]]:
    """Cells of a line of `others` that overlap `own` cells of a line of `count`, and by which share."""
    first, last = own.start * others, own.stop * others  # in units of 1 / (count * others)
    for cell in range(first // count, -(-last // count)):
        common = min(last, (cell + 1) * count) - max(first, cell * count)
        yield cell, common / (last - first)


def cores_of(op: Op, chip: Device) -> Cells | None:
    """Of an op; None where they are not known."""
    if len(op.grid_loc) != 2:
        return None  # ethernet_datacopy
    top, left = op.grid_loc
    return _rectangle(top, left, op.blocking.grid_size, op.grid_transpose, chip.worker_columns, chip.worker_rows)


@lru_cache(1 << 13)
def _rectangle(
    top: int, left: int, grid: tuple[int, int], transposed: bool, xs: tuple[int, ...], ys: tuple[int, ...]
) -> Cells | None:
    """The cores of an op; None where the chip, whose cores stand at these x and y, has no such."""
    rows, columns = grid
    down, across = (columns, rows) if transposed else (rows, columns)
    if min(top, left) < 0 or top + down > len(ys) or left + across > len(xs):
        return None
    if transposed:
        return Cells(grid, [(xs[left + r], ys[top + c]) for r in range(rows) for c in range(columns)])
    return Cells(grid, [(xs[left + c], ys[top + r]) for r in range(rows) for c in range(columns)])


def buffers_of(queue: Queue, chip: Device) -> Cells | None:
    """Where those of a queue are reached; None where that is not known."""
    rows, columns = queue.blocking.grid_size
    if len(queue.buffers) != rows * columns:
        return None
    if queue.loc.lower() == "host":
        return _ports((rows, columns), (0,) * (rows * columns), ((chip.pcie,),))
    return _ports((rows, columns), tuple([buffer.channel for buffer in queue.buffers]), chip.dram_cores)


@lru_cache(1 << 12)
def _ports(grid: tuple[int, int], channels: tuple[int, ...], cores: tuple[tuple[Core, ...], ...]) -> Cells | None:
    """Where buffers in these channels are reached: those of a channel by one of its cores after the other."""
    if any(channel >= len(cores) for channel in channels):
        return None
    return Cells(grid, [cores[channel][number % len(cores[channel])] for number, channel in enumerate(channels)])
