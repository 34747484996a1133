"""Paths of an epoch's transfers while ops are moved, as arrays. A kernel recomputes the edges of an op that moves. The
results equal those of `noc.path` for ops at the same places."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.noc import (
    BETWEEN,
    LINKS,
    READS,
    WAYS,
    WRITES,
    Change,
    Cycles,
    Edges,
    Grids,
    Mesh,
    Rows,
    Steps,
    fill_rows,
    fullest_ways,
    keep_move,
    relieve_ways,
    take_back,
    time_move,
    weigh_move,
)
from buda_emu.netlist.model import Op, Queue
from buda_emu.performance.timing.transfers.flows import Flow
from buda_emu.performance.timing.transfers.noc import buffers_of, cores_of, ends_of, shared_grid, sharing_groups
from buda_emu.performance.timing.transfers.rates import Rates
from buda_emu.spec.devices import Device

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_PORTS: Final = 2
"""Numbers of a kind and direction, one for each NoC."""
_PARTIALS: Final = 64
"""Doubles that hold any sum of doubles exactly: 2,098 bits from the greatest to the least, 53 in each, are 40."""


class MovingPaths:
    """The paths of an epoch's edges, and the cycles for which all of them together keep each link and port busy
    (`busy`).

    `takes` has the cycles of each edge: those of the fullest link or port on its way, and at least `least`. `gathers`
    tells for each edge whether a core gathers from several places. `near` has the edges of each op.
    """

    def __init__(
        self, ops: Mapping[str, Op], queues: Mapping[str, Queue], edges: Sequence[Flow], chip: Device, rates: Rates
    ) -> None:
        self.number = {name: number for number, name in enumerate(ops)}
        near: dict[str, list[int]] = {}
        for number, edge in enumerate(edges):
            for name in (edge.source, edge.target):
                if name in ops:
                    near.setdefault(name, []).append(number)
        self.near = {name: _ints(numbers) for name, numbers in near.items()}
        self._moved = _ints(())
        self._before: dict[str, tuple[int, int]] = {}
        self._turned = ""
        width, height = chip.noc_grid
        builder = _EdgeArrays(ops, queues, chip, self.number)
        self._edges = builder.edges(edges)
        self._grids = _grids(ops.values())
        rate = builder.rates(rates)
        self._mesh = Mesh(
            width=width,
            height=height,
            xs=_ints(chip.worker_columns),
            ys=_ints(chip.worker_rows),
            rate=rate,
            place=np.full(len(rate), -1),
            seen=np.zeros(len(rate), np.int64),
            stamp=np.zeros(1, np.int64),
        )
        routers = width * height
        count = len(edges)
        longest = (WAYS - LINKS // 2) * routers + 1  # one of both NoCs
        self._rows = _rows(count, longest), _rows(count, longest)
        self.busy = np.zeros(len(rate))
        self._change = Change(
            busy=self.busy,
            cycles=np.zeros(len(rate)),
            counts=np.zeros(len(rate), np.int64),
            ways=np.zeros(len(rate), np.int64),
            before=np.zeros(len(rate)),
            edges=np.zeros(count, np.int64),
            takes=np.zeros(count),
            row=np.full(count, -1),
            found=np.zeros(2, np.int64),
            partials=np.zeros(_PARTIALS),
        )
        self.gathers = builder.gathers
        self.least = np.zeros(count)
        self.takes = np.zeros(count)
        fill_rows(self._edges, self._grids, self._mesh, self._rows[0], self.busy)

    def with_least(self, least: Floats) -> None:
        """Set the cycles that each edge takes at least (`least`), and update `takes`."""
        self.least = least
        fullest_ways(self._rows[0], self.busy, least, self.takes)

    def at(self, name: str) -> tuple[int, int]:
        """Return row and column of the worker core at which an op's grid begins."""
        number = self.number[name]
        return int(self._grids.top[number]), int(self._grids.left[number])

    def _put(self, places: Mapping[str, tuple[int, int]], turned: str) -> None:
        """Note other rows and columns at which ops' grids begin, and that the grid of the op `turned`, "" for none, is
        transposed, or no longer; paths are not updated."""
        for name, (top, left) in places.items():
            number = self.number[name]
            self._grids.top[number] = top
            self._grids.left[number] = left
        if turned:
            self._grids.transposed[self.number[turned]] ^= 1

    def _edges_of(self, names: Collection[str]) -> Ints:
        """Return the edges at an end of which one of these ops is, ascending."""
        edges = [self.near[name] for name in names if name in self.near]
        if len(edges) == 1:
            return edges[0]
        return _ints(sorted(set(chain.from_iterable(numbers.tolist() for numbers in edges))))

    def _move(self, places: Mapping[str, tuple[int, int]], turned: str) -> Ints:
        """Move ops, turn one of them unless `turned` is "", and return the edges that have other paths then; nothing is
        moved where there are none."""
        self._moved = self._edges_of(places)
        if len(self._moved):
            self._before = {name: self.at(name) for name in places}
            self._turned = turned
            self._put(places, turned)
        return self._moved

    def weigh(self, places: Mapping[str, tuple[int, int]], few: float, turned: str = "") -> float | None:
        """Move ops to `places`, transpose the grid of the op `turned`, and return how many more cycles all edges take
        then, None if no edge is touched. Links whose load changes by at most `few` cycles are left as they are. Ops
        must stand on cores of the chip. Call `keep` or `take_back` before anything else."""
        moved = self._move(places, turned)
        if not len(moved):
            return None
        cycles = Cycles(self.least, self.takes)
        return weigh_move(moved, self._edges, self._grids, self._mesh, self._rows, cycles, few, self._change)

    def keep(self) -> None:
        """Keep the ops where the last move has put them."""
        keep_move(self._moved, self._change, self._rows, self.takes)

    def take_back(self) -> None:
        """Put the ops back to where they were before the last move."""
        self._put(self._before, self._turned)
        take_back(self._moved, self._change)

    def relieve(self, places: Mapping[str, tuple[int, int]], turned: str = "") -> bool:
        """Move ops to `places`, and transpose the grid of the op `turned`, if links and ports are busy for less by it,
        the busiest above all (`relieve_ways`), and return whether they are. `takes` is not updated."""
        moved = self._move(places, turned)
        if not len(moved):
            return False
        if relieve_ways(moved, self._edges, self._grids, self._mesh, self._rows, self._change):
            return True
        self._put(self._before, self._turned)
        return False

    def is_transposed(self, name: str) -> bool:
        """Return whether the grid of an op is transposed now, after the moves so far."""
        return bool(self._grids.transposed[self.number[name]])

    def time(self, steps: Steps, durations: Ints) -> None:
        """Write into `durations` the durations of the transfer tasks that the last move touches, before it is kept or
        taken back."""
        time_move(steps, self._edges, self._grids, self._rows, self._change, durations)


def bytes_over_links(rates: Rates) -> Rates:
    """Return rates with which a link is busy for a cycle for each byte, and ports and crossings never are: the busy
    cycles of `MovingPaths` are then the bytes over each link."""
    return replace(rates, link=1.0, ethernet=inf, port=inf, memory_ports=(inf, inf))


def steps_of(edges: Sequence[Flow], tasks: Sequence[range], alone: Sequence[float], rates: Rates) -> Steps:
    """Return the argument of `MovingPaths.time`. `tasks` has for each edge its tasks, `alone` the cycles that it takes
    alone."""
    return Steps(
        first=_ints(task_range.start for task_range in tasks),
        stop=_ints(task_range.stop for task_range in tasks),
        kind=_ints(map(_kind, edges)),
        once=_ints(edge.once for edge in edges),
        alone=np.array(alone, np.float64),
        read=_ints((*rates.read, rates.start, rates.hop)),
    )


def _kind(edge: Flow) -> int:
    """Return the kernel's number for an edge: written to a queue or read from the host, read from DRAM, or between
    ops."""
    if edge.operand < 0 or edge.memory == "host":
        return WRITES
    if edge.memory == "dram":
        return READS
    return BETWEEN


def _ints(items: Iterable[int]) -> Ints:
    """Return numbers as an array of int64."""
    return np.array([*items], np.int64)


def _rows(count: int, longest: int) -> Rows:
    """Return empty lists of links and loads for `count` edges, each of at most `longest` links."""
    numbers = np.zeros(count, np.int64), np.zeros(count, np.int64)
    return Rows(np.empty((count, longest), np.int64), np.empty((count, longest)), *numbers)


def _grids(ops: Iterable[Op]) -> Grids:
    """Return the places of ops as arrays. Ops on Ethernet cores have no place on the grid; they get (0, 0), which
    nothing reads."""
    rows = [
        (*(op.grid_loc if len(op.grid_loc) == 2 else (0, 0)), *op.blocking.grid_size, op.grid_transpose) for op in ops
    ]
    return Grids(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


class _EdgeArrays:
    """Converts edges to the arrays of the kernel."""

    def __init__(
        self, ops: Mapping[str, Op], queues: Mapping[str, Queue], chip: Device, number: Mapping[str, int]
    ) -> None:
        self._ops = ops
        self._queues = queues
        self._chip = chip
        self._number = number
        self._blocks: dict[tuple[int, bool], int] = {}
        self._crossings: dict[tuple[int, int, bool], int] = {}
        self._block = WAYS * chip.noc_grid[0] * chip.noc_grid[1]
        self.gathers: list[bool] = []
        self._cells: list[int] = []
        self._sources: list[int] = []
        self._shares: list[float] = []
        self._places: list[tuple[int, int]] = []
        self._cell_first = [0]
        self._source_first = [0]

    def edges(self, edges: Sequence[Flow]) -> Edges:
        """Return all edges in their order."""
        for edge in edges:
            op, _ = ends_of(edge, self._ops, self._queues)
            self._blocks.setdefault((op.target_device, edge.once), len(self._blocks) * self._block)
        rows: list[tuple[int, ...]] = []
        group = [0]
        for edge in edges:
            op, other = ends_of(edge, self._ops, self._queues)
            rows.append(
                (
                    self._number[op.name],
                    self._number[other.name] if isinstance(other, Op) else -1,
                    edge.operand < 0,
                    self._blocks[op.target_device, edge.once],
                    self._far_ports(edge, other),
                    self._crossing(edge, op, other),
                )
            )
            self._add(edge, op, other)
            group.append(len(self._cell_first) - 1)
        near, far, writes, block, kind, crossing = (_ints(column) for column in zip(*rows, strict=True))
        return Edges(
            near=near,
            far=far,
            writes=writes,
            block=block,
            kind=kind,
            size=np.array([self._size(edge) for edge in edges], np.float64),
            crossing=crossing,
            group=_ints(group),
            cell_first=_ints(self._cell_first),
            cells=_ints(self._cells),
            source_first=_ints(self._source_first),
            sources=_ints(self._sources),
            shares=np.array(self._shares, np.float64),
            places=np.array(self._places, np.int64).reshape(-1, 2),
        )

    def rates(self, rates: Rates) -> Floats:
        """Return the rate of every link, port and crossing, in bytes per cycle, in the order of their numbers."""
        routers = self._chip.noc_grid[0] * self._chip.noc_grid[1]
        into, out = rates.memory_ports
        block = [(rates.link, LINKS), (rates.port, 2 * _PORTS), (into, _PORTS), (out, _PORTS)]
        chip_rates: list[float] = []
        for rate, count in block:
            chip_rates += [rate] * (count * routers)
        return np.array(chip_rates * len(self._blocks) + [rates.ethernet] * len(self._crossings), np.float64)

    def _far_ports(self, edge: Flow, other: Op | Queue) -> int:
        """Return the number of the kind of ports at an edge's far end: 0 for cores, 1 for DRAM, -1 for the host, whose
        ports are not known."""
        if isinstance(other, Op):
            return 0
        if edge.memory == "dram":
            return 1
        return -1

    def _crossing(self, edge: Flow, op: Op, other: Op | Queue) -> int:
        """Return the number of the crossing over which an edge goes from chip to chip, -1 if it does not."""
        if not edge.crosses:
            return -1
        source, target = (op, other) if edge.operand < 0 else (other, op)
        key = source.target_device, target.target_device, edge.once
        return self._crossings.setdefault(key, len(self._blocks) * self._block + len(self._crossings))

    def _size(self, edge: Flow) -> float:
        """Return the bytes of an edge for one core, or of the whole edge, shared data once, if it crosses chips."""
        op, _ = ends_of(edge, self._ops, self._queues)
        tall, wide = shared_grid(op, edge.operand, op.blocking.grid_size)
        if edge.crosses:
            return edge.core_bytes * op.blocking.cells / (tall * wide)
        return float(edge.core_bytes)

    def _add(self, edge: Flow, op: Op, other: Op | Queue) -> None:
        """Add the groups of cells of an edge that need the same data: none if it crosses chips or its cores are
        unknown."""
        near = cores_of(op, self._chip)
        if isinstance(other, Queue):
            far = buffers_of(other, self._chip)
        else:
            far = cores_of(other, self._chip)
        gathers = False
        if not edge.crosses and near is not None and far is not None:
            first = len(self._places)
            numbers = {place: first + number for number, place in enumerate(dict.fromkeys(far.places))}
            if isinstance(other, Queue):
                self._places += numbers
            for cells, sources in sharing_groups(*shared_grid(op, edge.operand, near.grid), near.grid, far.grid):
                shares: dict[int, float] = {}
                for cell, share in sources:
                    source = cell
                    if isinstance(other, Queue):
                        source = numbers[far.places[cell]]
                    shares[source] = shares.get(source, 0.0) + share
                gathers = gathers or len(shares) > 1
                self._cells += cells
                self._sources += shares
                self._shares += shares.values()
                self._cell_first.append(len(self._cells))
                self._source_first.append(len(self._sources))
        self.gathers.append(gathers and edge.operand >= 0)
