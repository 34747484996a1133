"""Rules on the room in memory: DRAM, host and L1 (NETLIST 2, V151-V156, V164; tables of 2.1 and 2.2; stages N and
R).

DRAM that the backend reserves for itself (V153) is not checked, as its size is not published.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from buda_emu.netlist.model import Allocate, Deallocate, Netlist, Op, Program, Queue
from buda_emu.netlist.rules.context import Context, item_mark
from buda_emu.netlist.rules.registry import (
    TWICE,
    Finding,
    Findings,
    netlist_check,
    op_check,
    program_check,
    queue_check,
    rule,
)
from buda_emu.netlist.sizes import buffer_bytes
from buda_emu.spec.archs import ETHERNET_L1_BYTES, HOST_CHANNEL_BYTES, HOST_RESERVED
from buda_emu.spec.formats import tile_bytes
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural
from buda_emu.support.records import dataclass

L1_RESERVED = (160 + 56) << 10
"""Firmware and the compiler's fixed part (NETLIST 2.2); the share of the streams depends on the op and is left out."""


@dataclass(frozen=True, slots=True)
class Range:
    """The bytes of one buffer of a queue, header included. `memory` is (place, device, channel)."""

    memory: tuple[str, int, int]
    start: int
    end: int
    queue: Queue
    index: int
    """The place of the buffer in the queue's list of allocations."""

    def order(self) -> tuple[tuple[str, int, int], int]:
        """Return the sort key of a range: its memory, then its first address."""
        return self.memory, self.start


_LiveRange = tuple[tuple[str, int, int], int, int, str, int]
"""An allocated range: memory, start, end, name of its queue, and place in the queue's list of allocations."""


@queue_check(
    rule(
        "V151",
        "N",
        "a DRAM channel that the chip does not have",
        "Grayskull and blackhole have 8 channels, wormhole 6.",
        "dram: [[6, 0x20000000]] on wormhole_b0",
        "dram: [[5, 0x20000000]] on wormhole_b0",
        "NETLIST 2, 2.1",
    )
)
def channel_exists(ctx: Context, queue: Queue) -> Findings:
    """Refuse a queue in a DRAM channel that the chip does not have."""
    count = ctx.arch.dram_channels
    if queue.loc != "dram":
        return
    for index, buffer in enumerate(queue.buffers):
        if not 0 <= buffer.channel < count:
            message = f"DRAM channel {buffer.channel}, {ctx.arch.name} has channels 0 to {count - 1}"
            yield Finding(item_mark(queue, "dram", index), message)
            return


@queue_check(
    rule(
        "V152",
        "R",
        "a queue buffer lies outside its DRAM channel",
        "Header and all entries of a buffer lie below the end of the channel: 1 GiB on grayskull, 2 GiB on "
        "wormhole, 4 GiB on blackhole.",
        "dram: [[0, 0x7fffffff]] on wormhole_b0",
        "dram: [[0, 0x20000000]] on wormhole_b0",
        "NETLIST 1.9, 2, 2.1",
    ),
    unless=("V151",),
)
def in_channel(ctx: Context, queue: Queue) -> Findings:
    """Refuse a queue in DRAM whose header and entries do not end below the end of the channel."""
    if queue.loc != "dram" or not queue.buffers:
        return
    addresses = [buffer.address for buffer in queue.buffers]
    end = max(addresses) + buffer_bytes(queue, ctx.netlist, ctx.ops)
    if end > ctx.arch.dram_channel_bytes:
        message = f"a buffer ends at {end:#x}, a DRAM channel of {ctx.arch.name} at {ctx.arch.dram_channel_bytes:#x}"
        yield Finding(item_mark(queue, "dram", addresses.index(max(addresses))), message)


@queue_check(
    rule(
        "V288",
        "W",
        "a DRAM address is not aligned",
        "Buffers begin at multiples of 32 bytes, on Blackhole of 64: the device moves nothing smaller. "
        "Blackhole's are refused (V005) if devices come before queues.",
        "dram: [[0, 0x10000010]]",
        "dram: [[0, 0x10000020]]",
        "NETLIST 1.9",
    ),
    unless=("V151",),
)
def dram_alignment(ctx: Context, queue: Queue) -> Findings:
    """Warn of DRAM addresses that do not have the alignment of the architecture (NETLIST 1.9). V005 is Blackhole's,
    when loading.
    """
    if queue.loc != "dram":
        return
    alignment = ctx.arch.alignment
    for index, buffer in enumerate(queue.buffers):
        if buffer.address % alignment:
            message = f"address {buffer.address:#x} is not a multiple of {alignment}"
            hint = f"the next one is {-(-buffer.address // alignment) * alignment:#x}"
            yield Finding(item_mark(queue, "dram", index), message, hint)
            return


@queue_check(
    rule(
        "V155",
        "R",
        "a queue cannot be allocated dynamically",
        "allocate_queue gives out DRAM, and not to an alias.",
        "allocate_queue of a queue with loc: host",
        "allocate_queue of a queue with loc: dram",
        "NETLIST 2, 3.6",
    )
)
def dynamic_place(ctx: Context, queue: Queue) -> Findings:
    """Refuse dynamic queues in host memory and dynamic aliases: only DRAM is allocated while a program runs, and not
    twice."""
    if queue.name not in ctx.dynamic:
        return
    if queue.loc == "host":
        yield Finding(queue.at("loc"), "is allocated by a program, but lies in host memory")
    if queue.alias:
        yield Finding(queue.at("alias"), "is allocated by a program, but is an alias")


@queue_check(
    rule(
        "V156",
        "R",
        "a host buffer lies outside host memory",
        "A host channel is 1 GiB; the last 128 MiB of channel 0 and 256 MiB of channel 3 belong to the backend. "
        "Grayskull has one channel, wormhole and blackhole four.",
        "host: [[0, 0x3ff00000]]",
        "host: [[0, 0x0]]",
        "NETLIST 2",
    )
)
def in_host_memory(ctx: Context, queue: Queue) -> Findings:
    """Refuse a queue in a host channel that does not exist, or whose buffer ends beyond what the backend leaves of
    it.
    """
    if queue.loc != "host":
        return
    size = buffer_bytes(queue, ctx.netlist, ctx.ops)
    for index, buffer in enumerate(queue.buffers):
        end = buffer.address + size
        limit = HOST_CHANNEL_BYTES - HOST_RESERVED.get(buffer.channel, 0)
        message = ""
        if not 0 <= buffer.channel < ctx.arch.host_channels:
            message = f"host channel {buffer.channel}, {ctx.arch.name} has channels 0 to {ctx.arch.host_channels - 1}"
        elif end > limit:
            message = f"a buffer ends at {end:#x}, host channel {buffer.channel} can be used up to {limit:#x}"
        if message:
            yield Finding(item_mark(queue, "host", index), message)
            return


@netlist_check(
    rule(
        "V154",
        "R",
        "two queue buffers overlap",
        "Buffers that exist at the same time are apart: static queues from all others, dynamic ones from those "
        "allocated with them. A buffer is a header of 32 bytes (64 on blackhole) and all entries. Aliases are "
        "meant to overlap.",
        "q0: {dram: [[0, 0x20000000]]}, q1: {dram: [[0, 0x20000020]]}",
        "q0: {dram: [[0, 0x20000000]]}, q1: {dram: [[0, 0x21000000]]}",
        "NETLIST 1.9, 2",
    )
)
def overlap_of_static(ctx: Context, _: Netlist) -> Findings:
    """Refuse static queues that overlap any other queue, except for aliases. Overlaps between two dynamic queues depend
    on the program: `overlap_of_dynamic` checks those."""
    furthest: Range | None = None
    furthest_static: Range | None = None
    for current in _sorted_ranges(ctx):
        static = current.queue.name not in ctx.dynamic
        for other in (furthest_static, furthest if static else None):
            if other is not None and _collide(current, other):
                yield Finding(
                    item_mark(current.queue, current.queue.loc, current.index), _overlap_message(current, other)
                )
                break
        furthest = _furthest(furthest, current)
        if static:
            furthest_static = _furthest(furthest_static, current)


def _sorted_ranges(ctx: Context) -> list[Range]:
    """Return the memory of all queues, sorted by place."""
    all_ranges: list[Range] = []
    for queue in ctx.queues.values():
        all_ranges += ranges(ctx, queue)
    return sorted(all_ranges, key=Range.order)


def _collide(later: Range, earlier: Range) -> bool:
    """Return whether the range `later` starts within `earlier`, which does not start after it, and they are not
    views of each other.
    """
    return later.start < earlier.end and earlier.memory == later.memory and not _are_views(later, earlier)


@program_check("V154")
def overlap_of_dynamic(ctx: Context, program: Program) -> Findings:
    """Refuse queues that overlap while both are allocated, in the order of the program's text."""
    live: list[_LiveRange] = []  # sorted by place
    for step in program.instructions:
        if isinstance(step, Allocate):
            for current in _ranges_of(ctx, step.queues):
                entry = _live_range(current)
                slot = bisect_left(live, entry)
                for other in live[max(0, slot - 1) : slot + 1]:
                    yield from _overlap_with(ctx, step, current, other)
                insort(live, entry)
        elif isinstance(step, Deallocate):
            for current in _ranges_of(ctx, step.queues):
                slot = bisect_left(live, _live_range(current))
                if slot < len(live) and live[slot][3] == current.queue.name:
                    del live[slot]


def _overlap_with(ctx: Context, step: Allocate, current: Range, live: _LiveRange) -> Findings:
    """Report an allocated range that overlaps a live one of another queue, unless they are views of each other.
    `step` is the instruction that allocates it.
    """
    memory, start, end, name, index = live
    if memory != current.memory or start >= current.end or current.start >= end or name == current.queue.name:
        return
    other = Range(memory=memory, start=start, end=end, queue=ctx.queues[name], index=index)
    if not _are_views(current, other):
        yield Finding(step.at("allocate_queue"), _overlap_message(current, other))


def _live_range(current: Range) -> _LiveRange:
    """Return an allocated range in the form in which live ranges are sorted."""
    return current.memory, current.start, current.end, current.queue.name, current.index


def _ranges_of(ctx: Context, names: Iterable[str]) -> Iterator[Range]:
    """Yield the memory of the queues with these names."""
    for name in names:
        yield from ranges(ctx, ctx.queues[name])


@op_check(
    rule(
        "V164",
        "N",
        "the buffers of an op do not fit L1",
        "A core holds two ublocks of every element-wise operand, two columns and rows of blocks of a matmul's "
        "operands, and buf_size_mb mblocks of the result. The estimate counts only these, against L1 less 216 KiB"
        " that are always taken. An Ethernet core has 98,240 bytes for what is copied to it, of which there are never "
        "more mblocks than two for each that an epoch copies.",
        "{mblock: [8, 8], ublock: [2, 4], buf_size_mb: 2} in Float32 on wormhole_b0",
        "{mblock: [4, 4], ublock: [2, 4], buf_size_mb: 2} in Float32 on wormhole_b0",
        "NETLIST 2, 2.2",
    )
)
def buffers_in_l1(ctx: Context, op: Op) -> Findings:
    """Refuse an op whose operand and result buffers need more L1 on a core than there is, counted at their least
    (NETLIST 2.2), and a copy between chips whose result needs more than an Ethernet core has."""
    if op.has("Ethernet"):
        yield from _copy_in_l1(ctx, op)
        return
    free = ctx.arch.l1_bytes - L1_RESERVED
    if (need := l1_bytes(op, ctx.arch.alignment)) > free:
        message = f"its buffers need at least {need >> 10} KiB of L1 in each core, at most {free >> 10} KiB are free"
        yield Finding(op.at("buf_size_mb"), message, "use a larger grid_size, a smaller ublock or buf_size_mb")


def _copy_in_l1(ctx: Context, op: Op) -> Findings:
    """Refuse a copy between chips whose result does not fit an Ethernet core. The router makes no buffer larger than
    twice what the copy hands on in an epoch."""
    mblocks = ctx.netlist.graphs[op.graph].input_count * op.blocking.t
    held = 1
    if op.buf_size_mb > 1:
        held = 2 * min(op.buf_size_mb // 2, mblocks)
    tiles = held * op.blocking.block_rows * op.blocking.block_cols
    need = tiles * tile_bytes(op.out_df, *op.blocking.tile_dim, ctx.arch.alignment, header=True)
    if need > ETHERNET_L1_BYTES:
        message = f"its result needs at least {need} bytes of L1 on an Ethernet core, which has {ETHERNET_L1_BYTES}"
        yield Finding(op.at("buf_size_mb"), message, "use a larger grid_size, a smaller mblock or buf_size_mb")


def ranges(ctx: Context, queue: Queue) -> Iterator[Range]:
    """Yield the memory of each buffer of a queue. A host queue that an op feeds counts as memory of the op's device
    (NETLIST V154).
    """
    size = buffer_bytes(queue, ctx.netlist, ctx.ops)
    by_producer = queue.loc == "host" and not queue.host_fed
    if by_producer:
        device = ctx.ops[queue.input].target_device
    else:
        device = queue.target_device
    for index, buffer in enumerate(queue.buffers):
        memory = (queue.loc, device, buffer.channel)
        yield Range(memory=memory, start=buffer.address, end=buffer.address + size, queue=queue, index=index)


def l1_bytes(op: Op, alignment: int) -> int:
    """Return the bytes of L1 that the buffers of one core take as far as NETLIST 2.2 gives them: inputs of
    element-wise ops and matmul, and the result. `alignment` is that of tiles.
    """
    blocking = op.blocking
    attributes = op.attributes
    declared = OP_TYPES[op.type]
    ublock = blocking.ublock[0] * blocking.ublock[1]
    input_tiles: tuple[int, ...] = ()
    if declared.has("tile by tile") and not declared.has("Ethernet"):
        input_tiles = (2 * ublock,) * len(op.inputs)
    elif op.has("rows by columns") and not attributes.identity:
        rows, columns = (1, 1) if attributes.min_buffer_input >= 0 else blocking.mblock
        input_tiles = (
            2 * rows * blocking.ublock[0] * attributes.u_kt,
            2 * columns * blocking.ublock[1] * attributes.u_kt,
        )
    total = 0
    for tiles, df, dims in zip(input_tiles, op.in_df, op.input_tile_dims, strict=False):
        total += tiles * tile_bytes(df, *dims, alignment, header=True)
    if op.untilize_output:
        mblock = blocking.mblock[1]
    else:
        mblock = blocking.mblock[0] * blocking.mblock[1]
    return total + op.buf_size_mb * mblock * ublock * tile_bytes(op.out_df, *blocking.tile_dim, alignment, header=True)


def _furthest(furthest: Range | None, candidate: Range) -> Range:
    """Return the range that ends later, for a sweep over ranges sorted by memory and start: a candidate in a new memory
    replaces the range of the memory before."""
    if furthest is None or furthest.memory != candidate.memory or candidate.end > furthest.end:
        return candidate
    return furthest


def _are_views(left: Range, right: Range) -> bool:
    """Return whether two ranges may overlap: those of aliases, and of rams that the reference takes for views of
    each other because their buffers are the same (NETLIST 1.10).
    """
    first = left.queue
    second = right.queue
    if first.alias == second.name or second.alias == first.name or (first.alias and first.alias == second.alias):
        return True
    same = first is not second and first.buffers == second.buffers and left.end == right.end
    return same and first.is_ram and second.is_ram


def _overlap_message(current: Range, other: Range) -> str:
    """Return the message about two ranges that overlap, where the one of `other` began first."""
    place = f"{current.memory[0]} channel {current.memory[2]} of device {current.memory[1]}"
    return (
        f"queue {current.queue.name} at {current.start:#x} "
        f"overlaps queue {other.queue.name}, which ends at {other.end:#x}, "
        f"in {place}"
    )


@queue_check(
    rule(
        "V104",
        "P",
        "an alias names itself",
        "`alias` gives the memory of another ram a second shape.",
        "cache: {alias: cache}",
        "cache_view: {alias: cache}",
        "NETLIST 1.10",
    )
)
def not_itself(_: Context, queue: Queue) -> Findings:
    """Refuse an alias of the ram itself."""
    if queue.alias and queue.alias == queue.name:
        yield Finding(queue.at("alias"), "is an alias of itself")


@queue_check(
    rule(
        "V105",
        "P",
        "an alias names no queue",
        "The target of an alias must be declared.",
        "alias: cahce",
        "alias: cache",
        "NETLIST 1.10",
    ),
    unless=TWICE,
)
def target_exists(ctx: Context, queue: Queue) -> Findings:
    """Refuse an alias of something that is no queue."""
    if queue.alias and queue.alias not in ctx.queues:
        yield Finding(
            queue.at("alias"), f"alias '{queue.alias}' is not a queue", partial(near, queue.alias, ctx.queues)
        )


@queue_check(
    rule(
        "V106",
        "P",
        "an alias of an alias",
        "All views of one memory name the same base.",
        "b: {alias: a}, c: {alias: b}",
        "b: {alias: a}, c: {alias: a}",
        "NETLIST 1.10",
    ),
    unless=("V104",),
)
def alias_chain(ctx: Context, queue: Queue) -> Findings:
    """Refuse an alias of a ram that is an alias itself."""
    target = _alias_target(ctx, queue)
    if target is not None and target.alias:
        yield Finding(queue.at("alias"), f"alias {target.name} is itself an alias of {target.alias}")


@queue_check(
    rule(
        "V107",
        "P",
        "an alias of something that is not a ram",
        "The pointers of a queue make sense for one shape only, so both sides must be rams.",
        "{type: queue, alias: cache}",
        "{type: ram, alias: cache}",
        "NETLIST 1.10",
    ),
    unless=("V104", "V106"),
)
def between_rams(ctx: Context, queue: Queue) -> Findings:
    """Refuse an alias of which one side is no ram."""
    target = _alias_target(ctx, queue)
    for side in (queue, target):
        if target is not None and side is not None and not side.is_ram:
            yield Finding(queue.at("alias"), f"alias between {queue.name} and {target.name}: {side.name} is not a ram")
            return


@queue_check(
    rule(
        "V108",
        "P",
        "an alias has other allocations than its target",
        "Both sides are the same memory: the same channels and addresses in the same order.",
        "a: {dram: [[0, 0x1000]]}, b: {alias: a, dram: [[1, 0x1000]]}",
        "a: {dram: [[0, 0x1000]]}, b: {alias: a, dram: [[0, 0x1000]]}",
        "NETLIST 1.10",
    ),
    unless=("V104", "V106", "V107"),
)
def same_memory(ctx: Context, queue: Queue) -> Findings:
    """Refuse an alias whose buffers differ from its target's in channel or address, in order (NETLIST 2)."""
    target = _alias_target(ctx, queue)
    if target is not None and target.buffers != queue.buffers:
        message = f"has other allocations than {target.name}, whose alias it is"
        yield Finding(queue.at(queue.loc), message, "copy the list of the target")


@queue_check(
    rule(
        "V109",
        "P",
        "a view has a size that does not fit its base",
        "With `alias` both sides hold the same number of elements over all entries. With or without it, static "
        "rams on identical buffers are views of the one with most entries, and their entries divide its entries.",
        "a: {entries: 6, t: 1}, b: {alias: a, entries: 4, t: 2}",
        "a: {entries: 8, t: 1}, b: {alias: a, entries: 4, t: 2}",
        "NETLIST 1.10, 11.1 A12",
    ),
    unless=("V104", "V106", "V107", "V108"),
)
def same_size(ctx: Context, queue: Queue) -> Findings:
    """Refuse an alias that holds another number of elements than its target; bytes are not compared (NETLIST 11.1
    A12)."""
    target = _alias_target(ctx, queue)
    if target is not None and (elements := _element_count(queue)) != (target_elements := _element_count(target)):
        message = f"holds {plural(elements, 'element')}, {target.name}, whose alias it is, {target_elements}"
        yield Finding(queue.at("alias"), message, "elements = entries * t * rows * columns of the tensor")


@netlist_check("V109")
def views_divide(ctx: Context, netlist: Netlist) -> Findings:
    """Refuse static rams on identical buffers whose entries do not divide those of the one with most entries: they
    are views of it, alias or not (NETLIST 1.10, 11.1 A12)."""
    places: dict[tuple[object, ...], list[Queue]] = {}
    for queue in netlist.queues.values():
        if queue.is_ram and queue.buffers and queue.name not in ctx.dynamic and queue.name not in ctx.broken:
            places.setdefault((queue.loc, queue.target_device, queue.buffers), []).append(queue)
    for rams in places.values():
        if len(rams) > 1:
            for views in _rams_of_equal_size(ctx, rams):
                yield from _indivisible_views(views)


def _rams_of_equal_size(ctx: Context, rams: Sequence[Queue]) -> Iterable[list[Queue]]:
    """Return the rams in groups whose buffers have equally many bytes."""
    groups: dict[int, list[Queue]] = {}
    for ram in rams:
        groups.setdefault(_buffer_bytes(ctx, ram), []).append(ram)
    return groups.values()


def _indivisible_views(views: list[Queue]) -> Findings:
    """Refuse rams on the same buffers whose entries do not divide those of the one with most entries."""
    base = max(views, key=lambda queue: queue.entries)
    for view in views:
        if base.entries % view.entries:
            yield Finding(
                view.at("entries"),
                f"ram {view.name} has {plural(view.entries, 'entry')} on the memory of {base.name}, whose "
                f"{base.entries} do not divide by that",
            )


def _alias_target(ctx: Context, queue: Queue) -> Queue | None:
    """Return the intact queue whose memory an alias shares; None for other queues."""
    if queue.alias and queue.alias not in ctx.broken:
        return ctx.queues.get(queue.alias)
    return None


def _element_count(queue: Queue) -> int:
    """Return the number of elements in all entries of a queue."""
    height, width = queue.blocking.tile_dim
    return queue.entries * queue.blocking.t * queue.blocking.rows * queue.blocking.cols * height * width


def _buffer_bytes(ctx: Context, queue: Queue) -> int:
    """Return the bytes of one buffer as the reference model allocates it: no queue header, tile headers if HOST-fed
    (NETLIST 1.9)."""
    producer = ctx.ops.get(queue.input)
    header = producer is None or not producer.untilize_output
    tile = tile_bytes(queue.df, *queue.blocking.tile_dim, ctx.arch.alignment, header)
    return queue.entries * queue.blocking.tiles_per_core * tile
