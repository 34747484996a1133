"""Epochs for rounds of one input: only the ops of this input overlap, so an epoch takes the longest path through its
ops, and loading (PERF 5.1) is a large part of it.

Each op takes the division that is best at a price of a core, in cycles: at a high one few cores, and many ops in an
epoch; at a low one many. A dynamic program over the ops in their order finds where epochs end and at which price: the
ops from i on are followed along their edges, when the first and the last part of each is done, as the timing model
would follow them, until the cores are used up.
"""

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
from buda_emu.compiler.place.channels import HOP, share_to_wait_for
from buda_emu.compiler.place.cost import speeds, transfer_cycles
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.search.candidate_table import CandidateTable, Floats, likeness
from buda_emu.compiler.search.cuts import epoch_load
from buda_emu.compiler.search.pack import TRIES, in_epochs, on_chip
from buda_emu.performance.timing.epoch.tasks import parts_of_blocks

SHORTEST: Final = 8
"""Ops of a layer, at least: shorter repetitions are within one."""


class Repeated(NamedTuple):
    """Items from `start` on that come in `times` equal groups of `period` items, one after the other."""

    start: int
    period: int
    times: int

    @property
    def stop(self) -> int:
        """The item after the last group."""
        return self.start + self.period * self.times


def repeated(items: Sequence[Hashable]) -> list[Repeated]:
    """The longest repetitions, in their order, none in another: of equally long ones the shortest groups."""
    numbers: dict[Hashable, int] = {}
    return _within(np.array([numbers.setdefault(item, len(numbers)) for item in items], np.int64), 0)


def _within(keys: NDArray[np.int64], start: int) -> list[Repeated]:
    best = Repeated(0, 0, 0)
    for period in range(SHORTEST, len(keys) // 2 + 1):
        same = np.concatenate([[0], keys[:-period] == keys[period:], [0]])
        edges = np.flatnonzero(np.diff(same)).reshape(-1, 2)
        if len(edges):
            begin, end = edges[np.argmax(edges[:, 1] - edges[:, 0])].tolist()
            count = (end - begin) // period + 1
            if count > 1 and period * count > best.period * best.times:
                best = Repeated(begin, period, count)
    if not best.times:
        return []
    own = best._replace(start=start + best.start)
    return [*_within(keys[: best.start], start), own, *_within(keys[best.stop :], start + best.stop)]


PRICES = np.geomspace(1.0, 200_000.0, 36)
"""Cycles that a core is worth."""
CROSSING = 3_000.0
"""Cycles in which what one epoch writes is there for the next one, beside the bytes."""
SHARED = 0.1
"""Of the time for which an epoch's queues stream, what each step of its longest way waits for the links."""
ALIKE = 1.03
"""Of the cycles that epochs are expected to take, what they may take if those of layers are alike."""
LIKELY = 8
"""Places of a layer for the end of an epoch that are modelled."""
Ints = NDArray[np.int64]
Judge = Callable[[Mapping[str, PlacementDecision]], float]


@dataclass(frozen=True)
class _Own:
    """What each choice of an op comes to: cycles of one part with its operands, and of all parts, where those come
    while it works; parts, cores; what it is judged by."""

    choices: Sequence[Choice]
    one: Floats
    cycles: Floats
    parts: Floats
    cores: Floats
    judged: Floats

    @cached_property
    def at(self) -> Ints:
        """[price]: the best choice."""
        return (self.judged[None, :] + PRICES[:, None] * self.cores[None, :]).argmin(1)

    def dearest(self, price: float) -> list[Choice]:
        """Some choices, the best at a price first."""
        order = np.argsort(self.judged + price * self.cores, kind="stable")[:TRIES]
        return [self.choices[n] for n in order.tolist()]


@dataclass(frozen=True)
class EpochBounds:
    """Where epochs may end: no epoch goes on over an op of `kept`, and none ends before one of `within`."""

    kept: frozenset[int] = frozenset()
    within: frozenset[int] = frozenset()

    def also(self, kept: Iterable[int]) -> "EpochBounds":
        """With more ends."""
        return EpochBounds(self.kept.union(kept), self.within)


EVERYWHERE: Final = EpochBounds()


@dataclass(frozen=True)
class SingleInput:
    """Epochs of a single input on one chip. `own`: what each op's choices come to. `epochs`: of each op those that may
    begin with it, by the op after each and its cycles."""

    table: CandidateTable
    own: Sequence[_Own]
    epochs: Sequence[Sequence[tuple[int, float]]]

    @staticmethod
    def of(table: CandidateTable, full: float) -> "SingleInput":
        """Rectangles are expected to cover a share `full` of the chip's cores."""
        own = _costs(table)
        prices = _Prices.of(table, own)
        return SingleInput(table, own, [[*_epochs_from(table, prices, i, full)] for i in range(len(table.ops))])

    def decisions(self, cut: EpochBounds = EVERYWHERE) -> dict[str, PlacementDecision]:
        """Of all ops, in the epochs that are expected to take the fewest cycles. Raises UnsupportedError for an op that
        has no room."""
        ends, _ = self._fewest_cycles(cut)
        return in_epochs(self.table, ends, lambda start, stop, epoch: _packed(self.table, self.own, start, stop, epoch))

    def decisions_by_layers(self, cycles_of: Judge) -> list[dict[str, PlacementDecision]]:
        """The same, with an epoch's end at one place of every layer, where that is expected to take little more: such
        epochs are alike, and what the search finds for one serves all. Of the places that are expected to be nearly the
        best: everywhere that for which `cycles_of` finds the least, that with the next least, and that with the fewest
        epochs; each of these also with all before the end in the second layer in one epoch, where that is expected to
        take little more. Nothing where there are no layers."""
        best = self._fewest_cycles(EVERYWHERE)[1]
        chosen: list[EpochBounds] = [EVERYWHERE] * 3
        together: list[EpochBounds] = [EVERYWHERE] * 3
        for region in self._layers:
            places = range(1, region.period + 1)
            ends = [range(region.start + place, region.stop, region.period) for place in places]
            expected = [self._fewest_cycles(chosen[0].also(own)) for own in ends]
            order = sorted(range(len(ends)), key=lambda n: expected[n][1])[:LIKELY]
            likely = [number for number in order if expected[number][1] <= best * ALIKE]
            if likely:
                found = sorted(likely, key=lambda n: cycles_of(self.decisions(chosen[0].also(ends[n]))))
                few = min(likely, key=lambda n: (len(expected[n][0]), expected[n][1]))
                best = expected[found[0]][1]
                ranks = (ends[found[0]], ends[found[:2][-1]], ends[few])
                chosen = [cut.also(own) for cut, own in zip(chosen, ranks, strict=True)]
                together = [self._together(cut, own, best) for cut, own in zip(together, ranks, strict=True)]
        return [self.decisions(cut) for cut in dict.fromkeys((*chosen, *together)) if cut.kept]

    def _together(self, cut: EpochBounds, ends: Sequence[int], best: float) -> EpochBounds:
        """With more ends, and all before the second of them in one epoch, if that is expected to take little more than
        the best."""
        ops = self.table.ops
        begin = next(number for number, op in enumerate(ops) if op.program == ops[ends[0]].program)
        if len(ends) > 1:
            whole = EpochBounds(cut.kept.union(ends[1:]), cut.within.union(range(begin + 1, ends[1])))
            if self._fewest_cycles(whole)[1] <= best * ALIKE:
                return whole
        return cut.also(ends)

    @cached_property
    def _layers(self) -> list[Repeated]:
        return repeated([likeness(self.table.tiles, op, held=True) for op in self.table.ops])

    def _fewest_cycles(self, cut: EpochBounds) -> tuple[list[int], float]:
        """The first op of each epoch, then the number of ops; their cycles."""
        count = len(self.epochs)
        best = [np.inf] * (count + 1)
        before = [0] * (count + 1)
        best[0] = 0.0
        for i, found in enumerate(self.epochs):
            for end, cycles in found:
                if best[i] + cycles < best[end] and end not in cut.within:
                    best[end] = best[i] + cycles
                    before[end] = i
                if end in cut.kept:
                    break
        ends = [count]
        while ends[-1] > 0:
            ends.append(before[ends[-1]])
        return ends[::-1], best[count]


def _packed(
    table: CandidateTable, own: Sequence[_Own], start: int, stop: int, epoch: int
) -> tuple[dict[str, PlacementDecision], int]:
    """The ops from `start` on at the lowest price at which all find room; where there is none, fewer ops."""
    for end in range(stop, start, -1):
        low = 0
        high = len(PRICES)
        best = None
        while low < high:
            middle = (low + high) // 2
            shapes = [item.dearest(PRICES[middle]) for item in own[start:end]]
            room = sum(shape[0].cores for shape in shapes) <= prod(table.target.arch.grid)
            ways = (
                on_chip(table, range(start, end), shapes, epoch, 0, grid_transpose=turned) for turned in (False, True)
            )
            found = next(filter(None, ways), None) if room else None
            if found is not None:
                best = found
                high = middle
            else:
                low = middle + 1
        if best is not None:
            return best, end
    return {}, start


def _costs(table: CandidateTable) -> list[_Own]:
    """Of all ops. Ops that hand on slices of t to each other are as fast as the slowest of them: to be faster than that
    one can be gains no more than the time of a slice."""
    raw: list[tuple[Floats, Floats, Floats, Floats]] = []
    for op, found in zip(table.ops, table.found, strict=True):
        target = table.target.of(op.precision)
        math = np.array([item.math for item in found])
        moved = np.array([transfer_cycles(target, table.tiles, op, item.blocks, item.held) for item in found])
        parts = np.array([parts_of_blocks(item.blocks.t, item.blocks.mblock) for item in found], np.float64)
        one = (math + moved) / parts
        cycles = one + np.maximum(math, moved) * (1 - 1 / parts)
        raw.append((one, cycles, parts, np.array([float(item.cores) for item in found])))
    chains = _chains(table.ops)
    floor: dict[int, float] = {}
    for chain, (_, cycles, _, _) in zip(chains, raw, strict=True):
        floor[chain] = max(floor.get(chain, 0.0), float(cycles.min()))
    made: list[_Own] = []
    for chain, found, (one, cycles, parts, cores) in zip(chains, table.found, raw, strict=True):
        judged = one + (1 - 1 / parts) * np.maximum(cycles - floor[chain], 0.0)
        made.append(_Own(found, one, cycles, parts, cores, judged))
    return made


def _chains(ops: Sequence[TileOp]) -> list[int]:
    """Of each op a number that it shares with those with which it exchanges slices of the same t."""
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
                    chain[: number + 1] = [old if item == new else item for item in chain[: number + 1]]
    return chain


@dataclass(frozen=True)
class _Prices:
    """[op][price]: what the choice of each op at each price takes, in cycles: its work, reading inputs and constants of
    DRAM; its parts and cores. `written`: of each op, cycles of the host's link or a channel."""

    one: list[Floats]
    cycles: list[Floats]
    parts: list[Floats]
    cores: list[Floats]
    read: list[Floats]
    written: list[float]

    @staticmethod
    def of(table: CandidateTable, own: Sequence[_Own]) -> "_Prices":
        """Of all ops."""
        speed = speeds(table.target.chip)
        read = [np.array([choice.streamed for choice in item.choices])[item.at] / speed.dram for item in own]
        return _Prices(
            [item.one[item.at] for item in own],
            [item.cycles[item.at] for item in own],
            [item.parts[item.at] for item in own],
            [item.cores[item.at] for item in own],
            read,
            _written(table, speed.dram / table.target.arch.dram_channels if table.tiles.windows else speed.host),
        )


def _epochs_from(table: CandidateTable, prices: _Prices, i: int, full: float) -> Iterator[tuple[int, float]]:
    """The epochs that begin with op i: the op after each, and the cycles that it takes at the best price."""
    dram = speeds(table.target.chip).dram
    every = prod(table.target.arch.grid)
    begin, each = epoch_load(table.target)
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
        one = prices.one[j] + HOP
        first = begins + one
        last = np.maximum(begins + prices.cycles[j] + HOP, ready + one)
        done[op.name] = first, last, parts
        end = np.maximum(end, np.maximum(last, first + prices.written[j]))
        streamed = streamed + prices.read[j]
        moved = streamed + float(table.crossing[i, j + 1]) / dram
        waits = (int(table.level[j + 1]) - int(table.level[i])) * SHARED * moved
        yield j + 1, float((begin + each * used + end + waits)[fits].min()) + CROSSING


def _written(table: CandidateTable, rate: float) -> list[float]:
    """Cycles in which the host's link, or one channel of DRAM, takes the output of each op that makes one."""
    size = size_of_tile(table.target.output_df, table.target.arch.alignment)
    outputs = {item.op for item in table.tiles.outputs.values()}
    return [prod(op.shape) * size / rate if op.name in outputs else 0.0 for op in table.ops]
