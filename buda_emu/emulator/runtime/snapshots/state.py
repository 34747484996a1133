"""Saves everything that one machine remembers between two programs in a snapshot, and restores it
(docs/run/snapshots.md).

That is: written entries with their format labels, pointers, flags and autoincs of queues and rams, row-major host data
for tilizers, which dynamic queues are allocated, variables and parameters of every program, sums of gradient ops that
no ram keeps, and for error texts who pushed and popped last. Dropout has no state (OPS 5.1)."""

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import Any, Protocol, cast

from numpy.typing import NDArray

from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.memory.store import Arrays, TileStore
from buda_emu.emulator.runtime.host.programs import Programs
from buda_emu.emulator.runtime.machine.listeners import HOST, SETTINGS, Journal, QueueTraffic, Traffic
from buda_emu.emulator.runtime.machine.memory import Channel, Memory
from buda_emu.emulator.runtime.snapshots.archive import KIND, MOST, SCHEMA_VERSION, Fields, Reader, write
from buda_emu.emulator.runtime.snapshots.entries import (
    Tensor,
    changing_stores,
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
    written_slices,
)
from buda_emu.netlist.load import check_bytes
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.program.settings import Kind
from buda_emu.netlist.yaml_reader import UnreadableError, read_bytes
from buda_emu.spec.precision import Precision, find_precision
from buda_emu.spec.varinst import INT_MAX, INT_MIN, is_variable
from buda_emu.support.records import dataclass
from buda_emu.support.version import __version__

_KINDS: Mapping[str, Kind] = {kind.value: kind for kind in Kind}
_FLAGS = ("prologue", "epilogue", "zero")
_RING = ("rd", "wr", "local", "local_base")
_FIFO_STEPS = ("rd_ptr_autoinc", "global_rdptr_autoinc")
_RAM_STEPS = ("global_rdptr_autoinc", "global_wrptr_autoinc")


def pointers_of(channel: Channel) -> dict[str, Any]:
    """Return the flags, pointers and pointer steps of a queue or ram by attribute name, for `set_pointers`."""
    flags = {name: getattr(channel, name) for name in _FLAGS}
    if isinstance(channel, Ram):
        return flags | {name: getattr(channel, name) for name in ("rd", "wr", *_RAM_STEPS)}
    steps = {name: getattr(channel, name) for name in _FIFO_STEPS}
    return flags | steps | {name: getattr(channel.ring, name) for name in _RING}


def read_pointers(fields: Fields, channel: Channel) -> dict[str, Any]:
    """Read flags, pointers and pointer steps of a queue or ram, in the form of `pointers_of`. Raises HostError for
    impossible ones."""
    pointers: dict[str, Any] = {name: fields.flag(name) for name in _FLAGS}
    if isinstance(channel, Ram):
        pointers |= {name: fields.integer(name, 0, channel.entries - 1) for name in ("rd", "wr")}
        return pointers | {name: fields.integer(name, 0, INT_MAX) for name in _RAM_STEPS}
    pointers |= {name: fields.integer(name, 0, channel.ring.limit - 1) for name in _RING}
    return pointers | {name: fields.integer(name, INT_MIN, INT_MAX) for name in _FIFO_STEPS}


def set_pointers(channel: Channel, pointers: Mapping[str, Any]) -> None:
    """Set a queue's or ram's flags, pointers and steps to those that `pointers_of` or `read_pointers` returned."""
    for name, value in pointers.items():
        setattr(channel.ring if isinstance(channel, Fifo) and name in _RING else channel, name, value)


def variables_of(programs: Programs, name: str) -> dict[str, Any]:
    """Return the variables and parameters of a program in the form of a snapshot's header: rows of (name, kind, value)
    and (name, text)."""
    values, kinds, params = programs.interpreter(name).variables.state()
    return {
        "variables": [[variable, kinds[variable].value, value] for variable, value in values.items()],
        "params": [[param, text] for param, text in params.items()],
    }


def read_variables(
    fields: Fields, program: str, netlist: Netlist
) -> tuple[dict[str, int], dict[str, Kind], dict[str, str]]:
    """Read the variables of a program from its saved form: values by name, kinds by name, and parameter texts by name.
    Raises HostError for impossible ones, and a program that the netlist has not."""
    if program not in netlist.programs:
        raise fields.bad("is not a program of the netlist")
    values: dict[str, int] = {}
    kinds: dict[str, Kind] = {}
    for name, kind, value in fields.rows("variables", str, str, int):
        if kind not in _KINDS or not INT_MIN <= value <= INT_MAX or is_variable(name):
            raise fields.bad(f"has a variable {name!r} of an unknown kind or size")
        values[name] = value
        kinds[name] = _KINDS[kind]
    return values, kinds, dict(fields.rows("params", str, str))


def traffic_of(queue_traffic: QueueTraffic) -> dict[str, Any]:
    """Return the last push and pop of a queue as JSON. The place in a program is left out: it is of a run that is
    over."""
    return {
        "pushed": [
            [traffic.by, traffic.slot, traffic.total] for traffic in (queue_traffic.pushed,) if traffic is not None
        ],
        "popped": [
            [traffic.by, traffic.slot, traffic.total] for traffic in (queue_traffic.popped,) if traffic is not None
        ],
    }


def read_traffic(fields: Fields, netlist: Netlist) -> QueueTraffic:
    """Read the last push and pop of a queue from the form of `traffic_of`. Raises HostError for impossible traffic."""

    def read(key: str) -> Traffic | None:
        """Return the traffic under a key, None for an empty list."""
        traffic = None
        for by, slot, total in fields.rows(key, str, int, int):
            if (by not in (HOST, SETTINGS) and by not in netlist.ops) or slot < -1 or not 0 < total < MOST:
                raise fields.bad(f"has a {key} that cannot be")
            traffic = Traffic(by, slot, None, total)
        return traffic

    return QueueTraffic(read("pushed"), read("popped"))


_SECTIONS = ("arch_name", "queues", "graphs", "fused_ops", "programs", "temporal_graphs")


def fingerprint(netlist: Netlist) -> str:
    """Return the SHA-256, in hexadecimal, of all parts of a netlist that decide what it computes on its architecture,
    so that a snapshot is restored only into an equal netlist."""
    digest = hashlib.sha256()
    for section in _SECTIONS:
        for part in _text_parts(getattr(netlist, section)):
            digest.update(part.encode("utf-8", "surrogateescape"))
            digest.update(b"\0")
    return digest.hexdigest()


def _text_parts(value: object) -> Iterator[str]:
    """Yield texts that are the same in sequence for equal values only: each container begins with its kind and its
    length."""
    if is_dataclass(value):
        compared = [member.name for member in fields(value) if member.compare]
        yield f"{type(value).__name__}{len(compared)}"
        for name in compared:
            yield from _text_parts(getattr(value, name))
    elif isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value)
        yield f"map{len(items)}"
        for key, member in items.items():
            yield from _text_parts(key)
            yield from _text_parts(member)
    elif isinstance(value, tuple | list):
        members = cast("Sequence[object]", value)
        yield f"list{len(members)}"
        for member in members:
            yield from _text_parts(member)
    elif isinstance(value, frozenset):
        names = sorted(repr(member) for member in cast("frozenset[object]", value))
        yield f"set{len(names)}"
        yield from names
    else:
        yield repr(value)


TensorFiller = Callable[[str, Any, int | None], Callable[[], object]]
"""The type of `Exchange.filler`."""


class InitialTensor(Protocol):
    """A tensor of an image for one queue: `array` [entries, t, rows, cols], `slot` the first one of a ram."""

    @property
    def queue(self) -> str:
        """The name of the queue."""
        ...

    @property
    def array(self) -> Any:
        """The values, as a numpy array or by reference."""
        ...

    @property
    def slot(self) -> int | None:
        """The first slot of a ram, None for a queue."""
        ...


class InitialImage(Protocol):
    """A device image (`buda_emu.emulator.image`): its file, the SHA-256 of that, and the tensors that a machine begins
    with."""

    path: str

    @property
    def digest(self) -> str:
        """The SHA-256 of the file in hexadecimal."""
        ...

    def initial_tensors(self) -> Iterator[InitialTensor]:
        """Yield the tensors in the order in which they are pushed."""
        ...


@dataclass(frozen=True, slots=True)
class ImageUse:
    """The image that a machine began with. `writes` counts, for each store that the image filled, how often it had been
    written to then."""

    image: InitialImage
    writes: Mapping[str, int]

    def stores_of_image(self, netlist: Netlist, memory: Memory) -> frozenset[str]:
        """Return the names of the stores that still hold the image's data: programs do not change them, and nobody has
        written to them since."""
        changing = changing_stores(netlist, memory)
        all_stores = stores(memory, written_only=False)
        return frozenset(
            name for name, count in self.writes.items() if name not in changing and all_stores[name].writes == count
        )


def reference(begun: ImageUse | None, unchanged: Collection[str]) -> dict[str, Any]:
    """Return the part of a snapshot's header that refers to an image instead of storing the data of the stores
    `unchanged`; empty where there is none. Raises ImageError for an image file that cannot be read."""
    if begun is None or not unchanged:
        return {}
    return {
        "path": begun.image.path,
        "sha256": begun.image.digest,
        "stores": [[name] for name in sorted(unchanged)],
    }


def read_reference(header: Fields, memory_stores: Mapping[str, TileStore], changing: Collection[str]) -> frozenset[str]:
    """Read the names of the stores whose data is in an image instead of the snapshot; empty where it refers to none.
    `changing` are those that a program may change, which must not be among them. Raises HostError."""
    fields = header.at("image")
    if not fields.names():
        return frozenset()
    named = [name for (name,) in fields.rows("stores", str)]
    if len(set(named)) < len(named) or not memory_stores.keys() - changing >= set(named):
        raise fields.bad("refers to an image for memory that programs change, or that is not there")
    return frozenset(named)


def require_image(header: Fields, reader: Reader, image: InitialImage | None) -> InitialImage:
    """Return `image` if it is the one that a snapshot refers to, by its SHA-256. Raises HostError where it is None or
    another one."""
    fields = header.at("image")
    path = fields.text("path")
    digest = fields.text("sha256")
    if image is None:
        raise reader.refusal(
            f"its parameters are those of the image {path}: give it, Emulator.load(snapshot, "
            "netlist, image=buda_emu.load_image(path)), or restore it after begin_with"
        )
    if image.digest != digest:
        raise reader.refusal(
            f"its parameters are those of the image {path} (SHA-256 {digest[:12]}...), which {image.path} is not "
            f"({image.digest[:12]}...): give the image that it was saved with"
        )
    return image


def fillers(
    image: InitialImage, memory: Memory, names: Collection[str], filler: TensorFiller
) -> list[Callable[[], object]]:
    """Return functions that fill the stores `names` from the image, to be called once these are empty; `filler` makes
    the function for one tensor. Everything that can be wrong is checked before. Raises HostError, ImageError."""
    calls: list[Callable[[], object]] = []
    for tensor in image.initial_tensors() if names else ():
        if memory.channel(tensor.queue).view.store.name in names:
            calls.append(filler(tensor.queue, tensor.array, tensor.slot))
    return calls


@dataclass(frozen=True, slots=True)
class Machine:
    """The parts of a machine that hold state. `gradients` is that of the executor's context."""

    netlist: Netlist
    precision: str
    memory: Memory
    programs: Programs
    gradients: dict[str, Tensor]
    journal: Journal
    filler: TensorFiller
    begun: ImageUse | None = None


def unchanged_of(machine: Machine) -> frozenset[str]:
    """Return the names of the stores that still hold the data of the image that the machine began with; empty without
    one."""
    if machine.begun is not None:
        return machine.begun.stores_of_image(machine.netlist, machine.memory)
    return frozenset()


def save(machine: Machine, path: str | os.PathLike[str], netlist_text: bytes | None) -> None:
    """Write the state of a machine to a file, while no program runs. `netlist_text`: the bytes of the netlist's file,
    to be kept with it, or None. Raises HostError."""
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
            f"stores/{name}": list(chain.from_iterable(written_slices(store.arrays(), store.labels)))
            for name, store in held.items()
            if name not in unchanged
        },
        **{f"flat/{name}": list(slots.values()) for name, slots in flat.items()},
        **{f"gradients/{name}": [array] for name, array in machine.gradients.items()},
    }
    write(path, header, netlist_text, arrays)


def check_header(reader: Reader, netlist: Netlist, precision: str) -> None:
    """Raise HostError for a snapshot of another schema, version of buda-emu, precision or netlist."""
    header = Fields(reader.header, "", reader.refusal)
    version = header.integer("schema_version", 0, MOST)
    if version != SCHEMA_VERSION:
        raise reader.refusal(f"its form has version {version}, this buda-emu reads version {SCHEMA_VERSION}")
    if header.text("buda_emu") != __version__:
        raise reader.refusal(f"it is of buda-emu {header.text('buda_emu')}, this is {__version__}")
    if header.text("precision") != precision:
        raise reader.refusal(f"it has precision {header.text('precision')}, the machine {precision}")
    of = header.at("netlist")
    if of.text("sha256") != fingerprint(netlist):
        raise reader.refusal(f"it is of another netlist ({of.text('path')}, {of.text('arch')}) than {netlist.path}")


@dataclass(frozen=True, slots=True)
class _SavedHeader:
    """The values in a snapshot's header, checked against the machine. `sums`: tiles of each gradient sum; `referred`:
    stores whose data is in the image."""

    runs: Mapping[str, list[tuple[int, int, str]]]
    view_labels: Mapping[str, dict[int, str]]
    pointers: Mapping[str, dict[str, Any]]
    slots: Mapping[str, list[int]]
    allocated: Sequence[str]
    variables: Mapping[str, tuple[dict[str, int], dict[str, Kind], dict[str, str]]]
    traffic: Mapping[str, QueueTraffic]
    executed: Mapping[str, int]
    sums: Mapping[str, int]
    referred: frozenset[str]


@dataclass(frozen=True, slots=True)
class _SavedArrays:
    """The arrays of a snapshot, by store, queue and op, and `fill`, functions that fill stores from the image."""

    labels: Mapping[str, list[str]]
    tiles: Mapping[str, Arrays]
    fill: Sequence[Callable[[], object]]
    flat: Mapping[str, dict[int, Tensor]]
    gradients: Mapping[str, Tensor]


def restore(machine: Machine, reader: Reader, image: InitialImage | None = None) -> ImageUse | None:
    """Give the machine the state of a snapshot, and return its use of an image afterwards (None where it uses none).
    Everything is read and checked before anything changes. `image` is the one that the snapshot may refer to, None for
    the one that the machine began with. Raises HostError for a file that does not fit the machine or is damaged, or
    refers to another image, ImageError for an image that cannot be read."""
    check_header(reader, machine.netlist, machine.precision)
    header = Fields(reader.header, "", reader.refusal)
    memory_stores = stores(machine.memory, written_only=False)
    saved = _read_header(machine, header, memory_stores)
    _check_members(machine, reader, saved, memory_stores)
    begun = machine.begun
    if image is None and begun is not None:
        image = begun.image
    if saved.referred:
        image = require_image(header, reader, image)
    unchanged = frozenset[str]()
    if saved.referred and begun is not None and image is not None and begun.image.digest == image.digest:
        unchanged = unchanged_of(machine) & saved.referred
    arrays = _read_arrays(machine, reader, saved, memory_stores, image, unchanged)
    _replace_state(machine, saved, arrays, memory_stores, unchanged)
    if image is None:
        return None
    return ImageUse(image, {name: memory_stores[name].writes for name in saved.referred})


def _read_header(machine: Machine, header: Fields, memory_stores: Mapping[str, TileStore]) -> _SavedHeader:
    """Read and check everything that stands in the header. Raises HostError."""
    netlist = machine.netlist
    memory = machine.memory
    saved_stores = header.at("stores")
    flats = header.at("flat")
    programs = header.at("programs")
    runs = {name: read_label_runs(saved_stores.at(name), memory_stores.get(name)) for name in saved_stores.names()}
    view_labels = {name: read_view_labels(header.at("views"), name, memory) for name in own_labels(memory)}
    queues = header.at("queues")
    pointers = {name: read_pointers(queues.at(name), channel) for name, channel in memory.channels.items()}
    slots = {name: read_slots(flats.at(name), memory.channels.get(name)) for name in flats.names()}
    allocated = [name for (name,) in header.rows("allocated", str)]
    if not memory.dynamic.issuperset(allocated) or len(set(allocated)) < len(allocated):
        raise header.bad("allocates queues that are not dynamic")
    variables = {name: read_variables(programs.at(name), name, netlist) for name in programs.names()}
    traffic = {name: read_traffic(header.at("traffic").at(name), netlist) for name in memory.channels}
    executed: dict[str, int] = dict(header.rows("executed", str, int))
    if not netlist.graphs.keys() >= executed.keys() or min(executed.values(), default=0) < 0:
        raise header.bad("has executed graphs that the netlist has not")
    return _SavedHeader(
        runs=runs,
        view_labels=view_labels,
        pointers=pointers,
        slots=slots,
        allocated=allocated,
        variables=variables,
        traffic=traffic,
        executed=executed,
        sums={name: read_sum_tiles(header, name, netlist) for name in header.at("gradients").names()},
        referred=read_reference(header, memory_stores, changing_stores(netlist, memory)),
    )


def _check_members(
    machine: Machine, reader: Reader, saved: _SavedHeader, memory_stores: Mapping[str, TileStore]
) -> None:
    """Check that the file has exactly the arrays that its header names, in their sizes, and that they fit the memory
    limit. Raises HostError."""
    members = [f"stores/{name}" for name in saved.runs.keys() - saved.referred]
    members += [f"flat/{name}" for name in saved.slots]
    members += [f"gradients/{name}" for name in saved.sums]
    reader.require(members)
    check_sizes(
        machine.netlist,
        machine.memory,
        reader,
        {memory_stores[name]: runs for name, runs in saved.runs.items()},
        saved.slots,
        saved.sums,
        saved.referred,
    )


def _read_arrays(
    machine: Machine,
    reader: Reader,
    saved: _SavedHeader,
    memory_stores: Mapping[str, TileStore],
    image: InitialImage | None,
    unchanged: frozenset[str],
) -> _SavedArrays:
    """Read all arrays of the file into new memory, and prepare what comes from the image. Stores that are `unchanged`
    keep their data and get none. Raises HostError."""
    try:
        labels = {name: labels_of(runs) for name, runs in saved.runs.items() if name not in saved.referred}
        tiles = {name: read_store(reader, name, memory_stores[name], slices) for name, slices in labels.items()}
        fill: Sequence[Callable[[], object]] = ()
        if image is not None:
            fill = fillers(image, machine.memory, saved.referred - unchanged, machine.filler)
        flat = {name: read_row_major(reader, name, machine.netlist, slots) for name, slots in saved.slots.items()}
        gradients = {name: read_sum(reader, name, count) for name, count in saved.sums.items()}
    except MemoryError:
        raise reader.refusal("the memory for it is not to be had") from None
    return _SavedArrays(labels=labels, tiles=tiles, fill=fill, flat=flat, gradients=gradients)


def _replace_state(
    machine: Machine,
    saved: _SavedHeader,
    arrays: _SavedArrays,
    memory_stores: Mapping[str, TileStore],
    unchanged: frozenset[str],
) -> None:
    """Replace the machine's state by what was read, except for the data of the stores `unchanged`. Everything has been
    checked before: this does not fail."""
    memory = machine.memory
    for name, store in memory_stores.items():
        if name not in unchanged:
            store.replace(arrays.tiles.get(name) or store.fresh(0), arrays.labels.get(name, []))
    for fill in arrays.fill:
        fill()
    for name, labels in own_labels(memory).items():
        labels.clear()
        labels.update(saved.view_labels[name])
    for name, channel in memory.channels.items():
        set_pointers(channel, saved.pointers[name])
        if channel.flat is not None:
            channel.flat.clear()
            channel.flat.update(arrays.flat.get(name, {}))
    memory.replace_allocations(saved.allocated)
    machine.programs.forget()
    for name, (values, kinds, params) in saved.variables.items():
        machine.programs.interpreter(name).variables.set_state(values, kinds, params)
    machine.gradients.clear()
    machine.gradients.update(arrays.gradients)
    machine.journal.replace(saved.traffic, saved.executed)


def netlist_of(reader: Reader, netlist: Netlist | None) -> Netlist:
    """Return `netlist`, or if that is None the one that the snapshot keeps. Raises HostError where it keeps none, or
    the text in it is no valid netlist."""
    if netlist is not None:
        return netlist
    text = reader.netlist
    if text is None:
        raise reader.refusal("it keeps no netlist (its file had changed): give one, Emulator.load(path, netlist)")

    of = Fields(reader.header, "", reader.refusal).at("netlist")
    checked = check_bytes(text, of.text("path"), of.text("arch")).netlist
    if checked is None:
        raise reader.refusal("the netlist in it is refused")
    return checked


def unchanged_file_of(netlist: Netlist) -> bytes | None:
    """Return the bytes of the file that a netlist was read from, to be kept in a snapshot; None if it cannot be read or
    holds another netlist now."""
    try:
        data = read_bytes(netlist.path)
    except (UnreadableError, OSError):
        return None
    again = check_bytes(data, netlist.path, netlist.arch_name).netlist
    if again is not None and fingerprint(again) == fingerprint(netlist):
        return data
    return None


def precision_of(reader: Reader) -> Precision:
    """Return the precision of the machine that was saved. Raises HostError for an unknown one."""
    fields = Fields(reader.header, "", reader.refusal)
    precision = find_precision(fields.text("precision"))
    if precision is None:
        raise fields.bad("names a precision that is not known")
    return precision
