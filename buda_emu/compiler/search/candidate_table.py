"""The choices of all ops and the data that the search for epochs needs of them, as arrays by the number of an op in an
order in which the ops can run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import prod

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.lower.tiles import TileAttributes, TileGraph, TileOp
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.candidates import Choice, choices, drop_slower, picker_operands
from buda_emu.compiler.place.cost import speeds
from buda_emu.compiler.place.routable import view
from buda_emu.compiler.target import Target

Floats = NDArray[np.float64]
LEVELS = 64
"""Number of paces that are tried; each is a constant factor above the previous one. No measurement of the figure is
recorded."""
STEP = 0.2
"""Delay of each op of a chain after the previous one, as a share of a pace; so many inputs are on the way in each op.
Choices are ranked, epochs cut and packed with the same number.

It was 0.25 for the ranks and 0.2 for the cuts. Modelled inputs a second relative to that, and processor seconds:

| models | 0.2 | 0.25 | seconds: both | 0.2 | 0.25 |
|---|---:|---:|---:|---:|---:|
| 31 of 33 inferences of `benchmarks/zoo/small.py`, with several settings | 1.000 | 1.000 | 119 | 120 | 118 |
| transformer, on one and two chips | 0.996 | 1.000 | 14 | 13 | 14 |
| training, odd_convolutions | 1.027 | 1.000 | 10.7 | 10.1 | 10.4 |
| training, mixer | 1.000 | 1.024 | 15.4 | 15.4 | 15.8 |
| trainings, encoder_layers and wide_mlp | 1.000 | 1.000 | 31 | 33 | 34 |
| encoder of 8 layers of width 256, 9 epochs (8 with 0.2) | 1.016 | 1.000 | 17 | 13 | 14 |
"""
FAR = 24
"""Ops of a chain beyond which an epoch is expected to end. Without this bound, UNet on n150 processes 10 % fewer
inputs a second (419 instead of 468), and BERT-Large 2.7 % more (166 instead of 162)."""
NEVER = 1 << 20
"""A number of cores that no chip has."""


@dataclass(frozen=True)
class CandidateTable:
    """The choices of all ops, which stand in an order in which they can run, and what the search for epochs derives
    from them.

    `plain[n]` are the choices of op n with the estimates of the cost model; `corrected[n]` are the same with estimates
    that include corrections by the timing model and waiting for buffer space; `best[n]` are those of `corrected[n]`
    that no other choice beats, the fewest cores first."""

    target: Target
    tiles: TileGraph
    ops: list[TileOp]
    plain: list[list[Choice]]
    corrected: list[list[Choice]]
    best: list[list[Choice]]

    @staticmethod
    def of(tiles: TileGraph, target: Target, earlier: "CandidateTable | None" = None) -> "CandidateTable":
        """Return the table of a graph. Ops with equal costs that read the same constants, such as the steps of a
        recurrent layer, share their choices; ops that the graph of the table `earlier` has, too, share those of that
        table. Raises UnsupportedError for an op that fits no grid."""
        ops = list(tiles.ops.values())
        choices_by_key: dict[object, list[Choice]] = {}
        choice_lists: list[list[Choice]] = []
        cached = {store.op for store in tiles.stores.values() if tiles.states[store.queue].slots > 1}
        for op in ops:
            if earlier is not None and earlier.tiles.ops.get(op.name) is op:
                choice_lists.append(earlier.plain[earlier.index[op.name]])
                continue
            constants_read = tuple(use.source if use.source in tiles.constants else "" for use in op.uses)
            key = cost_key(tiles, op), constants_read
            if key not in choices_by_key:
                choices_by_key[key] = choices(target, tiles, op)
            op_choices = choices_by_key[key]
            if op.name in cached:
                op_choices = _with_enough_buffers(op_choices, target.arch.dram_channels)
            choice_lists.append(op_choices)
        return CandidateTable(
            target=target,
            tiles=tiles,
            ops=ops,
            plain=choice_lists,
            corrected=list(choice_lists),
            best=list(choice_lists),
        ).correct_estimates({})

    def limit_pipes(self, max_pipes: int) -> "CandidateTable":
        """Return the table without choices that read an operand of another chip through more than `max_pipes` pipes:
        each pipe takes a stream of every link on its way. An op that has no such choice keeps those with the fewest
        pipes."""
        plain = [
            self._with_few_pipes(op, op_choices, max_pipes) for op, op_choices in zip(self.ops, self.plain, strict=True)
        ]
        return replace(self, plain=plain, corrected=list(plain), best=list(plain)).correct_estimates({})

    def _with_few_pipes(self, op: TileOp, op_choices: list[Choice], max_pipes: int) -> list[Choice]:
        """Return those choices of an op that read each operand from another chip through at most `max_pipes` pipes; if
        there are none, the choices with the fewest pipes. An op that reads nothing from another chip keeps all."""
        far = [
            n
            for n, use in enumerate(op.uses)
            if use.source in self.index and self._assigned_chip(use.source) != op.chip
        ]
        if not far:
            return op_choices
        counts = [max(prod(view(op, choice.blocks, n).grid) for n in far) for choice in op_choices]
        least = max(max_pipes, min(counts))
        return [choice for choice, count in zip(op_choices, counts, strict=True) if count <= least]

    def _assigned_chip(self, name: str) -> int | None:
        """Return the chip on which an op has to stand, None where it may stand on any."""
        return self.ops[self.index[name]].chip

    def correct_estimates(self, factors: Mapping[str, float], within: range | None = None) -> "CandidateTable":
        """Return the table with new estimates for all ops, or for the ops with numbers in `within`: those of `plain`
        times the op's factor in `factors` (1 for ops not there), and longer where a choice's buffer is too small for
        the inputs that wait in it, `STEP` for each level of the graph up to the op's last reader."""
        estimates = list(self.corrected)
        best = list(self.best)
        for number in within or range(len(self.ops)):
            name = self.ops[number].name
            estimates[number] = _delay_choices(self.plain[number], factors.get(name, 1.0), STEP * self._spans[name])
            best[number] = drop_slower(estimates[number])
        return replace(self, corrected=estimates, best=best)

    @cached_property
    def _spans(self) -> dict[str, int]:
        """The number of levels of the graph strictly between each op, by name, and its last reader, at most `FAR`: 0
        where all readers follow at once. Inputs that pass these levels wait in the op's buffer."""
        level: dict[str, int] = {}
        last: dict[str, int] = {}
        for op in self.ops:
            level[op.name] = 1 + max((level.get(use.source, 0) for use in op.uses), default=0)
            for use in op.uses:
                last[use.source] = max(last.get(use.source, 0), level[op.name])
        return {op.name: min(FAR, max(0, last.get(op.name, 0) - level[op.name] - 1)) for op in self.ops}

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each op, by name."""
        return {op.name: number for number, op in enumerate(self.ops)}

    @cached_property
    def first_chip(self) -> NDArray[np.bool_]:
        """[op]: True for ops that stand on the first chip or are not assigned to a chip."""
        return np.array([not op.chip for op in self.ops], np.bool_)

    @property
    def assigned(self) -> bool:
        """True if each op has to stand on a certain chip, as after `share_products`. The first chip then has all that
        the others have, so an epoch is searched for it alone."""
        return bool(self.ops) and self.ops[0].chip is not None

    @cached_property
    def next_ends(self) -> NDArray[np.int64]:
        """[i]: the first op from i on before which an epoch may end, the number of ops if there is none: an epoch must
        not end between the parts of an op that several chips run at once."""
        count = len(self.ops)
        ends = np.append(np.where(self.first_chip, np.arange(count), count), count)
        return np.minimum.accumulate(ends[::-1])[::-1]

    @cached_property
    def program_ends(self) -> NDArray[np.int64]:
        """[i]: the first op after i that belongs to another program, the number of ops if there is none; programs share
        no epoch (FRONTEND 5)."""
        count = len(self.ops)
        program_ends = np.full(count + 1, count, np.int64)
        for number in range(count - 2, -1, -1):
            same = self.ops[number].program == self.ops[number + 1].program
            program_ends[number] = program_ends[number + 1] if same else number + 1
        return program_ends

    @cached_property
    def paces(self) -> Floats:
        """The `LEVELS` paces that are tried, in cycles for each input, ascending from that of the quickest choice of
        any op to just above that of the slowest."""
        cycles = [choice.cycles for choice in chain.from_iterable(self.best)]
        low = min(cycles, default=1.0)
        high = max(cycles, default=1.0)
        return np.geomspace(max(low, 1.0), max(high, low + 1.0) * 1.001, LEVELS)

    @cached_property
    def _cheapest_choices(self) -> tuple[NDArray[np.int64], Floats]:
        """[pace, op], twice: the cores of the choice that keeps the pace with the least share of a chip (`NEVER` where
        no choice keeps it), and the bytes that DRAM moves for that choice and one input. Both are 0 for ops that are
        not on the first chip."""
        need = np.full((LEVELS, len(self.ops)), NEVER, np.int64)
        streamed = np.zeros((LEVELS, len(self.ops)))
        for number, op_choices in enumerate(self.best):
            cycles, cores, moved = (
                np.array([getattr(choice, name) for choice in op_choices], np.float64)
                for name in ("cycles", "cores", "streamed")
            )
            share = cores[None, :] + moved[None, :] * self.cores_a_byte(self.paces)[:, None]
            share[cycles[None, :] > self.paces[:, None]] = np.inf
            cheapest = share.argmin(1)
            reachable = np.isfinite(share[np.arange(LEVELS), cheapest])
            need[reachable, number] = cores[cheapest[reachable]]
            streamed[:, number] = moved[cheapest]
        return need * self.first_chip, streamed * self.first_chip

    def cores_a_byte(self, pace: Floats) -> Floats:
        """Return for each pace (cycles for one input) how many cores are worth as much as one byte that DRAM moves for
        each input: those that are the same share of all cores as the byte is of what DRAM moves in that time."""
        return prod(self.target.arch.grid) / (speeds(self.target.chip).dram * pace)

    @property
    def need(self) -> NDArray[np.int64]:
        """[pace, op]: the cores with which the op keeps the pace, `NEVER` where it cannot, 0 if it is not on the first
        chip."""
        return self._cheapest_choices[0]

    @cached_property
    def used(self) -> NDArray[np.int64]:
        """[pace, i]: the cores that all ops before op i need to keep the pace."""
        none = np.zeros((LEVELS, 1), np.int64)
        return np.concatenate([none, np.cumsum(self.need, axis=1)], axis=1)

    @cached_property
    def _uses_of_results(self) -> tuple[list[int], list[int], Floats]:
        """Three parallel lists for each use of an op's result by an op of the first chip: the numbers of producer and
        consumer, and the bytes of the whole result. A consumer that reads a result several times counts once."""
        place = {op.name: number for number, op in enumerate(self.ops)}
        size = size_of_tile(self.target.activation_df, self.target.arch.alignment)
        makers: list[int] = []
        readers: list[int] = []
        bytes_: list[float] = []
        for number, op in enumerate(self.ops):
            for name in dict.fromkeys(use.source for use in op.uses):
                if name in place and self.first_chip[number]:
                    makers.append(place[name])
                    readers.append(number)
                    bytes_.append(prod(self.tiles.ops[name].shape) * size)
        return makers, readers, np.array(bytes_)

    def dram_bytes(self, i: int, ends: NDArray[np.int64], levels: NDArray[np.int64]) -> Floats:
        """Return [pace, end]: the bytes that DRAM moves for one input in an epoch of the ops from i up to each of the
        `ends`, at the paces with the numbers `levels`: results of earlier epochs that it reads, results that later ones
        read, inputs, and parameters that do not stay in L1. `ends` has a row for each pace."""
        streamed = self._bytes_before
        return self.crossing[i, ends] + streamed[levels[:, None], ends] - streamed[levels, i][:, None]

    @cached_property
    def _bytes_before(self) -> Floats:
        """[pace, j]: the bytes that DRAM moves for one input of the ops before j, beside results of ops."""
        totals = np.cumsum(self._cheapest_choices[1], axis=1)
        return np.concatenate([np.zeros((LEVELS, 1)), totals], axis=1)

    @cached_property
    def crossing(self) -> Floats:
        """[i, j]: the bytes that DRAM moves for one input since an epoch of the ops from i up to j, without j, begins
        and ends there: results of earlier ops once for each op that reads them, and own results that later ops read
        once each."""
        count = len(self.ops)
        makers, readers, size = self._uses_of_results
        earlier = np.zeros((count + 1, count + 1))  # [a, b]: bytes of uses with producer < a and consumer < b
        np.add.at(earlier, (np.array(makers, np.int64) + 1, np.array(readers, np.int64) + 1), size)
        earlier = earlier.cumsum(0).cumsum(1)
        last: dict[int, int] = {}
        written = np.zeros(count)
        for maker, reader, amount in zip(makers, readers, size.tolist(), strict=True):
            last[maker] = max(last.get(maker, 0), reader)
            written[maker] = amount
        later = np.zeros((count + 2, count + 2))  # [a, b]: bytes of results of ops < a that are read at b or later
        for maker, reader in last.items():
            later[maker + 1, reader] += written[maker]
        later = later.cumsum(0)[:, ::-1].cumsum(1)[:, ::-1]
        i = np.arange(count + 1)[:, None]
        j = np.arange(count + 1)[None, :]
        read = earlier[i, j] - earlier[i, i]
        write = later[j, j] - later[i, j]
        return read + write

    @cached_property
    def loaded(self) -> Floats:
        """[i]: the bytes of constants that the ops before i load into L1 before their first input, for ops of the first
        chip, each in its choice with the fewest cores; a picker's tiles and words do not count."""
        size = size_of_tile(self.target.activation_df, self.target.arch.alignment)
        op_bytes = [
            sum(prod(self.tiles.constants[name].shape) for name in best[0].held - picker_operands(op)) * size
            for op, best in zip(self.ops, self.best, strict=True)
        ]
        return np.concatenate([[0.0], np.cumsum(np.array(op_bytes, np.float64) * self.first_chip)])

    @cached_property
    def level(self) -> NDArray[np.int64]:
        """[i]: the number of ops on the longest path through ops before i, 0 for the first op."""
        place = {op.name: number for number, op in enumerate(self.ops)}
        depths = np.zeros(len(self.ops) + 1, np.int64)
        for number, op in enumerate(self.ops):
            before = [depths[place[use.source] + 1] for use in op.uses if use.source in place]
            depths[number + 1] = max(before, default=0) + 1
        return np.maximum.accumulate(depths)


def _delay_choices(op_choices: Sequence[Choice], factor: float, inputs: float) -> list[Choice]:
    """Return the choices with their estimates multiplied by `factor`, and longer where the buffer holds fewer than the
    `inputs` that wait in it for a parallel branch: in proportion, since all further inputs wait."""
    delayed: list[Choice] = []
    for choice in op_choices:
        cycles = choice.cycles * factor
        if inputs:
            cycles *= max(1.0, inputs / (choice.blocks.buf_size_mb / choice.blocks.t))
        delayed.append(choice if cycles == choice.cycles else replace(choice, cycles=cycles))
    return delayed


def _with_enough_buffers(op_choices: list[Choice], channels: int) -> list[Choice]:
    """Return the choices of an op that writes a cache with at least half as many cores as there are DRAM channels or,
    if all have fewer, with the most cores. A cache has a buffer for each core of the op that writes it (NETLIST V076),
    and all of its slots are read each time one is written; keys and values are two caches."""
    enough = min(max(choice.cores for choice in op_choices), -(-channels // 2))
    return [choice for choice in op_choices if choice.cores >= enough]


def cost_key(tiles: TileGraph, op: TileOp, *, without_tables: bool = False) -> object:
    """Return a key that is equal for ops with equal costs: same type, shapes, attributes, sub-ops and formats. With
    `without_tables`, pickers with other tables count as equal."""
    uses = tuple((tiles.shape_of(use.source), use.tms, use.source in tiles.ops) for use in op.uses)
    if "table" in op.attrs and not without_tables:
        uses = (*uses, id(op.attrs["table"]))
    steps = tuple(
        (
            step.type,
            step.inputs,
            step.output,
            step.pop,
            _attribute_key(step.attrs),
            step.spread,
            step.across,
            step.inner,
        )
        for step in op.steps
    )
    return op.type, op.shape, op.inner, op.grid, op.ublock, _attribute_key(op.attrs), uses, steps, op.precision


def sequence_key(tiles: TileGraph, ops: Sequence[TileOp]) -> object:
    """Return a key that is equal for sequences of ops that cost the same and read each other in the same way, whatever
    their constants are."""
    place = {op.name: number for number, op in enumerate(ops)}
    return tuple(
        (cost_key(tiles, op, without_tables=True), tuple(place.get(use.source, -1) for use in op.uses)) for op in ops
    )


def _attribute_key(attrs: TileAttributes) -> object:
    """Return the attributes of an op as a key, without its table."""
    return tuple(sorted((key, repr(value)) for key, value in attrs.items() if key != "table"))
