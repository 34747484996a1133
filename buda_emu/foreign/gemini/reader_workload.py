"""Workloads of both dialects (facts GEMINI 2.2 to 2.5, 3)."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from buda_emu.foreign.gemini.boxes import Box
from buda_emu.foreign.gemini.json_values import a_list, whole_numbers
from buda_emu.foreign.gemini.model import (
    Destination,
    Dialect,
    DramIn,
    DramOut,
    Ifmap,
    Ofmap,
    OutKind,
    PlaceKind,
    Region,
    Source,
    StoreSource,
    Tensor,
    TensorKind,
    Tile,
    Weight,
    WeightStore,
    Workload,
)
from buda_emu.foreign.gemini.reader_values import NOWHERE, OUTS, PLACES, STORES, TENSORS, Object, Values


def dram_in(values: Values, item: Object, place: str, dialect: Dialect) -> DramIn:
    """An entry of `in`."""
    return DramIn(
        place,
        values.integer(item, "transfer_id", place),
        values.integer(item, "core_id", place),
        values.integer(item, "workload_id", place),
        values.text(item, "layer_name", place) if dialect == "A" else None,
        values.box(item, place),
        values.integers(item, "related_ofmap", place, optional=True),
    )


def dram_out(values: Values, item: Object, place: str, dialect: Dialect) -> DramOut:
    """An entry of `out`."""
    kind: OutKind = values.word(item, "type", place, OUTS)
    return DramOut(
        place,
        values.integer(item, "transfer_id", place),
        kind,
        values.integer(item, "size", place),
        channels(values, item, place) if dialect == "B" and kind == "weight" else values.box(item, place),
        values.items(item, "destination", place, lambda v, to, at: _reader_of(v, to, at, dialect)),
        values.integers(item, "related_ifmap", place),
        values.text(item, "layer_name", place) if dialect == "B" else None,
    )


def _reader_of(values: Values, item: Object, place: str, dialect: Dialect) -> Destination:
    """Who reads what leaves DRAM: always a workload."""
    return Destination(
        place,
        values.word(item, "type", place, ("core",)),
        values.integer(item, "core_id" if dialect == "A" else "id", place),
        values.integer(item, "workload_id", place),
        values.text(item, "layer_name", place) if dialect == "A" else None,
    )


def channels(values: Values, item: Object, place: str) -> Box:
    """A box of dialect B's weights: a range of output channels, or lists of three where weights are activations."""
    for key in ("lower", "upper"):
        if key not in item:
            values.missing(item, key, place)
            return NOWHERE
    low, high = item["lower"], item["upper"]
    if type(low) is int and type(high) is int:
        return values.corners([0, low, 0, 0], [0, high, 0, 0], place, "lower")
    return values.corners(_padded(low), _padded(high), place, "lower")


def _padded(value: Any) -> Any:
    """Lists of three with a fourth coordinate of 0."""
    three = a_list(value, 3)
    return value if three is None else [*three, 0]


def whole(values: Values, item: Object, place: str) -> Box:
    """`workload`: both corners in one list."""
    if "workload" not in item:
        values.missing(item, "workload", place)
        return NOWHERE
    both = a_list(item["workload"], 2)
    if both is None:
        return values.no_box(item["workload"], None, f"{place}/workload")
    return values.corners(both[0], both[1], f"{place}/workload", "workload")


def ofmap(values: Values, item: Object, place: str, core: str) -> Ofmap:
    """A piece of a workload's result and who gets it; `core`: the key of a destination that names its core."""
    return Ofmap(
        place,
        values.integer(item, "transfer_id", place),
        values.integer(item, "size", place),
        values.box(item, place),
        values.items(item, "destination", place, lambda v, to, at: _destination(v, to, at, core)),
    )


def _destination(values: Values, item: Object, place: str, key: str) -> Destination:
    """Who an ofmap is for. `key`: what the dialect calls the core."""
    kind: PlaceKind = values.word(item, "type", place, PLACES)
    workload = values.integer(item, "workload_id", place) if kind == "core" else None
    return Destination(place, kind, values.integer(item, key, place), workload)


LAYER_TYPES: Final = ("conv2d", "fc", "pool", "element_wise", "point_to_point")


def workload(values: Values, item: Object, place: str, core: int, index: int) -> Workload:
    """One workload."""
    read = values.object(item["ifmap"], f"{place}/ifmap") if "ifmap" in item else None
    if "ifmap" not in item:
        values.missing(item, "ifmap", place)
    weight = values.object(item["weight"], f"{place}/weight") if "weight" in item else None
    box = whole(values, item, place)

    return Workload(
        place,
        core,
        index,
        values.integer(item, "workload_id", place),
        values.text(item, "layer_name", place),
        values.word(item, "layer_type", place, LAYER_TYPES) if "layer_type" in item else None,
        box,
        values.number(item, "time", place),
        (_ifmap(values, read, f"{place}/ifmap"),) if read is not None else (),
        values.items(item, "ofmap", place, partial(ofmap, core="id")),
        values.integer(item, "ofmap_size", place),
        _weight(values, weight, f"{place}/weight") if weight is not None else None,
        values.items(item, "buffer", place, _tensor),
    )


def _ifmap(values: Values, item: Object, place: str) -> Ifmap:
    values.integer(item, "max_workload_id", place)
    return Ifmap(place, values.integers(item, "transfer_id", place), values.box(item, place))


def _weight(values: Values, item: Object, place: str) -> Weight:
    made = values.flag(item, "from_ofmap", place, default=False)
    return Weight(
        place,
        values.integers(item, "transfer_id", place, optional=made),
        channels(values, item, place),
        values.integer(item, "size", place) if "size" in item else None,
        made,
    )


def _tensor(values: Values, item: Object, place: str) -> Tensor:
    kind: TensorKind = values.word(item, "type", place, TENSORS)
    made = kind == "weight" and a_list(item.get("lower")) is not None and a_list(item.get("upper")) is not None
    of_channels = kind == "weight" or item.get("type") != kind  # of an unknown type: either, since G002 has told
    fmap = kind == "ifmap" or made
    read = source_reader("id", named=fmap, channel=fmap)
    return Tensor(
        place,
        kind,
        channels(values, item, place) if of_channels else values.box(item, place),
        () if kind == "ofmap" else _nested(values, item, place, optional=made),
        () if kind == "ofmap" else values.items(item, "source", place, read, optional=made),
        values.text(item, "layer", place),
        size=values.integer(item, "size", place) if kind == "ofmap" else 0,
        block=values.integer(item, "block", place),
        workload_id=values.integer(item, "workload_id", place) if kind == "ifmap" else None,
        activations=made,
    )


def _nested(values: Values, item: Object, place: str, *, optional: bool) -> tuple[int, ...]:
    """`transfer_id`, whose numbers may stand in lists of their own."""
    value = a_list(item.get("transfer_id")) or []
    if not any(isinstance(one, list) for one in value):
        return values.integers(item, "transfer_id", place, optional=optional)
    flat: list[Any] = []
    for one in value:
        flat += [one] if a_list(one) is None else a_list(one) or []
    return values.integers({"transfer_id": flat}, "transfer_id", place)


def source_reader(key: str, *, named: bool, channel: bool) -> Callable[[Values, Object, str], Source]:
    """Reads a piece of a tensor. `key`: what the dialect calls the core; `named`: it has a layer; `channel`: a
    range."""

    def read(values: Values, item: Object, place: str) -> Source:
        found = values.integers(item, "channel", place) if channel else ()
        if channel and len(found) != 2 and "channel" in item:
            values.other(place, "channel", "two integers", list(found))
        plain = channel or named or key == "core_id"
        return Source(
            place,
            values.word(item, "type", place, PLACES),
            values.integer(item, key, place),
            values.integer(item, "transfer_id", place),
            values.integer(item, "size", place),
            values.box(item, place) if plain else channels(values, item, place),
            values.text(item, "layer_name", place) if named else None,
            (found[0], found[1]) if len(found) == 2 else None,
        )

    return read


Read = Callable[[Values, Object, str, int, int], Workload]
_TILE = "tile_num_"


def workload_reader(dialect: Dialect) -> Read:
    """The function that reads a workload of this dialect."""
    return _workload if dialect == "A" else workload


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
        values.items(item, "ifmap", place, _workload_ifmap),
        values.items(item, "ofmap", place, partial(ofmap, core="core_id")),
        values.integer(item, "ofmap_size", place),
        _workload_weight(values, weight, f"{place}/weight") if weight is not None else None,
        values.items(item, "buffer", place, _workload_tensor),
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


def _workload_ifmap(values: Values, item: Object, place: str) -> Ifmap:
    return Ifmap(
        place,
        values.integers(item, "transfer_id", place),
        values.box(item, place),
        values.integer(item, "size", place),
        values.integer(item, "align", place),
        values.integer(item, "bitwidth", place),
    )


def _workload_weight(values: Values, item: Object, place: str) -> Weight:
    return Weight(
        place,
        values.integers(item, "transfer_id", place),
        values.box(item, place),
        values.integer(item, "size", place),
        from_ofmap=False,
    )


def _workload_tensor(values: Values, item: Object, place: str) -> Tensor:
    kind: TensorKind = values.word(item, "type", place, TENSORS)
    stored = kind == "ofmap"
    read = source_reader("core_id", named=kind == "ifmap", channel=False)
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
