"""Rules on cores, on workloads, and on a schedule against its network (G004, G005, G080 to G082 among them)."""

from collections.abc import Iterator, Sequence

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.boxes import fills, hull, overlapping_pairs
from buda_emu.foreign.gemini.frontend import WINDOWS, Layer, Network
from buda_emu.foreign.gemini.index import Index, find_read_tensor, operand_entries
from buda_emu.foreign.gemini.model import Source, Tensor, Tile, Workload
from buda_emu.support.checker import Finding
from buda_emu.support.checker.suggest import near


@BOOK.rule(
    "G037", "error", "the tiles do not partition their workload, or there are none",
    source="GEMINI 2.2", fix="let every element be in the ofmap box of one tile", unless=("G039",),
)  # fmt: skip
def check_tiles(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a workload of dialect A whose tiles do not fill it, each element once (G037)."""
    for work in index.ir.workloads() if index.ir.form.tiled else ():
        if not fills([work_tile.ofmap for work_tile in work.tiles], work.box):
            problem = f"the tiles of {work}, {len(work.tiles)} in all, do not fill {work.box}, each element once"
            yield Finding(f"{work.place}/tile_info", problem, about=work.layer_name)


@BOOK.rule(
    "G038", "error", "a workload has no ofmap, or one that does not lie in it",
    why="Pieces of dialect A are relative to the workload's own output, those of dialect B absolute.",
    source="GEMINI 2.2, 3", unless=("G037", "G039"),
)  # fmt: skip
def check_pieces(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a workload without an ofmap, and a piece of an ofmap that does not lie in its workload (G038)."""
    for work in index.ir.workloads():
        if not work.ofmap:
            yield Finding(f"{work.place}/ofmap", f"{work} has no ofmap")
        if index.ir.form.absolute:
            extent = work.box
        else:
            extent = work.box.within(work.box)
        for piece in work.ofmap:
            if not piece.box.inside(extent):
                problem = f"{work} makes {extent}, transfer {piece.transfer_id} is {piece.box}"
                yield Finding(f"{piece.place}/upper", problem, about=work.layer_name)


@BOOK.rule(
    "G039", "error", "workloads of a layer overlap, leave a hole, or do not begin at 0",
    source="GEMINI 2.2", fix="let the workloads of a layer fill a box from [0, 0, 0, 0] on, each element once",
)  # fmt: skip
def check_layers(index: Index, network: Network | None) -> Iterator[Finding]:
    """Report workloads of a layer, over all cores, that overlap, leave elements out, or do not begin at 0 (G039).
    While the network does not know a workload's layer (G080), holes are not reported, since that workload may be
    the missing one."""
    by_layer: dict[str, list[Workload]] = {}
    for work in index.ir.workloads():
        by_layer.setdefault(work.layer_name, []).append(work)
    lacking = network is not None and any(name not in network.layers for name in by_layer)
    for name, works in by_layer.items():
        boxes = [work.box for work in works]
        bounds = hull(boxes)
        pair = next(overlapping_pairs(boxes), None)
        if pair is not None:
            first = works[pair[0]]
            second = works[pair[1]]
            problem = f"{second} computes elements that {first} computes, too"
            yield Finding(f"{second.place}/workload", problem, about=name)
        elif lacking:
            continue
        elif sum(box.volume for box in boxes) != bounds.volume:
            problem = f"the workloads of {name!r} leave elements of {bounds} out"
            yield Finding(f"{works[0].place}/workload", problem, about=name)
        elif any(bounds.lower):
            problem = f"the workloads of {name!r} begin at {list(bounds.lower)}"
            yield Finding(f"{works[0].place}/workload", problem, about=name)


@BOOK.rule("G060", "error", "a workload takes negative time", source="GEMINI 4")
def check_time(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a workload that takes negative time (G060)."""
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
def check_complete(index: Index, _: Network | None) -> Iterator[Finding]:
    """Note, in dialect B, an operand whose sources hold fewer elements than it has, or more (which element-wise
    workloads may), and a weight without transfer_id (G070)."""
    if not index.ir.form.joint_operands:
        return
    for work in index.ir.workloads():
        entries = operand_entries(work)
        if entries:
            yield from _check_held_elements(work, sum(source.box.volume for source in _list_sources(entries)))
        if work.weight is not None and not work.weight.transfer_id:
            yield Finding(work.weight.place, f"the weight of {work} has no transfer_id")


def _check_held_elements(work: Workload, held: int) -> Iterator[Finding]:
    """Yield a finding for each operand of a workload that has not as many elements as its sources hold, `held`; an
    element-wise workload may hold more."""
    for operand in work.ifmap:
        needed = operand.box.volume
        if held < needed or (held > needed and work.layer_type != "element_wise"):
            yield Finding(operand.place, f"{work} reads {needed} elements, its sources hold {held}")


def _list_sources(entries: Sequence[Tensor]) -> list[Source]:
    """Return the sources of all buffer entries."""
    sources: list[Source] = []
    for entry in entries:
        sources += entry.source
    return sources


@BOOK.rule(
    "G004", "error", "a core is not on the mesh or not in the file, or a DRAM destination has another core id "
    "than DRAM's",
    why="Core n of dialect A stands at x = n mod xlen, y = n div xlen; core keys of dialect B are y*(xlen+2) + x + 1, "
    "with a column of DRAM at each side. DRAM is core -1 in dialect A and 0 in dialect B.",
    source="GEMINI 2, 3", fix="name a core that the file has",
)  # fmt: skip
def check_cores(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report a core that is not on the mesh, and a destination on a core that is not in the file or with another id
    than DRAM's (G004)."""
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
            if ir.on_mesh(to.core_id):
                reason = "is not in the file"
            else:
                reason = f"is not on {mesh}"
            yield Finding(f"{to.place}/{key}", f"transfer {number} goes to core {to.core_id}, which {reason}")


@BOOK.rule(
    "G005", "error", "workload ids of a core do not ascend, or an id is on two cores",
    why="Workloads are named by core and id; in dialect B by the id alone, which is also their order over all cores.",
    source="GEMINI 2.2, 3", fix="number the workloads in the order in which they run",
)  # fmt: skip
def check_ids_ascend(index: Index, _: Network | None) -> Iterator[Finding]:
    """Report workload ids that do not ascend along a core, and an id that is on two cores (dialect B) (G005)."""
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
def note_missing_addresses(index: Index, _: Network | None) -> Iterator[Finding]:
    """Note once that rules of L2 are not checked for a schedule without addresses."""
    if not index.ir.form.addressed:
        yield Finding("", "not checkable: no addresses (G040 to G054)")


_KNOWN = (*WINDOWS, "dense", "quantize", "element_wise_add")


@BOOK.rule(
    "G080", "error", "a layer is unknown to the network, never computed, or not computed whole",
    source="GEMINI 4", fix="compare with the front-end IR",
)  # fmt: skip
def check_network_coverage(index: Index, network: Network | None) -> Iterator[Finding]:
    """Report a workload whose layer the network does not know, and a layer that is never computed or not computed
    whole (G080). Layers of the host are not part of a schedule."""
    if network is None:
        return
    works: dict[str, list[Workload]] = {}
    for work in index.ir.workloads():
        works.setdefault(work.layer_name, []).append(work)
        if work.layer_name not in network.layers:
            hint = near(work.layer_name, network.layers)
            problem = f"{work}: the network has no such layer"
            yield Finding(f"{work.place}/layer_name", problem, hint, about=work.layer_name)
    lost = any(name not in network.layers for name in works)
    for name, layer in network.layers.items():
        if name in works:
            yield from _check_layer_bounds(layer, works[name])
        elif not layer.on_host and not lost:
            yield Finding("", f"layer {name!r} is never computed", about=name)


def _check_layer_bounds(layer: Layer, works: Sequence[Workload]) -> Iterator[Finding]:
    """Yield a finding where the workloads of a layer do not end where its output ends."""
    bounds = hull(work.box for work in works)
    if bounds.upper != layer.box.upper:
        problem = f"the workloads of {layer.name!r} compute {bounds}, the layer has {list(layer.output_shape)}"
        yield Finding(f"{works[0].place}/workload", problem, about=layer.name)


def _find_tile_fault(layer: Layer, tile: Tile) -> tuple[str, str] | None:
    """Return the key and the reason why a tile does not read the range that it needs, None where it does."""
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
def check_tile_ranges(index: Index, network: Network | None) -> Iterator[Finding]:
    """Report a tile whose ifmap range or padding is not what its ofmap range needs, for operations whose window is
    known (dialect A) (G081)."""
    for work in index.ir.workloads() if network is not None else ():
        if network is not None:
            layer = network.layers.get(work.layer_name)
        else:
            layer = None
        if layer is None or layer.operation not in _KNOWN:
            continue
        for work_tile in work.tiles:
            if work_tile.ofmap.inside(layer.box):
                wrong = _find_tile_fault(layer, work_tile)
            else:
                wrong = None
            if wrong:
                yield Finding(f"{work_tile.place}/{wrong[0]}", f"a tile of {work} {wrong[1]}", about=work.layer_name)


@BOOK.rule(
    "G082", "error", "the layers that a workload reads are not those before it in the network",
    source="GEMINI 4", unless=("G080",),
)  # fmt: skip
def check_predecessors(index: Index, network: Network | None) -> Iterator[Finding]:
    """Report a workload that reads other layers than those before it in the network, constants aside (G082)."""
    if network is None:
        return
    for work in index.ir.workloads():
        layer = network.layers.get(work.layer_name)
        if layer is None or index.reads_missing_transfer(work):
            continue
        read = _layers_read(index, work)
        expected = sorted(network.operands(layer))
        if index.ir.form.joint_operands and read is not None:
            read = sorted(set(read))
            expected = sorted(set(expected))
        if read is not None and read != expected:
            problem = f"{work} reads {', '.join(read) or 'no layer'}; the network says {', '.join(expected)}"
            yield Finding(f"{work.place}/ifmap", problem, about=work.layer_name)


def _layers_read(index: Index, work: Workload) -> list[str] | None:
    """Return the layers that a workload reads, one for each operand; None where an operand has no tensor (G044)."""
    if index.ir.form.joint_operands:
        return [source.layer_name or "" for source in _list_sources(operand_entries(work))]
    names: list[str] = []
    for operand in work.ifmap:
        tensor = find_read_tensor(work, operand)
        if tensor is None:
            return None
        ids = set(operand.transfer_id)
        names += sorted({source.layer_name or "" for source in tensor.source if source.transfer_id in ids})
    return sorted(names)
