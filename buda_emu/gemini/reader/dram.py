"""What goes through DRAM: the lists below "-1" (facts GEMINI 2.1, 3); boxes and destinations of both dialects."""

from typing import Any

from buda_emu.gemini.boxes import Box
from buda_emu.gemini.json_values import a_list
from buda_emu.gemini.model import Destination, Dialect, DramIn, DramOut, Ofmap, OutKind, PlaceKind
from buda_emu.gemini.reader.values import NOWHERE, OUTS, PLACES, Object, Values


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
