"""Where queues, rams and programs stand, in a snapshot: pointers, variables, and who pushed and popped last."""

from collections.abc import Mapping
from typing import Any

from buda_emu.device.channel import Fifo, Ram
from buda_emu.netlist.model import Netlist
from buda_emu.program.values import Kind
from buda_emu.runtime.host.programs import Programs
from buda_emu.runtime.machine.journal import HOST, SETTINGS, Entry, Traffic
from buda_emu.runtime.machine.memory import Channel
from buda_emu.runtime.snapshots.header_fields import MOST, Fields
from buda_emu.spec.operands import INT_MAX, INT_MIN, is_variable

_KINDS: Mapping[str, Kind] = {kind.value: kind for kind in Kind}
_FLAGS = ("prologue", "epilogue", "zero")
_RING = ("rd", "wr", "local", "local_base")
_FIFO_STEPS = ("rd_ptr_autoinc", "global_rdptr_autoinc")
_RAM_STEPS = ("global_rdptr_autoinc", "global_wrptr_autoinc")


def pointers_of(channel: Channel) -> dict[str, Any]:
    """Flags, pointers and steps of a queue or ram."""
    flags = {name: getattr(channel, name) for name in _FLAGS}
    if isinstance(channel, Ram):
        return flags | {name: getattr(channel, name) for name in ("rd", "wr", *_RAM_STEPS)}
    steps = {name: getattr(channel, name) for name in _FIFO_STEPS}
    return flags | steps | {name: getattr(channel.ring, name) for name in _RING}


def read_pointers(fields: Fields, channel: Channel) -> dict[str, Any]:
    """The same out of a file. Raises HostError for what cannot be."""
    found: dict[str, Any] = {name: fields.flag(name) for name in _FLAGS}
    if isinstance(channel, Ram):
        found |= {name: fields.integer(name, 0, channel.entries - 1) for name in ("rd", "wr")}
        return found | {name: fields.integer(name, 0, INT_MAX) for name in _RAM_STEPS}
    found |= {name: fields.integer(name, 0, channel.ring.limit - 1) for name in _RING}
    return found | {name: fields.integer(name, INT_MIN, INT_MAX) for name in _FIFO_STEPS}


def set_pointers(channel: Channel, found: Mapping[str, Any]) -> None:
    """Give a queue or ram what `read_pointers` found."""
    for name, value in found.items():
        setattr(channel.ring if isinstance(channel, Fifo) and name in _RING else channel, name, value)


def variables_of(programs: Programs, name: str) -> dict[str, Any]:
    """Variables and parameters of a program."""
    values, kinds, params = programs.interpreter(name).variables.state()
    return {
        "variables": [[variable, kinds[variable].value, value] for variable, value in values.items()],
        "params": [[param, text] for param, text in params.items()],
    }


def read_variables(
    fields: Fields, program: str, netlist: Netlist
) -> tuple[dict[str, int], dict[str, Kind], dict[str, str]]:
    """Values and kinds of variables, and parameters. Raises HostError for what cannot be."""
    if program not in netlist.programs:
        raise fields.bad("is not a program of the netlist")
    values: dict[str, int] = {}
    kinds: dict[str, Kind] = {}
    for name, kind, value in fields.rows("variables", str, str, int):
        if kind not in _KINDS or not INT_MIN <= value <= INT_MAX or is_variable(name):
            raise fields.bad(f"has a variable {name!r} of an unknown kind or size")
        values[name], kinds[name] = value, _KINDS[kind]
    return values, kinds, dict(fields.rows("params", str, str))


def traffic_of(entry: Entry) -> dict[str, Any]:
    """The place in a program is left out: it is of a run that is over."""
    return {
        "pushed": [[item.by, item.slot, item.total] for item in (entry.pushed,) if item is not None],
        "popped": [[item.by, item.slot, item.total] for item in (entry.popped,) if item is not None],
    }


def read_traffic(fields: Fields, netlist: Netlist) -> Entry:
    """Who pushed and popped last. Raises HostError for what cannot be."""

    def read(key: str) -> Traffic | None:
        traffic = None
        for by, slot, total in fields.rows(key, str, int, int):
            if (by not in (HOST, SETTINGS) and by not in netlist.ops) or slot < -1 or not 0 < total < MOST:
                raise fields.bad(f"has a {key} that cannot be")
            traffic = Traffic(by, slot, None, total)
        return traffic

    return Entry(read("pushed"), read("popped"))
