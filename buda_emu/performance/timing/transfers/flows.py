"""Transfers of one epoch, in bytes: the edges between ops and queues that the epoch model times (PERF 1.2, LAYOUT
4)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

from buda_emu.netlist.for_each import ForEach
from buda_emu.netlist.model import Execute, Netlist, Op, Queue, TemporalGraph, Tm
from buda_emu.spec.archs import Arch
from buda_emu.spec.blocking import Shape
from buda_emu.spec.formats import FORMATS, tile_bytes

Memory = Literal["dram", "host", "none"]


CHANNEL: Final = "DRAM channel"
_CHANNEL_NAME: Final = re.compile(rf"{CHANNEL} ([0-9]+)(?:, chip ([0-9]+))?(?::|$)")


def channel_name(number: int, chip: int) -> str:
    """Return the name of a DRAM channel among the busy units: `DRAM channel 3`, `DRAM channel 3, chip 1`; chip 0 is
    left out."""
    return f"{CHANNEL} {number}" + (f", chip {chip}" if chip else "")


def stream_in_channel(channel: str, name: str) -> str:
    """Return the name of the stream of a transfer (`name`) in a memory channel."""
    return f"{channel}: {name}"


def channel_of(name: str) -> tuple[int, int] | None:
    """Return (number, chip) of a channel by its name or that of a stream through it; None for any other name."""
    match = _CHANNEL_NAME.match(name)
    if match is not None:
        return (int(match[1]), int(match[2] or 0))
    return None


@dataclass(frozen=True, slots=True)
class Flow:
    """An op's input, or an op's output into a queue, for one input of the epoch.

    `core_bytes` are received or sent by each core of the op; `memory_bytes` leave or enter the queue, by channel of
    `chip`. `hops` is the longest way between cores; `crosses` tells whether it crosses chips. With `once` the data is
    loaded before the first input (prologue), not for each. `packet` is the bytes of one packet, a tile.
    """

    source: str
    target: str
    operand: int  # -1: output into a queue
    core_bytes: int
    memory: Memory
    memory_bytes: Mapping[int, int]
    hops: int
    crosses: bool
    once: bool
    chip: int = 0
    packet: int = 0

    @property
    def ends(self) -> str:
        """Return both ends as `source > target`."""
        return f"{self.source} > {self.target}"

    @property
    def name(self) -> str:
        """Return the name of the transfer in schedules and reports."""
        if self.once:
            return f"{self.ends}, once"
        return self.ends


def flows(netlist: Netlist, temporal: TemporalGraph, settings: Mapping[str, Execute]) -> list[Flow]:
    """Return every transfer of a temporal graph: inputs of ops first, then outputs into queues. `settings` has the
    execute instruction of each of its graphs, whose prologues count."""
    ops = {op.name: op for name in temporal.graphs for op in netlist.graphs[name].ops}
    static = _prologue_queues(settings.values())
    edges: list[Flow] = []
    for op in ops.values():
        for operand, name in enumerate(op.inputs):
            edges.append(_input_flow(netlist, ops, op, operand, name, name in static))
    queues_of_writers = _QUEUES_BY_WRITER.of(netlist)
    outputs = sorted(chain.from_iterable(queues_of_writers.get(name, ()) for name in ops))
    for _, name in outputs:
        queue = netlist.queues[name]
        edges.append(_output_flow(netlist.arch, ops[queue.input], queue))
    return edges


def _queues_by_writer(netlist: Netlist) -> dict[str, list[tuple[int, str]]]:
    """Return for each op the queues that it fills, each as (number among all queues, name); the host's under the name
    it has as input."""
    queues_by_writer: dict[str, list[tuple[int, str]]] = {}
    for number, (name, queue) in enumerate(netlist.queues.items()):
        queues_by_writer.setdefault(queue.input, []).append((number, name))
    return queues_by_writer


_QUEUES_BY_WRITER: Final = ForEach(_queues_by_writer)


def _prologue_queues(executes: Iterable[Execute]) -> frozenset[str]:
    """Return the names of the queues that are loaded once: those with a prologue."""
    queues: set[str] = set()
    for execute in executes:
        queues.update(setting.queue for setting in execute.queue_settings if setting.prologue.lower() == "true")
    return frozenset(queues)


def operand_shape(op: Op, operand: int, source: Shape) -> Shape:
    """Return (t, tile rows, tile columns) of input `operand` after unpadding, TMs and padding. `source` is the shape of
    its source."""
    t, rows, cols = source
    if operand < len(op.input_unpad):
        unpad = op.input_unpad[operand]
    else:
        unpad = None
    if unpad is not None:
        rows = max(rows - unpad.rt, 1)
        cols = max(cols - unpad.ct, 1)
    for tm in op.input_tms[operand] if operand < len(op.input_tms) else ():
        t, rows, cols = _apply_tm(tm, t, rows, cols)
    if operand < len(op.input_pad):
        pad = op.input_pad[operand]
    else:
        pad = None
    if pad is not None:
        return (t, rows + pad.rt, cols + pad.ct)
    return (t, rows, cols)


def _apply_tm(tm: Tm, t: int, rows: int, cols: int) -> Shape:
    """Return (t, tile rows, tile columns) of a tensor after one TM."""
    if tm.args and not isinstance(tm.args[-1], str):
        count = int(tm.args[-1])
    else:
        count = 1
    match tm.name:
        case "broadcast":
            by = {"z": (count, 1, 1), "r": (1, count, 1), "c": (1, 1, count)}[str(tm.args[0])]
            return t * by[0], rows * by[1], cols * by[2]
        case "hslice":
            return t * count, rows, max(cols // count, 1)
        case "hstack":
            return max(t // count, 1), rows, cols * count
        case "vslice":
            return t * count, max(rows // count, 1), cols
        case "vstack":
            return max(t // count, 1), rows * count, cols
        case "transpose":
            return t, cols, rows
        case "pad":
            return t, rows + int(tm.args[0]), cols + int(tm.args[1])
        case _:
            return t, rows, cols


def bytes_of_tile(df: str, tile_dim: tuple[int, int], arch: Arch) -> int:
    """Return the bytes of one tile in L1 with its header; 0 for an unknown format."""
    if df in FORMATS:
        return tile_bytes(df, *tile_dim, arch.alignment, True)
    return 0


def _tiles_per_core(op: Op, operand: int, shape: Shape) -> int:
    """Return the tiles of input `operand` that one core of the op reads, at least 1: a row of cores shares rows, a
    column of cores shares columns (OPS 6.1); of a kernel broadcast only those that it keeps. `shape` is that of the
    whole input."""
    t, rows, cols = shape
    down, across = op.blocking.grid_size
    if op.has("inner dimension") and operand in (0, 1):
        tiles = t * rows * cols // max(down if operand == 0 else across, 1)
    else:
        tiles = t * rows * cols // max(down * across, 1)
    attributes = op.attributes
    tile_limit = dict(attributes.kernel_broadcast).get(operand) or (1 if operand in attributes.single_tile else 0)
    tiles_per_t = dict(attributes.kernel_broadcast_per_t).get(operand, 0)
    limit = tile_limit or tiles_per_t * t
    return max(min(tiles, limit) if limit else tiles, 1)


def _input_flow(netlist: Netlist, ops: Mapping[str, Op], op: Op, operand: int, name: str, static: bool) -> Flow:
    """Return the flow of data into an operand of an op from its source, the queue or op `name`. `static` tells whether
    the operand comes from a queue that is loaded once, before the first input."""
    arch = netlist.arch
    queue = netlist.queues.get(name)
    if queue is not None:
        producer = None
    else:
        producer = ops.get(name) or netlist.ops.get(name)
    producer_or_queue: Op | Queue | None = queue if queue is not None else producer
    assert producer_or_queue is not None, name
    if operand < len(op.in_df):
        df = op.in_df[operand]
    else:
        df = op.out_df
    size = bytes_of_tile(df, producer_or_queue.blocking.tile_dim, arch)
    shape = operand_shape(op, operand, producer_or_queue.blocking.shape)
    if operand == 0 and op.has("row-wise index"):
        shape = op.blocking.shape  # of the table the rows that are picked (OPS 6.9)
    core = _tiles_per_core(op, operand, shape) * size
    if queue is None:
        assert producer is not None
        crosses = producer.target_device != op.target_device
        return Flow(
            source=name,
            target=op.name,
            operand=operand,
            core_bytes=core,
            memory="none",
            memory_bytes={},
            hops=_grid_hops(producer, op),
            crosses=crosses,
            once=False,
            packet=size,
        )
    pre = producer_or_queue.blocking.shape  # a broadcast is made on the way, the memory is read once
    total = min(shape[0] * shape[1] * shape[2], pre[0] * pre[1] * pre[2]) * size
    crosses = _is_remote(queue, op)
    return Flow(
        source=name,
        target=op.name,
        operand=operand,
        core_bytes=core,
        memory=_memory_of(queue),
        memory_bytes=_spread_over_channels(queue, total),
        hops=0,
        crosses=crosses,
        once=static,
        chip=queue.target_device,
        packet=size,
    )


def _output_flow(arch: Arch, op: Op, queue: Queue) -> Flow:
    """Return the edge of an op's output into a queue."""
    size = bytes_of_tile(queue.df, queue.blocking.tile_dim, arch)
    total = queue.blocking.cells * queue.blocking.tiles_per_core * size
    core = total // max(op.blocking.cells, 1)
    crosses = _is_remote(queue, op)
    return Flow(
        source=op.name,
        target=queue.name,
        operand=-1,
        core_bytes=core,
        memory=_memory_of(queue),
        memory_bytes=_spread_over_channels(queue, total),
        hops=0,
        crosses=crosses,
        once=False,
        chip=queue.target_device,
        packet=size,
    )


def _is_remote(queue: Queue, op: Op) -> bool:
    """Return whether a queue lies in the DRAM of another chip than the op; False for one on the host."""
    return _memory_of(queue) == "dram" and queue.target_device != op.target_device


def _memory_of(queue: Queue) -> Memory:
    """Return the kind of memory in which a queue lies, "dram" or "host"."""
    if queue.loc.lower() == "host":
        return "host"
    return "dram"


def _spread_over_channels(queue: Queue, total: int) -> dict[int, int]:
    """Return the bytes of each channel if `total` bytes are distributed in proportion to the number of buffers that
    each holds."""
    count = max(len(queue.buffers), 1)
    spread: dict[int, int] = {}
    for buffer in queue.buffers:
        spread[buffer.channel] = spread.get(buffer.channel, 0) + total // count
    return spread


def _grid_hops(a: Op, b: Op) -> int:
    """Return the rows and columns between the first cores of two ops on one chip, added up; 0 if one is on Ethernet
    cores."""
    if len(a.grid_loc) != 2 or len(b.grid_loc) != 2:
        return 0
    return abs(a.grid_loc[0] - b.grid_loc[0]) + abs(a.grid_loc[1] - b.grid_loc[1])
