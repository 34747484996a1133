"""The resources that the pipes of an epoch take of each core as net2pipe counts them, and its recommendations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Final

import numpy as np

from buda_emu.netlist.model import Op
from buda_emu.performance.routing.pipes.buffers import Buffers
from buda_emu.performance.routing.pipes.edge import EdgeMap
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.granularity import base_of
from buda_emu.performance.routing.pipes.make_pipes import Draft, PipeMaker
from buda_emu.performance.routing.pipes.model import Refusal
from buda_emu.performance.routing.pipes.op_buffers import core_of
from buda_emu.performance.routing.pipes.ops.edges import OpEdges
from buda_emu.performance.routing.pipes.ops.general import is_ethernet
from buda_emu.performance.routing.pipes.source_map import Tiles, cores, places
from buda_emu.spec.archs import EXTRA_STREAMS, GATHER_STREAMS
from buda_emu.spec.devices import device

MULTICASTS = 4  # streams of a core that can multicast or gather (V344)
DRAM_INPUTS = 8  # streams of a core that can read DRAM (V342)
DRAM_OUTPUTS = 8  # and that can write it (V343)

ChipCore = tuple[int, int, int]
"""Chip, row and column."""

Segment = tuple[int, tuple[int, ...]]


@dataclass(slots=True)
class CoreUse:
    """The streams and DRAM accesses that pipes need on one worker core."""

    extra: int = 0
    dram_inputs: int = 0
    dram_outputs: int = 0
    multicasts: int = 0
    _gathers: dict[Segment, int] = field(default_factory=dict[Segment, int], compare=False)
    _multicast: dict[Segment, None] = field(default_factory=dict[Segment, None], compare=False)
    _times: dict[Segment, int] = field(default_factory=dict[Segment, int], compare=False)
    _gather_streams: int = 0

    @property
    def busy_pipes(self) -> int:
        """Return the number of pipes that gather or multicast here."""
        return len(self._gathers.keys() | self._multicast.keys())

    def add(self, segment: Segment, inputs: int, *, gathers: bool, multicasts: bool, wide: int) -> bool:
        """Count a turn of a pipe that gathers or multicasts here, and return whether gathers now take more streams; the
        same turn counts once. `segment` is (the pipe's id, the turn's outputs); `inputs` is the number of inputs that
        are gathered; `wide` is how many pipes may spread their gathers over several streams."""
        self._times[segment] = self._times.get(segment, 0) + 1
        if self._times[segment] > 1:
            return False
        if gathers:
            self._gathers[segment] = inputs
        if multicasts:
            self._multicast[segment] = None
            self.multicasts += 1
        before = self._gather_streams
        self._gather_streams = self._count_gather_streams(wide)
        self.extra += self._gather_streams - before
        return self._gather_streams > before

    def remove(self, segment: Segment, *, wide: int) -> None:
        """Undo `add` of a segment. As in net2pipe, a turn that multicasts but does not gather is only taken off the
        count of multicasts if the core has as many as it can."""
        self._times[segment] -= 1
        if self._times[segment]:
            return
        gathers = segment in self._gathers
        full = len(self._gathers) + len(self._multicast) == MULTICASTS
        self._gathers.pop(segment, None)
        if segment in self._multicast:
            del self._multicast[segment]
            self.multicasts -= gathers or full
        before = self._gather_streams
        self._gather_streams = self._count_gather_streams(wide)
        self.extra += self._gather_streams - before

    def _count_gather_streams(self, wide: int) -> int:
        """Return the streams that all gathers here take: one each; those of the first `wide` pipes as many as they have
        inputs, up to GATHER_STREAMS. Pipes that only multicast count among these first."""
        alone = sum(segment not in self._gathers for segment in self._multicast)
        both_count = min(len(self._multicast) - alone, max(0, wide - alone))
        pipes = alone + both_count
        total = 0
        spread: set[int] = set()
        for segment, inputs in self._gathers.items():
            also_multicast = segment in self._multicast
            if also_multicast and both_count:
                both_count -= 1
                wide_one = True
            else:
                wide_one = pipes < wide or segment[0] in spread
            total += min(GATHER_STREAMS, inputs) if wide_one else 1
            if wide_one:
                spread.add(segment[0])
            pipes += not also_multicast
        return total


def over_limits(use: Mapping[ChipCore, CoreUse], buffers: Buffers) -> Iterator[Refusal]:
    """Yield refusals of worker cores on which pipes need more than there is. `use` has what they need of each core."""
    ops: dict[ChipCore, str] = {}
    for op in buffers.epoch.ops.values():
        for id in buffers.ops.outputs[op.name] if not is_ethernet(op) else ():
            ops[op.target_device, *buffers.core[id]] = op.name
    for core, core_use in sorted(use.items()):
        for rule, message, used, limit, hint in (
            ("V340", "streams beyond those of operands", core_use.extra, len(EXTRA_STREAMS), _LESS_FAN_OUT),
            ("V342", "pipes that read from DRAM", core_use.dram_inputs, DRAM_INPUTS, _FEWER_QUEUES),
            ("V343", "pipes that write to DRAM", core_use.dram_outputs, DRAM_OUTPUTS, _FEWER_QUEUES),
            ("V344", "pipes that multicast", core_use.multicasts, MULTICASTS, _LESS_FAN_OUT),
        ):
            if used > limit:
                chip, row, column = core
                text = (
                    f"core [{row}, {column}]{f' of chip {chip}' if chip else ''} needs {used} {message}, it has {limit}"
                )
                place = (row, column)
                yield Refusal(rule=rule, what=text, hint=hint, op=ops.get(core, ""), core=place, used=used, limit=limit)


_LESS_FAN_OUT: Final = (
    "give the ops that read its result the same grid and blocks, or put a nop between it and some of them"
)
_FEWER_QUEUES: Final = (
    "cut the queue into fewer buffers, spread the op over more cores, or keep operands in L1 (prologue)"
)


class Counter:
    """Counts, in `use`, what pipes need of each worker core, as net2pipe does."""

    def __init__(self, epoch: Epoch, buffers: Buffers, pipes: PipeMaker) -> None:
        self.epoch = epoch
        self.buffers = buffers
        self.pipes = pipes
        if epoch.netlist.arch_name == "grayskull":
            self.wide = 3
        else:
            self.wide = device(epoch.netlist.arch_name).multicast_streams
        self.use: dict[ChipCore, CoreUse] = {}
        self.gathers: dict[int, bool] = {}
        self.drafts = {draft.id: draft for draft in pipes.made}

    def at(self, core: ChipCore) -> CoreUse:
        """Return the use of a worker core so far, empty at the first call; later counts change the same object."""
        return self.use.setdefault(core, CoreUse())

    def _at_buffer(self, op: Op, id: int) -> CoreUse:
        """Return the use of the core on which a buffer of an op lies, given the buffer's id."""
        return self.at((op.target_device, *self.buffers.core[id]))

    def count_use(self) -> dict[ChipCore, CoreUse]:
        """Count what all pipes that were made need of their cores, and return the use of each."""
        readers: dict[int, set[int]] = {}
        for draft in self.pipes.made:
            self._count_pipe(draft)
            for base in draft.bases:
                readers.setdefault(base, set()).add(draft.id)
        self._count_forks(readers)
        self._count_prologues(readers)
        return self.use

    def _count_pipe(self, draft: Draft) -> None:
        """Count the gathers, multicasts and DRAM accesses of one pipe on the worker cores that carry it out."""
        if draft.link:
            return
        queues = self.epoch.netlist.queues
        in_prologue = self.epoch.prologue
        streams = draft.steps == 0 and draft.source in queues and draft.source not in in_prologue
        to_dram = draft.reader in queues and draft.reader not in in_prologue
        gathers = self.gathers[draft.id] = self.takes_streams(draft)
        spread = draft.scattered and not self.from_one_core(draft)
        for outputs, core in zip(draft.outputs, draft.cores if draft.channel < 0 else (), strict=draft.channel < 0):
            use = self.at(core)
            multicasts = len(outputs) > 1 or spread
            takes_more = False
            if gathers or multicasts:
                segment = (draft.id, outputs)
                count = len(draft.inputs)
                takes_more = use.add(segment, count, gathers=gathers, multicasts=multicasts, wide=self.wide)
            if streams:
                use.extra += not takes_more
                use.dram_inputs += 1
            use.dram_outputs += to_dram

    def from_one_core(self, draft: Draft) -> bool:
        """Return whether all inputs of a pipe lie in one place: in DRAM, or in L1 of one core."""
        queues = self.epoch.netlist.queues
        if draft.source in queues and draft.steps != 2:
            return True
        return not draft.gathers_cores

    def takes_streams(self, draft: Draft) -> bool:
        """Return whether a pipe takes streams for its reads: it jumps between places of several buffers, or in DRAM."""
        padding = self.buffers.padding.made
        from_dram = draft.source in self.epoch.netlist.queues and draft.steps != 2
        from_dram |= bool(padding) and any(base in padding for base in draft.bases)
        cut = self.pipes.cuts[draft.source]
        scattered = cut.scattered and draft.steps != 2
        single = from_dram or (not draft.gathers_cores and len(draft.outputs[0]) == 1)
        if not from_dram and (single if scattered else not draft.gathers_cores):
            return False
        return not self._cycles_through_buffer(draft, cut.tiles if draft.steps != 2 else 0)

    def _cycles_through_buffer(self, draft: Draft, step: int) -> bool:
        """Return whether a pipe reads the pieces of one buffer in order, once or over and over, each once or several
        times in a row, so that it needs no stream to jump. `step` is the tiles of a piece of a queue; an op's buffer
        states its own."""
        first = draft.inputs[0]
        base = base_of(first)
        if first in self.buffers.padding.made:
            return False
        if draft.source in self.epoch.netlist.queues and draft.steps != 2:
            size = self.epoch.netlist.queues[draft.source].blocking.tiles_per_core
        else:
            buffer = self.buffers.ops.made[base]
            size = buffer.size_tiles
            step = buffer.scatter_gather_num_tiles
        expected = last = first
        for buffer_id in draft.inputs:
            if buffer_id not in (expected, last):
                return False
            if buffer_id == expected:
                expected += step
            if expected >= size + base:
                expected = first
            last = buffer_id
        return True

    def _count_forks(self, readers: Mapping[int, set[int]]) -> None:
        """Count the extra streams of results, and of chunks, that several pipes read. `readers` has the ids of the
        pipes that read each buffer."""
        for op in self.epoch.ops.values():
            for id in self.buffers.ops.outputs[op.name] if not is_ethernet(op) else ():
                self._count_fork(op, id, readers)
        for (name, *_), id in self.buffers.ops.chunks.items():
            op = self.epoch.ops[name]
            self._at_buffer(op, id).extra += 1
            self._count_fork(op, id, readers)

    def _count_fork(self, op: Op, id: int, readers: Mapping[int, set[int]]) -> None:
        """Count an extra stream for every pipe but the first that reads the buffer `id` of an op."""
        count = len(readers.get(id, ()))
        if count > 1:
            self._at_buffer(op, id).extra += count - 1

    def _count_prologues(self, readers: Mapping[int, set[int]]) -> None:
        """Count an extra stream for each queue's buffer that L1 keeps as it lies in DRAM, and, if several pipes read
        it, for each that has no streams of its own."""
        for (name, reader), ids in self.buffers.queues.forks.items():
            op = self.epoch.ops.get(reader)
            if op is not None:
                edges = self.buffers.edges[reader]
            else:
                edges = None
            if op is None or edges is None or edges.as_read.get(name, False):
                continue
            for id in ids:
                use = self._at_buffer(op, id)
                pipes: Iterable[int] = readers.get(id, ())
                use.extra += 1
                if len(readers.get(id, ())) > 1:
                    use.extra += sum(not self._gathers_or_multicasts(pipe_id) for pipe_id in pipes)

    def _gathers_or_multicasts(self, pipe: int) -> bool:
        """Return whether a pipe, given its id, gathers or multicasts, and so has streams of its own."""
        draft = self.drafts[pipe]
        multicasts = len(draft.outputs[0]) > 1 or (draft.scattered and not self.from_one_core(draft))
        return self.gathers[pipe] or multicasts


FORKS = 16  # receivers that a core sends to (V357): what net2pipe recommends at most
PHASES = 1800  # of what a core receives and sends (V358): what net2pipe recommends at most
DRAM_READS = 2000  # places of queues that a core reads (V360): what net2pipe recommends at most

Counts = dict[int, int]
"""By core of a grid, counted row by row."""


def find_warnings(epoch: Epoch, edges: Mapping[str, OpEdges]) -> Iterator[Refusal]:
    """Yield for each op a refusal (V357, V358, V360) of each count of net2pipe that is above its recommendation:
    receivers, phases, and places in DRAM."""
    for op in epoch.ops.values():
        readers = list(_readers(epoch, op, edges))
        yield from _warn_of_receivers(op, readers)
        yield from _warn_of_phases(epoch, op, edges[op.name], readers)
        yield from _warn_of_dram_reads(epoch, op, edges[op.name])


# Each first sums a bound that no single core can exceed: the counts by core take long, and few ops come near.


def _warn_of_receivers(op: Op, readers: Sequence[tuple[Op, EdgeMap, int]]) -> Iterator[Refusal]:
    """Yield the refusal V357 if a core of an op sends to more receivers than recommended."""
    if sum(_receiver_count(edge) for _, edge, _ in readers) > FORKS:
        yield from _refuse_above(op, "V357", [_receivers_by_core(edge) for _, edge, _ in readers], FORKS, _FORKED)


def _warn_of_phases(
    epoch: Epoch, op: Op, edges: OpEdges, readers: Sequence[tuple[Op, EdgeMap, int]]
) -> Iterator[Refusal]:
    """Yield the refusal V358 if what a core of an op receives from ops and sends takes more phases than recommended."""
    queues = epoch.netlist.queues
    from_ops = [edges.maps[index] for index, name in enumerate(op.inputs) if name in epoch.ops and name not in queues]
    if sum(2 * edge.tiles for edge in (*from_ops, *(edge for _, edge, _ in readers))) > PHASES:
        received = [_times(2, _count_source_changes(edge)) for edge in from_ops]
        sent = [_count_sends(op, epoch, reader, edge, index) for reader, edge, index in readers]
        yield from _refuse_above(op, "V358", [*received, *sent], PHASES, _MANY_PHASES)


def _warn_of_dram_reads(epoch: Epoch, op: Op, edges: OpEdges) -> Iterator[Refusal]:
    """Yield the refusal V360 if a core of an op reads queues at more places than recommended."""
    from_queues = [(edges.maps[index], index) for index, name in enumerate(op.inputs) if name in epoch.netlist.queues]
    if sum(edge.tiles for edge, _ in from_queues) > DRAM_READS:
        places_read = [_places_read(edge, _clear_tiles(epoch, op, index)) for edge, index in from_queues]
        yield from _refuse_above(op, "V360", places_read, DRAM_READS, _MANY_PLACES)


_FORKED: Final = "core {} of it sends to {} readers, net2pipe recommends no more than {}"
_MANY_PHASES: Final = "what core {} of it receives and sends takes {} phases, net2pipe recommends no more than {}"
_MANY_PLACES: Final = "core {} of it reads queues at {} places, net2pipe recommends no more than {}"


def _refuse_above(op: Op, rule: str, parts: Sequence[Counts], limit: int, words: str) -> Iterator[Refusal]:
    """Yield a refusal by `rule` if the counts exceed `limit`. `parts` has the counts of each edge by core; net2pipe
    adds up the greatest of each. It names the core with most in all parts together. `words` is the message, with places
    for core, count and limit."""
    used = sum(map(_greatest, parts))
    if used <= limit:
        return
    total: Counts = {}
    for part in parts:
        for core, count in part.items():
            total[core] = total.get(core, 0) + count
    fullest = max(total, key=total.__getitem__)
    place = core_of(op, *divmod(fullest, op.blocking.grid_size[1]))
    hint = "cut producer and consumer alike, or put a nop between"
    message = words.format(list(place), used, limit)
    yield Refusal(rule=rule, what=message, hint=hint, op=op.name, core=place, used=used, limit=limit)


def _times(factor: int, counts: Counts) -> Counts:
    """Return the counts multiplied by a factor."""
    return {core: factor * count for core, count in counts.items()}


def _readers(epoch: Epoch, op: Op, edges: Mapping[str, OpEdges]) -> Iterator[tuple[Op, EdgeMap, int]]:
    """Yield, for each operand that reads the result of an op, the reading op, the edge to its first operand that does,
    and the index of that operand."""
    for name in epoch.readers.get(op.name, ()):
        reader = epoch.ops.get(name)
        if reader is not None and name not in epoch.netlist.queues:
            index = reader.inputs.index(op.name)
            yield reader, edges[name].maps[index], index


def _receiver_count(edge: EdgeMap) -> int:
    """Return the number of receivers of all pipes of an edge; a row or column of cores that share tiles counts as
    one."""
    return sum(len(pipe.dests) for pipe in edge.pipes)


def _greatest(counts: Counts) -> int:
    """Return the greatest count, 0 if there is none."""
    return max(counts.values(), default=0)


def _cell_number(edge: EdgeMap, dest: tuple[int, int]) -> int:
    """Return the number of a receiver in the reader's grid, counted row by row; for tiles that a whole row or column
    gets (its row or column is negative), that of its first core."""
    return max(dest[0], 0) * edge.consumer_grid[1] + max(dest[1], 0)


def _receivers_by_core(edge: EdgeMap) -> Counts:
    """Return for each core of an edge's producer the number of cores that it sends to."""
    pairs: set[tuple[int, int]] = set()
    for pipe in edge.pipes:
        for core in np.unique(cores(pipe.tiles)).tolist():
            if core >= 0:  # no padding
                pairs.update((core, _cell_number(edge, dest)) for dest in pipe.dests)
    return _count_items(core for core, _ in pairs)


def _count_items(items: Iterable[int]) -> Counts:
    """Return how often each number occurs."""
    counts: Counts = {}
    for entry in items:
        counts[entry] = counts.get(entry, 0) + 1
    return counts


def _count_source_changes(edge: EdgeMap) -> Counts:
    """Return for each core of a reader the number of stretches of tiles that it takes from one core, over all its
    pipes."""
    counts: Counts = {}
    for pipe in edge.pipes:
        core = cores(pipe.tiles)
        changes = 1 + int((core[1:] != core[:-1]).sum())
        for dest in pipe.dests:
            counts[_cell_number(edge, dest)] = counts.get(_cell_number(edge, dest), 0) + changes
    return counts


def _clear_tiles(epoch: Epoch, op: Op, index: int) -> int:
    """Return how many tiles of operand `index` an op frees in its buffer at a time."""
    return epoch.inputs(op).tiles_per_clear(index)


def _count_sends(op: Op, epoch: Epoch, reader: Op, edge: EdgeMap, index: int) -> Counts:
    """Return the phases in which each core of a producer `op` sends over the edge to operand `index` of `reader`; twice
    as many if its buffer is double."""
    counts: Counts = {}
    cleared = _clear_tiles(epoch, reader, index)
    for pipe in edge.pipes:
        piece = _tiles_per_piece(pipe.tiles)
        repeats = _repeats(pipe.tiles, cleared)
        core, count = np.unique(cores(pipe.tiles), return_counts=True)
        for core_number, tiles in zip(core.tolist(), count.tolist(), strict=True):
            pieces = -(-tiles // piece)
            counts[core_number] = counts.get(core_number, 0) + -(-pieces // repeats)
    counts.pop(-1, None)
    return _times(1 if op.buf_size_mb == 1 else 2, counts)


def _places_read(edge: EdgeMap, cleared: int) -> Counts:
    """Return for each core of a reader the number of places in queues that its pipes list. As in net2pipe, each pipe
    counts those of earlier pipes again. `cleared` is the number of tiles that the reader frees at a time."""
    counts: Counts = {}
    tiles: Counts = {}
    for pipe in edge.pipes:
        core = _cell_number(edge, pipe.dests[0])
        tiles[core] = tiles.get(core, 0) + len(pipe.tiles)
        pieces = -(-tiles[core] // _tiles_per_piece(pipe.tiles))
        counts[core] = counts.get(core, 0) + -(-pieces // _repeats(pipe.tiles, cleared))
    return counts


def _tiles_per_piece(tiles: Tiles) -> int:
    """Return the greatest number of tiles that divides every run of adjacent tiles on one core."""
    apart = (cores(tiles[1:]) != cores(tiles[:-1])) | (places(tiles[1:]) != places(tiles[:-1]) + 1)
    ends = np.flatnonzero(apart) + 1
    return gcd(*np.diff(np.concatenate(([0], ends, [len(tiles)]))).tolist())


def _repeats(tiles: Tiles, cleared: int) -> int:
    """Return how often a pipe's list of tiles repeats itself, in periods that are multiples of `cleared`, the tiles
    that the reader frees at a time; 1 if it does not."""
    count = len(tiles)
    for period in range(cleared, count // 2 + 1, cleared):
        if count % period == 0 and (tiles[period:] == tiles[:-period]).all():
            return count // period
    return 1
