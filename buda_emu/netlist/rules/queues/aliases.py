"""Two rams on the same memory (NETLIST 1.10, V104-V109; 11.1 A12)."""

from functools import partial

from buda_emu.checker.suggest import near
from buda_emu.checker.text import plural
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.registry import TWICE, Finding, Findings, netlist_check, queue_check
from buda_emu.netlist.rules.rule import rule
from buda_emu.spec.formats import tile_bytes


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
