"""Workloads of both dialects (facts GEMINI 2.2 to 2.5, 3)."""

from collections.abc import Callable
from functools import partial

from buda_emu.gemini.json_values import a_list, whole_numbers
from buda_emu.gemini.model import (
    Dialect,
    Ifmap,
    Region,
    StoreSource,
    Tensor,
    TensorKind,
    Tile,
    Weight,
    WeightStore,
    Workload,
)
from buda_emu.gemini.reader import dialect_b
from buda_emu.gemini.reader.dram import ofmap, whole
from buda_emu.gemini.reader.values import STORES, TENSORS, Object, Values

Read = Callable[[Values, Object, str, int, int], Workload]
_TILE = "tile_num_"


def workload_reader(dialect: Dialect) -> Read:
    """The function that reads a workload of this dialect."""
    return _workload if dialect == "A" else dialect_b.workload


def _workload(values: Values, item: Object, place: str, core: int, index: int) -> Workload:
    padding(values, item, place)  # of the whole box; nothing needs it
    weight = values.object(item["weight"], f"{place}/weight") if "weight" in item else None
    return Workload(
        place,
        core,
        index,
        values.integer(item, "workload_id", place),
        values.text(item, "layer_name", place),
        values.word(item, "layer_type", place, ("pe", "vp", "dt")),
        whole(values, item, place),
        values.number(item, "time", place),
        values.items(item, "ifmap", place, _ifmap),
        values.items(item, "ofmap", place, partial(ofmap, core="core_id")),
        values.integer(item, "ofmap_size", place),
        _weight(values, weight, f"{place}/weight") if weight is not None else None,
        values.items(item, "buffer", place, _tensor),
        _tiles(values, item, place),
        _regions(values, item, place),
        _weight_stores(values, item, place),
    )


def padding(values: Values, item: Object, place: str) -> tuple[int, int, int, int]:
    """`tile_padding_tblr`."""
    found = values.integers(item, "tile_padding_tblr", place)
    if len(found) == 4:
        top, bottom, left, right = found
        return top, bottom, left, right
    if whole_numbers(item.get("tile_padding_tblr")) is not None:  # else `integers` has told
        values.other(place, "tile_padding_tblr", "four integers", list(found))
    return 0, 0, 0, 0


def _ifmap(values: Values, item: Object, place: str) -> Ifmap:
    return Ifmap(
        place,
        values.integers(item, "transfer_id", place),
        values.box(item, place),
        values.integer(item, "size", place),
        values.integer(item, "align", place),
        values.integer(item, "bitwidth", place),
    )


def _weight(values: Values, item: Object, place: str) -> Weight:
    return Weight(
        place,
        values.integers(item, "transfer_id", place),
        values.box(item, place),
        values.integer(item, "size", place),
        from_ofmap=False,
    )


def _tensor(values: Values, item: Object, place: str) -> Tensor:
    kind: TensorKind = values.word(item, "type", place, TENSORS)
    stored = kind == "ofmap"
    read = dialect_b.source_reader("core_id", named=kind == "ifmap", channel=False)
    return Tensor(
        place,
        kind,
        values.box(item, place),
        () if stored else values.integers(item, "transfer_id", place),
        () if stored else values.items(item, "source", place, read),
        None if kind == "ifmap" else values.text(item, "layer_name", place),
        values.integer(item, "tensor_id", place),
        values.integer(item, "address", place),
        values.integer(item, "size", place),
        values.integer(item, "align", place),
        values.integer(item, "bitwidth", place),
        values.integer(item, "tensor_order", place),
        False if stored else values.flag(item, "newly_added", place),
        kind == "ifmap" and values.flag(item, "cur_wl_ifmap", place, default=False),
        stored and values.flag(item, "start_send", place),
    )


def _tiles(values: Values, item: Object, place: str) -> tuple[Tile, ...]:
    """Tiles in the order of their numbers; other keys of `tile_info` are ignored."""
    if "tile_info" not in item:
        values.missing(item, "tile_info", place)
        return ()
    tiles = values.object(item["tile_info"], f"{place}/tile_info")
    found: list[tuple[int, Tile]] = []
    for key in tiles or ():
        number = key.removeprefix(_TILE)
        if not (key.startswith(_TILE) and number.isascii() and number.isdecimal() and len(number) < 10):
            continue
        entry = values.object((tiles or {})[key], f"{place}/tile_info/{key}")
        if entry is not None:
            found.append((int(number), _tile(values, entry, f"{place}/tile_info/{key}")))
    return tuple(tile for _, tile in sorted(found, key=lambda pair: pair[0]))


def _tile(values: Values, item: Object, place: str) -> Tile:
    values.number(item, "single_tile_time_pred", place)
    second = "ifmap_lower2" in item or "ifmap_upper2" in item
    return Tile(
        place,
        values.box(item, place, "ofmap_lower", "ofmap_upper"),
        values.box(item, place, "ifmap_lower", "ifmap_upper"),
        values.box(item, place, "ifmap_lower2", "ifmap_upper2") if second else None,
        padding(values, item, place),
    )


def _regions(values: Values, item: Object, place: str) -> tuple[Region, ...] | None:
    """Ring regions; None where they are not pairs, which rule G047 tells of."""
    if "ring_buffer_info" not in item:
        values.missing(item, "ring_buffer_info", place)
        return None
    value = a_list(item["ring_buffer_info"])
    if value is None:
        values.other(place, "ring_buffer_info", "a list of pairs", item["ring_buffer_info"])
        return None
    found: list[Region] = []
    for entry in value:
        pair = whole_numbers(entry, 2)
        if pair is None:
            return None
        found.append((pair[0], pair[1]))
    return tuple(found)


def _weight_stores(values: Values, item: Object, place: str) -> tuple[WeightStore, ...]:
    """`wl0_buffer` or `wl1_buffer`: the same under two names."""
    names = [name for name in ("wl0_buffer", "wl1_buffer") if item.get(name) is not None]
    if len(names) == 2:
        values.wrong("G002", place, "there are a 'wl0_buffer' and a 'wl1_buffer': one of them holds the weights")
    return values.items(item, names[0], place, _weight_store) if names else ()


def _weight_store(values: Values, item: Object, place: str) -> WeightStore:
    source: StoreSource = values.word(item, "source", place, STORES)
    order = values.integer(item, "tensor_order", place) if source == "DDR" else None
    return WeightStore(
        place,
        values.integer(item, "address", place),
        values.integer(item, "size", place),
        values.integers(item, "transfer_id", place),
        values.text(item, "layer_name", place),
        source,
        order,
    )
