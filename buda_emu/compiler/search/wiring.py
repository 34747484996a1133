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
"""Number of producers that are tried alone, as all together may need more cores than there are."""


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
    """Return the table with some ops limited to those grids with which the cores of a producer have streams for all its
    readers, and the reason for each of these ops. `names` are the readers that now read through DRAM. None where none
    of them does for lack of streams, or no other grid helps."""
    routing = Routing.of(placement)
    tables = list(table.found)
    bests = list(table.best)
    why = dict[str, str]()
    for reader, source in _stream_detours(placement, names):
        if order.only not in ("", source):
            continue
        for name in (reader, source) if order.readers else (source, reader):
            connecting = [
                choice for choice in table.found[table.index[name]] if _connects(routing, source, name, choice)
            ]
            if connecting:
                number = table.index[name]
                tables[number] = connecting
                bests[number] = [choice for choice in table.best[number] if choice in connecting] or connecting
                why[name] = placement.detours[reader, source].why
                break
    if not why:
        return None
    return replace(table, found=tables, best=bests), why


def _connects(routing: Routing, source: str, name: str, choice: Choice) -> bool:
    """Return whether all readers of a source would have their pipes if the op `name` were divided by this choice."""
    placed: PlacedOp = routing.placement.ops[name]
    if "table" in placed.op.attrs:
        held = placed.held
    else:
        held = choice.held
    return routing.would_connect(source, {name: replace(placed, blocks=choice.blocks, held=held)})


Floats = NDArray[np.float64]
LEAST = 0.5
"""Differences of cycles that do not count, as they are sums of shares."""
SHARE = 1 / 64
"""Weight of a cycle of a transfer where the time of the epoch is known."""


class WiresOfOne:
    """The wires of an epoch of a single input.

    `fullest` is the sum of the cycles of all transfers, each taking as long as by itself or as the fullest link of its
    path, whichever is longer; it has no limit below which wires are short enough."""

    def __init__(self, netlist: Netlist, edges: Sequence[Flow], chip: Device) -> None:
        """Prepare the wires of an epoch that is the whole netlist."""
        self.edges = edges
        self.rates = speed(chip, {}).rates()
        self.paths = MovingPaths(ops=netlist.ops, queues=netlist.queues, edges=edges, chip=chip, rates=self.rates)
        self.paths.with_least(self._cycles_alone())
        self.fullest = fsum(self.paths.takes.tolist())

    def _cycles_alone(self) -> Floats:
        """Return the cycles of each edge by itself: into a core, and out of the fullest of its DRAM channels."""
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
        """Return whether to keep a move after which all transfers together take `change` cycles more."""
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
        self.fullest = fsum(self.paths.takes.tolist())
        return True


class TimedWires(WiresOfOne):
    """The wires of an epoch of a single input that is timed again for each move, except for the work of DRAM channels.

    The sum of all transfers counts a little, so that moves which gain nothing yet lead somewhere. `now` is the cycles
    of both; a move is made that costs less than `slack` cycles."""

    def __init__(self, netlist: Netlist, report: EpochReport, chip: Device) -> None:
        """Prepare the wires of an epoch that is the whole netlist, with its schedule as it is timed now."""
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
        self.now = self._weighted_cycles(self.fullest)
        self.slack = 0.0

    def _weighted_cycles(self, transfers: float) -> float:
        """Return the cycles of the epoch with the present durations, plus `SHARE` of `transfers`, the sum of the cycles
        of all its transfers."""
        return self.makespan(self.durations) + SHARE * transfers

    def _accept(self, change: float) -> bool:
        """Time the epoch again after a move that changes the sum of the cycles of all transfers by `change`, and return
        whether it takes less than `now` plus `slack`. If so `now` becomes the new time, or else the durations are
        restored."""
        before = self.durations
        self.durations = self.durations.copy()
        self.paths.time(self._steps, self.durations)
        after = self._weighted_cycles(self.fullest + change)
        if after >= self.now + self.slack:
            self.durations = before
            return False
        self.now = after
        return True


PATIENCE = 120
"""Moves without a gain after which no more are tried (docs/compile/placing.md, "The search", step 6; three times as
many for a single input)."""
HEAT = 0.01
"""Share of an epoch's cycles that a move may cost at first, on average, in annealing."""


class Wires:
    """The wires of an epoch that takes rounds of inputs. `fullest` is the bytes that the fullest link carries for one
    input."""

    def __init__(self, netlist: Netlist, edges: Sequence[Flow], chip: Device) -> None:
        """Prepare the wires of an epoch that is the whole netlist."""
        self.paths = MovingPaths(
            ops=netlist.ops,
            queues=netlist.queues,
            edges=[edge for edge in edges if not edge.once],
            chip=chip,
            rates=bytes_over_links(speed(chip, {}).rates()),
        )
        self.fullest = self._find_fullest()

    def _find_fullest(self) -> float:
        """Return the bytes over the fullest link."""
        return float(self.paths.busy.max(initial=0.0))

    def try_move(self, places: Mapping[str, tuple[int, int]], turned: str = "") -> bool:
        """Move ops to `places` (by name), and transpose the grid of the op `turned` if one is named, if the loads of
        links get better by it. Return whether the move is made; otherwise nothing changes."""
        if not self.paths.relieve(places, turned):
            return False
        self.fullest = self._find_fullest()
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
    """The end of a search for places: when the fullest link carries no more than `enough` bytes, after `tries` moves,
    or after `patience` in a row that gained nothing."""

    tries: int
    enough: float = 0.0
    patience: int = PATIENCE


class MovedOps(NamedTuple):
    """The decisions of ops after moves, and the number of moves that were `tried`."""

    decisions: dict[str, PlacementDecision]
    tried: int


def rewire(
    decisions: Mapping[str, PlacementDecision],
    wires: Wires | WiresOfOne,
    grid: tuple[int, int],
    limits: MoveLimits,
    kinds: KindsOfMoves = NO_REGIONS,
) -> MovedOps:
    """Move the ops of one chip at random, of `kinds` and within `limits`, keeping each move that `wires` accept, and
    return their decisions at the last places. `wires` are left there, too. The same ops are always moved alike, as the
    draws are seeded by their number."""
    positions = _Positions(decisions, grid, kinds)

    def try_random_move(number: int, draw: random.Random) -> bool:
        """Draw a move of ops; take it and return True if the wires accept it. Of odd numbers it turns an op's grid if
        such moves are drawn and the drawn op can turn."""
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
    """Draw moves by number within `limits`, and return how many were drawn. `try_random_move` returns whether a move
    was made."""
    stale = 0
    for number in range(limits.tries):
        if wires.fullest <= limits.enough or stale > limits.patience:
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
    """Move ops of an epoch that runs one input at a time at random, and return their decisions with the best places
    that were seen in `tries` moves. At first a move that makes the epoch a little slower is made, too, later less and
    less so, so that ops leave places that no single move improves. `wires` is left at the last move made."""
    draw = random.Random(len(decisions))
    positions = _Positions(decisions, grid, kinds)
    best = wires.now
    best_places = dict(positions.places)
    heat = HEAT * best
    for number in range(tries):
        wires.slack = heat * (1 - number / tries) ** 2 * 2 * draw.random()
        change = positions.draw_move(draw)
        if change and wires.try_move(change):
            positions.take(change)
            if wires.now < best:
                best = wires.now
                best_places = dict(positions.places)
    moved = {name: replace(decision, at=best_places[name]) for name, decision in decisions.items()}
    return MovedOps(moved, tries)


class _Positions:
    """The places and grids of the ops of one chip while they are moved, and the cores that are free."""

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
        """Draw a move: one op to free cores, two ops of equal grids exchanged, or all ops of two regions exchanged, as
        far as these kinds are drawn; empty where the draw is not a move."""
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
        """Return the rows and columns that an op takes after the moves, which may have turned it; asked once the search
        is over, to set `grid_transpose`."""
        return self._sizes[name]

    def draw_op_to_turn(self, draw: random.Random) -> str:
        """Draw an op whose grid is to be transposed; "" where the drawn one takes as many rows as columns."""
        name = draw.choice(self._names)
        rows, columns = self._sizes[name]
        return name if rows != columns else ""

    def draw_turn(self, draw: random.Random, name: str) -> dict[str, tuple[int, int]]:
        """Draw a place with room for the transposed grid of an op, and return it by the op's name; empty if there is
        none."""
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
    """Return the places after one op changes places with all ops in another rectangle of its size; empty where that
    overlaps its own or cuts through an op."""
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
