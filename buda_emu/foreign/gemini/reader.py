"""JSON to the model: the values first, then the records of both dialects (facts GEMINI 1 to 3, rules G001 to G003)."""

import json
import os
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.boxes import Box
from buda_emu.foreign.gemini.json_values import a_list, an_object, shown, whole_numbers
from buda_emu.foreign.gemini.model import (
    IR,
    Destination,
    Dialect,
    DramIn,
    DramOut,
    Form,
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
from buda_emu.foreign.gemini.stages import ASSEMBLER, SCHEDULE, TRACE, recognise_beginning, recognise_content
from buda_emu.support.checker import TextPlace
from buda_emu.support.checker.render import render
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import ScheduleError
from buda_emu.support.files import read_whole


def dram_in(values: Values, item: Object, place: str, dialect: Dialect) -> DramIn:
    """An entry of `in`."""
    return DramIn(
        place=place,
        transfer_id=values.integer(item, "transfer_id", place),
        core_id=values.integer(item, "core_id", place),
        workload_id=values.integer(item, "workload_id", place),
        layer_name=values.text(item, "layer_name", place) if dialect == "A" else None,
        box=values.box(item, place),
        related_ofmap=values.integers(item, "related_ofmap", place, optional=True),
    )


def dram_out(values: Values, item: Object, place: str, dialect: Dialect) -> DramOut:
    """An entry of `out`."""
    kind: OutKind = values.word(item, "type", place, OUTS)
    return DramOut(
        place=place,
        transfer_id=values.integer(item, "transfer_id", place),
        type=kind,
        size=values.integer(item, "size", place),
        box=channels(values, item, place) if dialect == "B" and kind == "weight" else values.box(item, place),
        destination=values.items(item, "destination", place, lambda v, to, at: _reader_of(v, to, at, dialect)),
        related_ifmap=values.integers(item, "related_ifmap", place),
        layer_name=values.text(item, "layer_name", place) if dialect == "B" else None,
    )


def _reader_of(values: Values, item: Object, place: str, dialect: Dialect) -> Destination:
    """Who reads what leaves DRAM: always a workload."""
    return Destination(
        place=place,
        type=values.word(item, "type", place, ("core",)),
        core_id=values.integer(item, "core_id" if dialect == "A" else "id", place),
        workload_id=values.integer(item, "workload_id", place),
        layer_name=values.text(item, "layer_name", place) if dialect == "A" else None,
    )


def channels(values: Values, item: Object, place: str) -> Box:
    """A box of dialect B's weights: a range of output channels, or lists of three where weights are activations."""
    for key in ("lower", "upper"):
        if key not in item:
            values.missing(item, key, place)
            return NOWHERE
    low = item["lower"]
    high = item["upper"]
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
        place=place,
        transfer_id=values.integer(item, "transfer_id", place),
        size=values.integer(item, "size", place),
        box=values.box(item, place),
        destination=values.items(item, "destination", place, lambda v, to, at: _destination(v, to, at, core)),
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
        place=place,
        core=core,
        index=index,
        workload_id=values.integer(item, "workload_id", place),
        layer_name=values.text(item, "layer_name", place),
        layer_type=values.word(item, "layer_type", place, LAYER_TYPES) if "layer_type" in item else None,
        box=box,
        time=values.number(item, "time", place),
        ifmap=(_ifmap(values, read, f"{place}/ifmap"),) if read is not None else (),
        ofmap=values.items(item, "ofmap", place, partial(ofmap, core="id")),
        ofmap_size=values.integer(item, "ofmap_size", place),
        weight=_weight(values, weight, f"{place}/weight") if weight is not None else None,
        buffer=values.items(item, "buffer", place, _tensor),
    )


def _ifmap(values: Values, item: Object, place: str) -> Ifmap:
    values.integer(item, "max_workload_id", place)
    return Ifmap(place, values.integers(item, "transfer_id", place), values.box(item, place))


def _weight(values: Values, item: Object, place: str) -> Weight:
    made = values.flag(item, "from_ofmap", place, default=False)
    return Weight(
        place=place,
        transfer_id=values.integers(item, "transfer_id", place, optional=made),
        box=channels(values, item, place),
        size=values.integer(item, "size", place) if "size" in item else None,
        from_ofmap=made,
    )


def _tensor(values: Values, item: Object, place: str) -> Tensor:
    kind: TensorKind = values.word(item, "type", place, TENSORS)
    made = kind == "weight" and a_list(item.get("lower")) is not None and a_list(item.get("upper")) is not None
    of_channels = kind == "weight" or item.get("type") != kind  # of an unknown type: either, since G002 has told
    fmap = kind == "ifmap" or made
    read = source_reader("id", named=fmap, channel=fmap)
    return Tensor(
        place=place,
        type=kind,
        box=channels(values, item, place) if of_channels else values.box(item, place),
        transfer_id=() if kind == "ofmap" else _nested(values, item, place, optional=made),
        source=() if kind == "ofmap" else values.items(item, "source", place, read, optional=made),
        layer_name=values.text(item, "layer", place),
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
            place=place,
            type=values.word(item, "type", place, PLACES),
            core_id=values.integer(item, key, place),
            transfer_id=values.integer(item, "transfer_id", place),
            size=values.integer(item, "size", place),
            box=values.box(item, place) if plain else channels(values, item, place),
            layer_name=values.text(item, "layer_name", place) if named else None,
            channel=(found[0], found[1]) if len(found) == 2 else None,
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
        place=place,
        core=core,
        index=index,
        workload_id=values.integer(item, "workload_id", place),
        layer_name=values.text(item, "layer_name", place),
        layer_type=values.word(item, "layer_type", place, ("pe", "vp", "dt")),
        box=whole(values, item, place),
        time=values.number(item, "time", place),
        ifmap=values.items(item, "ifmap", place, _workload_ifmap),
        ofmap=values.items(item, "ofmap", place, partial(ofmap, core="core_id")),
        ofmap_size=values.integer(item, "ofmap_size", place),
        weight=_workload_weight(values, weight, f"{place}/weight") if weight is not None else None,
        buffer=values.items(item, "buffer", place, _workload_tensor),
        tiles=_tiles(values, item, place),
        regions=_regions(values, item, place),
        wl0=_weight_stores(values, item, place),
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
        place=place,
        transfer_id=values.integers(item, "transfer_id", place),
        box=values.box(item, place),
        size=values.integer(item, "size", place),
        align=values.integer(item, "align", place),
        bitwidth=values.integer(item, "bitwidth", place),
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
        place=place,
        type=kind,
        box=values.box(item, place),
        transfer_id=() if stored else values.integers(item, "transfer_id", place),
        source=() if stored else values.items(item, "source", place, read),
        layer_name=None if kind == "ifmap" else values.text(item, "layer_name", place),
        tensor_id=values.integer(item, "tensor_id", place),
        address=values.integer(item, "address", place),
        size=values.integer(item, "size", place),
        align=values.integer(item, "align", place),
        bitwidth=values.integer(item, "bitwidth", place),
        tensor_order=values.integer(item, "tensor_order", place),
        newly_added=False if stored else values.flag(item, "newly_added", place),
        cur_wl_ifmap=kind == "ifmap" and values.flag(item, "cur_wl_ifmap", place, default=False),
        start_send=stored and values.flag(item, "start_send", place),
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
        place=place,
        ofmap=values.box(item, place, "ofmap_lower", "ofmap_upper"),
        ifmap=values.box(item, place, "ifmap_lower", "ifmap_upper"),
        ifmap2=values.box(item, place, "ifmap_lower2", "ifmap_upper2") if second else None,
        padding=padding(values, item, place),
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
        place=place,
        address=values.integer(item, "address", place),
        size=values.integer(item, "size", place),
        transfer_id=values.integers(item, "transfer_id", place),
        layer_name=values.text(item, "layer_name", place),
        source=source,
        tensor_order=order,
    )


TOP_KEYS: Final = ("-1", "buffersize", "xlen", "ylen", "top_batch_cut")
FORMS: Final[Mapping[Dialect, Form]] = {
    "A": Form(
        "A", addressed=True, tiled=True, in_bits=False, absolute=False, joint_operands=False, by_channel=False,
        activations_as_weights=False, global_ids=False, columns_of_dram=0, dram=-1, core_key="core_id",
    ),
    "B": Form(
        "B", addressed=False, tiled=False, in_bits=True, absolute=True, joint_operands=True, by_channel=True,
        activations_as_weights=True, global_ids=True, columns_of_dram=2, dram=0, core_key="id",
    ),
}  # fmt: skip
"""GEMINI 2 and 3."""
_GZIP = b"\x1f\x8b"
_MOST_BYTES = 1 << 29


def read(source: "str | os.PathLike[str] | Mapping[str, Any]") -> IR:
    """Read a schedule of either dialect (facts GEMINI 2, 3).

    `source`: path of a .json or .json.gz file, or the decoded JSON object, which is kept and must not be changed then.
    Raises ScheduleError with `.diagnostics` (rules G001 to G003) for what is not a schedule, OSError for a file that
    cannot be read.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        return _read(decode(path), path)
    return _read(source, "")


def decode(path: str) -> Any:
    """The JSON value of a file, which may be compressed. Raises ScheduleError (G001) if it is not JSON."""
    raw = read_whole(path)
    try:
        return json.loads(unpacked(raw).decode())
    except json.JSONDecodeError as error:
        place = TextPlace(error.lineno, error.colno)
        problem = f"no JSON: {error.msg}"
        stage = recognise_beginning(unpacked(raw))
        if stage is not None and stage in (ASSEMBLER, TRACE):
            place = ""
            problem = stage.instead_of(SCHEDULE)
    except (ValueError, EOFError, RecursionError, OSError) as error:
        place = ""
        problem = f"no JSON: {error}"
    found = [BOOK.diagnostic(path, "G001", place, problem)]
    raise ScheduleError(render(found), found)


def unpacked(raw: bytes) -> bytes:
    """The content of a file, which may be compressed (gzip). Raises ValueError for a damaged one."""
    if not raw.startswith(_GZIP):
        return raw
    unpacker = zlib.decompressobj(31)
    try:
        data = unpacker.decompress(raw, _MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"the file is damaged: {error}") from None
    if unpacker.unconsumed_tail:
        raise ValueError(f"more than {_MOST_BYTES} bytes")
    if not unpacker.eof:
        raise ValueError("the file is cut off")
    return data


def _read(document: Any, path: str) -> IR:
    values = Values(path)
    ir = _top(values, document)
    if values.found:
        found = sorted(values.found, key=lambda item: item.order)
        raise ScheduleError(render(found), found)
    assert ir is not None  # nothing was found
    return ir


def _top(values: Values, document: Any) -> IR | None:
    """G001 first: when the top is wrong, nothing below it is read."""
    top = an_object(document)
    if top is None:
        values.wrong("G001", "", f"a schedule is an object, not {shown(document)}")
        return None
    stage = recognise_content(top)
    if stage not in (None, SCHEDULE):
        values.wrong("G001", "", stage.instead_of(SCHEDULE))
        return None
    dialect: Dialect = "A" if "buffersize" in top else "B"
    cores = _core_keys(values, top)
    dram = an_object(top.get("-1")) or {}
    for name in ("in", "out"):
        if a_list(dram.get(name)) is None:
            values.wrong("G001", "-1", f"there is no '-1' with a list {name!r}: what goes through DRAM")
    sizes: dict[str, int] = {}
    for name in ("xlen", "ylen", *(("buffersize",) if dialect == "A" else ())):
        value = top.get(name)
        if type(value) is int and 0 < value < 1 << 62:
            sizes[name] = value
        else:
            values.wrong("G001", name, f"{name!r} is an integer of 1 or more, not {shown(value)}")
    if values.found:
        return None
    read = workload_reader(dialect)
    works: dict[int, tuple[Workload, ...]] = {}
    for core, key in cores.items():
        works[core] = tuple(
            read(values, item, place, core, at)
            for at, entry in enumerate(top[key])
            if (item := values.object(entry, place := f"{key}/{at}")) is not None
        )
    arrives = values.items(top["-1"], "in", "-1", lambda v, item, place: dram_in(v, item, place, dialect))
    leaves = values.items(top["-1"], "out", "-1", lambda v, item, place: dram_out(v, item, place, dialect))
    return IR(
        form=FORMS[dialect],
        cores=works,
        dram_in=arrives,
        dram_out=leaves,
        xlen=sizes["xlen"],
        ylen=sizes["ylen"],
        buffersize=sizes.get("buffersize"),
        path=values.path,
        document=top,
    )


def _core_keys(values: Values, top: Object) -> dict[int, str]:
    """Core ids in ascending order, and their keys."""
    found: dict[int, str] = {}
    for key in map(str, top):
        if key in TOP_KEYS:
            continue
        if not (key.isascii() and key.isdecimal() and str(int(key[:9])) == key):
            hint = near(key, TOP_KEYS)
            values.wrong("G001", key[:60], f"the key {shown(key)} is neither a core nor known here", hint)
        elif not isinstance(top.get(key), list):
            values.wrong("G001", key, f"core {key} is a list of workloads, not {shown(top.get(key))}")
        else:
            found[int(key)] = key
    if not found and not values.found:
        values.wrong("G001", "", "there is no core: no decimal key with a list of workloads")
    return dict(sorted(found.items()))
