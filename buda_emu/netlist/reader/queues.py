"""The `queues` section (NETLIST 1.3)."""

from functools import lru_cache, partial
from typing import Any

from buda_emu.checker.suggest import near
from buda_emu.checker.text import quoted
from buda_emu.netlist.fields import QUEUE_FIELDS
from buda_emu.netlist.model import Buffer, Queue, Tm
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.maps import body_of, named, read_fields
from buda_emu.netlist.reader.tms import read_tms
from buda_emu.netlist.reader.values import NOT_INTEGER, integer, kind_of, readers, text_of
from buda_emu.netlist.scalars import parse_address
from buda_emu.spec.blocking import FULL_TILE, Blocking

NO_ALLOCATION, MISALIGNED, PORTS, UNKNOWN, DUPLICATE, BAD_ALLOCATION = "V004", "V005", "V006", "V008", "V009", "V185"
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
    return Blocking(grid_size, t, mblock, ublock, ublock_order, tile_dim)


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
            context.report(UNKNOWN, key_node, f"unknown field {quoted(key)}", hint)

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
