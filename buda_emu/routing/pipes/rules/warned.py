"""What net2pipe warns of, and takes all the same: cores whose streams fork often or go through many phases, and many
places of queues that an op reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd
from typing import Final

import numpy as np

from buda_emu.netlist.model import Op
from buda_emu.routing.pipes.buffers.op_buffers import core_of
from buda_emu.routing.pipes.epoch import Epoch
from buda_emu.routing.pipes.maps.edge import EdgeMap
from buda_emu.routing.pipes.maps.source_map import Tiles, cores, places
from buda_emu.routing.pipes.ops.edges import OpEdges
from buda_emu.routing.pipes.refusal import Refusal

FORKS, PHASES, DRAM_READS = 16, 1800, 2000

Counts = dict[int, int]
"""By core of a grid, counted row by row."""


def warned(epoch: Epoch, edges: Mapping[str, OpEdges]) -> Iterator[Refusal]:
    """By op: what net2pipe counts of its core that has most, where that is more than it recommends."""
    for op in epoch.ops.values():
        read = [(name, edges[op.name].maps[index], index) for index, name in enumerate(op.inputs)]
        from_ops = [edge for name, edge, _ in read if name in epoch.ops and name not in epoch.netlist.queues]
        readers = list(_readers(epoch, op, edges))
        if sum(_dests(edge) for _, edge, _ in readers) > FORKS:
            yield from _above(op, "V357", [_forks(edge) for _, edge, _ in readers], FORKS, _FORKED)
        if sum(2 * edge.tiles for edge in (*from_ops, *(edge for _, edge, _ in readers))) > PHASES:
            received = [_times(2, _received(edge)) for edge in from_ops]
            sent = [_sent(op, epoch, reader, edge, index) for reader, edge, index in readers]
            yield from _above(op, "V358", [*received, *sent], PHASES, _MANY_PHASES)
        from_queues = [(edge, index) for name, edge, index in read if name in epoch.netlist.queues]
        if sum(edge.tiles for edge, _ in from_queues) > DRAM_READS:
            places_read = [_places_read(edge, _cleared(epoch, op, index)) for edge, index in from_queues]
            yield from _above(op, "V360", places_read, DRAM_READS, _MANY_PLACES)


_FORKED: Final = "core {} of it sends to {} readers, net2pipe recommends no more than {}"
_MANY_PHASES: Final = "what core {} of it receives and sends takes {} phases, net2pipe recommends no more than {}"
_MANY_PLACES: Final = "core {} of it reads queues at {} places, net2pipe recommends no more than {}"


def _above(op: Op, rule: str, parts: Sequence[Counts], limit: int, what: str) -> Iterator[Refusal]:
    """`parts`: of each edge what its cores have; net2pipe adds up the most of each. The core that is named has most of
    all parts together."""
    used = sum(map(_most, parts))
    if used <= limit:
        return
    total: Counts = {}
    for part in parts:
        for core, count in part.items():
            total[core] = total.get(core, 0) + count
    fullest = max(total, key=total.__getitem__)
    place = core_of(op, *divmod(fullest, op.blocking.grid_size[1]))
    hint = "cut producer and consumer alike, or put a nop between"
    said = what.format(list(place), used, limit)
    yield Refusal(rule=rule, what=said, hint=hint, op=op.name, core=place, used=used, limit=limit)


def _times(factor: int, counts: Counts) -> Counts:
    return {core: factor * count for core, count in counts.items()}


def _readers(epoch: Epoch, op: Op, edges: Mapping[str, OpEdges]) -> Iterator[tuple[Op, EdgeMap, int]]:
    """Each operand that reads the result, with the op's first operand that does."""
    for name in epoch.readers.get(op.name, ()):
        reader = epoch.ops.get(name)
        if reader is not None and name not in epoch.netlist.queues:
            index = reader.inputs.index(op.name)
            yield reader, edges[name].maps[index], index


def _dests(edge: EdgeMap) -> int:
    return sum(len(pipe.dests) for pipe in edge.pipes)


def _most(counts: Counts) -> int:
    return max(counts.values(), default=0)


def _core(edge: EdgeMap, dest: tuple[int, int]) -> int:
    """Of a reader's grid; that of the first row or column for what all get."""
    return max(dest[0], 0) * edge.consumer_grid[1] + max(dest[1], 0)


def _forks(edge: EdgeMap) -> Counts:
    """For each core of a producer, to how many cores it sends."""
    pairs = {
        (core, _core(edge, dest))
        for pipe in edge.pipes
        for core in np.unique(cores(pipe.tiles)).tolist()
        for dest in pipe.dests
        if core >= 0
    }
    return _counted(core for core, _ in pairs)


def _counted(items: Iterable[int]) -> Counts:
    found: Counts = {}
    for one in items:
        found[one] = found.get(one, 0) + 1
    return found


def _received(edge: EdgeMap) -> Counts:
    """For each core of a reader, how often the core changes that it takes from."""
    found: Counts = {}
    for pipe in edge.pipes:
        core = cores(pipe.tiles)
        changes = 1 + int((core[1:] != core[:-1]).sum())
        for dest in pipe.dests:
            found[_core(edge, dest)] = found.get(_core(edge, dest), 0) + changes
    return found


def _cleared(epoch: Epoch, op: Op, index: int) -> int:
    return epoch.inputs(op).cleared(index)


def _sent(op: Op, epoch: Epoch, reader: Op, edge: EdgeMap, index: int) -> Counts:
    """Phases in which each core of a producer sends; twice as many where its buffer is double."""
    found: Counts = {}
    cleared = _cleared(epoch, reader, index)
    for pipe in edge.pipes:
        piece, repeats = _piece(pipe.tiles), _repeats(pipe.tiles, cleared)
        core, count = np.unique(cores(pipe.tiles), return_counts=True)
        for one, tiles in zip(core.tolist(), count.tolist(), strict=True):
            pieces = -(-tiles // piece)
            found[one] = found.get(one, 0) + -(-pieces // repeats)
    found.pop(-1, None)
    return _times(1 if op.buf_size_mb == 1 else 2, found)


def _places_read(edge: EdgeMap, cleared: int) -> Counts:
    """For each core of a reader, how many places its pipes list; each counts those before it again (net2pipe)."""
    found: Counts = {}
    tiles: Counts = {}
    for pipe in edge.pipes:
        core = _core(edge, pipe.dests[0])
        tiles[core] = tiles.get(core, 0) + len(pipe.tiles)
        pieces = -(-tiles[core] // _piece(pipe.tiles))
        found[core] = found.get(core, 0) + -(-pieces // _repeats(pipe.tiles, cleared))
    return found


def _piece(tiles: Tiles) -> int:
    """The greatest number of tiles that divides every run of tiles that lie together."""
    apart = (cores(tiles[1:]) != cores(tiles[:-1])) | (places(tiles[1:]) != places(tiles[:-1]) + 1)
    ends = np.flatnonzero(apart) + 1
    return gcd(*np.diff(np.concatenate(([0], ends, [len(tiles)]))).tolist())


def _repeats(tiles: Tiles, cleared: int) -> int:
    """How often a pipe's tiles repeat themselves, in whole clears of the reader; 1 where they do not."""
    count = len(tiles)
    for one in range(cleared, count // 2 + 1, cleared):
        if count % one == 0 and (tiles[one:] == tiles[:-one]).all():
            return count // one
    return 1
