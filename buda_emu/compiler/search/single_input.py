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
"""Fewest ops of a layer: groups of fewer ops repeat within a layer, too. No measurement of the figure is recorded."""


class Repetition(NamedTuple):
    """Equal groups of items in a sequence, one after the other: `times` groups of `period` items, the first from item
    number `start` on."""

    start: int
    period: int
    times: int

    @property
    def stop(self) -> int:
        """The number of the item after the last group."""
        return self.start + self.period * self.times


def find_repetitions(items: Sequence[Hashable]) -> list[Repetition]:
    """Return the longest repetitions of equal items in a sequence, such as the layers among a model's ops: in their
    order, none overlapping another, each group of at least `SHORTEST` items. Of equally long repetitions the one with
    the shortest groups is taken."""
    numbers: dict[Hashable, int] = {}
    return _repetitions_within(np.array([numbers.setdefault(element, len(numbers)) for element in items], np.int64), 0)


def _repetitions_within(keys: NDArray[np.int64], start: int) -> list[Repetition]:
    """Return the repetitions in a part of a sequence: the longest one, and those before and after it. `keys` are equal
    for equal items; `start` is the number of the part's first item in the whole sequence."""
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
"""Prices of a core, in cycles of the epoch, at which divisions of ops are compared: each is a constant factor above the
previous one. No measurement of their range is recorded."""
CROSSING = 3_000.0
"""Cycles between the end of an epoch and the next one, which reads what it wrote, beside those for the bytes. No
measurement of the figure is recorded."""
SHARED = 0.1
"""Share of the time for which an epoch's queues stream that each step of its longest path waits for links which
transfers share. No measurement of the figure is recorded."""
ALIKE = 1.03
"""Factor by which the expected cycles may grow if epochs end at the same place of each layer (docs/compile/placing.md,
"The search", step 9). No measurement of the figure is recorded."""
LIKELY = 8
"""Most places of a layer that are modelled as the end of an epoch (docs/compile/placing.md, "The search", step 9). No
measurement of the figure is recorded."""
Ints = NDArray[np.int64]
Judge = Callable[[Mapping[str, PlacementDecision]], float]


@dataclass(frozen=True)
class _ChoiceCosts:
    """The costs of all choices of an op, by the number of the choice. An op works in `parts` parts: `part_cycles` are
    the cycles of one with its operands' transfers, `later_cycles` those of all others together, whose operands arrive
    while the op works; `cores`; and `judged`, the cycles that a choice counts with when it is chosen."""

    choices: Sequence[Choice]
    part_cycles: Floats
    later_cycles: Floats
    parts: Floats
    cores: Floats
    judged: Floats

    @cached_property
    def best_at_price(self) -> Ints:
        """[price]: the number of the choice with the least sum of judged cycles and the price of its cores."""
        return (self.judged[None, :] + PRICES[:, None] * self.cores[None, :]).argmin(1)

    def best_choices(self, price: float) -> list[Choice]:
        """Return up to `TRIES` choices, best first, when a core costs `price` cycles: those with the least sum of
        judged cycles and the price of their cores."""
        order = np.argsort(self.judged + price * self.cores, kind="stable")[:TRIES]
        return [self.choices[n] for n in order.tolist()]


@dataclass(frozen=True)
class EpochBounds:
    """Bounds for where epochs end: an epoch must end before each op in `kept`, and none may end before an op in
    `within`. Both hold numbers of ops."""

    kept: frozenset[int] = frozenset()
    within: frozenset[int] = frozenset()

    def with_ends(self, ends: Iterable[int]) -> "EpochBounds":
        """Return the bounds with more places where an epoch must end."""
        return EpochBounds(self.kept.union(ends), self.within)


EVERYWHERE: Final = EpochBounds()


@dataclass(frozen=True)
class SingleInput:
    """The possible epochs of a model that takes one input at a time on one chip.

    `choice_costs` are the costs of each op's choices; `epochs[i]` lists the epochs that begin with op i, each as the op
    after its last one and the cycles that it is expected to take."""

    table: CandidateTable
    choice_costs: Sequence[_ChoiceCosts]
    epochs: Sequence[Sequence[tuple[int, float]]]

    @staticmethod
    def of(table: CandidateTable, full: float) -> "SingleInput":
        """Find the possible epochs of a table's ops. `full`: the share of the chip's cores that rectangles are expected
        to cover."""
        costs = _choice_costs(table)
        prices = _Prices.of(table, costs)
        return SingleInput(table, costs, [[*_epochs_from(table, prices, i, full)] for i in range(len(table.ops))])

    def decisions(self, bounds: EpochBounds = EVERYWHERE) -> dict[str, PlacementDecision]:
        """Return the decisions of all ops, by name, in those epochs within `bounds` that are expected to take the
        fewest cycles in all. Raises UnsupportedError for an op that has no room."""
        ends, _ = self.fewest_cycles(bounds)
        return pack_epochs(
            self.table,
            ends,
            lambda start, stop, epoch: _pack_at_lowest_price(self.table, self.choice_costs, start, stop, epoch),
        )

    def decisions_by_layers(self, cycles_of: Judge, without: Parts = EVERYTHING) -> list[dict[str, PlacementDecision]]:
        """Return decisions of all ops, several times: each with the end of an epoch at one place of every layer, where
        that is expected to take little more than ends anywhere. Empty where there are no layers.

        Such epochs are alike, so that the search of one serves all. Of the places that are expected to be nearly the
        best, three are used in every layer: the one for which `cycles_of` is least, the one for which it is next least,
        and the one with the fewest epochs. Each is also tried with all ops before the end in the second layer in one
        epoch, where that is expected to take little more. Parts of the search in `without` are left out."""
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
                chosen = [bounds.with_ends(place_ends) for bounds, place_ends in zip(chosen, ranks, strict=True)]
                together = [
                    self._join_first_epochs(bounds, place_ends, best)
                    for bounds, place_ends in zip(together, ranks, strict=True)
                ]
        ranks = [0]
        for rank, part in ((1, Part.NEXT_PLACE), (2, Part.FEWEST_EPOCHS)):
            if chosen[rank] not in chosen[:rank] and part not in without:
                ranks.append(rank)
        tried = [chosen[rank] for rank in ranks]
        joined = [together[rank] for rank in ranks]
        if joined != tried and Part.JOINED_BEGIN not in without:
            tried += joined
        return [self.decisions(bounds) for bounds in dict.fromkeys(tried) if bounds.kept]

    def _join_first_epochs(self, bounds: EpochBounds, ends: Sequence[int], best: float) -> EpochBounds:
        """Return `bounds` with an epoch's end at each of `ends`, the places of one layer after the other. If the
        program's ops up to the second of these can share one epoch with which the whole is expected to take at most
        `ALIKE` times `best` cycles, no epoch of the program ends before that."""
        ops = self.table.ops
        begin = next(number for number, op in enumerate(ops) if op.program == ops[ends[0]].program)
        if len(ends) > 1:
            joined = EpochBounds(bounds.kept.union(ends[1:]), bounds.within.union(range(begin + 1, ends[1])))
            if self.fewest_cycles(joined)[1] <= best * ALIKE:
                return joined
        return bounds.with_ends(ends)

    @cached_property
    def _layers(self) -> list[Repetition]:
        """The layers: repetitions of ops that cost the same."""
        return find_repetitions([cost_key(self.table.tiles, op, without_tables=True) for op in self.table.ops])

    def fewest_cycles(self, bounds: EpochBounds) -> tuple[list[int], float]:
        """Return the epochs within `bounds` that are expected to take the fewest cycles in all: the number of the first
        op of each, followed by the number of ops, and these cycles, infinite where the bounds leave no epochs."""
        count = len(self.epochs)
        best = [np.inf] * (count + 1)
        before = [0] * (count + 1)
        best[0] = 0.0
        for i, candidates in enumerate(self.epochs):
            for end, cycles in candidates:
                if best[i] + cycles < best[end] and end not in bounds.within:
                    best[end] = best[i] + cycles
                    before[end] = i
                if end in bounds.kept:
                    break
        ends = [count]
        while ends[-1] > 0:
            ends.append(before[ends[-1]])
        return ends[::-1], best[count]


def _pack_at_lowest_price(
    table: CandidateTable, op_costs: Sequence[_ChoiceCosts], start: int, stop: int, epoch: int
) -> tuple[dict[str, PlacementDecision], int]:
    """Pack the ops from `start` up to `stop`, in epoch number `epoch`, with the choices of the lowest price of a core
    at which all find room; where no price has room, fewer of them. Returns the decisions and the first op that found no
    place: no decisions and `start` if even one op has no room."""
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
    slowest of them, so that a choice which is quicker than that is judged by little more than the time of a slice."""
    raw: list[tuple[Floats, Floats, Floats, Floats]] = []
    for op, op_choices in zip(table.ops, table.corrected, strict=True):
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
    for chain, op_choices, (part_cycles, later_cycles, parts, cores) in zip(chains, table.corrected, raw, strict=True):
        judged = part_cycles + (1 - 1 / parts) * np.maximum(part_cycles + later_cycles - floor[chain], 0.0)
        costs.append(
            _ChoiceCosts(
                choices=op_choices,
                part_cycles=part_cycles,
                later_cycles=later_cycles,
                parts=parts,
                cores=cores,
                judged=judged,
            )
        )
    return costs


def _number_chains(ops: Sequence[TileOp]) -> list[int]:
    """Return for each op the number of its chain. Ops share a chain if one reads the other and both have the same
    number of slices (t), more than one: they hand on slice by slice."""
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
    """The best choice of each op at each price, as [op][price]: `part_cycles`, `later_cycles`, `parts` and `cores` as
    in `_ChoiceCosts`, and `read`, the cycles for which DRAM moves its inputs and constants. `written` are the cycles
    for each op's output on the host link or a DRAM channel."""

    part_cycles: list[Floats]
    later_cycles: list[Floats]
    parts: list[Floats]
    cores: list[Floats]
    read: list[Floats]
    written: list[float]

    @staticmethod
    def of(table: CandidateTable, op_costs: Sequence[_ChoiceCosts]) -> "_Prices":
        """Return the figures of all ops at all prices. Outputs leave over the host link, those of a graph whose caches
        have slots into a DRAM channel."""
        speed = speeds(table.target.chip)
        read = [
            np.array([choice.streamed for choice in costs.choices])[costs.best_at_price] / speed.dram
            for costs in op_costs
        ]
        if table.tiles.windows:
            output_rate = speed.dram / table.target.arch.dram_channels
        else:
            output_rate = speed.host
        return _Prices(
            part_cycles=[costs.part_cycles[costs.best_at_price] for costs in op_costs],
            later_cycles=[costs.later_cycles[costs.best_at_price] for costs in op_costs],
            parts=[costs.parts[costs.best_at_price] for costs in op_costs],
            cores=[costs.cores[costs.best_at_price] for costs in op_costs],
            read=read,
            written=_output_cycles(table, output_rate),
        )


def _epochs_from(table: CandidateTable, prices: _Prices, i: int, full: float) -> Iterator[tuple[int, float]]:
    """Yield the epochs that begin with op i: the op after each, and the cycles that it is expected to take at the best
    price of a core. Ends when no price leaves cores for another op, or the program ends. `full`: the share of the
    chip's cores that rectangles are expected to cover."""
    dram = speeds(table.target.chip).dram
    every = prod(table.target.arch.grid)
    begin, per_kernel = epoch_load(table.target)
    used, streamed, end = (np.zeros(len(PRICES)) for _ in range(3))
    done: dict[str, tuple[Floats, Floats, Floats]] = {}
    for j in range(i, int(table.program_ends[i])):
        op = table.ops[j]
        parts = prices.parts[j]
        used = used + prices.cores[j]
        fits = used <= (every if j == i else every * full)  # a single op may take all cores
        if not fits.any():
            return
        begins = np.full(len(PRICES), float(table.loaded[j + 1] - table.loaded[i]) / dram)
        ready = begins + prices.read[j]
        for first, last, source_parts in (done[use.source] for use in op.uses if use.source in done):
            behind = share_to_wait_for(parts, source_parts, np.maximum)
            begins = np.maximum(begins, first + (last - first) * behind)
            ready = np.maximum(ready, last)
        first, last = first_and_last(begins, ready, prices.part_cycles[j] + HOP, prices.later_cycles[j], np.maximum)
        done[op.name] = first, last, parts
        end = np.maximum(end, np.maximum(last, first + prices.written[j]))
        streamed = streamed + prices.read[j]
        moved = streamed + float(table.crossing[i, j + 1]) / dram
        waits = (int(table.level[j + 1]) - int(table.level[i])) * SHARED * moved
        yield j + 1, float((begin + per_kernel * used + end + waits)[fits].min()) + CROSSING


def _output_cycles(table: CandidateTable, rate: float) -> list[float]:
    """Return for each op the cycles in which its output leaves at `rate` bytes a cycle; 0 for an op without output."""
    size = size_of_tile(table.target.output_df, table.target.arch.alignment)
    outputs = {output.op for output in table.tiles.outputs.values()}
    return [prod(op.shape) * size / rate if op.name in outputs else 0.0 for op in table.ops]
