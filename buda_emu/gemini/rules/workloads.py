"""Workloads: what they cover, of what pieces and tiles they are, how long they take: G037 to G039, G060, G070."""

from collections.abc import Iterator

from buda_emu.checker import Finding
from buda_emu.gemini.book import BOOK
from buda_emu.gemini.boxes import hull, overlaps, tile
from buda_emu.gemini.frontend import Network
from buda_emu.gemini.index import Index, own_entries
from buda_emu.gemini.model import Workload


@BOOK.rule(
    "G037", "error", "the tiles do not partition their workload, or there are none",
    source="GEMINI 2.2", fix="let every element be in the ofmap box of one tile", unless=("G039",),
)  # fmt: skip
def tiles(index: Index, _: Network | None) -> Iterator[Finding]:
    """Ofmap boxes of the tiles (A)."""
    for work in index.ir.workloads() if index.ir.form.tiled else ():
        if not tile([item.ofmap for item in work.tiles], work.box):
            said = f"the tiles of {work}, {len(work.tiles)} in all, do not fill {work.box}, each element once"
            yield Finding(f"{work.place}/tile_info", said, about=work.layer_name)


@BOOK.rule(
    "G038", "error", "a workload has no ofmap, or one that does not lie in it",
    why="Pieces of dialect A are relative to the workload's own output, those of dialect B absolute.",
    source="GEMINI 2.2, 3", unless=("G037", "G039"),
)  # fmt: skip
def pieces(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each piece."""
    for work in index.ir.workloads():
        if not work.ofmap:
            yield Finding(f"{work.place}/ofmap", f"{work} has no ofmap")
        whole = work.box if index.ir.form.absolute else work.box.within(work.box)
        for piece in work.ofmap:
            if not piece.box.inside(whole):
                said = f"{work} makes {whole}, transfer {piece.transfer_id} is {piece.box}"
                yield Finding(f"{piece.place}/upper", said, about=work.layer_name)


@BOOK.rule(
    "G039", "error", "workloads of a layer overlap, leave a hole, or do not begin at 0",
    source="GEMINI 2.2", fix="let the workloads of a layer fill a box from [0, 0, 0, 0] on, each element once",
)  # fmt: skip
def layers(index: Index, network: Network | None) -> Iterator[Finding]:
    """Each layer over all cores. Where a workload's layer is unknown to the network (G080), another lacks it."""
    by_layer: dict[str, list[Workload]] = {}
    for work in index.ir.workloads():
        by_layer.setdefault(work.layer_name, []).append(work)
    lacking = network is not None and any(name not in network.layers for name in by_layer)
    for name, works in by_layer.items():
        boxes = [work.box for work in works]
        whole = hull(boxes)
        both = next(overlaps(boxes), None)
        if both is not None:
            first, second = works[both[0]], works[both[1]]
            said = f"{second} computes elements that {first} computes, too"
            yield Finding(f"{second.place}/workload", said, about=name)
        elif lacking:
            continue
        elif sum(box.volume for box in boxes) != whole.volume:
            said = f"the workloads of {name!r} leave elements of {whole} out"
            yield Finding(f"{works[0].place}/workload", said, about=name)
        elif any(whole.lower):
            said = f"the workloads of {name!r} begin at {list(whole.lower)}"
            yield Finding(f"{works[0].place}/workload", said, about=name)


@BOOK.rule("G060", "error", "a workload takes negative time", source="GEMINI 4")
def time(index: Index, _: Network | None) -> Iterator[Finding]:
    """Each workload."""
    for work in index.ir.workloads():
        if work.time < 0:
            yield Finding(f"{work.place}/time", f"{work} takes {work.time} cycles")


@BOOK.rule(
    "G070", "note", "the sources hold fewer elements than the operand, or more, or a weight has no transfer_id",
    why="The output of the schedulers' public code for concatenations and for activations as weights is not "
    "always complete. "
    "Element-wise workloads may read the same channels from several producers.",
    source="GEMINI 3",
)  # fmt: skip
def incomplete(index: Index, _: Network | None) -> Iterator[Finding]:
    """Operands, then weights (B)."""
    for work in index.ir.workloads() if index.ir.form.joint_operands else ():
        for item in work.ifmap:
            held = sum(source.box.volume for entry in own_entries(work) for source in entry.source)
            wanted = item.box.volume
            if own_entries(work) and (held < wanted or (held > wanted and work.layer_type != "element_wise")):
                yield Finding(item.place, f"{work} reads {wanted} elements, its sources hold {held}")
        if work.weight is not None and not work.weight.transfer_id:
            yield Finding(work.weight.place, f"the weight of {work} has no transfer_id")
