"""All that one machine remembers between two programs, into a snapshot and out of it (docs/run/snapshots.md).

That is: written entries with their format labels, pointers, flags and autoincs of queues and rams, row-major host data
for tilizers, which dynamic queues are allocated, variables and parameters of every program, sums of gradient ops that
no ram keeps, and for error texts who pushed and popped last. Dropout has no state (OPS 5.1).
"""

import os
from dataclasses import dataclass
from itertools import chain
from typing import Any

from numpy.typing import NDArray

from buda_emu.netlist.load import check_bytes
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.yaml_reader import UnreadableError, read_bytes
from buda_emu.runtime.host.programs import Programs
from buda_emu.runtime.machine.journal import Journal
from buda_emu.runtime.machine.memory import Memory
from buda_emu.runtime.snapshots.archive import KIND, SCHEMA_VERSION, Reader, write
from buda_emu.runtime.snapshots.beginning import (
    Beginning,
    Begun,
    Holding,
    fillers,
    read_reference,
    reference,
    require_image,
)
from buda_emu.runtime.snapshots.entries import (
    Tensor,
    changing,
    check_sizes,
    labels_of,
    own_labels,
    read_label_runs,
    read_row_major,
    read_slots,
    read_store,
    read_sum,
    read_sum_tiles,
    read_view_labels,
    row_major,
    runs_of_labels,
    stores,
    written,
)
from buda_emu.runtime.snapshots.fingerprint import fingerprint
from buda_emu.runtime.snapshots.header_fields import MOST, Fields
from buda_emu.runtime.snapshots.pointers import (
    pointers_of,
    read_pointers,
    read_traffic,
    read_variables,
    set_pointers,
    traffic_of,
    variables_of,
)
from buda_emu.spec.precision import Precision, precision_named
from buda_emu.version import __version__


@dataclass(frozen=True, slots=True)
class Machine:
    """The parts that hold state. `gradients` is that of the executor's context."""

    netlist: Netlist
    precision: str
    memory: Memory
    programs: Programs
    gradients: dict[str, Tensor]
    journal: Journal
    holding: Holding
    begun: Begun | None = None


def unchanged_of(machine: Machine) -> frozenset[str]:
    """The stores that still hold what the machine's image has."""
    return machine.begun.unchanged(machine.netlist, machine.memory) if machine.begun is not None else frozenset()


def save(machine: Machine, path: str | os.PathLike[str], netlist_text: bytes | None) -> None:
    """Write the state of a machine that does nothing at the moment. Raises HostError."""
    held = stores(machine.memory)
    unchanged = unchanged_of(machine)
    flat = row_major(machine.memory)
    header = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "buda_emu": __version__,
        "precision": machine.precision,
        "netlist": {
            "sha256": fingerprint(machine.netlist),
            "path": machine.netlist.path,
            "arch": machine.netlist.arch_name,
        },
        "image": reference(machine.begun, unchanged),
        "stores": {
            name: {"tiles": store.tiles, "labels": [list(run) for run in runs_of_labels(store.labels)]}
            for name, store in held.items()
        },
        "views": {
            name: [[slot, label] for slot, label in sorted(labels.items())]
            for name, labels in own_labels(machine.memory).items()
        },
        "queues": {name: pointers_of(channel) for name, channel in machine.memory.channels.items()},
        "flat": {name: {"slots": [[slot] for slot in slots]} for name, slots in flat.items()},
        "allocated": [[name] for name in machine.memory.allocated],
        "programs": {name: variables_of(machine.programs, name) for name in machine.programs.known},
        "gradients": {name: {"tiles": len(array)} for name, array in machine.gradients.items()},
        "traffic": {name: traffic_of(machine.journal.of(name)) for name in machine.memory.channels},
        "executed": [[name, count] for name, count in machine.journal.executed.items()],
    }
    arrays: dict[str, list[NDArray[Any]]] = {
        **{
            f"stores/{name}": list(chain.from_iterable(written(store.arrays(), store.labels)))
            for name, store in held.items()
            if name not in unchanged
        },
        **{f"flat/{name}": list(slots.values()) for name, slots in flat.items()},
        **{f"gradients/{name}": [array] for name, array in machine.gradients.items()},
    }
    write(path, header, netlist_text, arrays)


def check_header(reader: Reader, netlist: Netlist, precision: str) -> None:
    """Raises HostError for a snapshot of another version, netlist or precision."""
    header = Fields(reader.header, "", reader.refused)
    version = header.integer("schema_version", 0, MOST)
    if version != SCHEMA_VERSION:
        raise reader.refused(f"its form has version {version}, this buda-emu reads version {SCHEMA_VERSION}")
    if header.text("buda_emu") != __version__:
        raise reader.refused(f"it is of buda-emu {header.text('buda_emu')}, this is {__version__}")
    if header.text("precision") != precision:
        raise reader.refused(f"it has precision {header.text('precision')}, the machine {precision}")
    of = header.at("netlist")
    if of.text("sha256") != fingerprint(netlist):
        raise reader.refused(f"it is of another netlist ({of.text('path')}, {of.text('arch')}) than {netlist.path}")


def restore(machine: Machine, reader: Reader, image: Beginning | None = None) -> Begun | None:
    """Give the machine the state of a snapshot. Everything is read and checked before anything changes. `image`: that
    which the snapshot may refer to, by default the one that the machine began with. What it has of an image now.

    Raises HostError for a file that does not fit the machine or is damaged, or refers to another image.
    """
    check_header(reader, machine.netlist, machine.precision)
    header = Fields(reader.header, "", reader.refused)
    netlist, memory, known = machine.netlist, machine.memory, stores(machine.memory, written_only=False)
    held, flats, programs = header.at("stores"), header.at("flat"), header.at("programs")
    runs = {name: read_label_runs(held.at(name), known.get(name)) for name in held.names()}
    of_views = {name: read_view_labels(header.at("views"), name, memory) for name in own_labels(memory)}
    pointers = {name: read_pointers(header.at("queues").at(name), item) for name, item in memory.channels.items()}
    slots = {name: read_slots(flats.at(name), memory.channels.get(name)) for name in flats.names()}
    allocated = [name for (name,) in header.rows("allocated", str)]
    if not memory.dynamic.issuperset(allocated) or len(set(allocated)) < len(allocated):
        raise header.bad("allocates queues that are not dynamic")
    variables = {name: read_variables(programs.at(name), name, netlist) for name in programs.names()}
    traffic = {name: read_traffic(header.at("traffic").at(name), netlist) for name in memory.channels}
    executed: dict[str, int] = dict(header.rows("executed", str, int))
    if not netlist.graphs.keys() >= executed.keys() or min(executed.values(), default=0) < 0:
        raise header.bad("has executed graphs that the netlist has not")
    sums = {name: read_sum_tiles(header, name, netlist) for name in header.at("gradients").names()}
    referred = read_reference(header, known, changing(netlist, memory))
    kinds = (("stores", runs.keys() - referred), ("flat", slots), ("gradients", sums))
    reader.require(f"{kind}/{name}" for kind, names in kinds for name in names)
    check_sizes(netlist, memory, reader, {known[name]: found for name, found in runs.items()}, slots, sums, referred)
    begun = machine.begun
    image = image or (begun.image if begun is not None else None)
    if referred:
        image = require_image(header, reader, image)
    stay = frozenset[str]()
    if referred and begun is not None and image is not None and begun.image.digest == image.digest:
        stay = unchanged_of(machine) & referred
    try:
        labels = {name: labels_of(found) for name, found in runs.items()}
        own = {name: found for name, found in labels.items() if name not in referred}
        tiles = {name: read_store(reader, name, known[name], found) for name, found in own.items()}
        fill = fillers(image, memory, referred - stay, machine.holding) if image is not None else []
        flat = {name: read_row_major(reader, name, netlist, found) for name, found in slots.items()}
        gradients = {name: read_sum(reader, name, count) for name, count in sums.items()}
    except MemoryError:
        raise reader.refused("the memory for it is not to be had") from None

    # From here on nothing fails.
    for name, store in known.items():
        if name not in stay:
            store.replace(tiles.get(name) or store.fresh(0), own.get(name, []))
    for put in fill:
        put()
    for name, own in own_labels(memory).items():
        own.clear()
        own.update(of_views[name])
    for name, channel in memory.channels.items():
        set_pointers(channel, pointers[name])
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
    return Begun(image, {name: known[name].writes for name in referred}) if image is not None else None


def netlist_of(reader: Reader, netlist: Netlist | None) -> Netlist:
    """The given netlist, or the one that the file keeps. Raises HostError where there is none, or it is not good."""
    if netlist is not None:
        return netlist
    text = reader.netlist
    if text is None:
        raise reader.refused("it keeps no netlist (its file had changed): give one, Emulator.load(path, netlist)")

    of = Fields(reader.header, "", reader.refused).at("netlist")
    found = check_bytes(text, of.text("path"), of.text("arch")).netlist
    if found is None:
        raise reader.refused("the netlist in it is refused")
    return found


def text_of(netlist: Netlist) -> bytes | None:
    """The netlist's file, if it still says the same."""
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
