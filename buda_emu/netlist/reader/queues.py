"""The `queues` section (NETLIST 1.3)."""

from collections.abc import Sequence as Series
from functools import lru_cache, partial
from typing import Any, Literal

from buda_emu.netlist.fields import QUEUE_FIELDS
from buda_emu.netlist.model import Buffer, Queue, Tm
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.values import (
    NOT_INTEGER,
    body_of,
    integer,
    keyed,
    kind_of,
    named,
    read_fields,
    readers,
    text_of,
)
from buda_emu.netlist.yaml_text import leading_integer, parse_address, parse_float, parse_int
from buda_emu.spec.blocking import FULL_TILE, Blocking
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import quote

MALFORMED = "V038"
SLICES = ("hslice", "hstack", "vslice", "vstack")
BROADCAST_DIMS = ("r", "c", "z")
TM_WORDS = ("transpose", "broadcast", *SLICES, "tile_broadcast", "pad")

Owner = Literal["queue", "op", "scheduled op"]


def read_tms(context: Context, name: str, node: Node, owner: Owner) -> list[Tm]:
    """The TMs of a list, in order. Any scalar, `None` and nothing included, is a list without TMs."""
    if isinstance(node, Scalar):
        return []
    if isinstance(node, Mapping):
        context.report(MALFORMED, node, f"{name} needs a list of TMs, not a map")
        return []
    tms: list[Tm] = []
    for item in node.items:
        if isinstance(item, Mapping):
            for word, key, value in keyed(context, item):
                tms.extend(_with_argument(context, name, word, key, value, owner))
        elif isinstance(item, Scalar) and text_of(item) == "transpose":
            tms.append(Tm("transpose", (), item.mark))
        else:
            hint = near(item.text, TM_WORDS) if isinstance(item, Scalar) else ""
            if isinstance(item, Scalar) and item.text in TM_WORDS:
                hint = f"it needs an argument: {{{item.text}: ...}}"
            context.report(MALFORMED, item, f"{name}: {kind_of(item)} is not a TM", hint)
    return tms


def _with_argument(context: Context, name: str, word: str, key: Scalar, value: Node, owner: Owner) -> list[Tm]:
    if word == "broadcast":
        return _broadcast(context, name, key, value)
    if word in SLICES:
        count = parse_int(value.text) if isinstance(value, Scalar) else None
        if count is None:
            context.report(MALFORMED, value, f"{name}: {word} needs an integer, not {kind_of(value)}")
            return []
        return [Tm(word, (count,), key.mark)]
    if word == "pad":
        return _pad(context, name, key, value)
    if word == "tile_broadcast" and owner == "op":
        context.report(MALFORMED, key, f"{name}: tile_broadcast exists in fused schedules only")
    elif word == "tile_broadcast" and isinstance(value, Scalar):
        return [Tm(word, (text_of(value),), key.mark)]
    elif word == "tile_broadcast":
        context.report(MALFORMED, value, f"{name}: tile_broadcast needs r, c or rc, not {kind_of(value)}")
    else:
        hint = "transpose takes no argument" if word == "transpose" else near(word, TM_WORDS)
        context.report(MALFORMED, key, f"{name}: {quote(word)} is not a TM", hint)
    return []


def _broadcast(context: Context, name: str, key: Scalar, value: Node) -> list[Tm]:
    """One TM for each key. The arguments of one map accumulate: the second TM holds both numbers (NETLIST 1.6)."""
    if isinstance(value, Sequence):
        context.report(MALFORMED, value, f"{name}: broadcast needs a map such as {{r: 2}}, not a list")
        return []
    tms: list[Tm] = []
    counts: tuple[int, ...] = ()
    for dim, dim_key, item in keyed(context, value) if isinstance(value, Mapping) else ():
        count = parse_int(item.text) if isinstance(item, Scalar) else None
        if dim not in BROADCAST_DIMS:
            context.report(MALFORMED, dim_key, f"{name}: broadcast has no dimension {quote(dim)}, only r, c and z")
        elif count is None:
            context.report(MALFORMED, item, f"{name}: broadcast {dim} needs an integer, not {kind_of(item)}")
        else:
            counts = (*counts, count)
            tms.append(Tm("broadcast", (dim, *counts), key.mark))
    return tms


def _pad(context: Context, name: str, key: Scalar, value: Node) -> list[Tm]:
    items = value.items if isinstance(value, Sequence) and len(value.items) == 3 else []
    rows, columns, fill = [item.text if isinstance(item, Scalar) else "" for item in items] or ("", "", "")
    rt = parse_int(rows)
    ct = parse_int(columns)
    number = parse_float(fill)
    if rt is None or ct is None or number is None:
        context.report(MALFORMED, value, f"{name}: pad needs [rows, columns, value]")
        return []
    return [Tm("pad", (rt, ct, number), key.mark)]


def input_index(context: Context, key: str, key_node: Scalar, inputs: int | None) -> int | None:
    """N of `input_N_tms` and its like: the integer between the first and the last underscore, below `inputs`.

    None when there is none, which is reported; with `inputs` None (they could not be read) the index is not judged.
    """
    first = key.find("_")
    last = key.rfind("_")
    index = leading_integer(key[first + 1 : last]) if first < last else None
    if index is None:
        hint = "write input_0_tms, input_1_pad, ..."
        context.report(MALFORMED, key_node, f"{quote(key)} does not name an input", hint)
        return None
    if inputs is None:
        return None
    if not 0 <= index < inputs:
        context.report(MALFORMED, key_node, f"{key}: there is no input {index}, the op has {inputs}")
        return None
    return index


def check_transposes(
    context: Context, name: str, tms: Series[Tm], op_type: str, index: int, in_df: tuple[str, ...]
) -> None:
    """Report every transpose that this operand cannot have (NETLIST 1.6, OPS 7.4). An unknown type is not judged."""
    transposes = [tm for tm in tms if tm.name == "transpose"]
    if not transposes or op_type not in OP_TYPES:
        return
    refusal = OP_TYPES[op_type].transpose_refusal(index, context.arch, next(iter(in_df), ""))
    for tm in transposes if refusal else ():
        context.report(MALFORMED, tm.mark, f"{name}: {refusal}")


NO_ALLOCATION = "V004"
MISALIGNED = "V005"
PORTS = "V006"
UNKNOWN = "V008"
DUPLICATE = "V009"
BAD_ALLOCATION = "V185"
BLACKHOLE_ALIGNMENT = 64
_READERS = readers(QUEUE_FIELDS)


def read_queues(
    context: Context, node: Node, queues: dict[str, Queue], device_lists: dict[str, tuple[int, ...]]
) -> None:
    """Read every queue into `queues`; `device_lists` gets the chips of those written with a list (NETLIST 1.7)."""
    for name, key, value in named(context, node, "queue", DUPLICATE, queues):
        read = partial(_read_queue, context, name, key, value)
        queues[name], devices = context.kept_or(value, (name, id(key), context.arch), read)
        if devices is not None:
            device_lists[name] = devices


@lru_cache(4096)
def blocking_of(
    grid_size: tuple[int, int],
    t: int,
    mblock: tuple[int, int],
    ublock: tuple[int, int],
    ublock_order: str,
    tile_dim: tuple[int, int],
) -> Blocking:
    """One Blocking for all objects that are cut the same way."""
    return Blocking(
        grid_size=grid_size, t=t, mblock=mblock, ublock=ublock, ublock_order=ublock_order, tile_dim=tile_dim
    )


def _read_queue(context: Context, name: str, name_node: Scalar, node: Node) -> tuple[Queue, tuple[int, ...] | None]:
    """A queue, and the chips of one that is written with a list of them."""
    findings = context.findings
    body = body_of(context, "a queue", node)
    buffers: list[Buffer] = []
    tms: list[Tm] = []
    locs = [""]

    def other(key: str, key_node: Scalar, value: Node) -> None:
        if key == "loc":
            locs.append(text_of(value) if isinstance(value, Scalar) else kind_of(value))
            _read_allocations(context, locs[-1], key_node, body, buffers)
        elif key == "input_tms":
            tms.extend(read_tms(context, key, value, "queue"))
        elif key not in ("dram", "host"):  # those are read where `loc` asks for them
            hint = "YAML merge keys are not followed" if key == "<<" else near(key, QUEUE_FIELDS)
            context.report(UNKNOWN, key_node, f"unknown field {quote(key)}", hint)

    values = read_fields(context, body, _READERS, other)
    device: int | tuple[int, ...] = values.pop("target_device", -1)
    device, devices = (-1, device) if isinstance(device, tuple) else (device, None)
    loc = locs[-1]
    intact = context.findings == findings
    if loc != "host":  # NETLIST 11.2 B12: a host queue's ports are not looked at
        for field in ("read_ports", "write_ports"):
            if field in values:
                _check_ports(context, field, values[field], body, len(buffers) if intact else None)
    queue = Queue(
        name=name,
        written_name=name,
        blocking=blocking_of(
            values.pop("grid_size", (0, 0)),
            values.pop("t", -1),
            values.pop("mblock", (-1, -1)),
            values.pop("ublock", (-1, -1)),
            values.pop("ublock_order", "r"),
            values.pop("tile_dim", FULL_TILE),
        ),
        target_device=device,
        loc=loc,
        buffers=tuple(buffers),
        input_tms=tuple(tms),
        source=body,
        name_node=name_node,
        broken=context.findings > findings,
        **values,
    )
    return queue, devices


def _read_allocations(context: Context, loc: str, loc_key: Scalar, body: Mapping, buffers: list[Buffer]) -> None:
    """Append the buffers of the first `dram` or `host` list (NETLIST 11.3 C1). Another word allocates nothing."""
    if loc not in ("dram", "host"):
        return
    node = next((value for key, value in body.pairs if isinstance(key, Scalar) and key.text == loc), None)
    if not isinstance(node, Sequence) or not node.items:
        place: Any = loc_key if node is None else node
        context.report(NO_ALLOCATION, place, f"loc is {loc} but there is no list of allocations under {loc}")
        return
    for item in node.items:
        buffer = _read_buffer(context, loc, item)
        if buffer is not None:
            buffers.append(buffer)


def _read_buffer(context: Context, loc: str, item: Node) -> Buffer | None:
    if loc == "host" and isinstance(item, Scalar):
        address = _address(context, item)
        return Buffer(0, address) if address is not None else None
    # NETLIST 11.2 B6: a dram pair may have more values, a host pair not
    if not isinstance(item, Sequence) or len(item.items) < 2 or (loc == "host" and len(item.items) > 2):
        what = "an address or [channel, address]" if loc == "host" else "[channel, address]"
        context.report(BAD_ALLOCATION, item, f"an allocation in {loc} needs {what}, not {_found(item)}")
        return None
    channel = integer(context, "a channel", item.items[0])
    address = _address(context, item.items[1])
    if channel is None or address is None:
        return None
    if loc == "dram" and context.arch == "blackhole" and address % BLACKHOLE_ALIGNMENT:
        message = f"DRAM address {address:#x} is not a multiple of {BLACKHOLE_ALIGNMENT}, which blackhole needs"
        context.report(MISALIGNED, item.items[1], message)
    return Buffer(channel, address)


def _found(item: Node) -> str:
    return f"a list of {len(item.items)}" if isinstance(item, Sequence) else kind_of(item)


def _address(context: Context, node: Node) -> int | None:
    address = parse_address(node.text) if isinstance(node, Scalar) else None
    if address is None:
        context.report(NOT_INTEGER, node, f"an address needs an integer from 0 to 0xffffffff, not {kind_of(node)}")
    return address


def _check_ports(context: Context, field: str, ports: tuple[int, ...], body: Mapping, buffers: int | None) -> None:
    place = body.find(field) or body
    if context.arch == "grayskull":
        context.report(PORTS, place, f"grayskull has no {field}")
    elif any(not 0 <= port <= 2 for port in ports):
        context.report(PORTS, place, f"{field} are 0, 1 or 2")
    elif buffers is not None and len(ports) != buffers:
        context.report(PORTS, place, f"{field} needs one port for each of the {buffers} buffers, not {len(ports)}")
