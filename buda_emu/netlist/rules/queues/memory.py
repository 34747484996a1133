"""Is there room in memory: DRAM, host and L1 (NETLIST 2, V151-V156, V164; tables of 2.1 and 2.2; stages N and R).

Not judged, for want of published numbers: DRAM that the backend keeps for itself (V153).
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from functools import partial

from buda_emu.netlist.model import Allocate, Deallocate, Netlist, Op, Program, Queue
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.registry import (
    TWICE,
    Finding,
    Findings,
    netlist_check,
    op_check,
    program_check,
    queue_check,
)
from buda_emu.netlist.rules.rule import rule
from buda_emu.netlist.sizes import buffer_bytes
from buda_emu.spec.archs import GIB
from buda_emu.spec.formats import tile_bytes
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural
from buda_emu.support.records import dataclass

HOST_CHANNEL_BYTES = GIB
HOST_RESERVED = {0: 128 << 20, 3: 256 << 20}
"""Bytes at the end of a host channel that the backend keeps for itself (NETLIST V156)."""
L1_RESERVED = (160 + 56) << 10
"""Firmware and the compiler's fixed part (NETLIST 2.2); the share of the streams depends on the op and is left out."""


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
    count = ctx.arch.dram_channels
    wrong = [one.channel for one in queue.buffers if not 0 <= one.channel < count] if queue.loc == "dram" else []
    if wrong:
        yield Finding(queue.at("dram"), f"DRAM channel {wrong[0]}, {ctx.arch.name} has channels 0 to {count - 1}")


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
    """Header and all entries lie below the end of the channel."""
    if queue.loc != "dram" or not queue.buffers:
        return
    end = max(one.address for one in queue.buffers) + buffer_bytes(queue, ctx.netlist, ctx.ops)
    if end > ctx.arch.dram_channel_bytes:
        what = f"a buffer ends at {end:#x}, a DRAM channel of {ctx.arch.name} at {ctx.arch.dram_channel_bytes:#x}"
        yield Finding(queue.at("dram"), what)


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
def aligned(ctx: Context, queue: Queue) -> Findings:
    """NETLIST 1.9: the alignment of the architecture. V005 is Blackhole's, at load."""
    wrong = [one.address for one in queue.buffers if one.address % ctx.arch.alignment] if queue.loc == "dram" else []
    if wrong:
        what = f"address {wrong[0]:#x} is not a multiple of {ctx.arch.alignment}"
        yield Finding(
            queue.at("dram"), what, f"the next one is {-(-wrong[0] // ctx.arch.alignment) * ctx.arch.alignment:#x}"
        )


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
    """Only DRAM is given out while a program runs, and not twice."""
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
    if queue.loc != "host":
        return
    size = buffer_bytes(queue, ctx.netlist, ctx.ops)
    for one in queue.buffers:
        end = one.address + size
        limit = HOST_CHANNEL_BYTES - HOST_RESERVED.get(one.channel, 0)
        what = ""
        if not 0 <= one.channel < ctx.arch.host_channels:
            what = f"host channel {one.channel}, {ctx.arch.name} has channels 0 to {ctx.arch.host_channels - 1}"
        elif end > limit:
            what = f"a buffer ends at {end:#x}, host channel {one.channel} can be used up to {limit:#x}"
        if what:
            yield Finding(queue.at("host"), what)
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
    """Static queues overlap nothing; aliases are meant to. Dynamic ones among each other: see below."""
    furthest: Range | None = None
    furthest_static: Range | None = None
    for one in sorted((one for queue in ctx.queues.values() for one in ranges(ctx, queue)), key=Range.order):
        static = one.queue.name not in ctx.dynamic
        for other in (furthest_static, furthest if static else None):
            if other is not None and one.start < other.end and other.memory == one.memory and not _views(one, other):
                yield Finding(one.queue.at(one.queue.loc), _overlap(one, other))
                break
        furthest = _further(furthest, one)
        furthest_static = _further(furthest_static, one) if static else furthest_static


@program_check("V154")
def overlap_of_dynamic(ctx: Context, program: Program) -> Findings:
    """Queues allocated at the same time, in the order of the text."""
    live: list[tuple[tuple[str, int, int], int, int, str]] = []
    for step in program.instructions:
        if isinstance(step, Allocate):
            for one in (one for name in step.queues for one in ranges(ctx, ctx.queues[name])):
                item = (one.memory, one.start, one.end, one.queue.name)
                slot = bisect_left(live, item)
                for memory, start, end, name in live[max(0, slot - 1) : slot + 1]:
                    if memory == one.memory and start < one.end and one.start < end and name != one.queue.name:
                        other = Range(memory, start, end, ctx.queues[name])
                        if not _views(one, other):
                            yield Finding(step.at("allocate_queue"), _overlap(one, other))
                insort(live, item)
        elif isinstance(step, Deallocate):
            for one in (one for name in step.queues for one in ranges(ctx, ctx.queues[name])):
                slot = bisect_left(live, (one.memory, one.start, one.end, one.queue.name))
                if slot < len(live) and live[slot][3] == one.queue.name:
                    del live[slot]


@op_check(
    rule(
        "V164",
        "N",
        "the buffers of an op do not fit L1",
        "A core holds two ublocks of every element-wise operand, two columns and rows of blocks of a matmul's "
        "operands, and buf_size_mb mblocks of the result. The estimate counts only these, against L1 less 216 KiB"
        " that are always taken.",
        "{mblock: [8, 8], ublock: [2, 4], buf_size_mb: 2} in Float32 on wormhole_b0",
        "{mblock: [4, 4], ublock: [2, 4], buf_size_mb: 2} in Float32 on wormhole_b0",
        "NETLIST 2, 2.2",
    )
)
def buffers_in_l1(ctx: Context, op: Op) -> Findings:
    """The least that the operand and result buffers of one core take (NETLIST 2.2)."""
    free = ctx.arch.l1_bytes - L1_RESERVED
    if (need := l1_bytes(op, ctx.arch.alignment)) > free:
        what = f"its buffers need at least {need >> 10} KiB of L1 in each core, at most {free >> 10} KiB are free"
        yield Finding(op.at("buf_size_mb"), what, "use a larger grid_size, a smaller ublock or buf_size_mb")


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes of one buffer, header included. memory = (place, device, channel)."""

    memory: tuple[str, int, int]
    start: int
    end: int
    queue: Queue

    def order(self) -> tuple[tuple[str, int, int], int]:
        """Key to sort by place."""
        return self.memory, self.start


def ranges(ctx: Context, queue: Queue) -> Iterator[Range]:
    """The memory of a queue. Host buffers are compared by the device of the producer (NETLIST V154)."""
    size = buffer_bytes(queue, ctx.netlist, ctx.ops)
    by_producer = queue.loc == "host" and not queue.host_fed
    device = ctx.ops[queue.input].target_device if by_producer else queue.target_device
    for one in queue.buffers:
        yield Range((queue.loc, device, one.channel), one.address, one.address + size, queue)


def l1_bytes(op: Op, alignment: int) -> int:
    """Bytes of the buffers of one core that NETLIST 2.2 gives: inputs of element-wise ops and matmul, the result."""
    blocking = op.blocking
    own = op.attributes
    declared = OP_TYPES[op.type]
    ublock = blocking.ublock[0] * blocking.ublock[1]
    known: tuple[int, ...] = ()
    if declared.has("tile by tile") and not declared.has("Ethernet"):
        known = (2 * ublock,) * len(op.inputs)
    elif op.has("rows by columns") and not own.identity:
        rows, columns = (1, 1) if own.min_buffer_input >= 0 else blocking.mblock
        known = (2 * rows * blocking.ublock[0] * own.u_kt, 2 * columns * blocking.ublock[1] * own.u_kt)
    total = 0
    for tiles, df, dims in zip(known, op.in_df, op.input_tile_dims, strict=False):
        total += tiles * tile_bytes(df, *dims, alignment, header=True)
    mblock = blocking.mblock[1] if op.untilize_output else blocking.mblock[0] * blocking.mblock[1]
    return total + op.buf_size_mb * mblock * ublock * tile_bytes(op.out_df, *blocking.tile_dim, alignment, header=True)


def _further(known: Range | None, one: Range) -> Range:
    return one if known is None or known.memory != one.memory or one.end > known.end else known


def _views(one: Range, other: Range) -> bool:
    """Aliases, and rams that the reference takes for views of each other (NETLIST 1.10)."""
    first = one.queue
    second = other.queue
    if first.alias == second.name or second.alias == first.name or (first.alias and first.alias == second.alias):
        return True
    same = first is not second and first.buffers == second.buffers and one.end == other.end
    return same and first.is_ram and second.is_ram


def _overlap(one: Range, other: Range) -> str:
    where = f"{one.memory[0]} channel {one.memory[2]} of device {one.memory[1]}"
    return (
        f"queue {one.queue.name} at {one.start:#x} overlaps queue {other.queue.name}, which ends at {other.end:#x}, "
        f"in {where}"
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
def not_chained(ctx: Context, queue: Queue) -> Findings:
    target = _target(ctx, queue)
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
    target = _target(ctx, queue)
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
    """NETLIST 2: channel and address of every buffer, in order."""
    target = _target(ctx, queue)
    if target is not None and target.buffers != queue.buffers:
        what = f"has other allocations than {target.name}, whose alias it is"
        yield Finding(queue.at(queue.loc), what, "copy the list of the target")


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
    """NETLIST 11.1 A12: elements are counted, not bytes."""
    target = _target(ctx, queue)
    if target is not None and (own := _elements(queue)) != (other := _elements(target)):
        what = f"holds {plural(own, 'element')}, {target.name}, whose alias it is, {other}"
        yield Finding(queue.at("alias"), what, "elements = entries * t * rows * columns of the tensor")


@netlist_check("V109")
def views_divide(ctx: Context, netlist: Netlist) -> Findings:
    """NETLIST 1.10, 11.1 A12: static rams on identical buffers are views of the one with most entries, alias or not."""
    places: dict[tuple[object, ...], list[Queue]] = {}
    for queue in netlist.queues.values():
        if queue.is_ram and queue.buffers and queue.name not in ctx.dynamic and queue.name not in ctx.broken:
            places.setdefault((queue.loc, queue.target_device, queue.buffers), []).append(queue)
    for group in places.values():
        sizes = [_buffer_bytes(ctx, queue) for queue in group] if len(group) > 1 else []
        for size in {*sizes}:
            yield from _undivided([queue for queue, own in zip(group, sizes, strict=True) if own == size])


def _undivided(views: list[Queue]) -> Findings:
    base = max(views, key=lambda queue: queue.entries)
    for view in views:
        if base.entries % view.entries:
            yield Finding(
                view.at("entries"),
                f"ram {view.name} has {plural(view.entries, 'entry')} on the memory of {base.name}, whose "
                f"{base.entries} do not divide by that",
            )


def _target(ctx: Context, queue: Queue) -> Queue | None:
    return ctx.queues.get(queue.alias) if queue.alias and queue.alias not in ctx.broken else None


def _elements(queue: Queue) -> int:
    height, width = queue.blocking.tile_dim
    return queue.entries * queue.blocking.t * queue.blocking.rows * queue.blocking.cols * height * width


def _buffer_bytes(ctx: Context, queue: Queue) -> int:
    """Bytes of one buffer as the reference model allocates it: no queue header, tile headers if HOST-fed (1.9)."""
    producer = ctx.ops.get(queue.input)
    header = producer is None or not producer.untilize_output
    tile = tile_bytes(queue.df, *queue.blocking.tile_dim, ctx.arch.alignment, header)
    return queue.entries * queue.blocking.tiles_per_core * tile
