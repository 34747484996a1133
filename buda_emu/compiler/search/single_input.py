"""The partition of a model into epochs, for rounds of one input: only the ops of this input overlap, so an epoch takes
the longest path through its ops, and loading (PERF 5.1) is a large part of it.

Each op takes the division that is best at a price of a core, in cycles: at a high price few cores, and many ops in an
epoch; at a low price many cores. A dynamic program over the ops in their order finds where epochs end, and at which
price. From each op on it follows the ops along their edges, with the times at which the first and the last part of each
is done, as the timing model does, until the cores are used up."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.lower.tiles import TileOp
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.channels import HOP, first_and_last, share_to_wait_for
from buda_emu.compiler.place.cost import speeds, transfer_cycles
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.search.candidate_table import CandidateTable, Floats, cost_key
from buda_emu.compiler.search.cuts import epoch_load
from buda_emu.compiler.search.pack import TRIES, pack_epochs, pack_on_chip
from buda_emu.compiler.search_parts import EVERYTHING, Part, Parts
from buda_emu.performance.timing.epoch.tasks import parts_of_blocks

SHORTEST: Final = 8
"""Fewest ops of a layer; shorter repetitions are within one."""


class Repetition(NamedTuple):
    """Items from `start` on that form `times` equal groups of `period` items, one after the other."""

    start: int
    period: int
    times: int

    @property
    def stop(self) -> int:
        """The number of the item after the last group."""
        return self.start + self.period * self.times


def find_repetitions(items: Sequence[Hashable]) -> list[Repetition]:
    """Return the longest repetitions in their order, none inside another; of equally long ones those with the shortest
    groups."""
    numbers: dict[Hashable, int] = {}
    return _repetitions_within(np.array([numbers.setdefault(element, len(numbers)) for element in items], np.int64), 0)


def _repetitions_within(keys: NDArray[np.int64], start: int) -> list[Repetition]:
    """Return the repetitions in a range of keys that begins with item `start`."""
    best = Repetition(0, 0, 0)
    for period in range(SHORTEST, len(keys) // 2 + 1):
        same = np.concatenate([[0], keys[:-period] == keys[period:], [0]])
        edges = np.flatnonzero(np.diff(same)).reshape(-1, 2)
        if len(edges):
            begin, end = edges[np.argmax(edges[:, 1] - edges[:, 0])].tolist()
            count = (end - begin) // period + 1
            if count > 1 and period * count > best.period * best.times:
                best = Repetition(begin, period, count)
    if not best.times:
        return []
    repetition = best._replace(start=start + best.start)
    return [
        *_repetitions_within(keys[: best.start], start),
        repetition,
        *_repetitions_within(keys[best.stop :], start + best.stop),
    ]


PRICES = np.geomspace(1.0, 200_000.0, 36)
"""Prices of a core, in cycles."""
CROSSING = 3_000.0
"""Cycles after which data that one epoch writes is there for the next one, beside the bytes."""
SHARED = 0.1
"""Share of the time for which an epoch's queues stream that each step of its longest path waits for the links."""
ALIKE = 1.03
"""Factor by which the expected cycles of epochs may grow if those of layers are alike (docs/compile/placing.md, "The
search", step 9)."""
LIKELY = 8
"""Number of places of a layer that are modelled as the end of an epoch (docs/compile/placing.md, "The search", step
9)."""
Ints = NDArray[np.int64]
Judge = Callable[[Mapping[str, PlacementDecision]], float]


@dataclass(frozen=True)
class _ChoiceCosts:
    """The costs of each choice of an op, as arrays: cycles of one part with its operands, and of the other parts, when
    they come while it works; parts; cores; and the cycles by which it is judged."""

    choices: Sequence[Choice]
    one: Floats
    later: Floats
    parts: Floats
    cores: Floats
    judged: Floats

    @cached_property
    def at(self) -> Ints:
        """[price]: the number of the best choice, when each core costs the price in cycles."""
        return (self.judged[None, :] + PRICES[:, None] * self.cores[None, :]).argmin(1)

    def best_choices(self, price: float) -> list[Choice]:
        """Return up to `TRIES` choices, best first, when a core costs `price` cycles: those with the least sum of
        judged cycles and the price of their cores."""
        order = np.argsort(self.judged + price * self.cores, kind="stable")[:TRIES]
        return [self.choices[n] for n in order.tolist()]


@dataclass(frozen=True)
class EpochBounds:
    """Bounds for the ends of epochs: an epoch must end before each op of `kept`, and none may end before an op of
    `within`."""

    kept: frozenset[int] = frozenset()
    within: frozenset[int] = frozenset()

    def with_ends(self, ends: Iterable[int]) -> "EpochBounds":
        """Return the bounds with more places where an epoch must end."""
        return EpochBounds(self.kept.union(ends), self.within)


EVERYWHERE: Final = EpochBounds()


@dataclass(frozen=True)
class SingleInput:
    """Epochs of a single input on one chip.

    `own` are the costs of each op's choices; `epochs` lists for each op the epochs that may begin with it, by the op
    after each and its cycles."""

    table: CandidateTable
    own: Sequence[_ChoiceCosts]
    epochs: Sequence[Sequence[tuple[int, float]]]

    @staticmethod
    def of(table: CandidateTable, full: float) -> "SingleInput":
        """Find the possible epochs when rectangles are expected to cover a share `full` of the chip's cores."""
        costs = _choice_costs(table)
        prices = _Prices.of(table, costs)
        return SingleInput(table, costs, [[*_epochs_from(table, prices, i, full)] for i in range(len(table.ops))])

    def decisions(self, cut: EpochBounds = EVERYWHERE) -> dict[str, PlacementDecision]:
        """Return the decisions of all ops, in the epochs within the bounds `cut` that are expected to take the fewest
        cycles. Raises UnsupportedError for an op that has no room."""
        ends, _ = self.fewest_cycles(cut)
        return pack_epochs(
            self.table, ends, lambda start, stop, epoch: _pack_at_lowest_price(self.table, self.own, start, stop, epoch)
        )

    def decisions_by_layers(self, cycles_of: Judge, without: Parts = EVERYTHING) -> list[dict[str, PlacementDecision]]:
        """Return decisions with the end of an epoch at one place of every layer, where that is expected to take little
        more; empty where there are no layers.

        Such epochs are alike, and a single search serves all. Of the places that are expected to be nearly the best,
        three are used everywhere: the one for which `cycles_of` is least, the one for which it is next least, and the
        one with the fewest epochs. Each is also tried with all ops before the end in the second layer in one epoch,
        where that is expected to take little more. Parts in `without` are left out."""
        best = self.fewest_cycles(EVERYWHERE)[1]
        chosen: list[EpochBounds] = [EVERYWHERE] * 3
        together: list[EpochBounds] = [EVERYWHERE] * 3
        for region in self._layers:
            places = range(1, region.period + 1)
            ends = [range(region.start + place, region.stop, region.period) for place in places]
            expected = [self.fewest_cycles(chosen[0].with_ends(place_ends)) for place_ends in ends]
            order = sorted(range(len(ends)), key=lambda n: expected[n][1])[:LIKELY]
            nearly_best = [number for number in order if expected[number][1] <= best * ALIKE]
            if nearly_best and Part.LAYERS not in without:
                by_cycles = sorted(nearly_best, key=lambda n: cycles_of(self.decisions(chosen[0].with_ends(ends[n]))))
                few = min(nearly_best, key=lambda n: (len(expected[n][0]), expected[n][1]))
                best = expected[by_cycles[0]][1]
                ranks = (ends[by_cycles[0]], ends[by_cycles[:2][-1]], ends[few])
                chosen = [cut.with_ends(place_ends) for cut, place_ends in zip(chosen, ranks, strict=True)]
                together = [
                    self._join_first_epochs(cut, place_ends, best)
                    for cut, place_ends in zip(together, ranks, strict=True)
                ]
        ranks = [0]
        for rank, part in ((1, Part.NEXT_PLACE), (2, Part.FEWEST_EPOCHS)):
            if chosen[rank] not in chosen[:rank] and part not in without:
                ranks.append(rank)
        tried = [chosen[rank] for rank in ranks]
        joined = [together[rank] for rank in ranks]
        if joined != tried and Part.JOINED_BEGIN not in without:
            tried += joined
        return [self.decisions(cut) for cut in dict.fromkeys(tried) if cut.kept]

    def _join_first_epochs(self, cut: EpochBounds, ends: Sequence[int], best: float) -> EpochBounds:
        """Return the bounds `cut` with an epoch's end at each of `ends`. The first of these, and all others before the
        second, are left out if the program's ops up to the second end are then expected to take at most `ALIKE` times
        `best` cycles in one epoch."""
        ops = self.table.ops
        begin = next(number for number, op in enumerate(ops) if op.program == ops[ends[0]].program)
        if len(ends) > 1:
            joined = EpochBounds(cut.kept.union(ends[1:]), cut.within.union(range(begin + 1, ends[1])))
            if self.fewest_cycles(joined)[1] <= best * ALIKE:
                return joined
        return cut.with_ends(ends)

    @cached_property
    def _layers(self) -> list[Repetition]:
        """The repetitions of like ops."""
        return find_repetitions([cost_key(self.table.tiles, op, without_tables=True) for op in self.table.ops])

    def fewest_cycles(self, cut: EpochBounds) -> tuple[list[int], float]:
        """Return the first op of each epoch followed by the number of ops, and the cycles of these epochs, for the
        division within the bounds `cut` that takes the fewest."""
        count = len(self.epochs)
        best = [np.inf] * (count + 1)
        before = [0] * (count + 1)
        best[0] = 0.0
        for i, candidates in enumerate(self.epochs):
            for end, cycles in candidates:
                if best[i] + cycles < best[end] and end not in cut.within:
                    best[end] = best[i] + cycles
                    before[end] = i
                if end in cut.kept:
                    break
        ends = [count]
        while ends[-1] > 0:
            ends.append(before[ends[-1]])
        return ends[::-1], best[count]


def _pack_at_lowest_price(
    table: CandidateTable, op_costs: Sequence[_ChoiceCosts], start: int, stop: int, epoch: int
) -> tuple[dict[str, PlacementDecision], int]:
    """Pack the ops from `start` on, in epoch number `epoch`, at the lowest price of a core at which all up to `stop`
    find room; where there is no such price, fewer ops. Returns the decisions and the first op that found no place."""
    for end in range(stop, start, -1):
        low = 0
        high = len(PRICES)
        best = None
        while low < high:
            middle = (low + high) // 2
            shapes = [costs.best_choices(PRICES[middle]) for costs in op_costs[start:end]]
            attempt = None
            if sum(shape[0].cores for shape in shapes) <= prod(table.target.arch.grid):
                attempts = (
                    pack_on_chip(table, range(start, end), shapes, epoch, 0, grid_transpose=grid_transpose)
                    for grid_transpose in (False, True)
                )
                attempt = next(filter(None, attempts), None)
            if attempt is not None:
                best = attempt
                high = middle
            else:
                low = middle + 1
        if best is not None:
            return best, end
    return {}, start


def _choice_costs(table: CandidateTable) -> list[_ChoiceCosts]:
    """Return for each op the costs of its choices. Ops that hand on slices of t to each other are as fast as the
    slowest of them, so that a choice quicker than that is judged by little more than the time of a slice."""
    raw: list[tuple[Floats, Floats, Floats, Floats]] = []
    for op, op_choices in zip(table.ops, table.found, strict=True):
        target = table.target.of(op.precision)
        math = np.array([choice.math for choice in op_choices])
        moved = np.array(
            [transfer_cycles(target, table.tiles, op, choice.blocks, choice.held) for choice in op_choices]
        )
        parts = np.array([parts_of_blocks(choice.blocks.t, choice.blocks.mblock) for choice in op_choices], np.float64)
        part_cycles = (math + moved) / parts
        later_cycles = np.maximum(math, moved) * (1 - 1 / parts)
        raw.append((part_cycles, later_cycles, parts, np.array([float(choice.cores) for choice in op_choices])))
    chains = _number_chains(table.ops)
    floor: dict[int, float] = {}
    for chain, (part_cycles, later_cycles, _, _) in zip(chains, raw, strict=True):
        floor[chain] = max(floor.get(chain, 0.0), float((part_cycles + later_cycles).min()))
    costs: list[_ChoiceCosts] = []
    for chain, op_choices, (part_cycles, later_cycles, parts, cores) in zip(chains, table.found, raw, strict=True):
        judged = part_cycles + (1 - 1 / parts) * np.maximum(part_cycles + later_cycles - floor[chain], 0.0)
        costs.append(
            _ChoiceCosts(
                choices=op_choices, one=part_cycles, later=later_cycles, parts=parts, cores=cores, judged=judged
            )
        )
    return costs


def _number_chains(ops: Sequence[TileOp]) -> list[int]:
    """Return for each op the number of its chain: ops that hand on slices to each other, as they have the same t above
    1, share it."""
    place: dict[str, int] = {}
    chain = list(range(len(ops)))
    for number, op in enumerate(ops):
        place[op.name] = number
        for use in op.uses:
            other = place.get(use.source)
            if other is not None and ops[other].shape[0] == op.shape[0] > 1:
                old = chain[other]
                new = chain[number]
                if old != new:
                    chain[: number + 1] = [old if label == new else label for label in chain[: number + 1]]
    return chain


@dataclass(frozen=True)
class _Prices:
    """[op][price]: the cycles, parts and cores of each op's best choice at each price, `one` and `later` as in
    `_ChoiceCosts`, and the cycles for which it reads inputs and constants in DRAM. `written` are the cycles of the host
    link or a channel for each op's output."""

    one: list[Floats]
    later: list[Floats]
    parts: list[Floats]
    cores: list[Floats]
    read: list[Floats]
    written: list[float]

    @staticmethod
    def of(table: CandidateTable, op_costs: Sequence[_ChoiceCosts]) -> "_Prices":
        """Return the costs of all ops at all prices."""
        speed = speeds(table.target.chip)
        read = [np.array([choice.streamed for choice in costs.choices])[costs.at] / speed.dram for costs in op_costs]
        if table.tiles.windows:
            output_rate = speed.dram / table.target.arch.dram_channels
        else:
            output_rate = speed.host
        return _Prices(
            one=[costs.one[costs.at] for costs in op_costs],
            later=[costs.later[costs.at] for costs in op_costs],
            parts=[costs.parts[costs.at] for costs in op_costs],
            cores=[costs.cores[costs.at] for costs in op_costs],
            read=read,
            written=_output_cycles(table, output_rate),
        )


def _epochs_from(table: CandidateTable, prices: _Prices, i: int, full: float) -> Iterator[tuple[int, float]]:
    """Yield the epochs that begin with op i: the op after each, and its cycles at the best price of a core. `full`: the
    share of a chip that rectangles are expected to cover."""
    dram = speeds(table.target.chip).dram
    every = prod(table.target.arch.grid)
    begin, per_kernel = epoch_load(table.target)
    used, streamed, end = (np.zeros(len(PRICES)) for _ in range(3))
    done: dict[str, tuple[Floats, Floats, Floats]] = {}
    for j in range(i, int(table.stops[i])):
        op = table.ops[j]
        parts = prices.parts[j]
        used = used + prices.cores[j]
        fits = used <= (every if j == i else every * full)
        if not fits.any():
            return
        begins = np.full(len(PRICES), float(table.loaded[j + 1] - table.loaded[i]) / dram)
        ready = begins + prices.read[j]
        for first, last, cut in (done[use.source] for use in op.uses if use.source in done):
            behind = share_to_wait_for(parts, cut, np.maximum)
            begins = np.maximum(begins, first + (last - first) * behind)
            ready = np.maximum(ready, last)
        first, last = first_and_last(begins, ready, prices.one[j] + HOP, prices.later[j], np.maximum)
        done[op.name] = first, last, parts
        end = np.maximum(end, np.maximum(last, first + prices.written[j]))
        streamed = streamed + prices.read[j]
        moved = streamed + float(table.crossing[i, j + 1]) / dram
        waits = (int(table.level[j + 1]) - int(table.level[i])) * SHARED * moved
        yield j + 1, float((begin + per_kernel * used + end + waits)[fits].min()) + CROSSING


def _output_cycles(table: CandidateTable, rate: float) -> list[float]:
    """Return for each op the cycles in which the host link, or one DRAM channel, takes its output at `rate` bytes a
    cycle; 0 for an op without one."""
    size = size_of_tile(table.target.output_df, table.target.arch.alignment)
    outputs = {output.op for output in table.tiles.outputs.values()}
    return [prod(op.shape) * size / rate if op.name in outputs else 0.0 for op in table.ops]
