"""The floorplan of an epoch, moved: ops go elsewhere, change places and turn so that wires are short and results can go
from core to core."""

import random
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.place.blocks import CoreGrid
from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.place.placement import PlacedOp, Placement
from buda_emu.compiler.place.routed import Routing
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search_parts import EVERYTHING, Part, Parts
from buda_emu.netlist.model import Netlist
from buda_emu.performance.timing.result import EpochReport
from buda_emu.performance.timing.transfers.flows import Flow
from buda_emu.performance.timing.transfers.moving import MovingPaths, bytes_over_links, steps_of
from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.spec.devices import Device

SINGLE = 4
"""Number of producers that are tried alone, as all together may need more cores than there are. No measurement of the
figure is recorded."""


@dataclass(frozen=True, slots=True)
class GridOrder:
    """The order in which the ops of a detour through DRAM are given other grids: the reader first with `readers`, else
    the producer first; the second one only if no grid of the first helps. With `only`, just the results of the op of
    that name are considered."""

    readers: bool = False
    only: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the search that this attempt is, beside `Part.STREAMS`."""
        if self.readers:
            return (Part.STREAMS_OF_READERS,)
        return (Part.STREAMS_OF_ONE,) if self.only else ()


def grid_orders(placement: Placement, names: Container[str], without: Parts = EVERYTHING) -> list[GridOrder]:
    """Return the orders in which to change grids so that results go from core to core that the ops `names` now read
    through DRAM for lack of streams; empty where they read none so. `without`: parts of the search to leave out."""
    sources = list(dict.fromkeys(source for _, source in _stream_detours(placement, names)))
    if not sources:
        return []
    orders = [GridOrder()]
    if Part.STREAMS_OF_READERS not in without:
        orders.append(GridOrder(readers=True))
    if len(sources) > 1 and Part.STREAMS_OF_ONE not in without:
        orders += [GridOrder(only=source) for source in sources[:SINGLE]]
    return orders


def _stream_detours(placement: Placement, names: Container[str]) -> list[tuple[str, str]]:
    """Return, as (reader, source), each operand of the ops `names` that goes through DRAM since the source's cores lack
    streams for all readers."""
    return [edge for edge, detour in placement.detours.items() if edge[0] in names and detour.kind == "streams"]


def limit_to_streams(
    table: CandidateTable, placement: Placement, names: Container[str], order: GridOrder
) -> tuple[CandidateTable, dict[str, str]] | None:
    """Return a copy of the table in which, for each operand that goes through DRAM for lack of streams, the producer or
    the reader (which one first, `order` says) keeps only the choices with which the producer's cores have streams for
    all readers; and the reason for each op that is limited so, by name. `names`: the ops whose operands are considered.
    None where none of these operands lacks streams, or no choice helps."""
    routing = Routing.of(placement)
    corrected = list(table.corrected)
    bests = list(table.best)
    why = dict[str, str]()
    for reader, source in _stream_detours(placement, names):
        if order.only not in ("", source):
            continue
        for name in (reader, source) if order.readers else (source, reader):
            connecting = [
                choice for choice in table.corrected[table.index[name]] if _connects(routing, source, name, choice)
            ]
            if connecting:
                number = table.index[name]
                corrected[number] = connecting
                bests[number] = [choice for choice in table.best[number] if choice in connecting] or connecting
                why[name] = placement.detours[reader, source].why
                break
    if not why:
        return None
    return replace(table, corrected=corrected, best=bests), why


def _connects(routing: Routing, source: str, name: str, choice: Choice) -> bool:
    """Return whether the cores of `source` would have streams for all its readers if the op `name`, itself or one of
    the readers, were divided by this choice."""
    placed: PlacedOp = routing.placement.ops[name]
    if "table" in placed.op.attrs:  # a picker's tiles and words have other names once they are encoded for a division
        held = placed.held
    else:
        held = choice.held
    return routing.would_connect(source, {name: replace(placed, blocks=choice.blocks, held=held)})


Floats = NDArray[np.float64]
LEAST = 0.5
"""Changes in cycles that do not count: up to this a link's load and the sum of all transfers pass for unchanged, since
both are sums of fractions."""
SHARE = 1 / 64
"""Weight of a cycle of a transfer beside a cycle of the epoch, where moves are judged by the end of the epoch. No
measurement of the figure is recorded."""


class WiresOfOne:
    """The transfers of an epoch that takes one input at a time, while its ops are moved: a move is made if all
    transfers together take less time by it.

    `cost` is the sum of the cycles of all transfers. Each counts as long as it takes at least (`_least_cycles`) or as
    the fullest link or port on its path needs, whichever is longer."""

    def __init__(self, netlist: Netlist, edges: Sequence[Flow], chip: Device) -> None:
        """Take the transfers `edges` of a netlist with a single epoch, with all ops where the netlist has them."""
        self.edges = edges
        self.rates = speed(chip, {}).rates()
        self.paths = MovingPaths(ops=netlist.ops, queues=netlist.queues, edges=edges, chip=chip, rates=self.rates)
        self.paths.with_least(self._least_cycles())
        self.cost = fsum(self.paths.takes.tolist())

    def _least_cycles(self) -> Floats:
        """Return [edge]: the cycles that each transfer takes at least, wherever ops stand: those for the bytes of one
        core, at the rate of a core that gathers from several places or of one that does not; and those of the busiest
        of its DRAM channels for the bytes of all transfers there. Transfers before the first input and those with each
        input are counted apart."""
        moved: dict[tuple[int, bool], list[float]] = {}
        for edge in self.edges:
            if edge.memory == "dram":
                for channel, size in edge.memory_bytes.items():
                    moved.setdefault((channel, edge.once), []).append(size)
        total = {channel: fsum(sizes) / self.rates.dram for channel, sizes in moved.items()}
        cycles = np.zeros(len(self.edges))
        for number, (edge, gathers) in enumerate(zip(self.edges, self.paths.gathers, strict=True)):
            if gathers:
                rate = self.rates.gather
            else:
                rate = self.rates.stream
            edge_cycles = [0.0, edge.core_bytes / rate]
            if edge.memory == "dram":
                edge_cycles += [total[channel, edge.once] for channel in edge.memory_bytes]
            cycles[number] = max(edge_cycles)
        return cycles

    def _accept(self, change: float) -> bool:
        """Return whether to keep a move by which the sum of the cycles of all transfers grows by `change`: whether it
        falls by more than `LEAST`."""
        return change < -LEAST

    def try_move(self, places: Mapping[str, tuple[int, int]], turned: str = "") -> bool:
        """Move ops to `places` (by name), and transpose the grid of the op `turned` if one is named, if the move is
        accepted: here if all transfers together take less time by it. Return whether it is made; otherwise nothing
        changes."""
        change = self.paths.weigh(places, LEAST, turned)
        if change is None:
            return False
        if not self._accept(change):
            self.paths.take_back()
            return False
        self.paths.keep()
        self.cost = fsum(self.paths.takes.tolist())
        return True


class TimedWires(WiresOfOne):
    """The transfers of an epoch that takes one input at a time, while its ops are moved: the end of the epoch is
    modelled again for each move, except for the work of DRAM channels, which depends on no place.

    `weighted_end` is that end in cycles, plus `SHARE` of the cycles of all transfers, so that moves which do not change
    the end yet may lead to ones that do. A move is made if it grows by less than `slack` cycles: with 0, only if it
    falls."""

    def __init__(self, netlist: Netlist, report: EpochReport, chip: Device) -> None:
        """Take the transfers of a netlist with a single epoch, and `report`, the modelled schedule of that epoch with
        all ops where the netlist has them."""
        super().__init__(netlist, report.edges, chip)
        schedule = report.timing.run.schedule
        rates = self.rates
        slowest = [rates.gather if gathers else rates.stream for gathers in self.paths.gathers]
        alone = [
            edge.core_bytes / min(rate, rates.of_packets(edge.packet))
            for edge, rate in zip(self.edges, slowest, strict=True)
        ]
        self._steps = steps_of(self.edges, report.timing.run.ways, alone, rates)
        self.makespan = schedule.makespans()
        self.durations = schedule.durations
        self.weighted_end = self._weighted_cycles(self.cost)
        self.slack = 0.0

    def _weighted_cycles(self, transfers: float) -> float:
        """Return the end of the epoch in cycles with the present durations of its tasks, plus `SHARE` of `transfers`,
        the sum of the cycles of all transfers."""
        return self.makespan(self.durations) + SHARE * transfers

    def _accept(self, change: float) -> bool:
        """Time the epoch again after a move by which the sum of the cycles of all transfers grows by `change`, and
        return whether the weighted end grows by less than `slack`. If so the new end and durations are kept, else the
        durations are restored."""
        before = self.durations
        self.durations = self.durations.copy()
        self.paths.time(self._steps, self.durations)
        after = self._weighted_cycles(self.cost + change)
        if after >= self.weighted_end + self.slack:
            self.durations = before
            return False
        self.weighted_end = after
        return True


PATIENCE = 120
"""Moves in a row without a gain after which no more are tried (docs/compile/placing.md, "The search", step 6; three
times as many for a single input). No measurement of the figure is recorded."""
HEAT = 0.01
"""Share of an epoch's cycles that a move may cost at first, on average, in annealing. No measurement of the figure is
recorded."""


class Wires:
    """The transfers of an epoch that takes rounds of inputs, while its ops are moved: a move is made if the sum of the
    fourth powers of the bytes over each link falls by it, so that the fullest links count most. `cost` is the bytes
    that the fullest link carries for one input."""

    def __init__(self, netlist: Netlist, edges: Sequence[Flow], chip: Device) -> None:
        """Take those of the transfers `edges` that move data with each input, in a netlist with a single epoch, with
        all ops where the netlist has them."""
        self.paths = MovingPaths(
            ops=netlist.ops,
            queues=netlist.queues,
            edges=[edge for edge in edges if not edge.once],
            chip=chip,
            rates=bytes_over_links(speed(chip, {}).rates()),
        )
        self.cost = self._find_fullest()

    def _find_fullest(self) -> float:
        """Return the bytes over the fullest link for one input, 0 where there are no links."""
        return float(self.paths.busy.max(initial=0.0))

    def try_move(self, places: Mapping[str, tuple[int, int]], turned: str = "") -> bool:
        """Move ops to `places` (by name), and transpose the grid of the op `turned` if one is named, if the loads of
        links get better by it. Return whether the move is made; otherwise nothing changes."""
        if not self.paths.relieve(places, turned):
            return False
        self.cost = self._find_fullest()
        return True


@dataclass(frozen=True, slots=True)
class KindsOfMoves:
    """The kinds of moves that are drawn beside that of one op to free cores: `exchanges` of two ops of one size,
    exchanges of all ops in two `regions`, and `turns`, after which a grid is transposed. All that a column of cores
    takes in comes down one link, while a row takes it in over one link for each core."""

    exchanges: bool = True
    regions: bool = False
    turns: bool = False


NO_REGIONS: Final = KindsOfMoves()


class MoveLimits(NamedTuple):
    """The end of a search for places: after `tries` moves, after more than `patience` in a row that were not made, or
    when the `cost` of the wires is at most `enough`, in bytes over the fullest link."""

    tries: int
    enough: float = 0.0
    patience: int = PATIENCE


class MovedOps(NamedTuple):
    """The decisions of ops after a search for places, by name, and the number of moves that were `tried`."""

    decisions: dict[str, PlacementDecision]
    tried: int


def rewire(
    decisions: Mapping[str, PlacementDecision],
    wires: Wires | WiresOfOne,
    grid: tuple[int, int],
    limits: MoveLimits,
    kinds: KindsOfMoves = NO_REGIONS,
) -> MovedOps:
    """Move the ops of one chip at random, with moves of `kinds` and within `limits`, keeping each move that `wires`
    accept, and return their decisions with the last places. `wires` are left with these places, too. Draws are seeded
    with the number of ops, so equal arguments give equal places. `grid`: the rows and columns of the chip's cores."""
    positions = _Positions(decisions, grid, kinds)

    def try_random_move(number: int, draw: random.Random) -> bool:
        """Draw a move; if the wires accept it, make it and return True. A move with an odd number transposes an op's
        grid where such moves are drawn, unless the drawn op has as many rows as columns."""
        turned = ""
        if kinds.turns and number % 2:
            turned = positions.draw_op_to_turn(draw)
        if turned:
            change = positions.draw_turn(draw, turned)
        else:
            change = positions.draw_move(draw)
        if not change or not wires.try_move(change, turned):
            return False
        positions.take(change, turned)
        return True

    tried = _run_moves(try_random_move, wires, random.Random(len(decisions)), limits)
    moved = {
        name: replace(
            decision,
            at=positions.places[name],
            grid_transpose=decision.grid_transpose != (positions.size(name) != decision.size),
        )
        for name, decision in decisions.items()
    }
    return MovedOps(moved, tried)


def _run_moves(
    try_random_move: Callable[[int, random.Random], bool],
    wires: Wires | WiresOfOne,
    draw: random.Random,
    limits: MoveLimits,
) -> int:
    """Call `try_random_move` with the numbers from 0 on until one of `limits` is reached, and return how often it was
    called. It returns whether it made a move."""
    stale = 0
    for number in range(limits.tries):
        if wires.cost <= limits.enough or stale > limits.patience:
            return number
        if try_random_move(number, draw):
            stale = 0
        else:
            stale = stale + 1
    return limits.tries


def anneal(
    decisions: Mapping[str, PlacementDecision],
    wires: TimedWires,
    grid: tuple[int, int],
    tries: int,
    kinds: KindsOfMoves,
) -> MovedOps:
    """Move the ops of one chip at random, in an epoch that takes one input at a time, and return their decisions with
    the best places that were seen in `tries` moves. Moves that make the epoch a little slower are made, too, at first
    more than later, so that ops leave places that no single move improves. `wires` are left with the places after the
    last move. `grid`: the rows and columns of the chip's cores."""
    draw = random.Random(len(decisions))
    positions = _Positions(decisions, grid, kinds)
    best = wires.weighted_end
    best_places = dict(positions.places)
    heat = HEAT * best
    for number in range(tries):
        wires.slack = heat * (1 - number / tries) ** 2 * 2 * draw.random()
        change = positions.draw_move(draw)
        if change and wires.try_move(change):
            positions.take(change)
            if wires.weighted_end < best:
                best = wires.weighted_end
                best_places = dict(positions.places)
    moved = {name: replace(decision, at=best_places[name]) for name, decision in decisions.items()}
    return MovedOps(moved, tries)


class _Positions:
    """The places and grids of the ops of one chip while they are moved, and the cores that are free. The draws of moves
    change nothing; `take` makes a move."""

    def __init__(self, decisions: Mapping[str, PlacementDecision], grid: tuple[int, int], kinds: KindsOfMoves) -> None:
        self._kinds = kinds
        self._names = sorted(decisions)
        self._grid = grid
        self._cores = CoreGrid(*grid)
        self.places = {name: decisions[name].at for name in self._names}
        self._sizes = {name: decisions[name].size for name in self._names}
        self._alike: dict[tuple[int, int], list[str]] = {}
        for name in self._names:
            self._alike.setdefault(self._sizes[name], []).append(name)
            self._cores.block(self.places[name], self._sizes[name])

    def draw_move(self, draw: random.Random) -> dict[str, tuple[int, int]]:
        """Draw a move and return the new places of the ops that it moves, by name: one op to free cores, two ops of
        equal grids exchanged, or an op exchanged with all ops in a rectangle of its size, as far as these kinds are
        drawn. Empty where the draw gives no move."""
        name = draw.choice(self._names)
        grid = self._grid
        shape = self._sizes[name]
        if self._kinds.regions and draw.random() < 0.5:
            at = draw.randrange(grid[0] - shape[0] + 1), draw.randrange(grid[1] - shape[1] + 1)
            return exchange_regions(name, at, self.places, self._sizes)
        same = [other for other in self._alike[shape] if other != name]
        if same and self._kinds.exchanges and draw.random() < 0.5:
            other = draw.choice(same)
            return {name: self.places[other], other: self.places[name]}
        self._cores.release(self.places[name], shape)
        free = self._cores.places(shape)
        self._cores.block(self.places[name], shape)
        at = draw.choice(free)  # its own place is one of them
        if at != self.places[name]:
            return {name: at}
        return {}

    def size(self, name: str) -> tuple[int, int]:
        """Return the rows and columns of cores that an op takes now, after moves that may have transposed its grid."""
        return self._sizes[name]

    def draw_op_to_turn(self, draw: random.Random) -> str:
        """Draw an op whose grid a move may transpose, and return its name; "" where the drawn op has as many rows as
        columns."""
        name = draw.choice(self._names)
        rows, columns = self._sizes[name]
        return name if rows != columns else ""

    def draw_turn(self, draw: random.Random, name: str) -> dict[str, tuple[int, int]]:
        """Draw a place with room for the transposed grid of the op `name`, and return it by that name; empty if there
        is none."""
        rows, columns = shape = self._sizes[name]
        self._cores.release(self.places[name], shape)
        free = self._cores.places((columns, rows))
        self._cores.block(self.places[name], shape)
        if free:
            return {name: draw.choice(free)}
        return {}

    def take(self, change: Mapping[str, tuple[int, int]], transposed: str = "") -> None:
        """Move ops to the places of a change, and transpose the grid of the op `transposed`, if one is named."""
        for name in change:
            self._cores.release(self.places[name], self._sizes[name])
        if transposed:
            rows, columns = self._sizes[transposed]
            self._alike[rows, columns].remove(transposed)
            self._sizes[transposed] = columns, rows
            self._alike.setdefault((columns, rows), []).append(transposed)
        for name, at in change.items():
            self._cores.block(at, self._sizes[name])
        self.places |= change


def exchange_regions(
    name: str, at: tuple[int, int], places: Mapping[str, tuple[int, int]], sizes: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Return the new places, by name, of the ops that change places when the op `name` goes to the upper left core `at`
    and all ops within that rectangle go to its own: `places` are the upper left cores of all ops, `sizes` their rows
    and columns. Empty where the two rectangles overlap or an op lies only partly in the other one."""
    (row, column) = places[name]
    (height, width) = sizes[name]
    down = at[0] - row
    right = at[1] - column
    if abs(down) < height and abs(right) < width:
        return {}
    change = {name: at}
    for other, (top, left) in places.items():
        high, wide = sizes[other]
        inside = at[0] <= top <= at[0] + height - high and at[1] <= left <= at[1] + width - wide
        if inside:
            change[other] = top - down, left - right
        elif at[0] < top + high and top < at[0] + height and at[1] < left + wide and left < at[1] + width:
            return {}
    return change
