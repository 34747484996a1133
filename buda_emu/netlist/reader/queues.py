"""Read the `queues` section (NETLIST 1.3), and lists of TMs (NETLIST 1.6)."""

import re
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
    kind_of,
    read_fields,
    read_objects,
    read_pairs,
    readers,
    text_of,
)
from buda_emu.netlist.yaml_text import leading_integer, parse_address, parse_float, parse_int
from buda_emu.spec.archs import ARCHS
from buda_emu.spec.blocking import FULL_TILE, Blocking
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.fix import replacing
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import quote

MALFORMED = "V038"
SLICES = ("hslice", "hstack", "vslice", "vstack")
BROADCAST_DIMS = ("r", "c", "z")
TM_WORDS = ("transpose", "broadcast", *SLICES, "tile_broadcast", "pad")

Owner = Literal["queue", "op", "scheduled op"]


def read_tms(context: Context, name: str, node: Node, owner: Owner) -> list[Tm]:
    """Read the list of TMs in the field `name` of a queue, op or scheduled op, in order. Malformed ones are reported
    and left out. Any scalar, `None` and an empty value included, is a list without TMs."""
    if isinstance(node, Scalar):
        return []
    if isinstance(node, Mapping):
        context.report(MALFORMED, node, f"{name} needs a list of TMs, not a map")
        return []
    tms: list[Tm] = []
    for entry in node.items:
        if isinstance(entry, Mapping):
            for word, key, value in read_pairs(context, entry):
                tms.extend(_read_tm(context, name, word, key, value, owner))
        elif isinstance(entry, Scalar) and text_of(entry) == "transpose":
            tms.append(Tm("transpose", (), entry.mark))
        else:
            context.report(MALFORMED, entry, f"{name}: {kind_of(entry)} is not a TM", _tm_hint(entry))
    return tms


def _tm_hint(entry: Node) -> str:
    """Return the hint about an entry of a list of TMs that is neither `transpose` nor a map, "" for none."""
    if not isinstance(entry, Scalar):
        return ""
    if entry.text in TM_WORDS:
        return f"it needs an argument: {{{entry.text}: ...}}"
    return near(entry.text, TM_WORDS)


def _read_tm(context: Context, name: str, word: str, key: Scalar, value: Node, owner: Owner) -> list[Tm]:
    """Read a TM {word: argument} in the list `name`. Only a broadcast may be several TMs; a finding leaves none."""
    if word == "broadcast":
        return _read_broadcast(context, name, key, value)
    if word in SLICES:
        count = _parse_count(value)
        if count is None:
            context.report(MALFORMED, value, f"{name}: {word} needs an integer, not {kind_of(value)}")
            return []
        return [Tm(word, (count,), key.mark)]
    if word == "pad":
        return _read_pad(context, name, key, value)
    if word == "tile_broadcast":
        return _read_tile_broadcast(context, name, key, value, owner)
    if word == "transpose":
        hint = "transpose takes no argument"
    else:
        hint = near(word, TM_WORDS)
    context.report(MALFORMED, key, f"{name}: {quote(word)} is not a TM", hint)
    return []


def _parse_count(node: Node) -> int | None:
    """Return the integer that a node holds, or None if it holds none; nothing is reported."""
    if isinstance(node, Scalar):
        return parse_int(node.text)
    return None


def _read_tile_broadcast(context: Context, name: str, key: Scalar, value: Node, owner: Owner) -> list[Tm]:
    """Read the TM `tile_broadcast` with its argument, which the rules check; an op cannot have it."""
    if owner == "op":
        context.report(MALFORMED, key, f"{name}: tile_broadcast exists in fused schedules only")
    elif isinstance(value, Scalar):
        return [Tm("tile_broadcast", (text_of(value),), key.mark)]
    else:
        context.report(MALFORMED, value, f"{name}: tile_broadcast needs r, c or rc, not {kind_of(value)}")
    return []


def _read_broadcast(context: Context, name: str, key: Scalar, value: Node) -> list[Tm]:
    """Return one TM for each key of a map such as {r: 2, c: 3}; what is malformed is reported and left out. The
    arguments of one map accumulate: the second TM holds both numbers (NETLIST 1.6)."""
    if isinstance(value, Sequence):
        context.report(MALFORMED, value, f"{name}: broadcast needs a map such as {{r: 2}}, not a list")
        return []
    if isinstance(value, Scalar):
        return []
    tms: list[Tm] = []
    counts: tuple[int, ...] = ()
    for dim, dim_key, argument in read_pairs(context, value):
        count = _parse_count(argument)
        if dim not in BROADCAST_DIMS:
            context.report(MALFORMED, dim_key, f"{name}: broadcast has no dimension {quote(dim)}, only r, c and z")
        elif count is None:
            context.report(MALFORMED, argument, f"{name}: broadcast {dim} needs an integer, not {kind_of(argument)}")
        else:
            counts = (*counts, count)
            tms.append(Tm("broadcast", (dim, *counts), key.mark))
    return tms


def _read_pad(context: Context, name: str, key: Scalar, value: Node) -> list[Tm]:
    """Read `pad: [rows, columns, value]` among the TMs of an op or queue; no TM after a finding."""
    texts = ["", "", ""]
    if isinstance(value, Sequence) and len(value.items) == 3:
        texts = [argument.text if isinstance(argument, Scalar) else "" for argument in value.items]
    rt = parse_int(texts[0])
    ct = parse_int(texts[1])
    number = parse_float(texts[2])
    if rt is None or ct is None or number is None:
        context.report(MALFORMED, value, f"{name}: pad needs [rows, columns, value]")
        return []
    return [Tm("pad", (rt, ct, number), key.mark)]


def input_index(context: Context, key: str, key_node: Scalar, inputs: int | None) -> int | None:
    """Return N of `input_N_tms` and its like: the integer between the first and the last underscore, below `inputs`.

    None, after a finding, if there is no such integer. None as well if `inputs`, the number of inputs, is not known.
    """
    first = key.find("_")
    last = key.rfind("_")
    if first < last:
        index = leading_integer(key[first + 1 : last])
    else:
        index = None
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
    """Report every transpose among the TMs `name` that operand `index` of an op type cannot have (NETLIST 1.6, OPS
    7.4). Unknown op types are not checked; `in_df` are the formats of the op's inputs.
    """
    transposes = [tm for tm in tms if tm.name == "transpose"]
    if not transposes or op_type not in OP_TYPES:
        return
    refusal = OP_TYPES[op_type].transpose_refusal(index, context.arch, next(iter(in_df), ""))
    if refusal:
        for tm in transposes:
            context.report(MALFORMED, tm.mark, f"{name}: {refusal}")


NO_ALLOCATION = "V004"
MISALIGNED = "V005"
PORTS = "V006"
UNKNOWN = "V008"
DUPLICATE = "V009"
BAD_ALLOCATION = "V185"
BLACKHOLE_ALIGNMENT = ARCHS["blackhole"].alignment
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{4,8}")
_READERS = readers(QUEUE_FIELDS)


def read_queues(
    context: Context, node: Node, queues: dict[str, Queue], device_lists: dict[str, tuple[int, ...]]
) -> None:
    """Read every queue into `queues`; `device_lists` receives the chips of queues that have a list of them (NETLIST
    1.7)."""
    for name, key, value in read_objects(context, node, "queue", DUPLICATE, queues):
        read = partial(_read_queue, context, name, key, value)
        queues[name], devices = context.reuse_or_read(value, (name, id(key), context.arch), read)
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
    """Return the Blocking with these sizes; objects with the same sizes share one."""
    return Blocking(
        grid_size=grid_size, t=t, mblock=mblock, ublock=ublock, ublock_order=ublock_order, tile_dim=tile_dim
    )


def _read_queue(context: Context, name: str, name_node: Scalar, node: Node) -> tuple[Queue, tuple[int, ...] | None]:
    """Read a queue. Returns it, and the chips if `target_device` is a list of them."""
    findings = context.findings
    body = body_of(context, "a queue", node)
    buffers: list[Buffer] = []
    tms: list[Tm] = []
    locs = [""]

    def other(key: str, key_node: Scalar, value: Node) -> None:
        """Read location, buffers and TMs of the queue, and report an unknown field."""
        if key == "loc":
            locs.append(text_of(value) if isinstance(value, Scalar) else kind_of(value))
            _read_allocations(context, locs[-1], key_node, body, buffers)
        elif key == "input_tms":
            tms.extend(read_tms(context, key, value, "queue"))
        elif key not in ("dram", "host"):  # those are read where `loc` asks for them
            if key == "<<":
                hint = "YAML merge keys are not followed"
            else:
                hint = near(key, QUEUE_FIELDS)
            context.report(UNKNOWN, key_node, f"unknown field {quote(key)}", hint)

    values = read_fields(context, body, _READERS, other)
    device: int | tuple[int, ...] = values.pop("target_device", -1)
    devices: tuple[int, ...] | None = None
    if isinstance(device, tuple):
        devices = device
        device = -1
    loc = locs[-1]
    if loc != "host":  # NETLIST 11.2 B12: the ports of a host queue are not checked
        buffer_count = len(buffers) if context.findings == findings else None
        _check_all_ports(context, values, body, buffer_count)
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


def _check_all_ports(context: Context, values: dict[str, Any], body: Mapping, buffer_count: int | None) -> None:
    """Check the read and write ports that a queue has, against its buffers unless their number is not sure (None)."""
    for field in ("read_ports", "write_ports"):
        if field in values:
            _check_ports(context, field, values[field], body, buffer_count)


def _read_allocations(context: Context, loc: str, loc_key: Scalar, body: Mapping, buffers: list[Buffer]) -> None:
    """Append the buffers of the first `dram` or `host` list (NETLIST 11.3 C1). Any other `loc` allocates nothing."""
    if loc not in ("dram", "host"):
        return
    node = next((value for key, value in body.pairs if isinstance(key, Scalar) and key.text == loc), None)
    if not isinstance(node, Sequence) or not node.items:
        place: Any = loc_key if node is None else node
        context.report(NO_ALLOCATION, place, f"loc is {loc} but there is no list of allocations under {loc}")
        return
    for allocation in node.items:
        buffer = _read_buffer(context, loc, allocation)
        if buffer is not None:
            buffers.append(buffer)


def _read_buffer(context: Context, loc: str, node: Node) -> Buffer | None:
    """Read one allocation, [channel, address] or on the host an address; None after a finding."""
    if loc == "host" and isinstance(node, Scalar):
        return _read_host_buffer(context, node)
    values = node.items if isinstance(node, Sequence) else []
    if len(values) < 2 or (loc == "host" and len(values) > 2):  # NETLIST 11.2 B6: dram pairs may have more values
        _report_allocation(context, loc, node)
        return None
    channel = integer(context, "a channel", values[0])
    address = _read_address(context, values[1])
    if channel is None or address is None:
        return None
    if loc == "dram":
        _check_alignment(context, address, values[1])
    return Buffer(channel, address)


def _read_host_buffer(context: Context, node: Scalar) -> Buffer | None:
    """Read an allocation on the host that is an address alone; None after a finding."""
    address = _read_address(context, node)
    if address is None:
        return None
    return Buffer(0, address)


def _check_alignment(context: Context, address: int, node: Node) -> None:
    """Report an address in DRAM that the architecture cannot have."""
    if context.arch == "blackhole" and address % BLACKHOLE_ALIGNMENT:
        message = f"DRAM address {address:#x} is not a multiple of {BLACKHOLE_ALIGNMENT}, which blackhole needs"
        context.report(MISALIGNED, node, message)


def _report_allocation(context: Context, loc: str, node: Node) -> None:
    """Report an allocation that has another form than its memory needs."""
    if loc == "host":
        form = "an address or [channel, address]"
    else:
        form = "[channel, address]"
    if isinstance(node, Sequence):
        actual = f"a list of {len(node.items)}"
    else:
        actual = kind_of(node)
    context.report(BAD_ALLOCATION, node, f"an allocation in {loc} needs {form}, not {actual}")


def _read_address(context: Context, node: Node) -> int | None:
    """Return the 32-bit address that a node holds; None after a finding."""
    if isinstance(node, Scalar):
        address = parse_address(node.text)
    else:
        address = None
    if address is None:
        message = f"an address needs an integer from 0 to 0xffffffff, not {kind_of(node)}"
        context.report(NOT_INTEGER, node, message, _address_hint(node))
    return address


def _address_hint(node: Node) -> str:
    """Return the hint to write 0x where an address has the digits of a hexadecimal number, else ""."""
    if not isinstance(node, Scalar) or _HEXADECIMAL.fullmatch(node.text) is None:
        return ""
    return replacing(f"write 0x{node.text}", node.text, f"0x{node.text}")


def _check_ports(context: Context, field: str, ports: tuple[int, ...], body: Mapping, buffers: int | None) -> None:
    """Report DRAM ports that the architecture or the queue cannot have (V006). `buffers` is the number of the
    queue's buffers, None where it is not sure.
    """
    place = body.find(field) or body
    if context.arch == "grayskull":
        context.report(PORTS, place, f"grayskull has no {field}")
    elif any(not 0 <= port <= 2 for port in ports):
        context.report(PORTS, place, f"{field} are 0, 1 or 2")
    elif buffers is not None and len(ports) != buffers:
        context.report(PORTS, place, f"{field} needs one port for each of the {buffers} buffers, not {len(ports)}")
