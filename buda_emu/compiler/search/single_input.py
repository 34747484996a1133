"""Epochs for rounds of one input: only the ops of this input overlap, so an epoch takes the longest path through its
ops, and loading (PERF 5.1) is a large part of it.

Each op takes the division that is best at a price of a core, in cycles: at a high one few cores, and many ops in an
epoch; at a low one many. A dynamic program over the ops in their order finds where epochs end and at which price: the
ops from i on are followed along their edges, when the first and the last part of each is done, as the timing model
would follow them, until the cores are used up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.lower.tiles import TileOp
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.cost import speeds, transfer_cycles
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.place.due import HOP
from buda_emu.compiler.search.candidate_table import CandidateTable, Floats
from buda_emu.compiler.search.cuts import epoch_load
from buda_emu.compiler.search.pack import TRIES, in_epochs, on_chip
from buda_emu.timing.epoch.parts import parts_of_blocks

PRICES = np.geomspace(1.0, 200_000.0, 36)
"""Cycles that a core is worth."""
CROSSING = 3_000.0
"""Cycles in which what one epoch writes is there for the next one, beside the bytes."""
SHARED = 0.1
"""Of the time for which an epoch's queues stream, what each step of its longest way waits for the links."""
Ints = NDArray[np.int64]


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


def spots_of_one(line: CandidateTable, full: float) -> dict[str, PlacementDecision]:
    """The spots of all ops, on one chip, whose cores rectangles are expected to cover up to a share `full`. Raises
    UnsupportedError for an op that has no room."""
    own = _costs(line)
    return in_epochs(line, _ends(line, own, full), lambda start, stop, epoch: _packed(line, own, start, stop, epoch))


def _packed(
    line: CandidateTable, own: Sequence[_Own], start: int, stop: int, epoch: int
) -> tuple[dict[str, PlacementDecision], int]:
    """The ops from `start` on at the lowest price at which all find room; where there is none, fewer ops."""
    for end in range(stop, start, -1):
        low, high, best = 0, len(PRICES), None
        while low < high:
            middle = (low + high) // 2
            shapes = [item.dearest(PRICES[middle]) for item in own[start:end]]
            room = sum(shape[0].cores for shape in shapes) <= prod(line.target.arch.grid)
            found = on_chip(line, range(start, end), shapes, epoch, 0, turned=False) if room else None
            if found is not None:
                best, high = found, middle
            else:
                low = middle + 1
        if best is not None:
            return best, end
    return {}, start


def _costs(line: CandidateTable) -> list[_Own]:
    """Of all ops. Ops that hand on slices of t to each other are as fast as the slowest of them: to be faster than that
    one can be gains no more than the time of a slice."""
    raw: list[tuple[Floats, Floats, Floats, Floats]] = []
    for op, found in zip(line.ops, line.found, strict=True):
        target = line.target.of(op.precision)
        math = np.array([item.math for item in found])
        moved = np.array([transfer_cycles(target, line.tiles, op, item.blocks, item.held) for item in found])
        parts = np.array([parts_of_blocks(item.blocks.t, item.blocks.mblock) for item in found], np.float64)
        one = (math + moved) / parts
        cycles = one + np.maximum(math, moved) * (1 - 1 / parts)
        raw.append((one, cycles, parts, np.array([float(item.cores) for item in found])))
    chains = _chains(line.ops)
    floor: dict[int, float] = {}
    for chain, (_, cycles, _, _) in zip(chains, raw, strict=True):
        floor[chain] = max(floor.get(chain, 0.0), float(cycles.min()))
    made: list[_Own] = []
    for chain, found, (one, cycles, parts, cores) in zip(chains, line.found, raw, strict=True):
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
                old, new = chain[other], chain[number]
                if old != new:
                    chain[: number + 1] = [old if item == new else item for item in chain[: number + 1]]
    return chain


def _ends(line: CandidateTable, own: Sequence[_Own], full: float) -> list[int]:
    """The first op of each epoch, then the number of ops."""
    count, prices = len(line.ops), _Prices.of(line, own)
    best, before = [np.inf] * (count + 1), [0] * (count + 1)
    best[0] = 0.0
    for i in range(count):
        for end, cycles in _epochs_from(line, prices, i, full):
            if best[i] + cycles < best[end]:
                best[end], before[end] = best[i] + cycles, i
    found = [count]
    while found[-1] > 0:
        found.append(before[found[-1]])
    return found[::-1]


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
    def of(line: CandidateTable, own: Sequence[_Own]) -> "_Prices":
        """Of all ops."""
        speed = speeds(line.target.chip)
        read = [np.array([choice.streamed for choice in item.choices])[item.at] / speed.dram for item in own]
        return _Prices(
            [item.one[item.at] for item in own], [item.cycles[item.at] for item in own],
            [item.parts[item.at] for item in own], [item.cores[item.at] for item in own], read,
            _written(line, speed.dram / line.target.arch.dram_channels if line.tiles.windows else speed.host),
        )  # fmt: skip


def _epochs_from(line: CandidateTable, prices: _Prices, i: int, full: float) -> Iterator[tuple[int, float]]:
    """The epochs that begin with op i: the op after each, and the cycles that it takes at the best price."""
    dram, every = speeds(line.target.chip).dram, prod(line.target.arch.grid)
    begin, each = epoch_load(line.target)
    used, streamed, end = (np.zeros(len(PRICES)) for _ in range(3))
    done: dict[str, tuple[Floats, Floats, Floats]] = {}
    for j in range(i, int(line.stops[i])):
        op, parts = line.ops[j], prices.parts[j]
        used = used + prices.cores[j]
        fits = used <= (every if j == i else every * full)
        if not fits.any():
            return
        begins = np.full(len(PRICES), float(line.loaded[j + 1] - line.loaded[i]) / dram)
        ready = begins + prices.read[j]
        for first, last, cut in (done[use.source] for use in op.uses if use.source in done):
            behind = np.maximum(1 / parts - 1 / cut, 0.0) / np.maximum(1 - 1 / cut, 0.5)
            begins = np.maximum(begins, first + (last - first) * behind)
            ready = np.maximum(ready, last)
        one = prices.one[j] + HOP
        first, last = begins + one, np.maximum(begins + prices.cycles[j] + HOP, ready + one)
        done[op.name] = first, last, parts
        end = np.maximum(end, np.maximum(last, first + prices.written[j]))
        streamed = streamed + prices.read[j]
        moved = streamed + float(line.crossing[i, j + 1]) / dram
        waits = (int(line.level[j + 1]) - int(line.level[i])) * SHARED * moved
        yield j + 1, float((begin + each * used + end + waits)[fits].min()) + CROSSING


def _written(line: CandidateTable, rate: float) -> list[float]:
    """Cycles in which the host's link, or one channel of DRAM, takes the output of each op that makes one."""
    size = size_of_tile(line.target.output_df, line.target.arch.alignment)
    outputs = {item.op for item in line.tiles.outputs.values()}
    return [prod(op.shape) * size / rate if op.name in outputs else 0.0 for op in line.ops]
