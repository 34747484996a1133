"""All that one machine remembers between two programs, into a snapshot and out of it (docs/snapshots.md).

That is: written entries with their format labels, pointers, flags and autoincs of queues and rams, row-major host data
for tilizers, which dynamic queues are allocated, variables and parameters of every program, sums of gradient ops that
no ram keeps, and for error texts who pushed and popped last. Dropout has no state (OPS 5.1).
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.device.bit_store import BitStore
from buda_emu.device.channel import Fifo, Ram
from buda_emu.device.store import TILE_ELEMENTS, Arrays, TileStore
from buda_emu.netlist.model import Netlist
from buda_emu.program.values import INT_MAX, INT_MIN, Kind, is_variable
from buda_emu.runtime.host.programs import Programs
from buda_emu.runtime.machine.journal import HOST, SETTINGS, Entry, Journal, Traffic
from buda_emu.runtime.machine.memory import Channel, Memory
from buda_emu.runtime.snapshots.archive import KIND, SCHEMA_VERSION, Reader, write
from buda_emu.runtime.snapshots.fingerprint import fingerprint
from buda_emu.runtime.snapshots.header_fields import Fields
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.precision import Precision, precision_named
from buda_emu.version import __version__

Tensor = NDArray[np.float32]
_KINDS: Mapping[str, Kind] = {kind.value: kind for kind in Kind}
_ROW_BYTES = 4 * TILE_ELEMENTS
_MOST = 1 << 62  # entries ever pushed


@dataclass(frozen=True, slots=True)
class Machine:
    """The parts that hold state. `gradients` is that of the executor's context."""

    netlist: Netlist
    precision: str
    memory: Memory
    programs: Programs
    gradients: dict[str, Tensor]
    journal: Journal


def save(machine: Machine, path: str | os.PathLike[str], netlist_text: bytes | None) -> None:
    """Write the state of a machine that does nothing at the moment. Raises HostError."""
    stores = _stores(machine.memory)
    flat = _flat(machine.memory)
    header = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "buda_emu": __version__,
        "precision": machine.precision,
        "netlist": {
            "sha256": fingerprint(machine.netlist), "path": machine.netlist.path, "arch": machine.netlist.arch_name
        },
        "stores": {
            name: {"tiles": store.tiles, "labels": [list(run) for run in _runs(store.labels)]}
            for name, store in stores.items()
        },
        "views": {
            name: [[slot, label] for slot, label in sorted(labels.items())]
            for name, labels in _own_labels(machine.memory).items()
        },
        "queues": {name: _pointers(channel) for name, channel in machine.memory.channels.items()},
        "flat": {name: {"slots": [[slot] for slot in slots]} for name, slots in flat.items()},
        "allocated": [[name] for name in machine.memory.allocated],
        "programs": {name: _variables(machine.programs, name) for name in machine.programs.known},
        "gradients": {name: {"tiles": len(array)} for name, array in machine.gradients.items()},
        "traffic": {name: _traffic(machine.journal.of(name)) for name in machine.memory.channels},
        "executed": [[name, count] for name, count in machine.journal.executed.items()],
    }  # fmt: skip
    arrays: dict[str, list[NDArray[Any]]] = {
        **{
            f"stores/{name}": list(chain.from_iterable(_written(store.arrays(), store.labels)))
            for name, store in stores.items()
        },
        **{f"flat/{name}": list(slots.values()) for name, slots in flat.items()},
        **{f"gradients/{name}": [array] for name, array in machine.gradients.items()},
    }
    write(path, header, netlist_text, arrays)


def check_header(reader: Reader, netlist: Netlist, precision: str) -> None:
    """Raises HostError for a snapshot of another version, netlist or precision."""
    header = Fields(reader.header, "", reader.refused)
    version = header.integer("schema_version", 0, _MOST)
    if version != SCHEMA_VERSION:
        raise reader.refused(f"its form has version {version}, this buda-emu reads version {SCHEMA_VERSION}")
    if header.text("buda_emu") != __version__:
        raise reader.refused(f"it is of buda-emu {header.text('buda_emu')}, this is {__version__}")
    if header.text("precision") != precision:
        raise reader.refused(f"it has precision {header.text('precision')}, the machine {precision}")
    of = header.at("netlist")
    if of.text("sha256") != fingerprint(netlist):
        raise reader.refused(f"it is of another netlist ({of.text('path')}, {of.text('arch')}) than {netlist.path}")


def restore(machine: Machine, reader: Reader) -> None:
    """Give the machine the state of a snapshot. Everything is read and checked before anything changes.

    Raises HostError for a file that does not fit the machine or is damaged.
    """
    check_header(reader, machine.netlist, machine.precision)
    header = Fields(reader.header, "", reader.refused)
    memory, known = machine.memory, _stores(machine.memory, written_only=False)
    runs = {name: _label_runs(header.at("stores").at(name), known.get(name)) for name in header.at("stores").names()}
    of_views = {name: _view_labels(header.at("views"), name, memory) for name in _own_labels(memory)}
    pointers = {name: _read_pointers(header.at("queues").at(name), item) for name, item in memory.channels.items()}
    slots = {name: _slots(header.at("flat").at(name), memory.channels.get(name)) for name in header.at("flat").names()}
    allocated = [name for (name,) in header.rows("allocated", str)]
    if not memory.dynamic.issuperset(allocated) or len(set(allocated)) < len(allocated):
        raise header.bad("allocates queues that are not dynamic")
    variables = {
        name: _read_variables(header.at("programs").at(name), name, machine) for name in header.at("programs").names()
    }
    traffic = {name: _read_traffic(header.at("traffic").at(name), machine.netlist) for name in memory.channels}
    executed: dict[str, int] = dict(header.rows("executed", str, int))
    if not machine.netlist.graphs.keys() >= executed.keys() or min(executed.values(), default=0) < 0:
        raise header.bad("has executed graphs that the netlist has not")
    sums = {name: _sum_tiles(header, name, machine) for name in header.at("gradients").names()}
    reader.require(f"{kind}/{name}" for kind in ("stores", "flat", "gradients") for name in header.at(kind).names())
    _check_sizes(machine, reader, {known[name]: found for name, found in runs.items()}, slots, sums)
    try:
        labels = {name: _labels(found) for name, found in runs.items()}
        tiles = {name: _read_store(reader, name, known[name], found) for name, found in labels.items()}
        flat = {name: _read_flat(reader, name, machine, found) for name, found in slots.items()}
        gradients = {name: _read_sum(reader, name, count) for name, count in sums.items()}
    except MemoryError:
        raise reader.refused("the memory for it is not to be had") from None

    # From here on nothing fails.
    for name, store in known.items():
        store.replace(tiles.get(name) or store.fresh(0), labels.get(name, []))
    for name, own in _own_labels(memory).items():
        own.clear()
        own.update(of_views[name])
    for name, channel in memory.channels.items():
        _set_pointers(channel, pointers[name])
        if channel.flat is not None:
            channel.flat.clear()
            channel.flat.update(flat.get(name, {}))
    memory.set_allocated(allocated)
    machine.programs.forget()
    for name, found in variables.items():
        machine.programs.interpreter(name).variables.set_state(*found)
    machine.gradients.clear()
    machine.gradients.update(gradients)
    machine.journal.replace(traffic, executed)


# ------------------------------------------------------------------------------------------------------- entries
def _stores(memory: Memory, *, written_only: bool = True) -> dict[str, TileStore]:
    """By the name of their base queue; dual views share one (NETLIST 1.10)."""
    found = {channel.view.store.name: channel.view.store for channel in memory.channels.values()}
    return {name: store for name, store in found.items() if not written_only or any(store.labels)}


def _runs(labels: list[str]) -> Iterator[tuple[int, int, str]]:
    """(first slice, count, label) of each run of written slices."""
    position = 0
    for label, group in groupby(labels):
        count = len(list(group))
        if label:
            yield position, count, label
        position += count


def _written(arrays: Arrays, labels: list[str]) -> Iterator[Arrays]:
    """The written slices of each array of a store, run by run."""
    for first, count, _ in _runs(labels):
        yield tuple(array[first : first + count] for array in arrays)


_Run = tuple[int, int, str]  # first slice, count, label


def _check_sizes(
    machine: Machine,
    reader: Reader,
    runs: Mapping[TileStore, list[_Run]],
    slots: Mapping[str, list[int]],
    sums: Mapping[str, int],
) -> None:
    """Nothing takes memory before this: all of it is within the machine's limit, and in the file."""
    reached = sum(store.slice_bytes(sum(found[-1][:2]) if found else 0) for store, found in runs.items())
    members = {
        **{f"stores/{s.name}": s.slice_bytes(sum(count for _, count, _ in found)) for s, found in runs.items()},
        **{f"flat/{name}": len(found) * _flat_rows(machine, name) * _ROW_BYTES for name, found in slots.items()},
        **{f"gradients/{name}": tiles * _ROW_BYTES for name, tiles in sums.items()},
    }
    rest = sum(size for name, size in members.items() if not name.startswith("stores/"))
    machine.memory.check_room(reached + rest)
    for name, size in members.items():
        reader.require_size(name, size)


def _label_runs(fields: Fields, store: TileStore | None) -> list[_Run]:
    """The written slices, in order."""
    if store is None or fields.integer("tiles", 1, _MOST) != store.tiles:
        raise fields.bad("is not a memory of this netlist")
    reached = 0
    runs: list[_Run] = fields.rows("labels", int, int, str)
    for first, count, label in runs:
        known = label == store.df if isinstance(store, BitStore) else label in FORMATS
        if first < reached or count < 1 or first + count > store.slices or not known:
            raise fields.bad("has slices that overlap, lie outside or have an unknown format")
        reached = first + count
    return runs


def _labels(runs: list[_Run]) -> list[str]:
    """One label for each slice up to the last written one."""
    labels: list[str] = []
    for first, count, label in runs:
        labels += [""] * (first - len(labels)) + [label] * count
    return labels


def _own_labels(memory: Memory) -> dict[str, dict[int, str]]:
    """Labels of entries that were pushed through a dual view."""
    views = {name: channel.view.labels for name, channel in memory.channels.items()}
    return {name: labels for name, labels in views.items() if labels is not None}


def _view_labels(fields: Fields, name: str, memory: Memory) -> dict[int, str]:
    view = memory.channels[name].view
    labels: dict[int, str] = {}
    for slot, label in fields.rows(name, int, str):
        known = label == view.store.df if isinstance(view.store, BitStore) else label in FORMATS
        if slot in labels or not 0 <= slot < view.entries or not known:
            raise fields.bad(f"has a label of {name} that is twice there, of no entry, or of an unknown format")
        labels[slot] = label
    return labels


def _read_store(reader: Reader, name: str, store: TileStore, labels: list[str]) -> Arrays:
    arrays = store.fresh(len(labels))
    written = list(_written(arrays, labels))
    reader.fill(f"stores/{name}", chain.from_iterable(written))
    if not all(map(store.may_hold, written)):
        raise reader.refused(f"stores/{name} holds codes that its format has not")
    return arrays


def _flat(memory: Memory) -> dict[str, dict[int, Tensor]]:
    return {name: channel.flat for name, channel in memory.channels.items() if channel.flat}


def _slots(fields: Fields, channel: Channel | None) -> list[int]:
    slots = [slot for (slot,) in fields.rows("slots", int)]
    entries = channel.view.entries if channel is not None and channel.flat is not None else 0
    if len(set(slots)) < len(slots) or any(not 0 <= slot < entries for slot in slots) or not entries:
        raise fields.bad("is not row-major data of a queue")
    return slots


def _flat_rows(machine: Machine, name: str) -> int:
    """Rows of 1024 elements of one entry."""
    t, height, width = machine.netlist.queues[name].blocking.element_shape
    return -(-t * height * width // TILE_ELEMENTS)


def _read_flat(reader: Reader, name: str, machine: Machine, slots: list[int]) -> dict[int, Tensor]:
    rows = _flat_rows(machine, name)
    found = {slot: np.empty((rows, TILE_ELEMENTS), np.float32) for slot in slots}
    reader.fill(f"flat/{name}", found.values())
    return found


def _sum_tiles(header: Fields, name: str, machine: Machine) -> int:
    op = machine.netlist.ops.get(name)
    if op is None or not op.gradient_op:
        raise header.bad(f"has a sum of {name}, which is not a gradient op")
    t, rows, cols = op.blocking.shape
    tiles = header.at("gradients").at(name).integer("tiles", 1, _MOST)
    if tiles != t * rows * cols:
        raise header.bad(f"has a sum of {name} with {tiles} tiles, not {t * rows * cols}")
    return tiles


def _read_sum(reader: Reader, name: str, tiles: int) -> Tensor:
    array = np.empty((tiles, TILE_ELEMENTS), np.float32)
    reader.fill(f"gradients/{name}", [array])
    return array


# ------------------------------------------------------------------------------------------------------ pointers
_FLAGS = ("prologue", "epilogue", "zero")
_RING = ("rd", "wr", "local", "local_base")
_FIFO_STEPS = ("rd_ptr_autoinc", "global_rdptr_autoinc")
_RAM_STEPS = ("global_rdptr_autoinc", "global_wrptr_autoinc")


def _pointers(channel: Channel) -> dict[str, Any]:
    flags = {name: getattr(channel, name) for name in _FLAGS}
    if isinstance(channel, Ram):
        return flags | {name: getattr(channel, name) for name in ("rd", "wr", *_RAM_STEPS)}
    steps = {name: getattr(channel, name) for name in _FIFO_STEPS}
    return flags | steps | {name: getattr(channel.ring, name) for name in _RING}


def _read_pointers(fields: Fields, channel: Channel) -> dict[str, Any]:
    found: dict[str, Any] = {name: fields.flag(name) for name in _FLAGS}
    if isinstance(channel, Ram):
        found |= {name: fields.integer(name, 0, channel.entries - 1) for name in ("rd", "wr")}
        return found | {name: fields.integer(name, 0, INT_MAX) for name in _RAM_STEPS}
    found |= {name: fields.integer(name, 0, channel.ring.limit - 1) for name in _RING}
    return found | {name: fields.integer(name, INT_MIN, INT_MAX) for name in _FIFO_STEPS}


def _set_pointers(channel: Channel, found: Mapping[str, Any]) -> None:
    for name, value in found.items():
        setattr(channel.ring if isinstance(channel, Fifo) and name in _RING else channel, name, value)


# ----------------------------------------------------------------------------------------------------- variables
def _variables(programs: Programs, name: str) -> dict[str, Any]:
    values, kinds, params = programs.interpreter(name).variables.state()
    return {
        "variables": [[variable, kinds[variable].value, value] for variable, value in values.items()],
        "params": [[param, text] for param, text in params.items()],
    }


def _read_variables(
    fields: Fields, program: str, machine: Machine
) -> tuple[dict[str, int], dict[str, Kind], dict[str, str]]:
    if program not in machine.netlist.programs:
        raise fields.bad("is not a program of the netlist")
    values: dict[str, int] = {}
    kinds: dict[str, Kind] = {}
    for name, kind, value in fields.rows("variables", str, str, int):
        if kind not in _KINDS or not INT_MIN <= value <= INT_MAX or is_variable(name):
            raise fields.bad(f"has a variable {name!r} of an unknown kind or size")
        values[name], kinds[name] = value, _KINDS[kind]
    return values, kinds, dict(fields.rows("params", str, str))


# ------------------------------------------------------------------------------------------------------- journal
def _traffic(entry: Entry) -> dict[str, Any]:
    """The place in a program is left out: it is of a run that is over."""
    return {
        "pushed": [[item.by, item.slot, item.total] for item in (entry.pushed,) if item is not None],
        "popped": [[item.by, item.slot, item.total] for item in (entry.popped,) if item is not None],
    }


def _read_traffic(fields: Fields, netlist: Netlist) -> Entry:
    def read(key: str) -> Traffic | None:
        traffic = None
        for by, slot, total in fields.rows(key, str, int, int):
            if (by not in (HOST, SETTINGS) and by not in netlist.ops) or slot < -1 or not 0 < total < _MOST:
                raise fields.bad(f"has a {key} that cannot be")
            traffic = Traffic(by, slot, None, total)
        return traffic

    return Entry(read("pushed"), read("popped"))


def netlist_of(reader: Reader, netlist: Netlist | None) -> Netlist:
    """The given netlist, or the one that the file keeps. Raises HostError where there is none, or it is not good."""
    if netlist is not None:
        return netlist
    text = reader.netlist
    if text is None:
        raise reader.refused("it keeps no netlist (its file had changed): give one, Emulator.load(path, netlist)")
    from buda_emu.netlist.load import check_bytes

    of = Fields(reader.header, "", reader.refused).at("netlist")
    found = check_bytes(text, of.text("path"), of.text("arch")).netlist
    if found is None:
        raise reader.refused("the netlist in it is refused")
    return found


def text_of(netlist: Netlist) -> bytes | None:
    """The netlist's file, if it still says the same."""
    from buda_emu.netlist.load import check_bytes
    from buda_emu.netlist.yaml_reader import UnreadableError, read_bytes

    try:
        data = read_bytes(netlist.path)
    except (UnreadableError, OSError):
        return None
    again = check_bytes(data, netlist.path, netlist.arch_name).netlist
    return data if again is not None and fingerprint(again) == fingerprint(netlist) else None


def precision_of(reader: Reader) -> Precision:
    """The precision of the machine that was saved."""
    fields = Fields(reader.header, "", reader.refused)
    found = precision_named(fields.text("precision"))
    if found is None:
        raise fields.bad("names a precision that is not known")
    return found
