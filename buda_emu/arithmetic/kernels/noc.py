"""What transfers put on the NoCs of a chip, and how long they take by it, while ops are moved about
(`buda_emu.performance.timing.transfers.moving`).

A *way* is a link of a NoC, a port of a core or of DRAM, or a crossing between chips; each has a number. The ways of a
chip are a block of numbers; what is loaded once has a block of its own, so that it takes no time from what each input
moves. In a block: links by NoC, axis, x and y of the router that they leave, then ports by kind (core, DRAM), direction
(into, out of), NoC, x and y; crossings follow after all blocks. A *row* has the ways of one transfer, each with the
cycles for which the transfer keeps it busy.
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
"""Ways of each router: the links that leave it, and 8 ports."""
READS = 0
BETWEEN = 1
WRITES = 2
"""What a transfer is: out of DRAM, from op to op, anything else."""
_AXES: Final = 2
"""The number of axes of a NoC."""


class Mesh(NamedTuple):
    """The NoCs of a chip and notes for building rows. `width` and `height` of a NoC in routers; `xs` and `ys`: the x
    and y of the columns and rows of cores that run ops. By way: `rate`, bytes in a cycle; `place`, its place in the row
    that is being built, else -1; `seen`, the number of the source that was last sent over it. `stamp`, int64[1], counts
    the sources sent so far."""

    width: int
    height: int
    xs: Ints
    ys: Ints
    rate: Floats
    place: Ints
    seen: Ints
    stamp: Ints


class Grids(NamedTuple):
    """The grids of ops, by the op's number: the row and column of the core at which it begins (`top`, `left`), its rows
    and columns, and whether they are transposed on the chip."""

    top: Ints
    left: Ints
    rows: Ints
    columns: Ints
    transposed: Ints


class Edges(NamedTuple):
    """The transfers to and from ops. By transfer: `near`, the number of the op by whose cores it is cut; `far`, that of
    the op at its other end, or -1 where that is a queue, at `places`; `writes`, 1 if it leaves the near op, by NoC 1, 0
    if it reaches it, by NoC 0; `block`, the first number of its ways; `kind` of the far ports (0 cores, 1 DRAM), -1
    where they are unknown; `crossing`, the way between chips that is its only one, or -1; `size`, the bytes of one near
    core, or of all cores if it crosses.

    Groups of near cores that need the same data are number group[n] to group[n + 1] - 1. Their cells are
    cells[cell_first[g]] to cells[cell_first[g + 1] - 1], their sources likewise. A source is a cell of the far op, or a
    row of `places` (x, y), and has its share of the bytes in `shares`.
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
    """The rows of transfers: by [row, place] the number of a way (`ways`) and the cycles for which the transfer keeps
    it busy; by row how many places are `filled`, and how `far` its cores read: 0 only from themselves, 1 within a
    column, 2 within a row, 3 anywhere."""

    ways: Ints
    cycles: Floats
    filled: Ints
    far: Ints


class Cycles(NamedTuple):
    """The cycles of each transfer: those that it takes at `least`, however idle its ways are, and those that it `takes`
    at the present places of ops."""

    least: Floats
    takes: Floats


class Change(NamedTuple):
    """The change of the load by a move of ops, with the arrays to work in. By way: `busy`, the cycles for which all
    transfers keep it busy; `cycles` that the move adds; whether it `counts` as changed. Lists: `ways` that changed, and
    the busy cycles that they had `before`; `edges`, the transfers that the move touches, and the cycles that each of
    these then `takes`; `found`, the lengths of both lists. By transfer: `row`, its new row, or -1. `partials`: room for
    an exact sum."""

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
def _position_of_cell(cell: int, op: int, grids: Grids, mesh: Mesh) -> tuple[int, int]:
    """Return x and y, on the NoC, of the core that has a cell of an op's grid; cells count row by row."""
    row = cell // grids.columns[op]
    column = cell % grids.columns[op]
    if grids.transposed[op]:
        return int(mesh.xs[grids.left[op] + row]), int(mesh.ys[grids.top[op] + column])
    return int(mesh.xs[grids.left[op] + column]), int(mesh.ys[grids.top[op] + row])


@helper
def _add_bytes(link: int, size: float, row: int, rows: Rows, mesh: Mesh) -> None:
    """Add `size` bytes to a way in a row that is being built; a way that the row does not have yet is appended. Until
    the row is done, `cycles` has bytes."""
    place = mesh.place[link]
    if place < 0:
        place = rows.filled[row]
        mesh.place[link] = place
        rows.ways[row, place] = link
        rows.cycles[row, place] = 0.0
        rows.filled[row] = place + 1
    rows.cycles[row, place] += size


@helper
def _add_route(
    noc: int,
    start: tuple[int, int],
    end: tuple[int, int],
    block: int,
    size: float,
    row: int,
    rows: Rows,
    mesh: Mesh,
) -> None:
    """Add `size` bytes to all links of a route from `start` to `end` (x, y), in a row that is being built: NoC 0 goes
    right, then down; NoC 1 up, then left (PERF 1.2). `block`: the first number of the transfer's ways. Links over which
    the same source (`mesh.stamp`) was sent already are left out: data for several cores of a group travel over a common
    link once."""
    (x, y) = start
    (to_x, to_y) = end
    for turn in range(_AXES):
        axis = turn
        step = 1
        if noc == 1:
            axis = 1 - turn
            step = -1
        while (axis == 0 and x != to_x) or (axis == 1 and y != to_y):
            link = block + ((noc * 2 + axis) * mesh.width + x) * mesh.height + y
            if mesh.seen[link] != mesh.stamp[0]:
                mesh.seen[link] = mesh.stamp[0]
                _add_bytes(link, size, row, rows, mesh)
            if axis == 0:
                x = (x + step) % mesh.width
            else:
                y = (y + step) % mesh.height


@helper
def _port_number(kind: int, out: int, noc: int, x: int, y: int, mesh: Mesh) -> int:
    """Return the number of a port of the core or DRAM at (x, y) within a block of ways. `kind`: 0 for cores, 1 for
    DRAM; `out`: 1 for data that leaves, 0 for data that arrives."""
    return (LINKS + (kind * 2 + out) * 2 + noc) * mesh.width * mesh.height + x * mesh.height + y


@helper
def _fill_row(edge: int, row: int, edges: Edges, grids: Grids, mesh: Mesh, rows: Rows) -> None:
    """Build row number `row` for the transfer `edge`: its ways with the cycles for which it keeps each busy, and how
    far its cores read."""
    rows.filled[row] = 0
    rows.far[row] = 3
    if edges.crossing[edge] >= 0:
        _add_bytes(edges.crossing[edge], edges.size[edge], row, rows, mesh)
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
                far_x, far_y = _position_of_cell(edges.sources[source], edges.far[edge], grids, mesh)
            else:
                far_x = edges.places[edges.sources[source], 0]
                far_y = edges.places[edges.sources[source], 1]
            for number in cells:
                x, y = _position_of_cell(edges.cells[number], near, grids, mesh)
                if writes:
                    _add_route(1, (x, y), (far_x, far_y), block, size, row, rows, mesh)
                else:
                    _add_route(0, (far_x, far_y), (x, y), block, size, row, rows, mesh)
                rows.far[row] = max(rows.far[row], 2 * (x != far_x) + (y != far_y))
                _add_bytes(block + _port_number(0, writes, writes, x, y, mesh), size, row, rows, mesh)
            if edges.kind[edge] >= 0:
                link = block + _port_number(edges.kind[edge], 1 - writes, writes, far_x, far_y, mesh)
                _add_bytes(link, size, row, rows, mesh)
    for place in range(rows.filled[row]):
        link = rows.ways[row, place]
        mesh.place[link] = -1
        rows.cycles[row, place] /= mesh.rate[link]


@kernel
def fill_rows(edges: Edges, grids: Grids, mesh: Mesh, rows: Rows, busy: Floats) -> None:
    """Build the rows of all transfers, and add to `busy` the cycles for which they keep each way busy."""
    for edge in range(edges.near.shape[0]):
        _fill_row(edge, edge, edges, grids, mesh, rows)
        for place in range(rows.filled[edge]):
            busy[rows.ways[edge, place]] += rows.cycles[edge, place]


@helper
def _busiest_way_cycles(row: int, rows: Rows, busy: Floats) -> float:
    """Return the busy cycles of the busiest way in a row, 0 for an empty one."""
    fullest = 0.0
    for place in range(rows.filled[row]):
        fullest = max(fullest, float(busy[rows.ways[row, place]]))
    return fullest


@kernel
def fullest_ways(rows: Rows, busy: Floats, least: Floats, takes: Floats) -> None:
    """Write to `takes` the cycles of each transfer: the `busy` cycles of the busiest way in its row, and at least
    `least`."""
    for edge in range(takes.shape[0]):
        takes[edge] = max(least[edge], _busiest_way_cycles(edge, rows, busy))


@helper
def _add_row_to_change(row: int, sign: float, rows: Rows, change: Change, links: int) -> int:
    """Add `sign` times the cycles of a row to the change of each of its ways, and note the ways that are new there.
    Return the number of ways in the change, which was `links` before."""
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
    """Return whether a way in a transfer's row counts as changed."""
    place = 0
    while place < rows.filled[edge] and change.counts[rows.ways[edge, place]] != 1:
        place += 1
    return bool(place < rows.filled[edge])


@helper
def _add_exactly(term: float, partials: Floats, count: int) -> int:
    """Add a term to the sum of the first `count` of `partials` without rounding, in place, and return how many partials
    there are then. They do not overlap, the smallest stands first, and the last one has the sign of the sum, as in
    `math.fsum` (Shewchuk 1997)."""
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
    """Return the sum of the first `count` of `partials`, rounded once to the nearest double, ties to even, as
    `math.fsum` does."""
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
    """Return how many more cycles all transfers take together after a move, without rounding in between. `moved`: the
    transfers with an op at an end that moved; `rows`: the present ones and room for new ones. Ways whose load changes
    by no more than `few` cycles are left as they are.

    The new rows, the changes and the new busy cycles of ways are written, to the new rows and to `change`; the caller
    ends the trial with `take_back` or `keep_move`.
    """
    old, new = rows
    busy = change.busy
    links = 0
    for number in range(moved.shape[0]):
        _fill_row(moved[number], number, edges, grids, mesh, new)
        change.row[moved[number]] = number
    for number in range(moved.shape[0]):
        links = _add_row_to_change(moved[number], -1.0, old, change, links)
    for number in range(moved.shape[0]):
        links = _add_row_to_change(number, 1.0, new, change, links)
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
                fullest = _busiest_way_cycles(row, new, busy)
            else:
                fullest = _busiest_way_cycles(edge, old, busy)
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
    """Give the transfers `moved`, with an op at an end that moved, their new rows if the sum over all ways of the
    fourth powers of the busy cycles becomes smaller by that, so that the busiest ways count most; return 1 if so, else
    0, with nothing changed. `rows`: the present ones and room for new ones.

    The sums are compared without rounding, since ways are met in different orders.
    """
    old, new = rows
    busy = change.busy
    links = 0
    for number in range(moved.shape[0]):
        _fill_row(moved[number], number, edges, grids, mesh, new)
        links = _add_row_to_change(moved[number], -1.0, old, change, links)
        links = _add_row_to_change(number, 1.0, new, change, links)
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
        _copy_row(edge, number, rows)
    return 1


@helper
def _copy_row(edge: int, number: int, rows: tuple[Rows, Rows]) -> None:
    """Copy row `number` of the new rows over the present row of a transfer, `edge`."""
    old, new = rows
    old.filled[edge] = new.filled[number]
    old.far[edge] = new.far[number]
    for place in range(new.filled[number]):
        old.ways[edge, place] = new.ways[number, place]
        old.cycles[edge, place] = new.cycles[number, place]


@kernel
def take_back(moved: Ints, change: Change) -> None:
    """Undo the last `weigh_move`, which was of the transfers `moved`, in the busy cycles of ways and the list of new
    rows."""
    for number in range(change.found[0]):
        change.busy[change.ways[number]] = change.before[number]
    for number in range(moved.shape[0]):
        change.row[moved[number]] = -1


@kernel
def keep_move(moved: Ints, change: Change, rows: tuple[Rows, Rows], takes: Floats) -> None:
    """Make the new rows of the transfers `moved` the present ones, after `weigh_move`, and write to `takes` the cycles
    of the transfers that the move touches."""
    for number in range(moved.shape[0]):
        change.row[moved[number]] = -1
        _copy_row(moved[number], number, rows)
    for number in range(change.found[1]):
        takes[change.edges[number]] = change.takes[number]


class Steps(NamedTuple):
    """The tasks of transfers in the schedule of an epoch. By transfer: its tasks are number `first` to `stop` - 1; its
    kind (READS, BETWEEN or WRITES); whether it is loaded `once`; and the cycles that it takes `alone`. `read`: the
    latencies of a DRAM read by how far a core reads (`Rows.far`), then the cycles before the first byte between ops,
    and those of each hop."""

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
    """Write to `durations` the cycles of the tasks of all transfers that the last move touches, by the rule of
    `buda_emu.performance.timing.epoch.tasks.step_cycles`: the first task of a DRAM read has the read's latency, each
    task between two ops that of the way; of what is loaded once the first task takes all the time."""
    old, new = rows
    for number in range(change.found[1]):
        edge = change.edges[number]
        row = int(change.row[edge])
        if row >= 0:
            far = new.far[row]
            fullest = _busiest_way_cycles(row, new, change.busy)
        else:
            far = old.far[edge]
            fullest = _busiest_way_cycles(edge, old, change.busy)
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
