"""The layout of ops and queues: one panel for each chip and epoch, as plain geometry in pixels (NETLIST 1.4, 1.8, 2.1).

Cores are placed by their logical row and column. Rows and columns of cores that a panel does not use are drawn narrow.
Queues stand in lanes beside the grid, grouped by their memory: those that the panel reads to the left, those that it
only writes to the right.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from buda_emu.netlist.model import Netlist, Op, Queue

CELL: Final = (136, 86)  # width and height of a core that is used
NARROW: Final = (18, 14)  # and of one that is not
LANE: Final = 214  # width of a lane of queues
BOX: Final = 34  # height of a queue
GAP: Final = 8  # between boxes and lanes
HEAD: Final = 20  # of a group of queues
GUTTER: Final = 76  # between lanes and grid, for the edges
TITLE: Final = 46  # of a panel
RULER: Final = 20  # row and column numbers
_LEAST_LANE: Final = 420  # a lane is at least so high before the next one is begun
_MOST_LANES: Final = 3  # and higher where it takes more lanes than that
INSET: Final = 9  # of an op in its cores: where the edges run


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels, with its upper left corner at x, y."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> tuple[float, float]:
        """The middle of the left side, as (x, y)."""
        return self.x, self.y + self.height / 2

    @property
    def right(self) -> tuple[float, float]:
        """The middle of the right side, as (x, y)."""
        return self.x + self.width, self.y + self.height / 2

    @property
    def above(self) -> tuple[float, float]:
        """The middle of the upper side, as (x, y)."""
        return self.x + self.width / 2, self.y

    @property
    def below(self) -> tuple[float, float]:
        """The middle of the lower side, as (x, y)."""
        return self.x + self.width / 2, self.bottom

    @property
    def bottom(self) -> float:
        """The y of the lower side."""
        return self.y + self.height

    def overlaps(self, other: "Box") -> bool:
        """Return whether two boxes share more than a side."""
        across = self.x < other.x + other.width and other.x < self.x + self.width
        return across and self.y < other.bottom and other.y < self.bottom


@dataclass(frozen=True, slots=True)
class Group:
    """Queues of one memory in one lane: its name and place."""

    name: str
    box: Box


@dataclass(frozen=True, slots=True)
class Edge:
    """Data from one box of a panel to another. Names are those of ops and queues."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Panel:
    """The ops and queues of one chip in one epoch, with their boxes."""

    epoch: int
    chip: int
    graph: str
    input_count: int
    size: tuple[float, float]
    columns: tuple[tuple[float, float], ...]  # x and width of each column of cores
    rows: tuple[tuple[float, float], ...]  # y and height of each row of cores
    ops: dict[str, Box] = field(default_factory=dict[str, Box])
    queues: dict[str, Box] = field(default_factory=dict[str, Box])
    elsewhere: dict[str, Box] = field(default_factory=dict[str, Box])  # ops of other chips that feed this one
    groups: list[Group] = field(default_factory=list[Group])
    edges: list[Edge] = field(default_factory=list[Edge])

    def boxes_for(self, netlist: Netlist, name: str) -> dict[str, Box]:
        """Return the dict of this panel to which the box of a queue or op is added: `queues`, `ops` for an op of the
        panel's graph, `elsewhere` for any other op.
        """
        if name in netlist.queues:
            return self.queues
        if netlist.ops[name].graph == self.graph:
            return self.ops
        return self.elsewhere

    def box(self, name: str) -> Box:
        """Return the box of an op, a queue, or an op of another chip that feeds this one, by its name. Raises KeyError
        for a name without a box."""
        return self.ops.get(name) or self.queues.get(name) or self.elsewhere[name]


def memory(queue: Queue) -> str:
    """Return the memory of a queue in words: `DRAM channel 3`, `DRAM channels 0-7`, `host memory`."""
    channels = sorted({buffer.channel for buffer in queue.buffers})
    if queue.loc == "host":
        return "host memory"
    if len(channels) == 1:
        return f"DRAM channel {channels[0]}"
    if channels:
        together = channels == list(range(channels[0], channels[-1] + 1))
    else:
        together = False
    if together:
        return f"DRAM channels {channels[0]}-{channels[-1]}"
    return f"DRAM channels {', '.join(map(str, channels))}"


def panels(
    netlist: Netlist, epochs: Sequence[int] | None = None, chips: Sequence[int] | None = None
) -> Iterator[Panel]:
    """Lay out and yield a panel for every chip of every epoch in order, or only for the selected epochs and chips."""
    for temporal in netlist.temporal_graphs:
        if epochs is not None and temporal.id not in epochs:
            continue
        for name in temporal.graphs:
            if chips is None or netlist.graphs[name].target_device in chips:
                yield _Planner(netlist, temporal.id, name).panel()


class _Planner:
    """A planner of the layout of one panel."""

    def __init__(self, netlist: Netlist, epoch: int, graph: str) -> None:
        self._netlist = netlist
        self._epoch = epoch
        self._graph = netlist.graphs[graph]
        op_names = {op.name for op in self._graph.ops}
        sources = dict.fromkeys(chain.from_iterable(op.inputs for op in self._graph.ops))
        self._reads = [name for name in sources if name in netlist.queues]
        self._writes = [
            name for name, queue in netlist.queues.items() if queue.input in op_names and name not in sources
        ]
        self._back = [name for name in self._reads if netlist.queues[name].input in op_names]
        self._unplaced = [op.name for op in self._graph.ops if len(op.grid_loc) != 2]  # on Ethernet cores
        self._others = [name for name in sources if name not in netlist.queues and name not in op_names]

    def panel(self) -> Panel:
        """Lay out the panel: boxes of all ops and queues, and edges between them."""
        ops = self._graph.ops
        placed = [op for op in ops if len(op.grid_loc) == 2]
        used_rows: set[int] = set()
        used_cols: set[int] = set()
        for op in placed:
            used_rows.update(range(op.grid_loc[0], op.grid_loc[0] + op.cores[0]))
            used_cols.update(range(op.grid_loc[1], op.grid_loc[1] + op.cores[1]))
        rows, cols = self._netlist.arch.grid
        top = TITLE + RULER
        row_places = list(_core_places(max(rows, 1 + max(used_rows, default=0)), used_rows, top, 1))
        height = row_places[-1][0] + row_places[-1][1]
        lanes_left = self._distribute_to_lanes([*self._others, *self._reads], height)
        left = GAP + len(lanes_left) * (LANE + GAP)
        start = left + (GUTTER if lanes_left else GAP) + RULER
        col_places = list(_core_places(max(cols, 1 + max(used_cols, default=0)), used_cols, start, 0))
        end = col_places[-1][0] + col_places[-1][1]
        lanes_right = self._distribute_to_lanes([*self._unplaced, *self._writes], height)
        right = end + (GUTTER if lanes_right else GAP)
        width = right + len(lanes_right) * (LANE + GAP)
        panel = Panel(
            epoch=self._epoch,
            chip=self._graph.target_device,
            graph=self._graph.name,
            input_count=self._graph.input_count,
            size=(width, height),
            columns=tuple(col_places),
            rows=tuple(row_places),
        )
        for op in placed:
            panel.ops[op.name] = _box_over_cores(op, col_places, row_places)
        bottom = max(self._add_boxes(panel, lanes_left, GAP), self._add_boxes(panel, lanes_right, right), height)
        panel.edges.extend(self._make_edges())
        return replace(panel, size=(width, bottom + GAP))

    def _make_edges(self) -> Iterator[Edge]:
        """Yield the edges into ops from what they read, and those from ops to the queues that they write."""
        for op in self._graph.ops:
            for name in dict.fromkeys(op.inputs):
                yield Edge(name, op.name)
        for name in (*self._writes, *self._back):
            yield Edge(self._netlist.queues[name].input, name)

    def _distribute_to_lanes(self, names: Sequence[str], height: float) -> list[list[tuple[str, list[str]]]]:
        """Distribute queues, and ops that stand beside the grid, over lanes that are about as high as the grid
        (`height`), or higher if they would be too many. Return the lanes, each a list of memories with the names in
        it."""
        by_memory: dict[str, list[str]] = {}
        for name in names:
            by_memory.setdefault(self._place_name(name), []).append(name)
        total_height = len(names) * (BOX + GAP) + (len(by_memory) + _MOST_LANES) * (HEAD + GAP)
        lane_height = max(height - TITLE, _LEAST_LANE, total_height / _MOST_LANES)
        lanes: list[list[tuple[str, list[str]]]] = []
        left = 0.0
        for group, members in sorted(by_memory.items(), key=lambda entry: _channel_order(entry[0])):
            for position, name in enumerate(members):
                needs = BOX + GAP
                if position == 0 or not lanes or left < needs:
                    needs += HEAD
                if left < needs:
                    lanes.append([])
                    left = lane_height
                    needs = BOX + GAP + HEAD
                if not lanes[-1] or lanes[-1][-1][0] != group:
                    lanes[-1].append((group, []))
                lanes[-1][-1][1].append(name)
                left -= needs
        return lanes

    def _place_name(self, name: str) -> str:
        """Return the title under which a queue or op stands in a lane: the queue's memory, or "Ethernet cores" or
        "other chips"."""
        queue = self._netlist.queues.get(name)
        if queue is not None:
            return memory(queue)
        return "Ethernet cores" if name in self._unplaced else "other chips"

    def _add_boxes(self, panel: Panel, lanes: list[list[tuple[str, list[str]]]], x: float) -> float:
        """Add a box for every name, and a group for every memory, of the lanes to the panel, the first lane at `x`.
        Return the y of the lowest side."""
        lowest = 0.0
        for lane in lanes:
            y: float = TITLE
            for group, names in lane:
                top = y
                y = y + HEAD
                for name in names:
                    panel.boxes_for(self._netlist, name)[name] = Box(x + 6, y, LANE - 12, BOX)
                    y += BOX + GAP
                panel.groups.append(Group(group, Box(x, top, LANE, y - top)))
                y += GAP
            lowest = max(lowest, y)
            x += LANE + GAP
        return lowest


def _core_places(count: int, used: set[int], start: float, axis: int) -> Iterator[tuple[float, float]]:
    """Yield the place and the size of each of `count` rows (`axis` 1) or columns (0) of cores from `start` on; those
    that are not in `used` are narrow."""
    for number in range(count):
        if number in used:
            size = CELL[axis]
        else:
            size = NARROW[axis]
        yield start, size
        start += size


def _box_over_cores(op: Op, columns: Sequence[tuple[float, float]], rows: Sequence[tuple[float, float]]) -> Box:
    """Return the box of an op over its cores. `columns` and `rows` hold place and size of each column and row of
    cores.
    """
    row = op.grid_loc[0]
    col = op.grid_loc[1]
    down, across = op.cores
    x = columns[col][0]
    y = rows[row][0]
    right = columns[col + across - 1]
    bottom = rows[row + down - 1]
    width = right[0] + right[1] - x
    height = bottom[0] + bottom[1] - y
    return Box(x + INSET, y + INSET, width - 2 * INSET, height - 2 * INSET)


def _channel_order(group: str) -> tuple[int, int, str]:
    """Return a sort key of memories: by their first channel, those of several channels last."""
    digits = "".join(c for c in group.partition("-")[0] if c.isdigit())
    return len(group.split()) > 2 and "channels" in group, int(digits) if digits else -1, group
