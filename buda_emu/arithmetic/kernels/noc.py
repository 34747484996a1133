"""What transfers put on the NoCs of a chip, and how long they take by it, where ops move (`timing.transfers.moving`).

Ways (links, ports) have numbers; those of a chip are a block, apart for what is loaded once. In a block: links by NoC,
axis, x and y of the router that they leave, then ports by kind (core, DRAM), direction (into, out of), NoC, x and y.
A *row* has the ways of one transfer, each with the cycles for which the transfer keeps it busy.
"""

from math import ceil
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LINKS = 4  # of NoC 0 right and down, of NoC 1 left and up (PERF 1.2)
WAYS = 12
"""Of each router: links that leave it, and these with ports."""
READS = 0
BETWEEN = 1
WRITES = 2
"""What a transfer is: out of DRAM, from op to op, anything else."""
_ALL: Final = 2
"""Of the axes of a NoC."""


class Mesh(NamedTuple):
    """`width` and `height` of a NoC; the x and y of the columns and rows of cores that run ops. Of each way: bytes in a
    cycle, its place in the row that is made (else -1), and the last source that was sent over it (`stamp`: how many
    there were)."""

    width: int
    height: int
    xs: Ints
    ys: Ints
    rate: Floats
    place: Ints
    seen: Ints
    stamp: Ints


class Grids(NamedTuple):
    """The grids of ops: for each its place, its rows and columns, and whether they are transposed."""

    top: Ints
    left: Ints
    rows: Ints
    columns: Ints
    transposed: Ints


class Edges(NamedTuple):
    """The transfers between ops. For each: the number of the op whose cores it is cut by (`near`), and of the op at the
    other end (`far`), or -1 where the other end is `places`. `writes`: it leaves the near op, by NoC 1; `block`: the
    first number of its links; `kind` of the far ports, -1 where it is unknown; `size`: bytes of each core; `crossing`:
    its only link, or -1.

    Groups of cores that need the same data are at group[n] .. group[n+1]-1, their cells and sources likewise; a source
    is a cell of the far op or a place, with its share of the bytes.
    """

    near: Ints
    far: Ints
    writes: Ints
    block: Ints
    kind: Ints
    size: Floats
    crossing: Ints
    group: Ints
    cell_first: Ints
    cells: Ints
    source_first: Ints
    sources: Ints
    shares: Floats
    places: Ints


class Rows(NamedTuple):
    """Ways of transfers: [row, place] numbers and cycles; how many places are `filled`, and how far a core reads
    (`Path.far`)."""

    ways: Ints
    cycles: Floats
    filled: Ints
    far: Ints


class Cycles(NamedTuple):
    """The cycles of each transfer: those that it takes at `least`, and those that it `takes` at the present places."""

    least: Floats
    takes: Floats


class Change(NamedTuple):
    """For how many cycles each way is `busy`. Of a move: by way the cycles that it adds, and whether it `counts`; the
    ways that changed and the cycles that they had; the transfers that it touches, and the cycles that these take; by
    transfer the new row, or -1. `found`: how many such ways and transfers there are. `partials`: room for an exact
    sum."""

    busy: Floats
    cycles: Floats
    counts: Ints
    ways: Ints
    before: Floats
    edges: Ints
    takes: Floats
    row: Ints
    found: Ints
    partials: Floats


@helper
def _place(cell: int, op: int, grids: Grids, mesh: Mesh) -> tuple[int, int]:
    """Return x and y, on the NoC, of a cell of an op's grid."""
    row = cell // grids.columns[op]
    column = cell % grids.columns[op]
    if grids.transposed[op]:
        return int(mesh.xs[grids.left[op] + row]), int(mesh.ys[grids.top[op] + column])
    return int(mesh.xs[grids.left[op] + column]), int(mesh.ys[grids.top[op] + row])


@helper
def _add(link: int, size: float, row: int, rows: Rows, mesh: Mesh) -> None:
    """Add `size` bytes to a link of a row, which is entered where the row does not have it."""
    place = mesh.place[link]
    if place < 0:
        place = rows.filled[row]
        mesh.place[link] = place
        rows.ways[row, place] = link
        rows.cycles[row, place] = 0.0
        rows.filled[row] = place + 1
    rows.cycles[row, place] += size


@helper
def _travel(
    noc: int,
    start: tuple[int, int],
    end: tuple[int, int],
    block: int,
    size: float,
    row: int,
    rows: Rows,
    mesh: Mesh,
) -> None:
    """Add bytes to all links of a route from `start` to `end` (x, y), in the row of a transfer: NoC 0 goes right, then
    down; NoC 1 up, then left (PERF 1.2). `block`: the first number of the transfer's links. Links that a group has in
    common count once."""
    (x, y) = start
    (to_x, to_y) = end
    for turn in range(_ALL):
        axis = turn
        step = 1
        if noc == 1:
            axis = 1 - turn
            step = -1
        while (axis == 0 and x != to_x) or (axis == 1 and y != to_y):
            link = block + ((noc * 2 + axis) * mesh.width + x) * mesh.height + y
            if mesh.seen[link] != mesh.stamp[0]:
                mesh.seen[link] = mesh.stamp[0]
                _add(link, size, row, rows, mesh)
            if axis == 0:
                x = (x + step) % mesh.width
            else:
                y = (y + step) % mesh.height


@helper
def _port(kind: int, out: int, noc: int, x: int, y: int, mesh: Mesh) -> int:
    """Return the number of a port of the core at (x, y) within a block of links. `kind`: that of the port; `out`: 1 for
    data that leaves."""
    return (LINKS + (kind * 2 + out) * 2 + noc) * mesh.width * mesh.height + x * mesh.height + y


@helper
def _fill(edge: int, row: int, edges: Edges, grids: Grids, mesh: Mesh, rows: Rows) -> None:
    """Compute the row of transfer number `edge`: its links and the cycles that it takes on each."""
    rows.filled[row] = 0
    rows.far[row] = 3
    if edges.crossing[edge] >= 0:
        _add(edges.crossing[edge], edges.size[edge], row, rows, mesh)
    first = edges.group[edge]
    last = edges.group[edge + 1]
    writes = edges.writes[edge]
    block = edges.block[edge]
    near = edges.near[edge]
    if first < last:
        rows.far[row] = 0
    for group in range(first, last):
        cells = range(edges.cell_first[group], edges.cell_first[group + 1])
        for source in range(edges.source_first[group], edges.source_first[group + 1]):
            size = edges.size[edge] * edges.shares[source]
            mesh.stamp[0] += 1
            if edges.far[edge] >= 0:
                far_x, far_y = _place(edges.sources[source], edges.far[edge], grids, mesh)
            else:
                far_x = edges.places[edges.sources[source], 0]
                far_y = edges.places[edges.sources[source], 1]
            for number in cells:
                x, y = _place(edges.cells[number], near, grids, mesh)
                if writes:
                    _travel(1, (x, y), (far_x, far_y), block, size, row, rows, mesh)
                else:
                    _travel(0, (far_x, far_y), (x, y), block, size, row, rows, mesh)
                rows.far[row] = max(rows.far[row], 2 * (x != far_x) + (y != far_y))
                _add(block + _port(0, writes, writes, x, y, mesh), size, row, rows, mesh)
            if edges.kind[edge] >= 0:
                link = block + _port(edges.kind[edge], 1 - writes, writes, far_x, far_y, mesh)
                _add(link, size, row, rows, mesh)
    for place in range(rows.filled[row]):
        link = rows.ways[row, place]
        mesh.place[link] = -1
        rows.cycles[row, place] /= mesh.rate[link]


@kernel
def fill_rows(edges: Edges, grids: Grids, mesh: Mesh, rows: Rows, busy: Floats) -> None:
    """Make the rows of all transfers, and the cycles for which all of them together keep each way `busy`."""
    for edge in range(edges.near.shape[0]):
        _fill(edge, edge, edges, grids, mesh, rows)
        for place in range(rows.filled[edge]):
            busy[rows.ways[edge, place]] += rows.cycles[edge, place]


@helper
def _fullest(row: int, rows: Rows, busy: Floats) -> float:
    """Return the busy cycles of the busiest link of a row."""
    fullest = 0.0
    for place in range(rows.filled[row]):
        fullest = max(fullest, float(busy[rows.ways[row, place]]))
    return fullest


@kernel
def fullest_ways(rows: Rows, busy: Floats, least: Floats, takes: Floats) -> None:
    """Write to `takes` the cycles of each transfer: the `busy` cycles of the fullest way of its row, `least` at
    least."""
    for edge in range(takes.shape[0]):
        takes[edge] = max(least[edge], _fullest(edge, rows, busy))


@helper
def _count(row: int, sign: float, rows: Rows, change: Change, links: int) -> int:
    """Add a row of transfers to the change with this sign, and return the number of links in the change, which was
    `links` before."""
    for place in range(rows.filled[row]):
        link = rows.ways[row, place]
        if change.counts[link] == 0:
            change.counts[link] = 1
            change.ways[links] = link
            links += 1
        change.cycles[link] += sign * rows.cycles[row, place]
    return links


@helper
def _has_counted_way(edge: int, rows: Rows, change: Change) -> bool:
    """Return whether a way of a transfer's row counts as changed."""
    place = 0
    while place < rows.filled[edge] and change.counts[rows.ways[edge, place]] != 1:
        place += 1
    return bool(place < rows.filled[edge])


@helper
def _add_exactly(term: float, partials: Floats, count: int) -> int:
    """Add a term to the sum of the first `count` partials, without rounding, and return how many there are then: the
    last one has the sign of the sum, as in `math.fsum` (Shewchuk 1997)."""
    filled = 0
    for place in range(count):
        partial = float(partials[place])
        if abs(term) < abs(partial):
            larger = partial
            partial = term
            term = larger
        high = term + partial
        low = partial - (high - term)
        if low != 0.0:
            partials[filled] = low
            filled += 1
        term = high
    if term != 0.0:
        partials[filled] = term
        filled += 1
    return filled


@helper
def _rounded_sum(partials: Floats, count: int) -> float:
    """Return the sum of the first `count` partials, rounded once: to the nearest number, of two as near to the even
    one, as `math.fsum` does."""
    total = 0.0
    low = 0.0
    place = count
    while place > 0 and low == 0.0:
        place -= 1
        before = total
        total = before + partials[place]
        low = partials[place] - (total - before)
    if place > 0 and (low < 0.0) == (partials[place - 1] < 0.0):  # what follows decides where two are as near
        farther = total + 2.0 * low
        if farther - total == 2.0 * low:
            total = farther
    return total


@kernel
def weigh_move(
    moved: Ints,
    edges: Edges,
    grids: Grids,
    mesh: Mesh,
    rows: tuple[Rows, Rows],
    cycles: Cycles,
    few: float,
    change: Change,
) -> float:
    """Return how many more cycles all transfers take when those at the ends of which an op `moved` have other rows:
    `rows` are the present ones and the new ones. Links that change by no more than `few` cycles are left as they are.
    Writes `change`, also the busy cycles of links, which `take_back` undoes."""
    old, new = rows
    busy = change.busy
    links = 0
    for number in range(moved.shape[0]):
        _fill(moved[number], number, edges, grids, mesh, new)
        change.row[moved[number]] = number
    for number in range(moved.shape[0]):
        links = _count(moved[number], -1.0, old, change, links)
    for number in range(moved.shape[0]):
        links = _count(number, 1.0, new, change, links)
    for number in range(links):
        link = change.ways[number]
        change.before[number] = busy[link]
        if abs(change.cycles[link]) > few:
            busy[link] += change.cycles[link]
        else:
            change.counts[link] = 0
    touched = 0
    terms = 0
    for edge in range(cycles.least.shape[0]):
        row = change.row[edge]
        if row >= 0 or _has_counted_way(edge, old, change):
            if row >= 0:
                fullest = _fullest(row, new, busy)
            else:
                fullest = _fullest(edge, old, busy)
            takes = max(cycles.least[edge], fullest)
            change.edges[touched] = edge
            change.takes[touched] = takes
            touched += 1
            if takes != cycles.takes[edge]:
                terms = _add_exactly(takes, change.partials, terms)
                terms = _add_exactly(-float(cycles.takes[edge]), change.partials, terms)
    for number in range(links):
        change.counts[change.ways[number]] = 0
        change.cycles[change.ways[number]] = 0.0
    change.found[0] = links
    change.found[1] = touched
    return _rounded_sum(change.partials, terms)


@helper
def _fourth_power(load: float) -> float:
    """Return the fourth power of a load, by products, which are the same on every machine."""
    square = load * load
    return square * square


@kernel
def relieve_ways(moved: Ints, edges: Edges, grids: Grids, mesh: Mesh, rows: tuple[Rows, Rows], change: Change) -> int:
    """Give the transfers `moved`, at the ends of which an op moved, their new rows if the fourth powers of the busy
    cycles of all ways have a smaller sum then, and return whether they have. `rows` are the present ones, and room for
    the new ones.

    The sums are compared without rounding, since ways are met in different orders."""
    old, new = rows
    busy = change.busy
    links = 0
    for number in range(moved.shape[0]):
        _fill(moved[number], number, edges, grids, mesh, new)
        links = _count(moved[number], -1.0, old, change, links)
        links = _count(number, 1.0, new, change, links)
    count = 0
    for number in range(links):
        link = change.ways[number]
        added = float(change.cycles[link])
        if added != 0.0:
            count = _add_exactly(_fourth_power(float(busy[link])), change.partials, count)
            after = max(float(busy[link]) + added, 0.0)
            count = _add_exactly(-_fourth_power(after), change.partials, count)
        change.counts[link] = 0
        change.cycles[link] = 0.0
    if count == 0 or change.partials[count - 1] < 0.0:
        return 0
    for number in range(moved.shape[0]):
        edge = moved[number]
        for place in range(old.filled[edge]):
            busy[old.ways[edge, place]] -= old.cycles[edge, place]
        for place in range(new.filled[number]):
            busy[new.ways[number, place]] += new.cycles[number, place]
        _take_row(edge, number, rows)
    return 1


@helper
def _take_row(edge: int, number: int, rows: tuple[Rows, Rows]) -> None:
    """Make row `number` of the new rows the present one of a transfer."""
    old, new = rows
    old.filled[edge] = new.filled[number]
    old.far[edge] = new.far[number]
    for place in range(new.filled[number]):
        old.ways[edge, place] = new.ways[number, place]
        old.cycles[edge, place] = new.cycles[number, place]


@kernel
def take_back(moved: Ints, change: Change) -> None:
    """Undo the last `weigh_move`, of the transfers `moved`, in the busy cycles and rows of `change`."""
    for number in range(change.found[0]):
        change.busy[change.ways[number]] = change.before[number]
    for number in range(moved.shape[0]):
        change.row[moved[number]] = -1


@kernel
def keep_move(moved: Ints, change: Change, rows: tuple[Rows, Rows], takes: Floats) -> None:
    """Make the new rows of the transfers `moved` the present ones, and write the cycles that the last move gives
    transfers to `takes`."""
    for number in range(moved.shape[0]):
        change.row[moved[number]] = -1
        _take_row(moved[number], number, rows)
    for number in range(change.found[1]):
        takes[change.edges[number]] = change.takes[number]


class Steps(NamedTuple):
    """The tasks of transfers: for each those along its route, `first` .. `stop`-1; its kind (`READS`, `BETWEEN`,
    `WRITES`), whether it is loaded once, and the cycles that it takes by itself. `read`: latencies by distance, then
    the cycles before the first byte between ops, and those of each hop."""

    first: Ints
    stop: Ints
    kind: Ints
    once: Ints
    alone: Floats
    read: Ints


@kernel
def time_move(
    steps: Steps, edges: Edges, grids: Grids, rows: tuple[Rows, Rows], change: Change, durations: Ints
) -> None:
    """Write the durations of the tasks of the transfers that the last move touches
    (`timing.epoch.tasks.step_cycles`)."""
    old, new = rows
    for number in range(change.found[1]):
        edge = change.edges[number]
        row = int(change.row[edge])
        if row >= 0:
            far = new.far[row]
            fullest = _fullest(row, new, change.busy)
        else:
            far = old.far[edge]
            fullest = _fullest(edge, old, change.busy)
        travel = max(steps.alone[edge], fullest)
        first = steps.first[edge]
        stop = steps.stop[edge]
        latency = 0
        if steps.kind[edge] == READS:
            latency = steps.read[far]
        if steps.once[edge]:
            begins = ceil(travel) + latency
            cycles_per_task = 0
        else:
            cycles_per_task = max(1, ceil(travel / (stop - first)))
            if steps.kind[edge] == BETWEEN:
                a = edges.near[edge]
                b = edges.far[edge]
                hops = abs(grids.top[a] - grids.top[b]) + abs(grids.left[a] - grids.left[b])
                cycles_per_task += steps.read[4] + steps.read[5] * hops
            begins = cycles_per_task + latency
        for task in range(first, stop):
            durations[task] = cycles_per_task
        durations[first] = begins
