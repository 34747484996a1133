"""Read a schedule from JSON into the records of the model, for both dialects (facts GEMINI 1 to 3, rules G001 to
G003)."""

import json
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.boxes import Box
from buda_emu.foreign.gemini.json_values import (
    NOWHERE,
    OUTS,
    PLACES,
    STORES,
    TENSORS,
    Object,
    Values,
    as_integers,
    as_list,
    as_object,
    describe,
)
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
from buda_emu.foreign.gemini.stages import ASSEMBLER, SCHEDULE, TRACE, recognise_beginning, recognise_content
from buda_emu.support.checker import TextPlace
from buda_emu.support.checker.render import render
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import ScheduleError
from buda_emu.support.files import read_whole


def read_dram_in(values: Values, entry: Object, place: str, dialect: Dialect) -> DramIn:
    """Return an entry of `in`, at `place` in the document: a piece of a result that a core sends to DRAM. Wrong values
    become findings of `values`; nothing is raised."""
    return DramIn(
        place=place,
        transfer_id=values.integer(entry, "transfer_id", place),
        core_id=values.integer(entry, "core_id", place),
        workload_id=values.integer(entry, "workload_id", place),
        layer_name=values.text(entry, "layer_name", place) if dialect == "A" else None,
        box=values.box(entry, place),
        related_ofmap=values.integers(entry, "related_ofmap", place, optional=True),
    )


def read_dram_out(values: Values, entry: Object, place: str, dialect: Dialect) -> DramOut:
    """Return an entry of `out`, at `place` in the document: a tensor that DRAM sends to cores. Wrong values become
    findings of `values`; nothing is raised."""
    kind: OutKind = values.word(entry, "type", place, OUTS)
    return DramOut(
        place=place,
        transfer_id=values.integer(entry, "transfer_id", place),
        type=kind,
        size=values.integer(entry, "size", place),
        box=read_channels(values, entry, place) if dialect == "B" and kind == "weight" else values.box(entry, place),
        destination=values.items(entry, "destination", place, lambda v, to, at: _read_dram_reader(v, to, at, dialect)),
        related_ifmap=values.integers(entry, "related_ifmap", place),
        layer_name=values.text(entry, "layer_name", place) if dialect == "B" else None,
    )


def _read_dram_reader(values: Values, entry: Object, place: str, dialect: Dialect) -> Destination:
    """Read a destination of a tensor that leaves DRAM, which is always a workload."""
    return Destination(
        place=place,
        type=values.word(entry, "type", place, ("core",)),
        core_id=values.integer(entry, "core_id" if dialect == "A" else "id", place),
        workload_id=values.integer(entry, "workload_id", place),
        layer_name=values.text(entry, "layer_name", place) if dialect == "A" else None,
    )


def read_channels(values: Values, entry: Object, place: str) -> Box:
    """Read a box of dialect B's weights: a range of output channels, or lists of three coordinates where weights are
    activations. Wrong ones become findings and a box of one element."""
    for key in ("lower", "upper"):
        if key not in entry:
            values.note_missing(entry, key, place)
            return NOWHERE
    low = entry["lower"]
    high = entry["upper"]
    if type(low) is int and type(high) is int:
        return values.corners([0, low, 0, 0], [0, high, 0, 0], place, "lower")
    return values.corners(_append_zero(low), _append_zero(high), place, "lower")


def _append_zero(value: Any) -> Any:
    """Return a list of three with a fourth coordinate of 0, and any other value unchanged."""
    three = as_list(value, 3)
    return value if three is None else [*three, 0]


def read_workload_box(values: Values, entry: Object, place: str) -> Box:
    """Read `workload`, a list of the lower and the upper corner of the workload's box. A missing or wrong one becomes a
    finding and a box of one element."""
    if "workload" not in entry:
        values.note_missing(entry, "workload", place)
        return NOWHERE
    corners = as_list(entry["workload"], 2)
    if corners is None:
        return values.note_box(entry["workload"], None, f"{place}/workload")
    return values.corners(corners[0], corners[1], f"{place}/workload", "workload")


def read_ofmap(values: Values, entry: Object, place: str, core: str) -> Ofmap:
    """Read a piece of a workload's result and its destinations. `core` is the key that names a destination's core."""
    return Ofmap(
        place=place,
        transfer_id=values.integer(entry, "transfer_id", place),
        size=values.integer(entry, "size", place),
        box=values.box(entry, place),
        destination=values.items(entry, "destination", place, lambda v, to, at: _read_destination(v, to, at, core)),
    )


def _read_destination(values: Values, entry: Object, place: str, key: str) -> Destination:
    """Return a destination of an ofmap, a core with its workload or a DRAM, whose number stands under `key`, as this
    dialect calls it. Wrong or missing values become findings of `values`."""
    kind: PlaceKind = values.word(entry, "type", place, PLACES)
    if kind == "core":
        workload = values.integer(entry, "workload_id", place)
    else:
        workload = None
    return Destination(place, kind, values.integer(entry, key, place), workload)


LAYER_TYPES: Final = ("conv2d", "fc", "pool", "element_wise", "point_to_point")


def _read_workload_b(values: Values, entry: Object, place: str, core: int, index: int) -> Workload:
    """Read a workload of dialect B, which is at position `index` of its core."""
    if "ifmap" in entry:
        read = values.object(entry["ifmap"], f"{place}/ifmap")
    else:
        read = None
    if "ifmap" not in entry:
        values.note_missing(entry, "ifmap", place)
    if "weight" in entry:
        weight = values.object(entry["weight"], f"{place}/weight")
    else:
        weight = None
    box = read_workload_box(values, entry, place)

    return Workload(
        place=place,
        core=core,
        index=index,
        workload_id=values.integer(entry, "workload_id", place),
        layer_name=values.text(entry, "layer_name", place),
        layer_type=values.word(entry, "layer_type", place, LAYER_TYPES) if "layer_type" in entry else None,
        box=box,
        time=values.number(entry, "time", place),
        ifmap=(_read_ifmap_b(values, read, f"{place}/ifmap"),) if read is not None else (),
        ofmap=values.items(entry, "ofmap", place, partial(read_ofmap, core="id")),
        ofmap_size=values.integer(entry, "ofmap_size", place),
        weight=_read_weight_b(values, weight, f"{place}/weight") if weight is not None else None,
        buffer=values.items(entry, "buffer", place, _read_tensor_b),
    )


def _read_ifmap_b(values: Values, entry: Object, place: str) -> Ifmap:
    """Read the operands of a workload of dialect B, which are one record; `max_workload_id` must be there and is
    not used."""
    values.integer(entry, "max_workload_id", place)
    return Ifmap(place, values.integers(entry, "transfer_id", place), values.box(entry, place))


def _read_weight_b(values: Values, entry: Object, place: str) -> Weight:
    """Read the weights that a workload of dialect B uses."""
    from_ofmap = values.flag(entry, "from_ofmap", place, default=False)
    return Weight(
        place=place,
        transfer_id=values.integers(entry, "transfer_id", place, optional=from_ofmap),
        box=read_channels(values, entry, place),
        size=values.integer(entry, "size", place) if "size" in entry else None,
        from_ofmap=from_ofmap,
    )


def _read_tensor_b(values: Values, entry: Object, place: str) -> Tensor:
    """Read a buffer entry of dialect B. The box of a weight gives output channels alone, unless a layer makes it."""
    kind: TensorKind = values.word(entry, "type", place, TENSORS)
    activations = (
        kind == "weight" and as_list(entry.get("lower")) is not None and as_list(entry.get("upper")) is not None
    )
    of_channels = kind == "weight" or entry.get("type") != kind  # of an unknown type: either, since G002 has told
    fmap = kind == "ifmap" or activations
    read = make_source_reader("id", named=fmap, channel=fmap)
    return Tensor(
        place=place,
        type=kind,
        box=read_channels(values, entry, place) if of_channels else values.box(entry, place),
        transfer_id=() if kind == "ofmap" else _read_nested_ids(values, entry, place, optional=activations),
        source=() if kind == "ofmap" else values.items(entry, "source", place, read, optional=activations),
        layer_name=values.text(entry, "layer", place),
        size=values.integer(entry, "size", place) if kind == "ofmap" else 0,
        block=values.integer(entry, "block", place),
        workload_id=values.integer(entry, "workload_id", place) if kind == "ifmap" else None,
        activations=activations,
    )


def _read_nested_ids(values: Values, entry: Object, place: str, *, optional: bool) -> tuple[int, ...]:
    """Read `transfer_id`, whose numbers may stand in lists of their own."""
    value = as_list(entry.get("transfer_id")) or []
    if not any(isinstance(number, list) for number in value):
        return values.integers(entry, "transfer_id", place, optional=optional)
    flat: list[Any] = []
    for number in value:
        if as_list(number) is None:
            flat += [number]
        else:
            flat += as_list(number) or []
    return values.integers({"transfer_id": flat}, "transfer_id", place)


def make_source_reader(key: str, *, named: bool, channel: bool) -> Callable[[Values, Object, str], Source]:
    """Return a function that reads a piece of a tensor. `key` names the core in this dialect; `named` pieces have a
    layer, `channel` pieces a range of channels."""
    has_box = channel or named or key == "core_id"  # else it is a weight of dialect B, with a range of channels

    def read(values: Values, entry: Object, place: str) -> Source:
        """Read a piece of a tensor from its JSON object."""
        if channel:
            bounds = values.integers(entry, "channel", place)
        else:
            bounds = ()
        if channel and len(bounds) != 2 and "channel" in entry:
            values.note_type(place, "channel", "two integers", list(bounds))
        return Source(
            place=place,
            type=values.word(entry, "type", place, PLACES),
            core_id=values.integer(entry, key, place),
            transfer_id=values.integer(entry, "transfer_id", place),
            size=values.integer(entry, "size", place),
            box=values.box(entry, place) if has_box else read_channels(values, entry, place),
            layer_name=values.text(entry, "layer_name", place) if named else None,
            channel=(bounds[0], bounds[1]) if len(bounds) == 2 else None,
        )

    return read


WorkloadReader = Callable[[Values, Object, str, int, int], Workload]
_TILE = "tile_num_"


def workload_reader(dialect: Dialect) -> WorkloadReader:
    """Return the function that reads a workload of this dialect."""
    if dialect == "A":
        return _read_workload_a
    return _read_workload_b


def _read_workload_a(values: Values, entry: Object, place: str, core: int, index: int) -> Workload:
    """Read a workload of dialect A, which is at position `index` of its core."""
    read_padding(values, entry, place)  # of the whole box; nothing needs it
    if "weight" in entry:
        weight = values.object(entry["weight"], f"{place}/weight")
    else:
        weight = None
    return Workload(
        place=place,
        core=core,
        index=index,
        workload_id=values.integer(entry, "workload_id", place),
        layer_name=values.text(entry, "layer_name", place),
        layer_type=values.word(entry, "layer_type", place, ("pe", "vp", "dt")),
        box=read_workload_box(values, entry, place),
        time=values.number(entry, "time", place),
        ifmap=values.items(entry, "ifmap", place, _read_ifmap_a),
        ofmap=values.items(entry, "ofmap", place, partial(read_ofmap, core="core_id")),
        ofmap_size=values.integer(entry, "ofmap_size", place),
        weight=_read_weight_a(values, weight, f"{place}/weight") if weight is not None else None,
        buffer=values.items(entry, "buffer", place, _read_tensor_a),
        tiles=_read_tiles(values, entry, place),
        regions=_read_regions(values, entry, place),
        wl0=_read_weight_stores(values, entry, place),
    )


def read_padding(values: Values, entry: Object, place: str) -> tuple[int, int, int, int]:
    """Read `tile_padding_tblr`: top, bottom, left, right. All are 0, with a finding, for anything else."""
    extents = values.integers(entry, "tile_padding_tblr", place)
    if len(extents) == 4:
        top, bottom, left, right = extents
        return top, bottom, left, right
    if as_integers(entry.get("tile_padding_tblr")) is not None:  # else `integers` has told
        values.note_type(place, "tile_padding_tblr", "four integers", list(extents))
    return 0, 0, 0, 0


def _read_ifmap_a(values: Values, entry: Object, place: str) -> Ifmap:
    """Read one operand of a workload of dialect A."""
    return Ifmap(
        place=place,
        transfer_id=values.integers(entry, "transfer_id", place),
        box=values.box(entry, place),
        size=values.integer(entry, "size", place),
        align=values.integer(entry, "align", place),
        bitwidth=values.integer(entry, "bitwidth", place),
    )


def _read_weight_a(values: Values, entry: Object, place: str) -> Weight:
    """Read the weights that a workload of dialect A uses."""
    return Weight(
        place,
        values.integers(entry, "transfer_id", place),
        values.box(entry, place),
        values.integer(entry, "size", place),
        from_ofmap=False,
    )


def _read_tensor_a(values: Values, entry: Object, place: str) -> Tensor:
    """Read a buffer entry of dialect A. Entries that wait to be stored (`ofmap`) have no sources."""
    kind: TensorKind = values.word(entry, "type", place, TENSORS)
    stored = kind == "ofmap"
    read = make_source_reader("core_id", named=kind == "ifmap", channel=False)
    return Tensor(
        place=place,
        type=kind,
        box=values.box(entry, place),
        transfer_id=() if stored else values.integers(entry, "transfer_id", place),
        source=() if stored else values.items(entry, "source", place, read),
        layer_name=None if kind == "ifmap" else values.text(entry, "layer_name", place),
        tensor_id=values.integer(entry, "tensor_id", place),
        address=values.integer(entry, "address", place),
        size=values.integer(entry, "size", place),
        align=values.integer(entry, "align", place),
        bitwidth=values.integer(entry, "bitwidth", place),
        tensor_order=values.integer(entry, "tensor_order", place),
        newly_added=False if stored else values.flag(entry, "newly_added", place),
        cur_wl_ifmap=kind == "ifmap" and values.flag(entry, "cur_wl_ifmap", place, default=False),
        start_send=stored and values.flag(entry, "start_send", place),
    )


def _tile_number(key: str) -> int | None:
    """Return the number in the key of a tile, None for any other key."""
    number = key.removeprefix(_TILE)
    if key.startswith(_TILE) and number.isascii() and number.isdecimal() and len(number) < 10:
        return int(number)
    return None


def _read_tiles(values: Values, work_entry: Object, place: str) -> tuple[Tile, ...]:
    """Read the tiles of a workload in the order of their numbers. Other keys of `tile_info` are ignored."""
    if "tile_info" not in work_entry:
        values.note_missing(work_entry, "tile_info", place)
        return ()
    tiles = values.object(work_entry["tile_info"], f"{place}/tile_info")
    tiles_by_number: list[tuple[int, Tile]] = []
    for key in tiles or ():
        number = _tile_number(key)
        if number is None:
            continue
        entry = values.object((tiles or {})[key], f"{place}/tile_info/{key}")
        if entry is not None:
            tiles_by_number.append((number, _read_tile(values, entry, f"{place}/tile_info/{key}")))
    return tuple(tile for _, tile in sorted(tiles_by_number, key=lambda pair: pair[0]))


def _read_tile(values: Values, entry: Object, place: str) -> Tile:
    """Read a tile of a workload; its predicted time must be there and is not used."""
    values.number(entry, "single_tile_time_pred", place)
    second = "ifmap_lower2" in entry or "ifmap_upper2" in entry
    return Tile(
        place=place,
        ofmap=values.box(entry, place, "ofmap_lower", "ofmap_upper"),
        ifmap=values.box(entry, place, "ifmap_lower", "ifmap_upper"),
        ifmap2=values.box(entry, place, "ifmap_lower2", "ifmap_upper2") if second else None,
        padding=read_padding(values, entry, place),
    )


def _read_regions(values: Values, work_entry: Object, place: str) -> tuple[Region, ...] | None:
    """Read the ring regions, None where they are not pairs of numbers, which rule G047 reports."""
    if "ring_buffer_info" not in work_entry:
        values.note_missing(work_entry, "ring_buffer_info", place)
        return None
    value = as_list(work_entry["ring_buffer_info"])
    if value is None:
        values.note_type(place, "ring_buffer_info", "a list of pairs", work_entry["ring_buffer_info"])
        return None
    regions: list[Region] = []
    for entry in value:
        pair = as_integers(entry, 2)
        if pair is None:
            return None
        regions.append((pair[0], pair[1]))
    return tuple(regions)


def _read_weight_stores(values: Values, entry: Object, place: str) -> tuple[WeightStore, ...]:
    """Read `wl0_buffer` or `wl1_buffer`, two names of the same list."""
    names = [name for name in ("wl0_buffer", "wl1_buffer") if entry.get(name) is not None]
    if len(names) == 2:
        values.note_finding("G002", place, "there are a 'wl0_buffer' and a 'wl1_buffer': one of them holds the weights")
    if names:
        return values.items(entry, names[0], place, _read_weight_store)
    return ()


def _read_weight_store(values: Values, entry: Object, place: str) -> WeightStore:
    """Read an entry of the weight store. Only those that come from DRAM (DDR) have a tensor_order."""
    source: StoreSource = values.word(entry, "source", place, STORES)
    if source == "DDR":
        order = values.integer(entry, "tensor_order", place)
    else:
        order = None
    return WeightStore(
        place=place,
        address=values.integer(entry, "address", place),
        size=values.integer(entry, "size", place),
        transfer_id=values.integers(entry, "transfer_id", place),
        layer_name=values.text(entry, "layer_name", place),
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
_MOST_BYTES = 1 << 29  # of unpacked text, so that a forged archive does not fill memory


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
    """Return the JSON value of a file, which may be compressed. Raises ScheduleError (G001) if it is not JSON, OSError
    for a file that cannot be read."""
    raw = read_whole(path)
    try:
        return json.loads(decompress(raw).decode())
    except json.JSONDecodeError as error:
        place = TextPlace(error.lineno, error.colno)
        problem = f"no JSON: {error.msg}"
        stage = recognise_beginning(decompress(raw))
        if stage is not None and stage in (ASSEMBLER, TRACE):
            place = ""
            problem = stage.instead_of(SCHEDULE)
    except (ValueError, EOFError, RecursionError, OSError) as error:
        place = ""
        problem = f"no JSON: {error}"
    findings = [BOOK.diagnostic(path, "G001", place, problem)]
    raise ScheduleError(render(findings), findings)


def decompress(raw: bytes) -> bytes:
    """Return the content of a file, which may be compressed (gzip). Raises ValueError for a damaged or too large
    one."""
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
    """Read a schedule from a decoded document. Raises ScheduleError, with all findings in the order of their
    places, for what is none."""
    values = Values(path)
    ir = _read_top(values, document)
    if values.findings:
        findings = sorted(values.findings, key=lambda finding: finding.order)
        raise ScheduleError(render(findings), findings)
    assert ir is not None  # nothing was found
    return ir


def _read_top(values: Values, document: Any) -> IR | None:
    """Read the whole object of a schedule. Where its top level breaks G001, nothing below it is read and None is
    returned."""
    top = as_object(document)
    if top is None:
        values.note_finding("G001", "", f"a schedule is an object, not {describe(document)}")
        return None
    stage = recognise_content(top)
    if stage not in (None, SCHEDULE):
        values.note_finding("G001", "", stage.instead_of(SCHEDULE))
        return None
    dialect: Dialect = "A" if "buffersize" in top else "B"
    cores = _core_keys(values, top)
    dram = as_object(top.get("-1")) or {}
    for name in ("in", "out"):
        if as_list(dram.get(name)) is None:
            values.note_finding("G001", "-1", f"there is no '-1' with a list {name!r}: what goes through DRAM")
    sizes = _read_sizes(values, top, dialect)
    if values.findings:
        return None
    works = {core: _read_workloads(values, top[key], dialect, core, key) for core, key in cores.items()}
    arrives = values.items(top["-1"], "in", "-1", lambda v, entry, place: read_dram_in(v, entry, place, dialect))
    leaves = values.items(top["-1"], "out", "-1", lambda v, entry, place: read_dram_out(v, entry, place, dialect))
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


def _read_sizes(values: Values, top: Object, dialect: Dialect) -> dict[str, int]:
    """Read the mesh, and in dialect A the size of L2, by key. A value that is no integer of 1 or more becomes a finding
    and is left out."""
    names = ["xlen", "ylen"]
    if dialect == "A":
        names.append("buffersize")
    sizes: dict[str, int] = {}
    for name in names:
        value = top.get(name)
        if type(value) is int and 0 < value < 1 << 62:
            sizes[name] = value
        else:
            values.note_finding("G001", name, f"{name!r} is an integer of 1 or more, not {describe(value)}")
    return sizes


def _read_workloads(
    values: Values, entries: Sequence[Any], dialect: Dialect, core: int, key: str
) -> tuple[Workload, ...]:
    """Read the workloads of the core that has this key."""
    read = workload_reader(dialect)
    works: list[Workload] = []
    for at, entry in enumerate(entries):
        content = values.object(entry, f"{key}/{at}")
        if content is not None:
            works.append(read(values, content, f"{key}/{at}", core, at))
    return tuple(works)


def _core_keys(values: Values, top: Object) -> dict[int, str]:
    """Return the core ids in ascending order, each with its key in the file. Keys that name no core, and cores that are
    no list of workloads, become findings."""
    keys: dict[int, str] = {}
    for key in map(str, top):
        if key in TOP_KEYS:
            continue
        if not (key.isascii() and key.isdecimal() and str(int(key[:9])) == key):
            hint = near(key, TOP_KEYS)
            values.note_finding("G001", key[:60], f"the key {describe(key)} is neither a core nor known here", hint)
        elif not isinstance(top.get(key), list):
            values.note_finding("G001", key, f"core {key} is a list of workloads, not {describe(top.get(key))}")
        else:
            keys[int(key)] = key
    if not keys and not values.findings:
        values.note_finding("G001", "", "there is no core: no decimal key with a list of workloads")
    return dict(sorted(keys.items()))
