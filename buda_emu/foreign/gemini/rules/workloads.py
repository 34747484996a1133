"""Rules of cores, of workloads, and of a schedule against the network that it computes (G004, G005, G080 to G082)."""

from collections.abc import Iterator

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.boxes import hull, overlaps, tile
from buda_emu.foreign.gemini.frontend import WINDOWS, Layer, Network
from buda_emu.foreign.gemini.index import Index, own_entries, read_tensor
from buda_emu.foreign.gemini.model import Tile, Workload
from buda_emu.support.checker import Finding
from buda_emu.support.checker.suggest import near


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
            first = works[both[0]]
            second = works[both[1]]
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


@BOOK.rule(
    "G004", "error", "a core is not on the mesh or not in the file, or a DRAM destination has another core id "
    "than DRAM's",
    why="Core n of dialect A stands at x = n mod xlen, y = n div xlen; core keys of dialect B are y*(xlen+2) + x + 1, "
    "with a column of DRAM at each side. DRAM is core -1 in dialect A and 0 in dialect B.",
    source="GEMINI 2, 3", fix="name a core that the file has",
)  # fmt: skip
def cores(index: Index, _: Network | None) -> Iterator[Finding]:
    """Core keys and destinations."""
    ir = index.ir
    mesh = f"the mesh of {ir.xlen} x {ir.ylen}"
    for core in ir.cores:
        if not ir.on_mesh(core):
            yield Finding(str(core), f"core {core} is not on {mesh}")
    dram = ir.form.dram
    key = ir.form.core_key
    for number, _maker, to in index.destinations():
        if to.type == "DRAM" and to.core_id != dram:
            yield Finding(f"{to.place}/{key}", f"transfer {number} goes to DRAM as core {to.core_id}, which is {dram}")
        elif to.type == "core" and to.core_id not in ir.cores:
            where = "is not in the file" if ir.on_mesh(to.core_id) else f"is not on {mesh}"
            yield Finding(f"{to.place}/{key}", f"transfer {number} goes to core {to.core_id}, which {where}")


@BOOK.rule(
    "G005", "error", "workload ids of a core do not ascend, or an id is on two cores",
    why="Workloads are named by core and id; in dialect B by the id alone, which is also their order over all cores.",
    source="GEMINI 2.2, 3", fix="number the workloads in the order in which they run",
)  # fmt: skip
def ascending(index: Index, _: Network | None) -> Iterator[Finding]:
    """Along each core, and over all cores (B)."""
    seen: dict[int, int] = {}
    for core, works in index.ir.cores.items():
        before: int | None = None
        for work in works:
            if before is not None and work.workload_id <= before:
                yield Finding(f"{work.place}/workload_id", f"workload {work.workload_id} comes after {before}")
            elif index.ir.form.global_ids and seen.get(work.workload_id, core) != core:
                other = seen[work.workload_id]
                yield Finding(f"{work.place}/workload_id", f"core {other} has a workload {work.workload_id}, too")
            before = work.workload_id
            seen.setdefault(before, core)


@BOOK.rule(
    "G090", "note", "the schedule has no addresses, so rules of L2 are not checked",
    why="Dialect B says neither where tensors lie nor how long they live. What rules G040 to G054 would find is not "
    "checkable there; `buda-emu gemini alloc` makes a schedule with addresses.",
    source="GEMINI 3",
)  # fmt: skip
def no_addresses(index: Index, _: Network | None) -> Iterator[Finding]:
    """Said once."""
    if not index.ir.form.addressed:
        yield Finding("", "not checkable: no addresses (G040 to G054)")


_KNOWN = (*WINDOWS, "dense", "quantize", "element_wise_add")


@BOOK.rule(
    "G080", "error", "a layer is unknown to the network, never computed, or not computed whole",
    source="GEMINI 4", fix="compare with the front-end IR",
)  # fmt: skip
def covered(index: Index, network: Network | None) -> Iterator[Finding]:
    """Each workload's layer, then each layer of the network. Layers of the host are not in a schedule."""
    if network is None:
        return
    works: dict[str, list[Workload]] = {}
    for work in index.ir.workloads():
        works.setdefault(work.layer_name, []).append(work)
        if work.layer_name not in network.layers:
            hint = near(work.layer_name, network.layers)
            said = f"{work}: the network has no such layer"
            yield Finding(f"{work.place}/layer_name", said, hint, about=work.layer_name)
    lost = any(name not in network.layers for name in works)
    for name, layer in network.layers.items():
        if name in works:
            whole = hull(work.box for work in works[name])
            if whole.upper != layer.box.upper:
                said = f"the workloads of {name!r} compute {whole}, the layer has {list(layer.output_shape)}"
                yield Finding(f"{works[name][0].place}/workload", said, about=name)
        elif not layer.on_host and not lost:
            yield Finding("", f"layer {name!r} is never computed", about=name)


def _wrong_tile(layer: Layer, tile: Tile) -> tuple[str, str] | None:
    """Key and reason why a tile does not read what it needs."""
    box, around = layer.needs(tile.ofmap)
    if tile.ifmap != box:
        return "ifmap_upper", f"reads {tile.ifmap} for {tile.ofmap}, which needs {box}"
    if tile.padding != around:
        return "tile_padding_tblr", f"has padding {list(tile.padding)}, {tile.ofmap} needs {list(around)}"
    if tile.ifmap2 is not None and len(layer.input_shapes) > 1 and tile.ifmap2 != box:
        return "ifmap_upper2", f"reads {tile.ifmap2} of the second operand, not {box}"
    return None


@BOOK.rule(
    "G081", "error", "a tile's ifmap range or padding is not what its ofmap range needs",
    why="Kernel, stride and padding of the layer say which rows and columns a box of its output needs; the "
    "range is clipped "
    "to the input, and what was clipped is the tile's padding.",
    source="GEMINI 4", unless=("G080",),
)  # fmt: skip
def tile_ranges(index: Index, network: Network | None) -> Iterator[Finding]:
    """Each tile of operations whose window is known (A)."""
    for work in index.ir.workloads() if network is not None else ():
        layer = network.layers.get(work.layer_name) if network is not None else None
        if layer is None or layer.operation not in _KNOWN:
            continue
        for work_tile in work.tiles:
            wrong = _wrong_tile(layer, work_tile) if work_tile.ofmap.inside(layer.box) else None
            if wrong:
                yield Finding(f"{work_tile.place}/{wrong[0]}", f"a tile of {work} {wrong[1]}", about=work.layer_name)


@BOOK.rule(
    "G082", "error", "the layers that a workload reads are not those before it in the network",
    source="GEMINI 4", unless=("G080",),
)  # fmt: skip
def predecessors(index: Index, network: Network | None) -> Iterator[Finding]:
    """Each workload whose operands are found; constants do not count."""
    for work in index.ir.workloads() if network is not None else ():
        layer = network.layers.get(work.layer_name) if network is not None else None
        if network is None or layer is None or index.lost(work):
            continue
        read = _layers_read(index, work)
        wanted = sorted(network.operands(layer))
        if index.ir.form.joint_operands and read is not None:
            read = sorted(set(read))
            wanted = sorted(set(wanted))
        if read is not None and read != wanted:
            said = f"{work} reads {', '.join(read) or 'no layer'}; the network says {', '.join(wanted)}"
            yield Finding(f"{work.place}/ifmap", said, about=work.layer_name)


def _layers_read(index: Index, work: Workload) -> list[str] | None:
    """One layer for each operand; None where an operand has no tensor (G044)."""
    if index.ir.form.joint_operands:
        return [source.layer_name or "" for entry in own_entries(work) for source in entry.source]
    found: list[str] = []
    for item in work.ifmap:
        tensor = read_tensor(work, item)
        if tensor is None:
            return None
        ids = set(item.transfer_id)
        found += sorted({source.layer_name or "" for source in tensor.source if source.transfer_id in ids})
    return sorted(found)
