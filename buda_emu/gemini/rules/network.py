"""A schedule against the network that it computes: G080 to G082."""

from collections.abc import Iterator

from buda_emu.checker import Finding
from buda_emu.checker.suggest import near
from buda_emu.gemini.book import BOOK
from buda_emu.gemini.boxes import hull
from buda_emu.gemini.frontend import WINDOWS, Layer, Network
from buda_emu.gemini.index import Index, own_entries, read_tensor
from buda_emu.gemini.model import Tile, Workload

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
        for tile in work.tiles:
            wrong = _wrong_tile(layer, tile) if tile.ofmap.inside(layer.box) else None
            if wrong:
                yield Finding(f"{tile.place}/{wrong[0]}", f"a tile of {work} {wrong[1]}", about=work.layer_name)


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
            read, wanted = sorted(set(read)), sorted(set(wanted))
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
