"""Workloads of dialect B: no addresses, one ifmap for all operands, absolute boxes, sizes in bits (facts GEMINI 3)."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from buda_emu.gemini.json_values import a_list
from buda_emu.gemini.model import Ifmap, Source, Tensor, TensorKind, Weight, Workload
from buda_emu.gemini.reader.dram import channels, ofmap, whole
from buda_emu.gemini.reader.values import PLACES, TENSORS, Object, Values

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
